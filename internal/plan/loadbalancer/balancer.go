package loadbalancer

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
)

// balancer is a load balancer as it shall be.
type balancer struct {
	network.LoadBalancer
	side   *side
	stays  bool            // has frontends, which Azure demands of every load balancer
	shrank bool            // lost a frontend
	after  map[string]bool // load balancers that are written first, by id
}

// balancers decides the cluster's load balancers, external and internal.
func (f *facts) balancers(b *batch, found *problems) []*balancer {
	claims := b.claims()
	all := make([]*balancer, len(f.sides))
	for i, side := range f.sides {
		lb := &balancer{side: side, after: map[string]bool{}}
		f.frontends(*b, claims, lb, found)
		f.rulesAndProbes(*b, lb)
		f.pools(b, lb)
		f.moves(*b, lb)
		lb.stays = len(lb.FrontendIPConfigurations) > 0
		all[i] = lb
	}
	f.handOver(*b, all)
	f.spreadNodes(*b, all, found)
	for _, lb := range all {
		f.ownPools(*b, lb)
	}
	return all
}

// keptIPs are the public IPs that remain at a frontend, by key.
func keptIPs(all []*balancer) map[string]bool {
	kept := map[string]bool{}
	for _, lb := range all {
		for _, fe := range lb.FrontendIPConfigurations {
			if ip := fe.Properties.PublicIPAddress; ip != nil {
				kept[ip.ID.Key()] = true
			}
		}
	}
	return kept
}

// moves notes from which other load balancers addresses come to this one.
func (f *facts) moves(b batch, lb *balancer) {
	for _, w := range b.live {
		for _, p := range w.places {
			if p.side != lb.side {
				continue
			}
			for _, from := range f.comesFrom(w, p) {
				lb.after[string(from.id)] = true
			}
		}
	}
}

// comesFrom are the other load balancers of the kind that have a frontend of a Service which
// gets one of its own at a place, or the address there, be it another Service's so far.
func (f *facts) comesFrom(w wish, p place) (from []*side) {
	if !p.own {
		return nil
	}
	sides := slices.Clone(f.standsAt[target{ip: p.ip, private: p.pinned}.key()])
	for _, at := range f.ofOwner(w.base) {
		sides = append(sides, at.side)
	}
	return slices.DeleteFunc(sides, func(s *side) bool { return s == p.side || s.internal != p.side.internal })
}

// kept is an element of others, which stays as it is.
func kept[P any](c azure.Child[P]) azure.Child[P] {
	c.Keep = true
	return c
}

// rulesAndProbes replaces the batch's rules and probes and carries all others.
func (f *facts) rulesAndProbes(b batch, lb *balancer) {
	had := lb.side.lb.Properties
	lb.LoadBalancingRules = make([]azure.Child[network.LoadBalancingRule], 0, len(had.LoadBalancingRules)+len(b.live))
	before := map[string]network.LoadBalancingRule{}
	for _, r := range had.LoadBalancingRules {
		if !b.base[ownerBase(r.Name)] {
			lb.LoadBalancingRules = append(lb.LoadBalancingRules, kept(r))
			continue
		}
		before[strings.ToLower(r.Name)] = r.Properties
	}
	var probes []azure.Child[network.Probe]
	for _, w := range b.live {
		for _, p := range w.places {
			if p.side != lb.side {
				continue
			}
			for _, r := range p.rules {
				view := r.view(f.Config, p)
				asBefore(&view.Properties, before[strings.ToLower(r.name)])
				lb.LoadBalancingRules = append(lb.LoadBalancingRules, view)
			}
			probes = append(probes, p.probes...)
		}
	}
	lb.Probes = f.probes(b, lb, probes)
}

// asBefore writes a rule as it is written already where that means the same: Azure
// repeats the pool, a switch that is left out is off, and no time is the default.
func asBefore(r *network.LoadBalancingRule, was network.LoadBalancingRule) {
	if len(was.BackendAddressPools) > 0 {
		r.BackendAddressPools = []azure.Reference{*r.BackendAddressPool}
	}
	if was.Protocol == "" {
		return // it is a new one
	}
	for now, said := range map[**bool]*bool{
		&r.EnableFloatingIP: was.EnableFloatingIP, &r.EnableTCPReset: was.EnableTCPReset, &r.DisableOutboundSNAT: was.DisableOutboundSNAT,
	} {
		if said == nil && *now != nil && !**now {
			*now = nil
		}
	}
	if r.EnableTCPReset == nil && was.EnableTCPReset != nil && *was.EnableTCPReset && !sameText(r.Protocol, was.Protocol) {
		r.EnableTCPReset = new(false) // it was a rule for all ports, of the same name
	}
	if was.IdleTimeoutInMinutes == nil && *r.IdleTimeoutInMinutes == key.IdleTimeout.Default {
		r.IdleTimeoutInMinutes = nil
	}
}

