package spec

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
)

// Spec is what one Service asks for.
type Spec struct {
	Service   Service
	Base      string // starts the names of what the Service has
	Owner     string // the same in lower case
	Internal  bool
	Fixed     bool   // packets arrive at the nodes' own addresses
	Subnet    string // that it names, "" for the configured one
	Group     string // of its public IPs, "" for the cluster's
	Addresses []Address
	Access    Access
	Tags      azure.Tags      // of its public IPs
	IPTags    []network.IPTag // nil is no opinion
	IPTagSlip string          // what is wrong with them, "" for nothing
	Label     *string         // in Azure's DNS; nil is no opinion
	Further   []netip.Addr    // at which it answers, though other rules forward the packets
	Link      *Link           // private link service, nil for none
}

// Key is the Service's "namespace/name".
func (s *Spec) Key() string { return s.Service.Key() }

// Address is what a Service asks for in one IP family.
type Address struct {
	naming.Names
	Family   v1.IPFamily
	Pinned   string   // the address it must be, "" for any
	PublicIP string   // name of an existing public IP, "" for none
	Prefix   azure.ID // from which a new public IP is taken
	Asked    string   // where and how the Service names one of these, "" for nowhere
	Floating bool     // packets arrive at the address, not at the nodes' own
	Rules    []Rule
	Probes   []azure.Child[network.Probe]
}

// IsIPv6 reports whether the address is one of IPv6.
func (a Address) IsIPv6() bool { return a.Family == v1.IPv6Protocol }

// Given reports whether the Service names an existing address.
func (a Address) Given() bool { return a.PublicIP != "" || a.Pinned != "" }

// Link is the private link service that a Service asks for.
type Link struct {
	Name       string // "" for one after the frontend
	Group      string // resource group, "" for the configured one
	Subnet     string // "" for the configured one
	Count      int    // of addresses
	Static     []string
	FQDNs      []string
	Proxy      bool
	Visibility []string
	Approval   []string
	Option     string // an annotation that only the owner may have, "" for none
}

// Read reads what a Service asks for and what is wrong with it.
func Read(s Service, c cluster.Config) (*Spec, problem.List) {
	r := &reader{Service: s, config: c}
	w := Outline(s)
	if r.ports(); r.found.Blocking() {
		return &Spec{Service: s, Base: w.Base, Owner: w.Owner}, r.found
	}
	if w.Internal {
		w.Subnet = read(r, key.InternalSubnet.Read)
	} else {
		r.publicIPs(w)
	}
	w.Further = r.readAddresses(key.AdditionalIPs, "no IP address", func(ip netip.Addr) bool { return ip.Zone() == "" })
	for _, family := range r.Families() {
		a := Address{Family: family, Names: naming.Names{Base: w.Base, Subnet: w.Subnet}, Floating: w.Floats(family)}
		if len(r.Families()) > 1 && a.IsIPv6() {
			a.Suffix = cluster.SuffixIPv6
		}
		if !w.Internal {
			if a.PublicIP, a.Asked = r.byFamily(family, key.PublicIPName, key.PublicIPNameIPv6); a.PublicIP == "" {
				var prefix string
				prefix, a.Asked = r.byFamily(family, key.PublicIPPrefix, key.PublicIPPrefixIPv6)
				a.Prefix = azure.ID(prefix)
			}
		}
		if a.Asked == "" {
			a.Pinned, a.Asked = r.pin(family, s.Spec.LoadBalancerIP)
		}
		r.rules(&a, w)
		w.Addresses = append(w.Addresses, a)
	}
	w.Link = r.link(w)
	w.Access = r.access(w)
	if !r.found.Blocking() {
		r.warnIgnored(w)
	}
	return w, r.found
}

// reader reads one Service and collects what is wrong with it.
type reader struct {
	Service
	config cluster.Config
	found  problem.List
}

func (r *reader) refuse(reason, format string, args ...any) {
	r.found.Refuse(r.Key(), reason, format, args...)
}

