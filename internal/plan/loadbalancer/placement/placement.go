// Package placement finds where the addresses of Services are served: at which load balancer, at which frontend and
// with which public IP. It refuses a Service that Azure, or another Service, leaves no place for. Layer L1.
package placement

import (
	"cmp"
	"net/netip"
	"slices"

	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/admission"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/privatelink"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
)

// Find reads the Services of a commit in the order of their keys and places them. A Service with a problem is left out,
// and thereby left as it is. A key may be there twice: a Service that is gone and its successor of the same name. The map
// refused holds the Services, by UID, that earlier attempts of the decision refused.
func Find(x *index.Index, refused map[string]bool) (*batch.Batch, problem.List) {
	var found problem.List
	services := slices.SortedFunc(slices.Values(x.Services), func(a, b spec.Service) int {
		return cmp.Or(cmp.Compare(a.Key(), b.Key()), cmp.Compare(a.UID, b.UID))
	})
	var live, gone []batch.Served
	for _, of := range services {
		if _, no := refused[string(of.UID)]; no {
			continue
		}
		if of.Gone {
			if s := spec.Outline(of); admission.CanRead(x, s, &found) {
				gone = append(gone, batch.Served{Spec: s})
			}
			continue
		}
		s, wrong := spec.Read(of, x.Config)
		admission.Check(x, s, &wrong)
		var asked []batch.Placement
		for _, a := range s.Addresses {
			if wrong.Blocking() {
				break
			}
			p, problems := publicip.Asked(x, s, a)
			asked, wrong = append(asked, p), append(wrong, problems...)
		}
		if found = append(found, wrong...); !wrong.Blocking() {
			live = append(live, batch.Served{Spec: s, Placements: asked})
		}
	}
	b := batch.New(place(x, live, gone, &found), gone)
	deferRenewals(x, b)
	deferMoves(x, b)
	deferForRoom(x, b)
	return b, found
}

// deferRenewals defers addresses that need a recreated public IP: the old one is deleted first.
func deferRenewals(x *index.Index, b *batch.Batch) {
	b.Defer(func(p batch.Placement) string {
		if !publicip.IsOutdated(x, p) || len(b.Remaining(p.At)) > 0 {
			return ""
		}
		for other := range b.Placed() {
			if other.For.Key() != p.For.Key() && other.IP.Equal(p.IP) {
				return ""
			}
		}
		return "public IP " + p.IP.Name() + " is recreated with another version or other IP tags [" + p.For.Key() + "]"
	})
}

// deferMoves defers moves between load balancers that would wait for each other. The addresses leave in this round and
// return in the next. With pools of network interfaces it defers every move, because machines leave one load balancer and
// join the other.
func deferMoves(x *index.Index, b *batch.Batch) {
	type wait struct{ then, first *index.LoadBalancer }
	waits := map[wait]bool{}
	later := map[index.Frontend]bool{} // at which a frontend comes: Services that share it wait, too
	for p := range b.Placed() {
		for _, from := range batch.Sources(x, p) {
			later[p.At.Key()] = true
			waits[wait{p.At.LB, from}] = true
		}
	}
	circle := slices.Clone(x.LoadBalancers) // of those that wait for each other
	for range x.LoadBalancers {
		others := slices.Clone(circle)
		circle = slices.DeleteFunc(circle, func(lb *index.LoadBalancer) bool {
			return !slices.ContainsFunc(others, func(other *index.LoadBalancer) bool { return waits[wait{lb, other}] })
		})
	}
	if len(waits) == 0 || x.Config.PoolByIP && len(circle) == 0 {
		return
	}
	b.Defer(func(p batch.Placement) string {
		if !later[p.At.Key()] {
			return ""
		}
		b.Holds[p.IP.Key()] = true
		return "load balancer " + p.At.LB.ID.Name() + " gets the address of " + p.For.Key() + ", which is elsewhere so far"
	})
}

// place finds for each live Service where its addresses are served. A refused Service keeps its frontend;
// then placement restarts without it, as others may have counted on that frontend.
func place(x *index.Index, live, gone []batch.Served, found *problem.List) []batch.Served {
	for {
		s := newSearch(x, live, gone)
		var served []batch.Served
		refused := map[*spec.Spec]bool{}
		for _, w := range s.inTurn(live) {
			var wrong problem.List
			w.Placements = s.placements(w, &wrong)
			s.warnFurther(w, &wrong)
			if *found = append(*found, wrong...); wrong.Blocking() {
				refused[w.Spec] = true
				continue
			}
			for _, p := range w.Placements {
				s.note(p)
			}
			served = append(served, w)
		}
		if len(refused) == 0 {
			slices.SortStableFunc(served, func(a, b batch.Served) int { return cmp.Compare(a.Key(), b.Key()) })
			return served
		}
		live = slices.DeleteFunc(live, func(w batch.Served) bool { return refused[w.Spec] })
	}
}

