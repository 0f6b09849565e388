package loadbalancer

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/nodes"
)

// membership decides who is in the backend pools.
type membership struct {
	*facts
	found   *problems
	roles   map[string]Role            // by machine id key, of those that have a Node
	deleted map[string]bool            // machines whose Node was deleted, by id key
	members map[string]map[string]bool // by pool id key: machine id keys when all is done
	// byAddress is the same for pools of addresses: addresses by pool id key.
	byAddress map[string]map[string]bool
}

// served is a pool that nodes belong into.
type served struct {
	id     azure.ID
	family v1.IPFamily
}

// decideMembership lets the cluster's nodes into the backend pools: the scale sets'
// models first, so that new instances are born into them, then the machines. With a
// load balancer that goes, all its pools are left.
func (f *facts) decideMembership(all []*balancer, b batch, found *problems) (*membership, []plan.Node, error) {
	m := &membership{facts: f, found: found, members: map[string]map[string]bool{}, byAddress: map[string]map[string]bool{}}
	m.addressed(all)
	var into, others []served
	var going []azure.ID
	for _, lb := range all {
		switch {
		case lb.going():
			going = append(going, lb.side.id)
		case !lb.stays:
		case !f.fills(lb.side):
			others = append(others, f.servedPools(lb)...)
		case f.byIP(lb.side):
			going = append(going, f.poolsOfInterfaces(lb)...)
		default:
			into = append(into, f.servedPools(lb)...)
		}
	}
	if len(into)+len(going)+len(others) == 0 || len(f.Nodes) == 0 && len(going) == 0 {
		return m, nil, nil
	}
	groups, err := readGroups(f.Input)
	if err != nil {
		return m, nil, err
	}
	m.look(groups, others)
	if len(into)+len(going) == 0 {
		return m, nil, nil
	}
	m.roles, m.deleted = rolesByMachine(f, found), map[string]bool{}
	for _, id := range f.Nodeless {
		_, again := m.roles[id.Key()]
		m.deleted[id.Key()] = !again
	}
	return m, m.decide(groups, into, going, b), nil
}

// addressed notes who is in pools of addresses.
func (m *membership) addressed(all []*balancer) {
	for _, lb := range all {
		for _, p := range lb.BackendAddressPools {
			if !hasAddresses(p) {
				continue
			}
			in := map[string]bool{}
			for _, member := range p.Properties.LoadBalancerBackendAddresses {
				in[member.Properties.IPAddress] = true
			}
			m.byAddress[lb.side.id.Child(network.BackendAddressPools, p.Name).Key()] = in
		}
	}
}

// look notes who is in pools that somebody else fills.
func (m *membership) look(groups []*group, pools []served) {
	for _, g := range groups {
		for _, one := range g.machines {
			for _, pool := range pools {
				m.note(one, pool)
			}
		}
	}
}

// note notes a machine that is in a pool.
func (m *membership) note(one *machine, pool served) {
	if one.model || !one.in(pool.id) {
		return
	}
	if m.members[pool.id.Key()] == nil {
		m.members[pool.id.Key()] = map[string]bool{}
	}
	m.members[pool.id.Key()][one.id.Key()] = true
}

// poolsOfInterfaces are the pools that network interfaces have to leave because
// members are addresses from now on.
func (f *facts) poolsOfInterfaces(lb *balancer) []azure.ID {
	var ids []azure.ID
	for _, p := range lb.BackendAddressPools {
		if f.Config.isOwnPool(p.Name) && p.Keep && !isByAddress(p) {
			ids = append(ids, lb.side.id.Child(network.BackendAddressPools, p.Name))
		}
	}
	return ids
}

// servedPools are the cluster's own pools of a load balancer.
func (f *facts) servedPools(lb *balancer) []served {
	var pools []served
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		name := f.Config.poolName(family)
		for _, p := range lb.BackendAddressPools {
			if sameText(p.Name, name) {
				pools = append(pools, served{lb.side.id.Child(network.BackendAddressPools, name), family})
			}
		}
	}
	return pools
}