// probes are those of others as they are, and the batch's. The one that Services
// share goes with the last rule that asks it.
func (f *facts) probes(b batch, lb *balancer, wanted []azure.Child[network.Probe]) []azure.Child[network.Probe] {
	var shared *azure.Child[network.Probe]
	asked := slices.ContainsFunc(lb.LoadBalancingRules, func(r azure.Child[network.LoadBalancingRule]) bool {
		return r.Properties.Probe != nil && sameText(r.Properties.Probe.ID.Name(), sharedProbeName)
	})
	had := lb.side.lb.Properties.Probes
	probes := make([]azure.Child[network.Probe], 0, len(had)+len(wanted))
	for _, p := range had {
		switch {
		case sameText(p.Name, sharedProbeName):
			if asked {
				shared = new(kept(p))
			}
		case !b.base[ownerBase(p.Name)]:
			probes = append(probes, kept(p))
		}
	}
	for _, p := range wanted {
		if p.Name == sharedProbeName {
			shared = &p
			continue
		}
		probes = append(probes, p)
	}
	if shared != nil && asked {
		probes = append(probes, *shared)
	}
	return probes
}

// node is the load balancer's place in the graph. Azure knows no load balancer
// without a frontend, so with the last one it goes as a whole.
func (lb balancer) node(f *facts, b batch) (plan.Node, bool) {
	names := lb.names(b)
	var n plan.Node
	switch {
	case lb.stays:
		r := azure.Resource[network.LoadBalancer]{ID: lb.side.id, Properties: lb.LoadBalancer, Tags: frameTags(f.Config, nil, lb.side.lb.Tags)}
		if !lb.side.exists {
			r.Location, r.SKU, r.ExtendedLocation = f.Config.Location, &azure.SKU{Name: "Standard"}, f.Config.EdgeZone
		}
		why := "frontends, rules and probes of " + summary(names)
		if len(names) == 0 {
			why = "nodes in its backend pools"
		}
		n = plan.Wanted(r, why, names...)
	case lb.going():
		n = plan.Gone[network.LoadBalancer](lb.side.id, "its last frontend goes with "+summary(names), names...)
	default:
		return plan.Node{}, false
	}
	for _, other := range f.sides {
		if lb.after[string(other.id)] {
			n.After = append(n.After, other.id)
		}
	}
	return n, true
}

// names is the keys of the batch's Services that have anything at the load balancer,
// now or when all is done.
func (lb balancer) names(b batch) []string {
	var names []string
	for _, w := range slices.Concat(b.live, b.gone) {
		base := strings.ToLower(w.base)
		if len(lb.side.byOwner[base])+len(lb.side.ruled[base]) > 0 || slices.ContainsFunc(w.places, func(p place) bool { return p.side == lb.side }) {
			names = append(names, w.service.Key())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// going reports whether the load balancer is deleted.
func (lb balancer) going() bool { return lb.side.exists && lb.shrank && !lb.stays }

// refuseFamilies finds Services that would leave a load balancer with IPv6 alone,
// which Azure does not have. It returns their UIDs.
func (f *facts) refuseFamilies(b batch, all []*balancer, found *problems) (refused []string) {
	claims := b.claims()
	for _, lb := range all {
		six, four := 0, 0
		for _, fe := range lb.FrontendIPConfigurations {
			if c, claimed := claims[spot{lb.side, fe.Name}.key()]; claimed && c.place.is6() || !claimed && f.is6(fe.Properties) {
				six++
			} else {
				four++
			}
		}
		if six == 0 || four > 0 {
			continue
		}
		refuse := func(w wish) {
			found.refuse(w.service.Key(), ReasonFamily, "load balancer %s would have IPv6 frontends alone, allowed is IPv6 beside a Service with IPv4 at the same load balancer", lb.side.id.Name())
			refused = append(refused, string(w.service.UID))
		}
		for _, w := range b.live {
			if slices.ContainsFunc(w.places, func(p place) bool { return p.side == lb.side }) {
				refuse(w)
			}
		}
		if len(refused) > 0 {
			continue
		}
		for _, w := range slices.Concat(b.live, b.gone) { // who takes the last IPv4 frontend away
			if len(lb.side.byOwner[strings.ToLower(w.base)]) > 0 {
				refuse(w)
			}
		}
	}
	return refused
}

// is6 reports whether a frontend has IPv6.
func (f *facts) is6(fe network.FrontendIPConfiguration) bool {
	if fe.PublicIPAddress != nil {
		return sameText(f.ips[fe.PublicIPAddress.ID.Key()].Properties.PublicIPAddressVersion, "IPv6")
	}
	return sameText(fe.PrivateIPAddressVersion, "IPv6")
}
