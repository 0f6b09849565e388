package batch

import (
	"slices"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer/index"
)

// Handover is a Service that leaves a frontend, or its address, for another one.
//
// Azure may refuse what a Service asks for, and then the Service keeps what it has. So what serves it so far goes
// after Azure has accepted what serves it from then on: the load balancer that it leaves for one of the other kind is
// written after that one, and the security group after both. A public IP can be at one load balancer only, so one
// that moves between two of a kind goes before it comes (see Sources).
type Handover struct{ From, To *index.LoadBalancer }

// Handovers are the handovers of the batch.
func (b *Batch) Handovers(x *index.Index) []Handover {
	var all []Handover
	for _, s := range b.Live {
		for _, at := range x.FrontendsServing(s.Owner) {
			if s.staysAt(at) {
				continue
			}
			for _, p := range s.Placements {
				all = append(all, Handover{at.LB, p.At.LB})
			}
		}
	}
	return all
}

// staysAt reports whether a Service is served at a frontend with the same address as so far.
func (s Served) staysAt(at index.Frontend) bool {
	i := slices.IndexFunc(s.Placements, func(p Placement) bool { return p.At.Key() == at.Key() })
	fe, _ := at.Config()
	return i >= 0 && s.Placements[i].Keeps(fe.Properties)
}

// Involved are the load balancers of handovers, each once.
func Involved(all []Handover) (ids []azure.ID) {
	for _, h := range all {
		for _, lb := range []*index.LoadBalancer{h.From, h.To} {
			if !slices.Contains(ids, lb.ID) {
				ids = append(ids, lb.ID)
			}
		}
	}
	return ids
}

// Sources are the other load balancers of the kind from which a Service's frontend, or the address of a
// placement, moves.
func Sources(x *index.Index, s Served, p Placement) (from []*index.LoadBalancer) {
	if !p.Own {
		return nil
	}
	for _, at := range slices.Concat(x.Holders[p.Target().Key()], x.FrontendsOf(s.Owner)) {
		if at.LB != p.At.LB && at.LB.Internal == p.At.LB.Internal {
			from = append(from, at.LB)
		}
	}
	return from
}
