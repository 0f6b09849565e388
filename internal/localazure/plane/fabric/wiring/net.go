package wiring

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"kaz/internal/azure"
)

// Net is the state of the kernel. Everything in it is in a fixed order, so equal values mean the same state.
type Net struct {
	Namespaces   []Namespace
	Links        []Link
	Probes       []Probe
	Routers      []Router
	Balancers    []Balancer
	Applications []ApplicationGateway
}

// Namespace is a network namespace with everything in it except links.
type Namespace struct {
	// Name is the name of an own namespace, the path of a foreign one, or "" for the namespace in which kaz runs.
	Name string
	// Own is true for a namespace that is created and removed with the Net.
	Own bool
	// Guest is true for the namespace of a machine, which can have other addresses too.
	Guest      bool
	Addresses  []Address
	Neighbours []Neighbour
	Routes     []Route
	Marks      []Mark
	Rules      Ruleset
}

// Link is a pair of connected interfaces.
type Link struct {
	A, B End
	// Made distinguishes a link from an earlier one with the same ends.
	Made uint64
}

// End is one interface of a link.
type End struct {
	Namespace, Name, MAC string
}

// Address is an address of an interface.
type Address struct {
	Device string
	Prefix netip.Prefix
}

// Neighbour is a permanent neighbour entry.
type Neighbour struct {
	Device  string
	Address netip.Addr
	MAC     string
}

// Mark is the rule that leads packets with a mark to the routing table of the same number.
type Mark struct {
	Value uint32
	// Order is the priority of the rule. Marks that most packets have come first.
	Order int
}

// The orders of subnets, which are few, and of interfaces.
const (
	subnetOrder    = 1000
	interfaceOrder = 2000
)

// RouteKind is the treatment of packets that match a route.
type RouteKind string

// Kinds of routes: a packet is sent, goes on to the next table, or is dropped.
const (
	Unicast   RouteKind = "unicast"
	Throw     RouteKind = "throw"
	Blackhole RouteKind = "blackhole"
)

// Route is a route.
type Route struct {
	Table  uint32 // 0 for the main table
	To     netip.Prefix
	Kind   RouteKind
	Via    netip.Addr
	Device string
	Source netip.Addr // of packets from this namespace
	Metric int
}

// place returns a key that no two routes of a namespace share.
func (r Route) place() string { return fmt.Sprint(r.Table, r.To, r.Metric) }

// Probe is a load balancer's probe of one backend.
type Probe struct {
	Key       string // does not change while the probe stays the same
	Namespace string // from which the probe is sent
	Device    string // leads to the backend
	Address   netip.Addr
	Protocol  string // Tcp, Http or Https
	Port      int
	Path      string
	Interval  time.Duration
	Threshold int
}

// Router is the router of a virtual network.
type Router struct {
	Network   azure.ID
	Namespace string
	// Interfaces are the network interfaces by private address.
	Interfaces map[netip.Addr]azure.ID
	// Mark is the mark with which packets from the router use the route table of the first subnet with one, 0 for none.
	Mark uint32
}

// AddressOf returns the primary address of the interface from which packets with the mark came.
func AddressOf(mark uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(mark >> 24), byte(mark >> 16), byte(mark >> 8), byte(mark)})
}

// Balancer is the state of one load balancing rule.
type Balancer struct {
	Rule     azure.ID
	Frontend netip.Addr
	Protocol string
	Port     int
	// Backends are all members, Healthy are the members that get new connections.
	Backends, Healthy []netip.Addr
}

// Attachment is a machine's end of a network interface.
type Attachment struct {
	Namespace string // path of the machine's network namespace
	Device    string // name of the interface in it
	Index     int    // 0 for the primary interface of the machine
	Made      uint64 // grows with every attachment
}

// State is the input of Compile that is not in documents.
type State struct {
	// Instance distinguishes local Azures on one machine.
	Instance string
	// Outside is the path of the namespace from which public addresses are reached, "" for the namespace in which kaz
	// runs.
	Outside string
	// Attached are the interfaces of running machines, by the keys of their ids.
	Attached map[string]Attachment
	// Healthy are the keys of probes with healthy backends.
	Healthy map[string]bool
}

