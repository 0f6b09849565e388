package loadbalancer

import (
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/backend"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/plan/nodes"
)

// Needs names what Have must hold to decide, given what it holds already: ask
// again with what was read, until it names nothing new.
func Needs(in Input) ([]azure.ID, []azure.Query) {
	c := in.Config
	all, unreadable := index.Balancers(in)
	n := needs{in, all, unreadable, sync.OnceValues(func() (plan.Graph, error) {
		graph, _, err := Desired(in)
		return graph, err
	})}
	var ids []azure.ID
	if c.SecurityGroupName != "" {
		ids = append(ids, c.SecurityGroupID())
	}
	for _, id := range index.Subnets(in) {
		ids = append(ids, id)
		if _, absent := in.Have.Absent(id); absent { // the network may be missing, which Azure does not say
			ids = append(ids, c.NetworkID())
		}
	}
	lists := []azure.Query{{Scope: c.NetworkGroup(), Type: network.LoadBalancers}}
	for _, group := range index.AddressGroups(in, all) {
		lists = append(lists, azure.Query{Scope: group, Type: network.PublicIPAddresses})
	}
	return ids, slices.Concat(lists, n.links(), n.machines())
}

// MayBeUnread reports whether a decision can do without a list that [Needs] names, or without a resource:
// scope is then its id. The Services that name it are refused then and keep what they have. A node with a
// network interface there stays out of the pools. Without the cluster's own groups nothing can be decided.
func MayBeUnread(c Config, scope azure.ID, fullType string) bool {
	own, named := map[string]azure.ID{
		network.PublicIPAddresses: c.PublicIPGroup(""), network.PrivateLinkServices: c.LinkGroup(""), network.Subnets: c.SubnetID(""),
		network.PrivateEndpointConnections: "", network.VirtualNetworks: "", network.Interfaces: c.MachineGroup(),
	}[fullType]
	return named && !scope.Equal(own)
}

type needs struct {
	Input
	all        []*index.LoadBalancer
	unreadable error                      // of one of them
	decide     func() (plan.Graph, error) // as far as the input has been read
}

// links are the lists of private link services, and of the connections to the services of the commit.
func (n needs) links() []azure.Query {
	if !n.mayHaveLinks() {
		return nil
	}
	var lists []azure.Query
	for _, group := range index.LinkGroups(n.Input, n.all) {
		lists = append(lists, azure.Query{Scope: group, Type: network.PrivateLinkServices})
	}
	links, _ := index.Links(n.Input, n.all) // the decision reports an error
	for _, l := range links {
		isOwner := func(s Service) bool { return s.Key() == l.Owner }
		if len(l.Properties.PrivateEndpointConnections) > 0 && slices.ContainsFunc(n.Services, isOwner) {
			lists = append(lists, azure.Query{Scope: l.ID, Type: network.PrivateEndpointConnections})
		}
	}
	return lists
}

// mayHaveLinks reports whether one of the Services asks for a frontend that can have a private link service, or has one
// so far.
func (n needs) mayHaveLinks() bool {
	if n.Config.PoolByIP && index.HasInterfacePools(n.all, n.Config.IsOwnPool) {
		return true // they stay so behind a private link service
	}
	return slices.ContainsFunc(n.Services, func(s Service) bool {
		o := spec.Outline(s)
		isNamedOnly := s.UID == "" // a leftover that is known by a tag, maybe a private link service's
		isFixed := func(r network.LoadBalancingRule) bool { return r.EnableFloatingIP == nil || !*r.EnableFloatingIP }
		return key.LinkStays(s.Annotations) || o.Internal || o.Fixed || isNamedOnly ||
			len(spec.GroupsOf(key.PrivateLinks, s.Groups, key.Noted(s.Status.Conditions))) > 0 ||
			slices.ContainsFunc(n.all, func(lb *index.LoadBalancer) bool {
				// A Service that shares a frontend has only rules.
				return lb.Internal && lb.Has(o.Owner) || slices.ContainsFunc(lb.RulesOf[o.Owner], isFixed)
			})
	})
}

