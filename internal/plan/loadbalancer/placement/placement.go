// Package placement finds where the addresses of Services are served: at which load balancer, at which frontend and
// with which public IP. It refuses a Service that Azure, or another Service, leaves no place for. Layer L1.
package placement

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
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

// Find reads the Services of a commit in the order of their keys and places them. A Service with a problem is left
// out, and thereby left as it is. A key may be there twice: a Service that is gone and its successor of the same
// name. refused are Services, by UID, for which Azure has no room.
func Find(x *index.Index, refused map[string]bool) (*batch.Batch, problem.List) {
	var found problem.List
	services := slices.SortedFunc(slices.Values(x.Services), func(a, b spec.Service) int {
		return cmp.Or(strings.Compare(a.Key(), b.Key()), strings.Compare(string(a.UID), string(b.UID)))
	})
	var specs, gone []*spec.Spec
	for _, service := range services {
		if _, no := refused[string(service.UID)]; no {
			continue
		}
		if service.Gone {
			if s := spec.Outline(service); admission.CanRead(x, s, &found) {
				gone = append(gone, s)
			}
			continue
		}
		s, wrong := spec.Read(service, x.Config)
		admission.Check(x, s, &wrong)
		if found = append(found, wrong...); !wrong.Blocking() {
			specs = append(specs, s)
		}
	}
	b := batch.New(place(x, specs, gone, &found), gone)
	deferRenewals(x, b)
	deferMoves(x, b)
	deferForRoom(x, b)
	return b, found
}

// place finds for each spec where its addresses are served. A refused Service keeps its frontend;
// then placement restarts without it, as others may have counted on that frontend.
func place(x *index.Index, specs, gone []*spec.Spec, found *problem.List) []batch.Served {
	targets := targets{}
	for {
		s := newSearch(x, specs, gone, targets)
		live := s.run(found)
		if len(live) == len(specs) {
			return live
		}
		specs = specs[:0:0]
		for _, served := range live {
			specs = append(specs, served.Spec)
		}
	}
}

// search places the live Services of a commit, one after the other.
type search struct {
	*index.Index
	specs   map[string]*spec.Spec // live, by owner
	gone    map[string]bool       // owners
	live    []*spec.Spec
	commit  []*spec.Spec // live and gone
	targets targets
	at      map[string]index.Frontend      // where an address is, by the key of its target
	taken   map[index.Frontend][]index.Use // rules that are placed at a frontend, by its key
	ipv4    map[*index.LoadBalancer]bool   // load balancers that have IPv4 after the commit
	pools   map[ownPool]string             // keys of the Services that have a pool to themselves
	rules   map[*index.LoadBalancer]int    // after the commit, as far as it is placed
	leading map[lbFamily]int               // those of them that lead to nodes
	links   *privatelink.Requests          // placed so far
	coming  map[string]publicIPArrivals    // by id key of the public IP
}

// ownPool is a pool that a Service has to itself at a load balancer.
type ownPool struct {
	lb   *index.LoadBalancer
	name string
}

// targets remembers the targets of addresses.
type targets map[targetKey]target

type targetKey struct {
	spec   *spec.Spec
	family v1.IPFamily
}

type target struct {
	index.Target
	key   string       // of the target
	wrong problem.List // what is wrong with it
}

// target is the address that a Service asks for; ok reports whether there is one.
func (s *search) target(w *spec.Spec, a spec.Address) (t target, ok bool) {
	key := targetKey{w, a.Family}
	t, known := s.targets[key]
	if !known {
		t.Target, t.wrong = publicip.Target(s.Index, w, a)
		t.key = t.Key()
		s.targets[key] = t
	}
	return t, w.Internal || t.PublicIP != ""
}

func newSearch(x *index.Index, specs, gone []*spec.Spec, targets targets) *search {
	s := &search{
		Index: x, live: specs, commit: slices.Concat(specs, gone), targets: targets,
		specs: make(map[string]*spec.Spec, len(specs)), gone: make(map[string]bool, len(gone)),
		at: map[string]index.Frontend{}, taken: map[index.Frontend][]index.Use{}, ipv4: map[*index.LoadBalancer]bool{},
		rules: map[*index.LoadBalancer]int{}, leading: map[lbFamily]int{}, pools: map[ownPool]string{},
		links: privatelink.NewRequests(x), coming: map[string]publicIPArrivals{},
	}
	for _, w := range gone {
		s.gone[w.Owner] = true
	}
	for _, w := range specs {
		s.specs[w.Owner] = w
	}
	s.seed()
	s.countRules()
	return s
}

