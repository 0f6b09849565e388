package wiring

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"kaz/internal/azure"
)

// Hardware addresses and next hops of the links between namespaces. All links have the same, because each namespace has
// them as permanent neighbours.
const (
	gatewayMAC = "12:34:56:78:9a:bc" // the router's end of a machine's link
	nearMAC    = "02:6b:61:7a:00:01" // the end nearer to the machines
	farMAC     = "02:6b:61:7a:00:02"
)

var (
	near4 = netip.MustParseAddr("169.254.255.1")
	far4  = netip.MustParseAddr("169.254.255.2")
	near6 = netip.MustParseAddr("fe80::1")
	far6  = netip.MustParseAddr("fe80::2")
)

// Compile returns the state of the kernel in which packets are treated as the documents say.
func Compile(docs *Documents, state State) Net {
	x := resolve(docs, state)
	l := resolveBalancing(x)
	var net Net
	internet := Namespace{Name: Prefix(state.Instance) + "-internet", Own: true}
	guests := map[string]*Namespace{}
	taken := takenAddresses(docs)
	for _, n := range x.networks {
		gateway, public := compileGateway(l, n, taken)
		net.Namespaces = append(net.Namespaces, compileRouter(l, n), gateway)
		net.Links = append(net.Links,
			Link{A: End{n.router, "up", nearMAC}, B: End{n.gateway, "in", farMAC}},
			Link{A: End{n.gateway, "out", nearMAC}, B: End{internet.Name, n.link, farMAC}})
		internet.Neighbours = append(internet.Neighbours, Neighbour{n.link, near4, nearMAC}, Neighbour{n.link, near6, nearMAC})
		for _, a := range public {
			internet.Routes = append(internet.Routes, towards(a, n.link, near4, near6))
		}
		for _, c := range n.interfaces {
			if c.attachment != nil {
				net.Links = append(net.Links, Link{A: End{n.router, c.link(), gatewayMAC},
					B: End{c.attachment.Namespace, c.attachment.Device, c.mac()}, Made: c.attachment.Made})
				addGuest(guests, c)
			}
		}
		net.Routers = append(net.Routers, routerOf(n))
		net.Applications = append(net.Applications, n.applicationGateways()...)
	}
	net.Namespaces = append(net.Namespaces, internet)
	outsideWorld(&net, state)
	for _, path := range slices.Sorted(maps.Keys(guests)) {
		net.Namespaces = append(net.Namespaces, *guests[path])
	}
	addProbes(&net, l.rules)
	for i := range net.Namespaces {
		tidy(&net.Namespaces[i])
	}
	slices.SortFunc(net.Links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.A.Namespace, b.A.Namespace), cmp.Compare(a.A.Name, b.A.Name))
	})
	return net
}

// outsideWorld adds the link between the internet namespace and this machine, with a route for each family.
func outsideWorld(net *Net, state State) {
	internet := &net.Namespaces[len(net.Namespaces)-1]
	device := Prefix(state.Instance)
	net.Links = append(net.Links, Link{A: End{internet.Name, "outside", nearMAC}, B: End{state.Outside, device, farMAC}})
	internet.Addresses = append(internet.Addresses, Address{"lo", single(internet4)}, Address{"lo", single(internet6)})
	internet.Neighbours = append(internet.Neighbours, Neighbour{"outside", far4, farMAC}, Neighbour{"outside", far6, farMAC})
	internet.Routes = append(internet.Routes, towards(outside4, "outside", far4, far6), towards(outside6, "outside", far4, far6))
	outside := Namespace{Name: state.Outside}
	for i, r := range PublicRanges() {
		source := []netip.Addr{outside4, outside6}[i]
		via := []netip.Addr{internet4, near6}[i]
		outside.Addresses = append(outside.Addresses, Address{device, single(source)})
		outside.Neighbours = append(outside.Neighbours, Neighbour{device, via, nearMAC})
		outside.Routes = append(outside.Routes, Route{To: r, Kind: Unicast, Via: via, Device: device, Source: source})
	}
	net.Namespaces = append(net.Namespaces, outside)
}

// towards returns a route to one address.
func towards(to netip.Addr, device string, via4, via6 netip.Addr) Route {
	return rangeTowards(single(to), device, via4, via6)
}

