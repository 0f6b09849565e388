package loadbalancer

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
)

// Service is one Service of a commit.
type Service struct {
	*v1.Service
	// Gone says that the Service is being deleted, or is no load balancer any more.
	Gone bool
	// Groups are the resource groups that the Service is known to have asked for before: an
	// address that was made there and is used nowhere yet is found by nothing else, nor is a
	// private link service. What is no name of a group is left out.
	Groups []key.Note
}

// before are the resource groups in which something of a kind may be for the Service,
// whatever it asks for now.
func (s Service) before(of key.Kind) []string {
	return groupsOf(of, s.Groups, key.Noted(s.Status.Conditions))
}

func groupsOf(of key.Kind, lists ...[]key.Note) []string {
	var groups []string
	for _, n := range slices.Concat(lists...) {
		if n.Of == of && key.IsGroup(n.Group) {
			groups = append(groups, n.Group)
		}
	}
	return groups
}

// Key is the Service's "namespace/name".
func (s Service) Key() string { return s.Namespace + "/" + s.Name }

// Input is all that a decision is made of.
type Input struct {
	Config   Config
	Services []Service
	// Others are Services of type LoadBalancer that are not of this commit. What
	// they have stays; it is best known from their objects.
	Others []*v1.Service
	// Complete says that Services and Others are all that the cluster has. Then
	// destinations of managed security rules that nobody has are taken out.
	Complete bool
	// Nodes are all nodes of the cluster. Where there are none, nobody joins or
	// leaves the backend pools.
	Nodes []*v1.Node
	// Nodeless are machines whose Node somebody deleted from Kubernetes, as far as is known:
	// they are excluded until there is one again. An instance that is just made from a
	// scale set's model has no Node either, and is none of them.
	Nodeless []azure.ID
	// Beside says that machines come and leave beside what else is brought about. Who leaves is
	// let packets through, then, until a decision finds that he has left.
	Beside bool
	// Unfit are addresses of nodes that Azure takes into no pool, and why, by address.
	Unfit map[string]string
	// Namespaces are the labels of namespaces, by name, and Endpoints the nodes that have
	// endpoints of a Service of policy Local, by the Service's key; a Service that is
	// not there keeps the nodes that it has. Both are for several load balancers.
	Namespaces map[string]map[string]string
	Endpoints  map[string][]string
	Have       plan.Snapshot
}

// Needs names what Have must hold to decide, given what it holds already: ask
// again with what was read, until it names nothing new.
func Needs(in Input) ([]azure.ID, []azure.Query) {
	c := in.Config
	var ids []azure.ID
	if c.SecurityGroupName != "" {
		ids = append(ids, c.securityGroup())
	}
	for _, id := range subnetsInvolved(in) {
		ids = append(ids, id)
		if _, absent := in.Have.Absent(id); absent { // the network may be what is missing, which Azure does not say
			ids = append(ids, c.virtualNetwork())
		}
	}
	lists := []azure.Query{{Scope: c.balancers(), Type: network.LoadBalancers}}
	for _, group := range addressGroups(in) {
		lists = append(lists, azure.Query{Scope: group, Type: network.PublicIPAddresses})
	}
	lists = append(lists, linkLists(in)...)
	return ids, append(lists, machineLists(in)...)
}

// MayBeUnread reports whether a decision can do without a list that [Needs] names, or a
// resource, whose id is the scope: the Services that name it are refused then, and what is
// theirs stays as it is; a node whose network interface is there stays out of the pools.
// Without what is the cluster's nothing can be decided.
func MayBeUnread(c Config, scope azure.ID, fullType string) bool {
	cluster, named := map[string]azure.ID{
		network.PublicIPAddresses: c.publicIPs(""), network.PrivateLinkServices: c.links(""), network.Subnets: c.subnet(""),
		network.PrivateEndpointConnections: "", network.VirtualNetworks: "", network.Interfaces: c.machines(),
	}[fullType]
	return named && !scope.Equal(cluster)
}

// addressGroups are the resource groups whose public IPs the Services have or ask
// for: a Service may have moved from one to another. Load balancers that have been read
// are not read again.
func addressGroups(in Input, read ...*side) []azure.ID {
	groups := []azure.ID{in.Config.publicIPs("")}
	add := func(id azure.ID) {
		if id != "" && !slices.ContainsFunc(groups, id.Equal) {
			groups = append(groups, id)
		}
	}
	for _, s := range in.Services {
		name, _ := key.PublicIPGroup.Read(s.Annotations)
		add(in.Config.publicIPs(name))
		for _, before := range s.before(key.PublicIPs) {
			add(in.Config.publicIPs(before))
		}
	}
	for _, group := range notedGroups(in.Config, securityGroupTags(in)) {
		add(group)
	}
	for _, d := range in.Have.List(in.Config.balancers(), network.LoadBalancers) {
		for _, fe := range frontendsOf(d, read) {
			if ref := fe.Properties.PublicIPAddress; ref != nil && looksOwned(fe.Name) {
				add(ref.ID.Parent())
			}
		}
	}
	return groups
}

// frontends is as much of a load balancer as tells which addresses it has.
type frontends struct {
	FrontendIPConfigurations []azure.Child[network.FrontendIPConfiguration] `json:"frontendIPConfigurations"`
}

// frontendsOf are those of a load balancer, none of a document that cannot be read: that is
// Desired's to report.
func frontendsOf(d azure.Document, read []*side) []azure.Child[network.FrontendIPConfiguration] {
	if i := slices.IndexFunc(read, func(s *side) bool { return s.id.Equal(d.ID()) }); i >= 0 {
		return read[i].lb.Properties.FrontendIPConfigurations
	}
	lb, err := azure.Decode[frontends](d)
	if err != nil {
		return nil
	}
	return lb.Properties.FrontendIPConfigurations
}

// subnetsInvolved are the subnets in which Services ask for an address.
func subnetsInvolved(in Input) []azure.ID {
	var ids []azure.ID
	add := func(name string) {
		if id := in.Config.subnet(name); id != "" && !slices.ContainsFunc(ids, id.Equal) {
			ids = append(ids, id)
		}
	}
	for _, s := range in.Services {
		if s.Gone {
			continue
		}
		own := ""
		if internal, _ := key.Internal.Read(s.Annotations); internal {
			own, _ = key.InternalSubnet.Read(s.Annotations)
			add(own)
		}
		if linked, _ := key.LinkCreate.Read(s.Annotations); linked {
			name, _ := key.LinkSubnet.Read(s.Annotations)
			add(firstOf(name, own))
		}
	}
	return ids
}

func sameText(a, b string) bool { return strings.EqualFold(a, b) }
