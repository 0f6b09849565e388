package backend

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/admission"
	"kaz/internal/plan/loadbalancer/balancer"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/machine"
	"kaz/internal/plan/loadbalancer/problem"
)

// inPool is a machine, by id key, or an address in a pool, by id key.
type inPool struct{ pool, member string }

// AddressesIn are the addresses of the nodes in a pool after the decision, once Membership has made it.
func (p *Planner) AddressesIn(id azure.ID, family v1.IPFamily) []string {
	pool := id.Key()
	if all, known := p.known[pool+string(family)]; known {
		return all
	}
	var all []string
	for _, n := range p.index.SortedNodes {
		if ip, has := n.Address(family); has && (p.in[inPool{pool, n.Machine.Key()}] || p.in[inPool{pool, ip.String()}]) {
			all = append(all, ip.String())
		}
	}
	p.known[pool+string(family)] = all
	return all
}

func (p *Planner) note(one *machine.Machine, pool azure.ID) {
	if !one.Model && one.In(pool) {
		p.in[inPool{pool.Key(), one.ID.Key()}] = true
	}
}

func (p *Planner) noteAddresses(w *balancer.Wanted) {
	for one := range w.Pools.All() {
		if index.HasAddresses(one) {
			pool := w.State.ID.Child(network.BackendAddressPools, one.Name).Key()
			for _, member := range one.Properties.LoadBalancerBackendAddresses {
				p.in[inPool{pool, member.Properties.IPAddress}] = true
			}
		}
	}
}

type pool struct {
	id       azure.ID // of one of the cluster's own pools
	family   v1.IPFamily
	filled   bool       // nodes belong into it; else other software fills it
	mayLeave bool       // excluded nodes may be taken out
	after    []azure.ID // machines that must join before
}

const deleted cluster.Role = "deleted" // a machine after its Node was deleted

// whyOut are the roles of machines that leave the pools, with the reasons.
var whyOut = map[cluster.Role]string{
	cluster.Excluded: "node is excluded from load balancers", deleted: "its Node was deleted from Kubernetes",
}

// Membership lets the cluster's nodes into the backend pools: the scale sets'
// models first, so that new instances are created in them, then the machines. With a
// load balancer that goes, all its pools are left.
func (p *Planner) Membership(all []*balancer.Wanted) ([]plan.Node, error) {
	for _, w := range all {
		p.noteAddresses(w)
		switch {
		case w.Goes():
			p.going = append(p.going, w.State.ID)
		case !w.Stays():
		case p.fills(w.State) && p.byIP(w.State):
			p.going = append(p.going, p.emptied[w]...)
		default:
			for _, family := range address.Families() {
				if name := p.index.Config.PoolName(family); hasPool(w, name) {
					id := w.State.ID.Child(network.BackendAddressPools, name)
					p.pools = append(p.pools, pool{id: id, family: family, filled: p.fills(w.State)})
				}
			}
		}
	}
	decides := len(p.going) > 0 || slices.ContainsFunc(p.pools, func(one pool) bool { return one.filled })
	if !decides && (len(p.pools) == 0 || len(p.index.Nodes) == 0) {
		return nil, nil
	}
	var err error
	if p.groups, err = p.machines(); err != nil {
		return nil, err
	}
	if decides {
		p.readRoles()
	}
	return p.decide(), nil
}

// readRoles reads the role of each machine, and warns of nodes that cannot join. A model is a receiver if any instance
// is one, and excluded if all instances are.
func (p *Planner) readRoles() {
	x := p.index
	p.roles = make(map[string]cluster.Role, len(x.SortedNodes))
	for _, id := range x.DeletedNodes {
		p.roles[id.Key()] = deleted
	}
	for _, n := range x.SortedNodes {
		p.roles[n.Machine.Key()] = n.Role // even if another Node of the machine was deleted
		switch {
		case n.Role != cluster.Receiver, n.Machine == "":
		case !machine.IsServed(n.Machine, x.Config):
			p.found.Warn(n.Name, problem.NotJoined,
				"it stays out of the backend pools: of machines like %s, allowed are those in resource group %s", n.Machine,
				x.Config.ResourceGroup)
		case n.Machine.Is(compute.VirtualMachines):
			if id, why, unread := machine.Unread(x.Input, n.Machine); unread {
				is, toDo := admission.Unread(why, network.Interfaces)
				p.found.Warn(n.Name, problem.NotJoined,
					"it neither joins nor leaves the backend pools: its network interface %s %s; to do: %s", id, is, toDo)
			}
		}
	}
	for _, g := range p.groups {
		if g.Model == nil {
			continue
		}
		count := map[cluster.Role]int{}
		for _, one := range g.Machines {
			count[p.roles[one.ID.Key()]]++
		}
		switch excluded := count[cluster.Excluded]; {
		case count[cluster.Receiver] > 0:
			p.roles[g.Model.ID.Key()] = cluster.Receiver
		case excluded > 0 && excluded == len(g.Machines):
			p.roles[g.Model.ID.Key()] = cluster.Excluded
		}
	}
}

