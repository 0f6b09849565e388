package loadbalancer

import (
	"maps"
	"slices"

	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// Desired decides what Azure must hold for the Services of one commit, and names
// what is wrong with them. An error says that the snapshot cannot be read.
//
// New public IPs come first and alone, because the other documents tell of their
// addresses: the graph is then Pending, and the next one on a new snapshot writes
// load balancers and security group side by side.
func Desired(in Input) (plan.Graph, []plan.Problem, error) {
	f, err := readFacts(in)
	if err != nil {
		return plan.Graph{}, nil, err
	}
	refused := map[string]bool{} // by UID; true for those that other Services may help
	var before problems
	for {
		g, found, more, err := f.decide(refused)
		if err != nil || len(more) == 0 {
			for _, what := range slices.Sorted(maps.Keys(f.unclaimed)) {
				found.warn(f.unclaimed[what], ReasonUnclaimed, "%s is nobody's any more", what)
			}
			return g, once(append(before, found...)), err
		}
		// What is too much is left as it is, and the others are decided again.
		for _, uid := range more {
			refused[uid] = slices.ContainsFunc(found, func(p plan.Problem) bool { return p.Reason == ReasonFamily })
		}
		before = append(before, found...)
	}
}

// decide is Desired without the Services in refused; it returns those that must be
// refused besides, by UID.
func (f *facts) decide(refused map[string]bool) (g plan.Graph, found problems, more []string, err error) {
	b, found := readBatch(f, refused)
	f.warnUnfit(&found)
	if len(f.Services) == 0 { // where all are refused, the nodes come and go all the same
		return g, found, nil, nil
	}
	add := func(nodes ...plan.Node) {
		for _, n := range nodes {
			if err == nil {
				err = g.Add(n)
			}
		}
	}
	if basic := f.basicBalancers(); len(basic) > 0 {
		if len(b.base) == 0 { // it would be made anew without anybody
			return g, found, nil, nil
		}
		return f.retire(b, basic, found)
	}
	linked, unlinked := f.links(b)
	all := f.balancers(&b, &found)
	if more := f.refuseFamilies(b, all, &found); len(more) > 0 {
		return g, found, more, nil
	}
	if migrations, waits := f.migrations(all, b); len(migrations) > 0 {
		add(migrations...)
		g.Pending = waits
		return g, found, nil, err
	}
	removals, held := f.removals(b, all, unlinked)
	add(removals...)
	users, order := f.usersOf(b)
	g.Pending = append(f.newPublicIPs(b), held...)
	// Where another round is needed anyway, nobody waits for addresses in this one.
	if len(held) > 0 || len(g.Pending) > 0 && len(b.waits) == 0 {
		f.nameLater(users, order, nil)
		wanted, _ := f.publicIPs(users, order, nil)
		add(wanted...)
		return g, found, nil, err
	}
	g.Pending = append(g.Pending, b.waits...)
	if what := b.firstIPv4(); what != "" && slices.Contains(slices.Collect(maps.Values(refused)), true) {
		g.Pending = append(g.Pending, "Services that were refused may come beside "+what)
	}
	kept := keptIPs(all)
	g.Pending = append(g.Pending, f.nameLater(users, order, kept)...)
	wanted, released := f.publicIPs(users, order, kept)
	add(wanted...)
	stray := f.strayGroups(b, released)
	lbs := f.nodesOf(all, b)
	g.Pending = append(g.Pending, f.afterNotes(lbs, stray)...)
	add(lbs...)
	m, members, err2 := f.decideMembership(all, b, &found)
	if err2 != nil {
		return plan.Graph{}, nil, nil, err2
	}
	add(members...)
	add(linked...)
	n, more, ok := f.security(b, m, stray, &g.Pending, &found)
	if ok {
		add(n)
	}
	add(released...)
	return g, found, more, err
}

// nodesOf are the load balancers that shall be there.
func (f *facts) nodesOf(all []*balancer, b batch) []plan.Node {
	var nodes []plan.Node
	for _, lb := range all {
		if n, ok := lb.node(f, b); ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// basicBalancers are the load balancers of the SKU that Azure has retired. They cannot
// become others, so they go first.
func (f *facts) basicBalancers() []*balancer {
	var all []*balancer
	for _, s := range f.sides {
		if s.exists && s.lb.SKU != nil && sameText(s.lb.SKU.Name, "Basic") {
			all = append(all, &balancer{side: s, shrank: true})
		}
	}
	return all
}

// retire takes load balancers away that are made anew in the next round.
func (f *facts) retire(b batch, basic []*balancer, found problems) (g plan.Graph, _ problems, more []string, err error) {
	_, members, err := f.decideMembership(basic, b, &found)
	nodes := members
	for _, lb := range basic {
		nodes = append(nodes, plan.Gone[network.LoadBalancer](lb.side.id, "its SKU is Basic, which Azure has retired", b.names()...))
		g.Pending = append(g.Pending, "load balancer "+lb.side.id.Name()+" is made anew with the SKU Standard")
	}
	for _, n := range nodes {
		if err == nil {
			err = g.Add(n)
		}
	}
	return g, found, nil, err
}

// once drops what was found a second time.
func once(found problems) []plan.Problem {
	var out []plan.Problem
	seen := make(map[plan.Problem]bool, len(found))
	for _, p := range found {
		if !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}