// run places the Services. Services that have a frontend of their kind are first, so that none loses a port
// to a new Service.
func (s *search) run(found *problem.List) []batch.Served {
	var live []batch.Served
	for _, w := range s.inTurn() {
		var wrong problem.List
		placements := s.placements(w, &wrong)
		s.warnFurther(w, placements, &wrong)
		if *found = append(*found, wrong...); wrong.Blocking() {
			continue
		}
		for _, p := range placements {
			s.note(w, p)
		}
		live = append(live, batch.Served{Spec: w, Placements: placements})
	}
	slices.SortStableFunc(live, func(a, b batch.Served) int { return strings.Compare(a.Key(), b.Key()) })
	return live
}

// inTurn orders the specs for placement: first Services that have a frontend of their kind. IPv6-only
// Services are last: the load balancer needs an IPv4 frontend first. A Service that shares an address follows
// the owner of the address.
func (s *search) inTurn() []*spec.Spec {
	owners := map[string]string{} // of addresses, by their keys
	for _, w := range s.live {
		for _, a := range w.Addresses {
			t, _ := s.target(w, a)
			if w.Internal {
				t.key = formerAddress(s.Index, w, batch.Placement{Address: a, SubnetID: s.Config.SubnetID(w.Subnet)})
			}
			if !a.Given() && t.key != "" {
				owners[t.key] = w.Owner
			}
		}
	}
	turn := make(map[*spec.Spec]int, len(s.live))
	for _, w := range s.live {
		there := slices.ContainsFunc(s.FrontendsOf(w.Owner), func(f index.Frontend) bool { return f.LB.Internal == w.Internal })
		if !there {
			turn[w] = 4
			if w.IsIPv6Only() {
				turn[w] = 6
			}
		}
		if slices.ContainsFunc(w.Addresses, func(a spec.Address) bool { return s.waitsForOwner(w, a, owners, there) }) {
			turn[w]++
		}
	}
	return slices.SortedStableFunc(slices.Values(s.live), func(a, b *spec.Spec) int { return turn[a] - turn[b] })
}

// waitsForOwner reports whether an address that a Service names has an owner that is placed
// before: it has the frontend already, or it is to make it.
func (s *search) waitsForOwner(w *spec.Spec, a spec.Address, owners map[string]string, there bool) bool {
	t, ok := s.target(w, a)
	if !ok || !a.Given() || t.key == "" {
		return false
	}
	at, exists := s.at[t.key]
	owner := owners[t.key]
	if exists {
		owner = at.Owner()
	}
	return exists == there && owner != "" && owner != w.Owner
}

// seed notes the frontends that keep their addresses, and the load balancers where Services outside the
// commit have IPv4.
func (s *search) seed() {
	for at, fe := range s.Frontends() {
		t := index.TargetOf(fe.Properties)
		if _, live := s.specs[at.Owner()]; !live && !s.gone[at.Owner()] && !s.IsIPv6(fe.Properties) {
			s.ipv4[at.LB] = true
		}
		if t.Key() != "" && !s.isGivenUp(at, t) {
			s.at[t.Key()] = at
		}
	}
}

// isGivenUp reports whether the owner of a frontend leaves it, or leaves its address, and nothing else uses it.
func (s *search) isGivenUp(at index.Frontend, t index.Target) bool {
	owner := at.Owner()
	w, live := s.specs[owner]
	if !live && !s.gone[owner] {
		return false
	}
	want := func(a spec.Address) index.Target {
		next, _ := s.target(w, a)
		return next.Target
	}
	return len(s.sharers(at)) == 0 && (!live || publicip.GivesUp(w, at, t, want))
}

// sharers are the uses by others than a frontend's owner that want its address after the commit.
func (s *search) sharers(at index.Frontend) []index.Use {
	has := index.TargetOf(at.State())
	return slices.DeleteFunc(slices.Clone(at.Uses()), func(u index.Use) bool {
		return u.Owner == at.Owner() || s.gone[u.Owner] || !s.wants(u.Owner, has)
	})
}

// wants reports whether what uses an address wants it after the commit: a Service of the
// commit may ask for another one.
func (s *search) wants(owner string, t index.Target) bool {
	w, live := s.specs[owner]
	if !live {
		return true
	}
	key := t.Key()
	return slices.ContainsFunc(w.Addresses, func(a spec.Address) bool {
		want, _ := s.target(w, a)
		return want.key == key
	})
}

