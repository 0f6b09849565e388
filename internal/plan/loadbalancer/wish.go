package loadbalancer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
)

// wish is what one Service asks for, read from its object alone.
type wish struct {
	service   Service
	base      string
	internal  bool
	fixed     bool   // it asks for packets to arrive at the nodes' own addresses
	subnet    string // that it names, "" for the configured one
	group     string // of its public IPs, "" for the cluster's
	addresses []address
	access    access
	ipTags    azure.Tags      // of its public IPs
	kinds     []network.IPTag // IP tags; nil is no opinion
	slip      string          // in what it says of IP tags, "" for none
	label     *string         // in Azure's DNS; nil is no opinion
	further   []netip.Addr    // that it answers at, brought by somebody else
	link      *linkWish       // private link service, nil for none

	places []place // of its addresses, once they are found
}

// address is what a Service asks for in one IP family.
type address struct {
	names
	family   v1.IPFamily
	pinned   string   // the address it must be, "" for any
	publicIP string   // name of a public IP that is there, "" for none
	prefix   azure.ID // that a new public IP is taken from
	asked    string   // where and how the Service names one of these, "" for nowhere
	floating bool     // packets arrive at the address, not at the nodes' own
	nodePort bool     // they arrive at node ports, not at the Service's own
	rules    []rule
	probes   []azure.Child[network.Probe]
}

func (a address) is6() bool { return a.family == v1.IPv6Protocol }

// given says that the Service names an address that is there.
func (a address) given() bool { return a.publicIP != "" || a.pinned != "" }

// readWish reads what a Service asks for and what is wrong with it.
func readWish(s Service, c Config) (wish, problems) {
	var found problems
	refuseSpec(s, &found)
	if found.blocking() {
		return wish{service: s, base: baseName(s.Service)}, found
	}
	w := readKind(s, &found)
	if w.internal {
		w.subnet = read(s, key.InternalSubnet.Read, &found)
	} else {
		readPublicIPWishes(s, &w, &found)
	}
	w.further = readFurther(s, &found)
	refuseSCTP(w, &found)
	w.addresses = readAddresses(w, c, &found)
	w.link = readLink(s, w, &found)
	w.access = readAccess(w, &found)
	if !found.blocking() {
		warnUnheeded(w, c, &found)
	}
	return w, found
}

// readKind reads what all else that a Service asks for depends on.
func readKind(s Service, found *problems) wish {
	return wish{service: s, base: baseName(s.Service), internal: read(s, key.Internal.Read, found), fixed: read(s, key.DisableFloatingIP.Read, found)}
}

// readPublicIPWishes reads what only public IPs have.
func readPublicIPWishes(s Service, w *wish, found *problems) {
	w.group = read(s, key.PublicIPGroup.Read, found)
	tags := read(s, key.PublicIPTags.Read, found)
	w.ipTags = tags.Values
	warnSkipped(s, key.PublicIPTags, tags, found)
	if kinds, asked, err := key.IPTags.Lookup(s.Annotations); asked && err == nil {
		w.slip = slipIn(kinds)
		w.kinds = []network.IPTag{}
		for kind, tag := range kinds.Values {
			w.kinds = append(w.kinds, network.IPTag{IPTagType: kind, Tag: tag})
		}
		slices.SortFunc(w.kinds, func(a, b network.IPTag) int { return strings.Compare(a.IPTagType, b.IPTagType) })
	}
	if label := read(s, key.DNSLabel.Read, found); hasAnnotation(s, key.DNSLabel.Name) {
		w.label = &label
	}
}

// slipIn is what is wrong with IP tags that are read all the same: a pair that is left out,
// or a value that Azure does not know.
func slipIn(kinds key.Pairs) string {
	if len(kinds.Skipped) > 0 {
		return fmt.Sprintf("%q is no Type=Value pair", kinds.Skipped[0])
	}
	if err := key.IPTags.Doubt(kinds); err != nil {
		return err.Error()
	}
	return ""
}

func hasAnnotation(s Service, name string) bool { _, ok := s.Annotations[name]; return ok }

func warnSkipped(s Service, a key.Annotation[key.Pairs], pairs key.Pairs, found *problems) {
	for _, skipped := range pairs.Skipped {
		found.warn(s.Key(), ReasonTags, "%s: %q is left out, allowed is %s", a.Name, skipped, a.Allowed)
	}
}

