package placement

import (
	"slices"

	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/publicip"
)

// deferRenewals defers addresses whose public IP must be recreated: the old one is deleted first.
func deferRenewals(x *index.Index, b *batch.Batch) {
	b.Defer(func(s batch.Served, p batch.Placement) bool {
		return publicip.IsOutdated(x, s.Spec, p) && len(b.Remaining(p.At)) == 0 &&
			!slices.ContainsFunc(b.Live, func(other batch.Served) bool {
				return other.Service.Key() != s.Service.Key() &&
					slices.ContainsFunc(other.Placements, func(o batch.Placement) bool { return o.IP.Equal(p.IP) })
			})
	}, func(s batch.Served, p batch.Placement) string {
		return "public IP " + p.IP.Name() + " is recreated with another version or other IP tags [" + s.Service.Key() + "]"
	})
}

// deferMoves defers moves between load balancers that would wait for each other, be it by the machines that
// leave one and join the other: the addresses leave in this round and return in the next.
func deferMoves(x *index.Index, b *batch.Batch) {
	waits := map[*index.LoadBalancer]map[*index.LoadBalancer]bool{}
	later := map[index.Frontend]bool{} // at which a frontend comes: Services that share it wait, too
	for s, p := range b.Placed() {
		for _, from := range batch.Sources(x, s, p) {
			later[p.At.Key()] = true
			if waits[p.At.LB] == nil {
				waits[p.At.LB] = map[*index.LoadBalancer]bool{}
			}
			waits[p.At.LB][from] = true
		}
	}
	if len(waits) == 0 || x.Config.PoolByIP && !hasCircle(x.LoadBalancers, waits) {
		return
	}
	hold(b, func(_ batch.Served, p batch.Placement) bool { return later[p.At.Key()] }, func(s batch.Served, p batch.Placement) string {
		return "load balancer " + p.At.LB.ID.Name() + " gets the address of " + s.Service.Key() + ", which is elsewhere so far"
	})
}

// hold defers placements and keeps their public IPs for them.
func hold(b *batch.Batch, which func(batch.Served, batch.Placement) bool, why func(batch.Served, batch.Placement) string) {
	b.Defer(which, func(s batch.Served, p batch.Placement) string {
		b.Holds[p.IP.Key()] = true
		return why(s, p)
	})
}

// hasCircle reports whether load balancers wait for each other.
func hasCircle(left []*index.LoadBalancer, waits map[*index.LoadBalancer]map[*index.LoadBalancer]bool) bool {
	for {
		rest := slices.DeleteFunc(slices.Clone(left), func(lb *index.LoadBalancer) bool {
			return !slices.ContainsFunc(left, func(other *index.LoadBalancer) bool { return waits[lb][other] })
		})
		if len(rest) == len(left) {
			return len(left) > 0
		}
		left = rest
	}
}

// deferForRoom defers placements for which Azure has room only after the other load balancer of the same
// nodes is written.
func deferForRoom(x *index.Index, b *batch.Batch) {
	full := crowded(x, ruleChanges(x, b))
	if len(full) == 0 {
		return
	}
	later := map[index.Frontend]bool{} // at which a frontend comes: Services that share it wait, too
	for s, p := range b.Placed() {
		if _, exists := p.At.Config(); !exists && p.Own && full[p.At.LB] && arrives(x, s, p) {
			later[p.At.Key()] = true
		}
	}
	hold(b, func(s batch.Served, p batch.Placement) bool {
		return later[p.At.Key()] || full[p.At.LB] && arrives(x, s, p)
	},
		func(s batch.Served, p batch.Placement) string {
			return "rules of " + s.Service.Key() + " come to load balancer " + p.At.LB.ID.Name() + " when others have left the nodes"
		})
}

// arrives reports whether all rules of a placement are new and the Service loses nothing by waiting: a
// Service that is there keeps its frontend, address and private link service.
func arrives(x *index.Index, s batch.Served, p batch.Placement) bool {
	if len(p.Rules) == 0 || p.NewRules() < len(p.Rules) {
		return false
	}
	_, exists := p.At.Config()
	switch {
	case p.At.UsedBy(s.Owner):
		return false
	case !exists || !p.Own:
		return true
	}
	// The Service may have left the frontend to a load balancer that is not to be deleted.
	return slices.ContainsFunc(x.LoadBalancers, func(lb *index.LoadBalancer) bool { return lb != p.At.LB && len(lb.RulesOf[s.Owner]) > 0 })
}
