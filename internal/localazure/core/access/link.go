package access

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
)

// Request is a request that may name other resources.
type Request struct {
	Kind *kind.Kind
	ID   azure.ID
	Body behaviour.Object
	// Post is the name of the POST action, "" for a write.
	Post string
	// Action is what the request itself needs the right to.
	Action string
	Caller behaviour.Caller
}

// principalIn is the principal of the request in a tenant, nil for none.
func (r *Request) principalIn(tenant string) *behaviour.Principal {
	for _, p := range append([]*behaviour.Principal{r.Caller.Principal}, r.Caller.Auxiliary...) {
		if p != nil && (p.Tenant == "" || strings.EqualFold(p.Tenant, tenant)) {
			return p
		}
	}
	return nil
}

// AuthorizeLinks checks the right to every resource that the body of a request names, except in fields that are Azure's own. doc is
// the document that the body asks for, before Azure completes it, or the body of an action. A resource in another tenant is used with
// the principal that the caller has there.
func (a *Control) AuthorizeLinks(r Request, doc behaviour.Object) error {
	if p := r.Caller.Principal; p != nil && p.Azure || !a.SeveralTenants && a.unlimited(p) {
		return nil
	}
	sent := map[string]bool{}
	for _, ref := range document.References(r.Kind, r.ID, r.Body) {
		sent[ref.Target] = true
	}
	for _, ref := range document.References(r.Kind, r.ID, doc) {
		if !sent[ref.Target] {
			continue
		}
		if err := a.authorizeLink(r, ref.Place.Path, document.Spelling(azure.ID(ref.Target), r.Body)); err != nil {
			return err
		}
	}
	return a.authorizeIdentities(r, doc)
}

// authorizeIdentities checks the right to assign the identities that a request gives a resource: the keys of an object. The value null
// takes one away, which needs no right.
func (a *Control) authorizeIdentities(r Request, doc behaviour.Object) error {
	const path = "identity.userAssignedIdentities"
	kept := behaviour.Sub(doc, path)
	sent := behaviour.Sub(r.Body, path)
	for _, id := range slices.Sorted(maps.Keys(sent)) {
		if _, is := kept[id]; !is || sent[id] == nil {
			continue
		}
		if err := a.authorizeLink(r, path, azure.ID(id)); err != nil {
			return err
		}
	}
	return nil
}

func (a *Control) authorizeLink(r Request, path string, to azure.ID) error {
	k := a.Kinds.Of(to.Type())
	if k == nil || to.Subscription() == "" {
		return nil
	}
	action := linkAction(r.Kind.Name, r.Post, path, k.Name)
	if action == "" {
		return nil
	}
	p := r.Caller.Principal
	if p == nil {
		p = &behaviour.Principal{}
	}
	on := p
	if tenant := a.World.TenantOf(to.Subscription()); tenant != "" {
		on = r.principalIn(tenant)
	}
	if on == nil {
		return behaviour.Gateway(http.StatusForbidden, "LinkedAuthorizationFailed",
			"The client '%s' with object id '%s' has permission to perform action '%s' on scope '%s'; however, the current tenant "+
				"'%s' is not authorized to access linked subscription '%s'.",
			p.ApplicationID, p.ObjectID, r.Action, r.ID, p.Tenant, to.Subscription())
	}
	if a.Allowed(on, action, to) {
		return nil
	}
	return behaviour.Gateway(http.StatusForbidden, "LinkedAuthorizationFailed",
		"The client '%s' with object id '%s' has permission to perform action '%s' on scope '%s'; however, it does not have "+
			"permission to perform action(s) '%s' on the linked scope(s) '%s' (respectively) or the linked scope(s) are invalid.",
		on.ApplicationID, on.ObjectID, r.Action, r.ID, action, to)
}

// link says which action a request needs on a resource that it names. from, path and to are patterns of small letters in which *
// stands for anything: the type of the resource that is written, where the other is named, and the type of the other. The action
// begins with the type of the other resource if it begins with a slash, and is "" for none.
type link struct{ from, path, to, action string }