func (r *reader) warn(reason, format string, args ...any) {
	r.found.Warn(r.Key(), reason, format, args...)
}

// read reads an annotation; a value that is not allowed is a problem.
func read[T any](r *reader, from func(map[string]string) (T, error)) T {
	v, err := from(r.Annotations)
	if err != nil {
		r.refuse(problem.Annotation, "annotation %v", err)
	}
	return v
}

// readPort reads the annotation of a port; without one it is otherwise.
func readPort[T any](r *reader, a key.PortAnnotation[T], port int32, otherwise T) T {
	v, ok, err := a.Lookup(r.Annotations, port)
	if err != nil {
		r.refuse(problem.Annotation, "annotation %v", err)
	}
	if err != nil || !ok {
		return otherwise
	}
	return v
}

// ports refuses what no load balancer can serve.
func (r *reader) ports() {
	for _, p := range r.Spec.Ports {
		if _, ok := protocols[ProtocolOf(p)]; !ok {
			r.refuse(problem.Spec, "port %d: protocol %q is not allowed, allowed are TCP, UDP and SCTP", p.Port, p.Protocol)
		}
	}
	if len(r.Spec.Ports) == 0 {
		r.refuse(problem.Spec, "spec.ports is empty, at least one port is needed")
	}
	for _, family := range r.Spec.IPFamilies {
		if family != v1.IPv4Protocol && family != v1.IPv6Protocol {
			r.refuse(problem.Spec, "spec.ipFamilies: %q is not allowed, allowed are IPv4 and IPv6", family)
		}
	}
}

// publicIPs reads what only public IPs have.
func (r *reader) publicIPs(w *Spec) {
	w.Group = read(r, key.PublicIPGroup.Read)
	w.Tags = r.readPairs(key.PublicIPTags).Values
	if pairs, asked, _ := key.IPTags.Lookup(r.Annotations); asked {
		w.IPTags = []network.IPTag{}
		for _, kind := range slices.Sorted(maps.Keys(pairs.Values)) {
			w.IPTags = append(w.IPTags, network.IPTag{IPTagType: kind, Tag: pairs.Values[kind]})
		}
		if len(pairs.Skipped) > 0 {
			w.IPTagSlip = fmt.Sprintf("%q is no Type=Value pair", pairs.Skipped[0])
		} else if err := key.IPTags.Warning(pairs); err != nil {
			w.IPTagSlip = err.Error()
		}
	}
	if _, asked := r.Annotations[key.DNSLabel.Name]; asked {
		w.Label = new(read(r, key.DNSLabel.Read))
	}
}

// readPairs reads pairs and warns of those that are left out.
func (r *reader) readPairs(a key.Annotation[key.Pairs]) key.Pairs {
	pairs := read(r, a.Read)
	for _, skipped := range pairs.Skipped {
		r.warn(problem.Tags, "%s: %q is left out, allowed is %s", a.Name, skipped, a.Allowed)
	}
	return pairs
}

// readAddresses reads a list of addresses without repetitions.
func (r *reader) readAddresses(a key.Annotation[[]string], wrong string, isAllowed func(netip.Addr) bool) []netip.Addr {
	var all []netip.Addr
	for _, text := range read(r, a.Read) {
		ip, err := netip.ParseAddr(text)
		if err != nil || !isAllowed(ip) {
			r.refuse(problem.Annotation, "annotation %s: %q is %s, allowed is %s", a.Name, text, wrong, a.Allowed)
		} else if ip = ip.Unmap(); !slices.Contains(all, ip) {
			all = append(all, ip)
		}
	}
	return all
}

