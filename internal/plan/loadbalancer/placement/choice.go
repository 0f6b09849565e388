package placement

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/problem"
)

// choose finds the load balancer of a Service: the one that is best for it, unless it would take an address there
// from a frontend that has to stay. Then a Service that has asked for the move is refused, and another one is served
// where it is, with a warning.
func (s *search) choose(w *service, wrong *problem.List) *index.LoadBalancer {
	to := s.best(w, wrong)
	if wrong.Blocking() {
		return to
	}
	for _, r := range w.requests {
		at, moves := s.movesFrom(w, r, to)
		if !moves {
			continue
		}
		by, isHeld := s.holder(w, at, to)
		if !isHeld {
			continue
		}
		owner := s.NameOf(by, at.State().PublicIPAddress.To())
		asked := w.Service.LoadBalancersAsked()
		if at.LB.Entry >= 0 && len(asked) > 0 && !slices.Contains(asked, strings.ToLower(s.names(at.LB))) {
			wrong.Refuse(w.Key(), problem.Conflict,
				"annotation %s: %q: frontend %s cannot leave load balancer %s while the %s %q of %s uses it, allowed is %q: "+
					"name that, remove the annotation, or first remove what uses the frontend",
				key.Balancers.Name, strings.Join(asked, ", "), at.Name, at.LB.ID.Name(), by.What, by.Name, owner, s.names(at.LB))
			return at.LB
		}
		wrong.Warn(w.Key(), problem.Conflict,
			"frontend %s cannot go from load balancer %s to %s while the %s %q of %s uses it: the Service is served at %s until "+
				"that goes, or may go there, too",
			at.Name, at.LB.ID.Name(), to.ID.Name(), by.What, by.Name, owner, at.LB.ID.Name())
		return at.LB
	}
	return to
}

// best finds the load balancer where a Service is, unless its labels or annotations lead elsewhere.
func (s *search) best(w *service, wrong *problem.List) *index.LoadBalancer {
	first := s.Configured(0, w.Internal) // for a Service that is refused, too
	if len(s.Config.Balancers) == 0 {
		return first
	}
	current := s.current(w)
	eligible := s.eligible(w, current, wrong)
	for _, r := range w.requests {
		at, exists := s.at[r.key]
		if !exists || !r.Given() || at.LB.Entry < 0 || at.LB.Internal != w.Internal || at.Owner() == w.Owner {
			continue
		}
		if len(eligible) > 0 && !slices.Contains(eligible, at.LB) {
			wrong.Refuse(w.Key(), problem.Choice,
				"its address is at load balancer %s, which may not serve it, allowed are %s", at.LB.ID.Name(), s.names(eligible...))
		}
		return at.LB
	}
	if len(eligible) == 0 {
		return first
	}
	if slices.Contains(eligible, current) {
		return current
	}
	if best := s.roomiest(w, eligible); best != nil {
		return best
	}
	most := mostRulesPerNode
	if limit := s.Config.MaximumRules; limit > 0 {
		most = min(limit, most)
	}
	wrong.Refuse(w.Key(), problem.Limit,
		"load balancers %s have as many rules as are allowed (%d each): take Services away, or configure another load balancer",
		s.names(eligible...), most)
	return first
}

// roomiest is, in this order: a load balancer that exists without rules, the first
// that does not exist yet, the one with the fewest rules; nil when all are full. Rules that
// go with the commit do not count: the next plan would choose otherwise.
//
// An IPv6-only Service goes to a load balancer that has IPv4 after the commit, if there is one: Azure would refuse
// it elsewhere.
func (s *search) roomiest(w *service, eligible []*index.LoadBalancer) *index.LoadBalancer {
	needsIPv4 := w.IsIPv6Only() && slices.ContainsFunc(eligible, func(lb *index.LoadBalancer) bool { return s.ipv4[lb] })
	limit := s.Config.MaximumRules
	fit := slices.DeleteFunc(slices.Clone(eligible), func(lb *index.LoadBalancer) bool {
		return needsIPv4 && !s.ipv4[lb] || limit > 0 && s.rules[lb] >= limit ||
			slices.ContainsFunc(w.requests, func(r request) bool { return !s.hasRoom(r.Address, lb) })
	})
	if len(fit) == 0 {
		return nil
	}
	rank := func(lb *index.LoadBalancer) int {
		if s.rules[lb] == 0 && lb.Exists {
			return -1
		}
		return s.rules[lb]
	}
	return slices.MinFunc(fit, func(a, b *index.LoadBalancer) int { return rank(a) - rank(b) })
}

