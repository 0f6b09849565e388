// Package backend reads the machines that can be members of backend address pools, and decides the members: addresses,
// or machines with their network interfaces. Layer L1.
package backend

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/balancer"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/privatelink"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/spec"
)

type poolMember = azure.Child[network.BackendAddress]

// Planner decides the members of the backend pools for one batch.
type Planner struct {
	// Problems are what the decision warns of, so far.
	Problems problem.List

	index *index.Index
	batch *batch.Batch
	// machines are all machines that may be in pools, which are read once.
	machines func() ([]*Machine, error)
	// emptied are pools that network interfaces have to leave, because members are addresses from now on.
	emptied map[*balancer.Wanted][]azure.ID
	nodesAt map[int][]*index.Node // by entry of the configuration, where there are several load balancers
	in      map[inPool]bool       // all members after the decision
	known   map[string][]string   // results of AddressesIn
}

// New is a planner for a batch. It warns of nodes that stay out of the pools because Azure does not take their addresses.
func New(x *index.Index, b *batch.Batch) *Planner {
	p := &Planner{index: x, batch: b,
		emptied: map[*balancer.Wanted][]azure.ID{}, in: map[inPool]bool{}, known: map[string][]string{},
		machines: sync.OnceValues(func() ([]*Machine, error) { return ReadMachines(x.Input, x.Balancers) })}
	for _, n := range x.SortedNodes {
		for _, ip := range n.IPs {
			if why, rejected := x.RejectedAddresses[ip.String()]; rejected && n.Role == cluster.Receiver {
				p.Problems.Warn(n.Name, problem.NotJoined, "its address %s stays out of the backend pools, as Azure does not take it: %s",
					ip, cmp.Or(why, "no reason is known"))
			}
		}
	}
	return p
}

// Pools decides the pools of the load balancers, and the members of pools of addresses. Pools of network interfaces get
// their members at the machines.
func (p *Planner) Pools(all []*balancer.Wanted) {
	if entries := len(p.index.Config.Balancers); entries > 0 && len(p.index.Nodes) > 0 {
		up := make([]bool, entries)
		for _, w := range all {
			if w.State.Entry >= 0 && w.Stays() {
				up[w.State.Entry] = true
			}
		}
		p.nodesAt = p.assign(up)
	}
	for _, w := range all {
		owners := p.planPools(w)
		if p.fills(w.State) {
			p.fillPools(w, owners)
		}
	}
}

// fills reports whether nodes belong into the pools of a load balancer.
func (p *Planner) fills(lb *index.LoadBalancer) bool {
	return !p.index.Config.IsPreset(lb.Internal) && len(p.index.Nodes) > 0
}

// owner is the Service that has a pool to itself, by its key, and the pool's family.
type owner struct {
	service string
	family  v1.IPFamily
}

// planPools adds the pools that the batch's Services need, and removes the own pools that they no longer have. It returns
// the owners of own pools, by the pool's name in lower case.
func (p *Planner) planPools(w *balancer.Wanted) (owners map[string]owner) {
	owners = map[string]owner{}
	used := map[string]bool{}
	for r := range w.Rules.All() {
		pool := strings.ToLower(r.Properties.BackendAddressPool.To().Name())
		used[pool] = true
		if s, family := p.ownerOf(r); s != nil {
			owners[pool] = owner{spec.KeyOf(s), family}
		}
	}
	for at := range p.batch.Placed() {
		if at.At.LB != w.State {
			continue
		}
		if name := at.PoolName(p.index.Config); !hasPool(w, name) {
			w.Pools.Write(index.Pool{Name: name})
		}
		if at.OwnPool != "" { // even if it has no rules
			used[at.OwnPool], owners[at.OwnPool] = true, owner{at.For.Key(), at.Family}
		}
	}
	for _, r := range w.State.Properties.LoadBalancingRules {
		pool := r.Properties.BackendAddressPool.To().Name()
		if s, _ := p.ownerOf(r); s != nil && p.batch.Has(naming.OwnerOf(s)) && !used[strings.ToLower(pool)] {
			w.Pools.Remove(pool)
		}
	}
	return owners
}