// byFamily reads a key that has a sibling for IPv6, and says which of the two it was.
// A Service with IPv6 only may use either.
func (r *reader) byFamily(family v1.IPFamily, plain, six key.Annotation[string]) (text, asked string) {
	keys := []key.Annotation[string]{six, plain}
	if family == v1.IPv4Protocol {
		keys = keys[1:]
	} else if len(r.Families()) > 1 {
		keys = keys[:1]
	}
	for _, k := range keys {
		if text = read(r, k.Read); text != "" {
			return text, fmt.Sprintf("annotation %s: %q", k.Name, text)
		}
	}
	return "", ""
}

// pin is the address that a Service wants to have in a family, and where it says so. The spec does not say of which family its
// address is, so one that fits no family of the Service is ignored.
func (r *reader) pin(family v1.IPFamily, inSpec string) (pinned, asked string) {
	own := key.IPv4
	if family == v1.IPv6Protocol {
		own = key.IPv6
	}
	text, where := read(r, own.Read), "annotation "+own.Name
	fromSpec := text == ""
	if fromSpec {
		text, where = strings.TrimSpace(inSpec), "spec.loadBalancerIP"
	}
	if text == "" {
		return "", ""
	}
	asked = fmt.Sprintf("%s: %q", where, text)
	internal, _ := key.Internal.Read(r.Annotations)
	ip, err := netip.ParseAddr(text)
	ip = ip.Unmap()
	fits := slices.Contains(r.Families(), address.Family(ip)) // a text that is no address counts as one of IPv6
	var is, allowed string
	switch {
	case err != nil || ip.Zone() != "":
		is, allowed = "no IP address", "one of the family "+string(family)
	case fromSpec && fits && address.Family(ip) != family:
		return "", ""
	case address.Family(ip) != family:
		is, allowed = "not of the family "+string(family), "an address of that family"
	case !internal && !address.IsPublic(ip):
		r.refuse(problem.Address, "%s is a non-public address, allowed for an external Service is the address of a public IP", asked)
		return "", asked
	default:
		return ip.String(), asked
	}
	if fromSpec && !fits {
		r.warn(problem.Address, "%s is %s and ignored, allowed is %s", asked, is, allowed)
		return "", ""
	}
	r.refuse(problem.Address, "%s is %s, allowed is %s", asked, is, allowed)
	return "", asked
}

// link reads the private link service that a Service asks for, nil for none.
func (r *reader) link(w *Spec) *Link {
	if !read(r, key.LinkCreate.Read) {
		return nil
	}
	if !w.Internal && !w.Fixed {
		r.refuse(problem.Annotation,
			"annotation %s: a private link service needs an internal address, or one without floating IP, allowed is it with %s or %s",
			key.LinkCreate.Name, key.Internal.Name, key.DisableFloatingIP.Name)
	}
	if w.IsIPv6Only() {
		r.refuse(problem.Annotation,
			"annotation %s: a private link service needs an IPv4 address, allowed is a Service that has one",
			key.LinkCreate.Name)
	}
	l := &Link{
		Name: read(r, key.LinkName.Read), Group: read(r, key.LinkGroup.Read),
		Subnet: cmp.Or(read(r, key.LinkSubnet.Read), w.Subnet), Count: int(read(r, key.LinkAddressCount.Read)),
		FQDNs: read(r, key.LinkFQDNs.Read), Proxy: read(r, key.LinkProxyProtocol.Read),
		Visibility: read(r, key.LinkVisibility.Read), Approval: read(r, key.LinkAutoApproval.Read),
	}
	l.Option, _, _ = key.FirstLinkOption(r.Annotations)
	if slices.Contains(l.Visibility, "*") {
		l.Visibility = []string{"*"}
	}
	for _, ip := range r.readAddresses(key.LinkAddresses, "not allowed", netip.Addr.Is4) {
		l.Static = append(l.Static, ip.String())
	}
	if len(l.Static) > l.Count {
		r.refuse(problem.Annotation, "annotation %s: %d is less than the %d static addresses, allowed is %s",
			key.LinkAddressCount.Name, l.Count, len(l.Static), key.LinkAddressCount.Allowed)
	}
	return l
}
