package loadbalancer

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// use is something in a load balancer that stands at a frontend.
type use struct {
	what        string // in a person's words
	name        string
	protocol    string
	first, last int32  // its ports, 0 for all
	owner       string // base name, "" for what is no rule of a Service
}

// usesOf lists what stands at each frontend.
func usesOf(lb network.LoadBalancer) map[string][]use {
	uses := make(map[string][]use, len(lb.FrontendIPConfigurations))
	add := func(frontend *azure.Reference, u use) {
		if frontend != nil {
			name := strings.ToLower(frontend.ID.Name())
			uses[name] = append(uses[name], u)
		}
	}
	for _, r := range lb.LoadBalancingRules {
		p := r.Properties
		add(p.FrontendIPConfiguration, use{"rule", r.Name, p.Protocol, p.FrontendPort, p.FrontendPort, ownerBase(r.Name)})
	}
	for _, r := range lb.InboundNATRules {
		p := r.Properties
		first, last := p.FrontendPort, p.FrontendPort
		if p.FrontendPortRangeStart > 0 {
			first, last = p.FrontendPortRangeStart, p.FrontendPortRangeEnd
		}
		add(p.FrontendIPConfiguration, use{"inbound NAT rule", r.Name, p.Protocol, first, last, ""})
	}
	for _, r := range lb.InboundNATPools {
		p := r.Properties
		add(p.FrontendIPConfiguration, use{"inbound NAT pool", r.Name, p.Protocol, p.FrontendPortRangeStart, p.FrontendPortRangeEnd, ""})
	}
	for _, r := range lb.OutboundRules {
		for i := range r.Properties.FrontendIPConfigurations {
			add(&r.Properties.FrontendIPConfigurations[i], use{what: "outbound rule", name: r.Name, protocol: "none"})
		}
	}
	return uses
}

// takes reports whether the use leaves no room for a rule at a port; 0 is all ports.
func (u use) takes(protocol string, port int32) bool {
	if u.protocol == "none" || !sameText(u.protocol, protocol) && !sameText(u.protocol, "All") && !sameText(protocol, "All") {
		return false
	}
	return u.first == 0 || port == 0 || u.first <= port && port <= u.last
}

// remaining is what stands at a frontend once the batch's Services took theirs away.
func (b batch) remaining(s spot) []use {
	var rest []use
	for _, u := range s.side.uses[strings.ToLower(s.name)] {
		if u.owner == "" || !b.base[u.owner] {
			rest = append(rest, u)
		}
	}
	return rest
}

// claim is a place with its Service.
type claim struct {
	wish
	place place
}

// claims are the places of the live Services by their spots' keys: of each the one
// of the frontend's owner, if there is one.
func (b batch) claims() map[string]claim {
	all := map[string]claim{}
	for _, w := range b.live {
		for _, p := range w.places {
			if _, there := all[p.spot().key()]; !there || p.own {
				all[p.spot().key()] = claim{w, p}
			}
		}
	}
	return all
}

// frontends gives each live Service its frontends in a load balancer and takes away
// those that nothing stands at when the batch's Services have left.
func (f *facts) frontends(b batch, claims map[string]claim, lb *balancer, found *problems) {
	side := lb.side
	have := side.lb.Properties.FrontendIPConfigurations
	lb.FrontendIPConfigurations = make([]azure.Child[network.FrontendIPConfiguration], 0, len(have)+len(b.live))
	for _, fe := range have {
		at := spot{side, fe.Name}
		c, claimed := claims[at.key()]
		switch {
		case claimed && c.place.own:
			fe = f.frontendView(c, &fe)
		case !claimed && f.leaves(b, at, found):
			lb.shrank = true
			continue
		default:
			if claimed {
				b.warnKept(at, "Service "+c.service.Key(), found)
			}
			fe = kept(fe)
		}
		lb.FrontendIPConfigurations = append(lb.FrontendIPConfigurations, fe)
	}
	for _, w := range b.live {
		for _, p := range w.places {
			if _, exists := p.spot().frontend(); p.side == side && p.own && !exists {
				lb.FrontendIPConfigurations = append(lb.FrontendIPConfigurations, f.frontendView(claim{w, p}, f.predecessor(w, p)))
			}
		}
	}
	f.keepPreset(b, lb, found)
}

// keepPreset leaves the last frontend to a load balancer that must not be deleted:
// Azure has none without.
func (f *facts) keepPreset(b batch, lb *balancer, found *problems) {
	preset := f.Config.PresetExternal && !lb.side.internal || f.Config.PresetInternal && lb.side.internal
	if !preset || !lb.shrank || len(lb.FrontendIPConfigurations) > 0 {
		return
	}
	last := lb.side.lb.Properties.FrontendIPConfigurations[0]
	lb.FrontendIPConfigurations = append(lb.FrontendIPConfigurations, kept(last))
	for _, w := range slices.Concat(b.live, b.gone) {
		if strings.ToLower(w.base) == ownerBase(last.Name) {
			found.warn(w.service.Key(), ReasonFrontendKept, "frontend %s and its address stay: it is the last one of load balancer %s, whose pools are pre-configured and which is not deleted", last.Name, lb.side.id.Name())
		}
	}
}

