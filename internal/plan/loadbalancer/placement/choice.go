package placement

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/spec"
)

// choose finds the load balancer of a Service: the one that is best for it, unless it
// would take an address there from a frontend that has to stay.
func (s *search) choose(w *spec.Spec, wrong *problem.List) *index.LoadBalancer {
	to := s.best(w, wrong)
	if wrong.Blocking() {
		return to
	}
	for _, a := range w.Addresses {
		at, moves := s.movesFrom(w, a, to)
		if !moves {
			continue
		}
		if by, held := s.holder(w, at, to); held {
			s.refuseMove(w, at, to, by, wrong)
			return at.LB
		}
	}
	return to
}

// best finds the load balancer where a Service is, unless its labels or annotations lead elsewhere.
func (s *search) best(w *spec.Spec, wrong *problem.List) *index.LoadBalancer {
	first := s.Configured(0, w.Internal) // for a Service that is refused, too
	if len(s.Config.Balancers) == 0 {
		return first
	}
	current := s.current(w)
	eligible := s.eligible(w, current, wrong)
	if at := s.pinnedTo(w); at != nil {
		if len(eligible) > 0 && !slices.Contains(eligible, at) {
			wrong.Refuse(w.Key(), problem.Choice,
				"its address is at load balancer %s, which may not serve it, allowed are %s", at.ID.Name(), s.names(eligible))
		}
		return at
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
		s.names(eligible), most)
	return first
}

// roomiest is, in this order: a load balancer that exists without rules, the first
// that does not exist yet, the one with the fewest rules; nil when all are full. Rules that
// go with the commit do not count: the next plan would choose otherwise.
func (s *search) roomiest(w *spec.Spec, eligible []*index.LoadBalancer) *index.LoadBalancer {
	limit := s.Config.MaximumRules
	fit := slices.DeleteFunc(s.withIPv4(w, eligible), func(lb *index.LoadBalancer) bool {
		return limit > 0 && s.rules[lb] >= limit ||
			slices.ContainsFunc(w.Addresses, func(a spec.Address) bool { return !s.hasRoom(w, lb, a.IsIPv6()) })
	})
	if len(fit) == 0 {
		return nil
	}
	rank := func(lb *index.LoadBalancer) int {
		if rules := s.rules[lb]; rules > 0 || !lb.Exists {
			return rules
		}
		return -1
	}
	return slices.MinFunc(fit, func(a, b *index.LoadBalancer) int { return rank(a) - rank(b) })
}

// withIPv4 are, for an IPv6-only Service, the load balancers that have IPv4 after the commit: Azure would
// refuse it elsewhere. Without any, all remain.
func (s *search) withIPv4(w *spec.Spec, eligible []*index.LoadBalancer) []*index.LoadBalancer {
	all := slices.Clone(eligible)
	with := slices.DeleteFunc(slices.Clone(eligible), func(lb *index.LoadBalancer) bool { return !s.ipv4[lb] })
	if !w.IsIPv6Only() || len(with) == 0 {
		return all
	}
	return with
}

// current is the load balancer of the kind that a Service wants, in the entry of the configuration where it
// is: with a frontend of that kind, with another frontend, or with rules at one that it shares. It is nil for
// a Service that is nowhere.
func (s *search) current(w *spec.Spec) *index.LoadBalancer {
	found := -1
	for _, at := range s.FrontendsOf(w.Owner) {
		if at.LB.Entry >= 0 && (found < 0 || at.LB.Internal == w.Internal) {
			found = at.LB.Entry
		}
	}
	for _, lb := range s.LoadBalancers {
		if found < 0 && len(lb.RulesOf[w.Owner]) > 0 {
			found = lb.Entry
		}
	}
	if found < 0 {
		return nil
	}
	return s.Configured(found, w.Internal)
}

// pinnedTo is the load balancer that has the address that a Service names, nil for none.
func (s *search) pinnedTo(w *spec.Spec) *index.LoadBalancer {
	for _, a := range w.Addresses {
		t, ok := s.target(w, a)
		if !ok || !a.Given() || t.key == "" {
			continue
		}
		if at, exists := s.at[t.key]; exists && at.LB.Entry >= 0 && at.LB.Internal == w.Internal && at.Owner() != w.Owner {
			return at.LB
		}
	}
	return nil
}

// names are the names of load balancers in the configuration.
func (s *search) names(of []*index.LoadBalancer) string {
	var names []string
	for _, lb := range of {
		names = append(names, s.Config.Entries()[lb.Entry].Name)
	}
	return strings.Join(names, ", ")
}