func hasPool(w *balancer.Wanted, name string) bool {
	return w.Pools.Has(func(p index.Pool) bool { return strings.EqualFold(p.Name, name) })
}

// ownerOf returns the Service of a rule if the rule leads to that Service's own pool, nil otherwise.
func (p *Planner) ownerOf(r index.Rule) (*v1.Service, v1.IPFamily) {
	s, pool := p.index.Known[naming.Owner(r.Name)], r.Properties.BackendAddressPool.To().Name()
	for _, family := range address.Families() {
		if s != nil && !p.index.Config.IsOwnPool(pool) && strings.EqualFold(naming.OwnPool(s, family), pool) {
			return s, family
		}
	}
	return nil, ""
}

// fillPools decides the members of pools of addresses: nodes in the cluster's pools, and those with endpoints in pools of a
// Service. This includes the pools of refused Services and of Services outside the batch: their endpoints move all the
// same.
func (p *Planner) fillPools(w *balancer.Wanted, owners map[string]owner) {
	byIP := privatelink.ByIP(p.index, w.State)
	for _, had := range slices.Collect(w.Pools.All()) {
		family := p.index.Config.PoolFamily(had.Name)
		of := owners[strings.ToLower(had.Name)]
		ends, known := p.index.Endpoints[of.service]
		id, isNew := w.State.ID.Child(network.BackendAddressPools, had.Name), w.Pools.Decides(had.Name)
		switch {
		case family == "" && known:
			w.Pools.Write(p.byAddress(had, of.family, p.nodesNamed(ends)))
		case family == "":
		case byIP && !isNew && !index.IsByAddress(had) && p.isUsed(id):
			// The network interfaces leave first, in a round of their own.
			p.emptied[w] = append(p.emptied[w], id)
			p.batch.Waits = append(p.batch.Waits,
				"pool "+had.Name+" of "+w.State.ID.Name()+" gets addresses when its network interfaces have left")
		case byIP:
			w.Pools.Write(p.withNodes(w, had, family))
		case index.HasAddresses(had):
			w.Pools.Write(index.Pool{Name: had.Name, Properties: network.BackendAddressPool{LoadBalancerBackendAddresses: []poolMember{}}})
		}
	}
}

// isUsed reports whether machines, or the model of some, name a pool.
func (p *Planner) isUsed(id azure.ID) bool {
	machines, err := p.machines() // Membership reports a document that cannot be read
	return err == nil && slices.ContainsFunc(machines, func(m *Machine) bool { return m.In(id) })
}

func (p *Planner) nodesNamed(names []string) (nodes []*index.Node) {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		i, is := slices.BinarySearchFunc(p.index.SortedNodes, name,
			func(n *index.Node, name string) int { return strings.Compare(n.Name, name) })
		if is {
			nodes = append(nodes, p.index.SortedNodes[i])
		}
	}
	return nodes
}

// withNodes returns one of the cluster's pools with the addresses of all nodes. If there are none, its members stay. With
// several load balancers, each has the nodes assigned to it. A pool without any node left is emptied then: its nodes are
// gone, or serve another load balancer. Its Services are warned if the cluster has nodes for its pools.
func (p *Planner) withNodes(w *balancer.Wanted, had index.Pool, family v1.IPFamily) index.Pool {
	entry, entries := w.State.Entry, p.index.Config.Balancers
	isOne := len(entries) == 0 || entry < 0
	belong := p.index.SortedNodes
	if !isOne {
		belong = p.nodesAt[entry]
	}
	next := p.byAddress(had, family, belong)
	switch {
	case len(next.Properties.LoadBalancerBackendAddresses) > 0:
	case isOne:
		next.Properties.LoadBalancerBackendAddresses = nil
	case p.index.HasReceivers(): // the controller tells Services of a cluster without nodes
		for at := range p.batch.Placed() {
			if at.At.LB == w.State && at.OwnPool == "" && at.Family == family {
				p.Problems.Warn(at.For.Key(), problem.NoNodes,
					"There are no available nodes with %s at load balancer %s, allowed is a load balancer whose primaryVMSet (here "+
						"%q), or nodeSelector, has nodes",
					family, w.State.ID.Name(), entries[entry].PrimaryVMSet)
			}
		}
	}
	return next
}

