package wiring

import (
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
)

// takenAddresses are the public addresses that documents give away.
func (f *facts) takenAddresses() map[netip.Addr]bool {
	taken := map[netip.Addr]bool{outside4: true, internet4: true, netip.MustParseAddr("198.18.0.0"): true}
	for _, doc := range f.docs.addresses {
		if a, ok := parseAddress(doc.Properties.IPAddress); ok {
			taken[a] = true
		}
	}
	return taken
}

// gatewayOf is the namespace between private and public addresses, and the public
// addresses that lead to it.
func (f *facts) gatewayOf(n *network, taken map[netip.Addr]bool) (Namespace, []netip.Addr) {
	s := Namespace{Name: n.gateway, Own: true}
	s.Neighbours = append(s.Neighbours, Neighbour{"in", near4, nearMAC}, Neighbour{"in", near6, nearMAC},
		Neighbour{"out", far4, farMAC}, Neighbour{"out", far6, farMAC})
	for _, p := range n.space {
		s.Routes = append(s.Routes, rangeTowards(p, "in", near4, near6))
	}
	for _, p := range []netip.Prefix{everywhere(near4), everywhere(near6)} {
		s.Routes = append(s.Routes, rangeTowards(p, "out", far4, far6))
	}
	public := map[netip.Addr]bool{}
	b := newBuilder()
	frontends := map[bool]map[string]string{true: b.set("frontends4", "set", "type ipv4_addr"), false: b.set("frontends6", "set", "type ipv6_addr")}
	for _, r := range f.rules {
		if r.network == n && !r.internal {
			public[r.frontend] = true
			frontends[r.frontend.Is4()][r.frontend.String()] = ""
			s.Routes = append(s.Routes, towards(r.frontend, "in", near4, near6))
		}
	}
	f.translations(n, b, taken, public)
	gatewayRules(n, b)
	s.Rules = b.Ruleset
	return s, slices.SortedFunc(maps.Keys(public), netip.Addr.Compare)
}

// translations adds which private address has which public one, and notes those.
func (f *facts) translations(n *network, b *builder, taken, public map[netip.Addr]bool) {
	private := map[bool]map[string]string{true: b.set("private4", "map", "type ipv4_addr : ipv4_addr"), false: b.set("private6", "map", "type ipv6_addr : ipv6_addr")}
	source := map[bool]map[string]string{true: b.set("source4", "map", "type ipv4_addr : ipv4_addr"), false: b.set("source6", "map", "type ipv6_addr : ipv6_addr")}
	leaving := map[bool]map[string]string{true: b.set("leaving4", "set", "type ipv4_addr"), false: b.set("leaving6", "set", "type ipv6_addr")}
	o := outbound{balanced: f.balancedSources(n), members: f.memberCards(), lent: unusedAddress(n, taken)}
	for _, c := range n.cards {
		o.nat = f.natAddress(c.subnet)
		for _, a := range c.addresses {
			is4 := a.address.Is4()
			if a.hasOwn() {
				public[a.public] = true
				private[is4][a.public.String()] = a.address.String()
			}
			if from := o.source(a); from.IsValid() {
				public[from] = true
				source[is4][a.address.String()] = from.String()
				leaving[is4][a.address.String()] = ""
			}
		}
	}
}

// outbound is what addresses of a network leave with.
type outbound struct {
	nat, lent netip.Addr
	balanced  map[*address]netip.Addr
	members   map[*card]bool
}

// source is the public address with which a private one leaves, the invalid one when it
// does not.
func (o outbound) source(a *address) netip.Addr {
	is4, allowed := a.address.Is4(), a.card.subnet.doc.DefaultOutboundAccess
	switch {
	case is4 && o.nat.IsValid():
		return o.nat
	case a.hasOwn():
		return a.public
	case o.balanced[a].IsValid():
		return o.balanced[a]
	case is4 && !o.members[a.card] && !a.card.hasPublic() && (allowed == nil || *allowed):
		return o.lent
	}
	return netip.Addr{}
}

// hasOwn reports whether the address has a public one, of its family.
func (a *address) hasOwn() bool { return a.public.IsValid() && a.public.Is4() == a.address.Is4() }

