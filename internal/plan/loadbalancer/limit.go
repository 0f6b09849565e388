package loadbalancer

import (
	"slices"
	"strings"
)

// mostRulesPerNode is how many rules may lead to one IP configuration of a machine,
// over all load balancers in whose pools it is.
const mostRulesPerNode = 300

// ruleGroup is what leads to the same IP configurations: an external load balancer and
// its internal sibling, in one family.
type ruleGroup struct {
	entry  int    // of the configuration
	single string // id key of a load balancer that is not configured any more
	six    bool
}

func (s *side) group(six bool) ruleGroup {
	if s.entry < 0 {
		return ruleGroup{s.entry, s.id.Key(), six}
	}
	return ruleGroup{entry: s.entry, six: six}
}

// countRules counts the rules that stay, whatever comes, and those of them that lead to
// the nodes: all but those that the commit's Services give up.
func (s *search) countRules() {
	s.leading, s.staying = map[ruleGroup]int{}, map[*side]int{}
	for _, side := range s.sides {
		for _, r := range side.lb.Properties.LoadBalancingRules {
			if !s.keepsRule(side, r.Name) {
				continue
			}
			s.staying[side]++
			if ref := r.Properties.BackendAddressPool; ref != nil && s.leadsToNodes(ref.ID.Name()) {
				s.leading[side.group(hasSuffixFold(ref.ID.Name(), suffixIPv6))]++
			}
		}
	}
}

// leadsToNodes reports whether nodes are in a pool of this name: in the cluster's own
// ones, and in those of Services of policy Local where there are several load balancers.
func (f *facts) leadsToNodes(pool string) bool {
	return f.Config.isOwnPool(pool) || len(f.Config.Balancers) > 0
}

// keepsRule reports whether a rule is there after the commit.
func (s *search) keepsRule(side *side, name string) bool {
	owner := ownerBase(name)
	w, live := s.wishes[owner]
	switch {
	case s.gone[owner]:
		return false
	case !live || owner == "":
		return true
	}
	return w.internal == side.internal && s.stays(use{name: name, owner: owner})
}

// comes is how many rules a Service would have at a load balancer that are not there.
func (w wish) comes(to *side, six bool) int {
	n := 0
	for _, a := range w.addresses {
		if a.is6() == six {
			n += a.newRules(to)
		}
	}
	return n
}

// hasRoom reports whether Azure takes all rules of a Service at a load balancer. Rules
// that are there are no question.
func (s *search) hasRoom(w wish, at *side, six bool) bool {
	n := w.comes(at, six)
	return n == 0 || s.leading[at.group(six)]+n <= mostRulesPerNode
}

// refuseTooMany keeps out a Service whose rules are more than a node may have.
func (s *search) refuseTooMany(w wish, p place, wrong *problems) {
	if wrong.blocking() || s.hasRoom(w, p.side, p.is6()) {
		return
	}
	with := "a node"
	if p.is6() {
		with = "the IPv6 address of a node"
	}
	wrong.refuse(w.service.Key(), ReasonLimit,
		"with %d more rules of load balancer %s and its sibling, too many would lead to %s, allowed by Azure are %d: take ports or Services away, or spread the Services over several load balancers (multipleStandardLoadBalancerConfigurations)",
		w.comes(p.side, p.is6()), strings.TrimSuffix(p.side.id.Name(), internalSuffix), with, mostRulesPerNode)
}

// lane is what leads to the nodes of one load balancer, in one family.
type lane struct {
	side *side
	six  bool
}

// rulesOf counts the rules of a lane: those that are there, leave and come.
type rulesOf struct{ here, leave, come int }

