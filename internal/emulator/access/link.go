package access

import (
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/document"
	"kaz/internal/emulator/kind"
)

// Write is a request that writes a resource.
type Write struct {
	Kind *kind.Kind
	ID   azure.ID
	Body behaviour.Object
	// Action is what the request needs the right to.
	Action string
	// Principal makes the request. Auxiliary are the principals that its caller has in
	// other tenants.
	Principal *behaviour.Principal
	Auxiliary []*behaviour.Principal
}

// principalIn is the principal of the request in a tenant, nil for none.
func (w *Write) principalIn(tenant string) *behaviour.Principal {
	for _, p := range append([]*behaviour.Principal{w.Principal}, w.Auxiliary...) {
		if p.Tenant == "" || strings.EqualFold(p.Tenant, tenant) {
			return p
		}
	}
	return nil
}

// AuthorizeLinks checks the right to join every resource that the body of a write
// names, except in fields that are Azure's own. A resource in another
// tenant is joined with the principal that the caller has there.
func (a *Control) AuthorizeLinks(w Write, doc behaviour.Object) error {
	if w.Principal == nil || !a.SeveralTenants && (!a.Enforced || w.Principal.Owner) {
		return nil
	}
	sent := map[string]bool{}
	for _, ref := range document.References(w.Kind, w.ID, w.Body) {
		sent[ref.Target] = true
	}
	for _, ref := range document.References(w.Kind, w.ID, doc) {
		if !sent[ref.Target] {
			continue
		}
		to := azure.ID(ref.Target)
		k := a.Kinds.Of(to.Type())
		if k == nil || to.Subscription() == "" || k.Name == roleDefinitions {
			continue
		}
		join := joinAction(w.Kind, k, ref.Place.Path)
		if join == "" {
			continue
		}
		if err := a.authorizeLink(w, document.Spelling(to, w.Body), join); err != nil {
			return err
		}
	}
	return nil
}

func (a *Control) authorizeLink(w Write, to azure.ID, join string) error {
	tenant := a.World.TenantOf(to.Subscription())
	p := w.Principal
	if tenant != "" {
		p = w.principalIn(tenant)
	}
	if p == nil {
		return behaviour.Gateway(http.StatusForbidden, "LinkedAuthorizationFailed",
			"The client '%s' with object id '%s' has permission to perform action '%s' on scope '%s'; however, the current tenant "+
				"'%s' is not authorized to access linked subscription '%s'.",
			w.Principal.ApplicationID, w.Principal.ObjectID, w.Action, w.ID, w.Principal.Tenant, to.Subscription())
	}
	if a.Allowed(p, join, to) {
		return nil
	}
	return behaviour.Gateway(http.StatusForbidden, "LinkedAuthorizationFailed",
		"The client '%s' with object id '%s' has permission to perform action '%s' on scope '%s'; however, it does not have "+
			"permission to perform action(s) '%s' on the linked scope(s) '%s' (respectively) or the linked scope(s) are invalid.",
		p.ApplicationID, p.ObjectID, w.Action, w.ID, join, to)
}

// joinAction returns the right that a link from a resource of one type to a resource of another type needs. The link is at
// path, such as properties.networkAcls.virtualNetworkRules. The result is "" if the link needs no right.
func joinAction(from, to *kind.Kind, path string) string {
	holder := strings.ToLower(from.Name)
	if holder == "microsoft.network/privateendpoints" {
		// The approval workflow in https://learn.microsoft.com/azure/private-link/private-endpoint-overview.
		switch {
		case strings.HasPrefix(path, "properties.privateLinkServiceConnections."):
			return to.Name + "/PrivateEndpointConnectionsApproval/action"
		case strings.HasPrefix(path, "properties.manualPrivateLinkServiceConnections."):
			return "" // the owner of the target approves the connection later
		}
	}
	switch strings.ToLower(to.Name) {
	case "microsoft.managedidentity/userassignedidentities":
		return to.Name + "/assign/action"
	case "microsoft.network/virtualnetworks":
		if strings.HasPrefix(holder, "microsoft.network/loadbalancers") {
			return to.Name + "/joinLoadBalancer/action"
		}
	case "microsoft.network/virtualnetworks/subnets":
		// Firewalls of storage accounts, vaults and registries:
		// https://learn.microsoft.com/azure/storage/common/storage-network-security#required-permissions
		if strings.HasSuffix(path, ".virtualNetworkRules") {
			return to.Name + "/joinViaServiceEndpoint/action"
		}
	case "microsoft.network/applicationsecuritygroups":
		if strings.HasPrefix(holder, "microsoft.network/networksecuritygroups") {
			return to.Name + "/joinNetworkSecurityRule/action"
		}
		return to.Name + "/joinIpConfiguration/action"
	case "microsoft.compute/disks", "microsoft.compute/snapshots":
		if holder == "microsoft.compute/disks" || holder == "microsoft.compute/snapshots" {
			return to.Name + "/beginGetAccess/action" // to copy the content
		}
	case "microsoft.compute/diskencryptionsets", "microsoft.compute/diskaccesses":
		return to.Name + "/read"
	}
	return to.Name + "/join/action"
}
