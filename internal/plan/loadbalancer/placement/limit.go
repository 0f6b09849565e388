package placement

import (
	"strings"

	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/spec"
)

// mostRulesPerNode is how many rules may lead to one IP configuration of a machine,
// over all load balancers in whose pools it is.
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

// ruleCounts counts the rules at load balancers, and those that lead to nodes.
type ruleCounts struct {
	staying map[*index.LoadBalancer]int // rules that exist and stay
	planned map[*index.LoadBalancer]int // rules that come with the commit
	leading map[lbFamily]int            // rules that lead to the nodes after the commit
}

// countRules counts the rules that stay after the commit, and how many of them lead to the nodes.
func (s *search) countRules() ruleCounts {
	c := ruleCounts{map[*index.LoadBalancer]int{}, map[*index.LoadBalancer]int{}, map[lbFamily]int{}}
	for lb, r := range s.Rules() {
		if !s.keepsRule(lb, r.Name) {
			continue
		}
		c.staying[lb]++
		if at, leads := leadsToNodes(s.Index, lb, r); leads {
			c.leading[nodesBehind(s.Index, at)]++
		}
	}
	return c
}

// leadsToNodes reports whether a rule leads to nodes, and in which family.
func leadsToNodes(x *index.Index, lb *index.LoadBalancer, r index.Rule) (lbFamily, bool) {
	ref := r.Properties.BackendAddressPool
	if ref == nil || !x.Config.LeadsToNodes(ref.ID.Name()) {
		return lbFamily{}, false
	}
	return lbFamily{lb, cluster.HasSuffix(ref.ID.Name(), cluster.SuffixIPv6)}, true
}

func (s *search) keepsRule(lb *index.LoadBalancer, name string) bool {
	owner := naming.Owner(name)
	w, live := s.specs[owner]
	if live && owner != "" && w.Internal != lb.Internal {
		return false
	}
	return s.stays(index.Use{Name: name, Owner: owner})
}

func (c ruleCounts) at(lb *index.LoadBalancer) int { return c.staying[lb] + c.planned[lb] }

// hasRoom reports whether Azure takes all new rules of a Service at a load balancer.
func (s *search) hasRoom(w *spec.Spec, lb *index.LoadBalancer, ipv6 bool) bool {
	n := newRules(w, lb, ipv6)
	return n == 0 || s.rules.leading[nodesBehind(s.Index, lbFamily{lb, ipv6})]+n <= mostRulesPerNode
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
	wrong.Refuse(w.Service.Key(), problem.Limit,
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