// byAddress is a pool with the addresses of nodes, sorted by name. Excluded nodes do not leave the pool
// empty; a node that is neither receiver nor excluded stays as it is.
func (p *Planner) byAddress(pool index.Pool, family v1.IPFamily, belong []*index.Node) index.Pool {
	had := make(map[string]string, len(pool.Properties.LoadBalancerBackendAddresses)) // names by address
	for _, m := range pool.Properties.LoadBalancerBackendAddresses {
		had[address.Plain(m.Properties.IPAddress)] = m.Name
	}
	some := func(which func(role cluster.Role, there bool) bool) []poolMember {
		members := make([]poolMember, 0, len(belong))
		// Azure gives the address of a deleted machine to the next one, and the Node of the first may still be there.
		taken := make(map[netip.Addr]bool, len(belong))
		for _, n := range belong {
			ip, ok := n.Address(family)
			text := ip.String()
			if _, rejected := p.index.RejectedAddresses[text]; !ok || taken[ip] || rejected {
				continue
			}
			if _, there := had[text]; which(n.Role, there) {
				taken[ip] = true
				members = append(members, poolMember{Name: n.Name, Properties: network.BackendAddress{IPAddress: text}})
			}
		}
		return members
	}
	members := some(func(role cluster.Role, there bool) bool {
		return role == cluster.Receiver || role == cluster.Bystander && there
	})
	if len(members) == 0 {
		members = some(func(role cluster.Role, there bool) bool { return role == cluster.Excluded && there })
	}
	next := index.Pool{Name: pool.Name}
	next.Properties.LoadBalancerBackendAddresses = keepNames(members, had)
	if id := p.index.Config.NetworkID(); id != "" {
		next.Properties.VirtualNetwork = azure.Ref(id)
	}
	return next
}

// keepNames lets addresses keep the names that they had, unless another node needs the name for itself. Azure takes a
// name once.
func keepNames(members []poolMember, had map[string]string) []poolMember {
	own := map[string]bool{} // names of nodes that are named after themselves
	for more := true; more; {
		more = false
		for _, m := range members {
			if name, there := had[m.Properties.IPAddress]; !own[m.Name] && (!there || own[name]) {
				delete(had, m.Properties.IPAddress)
				own[m.Name], more = true, true
			}
		}
	}
	for i, m := range members {
		members[i].Name = cmp.Or(had[m.Properties.IPAddress], m.Name)
	}
	return members
}

// Migrations returns actions by which Azure turns pools of network interfaces into pools of addresses, if that is
// configured. Otherwise the interfaces leave, and the pool is empty for a while.
func (p *Planner) Migrations(all []*balancer.Wanted) (nodes []plan.Node, waits []string) {
	if !p.index.Config.PoolByIP || !p.index.Config.MigrateByAPI {
		return nil, nil
	}
	for _, w := range all {
		if !w.Stays() || len(p.emptied[w]) == 0 {
			continue
		}
		var names []string
		for _, id := range p.emptied[w] {
			names = append(names, id.Name())
			waits = append(waits, "pool "+id.Name()+" of "+w.State.ID.Name()+" is brought up to date when it has addresses")
		}
		if body, err := json.Marshal(map[string][]string{"pools": names}); err == nil {
			nodes = append(nodes,
				plan.Action(w.State.ID, "migrateToIpBased", body, "its pools list addresses from now on", p.batch.Names()...))
		}
	}
	return nodes, waits
}

// candidate is a node with the entries of the configuration among which one is chosen for it.
type candidate struct {
	*index.Node
	entries []int // that may have it
	current int   // the one where it is so far, -1 for none
	rank    int   // the lowest ones choose first
}

// assign spreads the nodes over the entries of the configuration that are up. Nodes of a primary set come first, then
// nodes that have an entry, which they keep, then new nodes.
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
				p.Problems.Warn(n.Name, problem.NodeNowhere,
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

// candidate finds the entries that may have a node. It is the entry of its primary set, else the entries with a selector
// that selects it, else the entries without a selector.
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