// rolesByMachine gives the role of each machine, and says which nodes cannot be let
// in because their machine is of a kind that kaz does not serve yet, or may not be read.
func rolesByMachine(f *facts, found *problems) map[string]Role {
	roles := make(map[string]Role, len(f.Nodes))
	for _, n := range f.Nodes {
		id, ok := nodes.MachineID(n.Spec.ProviderID)
		if !ok {
			continue
		}
		role := RoleOf(f.Config, n)
		roles[id.Key()] = role
		switch {
		case role != Receiver:
		case !isServed(id, f.Config):
			found.warn(n.Name, ReasonNotJoined, "it stays out of the backend pools: of machines like %s, allowed are those in resource group %s", id, f.Config.ResourceGroup)
		case id.Is(compute.VirtualMachines):
			f.warnUnreadCard(n, id, found)
		}
	}
	return roles
}

// roleOf is what a machine is to load balancers, "" for one of which nothing is known, and
// whether that is because its Node was deleted.
func (m *membership) roleOf(machine azure.ID) (role Role, deleted bool) {
	key := machine.Key()
	if m.deleted[key] {
		return Excluded, true
	}
	return m.roles[key], false
}

func isServed(machine azure.ID, c Config) bool {
	switch {
	case machine.Is(compute.ScaleSetInstances):
		return machine.Parent().Parent().Equal(c.machines())
	case machine.Is(compute.VirtualMachines):
		return machine.Parent().Equal(c.machines())
	}
	return false
}

// machineLists is what tells who is in the backend pools, or may come into them.
func machineLists(in Input) []azure.Query {
	c := in.Config
	if c.PoolByIP && !hasPoolsOfInterfaces(in, anyPool) {
		return setLists(in)
	}
	lists := []azure.Query{{Scope: c.machines(), Type: compute.ScaleSets}}
	sets, alone := machinesInvolved(in)
	for _, set := range unsettled(in, sets) {
		lists = append(lists, azure.Query{Scope: set, Type: compute.ScaleSetInstances, Expand: "instanceView"})
	}
	if alone {
		for _, group := range interfaceGroups(in) {
			lists = append(lists, azure.Query{Scope: group, Type: network.Interfaces})
		}
		if hasFlexible(in) || len(c.Balancers) > 0 || wasAsked(in) && len(withoutCard(in)) > 0 {
			lists = append(lists, azure.Query{Scope: c.machines(), Type: compute.VirtualMachines})
		}
	}
	return lists
}

// setLists is what tells in which sets the machines are, where nodes are placed by that.
func setLists(in Input) []azure.Query {
	if len(in.Config.Balancers) == 0 {
		return nil
	}
	if _, alone := machinesInvolved(in); !alone {
		return nil
	}
	return []azure.Query{{Scope: in.Config.machines(), Type: compute.VirtualMachines}}
}

// hasPoolsOfInterfaces reports whether a pool of the load balancers is not one of addresses yet, or
// may go with its load balancer; which reports whether a pool counts, by its name.
func hasPoolsOfInterfaces(in Input, which func(name string) bool) bool {
	return slices.ContainsFunc(balancersOf(in), func(id azure.ID) bool {
		// A document that cannot be read is Desired's to report.
		view, _, err := plan.View[pools](in.Have, id)
		return err == nil && slices.ContainsFunc(view.Properties.BackendAddressPools, func(p pool) bool { return which(p.Name) && !isByAddress(p) })
	})
}

// anyPool is every pool of a load balancer, whosever it is.
func anyPool(string) bool { return true }

func hasFlexible(in Input) bool {
	return slices.ContainsFunc(in.Have.List(in.Config.machines(), compute.ScaleSets), func(d azure.Document) bool {
		set, err := azure.Decode[compute.ScaleSet](d)
		return err == nil && sameText(set.Properties.OrchestrationMode, "Flexible")
	})
}

// machinesInvolved lists the scale sets whose instances a decision looks at, and says
// whether it looks at machines of their own: those of the nodes, those whose node was
// deleted, and those that are in a pool of the load balancers.
func machinesInvolved(in Input) (sets []azure.ID, alone bool) {
	seen := map[string]bool{}
	add := func(machine azure.ID) {
		if machine.Is(compute.VirtualMachines) {
			alone = true
		}
		if id := machine.Parent(); id.Is(compute.ScaleSets) && id.Parent().Equal(in.Config.machines()) && !seen[id.Key()] {
			seen[id.Key()] = true
			sets = append(sets, id)
		}
	}
	for _, id := range knownMachines(in) {
		add(id)
	}
	for _, id := range balancersOf(in) {
		for _, machine := range machinesIn(in, id) {
			add(machine)
		}
	}
	return sets, alone
}