// machines are the lists that show the members of the backend pools, and machines that may join them.
func (n needs) machines() []azure.Query {
	c := n.Config
	ownMachines := azure.Query{Scope: c.MachineGroup(), Type: compute.VirtualMachines}
	sets, alone, flexible := n.involved()
	if c.PoolByIP && !index.HasInterfacePools(n.all, func(string) bool { return true }) {
		if len(c.Balancers) == 0 || !alone {
			return nil
		}
		return []azure.Query{ownMachines} // they name their sets, by which nodes are placed
	}
	lists := []azure.Query{{Scope: c.MachineGroup(), Type: compute.ScaleSets}}
	for _, set := range n.unsettled(sets) {
		lists = append(lists, azure.Query{Scope: set.id, Type: compute.ScaleSetInstances, Expand: "instanceView"})
	}
	if alone {
		interfaces := backend.FindInterfaces(n.Input, n.all)
		for _, group := range interfaces.Groups {
			lists = append(lists, azure.Query{Scope: group, Type: network.Interfaces})
		}
		_, there := n.Have.Get(c.SecurityGroupID())
		_, absent := n.Have.Absent(c.SecurityGroupID())
		wasAsked := there || absent || c.SecurityGroupName == "" // for what is named at first
		if flexible || len(c.Balancers) > 0 || wasAsked && interfaces.Elsewhere {
			lists = append(lists, ownMachines)
		}
	}
	return lists
}

// scaleSet is a scale set with those of its machines that the cluster knows.
type scaleSet struct {
	id          azure.ID
	model       *backend.Machine // nil where Azure does not have the set, as far as is known
	nodes       map[cluster.Role][]azure.ID
	members     map[inPool]bool
	withoutNode bool // some machines have no Node any more: only Azure knows whether they exist
}

// inPool is a machine, by id key, in a pool.
type inPool struct {
	pool    azure.ID
	machine string
}

// involved returns the scale sets that a decision is about. They are the sets of nodes' machines, of machines without a
// Node, and of members of pools. A scale set with its model in a pool is involved, too: it has at least one instance
// there. The result alone reports whether machines with network interfaces of their own are involved. The result flexible
// reports whether any scale set, involved or not, is a flexible one.
func (n needs) involved() (sets []*scaleSet, alone, flexible bool) {
	known := map[string]*scaleSet{}
	add := func(id azure.ID) *scaleSet {
		set, again := known[id.Key()]
		if !again {
			set = &scaleSet{id: id, nodes: map[cluster.Role][]azure.ID{}, members: map[inPool]bool{}}
			known[id.Key()] = set
			if id.Is(compute.ScaleSets) && id.Parent().Equal(n.Config.MachineGroup()) {
				sets = append(sets, set)
			}
		}
		return set
	}
	setOf := func(machine azure.ID) *scaleSet {
		alone = alone || machine.Is(compute.VirtualMachines)
		return add(machine.Parent())
	}
	for _, node := range n.Nodes {
		id, _ := nodes.MachineID(node.Spec.ProviderID)
		set, role := setOf(id), cluster.RoleOf(n.Config, node)
		set.nodes[role] = append(set.nodes[role], id)
	}
	for _, id := range n.DeletedNodes {
		setOf(id).withoutNode = true
	}
	for _, m := range backend.Members(n.all) {
		if m.Interface.Is(network.Interfaces) {
			alone = true
			continue
		}
		id := m.Interface.Parent()
		setOf(id).members[inPool{m.Pool, id.Key()}] = true
	}
	views, _ := plan.Views[compute.ScaleSet](n.Have, n.Config.MachineGroup(), compute.ScaleSets) // the decision reports an error
	for _, view := range views {
		flexible = flexible || strings.EqualFold(view.Properties.OrchestrationMode, "Flexible")
		model := backend.ModelOf(view)
		if slices.ContainsFunc(n.all, func(lb *index.LoadBalancer) bool { return lb.Exists && model.In(lb.ID) }) {
			add(view.ID)
		}
		if set := known[view.ID.Key()]; set != nil {
			set.model = model
		}
	}
	return sets, alone, flexible
}