// search places the live Services of a commit, one after the other. The Services have the placements that they ask for;
// those that are gone ask for none.
type search struct {
	*index.Index
	commit  []batch.Served // live and gone
	byOwner map[string]*batch.Served
	at      map[string]index.Frontend      // where an address is, by its key
	taken   map[index.Frontend][]index.Use // rules that are placed at a frontend, by its key
	ipv4    map[*index.LoadBalancer]bool   // load balancers that have IPv4 after the commit
	pools   map[index.Frontend]string      // keys of the Services that have a pool to themselves, by load balancer and pool
	rules   map[*index.LoadBalancer]int    // after the commit, as far as it is placed
	leading map[lbFamily]int               // those of them that lead to nodes
	links   privatelink.Requests           // placed so far
	coming  map[string][]batch.Placement   // placed so far at a public IP, by its id key
}

func newSearch(x *index.Index, live, gone []batch.Served) *search {
	s := &search{
		Index: x, commit: slices.Concat(live, gone), byOwner: make(map[string]*batch.Served, len(live)+len(gone)),
		at: map[string]index.Frontend{}, taken: map[index.Frontend][]index.Use{}, ipv4: map[*index.LoadBalancer]bool{},
		rules: map[*index.LoadBalancer]int{}, leading: map[lbFamily]int{}, pools: map[index.Frontend]string{},
		coming: map[string][]batch.Placement{}, links: privatelink.Requests{},
	}
	for i, w := range s.commit {
		s.byOwner[w.Owner] = &s.commit[i]
	}
	for at, fe := range x.Frontends() {
		w := s.byOwner[at.Owner()]
		if w == nil && !x.IsIPv6(fe.Properties) {
			s.ipv4[at.LB] = true
		}
		isGivenUp := w != nil && len(s.sharers(at)) == 0 && publicip.GivesUp(x, w.Spec, at)
		if key := index.AddressKey(fe.Properties); key != "" && !isGivenUp {
			s.at[key] = at
		}
	}
	for lb, r := range x.Rules() {
		owner := naming.Owner(r.Name)
		if w := s.byOwner[owner]; w != nil && w.Internal != lb.Internal || !s.stays(owner, r.Name) {
			continue
		}
		s.rules[lb]++
		if at, leads := leadsToNodes(x, lb, r); leads {
			s.leading[nodesBehind(x, at)]++
		}
	}
	return s
}

// inTurn orders the Services for placement: first those that have a frontend of their kind, so that none loses a
// port to a new Service. IPv6-only Services are last: the load balancer needs an IPv4 frontend first. A Service that
// shares an address follows the owner of the address.
func (s *search) inTurn(live []batch.Served) []batch.Served {
	owners := map[string]string{} // of addresses, by their keys
	for _, w := range live {
		for _, p := range w.Placements {
			if key := cmp.Or(p.AddressKey(), s.formerAddress(p)); !p.Given() && key != "" {
				owners[key] = w.Owner
			}
		}
	}
	turn := make(map[*spec.Spec]int, len(live))
	for _, w := range live {
		there := slices.ContainsFunc(s.FrontendsOf(w.Owner), func(f index.Frontend) bool { return f.LB.Internal == w.Internal })
		switch {
		case !there && w.IsIPv6Only():
			turn[w.Spec] = 6
		case !there:
			turn[w.Spec] = 4
		}
		// The owner of an address that the Service names is placed before: it has the frontend already, or is to make it.
		if slices.ContainsFunc(w.Placements, func(p batch.Placement) bool {
			at, exists := s.at[p.AddressKey()]
			owner := owners[p.AddressKey()]
			if exists {
				owner = at.Owner()
			}
			return p.Given() && exists == there && owner != "" && owner != w.Owner
		}) {
			turn[w.Spec]++
		}
	}
	return slices.SortedStableFunc(slices.Values(live), func(a, b batch.Served) int { return turn[a.Spec] - turn[b.Spec] })
}

