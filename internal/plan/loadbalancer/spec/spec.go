package spec

import (
	"fmt"
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
	NodePort bool     // packets arrive at node ports, not at the Service's own
	Rules    []Rule
	Probes   []azure.Child[network.Probe]
}

// IsIPv6 reports whether the address is one of IPv6.
func (a Address) IsIPv6() bool { return a.Family == v1.IPv6Protocol }

// Given reports whether the Service names an existing address.
func (a Address) Given() bool { return a.PublicIP != "" || a.Pinned != "" }

// Read reads what a Service asks for and what is wrong with it.
func Read(s Service, c cluster.Config) (*Spec, problem.List) {
	r := newReader(s)
	r.config = c
	w := Outline(s)
	if r.ports(); r.found.Blocking() {
		return &Spec{Service: s, Base: w.Base, Owner: w.Owner}, *r.found
	}
	read(r, key.Internal.Read)
	read(r, key.DisableFloatingIP.Read)
	if w.Internal {
		w.Subnet = read(r, key.InternalSubnet.Read)
	} else {
		r.publicIPs(w)
	}
	w.Further = r.further()
	r.sctp(w)
	w.Addresses = r.addresses(w)
	w.Link = r.link(w)
	w.Access = r.access(w)
	if !r.found.Blocking() {
		r.warnIgnored()
	}
	return w, *r.found
}

// reader reads one Service and collects what is wrong with it.
type reader struct {
	Service
	config cluster.Config
	found  *problem.List
}

func newReader(s Service) *reader { return &reader{Service: s, found: &problem.List{}} }

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
	tags := read(r, key.PublicIPTags.Read)
	w.Tags = tags.Values
	warnSkipped(r.Service, key.PublicIPTags, tags, r.found)
	if pairs, asked, err := key.IPTags.Lookup(r.Annotations); asked && err == nil {
		w.IPTagSlip = slipIn(pairs)
		w.IPTags = []network.IPTag{}
		for kind, tag := range pairs.Values {
			w.IPTags = append(w.IPTags, network.IPTag{IPTagType: kind, Tag: tag})
		}
		slices.SortFunc(w.IPTags, func(a, b network.IPTag) int { return strings.Compare(a.IPTagType, b.IPTagType) })
	}
	label := read(r, key.DNSLabel.Read)
	if _, asked := r.Annotations[key.DNSLabel.Name]; asked {
		w.Label = &label
	}
}

// slipIn is what is wrong with IP tags that are read all the same: a pair that is left out,
// or a value that Azure does not know.
func slipIn(pairs key.Pairs) string {
	if len(pairs.Skipped) > 0 {
		return fmt.Sprintf("%q is no Type=Value pair", pairs.Skipped[0])
	}
	if err := key.IPTags.Warning(pairs); err != nil {
		return err.Error()
	}
	return ""
}

func warnSkipped(s Service, a key.Annotation[key.Pairs], pairs key.Pairs, found *problem.List) {
	for _, skipped := range pairs.Skipped {
		found.Warn(s.Key(), problem.Tags, "%s: %q is left out, allowed is %s", a.Name, skipped, a.Allowed)
	}
}

func (r *reader) further() []netip.Addr {
	var further []netip.Addr
	for _, text := range read(r, key.AdditionalIPs.Read) {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			r.refuse(problem.Annotation, "annotation %s: %q is no IP address, allowed is %s", key.AdditionalIPs.Name, text,
				key.AdditionalIPs.Allowed)
			continue
		}
		if ip = ip.Unmap(); !slices.Contains(further, ip) {
			further = append(further, ip)
		}
	}
	return further
}

// sctp refuses SCTP by itself: Azure forwards it only together with everything else, and that only
// in a virtual network.
func (r *reader) sctp(w *Spec) {
	for _, p := range r.Spec.Ports {
		if ProtocolOf(p) == v1.ProtocolSCTP && !w.AllPorts() {
			r.refuse(problem.Spec,
				"port %d: protocol SCTP is served by internal load balancers with all ports only, allowed is SCTP with the "+
					"annotations %s and %s",
				p.Port, key.Internal.Name, key.HAPorts.Name)
		}
	}
}