// machinesIn lists the machines in pools of a load balancer. A scale set whose model
// is in one stands there with a machine of its own.
func machinesIn(in Input, lb azure.ID) (machines []azure.ID) {
	// A document that cannot be read is Desired's to report.
	view, exists, err := plan.View[pools](in.Have, lb)
	if err != nil || !exists {
		return nil
	}
	for _, p := range view.Properties.BackendAddressPools {
		for _, c := range p.Properties.BackendIPConfigurations {
			machine := instanceOf(c.ID)
			if configurationHolder(c.ID).Is(network.Interfaces) {
				machine = lb.Parent().Resource(compute.VirtualMachines, c.ID.Parent().Name())
			}
			machines = append(machines, machine)
		}
	}
	for _, d := range in.Have.List(in.Config.machines(), compute.ScaleSets) {
		if set, err := azure.Decode[compute.ScaleSet](d); err == nil && modelOf(set).in(lb) {
			machines = append(machines, set.ID.Child("virtualMachines", "0"))
		}
	}
	return machines
}

// pools is as much of a load balancer as tells who is in it.
type pools struct {
	BackendAddressPools []azure.Child[network.BackendAddressPool] `json:"backendAddressPools"`
}

// configurationHolder is the interface that an IP configuration is at.
func configurationHolder(configuration azure.ID) azure.ID { return configuration.Parent() }

// instanceOf is the machine that an IP configuration belongs to.
func instanceOf(configuration azure.ID) azure.ID { return configuration.Parent().Parent() }

func (m *membership) decide(groups []*group, into []served, going []azure.ID, b batch) []plan.Node {
	exits := make(map[string]exit, len(into))
	for _, pool := range into {
		exits[pool.id.Key()] = m.exit(groups, pool, going)
	}
	why := "leaves the load balancer, which goes with " + summary(b.names())
	var out []plan.Node
	for _, g := range groups {
		for _, one := range g.all() {
			reason := ""
			var after []azure.ID
			for _, id := range going {
				m.note(one, served{id: id}) // packets come to it until it has left
				if !one.fixed && one.leave(id) {
					if reason = why; id.Is(network.LoadBalancerPools) {
						reason = "leaves the pool, which lists addresses from now on"
					}
				}
			}
			for _, pool := range into {
				way := exits[pool.id.Key()]
				if did := m.settle(g, one, pool, way.open); did != "" {
					reason = did
				}
				if role, _ := m.roleOf(one.id); role == Excluded && !one.model {
					after = append(after, way.after...)
				}
			}
			if reason != "" {
				node := one.node(reason)
				node.After = append(node.After, after...)
				out = append(out, node)
			}
		}
	}
	return out
}

func (g *group) all() []*machine {
	if g.model == nil {
		return g.machines
	}
	return append([]*machine{g.model}, g.machines...)
}

// settle lets a machine into a pool or takes it out, and says why if it did.
func (m *membership) settle(g *group, one *machine, pool served, mayLeave bool) (did string) {
	joins, leaves := "node joins the backend pool", "node is excluded from load balancers"
	role, deleted := m.roleOf(one.id)
	if deleted {
		leaves = "its Node was deleted from Kubernetes"
	}
	if one.model {
		role, joins, leaves = m.roleOfModel(g), "new instances join the backend pool", "new instances stay out of the backend pool, as all there are do"
	}
	switch {
	case one.fixed:
	case one.orphan && one.leave(pool.id):
		did = "its machine is gone"
	case role == Receiver && one.ready && m.join(one, pool):
		did = joins
	case role == Excluded && mayLeave && one.in(pool.id):
		if m.Beside {
			m.note(one, pool)
		}
		one.leave(pool.id)
		did = leaves
	}
	m.note(one, pool)
	return did
}

// roleOfModel lets the instances to come into the pool, or keeps them out when all
// that are there are excluded. Whose Node was deleted says nothing of those to come.
func (m *membership) roleOfModel(g *group) Role {
	excluded := 0
	for _, one := range g.machines {
		switch m.roles[one.id.Key()] {
		case Receiver:
			return Receiver
		case Excluded:
			excluded++
		}
	}
	if excluded > 0 && excluded == len(g.machines) {
		return Excluded
	}
	return Bystander
}

