package wiring

import (
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
)

// takenAddresses returns the public addresses in documents and of the data plane itself.
func takenAddresses(docs *Documents) map[netip.Addr]bool {
	taken := map[netip.Addr]bool{outside4: true, internet4: true, netip.MustParseAddr("198.18.0.0"): true}
	for _, doc := range docs.addresses {
		if a, ok := parseAddress(doc.Properties.IPAddress); ok {
			taken[a] = true
		}
	}
	return taken
}

// gateway compiles the namespace between the private and the public addresses of a network.
type gateway struct {
	*balancing
	network   *network
	ruleset   *builder
	reachable map[netip.Addr]bool // public addresses that lead to the network
}

// compileGateway returns the gateway of a network and the public addresses that lead to it. It adds the
// address of default outbound access to taken.
func compileGateway(l *balancing, n *network, taken map[netip.Addr]bool) (Namespace, []netip.Addr) {
	g := gateway{balancing: l, network: n, ruleset: newBuilder(), reachable: map[netip.Addr]bool{}}
	s := Namespace{Name: n.gateway, Own: true}
	s.Neighbours = append(s.Neighbours, Neighbour{"in", near4, nearMAC}, Neighbour{"in", near6, nearMAC},
		Neighbour{"out", far4, farMAC}, Neighbour{"out", far6, farMAC})
	for _, p := range n.space {
		s.Routes = append(s.Routes, rangeTowards(p, "in", near4, near6))
	}
	for _, p := range []netip.Prefix{everywhere(near4), everywhere(near6)} {
		s.Routes = append(s.Routes, rangeTowards(p, "out", far4, far6))
	}
	s.Routes = append(s.Routes, g.frontends()...)
	g.translations(unusedAddress(n, taken))
	gatewayRules(n, g.ruleset)
	s.Rules = g.ruleset.Ruleset
	return s, slices.SortedFunc(maps.Keys(g.reachable), netip.Addr.Compare)
}

// frontends adds the public frontends of load balancers and application gateways, and returns the routes to them.
func (g *gateway) frontends() []Route {
	var routes []Route
	frontends := map[bool]map[string]string{true: g.ruleset.set("frontends4", "set", "type ipv4_addr"),
		false: g.ruleset.set("frontends6", "set", "type ipv6_addr")}
	for _, r := range g.rules {
		if r.network == g.network && !r.internal {
			g.reachable[r.frontend] = true
			frontends[r.frontend.Is4()][r.frontend.String()] = ""
			routes = append(routes, towards(r.frontend, "in", near4, near6))
		}
	}
	return append(routes, g.applications(frontends[true])...)
}

// translations adds the translations between private and public addresses. Machines without a public address leave
// with the fallback address.
func (g *gateway) translations(fallback netip.Addr) {
	b := g.ruleset
	private := map[bool]map[string]string{true: b.set("private4", "map", "type ipv4_addr : ipv4_addr"),
		false: b.set("private6", "map", "type ipv6_addr : ipv6_addr")}
	source := map[bool]map[string]string{true: b.set("source4", "map", "type ipv4_addr : ipv4_addr"),
		false: b.set("source6", "map", "type ipv6_addr : ipv6_addr")}
	leaving := map[bool]map[string]string{true: b.set("leaving4", "set", "type ipv4_addr"),
		false: b.set("leaving6", "set", "type ipv6_addr")}
	g.leave(source[true], leaving[true], fallback)
	o := outbound{balanced: g.balancedSources(), members: g.memberInterfaces(), fallback: fallback}
	for _, c := range g.network.interfaces {
		o.nat = g.natAddress(c.subnet)
		for _, a := range c.addresses {
			is4 := a.address.Is4()
			if a.hasOwn() {
				g.reachable[a.public] = true
				private[is4][a.public.String()] = a.address.String()
			}
			if from := o.source(a); from.IsValid() {
				g.reachable[from] = true
				source[is4][a.address.String()] = from.String()
				leaving[is4][a.address.String()] = ""
			}
		}
	}
}

