package wiring

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// compileRouter returns the namespace to which the machines of a network are linked.
func compileRouter(l *balancing, n *network) Namespace {
	s := Namespace{Name: n.router, Own: true}
	s.Addresses = append(s.Addresses, Address{"lo", single(Platform)}, Address{"lo", single(Metadata)})
	s.Neighbours = append(s.Neighbours, Neighbour{"up", far4, farMAC}, Neighbour{"up", far6, farMAC})
	for _, p := range n.space {
		s.Routes = append(s.Routes, Route{To: p, Kind: Blackhole})
	}
	for _, sub := range n.subnets {
		s.Addresses = append(s.Addresses, Address{"lo", single(sub.first.Next())})
		s.Marks = append(s.Marks, Mark{number(sub.first), subnetOrder})
		s.Routes = append(s.Routes, sub.table()...)
		for _, r := range sub.ranges {
			if r.Addr().Is4() {
				// The router answers for addresses without a machine, such as those of load balancers. The kernel answers only for
				// addresses with a route. It drops packets on this one, because no chain lets them through.
				s.Routes = append(s.Routes, Route{To: r, Kind: Unicast, Device: "lo"})
			}
		}
	}
	for _, c := range n.interfaces {
		if c.attachment != nil {
			c.connect(&s)
		} else {
			c.blackhole(&s)
		}
	}
	b := newBuilder()
	addInterfaceSets(b, n)
	security{index: l.index, rules: b}.addInterfaces(n)
	addBalancing(b, l, n)
	n.addApplications(&s, b)
	preroutingChains(b)
	forwardChains(b)
	platformChains(b)
	s.Rules = b.Ruleset
	return s
}

// connect adds an interface with a machine to the router.
func (c *nic) connect(s *Namespace) {
	link := c.link()
	s.Addresses = append(s.Addresses, Address{link, netip.PrefixFrom(Gateway6, 64)})
	s.Marks = append(s.Marks, Mark{c.mark(), interfaceOrder})
	done := map[bool]bool{}
	for _, a := range c.addresses {
		s.Neighbours = append(s.Neighbours, Neighbour{link, a.address, c.mac()})
		from := Gateway6
		if a.address.Is4() {
			from = Platform
		}
		s.Routes = append(s.Routes, Route{To: single(a.address), Kind: Unicast, Device: link, Source: from})
		if is4 := a.address.Is4(); !done[is4] {
			done[is4] = true
			s.Routes = append(s.Routes, Route{Table: c.mark(), To: everywhere(a.address), Kind: Unicast, Via: a.address, Device: link})
		}
	}
}

// blackhole drops packets that a load balancer sends to an interface that no machine has.
func (c *nic) blackhole(s *Namespace) {
	s.Marks = append(s.Marks, Mark{c.mark(), interfaceOrder})
	done := map[bool]bool{}
	for _, a := range c.addresses {
		if is4 := a.address.Is4(); !done[is4] {
			done[is4] = true
			s.Routes = append(s.Routes, Route{Table: c.mark(), To: everywhere(a.address), Kind: Blackhole})
		}
	}
}

// table returns the routes for packets from a subnet: the routes of its route table, and Azure's own for other ranges.
func (s *resolvedSubnet) table() []Route {
	number := number(s.first)
	routes := map[netip.Prefix]Route{}
	// Private addresses of other networks lead nowhere, all other addresses to the internet.
	for _, text := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"} {
		p := netip.MustParsePrefix(text)
		routes[p] = Route{To: p, Kind: Blackhole}
	}
	for _, p := range []netip.Prefix{everywhere(near4), everywhere(near6)} {
		routes[p] = rangeTowards(p, "up", far4, far6)
	}
	for _, p := range s.network.space {
		routes[p] = Route{To: p, Kind: Throw}
	}
	for _, r := range s.routes {
		if p, err := netip.ParsePrefix(r.AddressPrefix); err == nil {
			routes[p.Masked()] = s.userRoute(p.Masked(), r)
		}
	}
	var all []Route
	for _, r := range routes {
		r.Table = number
		all = append(all, r)
	}
	return all
}

// userRoute returns one route of a route table. Packets to an absent next hop are dropped.
func (s *resolvedSubnet) userRoute(to netip.Prefix, r userRoute) Route {
	switch strings.ToLower(r.NextHopType) {
	case "vnetlocal":
		return Route{To: to, Kind: Throw}
	case "internet":
		return rangeTowards(to, "up", far4, far6)
	case "virtualappliance":
		hop, ok := parseAddress(r.NextHopIPAddress)
		if a := s.network.byAddress[hop]; ok && a != nil && a.nic.attachment != nil && hop.Is4() == to.Addr().Is4() {
			return Route{To: to, Kind: Unicast, Via: hop, Device: a.nic.link()}
		}
	}
	return Route{To: to, Kind: Blackhole}
}

