// Package backend decides the members of the backend address pools: addresses, or machines with
// their network interfaces. Layer L1.
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
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/balancer"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/machine"
	"kaz/internal/plan/loadbalancer/privatelink"
	"kaz/internal/plan/loadbalancer/problem"
)

type poolMember = azure.Child[network.BackendAddress]

// Planner decides the members of the backend pools for one batch.
type Planner struct {
	index *index.Index
	batch *batch.Batch
	found *problem.List
	// machines are all machines that may be in pools, which are read once.
	machines func() ([]*machine.Group, error)
	// emptied are pools that network interfaces have to leave, because members are addresses from now on.
	emptied map[*balancer.Wanted][]azure.ID
	nodesAt map[int][]*index.Node // by entry of the configuration, where there are several load balancers

	// Membership decides the members of pools of network interfaces of these.
	groups []*machine.Group
	pools  []pool
	going  []azure.ID              // pools, or load balancers, that all machines leave
	roles  map[string]cluster.Role // by id key, of machines that have or had a Node, and of models
	in     map[inPool]bool         // all members after the decision
	known  map[string][]string     // results of AddressesIn
}

// New is a planner for a batch. It warns of nodes that stay out of the pools because Azure does not take their addresses.
func New(x *index.Index, b *batch.Batch, found *problem.List) *Planner {
	for _, n := range x.SortedNodes {
		for _, ip := range n.IPs {
			if why, rejected := x.RejectedAddresses[ip.String()]; rejected && n.Role == cluster.Receiver {
				found.Warn(n.Name, problem.NotJoined, "its address %s stays out of the backend pools, as Azure does not take it: %s",
					ip, cmp.Or(why, "no reason is known"))
			}
		}
	}
	return &Planner{index: x, batch: b, found: found,
		emptied: map[*balancer.Wanted][]azure.ID{}, in: map[inPool]bool{}, known: map[string][]string{},
		machines: sync.OnceValues(func() ([]*machine.Group, error) { return machine.Read(x.Input, x.Balancers) })}
}

// Pools decides the pools of the load balancers, and the members of pools of addresses.
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
		p.addPools(w)
		p.ownPools(w)
	}
}

// addPools adds the pools that the batch's Services need to a load balancer. Pools of addresses get their members
// here, pools of network interfaces at the machines.
func (p *Planner) addPools(w *balancer.Wanted) {
	lb := w.State
	fills, byIP := p.fills(lb), p.byIP(lb)
	for _, had := range lb.Properties.BackendAddressPools {
		family := p.index.Config.PoolFamily(had.Name)
		id := lb.ID.Child(network.BackendAddressPools, had.Name)
		switch {
		case family == "" || !fills:
		case byIP && !index.IsByAddress(had) && p.isUsed(id):
			// The network interfaces leave first, in a round of their own.
			p.emptied[w] = append(p.emptied[w], id)
			p.batch.Waits = append(p.batch.Waits,
				"pool "+had.Name+" of "+lb.ID.Name()+" gets addresses when its network interfaces have left")
		case byIP:
			w.Pools.Write(p.withNodes(w, had, family))
		case index.HasAddresses(had):
			w.Pools.Write(index.Pool{Name: had.Name, Properties: network.BackendAddressPool{LoadBalancerBackendAddresses: []poolMember{}}})
		}
	}
	for at := range p.batch.Placed() {
		name := at.PoolName(p.index.Config)
		if at.At.LB != lb || hasPool(w, name) {
			continue
		}
		fresh := index.Pool{Name: name}
		if fills && byIP && at.OwnPool == "" {
			fresh = p.withNodes(w, fresh, at.Family)
		}
		w.Pools.Write(fresh)
	}
}

func hasPool(w *balancer.Wanted, name string) bool {
	return w.Pools.Has(func(p index.Pool) bool { return strings.EqualFold(p.Name, name) })
}

func (p *Planner) fills(lb *index.LoadBalancer) bool {
	return !p.index.Config.IsPreset(lb.Internal) && len(p.index.Nodes) > 0
}

func (p *Planner) byIP(lb *index.LoadBalancer) bool { return privatelink.ByIP(p.index, lb) }

// withNodes is one of the cluster's pools with the addresses of all nodes; where there are none its members stay. Of
// several load balancers, each has the nodes that are there. A pool without any node left is emptied then: its nodes are
// gone, or serve another load balancer, and the others have nodes. Its Services are warned.
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
				p.found.Warn(at.For.Key(), problem.NoNodes,
					"There are no available nodes with %s at load balancer %s, allowed is a load balancer whose primaryVMSet (here "+
						"%q), or nodeSelector, has nodes",
					family, w.State.ID.Name(), entries[entry].PrimaryVMSet)
			}
		}
	}
	return next
}

// isUsed reports whether machines, or the model of some, name a pool.
func (p *Planner) isUsed(id azure.ID) bool {
	groups, err := p.machines() // Membership reports a document that cannot be read
	return err == nil && slices.ContainsFunc(groups, func(g *machine.Group) bool {
		return slices.ContainsFunc(g.All(), func(m *machine.Machine) bool { return m.In(id) })
	})
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
		// The address of a machine that is gone is given to the next one, and the Node of the first may still be there.
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

// keepNames has addresses keep the names that they had, unless another node needs the name for itself: Azure takes a
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

// Migrations have Azure turn pools of network interfaces into pools of addresses, where
// that is asked for. Otherwise the interfaces leave, and the pool is empty for a while.
func (p *Planner) Migrations(all []*balancer.Wanted) (nodes []plan.Node, waits []string) {
	if !p.index.Config.PoolByIP || !p.index.Config.MigrateByAPI {
		return nil, nil
	}
	for _, w := range all {
		if !w.Stays() {
			continue
		}
		var names []string
		for _, id := range p.emptied[w] {
			names = append(names, id.Name())
			waits = append(waits, "pool "+id.Name()+" of "+w.State.ID.Name()+" is brought up to date when it has addresses")
		}
		body, err := json.Marshal(map[string][]string{"pools": names})
		if err != nil || len(names) == 0 {
			continue
		}
		nodes = append(nodes,
			plan.Action(w.State.ID, "migrateToIpBased", body, "its pools list addresses from now on", p.batch.Names()...))
	}
	return nodes, waits
}