// natAddress is the address of the subnet's NAT gateway, which comes before all others.
func (f *facts) natAddress(s *subnetFacts) netip.Addr {
	gateway := f.docs.gateways[s.doc.NATGateway.key()]
	if gateway == nil {
		return netip.Addr{}
	}
	for i := range gateway.Properties.PublicIPAddresses {
		if a := f.public(&gateway.Properties.PublicIPAddresses[i]); a.IsValid() && a.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

func (c *card) hasPublic() bool {
	return slices.ContainsFunc(c.addresses, func(a *address) bool { return a.public.IsValid() })
}

// memberCards are the interfaces that are in a pool of any load balancer: they have
// no public address by default.
func (f *facts) memberCards() map[*card]bool {
	members := map[*card]bool{}
	for _, pool := range f.pools {
		for _, a := range pool {
			members[a.card] = true
		}
	}
	for _, b := range f.docs.balancers {
		for _, c := range b.Properties.Pools {
			for _, m := range f.membersByAddress(c.Properties) {
				members[m.card] = true
			}
		}
	}
	return members
}

// balancedSources are the public addresses that load balancers lend to members of
// their pools: by outbound rules, else by load balancing rules that do not refuse.
func (f *facts) balancedSources(n *network) map[*address]netip.Addr {
	sources := map[*address]netip.Addr{}
	done := map[string]bool{}
	lend := func(r *rule) {
		if done[r.membersKey()] {
			return // they have an address already
		}
		done[r.membersKey()] = true
		for _, m := range f.members(r) {
			if m.card.subnet.network == n && !sources[m.address].IsValid() {
				sources[m.address] = r.frontend
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(f.docs.balancers)) {
		b := f.docs.balancers[key]
		for _, o := range b.Properties.OutboundRules {
			for _, front := range b.Properties.Frontends {
				id := b.ID.Child("frontendIPConfigurations", front.Name)
				a, internal := f.frontendAddress(front.Properties)
				wanted := slices.ContainsFunc(o.Properties.Frontends, func(r reference) bool { return id.Equal(r.ID) })
				if wanted && !internal && a.IsValid() {
					lend(&rule{balancer: b, frontend: a, doc: balancingRule{Pool: o.Properties.Pool}})
				}
			}
		}
	}
	for _, r := range f.rules {
		if r.network == n && !r.internal && !r.doc.DisableOutboundSNAT {
			lend(r)
		}
	}
	return sources
}

// unusedAddress is a public address that no document gives away: that of machines
// that have none. It is the same as long as nobody else gets it.
func unusedAddress(n *network, taken map[netip.Addr]bool) netip.Addr {
	sum := fnv.New32a()
	sum.Write([]byte(n.id.Key()))
	const places = 1 << 16
	start := sum.Sum32()
	for i := range uint32(places) {
		at := (start + i) % places
		a := netip.AddrFrom4([4]byte{198, 18, byte(at >> 8), byte(at)})
		if !taken[a] {
			taken[a] = true
			return a
		}
	}
	return netip.Addr{}
}

// gatewayRules: connections may leave with an address of their own, and come in to
// frontends and to public addresses of interfaces. Nobody outside has an address of
// the network.
func gatewayRules(n *network, b *builder) {
	var foreign []string
	for _, p := range n.space {
		foreign = append(foreign, joined(`iifname "out"`, family(p.Addr()), "saddr", p.String(), "drop"))
	}
	b.base("source", "type filter hook prerouting priority raw", foreign...)
	b.base("arrive", "type nat hook prerouting priority dstnat",
		"dnat ip to ip daddr map @private4",
		"dnat ip6 to ip6 daddr map @private6",
	)
	b.base("pass", "type filter hook forward priority filter ; policy drop",
		"ct state invalid drop",
		"ct state established,related accept",
		`iifname "in" ip saddr @leaving4 accept`,
		`iifname "in" ip6 saddr @leaving6 accept`,
		`iifname "out" oifname "in" ct status dnat accept`,
		`iifname "out" oifname "in" ip daddr @frontends4 accept`,
		`iifname "out" oifname "in" ip6 daddr @frontends6 accept`,
	)
	b.base("depart", "type nat hook postrouting priority srcnat",
		"snat ip to ip saddr map @source4",
		"snat ip6 to ip6 saddr map @source6",
	)
	b.base("host", "type filter hook input priority filter ; policy drop",
		"icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept",
	)
}