// lanes counts what leads to the nodes now, and will when the batch is done.
func (f *facts) lanes(b batch) map[lane]rulesOf {
	wanted, gone, live := map[*side]map[string]bool{}, map[string]bool{}, map[string]bool{}
	all := map[lane]rulesOf{}
	for _, w := range b.gone {
		gone[strings.ToLower(w.base)] = true
	}
	for _, w := range b.live {
		live[strings.ToLower(w.base)] = true
		for _, p := range w.places {
			if wanted[p.side] == nil {
				wanted[p.side] = map[string]bool{}
			}
			n := all[lane{p.side, p.is6()}]
			n.come += p.newRules()
			all[lane{p.side, p.is6()}] = n
			for _, r := range p.rules {
				wanted[p.side][strings.ToLower(r.name)] = true
			}
		}
	}
	for _, side := range f.sides {
		for _, r := range side.lb.Properties.LoadBalancingRules {
			ref, owner := r.Properties.BackendAddressPool, ownerBase(r.Name)
			if ref == nil || !f.leadsToNodes(ref.ID.Name()) {
				continue
			}
			at := lane{side, hasSuffixFold(ref.ID.Name(), suffixIPv6)}
			n := all[at]
			n.here++
			if gone[owner] || live[owner] && !wanted[side][strings.ToLower(r.Name)] {
				n.leave++
			}
			all[at] = n
		}
	}
	return all
}

// newRules is how many of a place's rules are not at its load balancer yet.
func (p place) newRules() int { return p.address.newRules(p.side) }

// newRules is how many of an address's rules a load balancer does not have yet.
func (a address) newRules(at *side) int {
	n := 0
	for _, r := range a.rules {
		if !at.rules[strings.ToLower(r.name)] {
			n++
		}
	}
	return n
}

// makeRoom takes places out of this round that Azure has room for only when the other load
// balancer of the same nodes has been written: what leaves that leaves in this round.
func (f *facts) makeRoom(b *batch) {
	full := f.fullSides(*b)
	if len(full) == 0 {
		return
	}
	later := map[string]bool{} // spots, by key, at which a frontend comes: those who share it wait, too
	for _, w := range b.live {
		for _, p := range w.places {
			if _, exists := p.spot().frontend(); !exists && p.own && full[p.side] && f.arrives(w, p) {
				later[p.spot().key()] = true
			}
		}
	}
	b.holdBack(func(w wish, p place) bool { return later[p.spot().key()] || full[p.side] && f.arrives(w, p) }, func(w wish, p place) string {
		return "rules of " + w.service.Key() + " come to load balancer " + p.side.id.Name() + " when others have left the nodes"
	})
}

// fullSides are the load balancers that must not be written before another one that leads to
// the same nodes.
func (f *facts) fullSides(b batch) map[*side]bool {
	lanes := f.lanes(b)
	full := map[*side]bool{}
	for at, n := range lanes {
		for beside, other := range lanes {
			same := beside.side != at.side && beside.side.group(beside.six) == at.side.group(at.six)
			if same && n.come > 0 && other.leave > 0 && other.here+n.here-n.leave+n.come > mostRulesPerNode {
				full[at.side] = true
			}
		}
	}
	return full
}

// arrives reports whether all rules of a place are new, and nothing would be taken from the
// Service if they came later: who is there already keeps his frontend, and with it his address and
// his private link service.
func (f *facts) arrives(w wish, p place) bool {
	base := strings.ToLower(w.base)
	if len(p.rules) == 0 || p.newRules() < len(p.rules) {
		return false
	}
	_, exists := p.spot().frontend()
	switch {
	case slices.ContainsFunc(p.side.uses[strings.ToLower(p.frontend)], func(u use) bool { return u.owner == base }):
		return false
	case !exists || !p.own:
		return true
	}
	// He may have left the frontend to a load balancer that is not to be deleted.
	return slices.ContainsFunc(f.sides, func(s *side) bool { return s != p.side && len(s.ruled[base]) > 0 })
}

// families are those of a Service's addresses, IPv6 as true.
func (w wish) families() []bool {
	var six []bool
	for _, a := range w.addresses {
		if !slices.Contains(six, a.is6()) {
			six = append(six, a.is6())
		}
	}
	return six
}