// Prefix returns the prefix of the names of all namespaces and of the interface outside.
func Prefix(instance string) string { return "kaz-" + instance }

// The addresses of the platform.
var (
	// Platform is the source of probes and the address of the name server.
	Platform = netip.MustParseAddr("168.63.129.16")
	// Metadata is the address of the instance metadata service.
	Metadata = netip.MustParseAddr("169.254.169.254")
	// Gateway6 is the IPv6 gateway of every machine, and the source of probes over IPv6.
	Gateway6 = netip.MustParseAddr("fe80::1234:5678:9abc")
)

// PublicRanges returns the ranges of public addresses.
func PublicRanges() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("2001:db8::/32")}
}

// The addresses of this machine, and of the internet's end of the link to it. No public address is one of these.
var (
	outside4  = netip.MustParseAddr("198.18.0.2")
	outside6  = netip.MustParseAddr("2001:db8::2")
	internet4 = netip.MustParseAddr("198.18.0.1")
	internet6 = netip.MustParseAddr("2001:db8::1")
)

// Outside returns the source addresses of this machine as virtual networks see them.
func Outside() (v4, v6 netip.Addr) { return outside4, outside6 }

// number returns an IPv4 address as a number.
func number(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func mark(n uint32) string { return fmt.Sprintf("0x%08x", n) }

// single returns the range of one address.
func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// everywhere returns the range of all addresses of the family of a.
func everywhere(a netip.Addr) netip.Prefix {
	if a.Is4() {
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
}

// family returns the family of an address in nft's spelling.
func family(a netip.Addr) string {
	if a.Is4() {
		return "ip"
	}
	return "ip6"
}

func parseAddress(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	return a, err == nil && a.Zone() == "" && !a.Is4In6()
}

// parsePrefix parses a range or a single address.
func parsePrefix(text string) (netip.Prefix, bool) {
	if a, ok := parseAddress(text); ok {
		return single(a), true
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err == nil && !p.Addr().Is4In6()
}

func parsePrefixes(texts []string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		if p, ok := parsePrefix(text); ok {
			all = append(all, p)
		}
	}
	return all
}

// String returns the Net as text, for people and tests.
func (n Net) String() string {
	var b strings.Builder
	for _, l := range n.Links {
		fmt.Fprintf(&b, "link %s - %s\n", l.A, l.B)
	}
	for _, s := range n.Namespaces {
		s.text(&b)
	}
	for _, p := range n.Probes {
		fmt.Fprintf(&b, "probe %s from %s: %s %s port %d %s every %s, %d in a row\n", p.Key, p.Namespace, p.Protocol, p.Address, p.Port,
			p.Path, p.Interval, p.Threshold)
	}
	return b.String()
}

func (e End) String() string { return strings.TrimSpace(e.Namespace + "/" + e.Name + " " + e.MAC) }

func (s Namespace) text(b *strings.Builder) {
	fmt.Fprintf(b, "\nnamespace %q\n", s.Name)
	for _, a := range s.Addresses {
		fmt.Fprintf(b, "  address %s dev %s\n", a.Prefix, a.Device)
	}
	for _, n := range s.Neighbours {
		fmt.Fprintf(b, "  neighbour %s is %s dev %s\n", n.Address, n.MAC, n.Device)
	}
	for _, m := range s.Marks {
		fmt.Fprintf(b, "  mark %s at %d\n", mark(m.Value), m.Order)
	}
	for _, r := range s.Routes {
		fmt.Fprintf(b, "  route %s\n", r)
	}
	for line := range strings.Lines(s.Rules.String()) {
		b.WriteString("  " + line)
	}
}

// String returns the route in the syntax of ip.
func (r Route) String() string {
	text := r.To.String()
	if r.Kind != Unicast {
		text = string(r.Kind) + " " + text
	}
	if r.Via.IsValid() {
		text += " via " + r.Via.String()
	}
	if r.Device != "" {
		text += " dev " + r.Device
	}
	if r.Via.IsValid() {
		text += " onlink"
	}
	if r.Source.IsValid() {
		text += " src " + r.Source.String()
	}
	if r.Table != 0 {
		text += fmt.Sprintf(" table %d", r.Table)
	}
	if r.Metric != 0 {
		text += fmt.Sprintf(" metric %d", r.Metric)
	}
	return text
}
