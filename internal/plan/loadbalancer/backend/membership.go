package backend

import (
	"cmp"
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
	"kaz/internal/plan/loadbalancer/privatelink"
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

func (p *Planner) note(one *Machine, pool azure.ID) {
	if one.In(pool) {
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

// pool is one of the cluster's own pools of network interfaces.
type pool struct {
	id     azure.ID
	family v1.IPFamily
	filled bool // nodes belong into it; else other software fills it
}

const deleted cluster.Role = "deleted" // a machine after its Node was deleted

// whyOut are the roles of machines that leave the pools, with the reasons.
var whyOut = map[cluster.Role]string{
	cluster.Excluded: "node is excluded from load balancers", deleted: "its Node was deleted from Kubernetes",
}

// Membership lets the cluster's nodes into the backend pools: the scale sets' models first, so that new instances are
// created in them, then the machines. All machines leave the pools of a load balancer that is deleted.
func (p *Planner) Membership(all []*balancer.Wanted) ([]plan.Node, error) {
	var pools []pool
	var going []azure.ID // pools, or load balancers, that all machines leave
	for _, w := range all {
		p.noteAddresses(w)
		filled := p.fills(w.State)
		switch {
		case w.Goes():
			going = append(going, w.State.ID)
		case !w.Stays():
		case filled && privatelink.ByIP(p.index, w.State):
			going = append(going, p.emptied[w]...)
		default:
			for _, family := range address.Families() {
				if name := p.index.Config.PoolName(family); hasPool(w, name) {
					pools = append(pools, pool{w.State.ID.Child(network.BackendAddressPools, name), family, filled})
				}
			}
		}
	}
	if len(going) == 0 && (len(pools) == 0 || len(p.index.Nodes) == 0) {
		return nil, nil
	}
	machines, err := p.machines()
	if err != nil {
		return nil, err
	}
	return p.decide(machines, pools, going), nil
}

func (p *Planner) decide(machines []*Machine, pools []pool, going []azure.ID) []plan.Node {
	filled := slices.DeleteFunc(slices.Clone(pools), func(one pool) bool { return !one.filled })
	if len(going)+len(filled) > 0 {
		p.readRoles(machines)
	}
	for _, id := range going {
		why := "leaves the load balancer, which goes with " + batch.Summary(p.batch.Names())
		if id.Is(network.LoadBalancerPools) {
			why = "leaves the pool, which lists addresses from now on"
		}
		for _, one := range machines {
			p.note(one, id) // packets come to it until it has left
			one.leave(id, why)
		}
	}
	for _, one := range machines {
		for _, pool := range filled {
			if one.role == cluster.Receiver && one.ready && !one.In(pool.id) {
				p.join(one, pool)
			}
		}
	}
	for _, pool := range filled {
		p.takeOut(machines, pool)
	}
	for _, pool := range filled {
		p.warnEmpty(machines, pool)
	}
	var out []plan.Node
	for _, one := range machines {
		for _, pool := range pools {
			p.note(one, pool.id)
		}
		if one.why != "" {
			out = append(out, one.node())
		}
	}
	return out
}

// readRoles reads the role of each machine, and warns of nodes that cannot join. A model is a receiver if any instance
// is one, and excluded if all instances are.
func (p *Planner) readRoles(machines []*Machine) {
	x := p.index
	roles := make(map[string]cluster.Role, len(x.SortedNodes)) // by id key
	for _, id := range x.DeletedNodes {
		roles[id.Key()] = deleted
	}
	for _, n := range x.SortedNodes {
		roles[n.Machine.Key()] = n.Role // even if another Node of the machine was deleted
		switch {
		case n.Role != cluster.Receiver, n.Machine == "":
		case !isServed(n.Machine, x.Config):
			p.Problems.Warn(n.Name, problem.NotJoined,
				"it stays out of the backend pools: of machines like %s, allowed are those in resource group %s", n.Machine,
				x.Config.ResourceGroup)
		case n.Machine.Is(compute.VirtualMachines):
			if id, why, unread := unreadInterface(x.Input, n.Machine); unread {
				is, toDo := admission.Unread(why, network.Interfaces)
				p.Problems.Warn(n.Name, problem.NotJoined,
					"it neither joins nor leaves the backend pools: its network interface %s %s; to do: %s", id, is, toDo)
			}
		}
	}
	for _, one := range machines {
		count := map[cluster.Role]int{}
		for _, instance := range one.instances {
			count[roles[instance.ID.Key()]]++
		}
		switch excluded := count[cluster.Excluded]; {
		case count[cluster.Receiver] > 0:
			one.role = cluster.Receiver
		case excluded > 0 && excluded == len(one.instances):
			one.role = cluster.Excluded
		default:
			one.role = roles[one.ID.Key()]
		}
	}
}

// takeOut takes machines out of a pool after others joined. A pool is never emptied: all Services of the cluster would
// fail. If no node stays, the leaving machines wait for the first machine that joins.
func (p *Planner) takeOut(machines []*Machine, pool pool) {
	stays := false
	var leaving []*Machine
	var after []azure.ID
	for _, one := range machines {
		switch {
		case one.orphan:
			one.leave(pool.id, "its machine is gone")
		case whyOut[one.role] != "":
			leaving = append(leaving, one)
		case one.isModel || !one.In(pool.id):
		case !slices.Contains(one.decided, pool.id):
			stays = true
		case len(after) == 0: // it joins
			after = append(after, cmp.Or(one.holder, one.ID))
		}
	}
	switch {
	case stays || p.hasOthers(machines, pool.id):
		after = nil
	case len(after) == 0:
		return
	}
	for _, one := range leaving {
		if p.index.ConcurrentMembers {
			p.note(one, pool.id)
		}
		why := whyOut[one.role]
		if one.isModel {
			why = "new instances stay out of the backend pool, as all existing ones do"
		} else {
			one.after = append(one.after, after...)
		}
		one.leave(pool.id, why)
	}
}

// hasOthers reports whether instances of other scale sets are in a pool, as its load balancer shows.
func (p *Planner) hasOthers(machines []*Machine, pool azure.ID) bool {
	known := make(map[string]bool, len(machines))
	for _, one := range machines {
		known[one.ID.Key()] = true
	}
	return slices.ContainsFunc(Members(p.index.LoadBalancers), func(m Member) bool {
		return m.Pool.Equal(pool) && !m.Interface.Is(network.Interfaces) && !known[m.Interface.Parent().Key()]
	})
}

// join lets a machine into a pool, unless there is an obstacle.
func (p *Planner) join(one *Machine, pool pool) {
	if one.fixed || len(one.configurations) == 0 || one.Excluded[pool.family] {
		return
	}
	c, why := one.place(pool)
	if c == nil {
		p.Problems.Warn(string(one.ID), problem.NotJoined, "%s", why)
		return
	}
	why = "node joins the backend pool"
	if one.isModel {
		why = "new instances join the backend pool"
	}
	ref := azure.Reference{ID: pool.id}
	c.pools, c.joined = append(slices.Clip(c.pools), ref), append(c.joined, ref)
	one.decided, one.why = append(one.decided, pool.id), why
}

// place returns the IP configuration with which a machine joins a pool, or nil and the reason why there is none. An
// interface can be in one public and one internal load balancer at most. A machine that is in another pair stays there.
func (m *Machine) place(pool pool) (*configuration, string) {
	i := slices.IndexFunc(m.configurations, func(c configuration) bool { return c.usable && c.family == pool.family })
	if i < 0 {
		return nil, fmt.Sprintf("it has no primary network interface with an %s configuration, so it stays out of the backend pool %s",
			pool.family, pool.id.Name())
	}
	c, to := &m.configurations[i], pool.id.TopLevel().Name()
	for _, has := range c.pools {
		lb := has.ID.TopLevel().Name()
		isPair := strings.EqualFold(lb, to) || strings.EqualFold(lb+cluster.InternalSuffix, to) ||
			strings.EqualFold(lb, to+cluster.InternalSuffix) // or the same load balancer
		if !isPair {
			return nil, fmt.Sprintf("it is in pool %s of load balancer %s already, so it stays out of %s", has.ID.Name(), lb, to)
		}
	}
	return c, ""
}

// warnEmpty warns the Services of a pool that no machine is in, with the reason of the first node that is known.
func (p *Planner) warnEmpty(machines []*Machine, pool pool) {
	isMember := func(m *Machine) bool { return !m.isModel && !m.orphan && m.In(pool.id) }
	if slices.ContainsFunc(machines, isMember) || p.hasOthers(machines, pool.id) {
		return
	}
	byID := make(map[string]*Machine, len(machines))
	for _, one := range machines {
		byID[one.ID.Key()] = one
	}
	first, why, more := "", "", 0
	for _, n := range p.index.SortedNodes {
		switch reason := p.whyOutside(n, byID, pool); {
		case reason == "":
		case why == "":
			first, why = n.Name, reason
		default:
			more++
		}
	}
	if why == "" {
		return
	}
	if more > 0 {
		first += fmt.Sprintf(", first of %d", more+1)
	}
	for at := range p.batch.Placed() {
		if at.Pool(p.index.Config).Equal(pool.id) {
			p.Problems.Warn(at.For.Key(), problem.NoNodes,
				"no node is in backend pool %s of load balancer %s, so no node answers: node %s: %s",
				pool.id.Name(), pool.id.Parent().Name(), first, why)
		}
	}
}

// whyOutside is the reason why a node that should be in a pool is not, "" if none is known. byID are the machines by id key. The
// instances of a scale set may not have been read, its model always is.
func (p *Planner) whyOutside(n *index.Node, byID map[string]*Machine, pool pool) string {
	one, model := byID[n.Machine.Key()], byID[n.Machine.Parent().Key()]
	switch {
	case n.Role != cluster.Receiver || n.Machine == "":
		return ""
	case !isServed(n.Machine, p.index.Config):
		return fmt.Sprintf("its machine %s is not in resource group %s", n.Machine, p.index.Config.ResourceGroup)
	case model != nil && model.Excluded[pool.family] || one != nil && one.Excluded[pool.family]:
		return fmt.Sprintf("its system cannot be in pools of %s", pool.family)
	case one == nil || one.fixed || !one.ready: // it may join later, or its network interface has not been read
		return ""
	}
	_, why := one.place(pool)
	return why
}