func readFurther(s Service, found *problems) []netip.Addr {
	var further []netip.Addr
	for _, text := range read(s, key.AdditionalIPs.Read, found) {
		ip, err := netip.ParseAddr(text)
		if err != nil || ip.Zone() != "" {
			found.refuse(s.Key(), ReasonAnnotation, "annotation %s: %q is no IP address, allowed is %s", key.AdditionalIPs.Name, text, key.AdditionalIPs.Allowed)
			continue
		}
		if ip = ip.Unmap(); !slices.Contains(further, ip) {
			further = append(further, ip)
		}
	}
	return further
}

var protocols = map[v1.Protocol]string{v1.ProtocolTCP: "Tcp", v1.ProtocolUDP: "Udp", v1.ProtocolSCTP: "*"}

func refuseSpec(s Service, found *problems) {
	for _, p := range s.Spec.Ports {
		if _, ok := protocols[protocolOf(p)]; !ok {
			found.refuse(s.Key(), ReasonSpec, "port %d: protocol %q is not allowed, allowed are TCP, UDP and SCTP", p.Port, p.Protocol)
		}
	}
	if len(s.Spec.Ports) == 0 {
		found.refuse(s.Key(), ReasonSpec, "spec.ports is empty, at least one port is needed")
	}
	for _, family := range s.Spec.IPFamilies {
		if family != v1.IPv4Protocol && family != v1.IPv6Protocol {
			found.refuse(s.Key(), ReasonSpec, "spec.ipFamilies: %q is not allowed, allowed are IPv4 and IPv6", family)
		}
	}
}

// refuseSCTP: Azure forwards SCTP only with everything else, and that only in a
// virtual network.
func refuseSCTP(w wish, found *problems) {
	for _, p := range w.service.Spec.Ports {
		if protocolOf(p) == v1.ProtocolSCTP && !highlyAvailable(w.service, w.internal) {
			found.refuse(w.service.Key(), ReasonSpec, "port %d: protocol SCTP is served by internal load balancers with all ports only, allowed is SCTP with the annotations %s and %s",
				p.Port, key.Internal.Name, key.HAPorts.Name)
		}
	}
}

// highlyAvailable reports whether one rule serves all ports and protocols.
func highlyAvailable(s Service, internal bool) bool {
	all, _ := key.HAPorts.Read(s.Annotations)
	return all && internal
}

// protocolOf is the port's protocol; an object that did not come through an API
// server may leave it out.
func protocolOf(p v1.ServicePort) v1.Protocol {
	if p.Protocol == "" {
		return v1.ProtocolTCP
	}
	return p.Protocol
}

// familiesOf are the Service's IP families; an object that did not come through an
// API server may leave them out.
func familiesOf(s Service) []v1.IPFamily {
	if len(s.Spec.IPFamilies) == 0 {
		return []v1.IPFamily{v1.IPv4Protocol}
	}
	return s.Spec.IPFamilies
}

func familyOf(ip netip.Addr) v1.IPFamily {
	if ip.Is4() {
		return v1.IPv4Protocol
	}
	return v1.IPv6Protocol
}

// readAddresses reads what the Service asks for in each of its families.
func readAddresses(w wish, c Config, found *problems) []address {
	s := w.service
	families := familiesOf(s)
	var addresses []address
	for _, family := range families {
		a := address{family: family, names: names{base: w.base, subnet: w.subnet}}
		if len(families) > 1 && a.is6() {
			a.suffix = suffixIPv6
		}
		a.floating = w.floats(family)
		a.nodePort = !a.floating && !highlyAvailable(s, w.internal)
		a.choose(w, found)
		a.probes = readProbes(s, a.names, c, found)
		a.rules = readRules(s, a, c, w.internal, found)
		addresses = append(addresses, a)
	}
	return addresses
}

// floats reports whether packets for a Service's address of a family arrive at that. An
// internal IPv6 address is a second one at the nodes' interfaces, and those do not float.
func (w wish) floats(family v1.IPFamily) bool {
	return !w.fixed && (!w.internal || family != v1.IPv6Protocol)
}