// formerAddress returns the first address of a family in the status of an internal Service. It must be in the subnet, and
// no other frontend and no node may have it. Further addresses of the status are additional ones.
func (s *search) formerAddress(p batch.Placement) string {
	for _, in := range p.For.Service.Status.LoadBalancer.Ingress {
		ip, err := netip.ParseAddr(in.IP)
		if ip = ip.Unmap(); err != nil || !p.For.Internal || address.Family(ip) != p.Family {
			continue
		}
		isTaken := s.NodeIPs[ip] ||
			slices.ContainsFunc(s.Holders[ip.String()], func(f index.Frontend) bool { return f.Owner() != p.For.Owner })
		if isTaken || !s.Subnet(p.SubnetID).Holds(ip) || slices.Contains(p.For.Further, ip) {
			return ""
		}
		return ip.String()
	}
	return ""
}

// sharers returns the uses of a frontend by others than its owner that want its address after the commit.
func (s *search) sharers(at index.Frontend) []index.Use {
	key := index.AddressKey(at.State())
	return slices.DeleteFunc(slices.Clone(at.Uses()), func(u index.Use) bool {
		return u.Owner == at.Owner() || !s.wants(u.Owner, key)
	})
}

// wants reports whether a user of an address wants it after the commit: a Service of the commit may ask for another.
func (s *search) wants(owner, key string) bool {
	w := s.byOwner[owner]
	return w == nil || slices.ContainsFunc(w.Placements, func(p batch.Placement) bool { return p.AddressKey() == key })
}

func (s *search) placements(w batch.Served, wrong *problem.List) []batch.Placement {
	placements := slices.Clone(w.Placements)
	lb := s.choose(w, wrong)
	for i := range placements {
		p := &placements[i]
		asked := p.AddressKey()
		p.At, p.Own = index.Frontend{LB: lb, Name: p.Frontend()}, true
		if w.Internal {
			p.Pinned = cmp.Or(p.Pinned, s.recall(*p))
		}
		if at, exists := s.at[asked]; exists && at.Owner() != w.Owner {
			p.At, p.Own = at, false
		}
		if len(s.Config.Balancers) > 0 && w.Service.IsLocal() && privatelink.ByIP(s.Index, p.At.LB) {
			p.OwnPool = naming.OwnPool(w.Service.Service, p.Family)
		}
		for _, check := range checks {
			check(s, *p, wrong)
		}
		s.links.Ask(s.Index, p, wrong)
	}
	return placements
}

// recall returns the private address that a new frontend must ask for, so that it is known before the frontend exists. It
// is the address that the Service has elsewhere, or had. If several Services show one address, the first of them has it.
func (s *search) recall(p batch.Placement) string {
	if at := s.movesFrom(p, p.At.LB); at.LB != nil {
		return s.Address(at)
	}
	former := s.formerAddress(p)
	if at, exists := s.at[former]; exists && at.Owner() != p.For.Owner || p.KeepsPrivate(p.At.State()) {
		return ""
	}
	return former
}

// note makes a placement known to the placements that follow.
func (s *search) note(p batch.Placement) {
	key := p.AddressKey()
	if _, known := s.at[key]; key != "" && (p.Own || !known) {
		s.at[key] = p.At // also of an address that has been elsewhere
	}
	s.pools[index.Frontend{LB: p.At.LB, Name: p.OwnPool}] = p.For.Key()
	s.ipv4[p.At.LB] = s.ipv4[p.At.LB] || !p.IsIPv6()
	s.rules[p.At.LB] += p.NewRules()
	s.leading[nodesBehind(s.Index, lbFamily{p.At.LB, p.IsIPv6()})] += p.NewRules()
	for _, r := range p.Rules {
		use := index.Use{What: "rule", Name: r.Name, Protocol: r.Protocol, First: r.Port, Last: r.Port, Owner: p.For.Owner}
		s.taken[p.At.Key()] = append(s.taken[p.At.Key()], use)
	}
	if _, known := s.links[p.Link.Key()]; p.Link != "" && !known {
		s.links[p.Link.Key()] = p
	}
	s.coming[p.IP.Key()] = append(s.coming[p.IP.Key()], p)
}

// leaves reports whether a Service of the commit leaves a public IP with a tag that names it.
func (s *search) leaves(service string, ip *index.PublicIP) bool {
	leaves := false
	for _, w := range s.commit {
		switch {
		case w.Key() != service:
		case s.wants(w.Owner, ip.ID.Key()):
			return false
		default:
			leaves = leaves || slices.ContainsFunc(publicip.ManagedOf(s.Index, w.Spec), ip.ID.Equal)
		}
	}
	return leaves
}