// placements finds where a Service's addresses are served.
func (s *search) placements(w *spec.Spec, wrong *problem.List) []batch.Placement {
	var placements []batch.Placement
	lb := s.choose(w, wrong)
	for _, a := range w.Addresses {
		t, ok := s.target(w, a)
		if *wrong = append(*wrong, t.wrong...); !ok {
			continue
		}
		p := batch.Placement{Address: a, At: index.Frontend{LB: lb, Name: a.Frontend()}, Own: true, IP: t.PublicIP, Wanted: t.Target}
		p.Public = s.PublicIP(t.PublicIP)
		if w.Internal {
			p.SubnetID = s.Config.SubnetID(w.Subnet)
			p.Pinned = cmp.Or(a.Pinned, s.recall(w, p))
		}
		if at, exists := s.at[t.key]; t.key != "" && exists && at.Owner() != w.Owner {
			p.At, p.Own = at, false
		}
		if len(s.Config.Balancers) > 0 && w.Service.IsLocal() && privatelink.ByIP(s.Index, p.At.LB) {
			p.OwnPool = naming.OwnPool(w.Service.Service, a.Family)
		}
		p.Link = s.links.ID(w, p)
		p.Leads = s.links.Leader(w, p) == w.Key()
		for _, check := range checks {
			check(s, w, p, wrong)
		}
		placements = append(placements, p)
	}
	return placements
}

func (s *search) note(w *spec.Spec, p batch.Placement) {
	key := p.Target().Key()
	if _, known := s.at[key]; key != "" && (p.Own || !known) {
		s.at[key] = p.At // also of an address that has been elsewhere
	}
	s.pools[ownPool{p.At.LB, p.OwnPool}] = w.Key()
	s.ipv4[p.At.LB] = s.ipv4[p.At.LB] || !p.IsIPv6()
	s.rules[p.At.LB] += p.NewRules()
	s.leading[nodesBehind(s.Index, lbFamily{p.At.LB, p.IsIPv6()})] += p.NewRules()
	for _, r := range p.Rules {
		use := index.Use{What: "rule", Name: r.Name, Protocol: r.Protocol, First: r.Port, Last: r.Port, Owner: w.Owner}
		s.taken[p.At.Key()] = append(s.taken[p.At.Key()], use)
	}
	s.links.Add(w, p)
	s.noteArrival(w, p)
}

// recall is the private address that a new frontend must ask for, so that it is known before the frontend exists: the
// address that the Service has elsewhere, or had. If several Services show one address, the first of them has it.
func (s *search) recall(w *spec.Spec, p batch.Placement) string {
	if at, moves := s.movesFrom(w, p.Address, p.At.LB); moves {
		return s.Address(at)
	}
	if p.KeepsPrivate(p.At.State()) {
		return ""
	}
	had := formerAddress(s.Index, w, p)
	if at, exists := s.at[had]; exists && at.Owner() != w.Owner {
		return ""
	}
	return had
}

// formerAddress is the first address of a family in the Service's status, if it is in the subnet and free.
// Further addresses of the status are additional ones.
func formerAddress(x *index.Index, w *spec.Spec, p batch.Placement) string {
	for _, in := range w.Service.Status.LoadBalancer.Ingress {
		ip, err := netip.ParseAddr(in.IP)
		if ip = ip.Unmap(); err != nil || address.Family(ip) != p.Family {
			continue
		}
		if x.Subnet(p.SubnetID).Holds(ip) && !slices.Contains(w.Further, ip) && isFree(x, ip, w) {
			return ip.String()
		}
		return ""
	}
	return ""
}

// isFree reports whether no other frontend and no node has a private address.
func isFree(x *index.Index, ip netip.Addr, w *spec.Spec) bool {
	others := func(f index.Frontend) bool { return f.Owner() != w.Owner }
	return !x.NodeIPs[ip] && !slices.ContainsFunc(x.Holders[ip.String()], others)
}

// leaves reports whether a Service of the commit leaves a public IP with a tag that names it.
func (s *search) leaves(service string, ip azure.ID) bool {
	leaves := false
	for _, w := range s.commit {
		switch {
		case w.Key() != service:
		case !w.Service.Gone && s.wants(w.Owner, index.Target{PublicIP: ip}):
			return false
		default:
			leaves = leaves || slices.ContainsFunc(publicip.ManagedOf(s.Index, w), ip.Equal)
		}
	}
	return leaves
}
