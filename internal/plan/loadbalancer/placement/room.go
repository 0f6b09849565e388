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
	b.Defer(func(s batch.Served, p batch.Placement) bool {
		return publicip.IsOutdated(x, s.Spec, p) && len(b.Remaining(p.At)) == 0 &&
			!slices.ContainsFunc(b.Live, func(other batch.Served) bool {
				return other.Key() != s.Key() &&
					slices.ContainsFunc(other.Placements, func(o batch.Placement) bool { return o.IP.Equal(p.IP) })
			})
	}, func(s batch.Served, p batch.Placement) string {
		return "public IP " + p.IP.Name() + " is recreated with another version or other IP tags [" + s.Key() + "]"
	})
}

// deferMoves defers moves between load balancers that would wait for each other, be it by the machines that
// leave one and join the other: the addresses leave in this round and return in the next.
func deferMoves(x *index.Index, b *batch.Batch) {
	waits := map[wait]bool{}
	later := map[index.Frontend]bool{} // at which a frontend comes: Services that share it wait, too
	for s, p := range b.Placed() {
		for _, from := range batch.Sources(x, s, p) {
			later[p.At.Key()] = true
			waits[wait{p.At.LB, from}] = true
		}
	}
	if len(waits) == 0 || x.Config.PoolByIP && !hasCircle(x.LoadBalancers, waits) {
		return
	}
	hold(b, func(_ batch.Served, p batch.Placement) bool { return later[p.At.Key()] }, func(s batch.Served, p batch.Placement) string {
		return "load balancer " + p.At.LB.ID.Name() + " gets the address of " + s.Key() + ", which is elsewhere so far"
	})
}

// hold defers placements and keeps their public IPs for them.
func hold(b *batch.Batch, which func(batch.Served, batch.Placement) bool, why func(batch.Served, batch.Placement) string) {
	b.Defer(which, func(s batch.Served, p batch.Placement) string {
		b.Holds[p.IP.Key()] = true
		return why(s, p)
	})
}

// wait is a load balancer that waits for another one.
type wait struct{ then, first *index.LoadBalancer }

// hasCircle reports whether load balancers wait for each other.
func hasCircle(left []*index.LoadBalancer, waits map[wait]bool) bool {
	for {
		rest := slices.DeleteFunc(slices.Clone(left), func(lb *index.LoadBalancer) bool {
			return !slices.ContainsFunc(left, func(other *index.LoadBalancer) bool { return waits[wait{lb, other}] })
		})
		if len(rest) == len(left) {
			return len(left) > 0
		}
		left = rest
	}
}

// deferForRoom defers placements for which Azure has room only after the other load balancer of the same
// nodes is written.
func deferForRoom(x *index.Index, b *batch.Batch) {
	full := crowded(x, ruleChanges(x, b))
	if len(full) == 0 {
		return
	}
	later := map[index.Frontend]bool{} // at which a frontend comes: Services that share it wait, too
	for s, p := range b.Placed() {
		if !p.At.Exists() && p.Own && full[p.At.LB] && arrives(x, s, p) {
			later[p.At.Key()] = true
		}
	}
	hold(b, func(s batch.Served, p batch.Placement) bool {
		return later[p.At.Key()] || full[p.At.LB] && arrives(x, s, p)
	},
		func(s batch.Served, p batch.Placement) string {
			return "rules of " + s.Key() + " come to load balancer " + p.At.LB.ID.Name() + " when others have left the nodes"
		})
}

