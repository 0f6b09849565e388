package placement

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/spec"
)

// choose finds the load balancer of a Service. It is the best one, unless the Service would take an address there from a
// frontend that has to stay. Then a Service that has asked for the move is refused. Any other Service is served where it
// is, with a warning.
func (s *search) choose(w batch.Served, wrong *problem.List) *index.LoadBalancer {
	to := s.best(w, wrong)
	if wrong.Blocking() {
		return to
	}
	for _, p := range w.Placements {
		at, by := s.holder(p, to)
		if by == "" {
			continue
		}
		asked := w.Service.LoadBalancersAsked()
		if at.LB.Entry >= 0 && len(asked) > 0 && !slices.Contains(asked, strings.ToLower(s.names(at.LB))) {
			wrong.Refuse(w.Key(), problem.Conflict,
				"annotation %s: %q: frontend %s cannot leave load balancer %s while %s uses it, allowed is %q: "+
					"name that, remove the annotation, or first remove what uses the frontend",
				key.Balancers.Name, strings.Join(asked, ", "), at.Name, at.LB.ID.Name(), by, s.names(at.LB))
		} else {
			wrong.Warn(w.Key(), problem.Conflict,
				"frontend %s cannot go from load balancer %s to %s while %s uses it: the Service is served at %s until "+
					"that goes, or may go there, too",
				at.Name, at.LB.ID.Name(), to.ID.Name(), by, at.LB.ID.Name())
		}
		return at.LB
	}
	return to
}