func (p *Planner) decide() []plan.Node {
	for i, pool := range p.pools {
		if pool.filled {
			p.pools[i].mayLeave, p.pools[i].after = p.exit(pool)
		}
	}
	why := "leaves the load balancer, which goes with " + batch.Summary(p.batch.Names())
	var out []plan.Node
	for _, g := range p.groups {
		for _, one := range g.All() {
			role, reason := p.roles[one.ID.Key()], ""
			var after []azure.ID
			for _, id := range p.going {
				p.note(one, id) // packets come to it until it has left
				if !one.Fixed && one.Leave(id) {
					if reason = why; id.Is(network.LoadBalancerPools) {
						reason = "leaves the pool, which lists addresses from now on"
					}
				}
			}
			for _, pool := range p.pools {
				if did := p.settle(one, role, pool); did != "" {
					reason = did
				}
				if whyOut[role] != "" && !one.Model {
					after = append(after, pool.after...)
				}
			}
			if reason != "" {
				node := one.Node(reason)
				node.After = append(node.After, after...)
				out = append(out, node)
			}
		}
	}
	return out
}

// settle lets a machine into a pool or takes it out, and says why if it did.
func (p *Planner) settle(one *machine.Machine, role cluster.Role, pool pool) (did string) {
	joins, leaves := "node joins the backend pool", whyOut[role]
	if one.Model {
		joins, leaves = "new instances join the backend pool", "new instances stay out of the backend pool, as all existing ones do"
	}
	switch {
	case one.Fixed || !pool.filled:
	case one.Orphan && one.Leave(pool.id):
		did = "its machine is gone"
	case role == cluster.Receiver && one.Ready && !one.In(pool.id):
		c, why := p.placeFor(one, pool)
		if why != "" {
			p.found.Warn(string(one.ID), problem.NotJoined, "%s", why)
		}
		if c != nil {
			one.Join(c, pool.id)
			did = joins
		}
	case whyOut[role] != "" && pool.mayLeave && one.In(pool.id):
		if p.index.ConcurrentMembers {
			p.note(one, pool.id)
		}
		one.Leave(pool.id)
		did = leaves
	}
	p.note(one, pool.id)
	return did
}

// exit decides whether excluded nodes may leave a pool, and which machines must join before. A pool is never emptied:
// all Services of the cluster would fail. Where no node stays, the others wait for the first one that joins.
func (p *Planner) exit(pool pool) (open bool, after []azure.ID) {
	known := map[string]bool{}
	for _, g := range p.groups {
		for _, one := range g.Machines {
			role := p.roles[one.ID.Key()]
			known[one.ID.Key()] = true
			if whyOut[role] == "" && !one.Orphan && one.In(pool.id) {
				return true, nil
			}
			if len(after) == 0 && role == cluster.Receiver && one.Ready {
				if c, _ := p.placeFor(one, pool); c != nil {
					after = append(after, one.Node("").ID)
				}
			}
		}
	}
	lb := p.index.LoadBalancer(pool.id.Parent())
	for _, c := range lb.Pool(pool.id.Name()).Properties.BackendIPConfigurations {
		if !c.ID.Parent().Is(network.Interfaces) && !known[machine.InstanceOf(c.ID).Key()] {
			return true, nil
		}
	}
	return len(after) > 0, after
}

// placeFor is the IP configuration with which a machine joins a pool, nil for none; why says the reason, where
// that is worth a warning. An interface is in one public and one internal load balancer at most: one that is in
// another one stays there, unless all machines leave that.
func (p *Planner) placeFor(one *machine.Machine, pool pool) (c *machine.Configuration, why string) {
	if one.Fixed || !one.CanBeMember() || one.Excluded[pool.family] {
		return nil, ""
	}
	if c = one.ConfigurationFor(pool.family); c == nil {
		return nil, fmt.Sprintf("it has no primary network interface with an %s configuration, so it stays out of the backend pool %s",
			pool.family, pool.id.Name())
	}
	to := pool.id.TopLevel().Name()
	for _, has := range c.Pools {
		lb := has.ID.TopLevel().Name()
		isPair := strings.EqualFold(lb, to) || strings.EqualFold(lb+cluster.InternalSuffix, to) ||
			strings.EqualFold(lb, to+cluster.InternalSuffix) // or the same load balancer
		if !isPair && !slices.ContainsFunc(p.going, has.ID.Under) {
			return nil, fmt.Sprintf("it is in pool %s of load balancer %s already, so it stays out of %s", has.ID.Name(), lb, to)
		}
	}
	return c, ""
}
