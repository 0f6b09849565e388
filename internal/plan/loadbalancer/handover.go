package loadbalancer

import (
	"strings"

	"kaz/internal/azure"
)

// Azure may refuse what a Service asks for, and then it keeps what it has. So what it is
// served by goes when Azure has taken what it is served by from then on: the load balancer
// that it leaves for one of the other kind is written after that one, and the security
// group after both. A public IP can be at one load balancer only, so one that moves between
// two of a kind goes before it comes (see moves).

// handover is a Service that leaves a frontend, or its address, for another one.
type handover struct{ from, to *side }

// handovers are those of the batch.
func (f *facts) handovers(b batch) []handover {
	var all []handover
	for _, w := range b.live {
		for _, at := range f.spotsOf(w.base) {
			if f.staysAt(w, at) {
				continue
			}
			for _, p := range w.places {
				all = append(all, handover{at.side, p.side})
			}
		}
	}
	return all
}

// spotsOf are the frontends where a Service stands: its own, and those where its rules are.
func (f *facts) spotsOf(base string) []spot {
	all := f.ofOwner(base)
	for _, s := range f.sides {
		for _, r := range s.ruled[strings.ToLower(base)] {
			if ref := r.FrontendIPConfiguration; ref != nil && ownerBase(ref.ID.Name()) != strings.ToLower(base) {
				all = append(all, spot{s, ref.ID.Name()})
			}
		}
	}
	return all
}

// staysAt reports whether a Service is served at a frontend with the same address as so far.
func (f *facts) staysAt(w wish, at spot) bool {
	fe, _ := at.frontend()
	for _, p := range w.places {
		if p.spot().key() != at.key() {
			continue
		}
		return f.keeps(p, fe.Properties)
	}
	return false
}

// handOver has load balancers wait for those of the other kind to which their Services go.
// Where two would wait for each other, neither does.
func (f *facts) handOver(b batch, all []*balancer) {
	by := make(map[string]*balancer, len(all))
	for _, lb := range all {
		by[string(lb.side.id)] = lb
	}
	for _, h := range f.handovers(b) {
		from, to := by[string(h.from.id)], by[string(h.to.id)]
		if h.from.internal != h.to.internal && !to.waitsFor(from, by) {
			from.after[string(to.side.id)] = true
		}
	}
}

// waitsFor reports whether a load balancer is written after another, whatever is between.
func (lb *balancer) waitsFor(other *balancer, by map[string]*balancer) bool {
	if lb == other {
		return true
	}
	for id := range lb.after {
		if by[id].waitsFor(other, by) {
			return true
		}
	}
	return false
}

// involved are the load balancers of handovers, each once.
func involved(all []handover) (ids []azure.ID) {
	seen := map[*side]bool{}
	for _, h := range all {
		for _, s := range []*side{h.from, h.to} {
			if !seen[s] {
				seen[s] = true
				ids = append(ids, s.id)
			}
		}
	}
	return ids
}
