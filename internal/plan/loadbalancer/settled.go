package loadbalancer

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/nodes"
)

// unsettled are those scale sets of which a decision has to know every instance. Where there
// are many sets, a list for each is most of what a look at Azure costs. So those are left out
// whose nodes are in the pools where they belong and in no other, by what the load balancers
// and the sets themselves say.
func unsettled(in Input, involved []azure.ID) []azure.ID {
	models := map[string]*machine{}
	for _, d := range in.Have.List(in.Config.machines(), compute.ScaleSets) {
		// A document that cannot be read is Desired's to report.
		if set, err := azure.Decode[compute.ScaleSet](d); err == nil {
			models[set.ID.Key()] = modelOf(set)
		}
	}
	pools, steady := steadyPools(in)
	crews := crewsOf(in)
	return slices.DeleteFunc(involved, func(set azure.ID) bool {
		model, exists := models[set.Key()]
		return !exists || steady && crews[set.Key()].settled(model, pools)
	})
}

// crew is the machines of one scale set that the cluster knows, by id key.
type crew struct {
	receivers, excluded []string
	nodeless            bool // some have no Node any more: only Azure knows whether they are there
}

func crewsOf(in Input) map[string]crew {
	crews := map[string]crew{}
	for _, n := range in.Nodes {
		id, _ := nodes.MachineID(n.Spec.ProviderID)
		c := crews[id.Parent().Key()]
		switch RoleOf(in.Config, n) {
		case Receiver:
			c.receivers = append(c.receivers, id.Key())
		case Excluded:
			c.excluded = append(c.excluded, id.Key())
		}
		crews[id.Parent().Key()] = c
	}
	for _, id := range in.Nodeless {
		c := crews[id.Parent().Key()]
		c.nodeless = true
		crews[id.Parent().Key()] = c
	}
	return crews
}

// settled reports whether nobody of a scale set joins one of the pools or leaves it, nor does
// the model of those to come.
func (c crew) settled(model *machine, pools []standing) bool {
	for _, p := range pools {
		isIn := func(machine string) bool { return p.members[machine] }
		isOut := func(machine string) bool { return !isIn(machine) }
		joins := slices.ContainsFunc(c.receivers, isOut) || len(c.receivers) > 0 && !model.in(p.id)
		leaves := slices.ContainsFunc(c.excluded, isIn) || len(c.receivers) == 0 && len(c.excluded) > 0 && model.in(p.id)
		if joins && !model.excluded[p.family] || leaves {
			return false
		}
	}
	return !c.nodeless
}

// standing is one of the cluster's pools, with who is in it by what its load balancer says.
type standing struct {
	served
	members map[string]bool // machines by id key
}

// occupied is as much of a load balancer as tells who stands there and who is behind it.
type occupied struct {
	frontends
	pools
	LoadBalancingRules []azure.Child[linkRule] `json:"loadBalancingRules"`
}

// steadyPools are the pools of interfaces that nodes belong into, and whether it is certain that
// a decision makes none and takes none away.
func steadyPools(in Input) (all []standing, steady bool) {
	if in.Config.PoolByIP || len(in.Config.Balancers) > 0 { // where nodes may change places
		return nil, false
	}
	a := askedOf(in)
	decided := sync.OnceValues(func() (plan.Graph, error) {
		graph, _, err := Desired(in)
		return graph, err
	})
	for _, id := range balancersOf(in) {
		// A document that cannot be read is Desired's to report.
		lb, exists, err := plan.View[occupied](in.Have, id)
		switch {
		case err != nil, !exists && len(a.families[id.Key()]) > 0:
			return nil, false
		case !exists, a.isForeign(in.Config, lb):
			continue
		case !a.anchored(lb) && going(lb.ID, decided), lb.SKU != nil && sameText(lb.SKU.Name, "Basic"):
			return nil, false
		case in.Config.presets(isInternal(id)):
			continue
		}
		pools := standingIn(in.Config, lb)
		for _, family := range a.families[id.Key()] {
			if !slices.ContainsFunc(pools, func(p standing) bool { return p.family == family }) {
				return nil, false
			}
		}
		all = append(all, pools...)
	}
	return all, true
}

// asked is who has something at load balancers, or shall have.
type asked struct {
	others   map[string]bool          // base names of Services that are not of the decision
	services map[string]bool          // of those that are
	families map[string][]v1.IPFamily // that they ask for, by id key of the load balancer
}

func askedOf(in Input) asked {
	a := asked{others: map[string]bool{}, services: map[string]bool{}, families: map[string][]v1.IPFamily{}}
	for _, s := range in.Others {
		a.others[ownerBase(baseName(s))] = true
	}
	for _, s := range in.Services {
		a.services[ownerBase(baseName(s.Service))] = true
		if s.Gone {
			continue
		}
		internal, _ := key.Internal.Read(s.Annotations)
		lb := in.Config.balancer(in.Config.LoadBalancerName, internal).Key()
		a.families[lb] = append(a.families[lb], familiesOf(s)...)
	}
	return a
}

// isForeign reports whether a load balancer is none of the cluster's.
func (a asked) isForeign(c Config, lb azure.Resource[occupied]) bool {
	for _, internal := range []bool{false, true} {
		if lb.ID.Equal(c.balancer(c.LoadBalancerName, internal)) {
			return false
		}
	}
	known := func(name string) bool { return a.others[ownerBase(name)] || a.services[ownerBase(name)] }
	return !slices.ContainsFunc(lb.Properties.FrontendIPConfigurations, func(fe azure.Child[network.FrontendIPConfiguration]) bool { return known(fe.Name) }) &&
		!slices.ContainsFunc(lb.Properties.LoadBalancingRules, func(r azure.Child[linkRule]) bool { return known(r.Name) })
}

// anchored reports whether somebody of whom nothing is decided stands at a load balancer. A
// frontend of his that nobody stands at may be one that he has left.
func (a asked) anchored(lb azure.Resource[occupied]) bool {
	return slices.ContainsFunc(lb.Properties.FrontendIPConfigurations, func(fe azure.Child[network.FrontendIPConfiguration]) bool { return !looksOwned(fe.Name) }) ||
		slices.ContainsFunc(lb.Properties.LoadBalancingRules, func(r azure.Child[linkRule]) bool { return a.others[ownerBase(r.Name)] })
}

// going reports whether a decision takes a load balancer away.
func going(lb azure.ID, decided func() (plan.Graph, error)) bool {
	graph, err := decided()
	return err != nil || slices.ContainsFunc(graph.Nodes(), func(n plan.Node) bool { return n.ID.Equal(lb) && n.Want() == nil })
}

// standingIn lists the cluster's own pools of a load balancer.
func standingIn(c Config, lb azure.Resource[occupied]) []standing {
	var all []standing
	for _, p := range lb.Properties.BackendAddressPools {
		family, ours := c.poolFamily(p.Name)
		if !ours {
			continue
		}
		s := standing{served{lb.ID.Child(network.BackendAddressPools, p.Name), family}, make(map[string]bool, len(p.Properties.BackendIPConfigurations))}
		for _, configuration := range p.Properties.BackendIPConfigurations {
			s.members[instanceOf(configuration.ID).Key()] = true
		}
		all = append(all, s)
	}
	return all
}
