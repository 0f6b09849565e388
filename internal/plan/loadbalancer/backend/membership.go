package backend

import (
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

// Members are the members of the backend pools after the decision.
type Members struct {
	nodes []*index.Node
	in    map[inPool]bool
	known map[string][]string // results of AddressesIn
}

// inPool is a machine, by id key, or an address in a pool, by id key.
type inPool struct{ pool, member string }

// AddressesIn are the addresses of the nodes in a pool.
func (m *Members) AddressesIn(id azure.ID, family v1.IPFamily) []string {
	pool := id.Key()
	if all, known := m.known[pool+string(family)]; known {
		return all
	}
	var all []string
	for _, n := range m.nodes {
		if ip, has := n.Address(family); has && (m.in[inPool{pool, n.Machine.Key()}] || m.in[inPool{pool, ip.String()}]) {
			all = append(all, ip.String())
		}
	}
	m.known[pool+string(family)] = all
	return all
}

// note notes a machine that is in a pool.
func (m *Members) note(one *machine.Machine, pool azure.ID) {
	if !one.Model && one.In(pool) {
		m.in[inPool{pool.Key(), one.ID.Key()}] = true
	}
}

// noteAddresses notes the members of pools of addresses.
func (m *Members) noteAddresses(all []*balancer.Wanted) {
	for _, w := range all {
		for p := range w.Pools.All() {
			if !index.HasAddresses(p) {
				continue
			}
			pool := w.State.ID.Child(network.BackendAddressPools, p.Name).Key()
			for _, member := range p.Properties.LoadBalancerBackendAddresses {
				m.in[inPool{pool, member.Properties.IPAddress}] = true
			}
		}
	}
}

// membership decides which machines are in the pools of network interfaces.
type membership struct {
	*Planner
	members *Members
	groups  []*machine.Group
	into    []pool
	going   []azure.ID              // pools, or load balancers, that all machines leave
	roles   map[string]cluster.Role // by machine id key, of machines that have a Node
	deleted map[string]bool         // machines whose Node was deleted, by id key
}

// pool is a pool that nodes belong into.
type pool struct {
	id     azure.ID
	family v1.IPFamily
}

// Membership lets the cluster's nodes into the backend pools: the scale sets'
// models first, so that new instances are created in them, then the machines. With a
// load balancer that goes, all its pools are left.
func (p *Planner) Membership(all []*balancer.Wanted) (*Members, []plan.Node, error) {
	m := &membership{Planner: p, members: &Members{nodes: p.index.SortedNodes, in: map[inPool]bool{},
		known: map[string][]string{}}}
	m.members.noteAddresses(all)
	var others []pool // that something else fills
	for _, w := range all {
		switch {
		case w.Goes():
			m.going = append(m.going, w.State.ID)
		case !w.Stays():
		case !p.fills(w.State):
			others = append(others, p.ownPools(w)...)
		case p.byIP(w.State):
			m.going = append(m.going, p.interfacePools(w)...)
		default:
			m.into = append(m.into, p.ownPools(w)...)
		}
	}
	if len(m.into)+len(m.going)+len(others) == 0 || len(p.index.Nodes) == 0 && len(m.going) == 0 {
		return m.members, nil, nil
	}
	var err error
	if m.groups, err = p.machines(); err != nil {
		return m.members, nil, err
	}
	for _, g := range m.groups {
		for _, one := range g.Machines {
			for _, pool := range others {
				m.members.note(one, pool.id)
			}
		}
	}
	if len(m.into)+len(m.going) == 0 {
		return m.members, nil, nil
	}
	m.readRoles()
	return m.members, m.decide(), nil
}

// ownPools are the cluster's own pools of a load balancer.
func (p *Planner) ownPools(w *balancer.Wanted) []pool {
	var pools []pool
	for _, family := range address.Families() {
		name := p.index.Config.PoolName(family)
		if w.Pools.Has(named(name)) {
			pools = append(pools, pool{w.State.ID.Child(network.BackendAddressPools, name), family})
		}
	}
	return pools
}

// readRoles reads the role of each machine, and warns of nodes that cannot join.
func (m *membership) readRoles() {
	x := m.index
	m.roles, m.deleted = make(map[string]cluster.Role, len(x.SortedNodes)), map[string]bool{}
	for _, n := range x.SortedNodes {
		if n.Machine == "" {
			continue
		}
		m.roles[n.Machine.Key()] = n.Role
		switch {
		case n.Role != cluster.Receiver:
		case !machine.IsServed(n.Machine, x.Config):
			m.found.Warn(n.Name, problem.NotJoined,
				"it stays out of the backend pools: of machines like %s, allowed are those in resource group %s", n.Machine,
				x.Config.ResourceGroup)
		case n.Machine.Is(compute.VirtualMachines):
			if id, why, unread := machine.Unread(x.Input, n.Machine); unread {
				is, toDo := admission.Unread(why, network.Interfaces)
				m.found.Warn(n.Name, problem.NotJoined,
					"it neither joins nor leaves the backend pools: its network interface %s %s; to do: %s", id, is, toDo)
			}
		}
	}
	for _, id := range x.DeletedNodes {
		_, again := m.roles[id.Key()]
		m.deleted[id.Key()] = !again
	}
}

// roleOf is the role of a machine, "" if nothing is known of it. A machine is excluded after its Node was
// deleted.
func (m *membership) roleOf(one *machine.Machine) (role cluster.Role, deleted bool) {
	key := one.ID.Key()
	if m.deleted[key] {
		return cluster.Excluded, true
	}
	return m.roles[key], false
}

func (m *membership) decide() []plan.Node {
	exits := make([]exit, len(m.into))
	for i, pool := range m.into {
		exits[i] = m.exit(pool)
	}
	why := "leaves the load balancer, which goes with " + batch.Summary(m.batch.Names())
	var out []plan.Node
	for _, g := range m.groups {
		for _, one := range g.All() {
			reason := ""
			var after []azure.ID
			for _, id := range m.going {
				m.members.note(one, id) // packets come to it until it has left
				if !one.Fixed && one.Leave(id) {
					if reason = why; id.Is(network.LoadBalancerPools) {
						reason = "leaves the pool, which lists addresses from now on"
					}
				}
			}
			for i, pool := range m.into {
				if did := m.settle(g, one, pool, exits[i].open); did != "" {
					reason = did
				}
				if role, _ := m.roleOf(one); role == cluster.Excluded && !one.Model {
					after = append(after, exits[i].after...)
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
func (m *membership) settle(g *machine.Group, one *machine.Machine, pool pool, mayLeave bool) (did string) {
	joins, leaves := "node joins the backend pool", "node is excluded from load balancers"
	role, deleted := m.roleOf(one)
	if deleted {
		leaves = "its Node was deleted from Kubernetes"
	}
	if one.Model {
		role, joins, leaves = m.roleOfModel(g), "new instances join the backend pool",
			"new instances stay out of the backend pool, as all existing ones do"
	}
	switch {
	case one.Fixed:
	case one.Orphan && one.Leave(pool.id):
		did = "its machine is gone"
	case role == cluster.Receiver && one.Ready && m.join(one, pool):
		did = joins
	case role == cluster.Excluded && mayLeave && one.In(pool.id):
		if m.index.ConcurrentMembers {
			m.members.note(one, pool.id)
		}
		one.Leave(pool.id)
		did = leaves
	}
	m.members.note(one, pool.id)
	return did
}

// roleOfModel is Receiver if any instance is one, and Excluded if all instances are. Machines without a Node
// do not count.
func (m *membership) roleOfModel(g *machine.Group) cluster.Role {
	excluded := 0
	for _, one := range g.Machines {
		switch m.roles[one.ID.Key()] {
		case cluster.Receiver:
			return cluster.Receiver
		case cluster.Excluded:
			excluded++
		}
	}
	if excluded > 0 && excluded == len(g.Machines) {
		return cluster.Excluded
	}
	return cluster.Bystander
}

// exit is whether excluded nodes may be taken out of a pool, and which machines must join before.
type exit struct {
	open  bool
	after []azure.ID
}

// exit decides whether excluded nodes may leave a pool. A pool is never emptied: all Services of
// the cluster would fail. Where no node stays, the others wait for the first one that joins.
func (m *membership) exit(pool pool) exit {
	known := map[string]bool{}
	var joins []azure.ID
	for _, g := range m.groups {
		for _, one := range g.Machines {
			known[one.ID.Key()] = true
			role, _ := m.roleOf(one)
			if role != cluster.Excluded && !one.Orphan && one.In(pool.id) {
				return exit{open: true}
			}
			if len(joins) == 0 && role == cluster.Receiver && one.Ready && m.canJoin(one, pool) {
				joins = append(joins, one.Node("").ID)
			}
		}
	}
	lb := m.index.LoadBalancer(pool.id.Parent())
	for _, c := range lb.Pool(pool.id.Name()).Properties.BackendIPConfigurations {
		if !c.ID.Parent().Is(network.Interfaces) && !known[machine.InstanceOf(c.ID).Key()] {
			return exit{open: true}
		}
	}
	return exit{open: len(joins) > 0, after: joins}
}

// join lets a machine into a pool and reports whether it did. An interface is in one public and one internal
// load balancer at most; an interface in another one stays there.
func (m *membership) join(one *machine.Machine, pool pool) bool {
	if !one.CanBeMember() || one.In(pool.id) || one.Excluded[pool.family] {
		return false
	}
	c := one.ConfigurationFor(pool.family)
	if c == nil {
		m.found.Warn(string(one.ID), problem.NotJoined,
			"it has no primary network interface with an %s configuration, so it stays out of the backend pool %s", pool.family,
			pool.id.Name())
		return false
	}
	if p := elsewhere(c, pool, nil); p != "" {
		m.found.Warn(string(one.ID), problem.NotJoined, "it is in pool %s of load balancer %s already, so it stays out of %s", p.Name(),
			p.TopLevel().Name(), pool.id.TopLevel().Name())
		return false
	}
	one.Join(c, pool.id)
	return true
}

// canJoin reports whether a machine that may join a pool is going to: it is written, and nothing
// but pools that are going keeps it out.
func (m *membership) canJoin(one *machine.Machine, pool pool) bool {
	c := one.ConfigurationFor(pool.family)
	return c != nil && !one.Fixed && !one.Excluded[pool.family] && elsewhere(c, pool, m.going) == ""
}

// elsewhere is a pool, of none that are going, that keeps an IP configuration out of a pool of
// another load balancer.
func elsewhere(c *machine.Configuration, pool pool, going []azure.ID) azure.ID {
	to := pool.id.TopLevel()
	for _, p := range c.Pools {
		stays := !slices.ContainsFunc(going, p.ID.Under)
		if lb := p.ID.TopLevel(); stays && !lb.Equal(to) && !areSiblings(lb.Name(), to.Name()) {
			return p.ID
		}
	}
	return ""
}

// areSiblings reports whether two load balancers are the same, or the two of a pair.
func areSiblings(a, b string) bool {
	return strings.EqualFold(a, b) || strings.EqualFold(a+cluster.InternalSuffix, b) || strings.EqualFold(a, b+cluster.InternalSuffix)
}