// unsettled are the scale sets of which a decision must read the instances. With many sets, these lists are most of the
// cost of reading Azure. A set is left out if its nodes are in all their pools and in no others. The load balancers and
// the set itself show that.
func (n needs) unsettled(sets []*scaleSet) []*scaleSet {
	pools, steady := n.steadyPools()
	return slices.DeleteFunc(sets, func(s *scaleSet) bool { return s.model == nil || steady && s.isSettled(pools) })
}

// isSettled reports whether no machine of a scale set joins one of the pools or leaves it, nor does
// the model of new instances.
func (s scaleSet) isSettled(pools map[azure.ID]v1.IPFamily) bool {
	receivers, excluded := s.nodes[cluster.Receiver], s.nodes[cluster.Excluded]
	for pool, family := range pools {
		isIn := func(machine azure.ID) bool { return s.members[inPool{pool, machine.Key()}] }
		isOut := func(machine azure.ID) bool { return !isIn(machine) }
		joins := slices.ContainsFunc(receivers, isOut) || len(receivers) > 0 && !s.model.In(pool)
		leaves := slices.ContainsFunc(excluded, isIn) || len(receivers) == 0 && len(excluded) > 0 && s.model.In(pool)
		if joins && !s.model.Excluded[family] || leaves {
			return false
		}
	}
	return !s.withoutNode
}

// steadyPools are the cluster's pools of interfaces, with their families, and whether it is certain that
// a decision makes none and takes none away.
func (n needs) steadyPools() (pools map[azure.ID]v1.IPFamily, steady bool) {
	if n.Config.PoolByIP || len(n.Config.Balancers) > 0 || n.unreadable != nil { // where nodes may change places
		return nil, false
	}
	pools = map[azure.ID]v1.IPFamily{}
	asked := map[string][]v1.IPFamily{} // by id key of the load balancer
	for _, s := range n.Services {
		if !s.Gone {
			lb := n.Config.BalancerID(n.Config.LoadBalancerName, spec.Outline(s).Internal).Key()
			asked[lb] = append(asked[lb], s.Families()...)
		}
	}
	for _, lb := range n.all {
		families := asked[lb.ID.Key()]
		switch {
		case !lb.Exists && len(families) > 0:
			return nil, false
		case !lb.Exists, !lb.Ours:
			continue
		case lb.IsBasic(), !n.stays(lb):
			return nil, false
		case n.Config.IsPreset(lb.Internal):
			continue
		}
		for _, p := range lb.Properties.BackendAddressPools {
			if family := n.Config.PoolFamily(p.Name); family != "" {
				pools[lb.ID.Child(network.BackendAddressPools, p.Name)] = family
				families = slices.DeleteFunc(families, func(has v1.IPFamily) bool { return has == family })
			}
		}
		if len(families) > 0 {
			return nil, false
		}
	}
	return pools, true
}

// stays reports whether a decision keeps a load balancer. Something outside of the decision keeps it: a foreign frontend,
// or a rule of another Service. A frontend of another Service without rules does not count: the Service may have left it.
func (n needs) stays(lb *index.LoadBalancer) bool {
	isForeign := func(fe index.FrontendConfig) bool { return !naming.IsOwned(fe.Name) }
	hasRules := func(s *v1.Service) bool { return len(lb.RulesOf[naming.OwnerOf(s)]) > 0 }
	if slices.ContainsFunc(lb.Properties.FrontendIPConfigurations, isForeign) || slices.ContainsFunc(n.Others, hasRules) {
		return true
	}
	graph, err := n.decide()
	goes := func(n plan.Node) bool { return n.ID.Equal(lb.ID) && n.Want() == nil }
	return err == nil && !slices.ContainsFunc(graph.Nodes(), goes)
}