// addresses reads what the Service asks for in each of its families.
func (r *reader) addresses(w *Spec) []Address {
	families := r.Families()
	var addresses []Address
	for _, family := range families {
		a := Address{Family: family, Names: naming.Names{Base: w.Base, Subnet: w.Subnet}}
		if len(families) > 1 && a.IsIPv6() {
			a.Suffix = cluster.SuffixIPv6
		}
		a.Floating = w.Floats(family)
		a.NodePort = !a.Floating && !w.AllPorts()
		r.choose(&a, w)
		a.Probes = r.probes(a.Names, w)
		a.Rules = r.rules(a, w)
		addresses = append(addresses, a)
	}
	return addresses
}

// choose reads which address the Service asks for. The first place in which a Service says that counts.
func (r *reader) choose(a *Address, w *Spec) {
	if !w.Internal {
		if a.PublicIP, a.Asked = r.byFamily(a.Family, key.PublicIPName, key.PublicIPNameIPv6); a.PublicIP != "" {
			return
		}
		var prefix string
		if prefix, a.Asked = r.byFamily(a.Family, key.PublicIPPrefix, key.PublicIPPrefixIPv6); prefix != "" {
			a.Prefix = azure.ID(prefix)
			return
		}
	}
	a.Pinned, a.Asked = r.pin(a.Family)
}

// byFamily reads a key that has a sibling for IPv6, and says which of the two it was.
// A Service with IPv6 only may use either.
func (r *reader) byFamily(family v1.IPFamily, plain, six key.Annotation[string]) (text, asked string) {
	keys := []key.Annotation[string]{plain}
	switch {
	case family == v1.IPv6Protocol && len(r.Families()) > 1:
		keys = []key.Annotation[string]{six}
	case family == v1.IPv6Protocol:
		keys = []key.Annotation[string]{six, plain}
	}
	for _, k := range keys {
		if text = read(r, k.Read); text != "" {
			return text, fmt.Sprintf("annotation %s: %q", k.Name, text)
		}
	}
	return "", ""
}

// pin is the address that a Service wants to have in a family, and where it says so.
func (r *reader) pin(family v1.IPFamily) (pinned, asked string) {
	const inSpec = "spec.loadBalancerIP"
	own := key.IPv4
	if family == v1.IPv6Protocol {
		own = key.IPv6
	}
	text, where := read(r, own.Read), "annotation "+own.Name
	if text == "" {
		text, where = strings.TrimSpace(r.Spec.LoadBalancerIP), inSpec
	}
	if text == "" {
		return "", ""
	}
	asked = fmt.Sprintf("%s: %q", where, text)
	ip, err := netip.ParseAddr(text)
	ip = ip.Unmap()
	wrong := err != nil || ip.Zone() != ""
	switch {
	case where == inSpec && wrong && !slices.Contains(r.Families(), v1.IPv6Protocol):
		r.warn(problem.Address, "%s is no IP address and ignored, allowed is one of the family %s", asked, family)
		return "", ""
	case wrong:
		r.refuse(problem.Address, "%s is no IP address, allowed is one of the family %s", asked, family)
		return "", asked
	case address.Family(ip) != family && where == inSpec:
		if !slices.Contains(r.Families(), address.Family(ip)) {
			r.warn(problem.Address, "%s is not of the family %s and ignored, allowed is an address of that family", asked, family)
		}
		return "", ""
	case address.Family(ip) != family:
		r.refuse(problem.Address, "%s is not of the family %s, allowed is an address of that family", asked, family)
		return "", asked
	}
	if internal, _ := key.Internal.Read(r.Annotations); !internal && !address.IsPublic(ip) {
		r.refuse(problem.Address, "%s is a non-public address, allowed for an external Service is the address of a public IP", asked)
		return "", asked
	}
	return ip.String(), asked
}