const (
	networkTypes  = "microsoft.network/"
	computeTypes  = "microsoft.compute/"
	beginAccess   = "/beginGetAccess/action"
	read          = "/read"
	write         = "/write"
	deploy        = "/deploy/action"
	anyPath       = "*"
	anyType       = "*"
	securityGroup = networkTypes + "applicationsecuritygroups"
)

// writeLinks are the links of writes. The first row that fits counts.
var writeLinks = []link{
	{anyType, "tags*", anyType, ""},
	// The approval workflow in https://learn.microsoft.com/azure/private-link/private-endpoint-overview. The owner of the target
	// approves a manual connection later.
	{networkTypes + "privateendpoints", "properties.privatelinkserviceconnections.*", anyType,
		"/PrivateEndpointConnectionsApproval/action"},
	{networkTypes + "privateendpoints", "properties.manualprivatelinkserviceconnections.*", anyType, ""},
	{anyType, anyPath, "microsoft.managedidentity/userassignedidentities", "/assign/action"},
	{networkTypes + "loadbalancers*", anyPath, networkTypes + "virtualnetworks", "/joinLoadBalancer/action"},
	// Firewalls of storage accounts, vaults and registries:
	// https://learn.microsoft.com/azure/storage/common/storage-network-security#required-permissions
	{anyType, "*.virtualnetworkrules", networkTypes + "virtualnetworks/subnets", "/joinViaServiceEndpoint/action"},
	// https://learn.microsoft.com/azure/virtual-network/virtual-network-manage-peering#permissions
	{networkTypes + "virtualnetworks*", "*remotevirtualnetwork", networkTypes + "virtualnetworks", "/peer/action"},
	{networkTypes + "networksecuritygroups*", anyPath, securityGroup, "/joinNetworkSecurityRule/action"},
	{anyType, anyPath, securityGroup, "/joinIpConfiguration/action"},
	// No list of Azure's actions that is known has one to join profiles.
	{anyType, anyPath, networkTypes + "trafficmanagerprofiles", read},
	{anyType, anyPath, networkTypes + "*", "/join/action"},
	// A machine needs the right to write its disks. To copy the content of a disk needs the right to export it.
	{computeTypes + "virtualmachine*", anyPath, computeTypes + "disks", write},
	{anyType, anyPath, computeTypes + "disks", beginAccess},
	{anyType, anyPath, computeTypes + "snapshots", beginAccess},
	{computeTypes + "*", anyPath, "microsoft.storage/storageaccounts", "/listKeys/action"},
	{anyType, anyPath, computeTypes + "diskencryptionsets", read},
	{anyType, anyPath, computeTypes + "diskaccesses", read},
	{anyType, anyPath, computeTypes + "images", read},
	{anyType, anyPath, computeTypes + "galleries*", read},
	{anyType, anyPath, computeTypes + "capacityreservationgroups", deploy},
	{anyType, anyPath, "microsoft.keyvault/vaults", deploy},
	{anyType, anyPath, "microsoft.authorization/*", ""},
	{anyType, anyPath, "microsoft.resources/*", ""},
	{anyType, anyPath, anyType, write},
}

// actionLinks are the links in the bodies of POST actions. Others need no right.
var actionLinks = []link{
	{computeTypes + "virtualmachine*/attachdetachdatadisks", "datadiskstoattach.*", computeTypes + "disks", write},
	{"microsoft.containerregistry/registries/importimage", "source.resourceid", "microsoft.containerregistry/registries", "/pull/read"},
	{"microsoft.resources/resourcegroups/*moveresources", "targetresourcegroup", "microsoft.resources/resourcegroups", write},
}

// linkAction returns the action that a link at a path needs on its target, "" for none. post is the name of a POST action.
func linkAction(from, post, path, to string) string {
	rows := writeLinks
	if post != "" {
		rows, from = actionLinks, from+"/"+post
	}
	for _, row := range rows {
		fits := wildcard(row.from, strings.ToLower(from)) && wildcard(row.path, strings.ToLower(path)) &&
			wildcard(row.to, strings.ToLower(to))
		if !fits {
			continue
		}
		if row.action == "" {
			return ""
		}
		return behaviour.TypeInActions(to) + row.action
	}
	return ""
}
