package query

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/machine"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/plan/nodes"
)

// unsettled are the scale sets of which a decision must read the instances. With many sets, these lists are most of
// the cost of reading Azure. A set is left out if all its nodes are in their pools and in no other, as the
// load balancers and the set itself show.
func (n needs) unsettled(involved []azure.ID) []azure.ID {
	models := map[string]*machine.Machine{}
	for _, set := range n.scaleSets() {
		models[set.ID.Key()] = machine.OfModel(set)
	}
	pools, steady := n.steadyPools()
	sets := n.nodesOfSets()
	return slices.DeleteFunc(involved, func(set azure.ID) bool {
		model, exists := models[set.Key()]
		return !exists || steady && sets[set.Key()].settled(model, pools)
	})
}

// setNodes is the machines of one scale set that the cluster knows, by id key.
type setNodes struct {
	receivers, excluded []string
	withoutNode         bool // some have no Node any more: only Azure knows whether they exist
}

func (n needs) nodesOfSets() map[string]setNodes {
	sets := map[string]setNodes{}
	for _, node := range n.Nodes {
		id, _ := nodes.MachineID(node.Spec.ProviderID)
		set := sets[id.Parent().Key()]
		switch cluster.RoleOf(n.Config, node) {
		case cluster.Receiver:
			set.receivers = append(set.receivers, id.Key())
		case cluster.Excluded:
			set.excluded = append(set.excluded, id.Key())
		}
		sets[id.Parent().Key()] = set
	}
	for _, id := range n.DeletedNodes {
		set := sets[id.Parent().Key()]
		set.withoutNode = true
		sets[id.Parent().Key()] = set
	}
	return sets
}

// settled reports whether no machine of a scale set joins one of the pools or leaves it, nor does
// the model of new instances.
func (s setNodes) settled(model *machine.Machine, pools []ownPool) bool {
	for _, p := range pools {
		isIn := func(machine string) bool { return p.members[machine] }
		isOut := func(machine string) bool { return !isIn(machine) }
		joins := slices.ContainsFunc(s.receivers, isOut) || len(s.receivers) > 0 && !model.In(p.id)
		leaves := slices.ContainsFunc(s.excluded, isIn) || len(s.receivers) == 0 && len(s.excluded) > 0 && model.In(p.id)
		if joins && !model.Excluded[p.family] || leaves {
			return false
		}
	}
	return !s.withoutNode
}

// ownPool is one of the cluster's pools, with its members as its load balancer shows them.
type ownPool struct {
	id      azure.ID
	family  v1.IPFamily
	members map[string]bool // machines by id key
}

func (n needs) ownPools(b index.Balancer) []ownPool {
	var all []ownPool
	for _, p := range b.Properties.BackendAddressPools {
		family, ours := n.Config.PoolFamily(p.Name)
		if !ours {
			continue
		}
		pool := ownPool{b.ID.Child(network.BackendAddressPools, p.Name), family,
			make(map[string]bool, len(p.Properties.BackendIPConfigurations))}
		for _, c := range p.Properties.BackendIPConfigurations {
			pool.members[machine.InstanceOf(c.ID).Key()] = true
		}
		all = append(all, pool)
	}
	return all
}

// steadyPools are the pools of interfaces that nodes belong into, and whether it is certain that
// a decision makes none and takes none away.
func (n needs) steadyPools() (all []ownPool, steady bool) {
	if n.Config.PoolByIP || len(n.Config.Balancers) > 0 { // where nodes may change places
		return nil, false
	}
	owners, families := n.askers()
	decide := sync.OnceValues(n.decide)
	for _, b := range n.all {
		asked := families[b.ID.Key()]
		switch {
		case b.Err != nil, !b.Exists && len(asked) > 0:
			return nil, false
		case !b.Exists, b.Entry < 0 && !b.HasAnyOf(owners.areKnown):
			continue
		case !owners.keep(b) && goes(b.ID, decide), b.IsBasic():
			return nil, false
		case n.Config.IsPreset(cluster.IsInternal(b.ID)):
			continue
		}
		pools := n.ownPools(b)
		for _, family := range asked {
			if !slices.ContainsFunc(pools, func(p ownPool) bool { return p.family == family }) {
				return nil, false
			}
		}
		all = append(all, pools...)
	}
	return all, true
}

// askers are the owners of an input: true for Services that are not of the decision.
type askers map[string]bool

// askers are the owners of the input, and the families that the Services of the decision ask for, by id key
// of the load balancer.
func (n needs) askers() (askers, map[string][]v1.IPFamily) {
	owners, families := askers{}, map[string][]v1.IPFamily{}
	for _, s := range n.Services {
		o := spec.Outline(s)
		owners[o.Owner] = false
		if !s.Gone {
			lb := n.Config.BalancerID(n.Config.LoadBalancerName, o.Internal).Key()
			families[lb] = append(families[lb], s.Families()...)
		}
	}
	for _, s := range n.Others {
		owners[naming.OwnerOf(s)] = true
	}
	return owners, families
}

func (a askers) areKnown(owner string) bool { _, known := a[owner]; return known }

// keep reports whether something that is not decided keeps a load balancer: a frontend that is no
// Service's, or a rule of another Service. A frontend of another Service without rules may be one
// that it has left.
func (a askers) keep(b index.Balancer) bool {
	return slices.ContainsFunc(b.Properties.FrontendIPConfigurations,
		func(fe index.FrontendConfig) bool { return !naming.IsOwned(fe.Name) }) ||
		slices.ContainsFunc(b.Properties.LoadBalancingRules,
			func(r azure.Child[network.LoadBalancingRule]) bool { return a[naming.Owner(r.Name)] })
}

// goes reports whether a decision takes a load balancer away.
func goes(lb azure.ID, decide func() (plan.Graph, error)) bool {
	graph, err := decide()
	return err != nil || slices.ContainsFunc(graph.Nodes(), func(n plan.Node) bool { return n.ID.Equal(lb) && n.Want() == nil })
}