// exit is whether excluded nodes may be taken out of a pool, and whose joining that waits for.
type exit struct {
	open  bool
	after []azure.ID
}

// exit finds the way out of a pool. A pool is never emptied: with nobody in it every Service of
// the cluster would be dead. Where nobody stays, the others wait for the first one that joins.
func (m *membership) exit(groups []*group, pool served, going []azure.ID) exit {
	known := map[string]bool{}
	var joins []azure.ID
	for _, g := range groups {
		for _, one := range g.machines {
			known[one.id.Key()] = true
			role, _ := m.roleOf(one.id)
			if role != Excluded && !one.orphan && one.in(pool.id) {
				return exit{open: true}
			}
			if len(joins) == 0 && role == Receiver && one.ready && canJoin(one, pool, going) {
				joins = append(joins, one.node("").ID)
			}
		}
	}
	side := m.sideWith(pool.id.Parent())
	for _, p := range side.lb.Properties.BackendAddressPools {
		if !sameText(p.Name, pool.id.Name()) {
			continue
		}
		for _, c := range p.Properties.BackendIPConfigurations {
			if holder := configurationHolder(c.ID); !holder.Is(network.Interfaces) && !known[instanceOf(c.ID).Key()] {
				return exit{open: true}
			}
		}
	}
	return exit{open: len(joins) > 0, after: joins}
}

// join lets a machine into a pool and reports whether that is a change: it is there
// already, or must not be. An interface is in one public and one internal load
// balancer at most; one in another is left there.
func (m *membership) join(one *machine, pool served) bool {
	if len(one.slots) == 0 || one.in(pool.id) || one.excluded[pool.family] {
		return false
	}
	s := one.slotFor(pool.family)
	if s == nil {
		m.found.warn(string(one.id), ReasonNotJoined, "it has no primary network interface with an %s configuration, so it stays out of the backend pool %s", pool.family, pool.id.Name())
		return false
	}
	if p := elsewhere(s, pool, nil); p != "" {
		m.found.warn(string(one.id), ReasonNotJoined, "it is in pool %s of load balancer %s already, so it stays out of %s", p.Name(), p.TopLevel().Name(), pool.id.TopLevel().Name())
		return false
	}
	*s.pools = append(slices.Clip(*s.pools), azure.Reference{ID: pool.id})
	return true
}

// canJoin reports whether a machine that may join a pool is going to: it is written, and nothing
// but pools that are going keeps it out.
func canJoin(one *machine, pool served, going []azure.ID) bool {
	s := one.slotFor(pool.family)
	return s != nil && !one.fixed && !one.excluded[pool.family] && elsewhere(s, pool, going) == ""
}

// elsewhere is a pool, of none that are going, that keeps an IP configuration out of a pool of
// another load balancer.
func elsewhere(s *slot, pool served, going []azure.ID) azure.ID {
	to := pool.id.TopLevel()
	for _, p := range *s.pools {
		stays := !slices.ContainsFunc(going, p.ID.Under)
		if lb := p.ID.TopLevel(); stays && !lb.Equal(to) && !areSiblings(lb.Name(), to.Name()) {
			return p.ID
		}
	}
	return ""
}

// areSiblings reports whether two load balancers are the same, or the external and the
// internal one of a pair. The external one's name may end like an internal one's.
func areSiblings(a, b string) bool {
	return sameText(a, b) || sameText(a+internalSuffix, b) || sameText(a, b+internalSuffix)
}

// addresses are those of the nodes that receive a place's packets.
func (m *membership) addresses(p place) []string { return m.addressesIn(p.pool(m.Config), p.family) }

// addressesIn are those of the nodes in a pool.
func (m *membership) addressesIn(id azure.ID, family v1.IPFamily) []string {
	pool := id.Key()
	var all []string
	for _, n := range m.Nodes {
		ip, has := addressIn(n, family)
		id, _ := nodes.MachineID(n.Spec.ProviderID)
		if has && (m.members[pool][id.Key()] || m.byAddress[pool][ip.String()]) {
			all = append(all, ip.String())
		}
	}
	return all
}
