package loadbalancer

import (
	"slices"
	"strings"

	"kaz/internal/key"
)

// A public IP, or a private address, can be at one load balancer only. So a Service that
// goes to another one of the same kind takes its frontend away from the first, and Azure
// lets no frontend go that somebody's rule refers to. Who tried it all the same would lose
// his rules there and find the address taken here.

// movesFrom is the frontend of a Service at another load balancer of the kind that has the
// address it wants to have at this one.
func (s *search) movesFrom(w wish, a address, to *side) (spot, bool) {
	for _, at := range s.ofOwner(w.base) {
		if at.side == to || at.side.internal != w.internal {
			continue
		}
		t, _ := s.quietTarget(w, a)
		fe, _ := at.frontend()
		if s.keeps(place{address: a, ip: t.ip, subnetID: s.Config.subnet(w.subnet)}, fe.Properties) {
			return at, true
		}
	}
	return spot{}, false
}

// heldBy is what keeps the frontend of a Service that would leave for another load
// balancer: something that stands at it when the commit is done.
func (s *search) heldBy(w wish, at spot, to *side) (use, bool) {
	base := strings.ToLower(w.base)
	for _, u := range s.taken[at.key()] {
		if u.owner != base {
			return u.use, true
		}
	}
	fe, _ := at.frontend()
	for _, u := range at.side.uses[strings.ToLower(at.name)] {
		if u.owner != base && !s.gone[u.owner] && s.wants(u.owner, targetOf(fe.Properties)) && !s.follows(u.owner, at.side, to) {
			return u, true
		}
	}
	return use{}, false
}

// follows reports whether who shares a frontend has to go where its owner goes: he is of
// the commit, may be served there and no more where he is.
func (s *search) follows(owner string, from, to *side) bool {
	w, live := s.wishes[owner]
	if !live || len(s.Config.Balancers) == 0 {
		return live
	}
	var ignored problems
	may := s.eligible(w, s.currentEntry(w), &ignored)
	return slices.Contains(may, to.entry) && !slices.Contains(may, from.entry)
}

// refuseMove tells a Service that it cannot go to another load balancer. If it has asked
// for that itself, it stays as it is until it asks for something else; else it is served
// where it is.
func (s *search) refuseMove(w wish, at spot, to *side, by use, wrong *problems) {
	t, _ := at.frontend()
	whose := s.whose(by, place{ip: targetOf(t.Properties).ip})
	asked := balancersAsked(w.service)
	if at.side.entry >= 0 && len(asked) > 0 {
		if has := s.entryNames([]int{at.side.entry}); !slices.Contains(asked, strings.ToLower(has)) {
			wrong.refuse(w.service.Key(), ReasonConflict, "annotation %s: %q: frontend %s cannot leave load balancer %s while the %s %q of %s stands at it, allowed is %q: name that, drop the annotation, or take away first what stands there",
				key.Balancers.Name, strings.Join(asked, ", "), at.name, at.side.id.Name(), by.what, by.name, whose, has)
			return
		}
	}
	wrong.warn(w.service.Key(), ReasonConflict, "frontend %s cannot go from load balancer %s to %s while the %s %q of %s stands at it: the Service is served at %s until that goes, or may go there, too",
		at.name, at.side.id.Name(), to.id.Name(), by.what, by.name, whose, at.side.id.Name())
}