// arrives reports whether all rules of a placement are new and the Service loses nothing by waiting: a
// Service that is there keeps its frontend, address and private link service.
func arrives(x *index.Index, s batch.Served, p batch.Placement) bool {
	if len(p.Rules) == 0 || p.NewRules() < len(p.Rules) {
		return false
	}
	switch {
	case p.At.UsedBy(s.Owner):
		return false
	case !p.At.Exists() || !p.Own:
		return true
	}
	// The Service may have left the frontend to a load balancer that is not to be deleted.
	return slices.ContainsFunc(x.LoadBalancers, func(lb *index.LoadBalancer) bool { return lb != p.At.LB && len(lb.RulesOf[s.Owner]) > 0 })
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

// countRules counts the rules that stay after the commit, and how many of them lead to the nodes.
func (s *search) countRules() {
	for lb, r := range s.Rules() {
		if !s.keepsRule(lb, r.Name) {
			continue
		}
		s.rules[lb]++
		if at, leads := leadsToNodes(s.Index, lb, r); leads {
			s.leading[nodesBehind(s.Index, at)]++
		}
	}
}

// leadsToNodes reports whether a rule leads to nodes, and in which family.
func leadsToNodes(x *index.Index, lb *index.LoadBalancer, r index.Rule) (lbFamily, bool) {
	pool := r.Properties.BackendAddressPool.To().Name()
	return lbFamily{lb, cluster.HasSuffix(pool, cluster.SuffixIPv6)}, pool != "" && x.Config.LeadsToNodes(pool)
}

func (s *search) keepsRule(lb *index.LoadBalancer, name string) bool {
	owner := naming.Owner(name)
	w, live := s.specs[owner]
	if live && owner != "" && w.Internal != lb.Internal {
		return false
	}
	return s.stays(index.Use{Name: name, Owner: owner})
}

// hasRoom reports whether Azure takes all new rules of a Service at a load balancer.
func (s *search) hasRoom(w *spec.Spec, lb *index.LoadBalancer, ipv6 bool) bool {
	n := newRules(w, lb, ipv6)
	return n == 0 || s.leading[nodesBehind(s.Index, lbFamily{lb, ipv6})]+n <= mostRulesPerNode
}

// newRules is how many rules of a family a Service would have at a load balancer that do not exist.
func newRules(w *spec.Spec, lb *index.LoadBalancer, ipv6 bool) int {
	n := 0
	for _, a := range w.Addresses {
		if a.IsIPv6() == ipv6 {
			n += batch.NewRules(a, lb)
		}
	}
	return n
}

// checkRoom refuses a Service with more rules than a node may have.
func checkRoom(s *search, w *spec.Spec, p batch.Placement, wrong *problem.List) {
	if wrong.Blocking() || s.hasRoom(w, p.At.LB, p.IsIPv6()) {
		return
	}
	with := "a node"
	if p.IsIPv6() {
		with = "the IPv6 address of a node"
	}
	wrong.Refuse(w.Key(), problem.Limit,
		"with %d more rules of load balancer %s and its sibling, too many would lead to %s, allowed by Azure are %d: take ports or "+
			"Services away, or spread the Services over several load balancers (multipleStandardLoadBalancerConfigurations)",
		newRules(w, p.At.LB, p.IsIPv6()), strings.TrimSuffix(p.At.LB.ID.Name(), cluster.InternalSuffix), with, mostRulesPerNode)
}

// ruleChange counts the rules of one load balancer and family that lead to nodes: existing, leaving and new ones.
type ruleChange struct{ here, leave, come int }

// ruleChanges counts what leads to the nodes now, and after the batch.
func ruleChanges(x *index.Index, b *batch.Batch) map[lbFamily]ruleChange {
	wanted := map[index.Frontend]bool{} // rules, as names at their load balancers
	all := map[lbFamily]ruleChange{}
	for _, p := range b.Placed() {
		at := lbFamily{p.At.LB, p.IsIPv6()}
		n := all[at]
		n.come += p.NewRules()
		all[at] = n
		for _, r := range p.Rules {
			wanted[index.Frontend{LB: p.At.LB, Name: strings.ToLower(r.Name)}] = true
		}
	}
	for lb, r := range x.Rules() {
		at, leads := leadsToNodes(x, lb, r)
		if !leads {
			continue
		}
		n := all[at]
		n.here++
		if b.Has(naming.Owner(r.Name)) && !wanted[index.Frontend{LB: lb, Name: strings.ToLower(r.Name)}] {
			n.leave++
		}
		all[at] = n
	}
	return all
}

// crowded are the load balancers that must not be written before another one that leads to the same nodes.
func crowded(x *index.Index, changes map[lbFamily]ruleChange) map[*index.LoadBalancer]bool {
	full := map[*index.LoadBalancer]bool{}
	for at, n := range changes {
		for sibling, other := range changes {
			same := sibling.lb != at.lb && nodesBehind(x, sibling) == nodesBehind(x, at)
			if same && n.come > 0 && other.leave > 0 && other.here+n.here-n.leave+n.come > mostRulesPerNode {
				full[at.lb] = true
			}
		}
	}
	return full
}
