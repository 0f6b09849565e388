package cluster

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/units"
	"kaz/internal/plan/rights"
)

// Role is a role that an identity of the machines needs at a resource.
type Role struct {
	// Field is the field of the definition with the id of the identity.
	Field string
	// Identity is the id of an identity that exists, "" for one that kaz makes.
	Identity azure.ID
	// Name is that of a built-in role with the actions. A role of your own may have them, too.
	Name  string
	Scope azure.ID
	// Actions and DataActions are what the machines do at the scope.
	Actions, DataActions []string
}

// Roles are the roles that the identities of a cluster's machines need: those that kaz assigns if spec.identity.roles is Scoped.
func (p Plan) Roles() ([]Role, error) {
	d := p.Definition
	d.Cluster.Spec.Identity.Roles = "Scoped"
	scoped, err := New(d)
	if err != nil {
		return nil, err
	}
	var all []Role
	for _, u := range scoped.Graph.Units {
		for _, r := range u.Resources {
			if grant, ok := units.GrantOf(r.Resource); ok {
				all = append(all, scoped.role(grant, scoped.AssignmentScope(r.Resource, u.Unit)))
			}
		}
	}
	return all, nil
}

func (p Plan) role(g units.Grant, scope azure.ID) Role {
	r := Role{Field: "spec.identity.nodes.id", Name: g.Role, Scope: scope}
	if g.ControlPlane {
		r.Field = "spec.identity.controlPlane.id"
	}
	r.Identity, _ = g.Identity.Exists()
	switch g.Role {
	case "Network Contributor":
		r.Actions = p.actions("Microsoft.Network/", p.networkScopes(scope))
	case "Virtual Machine Contributor":
		r.Actions = slices.DeleteFunc(p.actions("Microsoft.Compute/", []rights.Scope{rights.Machines, rights.Disks}), readsContent)
	case "Disk Backup Reader":
		r.Actions = slices.DeleteFunc(p.actions("Microsoft.Compute/", []rights.Scope{rights.Disks}),
			func(action string) bool { return !readsContent(action) })
	case "Managed Identity Operator":
		r.Actions = []string{"Microsoft.ManagedIdentity/userAssignedIdentities/*/assign/action"}
	case "Key Vault Secrets User":
		r.DataActions = []string{"Microsoft.KeyVault/vaults/secrets/getSecret/action"}
	case "Storage Blob Data Contributor":
		const blobs = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs/"
		r.DataActions = []string{blobs + "read", blobs + "write", blobs + "delete"}
	case "AcrPull":
		r.Actions = []string{"Microsoft.ContainerRegistry/registries/pull/read"}
	}
	return r
}

// readsContent reports whether an action reads the content of a disk, as a copy of it does.
func readsContent(action string) bool { return strings.HasSuffix(action, "/beginGetAccess/action") }

// networkScopes are the kinds of scopes of the network's actions at a scope.
func (p Plan) networkScopes(scope azure.ID) []rights.Scope {
	n := p.Definition.Cluster.Spec.Network
	switch {
	case scope.Is("Microsoft.Network/routeTables"):
		return []rights.Scope{rights.RouteTable}
	case scope.Is("Microsoft.Network/virtualNetworks"):
		return []rights.Scope{rights.VirtualNetwork}
	}
	all := []rights.Scope{rights.Machines, rights.LoadBalancers, rights.PublicIPs}
	if n.Subnets.Nodes.ID == "" {
		all = append(all, rights.VirtualNetwork, rights.SecurityGroups)
	}
	if n.RouteTableID == "" {
		all = append(all, rights.RouteTable)
	}
	return all
}

// actions are what the programs of a cluster do with a provider at scopes of some kinds, and cannot work without.
func (p Plan) actions(provider string, scopes []rights.Scope) []string {
	var all []string
	for _, need := range rights.Needed(p.features()...) {
		if !need.Degrades && slices.Contains(scopes, need.Scope) && strings.HasPrefix(need.Action, provider) {
			all = append(all, need.Action)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (p Plan) features() []rights.Feature {
	s := p.Definition.Cluster.Spec
	all := []rights.Feature{rights.Nodes, rights.Services, rights.InternalServices, rights.SecurityGroup}
	if slices.ContainsFunc(p.Definition.Pools, func(pool definition.NodePool) bool { return pool.Spec.Backend != "StandaloneVM" }) {
		all = append(all, rights.PoolsOfInterfaces)
	}
	if s.Kubernetes.PodNetwork == "CloudRoutes" {
		all = append(all, rights.Routes)
	}
	if s.Addons.Repository != "" && s.Addons.Disks {
		all = append(all, rights.Volumes, rights.Attachments, rights.Clones)
	}
	return all
}

// AssignmentScope is the id of the resource at which a role assignment of the plan is.
func (p Plan) AssignmentScope(r *graph.Resource, of *graph.Unit) azure.ID {
	switch {
	case r.Scope.IsZero() && of.Group != "":
		return of.Group
	case r.Scope.IsZero():
		return p.Names.Group()
	}
	at, exists := r.Scope.Exists()
	if exists {
		return at
	}
	unit, _ := r.Scope.Target()
	target := p.Graph.Resource(r.Scope)
	at = emit.ID(p.Names, target, p.Graph.Unit(unit).Unit)
	names := r.Scope.Names(target.Name)[strings.Count(target.Name, "/")+1:]
	kinds := strings.Split(strings.TrimPrefix(r.Scope.TypeOf(target.Type), target.Type), "/")[1:]
	for i, name := range names {
		at = at.Child(kinds[i], name)
	}
	return at
}