// preroutingChains adds the chains that check the source of a packet, and choose its route and its receiver.
func preroutingChains(b *builder) {
	b.base("source", "type filter hook prerouting priority raw",
		// A machine without an address asks for one.
		`iifname "n*" ip saddr 0.0.0.0 ip daddr 255.255.255.255 udp sport 68 udp dport 67 accept`,
		fmt.Sprintf(`iifname "n*" ip saddr { %s, 127.0.0.0/8, 169.254.0.0/16 } drop`, Platform),
		"iifname @strict meta nfproto ipv4 iifname . ip saddr != @own4 drop",
		"iifname @strict meta nfproto ipv6 ip6 saddr != { ::, fe80::/10 } iifname . ip6 saddr != @own6 drop",
	)
	b.base("choose", "type filter hook prerouting priority mangle",
		`iifname "n*" ct state new jump leave`,
		"meta mark set iifname map @subnets",
		fmt.Sprintf("ip daddr { %s, %s } meta mark set iifname map @interfaces ct mark set meta mark", Platform, Metadata),
		`iifname "up" ip daddr . meta l4proto . th dport vmap @public_floating4`,
		`iifname "up" ip6 daddr . meta l4proto . th dport vmap @public_floating6`,
		`iifname "n*" ip daddr . meta l4proto . th dport vmap @internal_floating4`,
		`iifname "n*" ip6 daddr . meta l4proto . th dport vmap @internal_floating6`,
		`iifname "n*" meta l4proto { tcp, udp } ip daddr vmap @internal_floating_all4`,
		`iifname "n*" meta l4proto { tcp, udp } ip6 daddr vmap @internal_floating_all6`,
		"ct direction original ct mark != 0 meta mark set ct mark",
	)
	b.chain("leave",
		fmt.Sprintf("ip daddr { %s, %s, 255.255.255.255 } return", Platform, Metadata),
		"meta l4proto ipv6-icmp ip6 daddr { fe80::/10, ff00::/8 } return",
		"iifname vmap @outbound",
	)
	b.base("translate", "type nat hook prerouting priority dstnat",
		`iifname "up" ip daddr . meta l4proto . th dport vmap @public_translated4`,
		`iifname "up" ip6 daddr . meta l4proto . th dport vmap @public_translated6`,
		`iifname "n*" ip daddr . meta l4proto . th dport vmap @internal_translated4`,
		`iifname "n*" ip6 daddr . meta l4proto . th dport vmap @internal_translated6`,
		`iifname "n*" meta l4proto { tcp, udp } ip daddr vmap @internal_translated_all4`,
		`iifname "n*" meta l4proto { tcp, udp } ip6 daddr vmap @internal_translated_all6`,
	)
}

// forwardChains adds the chains that apply the security groups.
func forwardChains(b *builder) {
	b.base("pass", "type filter hook forward priority filter ; policy drop",
		"ct state invalid drop",
		"oifname @strict meta nfproto ipv4 oifname . ip daddr != @own4 drop",
		"oifname @strict meta nfproto ipv6 oifname . ip6 daddr != @own6 drop",
		"ct state established,related accept",
		"oifname vmap @inbound",
		`oifname "n*" accept`,
		`iifname "n*" oifname "up" accept`,
	)
	b.base("probe", "type filter hook output priority filter",
		"meta l4proto ipv6-icmp return",
		"udp sport 67 udp dport 68 return",
		"ct state new oifname vmap @inbound",
	)
}

// platformChains adds the chains for the addresses of the platform.
func platformChains(b *builder) {
	// Replies of the platform go to the interface from which the request came, whatever its source address.
	b.base("answer", "type route hook output priority mangle",
		"ct direction reply ct mark != 0 meta mark set ct mark",
	)
	b.base("platform", "type filter hook input priority filter ; policy drop",
		"iifname lo accept",
		"ct state established,related accept",
		"icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept",
		fmt.Sprintf(`iifname "n*" ip daddr { %s, %s } meta l4proto { tcp, udp } accept`, Platform, Metadata),
		`iifname "n*" ip daddr 255.255.255.255 udp dport 67 accept`,
		`iifname { "up", "n*" } ip daddr @applications_public meta l4proto tcp accept`,
		`iifname "n*" ip daddr @applications_private meta l4proto tcp accept`,
	)
}

// addInterfaceSets adds the marks of the interfaces, and the addresses that packets from and to them may have.
func addInterfaceSets(b *builder, n *network) {
	subnets := b.set("subnets", "map", "type ifname : mark")
	interfaces := b.set("interfaces", "map", "type ifname : mark")
	strict := b.set("strict", "set", "type ifname")
	own4 := b.set("own4", "set", "type ifname . ipv4_addr")
	own6 := b.set("own6", "set", "type ifname . ipv6_addr")
	for _, c := range n.interfaces {
		if c.attachment == nil {
			continue
		}
		link := quoted(c.link())
		subnets[link] = mark(number(c.subnet.first))
		interfaces[link] = mark(c.mark())
		if c.doc.EnableIPForwarding {
			continue
		}
		strict[link] = ""
		for _, a := range slices.Compact(slices.SortedFunc(slices.Values(c.accepted), netip.Addr.Compare)) {
			if a.Is4() {
				own4[link+" . "+a.String()] = ""
			} else {
				own6[link+" . "+a.String()] = ""
			}
		}
	}
}
