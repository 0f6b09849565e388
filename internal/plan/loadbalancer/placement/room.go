package placement

import (
	"slices"
	"strings"

	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
)

// deferRenewals defers addresses that need a recreated public IP: the old one is deleted first.
func deferRenewals(x *index.Index, b *batch.Batch) {
	b.Defer(func(s batch.Served, p batch.Placement) string {
		isShared := func(other batch.Served) bool {
			return other.Key() != s.Key() &&
				slices.ContainsFunc(other.Placements, func(o batch.Placement) bool { return o.IP.Equal(p.IP) })
		}
		if !publicip.IsOutdated(x, s.Spec, p) || len(b.Remaining(p.At)) > 0 || slices.ContainsFunc(b.Live, isShared) {
			return ""
		}
		return "public IP " + p.IP.Name() + " is recreated with another version or other IP tags [" + s.Key() + "]"
	})
}

// deferMoves defers moves between load balancers that would wait for each other, be it by the machines that
// leave one and join the other: the addresses leave in this round and return in the next.
func deferMoves(x *index.Index, b *batch.Batch) {
	type wait struct{ then, first *index.LoadBalancer }
	waits := map[wait]bool{}
	later := map[index.Frontend]bool{} // at which a frontend comes: Services that share it wait, too
	for s, p := range b.Placed() {
		for _, from := range batch.Sources(x, s, p) {
			later[p.At.Key()] = true
			waits[wait{p.At.LB, from}] = true
		}
	}
	circle := slices.Clone(x.LoadBalancers) // of those that wait for each other
	for before := 0; before != len(circle); {
		before = len(circle)
		others := slices.Clone(circle)
		circle = slices.DeleteFunc(circle, func(lb *index.LoadBalancer) bool {
			return !slices.ContainsFunc(others, func(other *index.LoadBalancer) bool { return waits[wait{lb, other}] })
		})
	}
	if len(waits) == 0 || x.Config.PoolByIP && len(circle) == 0 {
		return
	}
	b.Defer(func(s batch.Served, p batch.Placement) string {
		if !later[p.At.Key()] {
			return ""
		}
		b.Holds[p.IP.Key()] = true
		return "load balancer " + p.At.LB.ID.Name() + " gets the address of " + s.Key() + ", which is elsewhere so far"
	})
}

// deferForRoom defers placements for which Azure has room only after the other load balancer of the same
// nodes is written.
func deferForRoom(x *index.Index, b *batch.Batch) {
	full := crowded(x, b)
	if len(full) == 0 {
		return
	}
	later := map[index.Frontend]bool{} // at which a frontend comes: Services that share it wait, too
	for s, p := range b.Placed() {
		if !p.At.Exists() && p.Own && full[p.At.LB] && arrives(x, s, p) {
			later[p.At.Key()] = true
		}
	}
	b.Defer(func(s batch.Served, p batch.Placement) string {
		if !later[p.At.Key()] && (!full[p.At.LB] || !arrives(x, s, p)) {
			return ""
		}
		b.Holds[p.IP.Key()] = true
		return "rules of " + s.Key() + " come to load balancer " + p.At.LB.ID.Name() + " when others have left the nodes"
	})
}

// crowded are the load balancers that must not be written before another one that leads to the same nodes.
func crowded(x *index.Index, b *batch.Batch) map[*index.LoadBalancer]bool {
	here, leave, come := map[lbFamily]int{}, map[lbFamily]int{}, map[lbFamily]int{} // rules
	wanted := map[index.Frontend]bool{}                                             // rules, as names at their load balancers
	for _, p := range b.Placed() {
		come[lbFamily{p.At.LB, p.IsIPv6()}] += p.NewRules()
		for _, r := range p.Rules {
			wanted[index.Frontend{LB: p.At.LB, Name: r.Name}.Key()] = true
		}
	}
	for lb, r := range x.Rules() {
		at, leads := leadsToNodes(x, lb, r)
		if !leads {
			continue
		}
		here[at]++
		if b.Has(naming.Owner(r.Name)) && !wanted[index.Frontend{LB: lb, Name: r.Name}.Key()] {
			leave[at]++
		}
	}
	full := map[*index.LoadBalancer]bool{}
	for at, n := range come {
		for sibling := range leave {
			same := sibling.lb != at.lb && nodesBehind(x, sibling) == nodesBehind(x, at)
			if same && n > 0 && here[sibling]+here[at]-leave[at]+n > mostRulesPerNode {
				full[at.lb] = true
			}
		}
	}
	return full
}

// arrives reports whether all rules of a placement are new and the Service loses nothing by waiting: a
// Service that is there keeps its frontend, address and private link service.
func arrives(x *index.Index, s batch.Served, p batch.Placement) bool {
	if len(p.Rules) == 0 || p.NewRules() < len(p.Rules) || p.At.UsedBy(s.Owner) {
		return false
	}
	// The Service may have left the frontend to a load balancer that is not to be deleted.
	return !p.At.Exists() || !p.Own ||
		slices.ContainsFunc(x.LoadBalancers, func(lb *index.LoadBalancer) bool { return lb != p.At.LB && len(lb.RulesOf[s.Owner]) > 0 })
}

// mostRulesPerNode is how many rules may lead to one IP configuration of a machine,
// over all load balancers that have it in a pool.
const mostRulesPerNode = 300

// lbFamily is the rules of one family at a load balancer.
type lbFamily struct {
	lb   *index.LoadBalancer
	ipv6 bool
}

// nodesBehind tells to which IP configurations of nodes rules lead: an external load balancer and its internal
// sibling lead to the same ones, in one family.
func nodesBehind(x *index.Index, at lbFamily) lbFamily {
	if at.lb.Entry < 0 { // it is configured no more
		return at
	}
	return lbFamily{x.Configured(at.lb.Entry, false), at.ipv6}
}

// leadsToNodes reports whether a rule leads to nodes, and in which family.
func leadsToNodes(x *index.Index, lb *index.LoadBalancer, r index.Rule) (lbFamily, bool) {
	pool := r.Properties.BackendAddressPool.To().Name()
	return lbFamily{lb, cluster.HasSuffix(pool, cluster.SuffixIPv6)}, pool != "" && x.Config.LeadsToNodes(pool)
}

// hasRoom reports whether Azure takes all new rules of an address at a load balancer.
func (s *search) hasRoom(a spec.Address, lb *index.LoadBalancer) bool {
	n := batch.NewRules(a, lb)
	return n == 0 || s.leading[nodesBehind(s.Index, lbFamily{lb, a.IsIPv6()})]+n <= mostRulesPerNode
}

// checkRoom refuses a Service with more rules than a node may have.
func checkRoom(s *search, w *service, r request, wrong *problem.List) {
	if wrong.Blocking() || s.hasRoom(r.Address, r.At.LB) {
		return
	}
	with := "a node"
	if r.IsIPv6() {
		with = "the IPv6 address of a node"
	}
	wrong.Refuse(w.Key(), problem.Limit,
		"with %d more rules of load balancer %s and its sibling, too many would lead to %s, allowed by Azure are %d: take ports or "+
			"Services away, or spread the Services over several load balancers (multipleStandardLoadBalancerConfigurations)",
		r.NewRules(), strings.TrimSuffix(r.At.LB.ID.Name(), cluster.InternalSuffix), with, mostRulesPerNode)
}