func rangeTowards(to netip.Prefix, device string, via4, via6 netip.Addr) Route {
	r := Route{To: to, Kind: Unicast, Device: device, Via: via4}
	if !to.Addr().Is4() {
		r.Via = via6
	}
	return r
}

// tidy sorts everything in a namespace and removes duplicates.
func tidy(s *Namespace) {
	slices.SortFunc(s.Addresses, func(a, b Address) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Prefix.String(), b.Prefix.String()))
	})
	s.Addresses = slices.Compact(s.Addresses)
	slices.SortFunc(s.Neighbours, func(a, b Neighbour) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), a.Address.Compare(b.Address))
	})
	s.Neighbours = slices.Compact(s.Neighbours)
	slices.SortFunc(s.Routes, func(a, b Route) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), a.To.Addr().Compare(b.To.Addr()), cmp.Compare(a.To.Bits(), b.To.Bits()),
			cmp.Compare(a.Metric, b.Metric))
	})
	s.Routes = slices.CompactFunc(s.Routes, func(a, b Route) bool { return a.place() == b.place() })
	slices.SortFunc(s.Marks, func(a, b Mark) int { return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Value, b.Value)) })
	s.Marks = slices.Compact(s.Marks)
}

// addGuest adds an interface to the namespace of its machine.
func addGuest(guests map[string]*Namespace, c *nic) {
	g := guests[c.attachment.Namespace]
	if g == nil {
		g = &Namespace{Name: c.attachment.Namespace, Guest: true}
		guests[c.attachment.Namespace] = g
	}
	device, metric := c.attachment.Device, 100*(c.attachment.Index+1)
	hop4 := c.subnet.first.Next()
	done := map[bool]bool{}
	for _, a := range c.addresses {
		bits := a.address.BitLen()
		if s := c.subnet.network.rangeOf(a.address); s.IsValid() {
			bits = s.Bits()
		}
		g.Addresses = append(g.Addresses, Address{device, netip.PrefixFrom(a.address, bits)})
		if is4 := a.address.Is4(); !done[is4] {
			done[is4] = true
			hop := Gateway6
			if is4 {
				hop = hop4
				g.Routes = append(g.Routes, Route{To: single(hop), Kind: Unicast, Device: device, Source: a.address, Metric: metric})
			}
			r := Route{To: everywhere(a.address), Kind: Unicast, Via: hop, Device: device, Metric: metric}
			if is4 {
				r.Source = a.address
			}
			g.Routes = append(g.Routes, r)
			g.Neighbours = append(g.Neighbours, Neighbour{device, hop, gatewayMAC})
		}
	}
}

// rangeOf returns the range of the subnet that contains an address.
func (n *network) rangeOf(a netip.Addr) netip.Prefix {
	for _, s := range n.subnets {
		for _, r := range s.ranges {
			if r.Contains(a) {
				return r
			}
		}
	}
	return netip.Prefix{}
}

func routerOf(n *network) Router {
	r := Router{Network: n.id, Namespace: n.router, Interfaces: map[netip.Addr]azure.ID{}}
	for a, of := range n.byAddress {
		r.Interfaces[a] = of.nic.id
	}
	for _, sub := range n.subnets {
		if len(sub.routes) > 0 && r.Mark == 0 {
			r.Mark = number(sub.first)
		}
	}
	return r
}

// addProbes adds the probes, each once, and the state of each rule.
func addProbes(net *Net, rules []*rule) {
	asked := map[string]bool{}
	for _, r := range rules {
		net.Balancers = append(net.Balancers, Balancer{Rule: r.id, Frontend: r.frontend, Protocol: r.doc.Protocol, Port: r.doc.FrontendPort,
			Backends: r.all, Healthy: r.healthy})
		if asked[r.key] {
			continue
		}
		asked[r.key] = true
		for _, m := range r.backends {
			if m.probe.Key != "" {
				net.Probes = append(net.Probes, m.probe)
			}
		}
	}
	slices.SortFunc(net.Probes, func(a, b Probe) int { return cmp.Compare(a.Key, b.Key) })
	net.Probes = slices.Compact(net.Probes)
}

// String returns a line for logs and status.
func (b Balancer) String() string {
	return fmt.Sprintf("%s %s %s:%d, %d of %d receivers", b.Rule.Name(), b.Protocol, b.Frontend, b.Port, len(b.Healthy), len(b.Backends))
}