// outbound has the public source addresses of a network's connections.
type outbound struct {
	nat, fallback netip.Addr
	balanced      map[*address]netip.Addr
	members       map[*nic]bool
}

// source returns the public address with which connections from a private address leave. It is invalid for an address
// without outbound connectivity.
func (o outbound) source(a *address) netip.Addr {
	is4, allowed := a.address.Is4(), a.nic.subnet.doc.DefaultOutboundAccess
	switch {
	case is4 && o.nat.IsValid():
		return o.nat
	case a.hasOwn():
		return a.public
	case o.balanced[a].IsValid():
		return o.balanced[a]
	case is4 && !o.members[a.nic] && !a.nic.hasPublic() && (allowed == nil || *allowed):
		return o.fallback
	}
	return netip.Addr{}
}

// hasOwn reports whether the address has a public address of its family.
func (a *address) hasOwn() bool { return a.public.IsValid() && a.public.Is4() == a.address.Is4() }

// natAddress returns the address of the subnet's NAT gateway, which has precedence over all others.
func (g *gateway) natAddress(s *resolvedSubnet) netip.Addr {
	nat := g.docs.gateways[s.doc.NATGateway.key()]
	if nat == nil {
		return netip.Addr{}
	}
	for i := range nat.Properties.PublicIPAddresses {
		if a := g.public(&nat.Properties.PublicIPAddresses[i]); a.IsValid() && a.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

func (c *nic) hasPublic() bool {
	return slices.ContainsFunc(c.addresses, func(a *address) bool { return a.public.IsValid() })
}

// memberInterfaces returns the interfaces in a pool of any load balancer. They have no default outbound access.
func (g *gateway) memberInterfaces() map[*nic]bool {
	members := map[*nic]bool{}
	for _, pool := range g.pools {
		for _, a := range pool {
			members[a.nic] = true
		}
	}
	for _, b := range g.docs.balancers {
		for _, c := range b.Properties.Pools {
			for _, m := range g.membersByAddress(c.Properties) {
				members[m.nic] = true
			}
		}
	}
	return members
}

// balancedSources returns the frontend addresses with which members of pools leave: by outbound rules first, then by
// load balancing rules without disableOutboundSnat.
func (g *gateway) balancedSources() map[*address]netip.Addr {
	sources := map[*address]netip.Addr{}
	done := map[string]bool{}
	assign := func(r *rule) {
		if done[r.membersKey()] {
			return // these members have an address already
		}
		done[r.membersKey()] = true
		for _, m := range g.members(r) {
			if m.nic.subnet.network == g.network && !sources[m.address].IsValid() {
				sources[m.address] = r.frontend
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g.docs.balancers)) {
		b := g.docs.balancers[key]
		for _, o := range b.Properties.OutboundRules {
			for _, front := range b.Properties.Frontends {
				id := b.ID.Child("frontendIPConfigurations", front.Name)
				a, internal := g.frontendAddress(front.Properties)
				wanted := slices.ContainsFunc(o.Properties.Frontends, func(r reference) bool { return id.Equal(r.ID) })
				if wanted && !internal && a.IsValid() {
					assign(&rule{balancer: b, frontend: a, doc: balancingRule{Pool: o.Properties.Pool}})
				}
			}
		}
	}
	for _, r := range g.rules {
		if r.network == g.network && !r.internal && !r.doc.DisableOutboundSNAT {
			assign(r)
		}
	}
	return sources
}

// unusedAddress returns a public address that no document has, for default outbound access. It does not change while it
// stays unused.
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

// gatewayRules adds the chains of a gateway. Connections may leave with an own public address, and come in to frontends
// and public addresses of interfaces. Packets from outside with a source in the network are dropped.
func gatewayRules(n *network, b *builder) {
	var drops []string
	for _, p := range n.space {
		drops = append(drops, joined(`iifname "out"`, family(p.Addr()), "saddr", p.String(), "drop"))
	}
	b.base("source", "type filter hook prerouting priority raw", drops...)
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