// eligible are the load balancers that may serve a Service: of those, if any, for which a selector asks.
func (s *search) eligible(w *spec.Spec, current *index.LoadBalancer, wrong *problem.List) []*index.LoadBalancer {
	asked := w.Service.LoadBalancersAsked()
	if len(asked) > 0 && slices.ContainsFunc(w.Addresses, spec.Address.Given) {
		wrong.Refuse(w.Key(), problem.Choice,
			"annotation %s and an address or public IP of its own are both set, allowed is one of them", key.Balancers.Name)
		return nil
	}
	var some, chosen []*index.LoadBalancer
	var why []string
	for i, e := range s.Config.Entries() {
		lb := s.Configured(i, w.Internal)
		reason, selected := rejects(s.Index, e, w, asked, lb == current)
		if reason != "" {
			why = append(why, e.Name+" "+reason)
			continue
		}
		some = append(some, lb)
		if selected {
			chosen = append(chosen, lb)
		}
	}
	if len(chosen) > 0 {
		return chosen
	}
	if len(some) == 0 {
		said := ""
		if len(asked) > 0 {
			said = fmt.Sprintf("annotation %s: %q: ", key.Balancers.Name, strings.Join(asked, ", "))
		}
		wrong.Refuse(w.Key(), problem.Choice,
			"%sno load balancer may serve it: %s; allowed is a Service that the annotation %s, its labels and its namespace's lead to one",
			said, strings.Join(why, ", "), key.Balancers.Name)
	}
	return some
}

// rejects says why a load balancer may not serve a Service, "" when it may, and whether a selector asks for it.
func rejects(x *index.Index, e cluster.Balancer, w *spec.Spec, asked []string, current bool) (reason string, selected bool) {
	if len(asked) > 0 && !slices.Contains(asked, strings.ToLower(e.Name)) {
		return "is not among those that it names", false
	}
	if !e.AllowPlacement && !current {
		return "takes no further Services", false
	}
	byService := cluster.Selects(e.ServiceSelector, w.Service.Labels)
	byNamespace := cluster.Selects(e.NamespaceSelector, x.Namespaces[w.Service.Namespace])
	switch cluster.No {
	case byService:
		return "wants other labels", false
	case byNamespace:
		return "wants another namespace", false
	}
	return "", byService == cluster.Yes || byNamespace == cluster.Yes
}

// movesFrom is the frontend of a Service at another load balancer of the kind that has the
// address it wants to have at this one.
//
// A public IP, or a private address, can be at one load balancer only. So a Service that goes to another one of the
// same kind takes its frontend away from the first, and Azure lets no frontend go that a rule of another Service
// refers to. The Service would lose its rules at the first one and find the address taken at the second.
func (s *search) movesFrom(w *spec.Spec, a spec.Address, to *index.LoadBalancer) (index.Frontend, bool) {
	for _, at := range s.FrontendsOf(w.Owner) {
		if at.LB == to || at.LB.Internal != w.Internal {
			continue
		}
		t, _ := s.target(w, a)
		if (batch.Placement{Address: a, IP: t.PublicIP, SubnetID: s.Config.SubnetID(w.Subnet)}).Keeps(at.State()) {
			return at, true
		}
	}
	return index.Frontend{}, false
}

// holder is what keeps the frontend of a Service that would leave for another load
// balancer: something that uses it after the commit.
func (s *search) holder(w *spec.Spec, at index.Frontend, to *index.LoadBalancer) (index.Use, bool) {
	for _, u := range s.taken[at.Key()] {
		if u.Owner != w.Owner {
			return u, true
		}
	}
	for _, u := range s.sharers(at) {
		if !s.follows(u.Owner, at.LB, to) {
			return u, true
		}
	}
	return index.Use{}, false
}

// follows reports whether a Service that shares a frontend has to go where the frontend's owner
// goes: it is of the commit, may be served there and no more where it is.
func (s *search) follows(owner string, from, to *index.LoadBalancer) bool {
	w, live := s.specs[owner]
	if !live || len(s.Config.Balancers) == 0 {
		return live
	}
	may := s.eligible(w, s.current(w), &problem.List{})
	isIn := func(lb *index.LoadBalancer) bool {
		return slices.ContainsFunc(may, func(other *index.LoadBalancer) bool { return other.Entry == lb.Entry })
	}
	return isIn(to) && !isIn(from)
}

// refuseMove refuses a Service that has asked for a move which is not possible. Other Services are served
// where they are, with a warning.
func (s *search) refuseMove(w *spec.Spec, at index.Frontend, to *index.LoadBalancer, by index.Use, wrong *problem.List) {
	owner := s.NameOf(by, at.State().PublicIPAddress.To())
	asked := w.Service.LoadBalancersAsked()
	if at.LB.Entry >= 0 && len(asked) > 0 {
		if has := s.names([]*index.LoadBalancer{at.LB}); !slices.Contains(asked, strings.ToLower(has)) {
			wrong.Refuse(w.Key(), problem.Conflict,
				"annotation %s: %q: frontend %s cannot leave load balancer %s while the %s %q of %s uses it, allowed is %q: "+
					"name that, remove the annotation, or first remove what uses the frontend",
				key.Balancers.Name, strings.Join(asked, ", "), at.Name, at.LB.ID.Name(), by.What, by.Name, owner, has)
			return
		}
	}
	wrong.Warn(w.Key(), problem.Conflict,
		"frontend %s cannot go from load balancer %s to %s while the %s %q of %s uses it: the Service is served at %s until "+
			"that goes, or may go there, too",
		at.Name, at.LB.ID.Name(), to.ID.Name(), by.What, by.Name, owner, at.LB.ID.Name())
}