// AtNodes reports whether packets for a Service arrive at the nodes' own addresses, and not at its.
func AtNodes(s *v1.Service) bool {
	one := Service{Service: s}
	w := readKind(one, &problems{})
	return slices.ContainsFunc(familiesOf(one), func(family v1.IPFamily) bool { return !w.floats(family) })
}

// choose reads which address it shall be. What a Service says in a lesser place is not
// looked at.
func (a *address) choose(w wish, found *problems) {
	s := w.service
	if !w.internal {
		if a.publicIP, a.asked = readByFamily(s, a.family, key.PublicIPName, key.PublicIPNameIPv6, found); a.publicIP != "" {
			return
		}
		var prefix string
		if prefix, a.asked = readByFamily(s, a.family, key.PublicIPPrefix, key.PublicIPPrefixIPv6, found); prefix != "" {
			a.prefix = azure.ID(prefix)
			return
		}
	}
	a.pinned, a.asked = readPin(s, a.family, found)
}

// readPin is the address that a Service wants to have in a family, and where it says so.
func readPin(s Service, family v1.IPFamily, found *problems) (pinned, asked string) {
	own := key.IPv4
	if family == v1.IPv6Protocol {
		own = key.IPv6
	}
	text := read(s, own.Read, found)
	where := "annotation " + own.Name
	if text == "" {
		where = "spec.loadBalancerIP"
		text = strings.TrimSpace(s.Spec.LoadBalancerIP)
	}
	if text == "" {
		return "", ""
	}
	asked = fmt.Sprintf("%s: %q", where, text)
	ip, err := netip.ParseAddr(text)
	ip = ip.Unmap()
	switch {
	case err != nil || ip.Zone() != "":
		found.refuse(s.Key(), ReasonAddress, "%s is no IP address, allowed is one of the family %s", asked, family)
		return "", asked
	case familyOf(ip) != family && where == "spec.loadBalancerIP" && slices.Contains(familiesOf(s), familyOf(ip)):
		return "", "" // it is of the Service's other family
	case familyOf(ip) != family:
		found.refuse(s.Key(), ReasonAddress, "%s is not of the family %s, allowed is an address of that family", asked, family)
		return "", asked
	}
	internal, _ := key.Internal.Read(s.Annotations)
	if !internal && !isPublic(ip) {
		found.refuse(s.Key(), ReasonAddress, "%s is a non-public address, allowed for an external Service is the address of a public IP", asked)
		return "", asked
	}
	return ip.String(), asked
}

// isPublic reports whether an address can be one of the Internet's.
func isPublic(ip netip.Addr) bool {
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !carrierGrade().Contains(ip) && ip != azureHost()
}

// carrierGrade is between private and public: providers' own networks.
func carrierGrade() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10)
}

// azureHost is what machines in Azure know their host by.
func azureHost() netip.Addr { return netip.AddrFrom4([4]byte{168, 63, 129, 16}) }

// readByFamily reads a key that has a sibling for IPv6, and says which of the two it was.
// A Service with IPv6 only may use either.
func readByFamily(s Service, family v1.IPFamily, plain, six key.Annotation[string], found *problems) (text, asked string) {
	keys := []key.Annotation[string]{plain}
	switch {
	case family == v1.IPv6Protocol && len(familiesOf(s)) > 1:
		keys = []key.Annotation[string]{six}
	case family == v1.IPv6Protocol:
		keys = []key.Annotation[string]{six, plain}
	}
	for _, k := range keys {
		if text = read(s, k.Read, found); text != "" {
			return text, fmt.Sprintf("annotation %s: %q", k.Name, text)
		}
	}
	return "", ""
}

// read reads an annotation of a Service; a value that is not allowed is a problem.
func read[T any](s Service, from func(map[string]string) (T, error), found *problems) T {
	v, err := from(s.Annotations)
	if err != nil {
		found.refuse(s.Key(), ReasonAnnotation, "annotation %v", err)
	}
	return v
}

// readPort reads the annotation of a port; without one it is otherwise.
func readPort[T any](s Service, a key.PortAnnotation[T], port int32, otherwise T, found *problems) T {
	v, ok, err := a.Lookup(s.Annotations, port)
	switch {
	case err != nil:
		found.refuse(s.Key(), ReasonAnnotation, "annotation %v", err)
		return otherwise
	case !ok:
		return otherwise
	}
	return v
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			return t
		}
	}
	return ""
}