// best finds the load balancer where a Service is, unless its labels or annotations lead elsewhere.
func (s *search) best(w batch.Served, wrong *problem.List) *index.LoadBalancer {
	first := s.Configured(0, w.Internal) // for a Service that is refused, too
	if len(s.Config.Balancers) == 0 {
		return first
	}
	eligible, current := s.eligible(w, wrong)
	for _, p := range w.Placements {
		at, exists := s.at[p.AddressKey()]
		if !exists || !p.Given() || at.LB.Entry < 0 || at.LB.Internal != w.Internal || at.Owner() == w.Owner {
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

// roomiest returns the load balancer with the most room, nil when all are full. One that exists without rules comes
// first, then the first that does not exist yet, then the one with the fewest rules. Rules that go with the commit do not
// count: else the next plan would choose differently.
//
// An IPv6-only Service goes to a load balancer that has IPv4 after the commit, if there is one: Azure would refuse
// it elsewhere.
func (s *search) roomiest(w batch.Served, eligible []*index.LoadBalancer) *index.LoadBalancer {
	needsIPv4 := w.IsIPv6Only() && slices.ContainsFunc(eligible, func(lb *index.LoadBalancer) bool { return s.ipv4[lb] })
	limit := s.Config.MaximumRules
	fit := slices.DeleteFunc(slices.Clone(eligible), func(lb *index.LoadBalancer) bool {
		return needsIPv4 && !s.ipv4[lb] || limit > 0 && s.rules[lb] >= limit ||
			slices.ContainsFunc(w.Placements, func(p batch.Placement) bool { return !s.hasRoom(p.Address, lb) })
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

// current returns the load balancer of the kind that a Service wants, in the entry of the configuration where it is. A
// frontend of its own of that kind decides, else another frontend of its own, else one that it shares. It is nil for a
// Service that is nowhere.
func (s *search) current(w batch.Served) *index.LoadBalancer {
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

// eligible returns the load balancers that may serve a Service. If selectors lead the Service to some of them, it returns
// only these. The result current is the load balancer where the Service is.
func (s *search) eligible(w batch.Served, wrong *problem.List) (some []*index.LoadBalancer, current *index.LoadBalancer) {
	asked := w.Service.LoadBalancersAsked()
	said := ""
	if len(asked) > 0 {
		said = fmt.Sprintf("annotation %s: %q: ", key.Balancers.Name, strings.Join(asked, ", "))
		if slices.ContainsFunc(w.Placements, func(p batch.Placement) bool { return p.Given() }) {
			wrong.Refuse(w.Key(), problem.Choice,
				"annotation %s and an address or public IP of its own are both set, allowed is one of them", key.Balancers.Name)
			return nil, nil
		}
	}
	current = s.current(w)
	var chosen []*index.LoadBalancer
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
		return chosen, current
	}
	if len(some) == 0 {
		wrong.Refuse(w.Key(), problem.Choice,
			"%sno load balancer may serve it: %s; allowed is a Service that the annotation %s, its labels and its namespace's lead to one",
			said, strings.Join(why, ", "), key.Balancers.Name)
	}
	return some, current
}

// movesFrom returns the frontend of a Service at another load balancer of the kind that has the address it wants at this
// one. The frontend has no load balancer if there is none.
//
// A public IP, or a private address, can be at one load balancer only. So a Service that goes to another one of the same
// kind takes its frontend away from the first. Azure deletes no frontend to which a rule of another Service refers. The
// Service would lose its rules at the first one and find the address taken at the second.
func (s *search) movesFrom(p batch.Placement, to *index.LoadBalancer) index.Frontend {
	for _, at := range s.FrontendsOf(p.For.Owner) {
		if at.LB != to && at.LB.Internal == p.For.Internal && p.Keeps(at.State()) {
			return at
		}
	}
	return index.Frontend{}
}

// holder returns what keeps the frontend of a Service that would leave for another load balancer, "" for nothing.
// Anything else that uses the frontend after the commit keeps it. A Service of the commit that shares it must follow if
// it may be served there and no longer where it is.
func (s *search) holder(p batch.Placement, to *index.LoadBalancer) (at index.Frontend, by string) {
	if at = s.movesFrom(p, to); at.LB == nil {
		return at, ""
	}
	publicIP := at.State().PublicIPAddress.To()
	for _, u := range s.taken[at.Key()] {
		if u.Owner != p.For.Owner {
			return at, s.Describe(u, publicIP)
		}
	}
	for _, u := range s.sharers(at) {
		other := s.byOwner[u.Owner]
		if other != nil && len(s.Config.Balancers) == 0 {
			continue
		}
		var may []*index.LoadBalancer
		if other != nil {
			may, _ = s.eligible(*other, &problem.List{})
		}
		isIn := func(entry int) bool {
			return slices.ContainsFunc(may, func(lb *index.LoadBalancer) bool { return lb.Entry == entry })
		}
		if !isIn(to.Entry) || isIn(at.LB.Entry) {
			return at, s.Describe(u, publicIP)
		}
	}
	return at, ""
}

// deferForRoom defers placements for which Azure has room only after the other load balancer of the same
// nodes is written.
func deferForRoom(x *index.Index, b *batch.Batch) {
	full := crowded(x, b)
	if len(full) == 0 {
		return
	}
	claims := b.Claims()
	b.Defer(func(p batch.Placement) string {
		owner := claims[p.At.Key()] // if its frontend comes later, Services that share it wait, too
		ownerWaits := owner.Own && !p.At.Exists() && arrives(x, owner)
		if !full[p.At.LB] || !ownerWaits && !arrives(x, p) {
			return ""
		}
		b.Holds[p.IP.Key()] = true
		return "rules of " + p.For.Key() + " come to load balancer " + p.At.LB.ID.Name() + " when others have left the nodes"
	})
}

// crowded are the load balancers that must not be written before another one that leads to the same nodes.
func crowded(x *index.Index, b *batch.Batch) map[*index.LoadBalancer]bool {
	here, leave, come := map[lbFamily]int{}, map[lbFamily]int{}, map[lbFamily]int{} // rules
	wanted := map[index.Frontend]bool{}                                             // rules, as names at their load balancers
	for p := range b.Placed() {
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

// arrives reports whether all rules of a placement are new and the Service loses nothing by waiting. A Service that is
// there keeps its frontend, address and private link service, so it does not wait.
func arrives(x *index.Index, p batch.Placement) bool {
	owner := p.For.Owner
	if len(p.Rules) == 0 || p.NewRules() < len(p.Rules) || p.At.UsedBy(owner) {
		return false
	}
	// The Service may have left the frontend to a load balancer that is not to be deleted.
	return !p.At.Exists() || !p.Own ||
		slices.ContainsFunc(x.LoadBalancers, func(lb *index.LoadBalancer) bool { return lb != p.At.LB && len(lb.RulesOf[owner]) > 0 })
}

// mostRulesPerNode is how many rules may lead to one IP configuration of a machine,
// over all load balancers that have it in a pool.
const mostRulesPerNode = 300

// lbFamily is the rules of one family at a load balancer.
type lbFamily struct {
	lb   *index.LoadBalancer
	ipv6 bool
}

// nodesBehind tells to which IP configurations of nodes rules lead. In one family, an external load balancer and its
// internal sibling lead to the same ones.
func nodesBehind(x *index.Index, at lbFamily) lbFamily {
	if at.lb.Entry < 0 { // it is configured no more
		return at
	}
	return lbFamily{x.Configured(at.lb.Entry, false), at.ipv6}
}

func leadsToNodes(x *index.Index, lb *index.LoadBalancer, r index.Rule) (lbFamily, bool) {
	pool := r.Properties.BackendAddressPool.To().Name()
	leads := len(x.Config.Balancers) > 0 || x.Config.IsOwnPool(pool) // of several load balancers, pools of policy Local, too
	return lbFamily{lb, cluster.HasSuffix(pool, cluster.SuffixIPv6)}, pool != "" && leads
}

// hasRoom reports whether Azure takes all new rules of an address at a load balancer.
func (s *search) hasRoom(a spec.Address, lb *index.LoadBalancer) bool {
	n := batch.NewRules(a, lb)
	return n == 0 || s.leading[nodesBehind(s.Index, lbFamily{lb, a.IsIPv6()})]+n <= mostRulesPerNode
}
