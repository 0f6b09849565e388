package backend

import (
	"cmp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure/compute"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/balancer"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/spec"
)

// candidate is a node with the entries of the configuration among which one is chosen for it.
type candidate struct {
	*index.Node
	entries []int // that may have it
	current int   // the one where it is so far, -1 for none
	rank    int   // the lowest ones choose first
}

// assign spreads the nodes over the entries of the configuration that are up: first the nodes of a primary
// set, then the nodes that have an entry, which they keep, then new ones.
func (p *Planner) assign(up []bool) map[int][]*index.Node {
	current := map[string]int{} // entries by the nodes' addresses
	for _, lb := range p.index.LoadBalancers {
		for _, pool := range lb.Properties.BackendAddressPools {
			if p.index.Config.IsOwnPool(pool.Name) && lb.Entry >= 0 {
				for _, m := range pool.Properties.LoadBalancerBackendAddresses {
					current[address.Plain(m.Properties.IPAddress)] = lb.Entry
				}
			}
		}
	}
	all := make([]candidate, len(p.index.SortedNodes))
	for i, n := range p.index.SortedNodes {
		all[i] = p.candidate(n, up, current)
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.rank - b.rank })
	at, counts := make(map[int][]*index.Node, len(up)), make([]int, len(up))
	for _, n := range all {
		if len(n.entries) == 0 {
			if slices.Contains(up, true) && n.Role == cluster.Receiver {
				p.found.Warn(n.Name, problem.NodeNowhere,
					"no load balancer accepts the node, allowed are nodes of a primaryVMSet, or nodes that a nodeSelector selects")
			}
			continue
		}
		best := n.current
		if !slices.Contains(n.entries, best) {
			best = slices.MinFunc(n.entries, func(a, b int) int { return counts[a] - counts[b] })
		}
		at[best] = append(at[best], n.Node)
		if n.Role == cluster.Receiver {
			counts[best]++
		}
	}
	for _, nodes := range at {
		slices.SortFunc(nodes, func(a, b *index.Node) int { return strings.Compare(a.Name, b.Name) })
	}
	return at
}

// candidate finds the entries that may have a node: the one of its primary set, else those with a selector that
// selects it, else those without one.
func (p *Planner) candidate(n *index.Node, up []bool, current map[string]int) candidate {
	c := candidate{Node: n, current: -1, rank: 2}
	for _, ip := range n.IPs {
		if entry, there := current[ip.String()]; there {
			c.current, c.rank = entry, 1
		}
	}
	all, set := p.index.Config.Entries(), n.Machine.Parent().Name()
	if !n.Machine.Is(compute.ScaleSetInstances) { // the document of a machine of its own says in which set it is
		vm, _, _ := plan.View[compute.VirtualMachine](p.index.Have, n.Machine) // Membership reports an error
		set = cmp.Or(vm.Properties.VirtualMachineScaleSet, vm.Properties.AvailabilitySet).To().Name()
	}
	i := slices.IndexFunc(all, func(e cluster.Balancer) bool { return set != "" && strings.EqualFold(e.PrimaryVMSet, set) })
	if i >= 0 && up[i] {
		c.entries, c.rank = []int{i}, 0
		return c
	}
	var selecting, open []int
	for i, e := range all {
		matches, rejects := cluster.Selects(e.NodeSelector, n.Labels)
		switch {
		case up[i] && matches:
			selecting = append(selecting, i)
		case up[i] && !rejects:
			open = append(open, i)
		}
	}
	if c.entries = selecting; len(selecting) == 0 {
		c.entries = open
	}
	return c
}

// ownPools removes the pools that Services of the batch no longer have to themselves, and fills the others
// with the nodes that have endpoints. This includes the pools of refused Services and of Services outside the
// batch: their endpoints move all the same.
func (p *Planner) ownPools(w *balancer.Wanted) {
	used := map[string]bool{}
	for r := range w.Rules.All() {
		used[strings.ToLower(r.Properties.BackendAddressPool.To().Name())] = true
	}
	owners := p.poolOwners(w.State)
	for name, had := range owners {
		if !used[name] && p.batch.Has(had.owner) {
			w.Pools.Remove(name)
		}
	}
	if !p.fills(w.State) {
		return
	}
	for at := range p.batch.Placed() {
		if at.At.LB == w.State && at.OwnPool != "" {
			owners[at.OwnPool] = poolOwner{at.For.Owner, at.For.Key(), at.Family}
		}
	}
	for _, pool := range slices.Collect(w.Pools.All()) {
		owner := owners[strings.ToLower(pool.Name)]
		ends, known := p.index.Endpoints[owner.service]
		if !known {
			continue
		}
		var nodes []*index.Node
		for _, name := range slices.Compact(slices.Sorted(slices.Values(ends))) {
			i, is := slices.BinarySearchFunc(p.index.SortedNodes, name,
				func(n *index.Node, name string) int { return strings.Compare(n.Name, name) })
			if is {
				nodes = append(nodes, p.index.SortedNodes[i])
			}
		}
		w.Pools.Write(p.byAddress(pool, owner.family, nodes))
	}
}

// poolOwner is the Service that has a pool to itself.
type poolOwner struct {
	owner   string
	service string // its key
	family  v1.IPFamily
}

// poolOwners are the Services that have a pool to themselves so far, by the pool's name in lower case: their rules
// lead there.
func (p *Planner) poolOwners(lb *index.LoadBalancer) map[string]poolOwner {
	owners := map[string]poolOwner{}
	for name, users := range lb.PoolUsers {
		if p.index.Config.IsOwnPool(name) {
			continue
		}
		for owner := range users {
			s := p.index.Known[owner]
			for _, family := range address.Families() {
				if s != nil && naming.OwnPool(s, family) == name {
					owners[name] = poolOwner{owner, spec.KeyOf(s), family}
				}
			}
		}
	}
	return owners
}
