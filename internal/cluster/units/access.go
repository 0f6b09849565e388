package units

import (
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/graph"
	"kaz/internal/template/function"
)

// The ids of Azure's built-in roles.
const (
	networkContributor             = "4d97b98b-1d4f-4787-a291-c67834d212e7"
	machineContributor             = "9980e02c-c2be-4d73-94e8-173b1dc7cf3c"
	diskReader                     = "3e5e47e6-65f7-47ef-90b5-e5dd4d455f24"
	contributor                    = "b24988ac-6180-42a0-ab88-20f7382dd24c"
	identityOperator               = "f1a07417-d97a-45cb-824c-7a7467783830"
	secretsUser                    = "4633458b-17de-408a-b874-0445c86b69e6"
	blobDataContributor            = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
	registryPull                   = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
	roleDefinitions                = "/providers/Microsoft.Authorization/roleDefinitions/"
	roleAssignments                = "Microsoft.Authorization/roleAssignments"
	clusterAccess, cp, nodesAccess = "access", "control-plane", "nodes"
)

// access are the role assignments.
type access struct{ controlPlane, nodes []graph.Ref }

// accessBuilder adds role assignments to a unit for each resource group.
type accessBuilder struct {
	*builder
	units map[string]*graph.Unit
	made  access
}

// access adds the role assignments of both identities.
func (b *builder) access(ids identities, v vault, s storage, n network) access {
	a := &accessBuilder{builder: b, units: map[string]*graph.Unit{}}
	group := graph.Ref{}
	switch b.spec.Identity.Roles {
	case "Scoped":
		a.grant(cp, ids.controlPlane, networkContributor, "network", group)
		a.grant(cp, ids.controlPlane, machineContributor, "machines", group)
		a.grant(cp, ids.controlPlane, diskReader, "disk-copies", group) // the role above may not read the content of disks
	case "Contributor":
		a.grant(cp, ids.controlPlane, contributor, "contributor", group)
	default:
		return a.made
	}
	a.grant(cp, ids.controlPlane, identityOperator, "identity-control-plane", ids.controlPlane.Ref)
	a.grant(cp, ids.controlPlane, identityOperator, "identity-nodes", ids.nodes.Ref)
	a.grant(cp, ids.controlPlane, secretsUser, "secrets", v.Ref)
	a.grant(cp, ids.controlPlane, blobDataContributor, "election", s.container, s.made...)
	a.grant(nodesAccess, ids.nodes, secretsUser, "token", v.token, v.made...)
	if subnet, exists := n.controlPlane.Exists(); exists {
		a.grant(cp, ids.controlPlane, networkContributor, "vnet", graph.Existing(string(subnet.Parent())))
	}
	if table := b.spec.Network.RouteTableID; table != "" {
		a.grant(cp, ids.controlPlane, networkContributor, "routes", graph.Existing(table))
	}
	for i, registry := range b.spec.Identity.RegistryIDs {
		a.grant(nodesAccess, ids.nodes, registryPull, fmt.Sprintf("registry-%d", i), graph.Existing(registry))
	}
	return a.made
}

// grant gives an identity a role at a resource, or at the cluster's resource group, after some resources are made.
func (a *accessBuilder) grant(holder string, identity graph.Identity, role, what string, scope graph.Ref, after ...graph.Ref) {
	u := a.unitOf(scope)
	subscription := a.spec.Azure.SubscriptionID
	if u.Group != "" {
		subscription = u.Group.Subscription()
	}
	ref := u.Add(graph.Resource{
		Symbol: holder + "-" + what, Type: roleAssignments, Scope: scope, After: after,
		Name: assignmentName(string(a.names.Group()), a.names.Cluster, holder, what, role),
		Body: object{"properties": object{
			"roleDefinitionId": string(azure.SubscriptionID(subscription)) + roleDefinitions + role,
			"principalId":      identity.PrincipalID(),
			"principalType":    "ServicePrincipal", // without it Azure looks for a principal that it may not know yet
		}},
	})
	if holder == cp {
		a.made.controlPlane = append(a.made.controlPlane, ref)
	} else {
		a.made.nodes = append(a.made.nodes, ref)
	}
}

// unitOf is the unit for role assignments at a resource: each resource group has one.
func (a *accessBuilder) unitOf(scope graph.Ref) *graph.Unit {
	group := a.names.Group()
	if id, exists := scope.Exists(); exists {
		group = groupOf(id)
	}
	u := a.units[group.Key()]
	if u == nil {
		name := clusterAccess
		if !group.Equal(a.names.Group()) {
			name += "-" + symbol(group.Name()) + "-" + assignmentName(group.Key())[:4]
		}
		u = a.unit(name)
		if name != clusterAccess {
			u.Group = group
		}
		a.units[group.Key()] = u
	}
	return u
}

// assignmentName is a GUID of what an assignment is about, so that the same assignment has the same name.
func assignmentName(about ...string) string {
	guid, err := function.All()["guid"].Do([]any{strings.ToLower(strings.Join(about, "|"))})
	if err != nil {
		panic(err) // a text has a GUID
	}
	return fmt.Sprint(guid)
}

// Grant is what a role assignment gives.
type Grant struct {
	// ControlPlane says that the identity is that of the control plane's machines, and not that of the nodes.
	ControlPlane bool
	Identity     graph.Ref
	// Role is the name of a built-in role.
	Role string
}

// GrantOf is what a resource gives that is a role assignment of an identity. It is false for others.
func GrantOf(r *graph.Resource) (Grant, bool) {
	properties, _ := r.Body["properties"].(object)
	holder, ok := properties["principalId"].(graph.Runtime)
	role, _ := properties["roleDefinitionId"].(string)
	if r.Type != roleAssignments || !ok {
		return Grant{}, false
	}
	names := map[string]string{
		networkContributor: "Network Contributor", machineContributor: "Virtual Machine Contributor", diskReader: "Disk Backup Reader",
		contributor:      "Contributor",
		identityOperator: "Managed Identity Operator", secretsUser: "Key Vault Secrets User",
		blobDataContributor: "Storage Blob Data Contributor", registryPull: "AcrPull",
	}
	return Grant{strings.HasPrefix(r.Symbol, cp+"-"), holder.Of, names[azure.ID(role).Name()]}, true
}