// leaves reports whether a frontend goes that no live Service claims: its owner is of
// the batch, or has left it before and those who shared it with him leave now.
func (f *facts) leaves(b batch, at spot, found *problems) bool {
	owner := ownerBase(at.name)
	if !b.base[owner] && (!f.isLeft(b, at) || !looksOwned(at.name)) {
		return false
	}
	rest := b.remaining(at)
	if len(rest) == 0 {
		return true
	}
	b.warnKept(at, fmt.Sprintf("the %s %q", rest[0].what, rest[0].name), found)
	return false
}

// warnKept tells a Service that is gone that its frontend stays for others.
func (b batch) warnKept(at spot, whom string, found *problems) {
	for _, w := range b.gone {
		if strings.ToLower(w.base) == ownerBase(at.name) {
			found.warn(w.service.Key(), ReasonFrontendKept, "frontend %s and its address stay: %s stands at it", at.name, whom)
		}
	}
}

// isLeft reports whether Services of the batch stand at a frontend whose owner is gone, as
// far as is known, or served elsewhere.
func (f *facts) isLeft(b batch, at spot) bool {
	fe, _ := at.frontend()
	if owner := f.alive[ownerBase(at.name)]; owner != nil && !f.isElsewhere(Service{Service: owner}, at, targetOf(fe.Properties)) {
		return false
	}
	if ref := fe.Properties.PublicIPAddress; ref != nil {
		names, _ := servicesIn(f.ips[ref.ID.Key()].Tags)
		for _, name := range names {
			if !b.has(name) {
				return false // the owner, who has no rule at the moment
			}
		}
	}
	for _, u := range at.side.uses[strings.ToLower(at.name)] {
		if b.base[u.owner] {
			return true
		}
	}
	return false
}

// isElsewhere reports whether a Service neither asks for a frontend of its own any more nor
// needs it until it has another one.
func (f *facts) isElsewhere(s Service, at spot, t target) bool {
	w, wrong := readWish(s, f.Config)
	if wrong.blocking() || !f.givesUp(w, at, t) {
		return false
	}
	stands := func(where spot) bool {
		return slices.ContainsFunc(where.side.uses[strings.ToLower(where.name)], func(u use) bool { return sameText(u.owner, w.base) })
	}
	return !stands(at) && slices.ContainsFunc(f.spotsOf(w.base), stands)
}

// predecessor is the frontend that an address has under another name so far, nil for
// none.
func (f *facts) predecessor(w wish, p place) *azure.Child[network.FrontendIPConfiguration] {
	for _, fe := range p.side.byOwner[strings.ToLower(w.base)] {
		if hasSuffixFold(fe.Name, suffixIPv6) == (p.suffix != "") {
			return &fe
		}
	}
	return nil
}

func hasSuffixFold(s, suffix string) bool {
	return len(s) >= len(suffix) && sameText(s[len(s)-len(suffix):], suffix)
}

// frontendView is a Service's frontend as it shall be. was is the one that the address
// has had, under this or another name.
func (f *facts) frontendView(c claim, was *azure.Child[network.FrontendIPConfiguration]) azure.Child[network.FrontendIPConfiguration] {
	p := c.place
	next := azure.Child[network.FrontendIPConfiguration]{Name: p.frontend}
	if was != nil {
		next.Zones = was.Zones
	}
	if p.ip != "" {
		next.Properties.PublicIPAddress = azure.Ref(p.ip)
		if was != nil && sameText(was.Name, p.frontend) {
			next.Properties.PrivateIPAllocationMethod = was.Properties.PrivateIPAllocationMethod
		}
		return next
	}
	if was != nil && sameText(was.Name, p.frontend) && f.keepsPrivate(p, was.Properties) {
		return *was
	}
	if was == nil && f.Config.EdgeZone == nil {
		next.Zones = f.Config.Zones
	}
	next.Properties.Subnet = azure.Ref(p.subnetID)
	next.Properties.PrivateIPAllocationMethod = "Dynamic"
	next.Properties.PrivateIPAddress = p.pinned
	if next.Properties.PrivateIPAddress != "" {
		next.Properties.PrivateIPAllocationMethod = "Static"
	}
	switch {
	case p.is6():
		next.Properties.PrivateIPAddressVersion = "IPv6"
	case was != nil && sameText(was.Properties.PrivateIPAddressVersion, "IPv6"):
		next.Properties.PrivateIPAddressVersion = "IPv4"
	}
	return next
}

// keeps reports whether a frontend has the address that is asked for at a place.
func (f *facts) keeps(p place, have network.FrontendIPConfiguration) bool {
	if ref := have.PublicIPAddress; p.ip != "" {
		return ref != nil && ref.ID.Equal(p.ip)
	}
	return f.keepsPrivate(p, have)
}

// keepsPrivate reports whether an internal frontend is as asked for: in the subnet,
// and with the address if there is one that it must be.
func (f *facts) keepsPrivate(p place, have network.FrontendIPConfiguration) bool {
	return have.Subnet != nil && have.Subnet.ID.Equal(p.subnetID) && familyNamed(have.PrivateIPAddressVersion) == p.family && (p.pinned == "" || p.pinned == plainAddress(have.PrivateIPAddress))
}