// current is the load balancer of the kind that a Service wants, in the entry of the configuration where it
// is: with a frontend of that kind, with another frontend, or with rules at one that it shares. It is nil for
// a Service that is nowhere.
func (s *search) current(w *service) *index.LoadBalancer {
	found := -1
	for _, at := range s.FrontendsServing(w.Owner) {
		if at.LB.Entry >= 0 && (found < 0 || at.LB.Internal == w.Internal && at.Owner() == w.Owner) {
			found = at.LB.Entry
		}
	}
	if found < 0 {
		return nil
	}
	return s.Configured(found, w.Internal)
}

func (s *search) names(of ...*index.LoadBalancer) string {
	var names []string
	for _, lb := range of {
		names = append(names, s.Config.Entries()[lb.Entry].Name)
	}
	return strings.Join(names, ", ")
}

// eligible are the load balancers that may serve a Service: of those, if any, for which a selector asks.
func (s *search) eligible(w *service, current *index.LoadBalancer, wrong *problem.List) []*index.LoadBalancer {
	asked := w.Service.LoadBalancersAsked()
	said := ""
	if len(asked) > 0 {
		said = fmt.Sprintf("annotation %s: %q: ", key.Balancers.Name, strings.Join(asked, ", "))
		if slices.ContainsFunc(w.requests, request.Given) {
			wrong.Refuse(w.Key(), problem.Choice,
				"annotation %s and an address or public IP of its own are both set, allowed is one of them", key.Balancers.Name)
			return nil
		}
	}
	var some, chosen []*index.LoadBalancer
	var why []string
	for i, e := range s.Config.Entries() {
		lb := s.Configured(i, w.Internal)
		byService, otherLabels := cluster.Selects(e.ServiceSelector, w.Service.Labels)
		byNamespace, otherNamespace := cluster.Selects(e.NamespaceSelector, s.Namespaces[w.Service.Namespace])
		switch {
		case len(asked) > 0 && !slices.Contains(asked, strings.ToLower(e.Name)):
			why = append(why, e.Name+" is not among those that it names")
		case !e.AllowPlacement && lb != current:
			why = append(why, e.Name+" takes no further Services")
		case otherLabels:
			why = append(why, e.Name+" wants other labels")
		case otherNamespace:
			why = append(why, e.Name+" wants another namespace")
		case byService || byNamespace:
			chosen = append(chosen, lb)
		default:
			some = append(some, lb)
		}
	}
	if len(chosen) > 0 {
		return chosen
	}
	if len(some) == 0 {
		wrong.Refuse(w.Key(), problem.Choice,
			"%sno load balancer may serve it: %s; allowed is a Service that the annotation %s, its labels and its namespace's lead to one",
			said, strings.Join(why, ", "), key.Balancers.Name)
	}
	return some
}

// movesFrom is the frontend of a Service at another load balancer of the kind that has the
// address it wants to have at this one.
//
// A public IP, or a private address, can be at one load balancer only. So a Service that goes to another one of the
// same kind takes its frontend away from the first, and Azure lets no frontend go that a rule of another Service
// refers to. The Service would lose its rules at the first one and find the address taken at the second.
func (s *search) movesFrom(w *service, r request, to *index.LoadBalancer) (index.Frontend, bool) {
	for _, at := range s.FrontendsOf(w.Owner) {
		if at.LB != to && at.LB.Internal == w.Internal && r.Keeps(at.State()) {
			return at, true
		}
	}
	return index.Frontend{}, false
}

// holder is what keeps the frontend of a Service that would leave for another load balancer: something that uses it
// after the commit. A Service of the commit that shares it has to follow where it may be served there and no more
// where it is.
func (s *search) holder(w *service, at index.Frontend, to *index.LoadBalancer) (by index.Use, isHeld bool) {
	for _, u := range s.taken[at.Key()] {
		if u.Owner != w.Owner {
			return u, true
		}
	}
	for _, u := range s.sharers(at) {
		other := s.byOwner[u.Owner]
		if other == nil {
			return u, true
		}
		if len(s.Config.Balancers) == 0 {
			continue
		}
		may := s.eligible(other, s.current(other), &problem.List{})
		isIn := func(entry int) bool {
			return slices.ContainsFunc(may, func(lb *index.LoadBalancer) bool { return lb.Entry == entry })
		}
		if !isIn(to.Entry) || isIn(at.LB.Entry) {
			return u, true
		}
	}
	return index.Use{}, false
}
