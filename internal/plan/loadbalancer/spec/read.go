package spec

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
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

// Read reads what a Service asks for and what is wrong with it.
func Read(s Service, c cluster.Config) (*Spec, problem.List) {
	r := &reader{Spec: Outline(s), config: c}
	if r.ports(); r.found.Blocking() {
		return &Spec{Service: s, Owner: r.Owner}, r.found
	}
	if r.Internal {
		r.Subnet = read(r, key.InternalSubnet)
	} else {
		r.publicIPs()
	}
	r.Further = r.readAddresses(key.AdditionalIPs, "no IP address", func(ip netip.Addr) bool { return ip.Zone() == "" })
	for _, family := range r.Service.Families() {
		a := Address{Family: family, Names: naming.Names{Base: naming.Base(s.Service), Subnet: r.Subnet}, Floating: r.Floats(family)}
		if len(r.Service.Families()) > 1 && a.IsIPv6() {
			a.Suffix = cluster.SuffixIPv6
		}
		if !r.Internal {
			if a.PublicIP = r.byFamily(&a, key.PublicIPName, key.PublicIPNameIPv6); a.PublicIP == "" {
				a.Prefix = azure.ID(r.byFamily(&a, key.PublicIPPrefix, key.PublicIPPrefixIPv6))
			}
		}
		if a.Asked == "" {
			a.Pinned, a.Asked = r.pin(family, s.Spec.LoadBalancerIP)
		}
		r.rules(&a)
		r.Addresses = append(r.Addresses, a)
	}
	if read(r, key.LinkCreate) {
		r.Link = r.link()
	}
	asked := r.access()
	if !r.found.Blocking() { // else the last good state stays
		r.warnAccess(asked)
		r.warnIgnored()
	}
	return r.Spec, r.found
}

// reader reads one Service and collects what is wrong with it.
type reader struct {
	*Spec  // as far as it is read
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
func read[T any](r *reader, a key.Annotation[T]) T {
	v, err := a.Read(r.Service.Annotations)
	if err != nil {
		r.refuse(problem.Annotation, "annotation %v", err)
	}
	return v
}

// ports refuses what no load balancer can serve.
func (r *reader) ports() {
	for _, p := range r.Service.Spec.Ports {
		if _, ok := protocols[ProtocolOf(p)]; !ok {
			r.refuse(problem.Spec, "port %d: protocol %q is not allowed, allowed are TCP, UDP and SCTP", p.Port, p.Protocol)
		}
	}
	if len(r.Service.Spec.Ports) == 0 {
		r.refuse(problem.Spec, "spec.ports is empty, at least one port is needed")
	}
	for _, family := range r.Service.Spec.IPFamilies {
		if family != v1.IPv4Protocol && family != v1.IPv6Protocol {
			r.refuse(problem.Spec, "spec.ipFamilies: %q is not allowed, allowed are IPv4 and IPv6", family)
		}
	}
}

func (r *reader) publicIPs() {
	r.Group = read(r, key.PublicIPGroup)
	r.Tags = r.readPairs(key.PublicIPTags, &r.found).Values
	if _, asked := r.Service.Annotations[key.IPTags.Name]; asked {
		pairs := r.readPairs(key.IPTags, &r.IPTagWarnings)
		r.IPTags = []network.IPTag{}
		for _, kind := range slices.Sorted(maps.Keys(pairs.Values)) {
			r.IPTags = append(r.IPTags, network.IPTag{IPTagType: kind, Tag: pairs.Values[kind]})
		}
		if len(pairs.Skipped) > 0 {
			r.IPTagSlip = fmt.Sprintf("%q is no Type=Value pair", pairs.Skipped[0])
		} else if err := key.IPTags.Warning(pairs); err != nil {
			r.IPTagSlip = err.Error()
		}
	}
	if _, asked := r.Service.Annotations[key.DNSLabel.Name]; asked {
		r.Label = new(read(r, key.DNSLabel))
	}
}

func (r *reader) readPairs(a key.Annotation[key.Pairs], wrong *problem.List) key.Pairs {
	pairs := read(r, a)
	for _, skipped := range pairs.Skipped {
		wrong.Warn(r.Key(), problem.Tags, "%s: %q is left out, allowed is %s", a.Name, skipped, a.Allowed)
	}
	return pairs
}

func (r *reader) readAddresses(a key.Annotation[[]string], wrong string, isAllowed func(netip.Addr) bool) []netip.Addr {
	var all []netip.Addr
	for _, text := range read(r, a) {
		ip, err := netip.ParseAddr(text)
		if err != nil || !isAllowed(ip) {
			r.refuse(problem.Annotation, "annotation %s: %q is %s, allowed is %s", a.Name, text, wrong, a.Allowed)
		} else if ip = ip.Unmap(); !slices.Contains(all, ip) {
			all = append(all, ip)
		}
	}
	return all
}

// link reads the private link service that a Service asks for.
func (r *reader) link() *Link {
	if !r.Internal && !r.Fixed {
		r.refuse(problem.Annotation,
			"annotation %s: a private link service needs an internal address, or one without floating IP, allowed is it with %s or %s",
			key.LinkCreate.Name, key.Internal.Name, key.DisableFloatingIP.Name)
	}
	if r.IsIPv6Only() {
		r.refuse(problem.Annotation,
			"annotation %s: a private link service needs an IPv4 address, allowed is a Service that has one",
			key.LinkCreate.Name)
	}
	l := &Link{
		Name: read(r, key.LinkName), Group: read(r, key.LinkGroup),
		Subnet: cmp.Or(read(r, key.LinkSubnet), r.Subnet), Count: int(read(r, key.LinkAddressCount)),
		FQDNs: read(r, key.LinkFQDNs), Proxy: read(r, key.LinkProxyProtocol),
		Visibility: read(r, key.LinkVisibility), Approval: read(r, key.LinkAutoApproval),
	}
	l.Option, _, _ = key.FirstLinkOption(r.Service.Annotations)
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

// access reads which sources may reach the Service, and returns them as the Service names them.
func (r *reader) access() (asked sources) {
	if read(r, key.DisableSecurityRules) {
		return asked
	}
	asked = r.sources()
	r.Access = Access{Open: true, From: map[v1.IPFamily][][]string{}, Deny: asked.cause != ""}
	for _, family := range address.Families() {
		if some := address.Aggregate(asked.ranges, family); len(some) > 0 {
			r.Access.From[family] = append(r.Access.From[family], some)
		}
		for _, tag := range asked.tags {
			// Azure also takes addresses and ranges for a service tag, and has no rule with both families.
			text, _, _ := strings.Cut(tag, "/")
			if ip, err := netip.ParseAddr(text); err != nil || address.Family(ip) == family {
				r.Access.From[family] = append(r.Access.From[family], []string{tag})
			}
		}
	}
	return asked
}

type sources struct {
	ranges []netip.Prefix
	tags   []string // of services
	where  []string // they are named
	reason string   // of a warning about them
	cause  string   // of a denial of all others, "" for none
}

// sources reads the sources that may connect. Invalid ranges are left out with a warning, and all other sources are
// denied. So a typing error never opens a Service to the Internet.
func (r *reader) sources() sources {
	const inSpec = "spec.loadBalancerSourceRanges"
	asked := sources{reason: problem.AllowedIPRanges}
	allowed := "" // by the spec
	for _, from := range []struct {
		where, reason string
		texts         []string
	}{
		{inSpec, problem.SourceRanges, r.Service.Spec.LoadBalancerSourceRanges},
		{"annotation " + key.AllowedIPRanges.Name, problem.AllowedIPRanges, read(r, key.AllowedIPRanges)},
		{"annotation " + key.SourceRanges.Name, problem.AllowedIPRanges, read(r, key.SourceRanges)},
	} {
		some, wrong := address.ParseRanges(from.texts)
		if len(wrong) > 0 {
			asked.cause = "a range that is left out"
			r.warn(from.reason, "%s: %s left out, allowed are ranges without host bits like 10.0.0.0/8; no other source is allowed",
				from.where, quoted(wrong))
		}
		switch {
		case len(some) == 0:
			continue
		case from.where == inSpec:
			allowed = quoted(from.texts)
		case allowed != "":
			r.refuse(problem.Spec, "%s: %s and %s: %s are both set, allowed is one of them",
				inSpec, allowed, from.where, quoted(from.texts))
		}
		asked.ranges, asked.reason = append(asked.ranges, some...), from.reason
		asked.where = append(asked.where, from.where+": "+fewOf(from.texts))
	}
	if asked.cause == "" && len(asked.ranges) > 0 && read(r, key.DenyAllElse) {
		asked.cause = "annotation " + key.DenyAllElse.Name
	}
	asked.tags = slices.Compact(slices.Sorted(slices.Values(read(r, key.AllowedServiceTags))))
	switch {
	case len(asked.tags) > 0:
		asked.where = append(asked.where, "annotation "+key.AllowedServiceTags.Name+": "+fewOf(asked.tags))
	case asked.where == nil && asked.cause == "" && !r.Internal:
		asked.tags = []string{Internet}
	}
	return asked
}

// warnAccess warns of sources that are allowed unexpectedly, and of families without any source, which no rule shows. It
// also warns of denials that cover more, or less, than a Service's own address, because packets arrive at the nodes' own
// addresses.
func (r *reader) warnAccess(asked sources) {
	if len(asked.tags) > 0 && len(r.Service.Spec.LoadBalancerSourceRanges) > 0 {
		r.warn(problem.TwoSources, "spec.loadBalancerSourceRanges and annotation %s are both set: the sources of both are allowed",
			key.AllowedServiceTags.Name)
	}
	var denied []string // where everything else is
	for _, family := range r.Service.Families() {
		reach := "nothing from the Internet"
		if r.Internal {
			reach = "nothing from outside of the virtual network"
		}
		if r.Fixed || r.Floats(family) {
			denied = append(denied, "its "+string(family)+" address")
			if r.Access.Deny {
				reach = "nothing"
			}
		}
		if asked.where != nil && len(r.Access.From[family]) == 0 {
			r.warn(asked.reason,
				"%s: none is of the family %s: %s can reach the Service's %s address, allowed are ranges of each of its families",
				strings.Join(asked.where, " and "), family, reach, family)
		}
	}
	switch {
	case !r.Access.Deny:
		return
	case r.Fixed:
		r.warn(problem.NodesDenied,
			"annotation %s: packets arrive at the nodes' own addresses, and because of %s everything else to the nodes' own "+
				"addresses is denied as well, on all ports: also from other nodes, and Azure's health probes; "+
				"allowed is floating IP, which denies at the Service's address alone", key.DisableFloatingIP.Name, asked.cause)
		return
	case len(denied) == len(r.Service.Families()):
		return
	}
	if len(r.Further) > 0 {
		denied = append(denied, "the addresses of annotation "+key.AdditionalIPs.Name)
	}
	what := "So nothing is denied at all"
	if denied != nil {
		what = "Everything else is denied at " + strings.Join(denied, " and ")
	}
	r.warn(problem.NotDenied,
		"%s: nothing from the virtual network is denied at the IPv6 address: Azure delivers its packets to the nodes' own "+
			"addresses, and the nodes could not reach each other there. %s", asked.cause, what)
}

// warnIgnored warns of annotations without effect. Such an annotation is mistyped, lacks another one that it needs, or is
// about a port or IP family that the Service lacks. Such Services have always been served.
func (r *reader) warnIgnored() {
	withInternal, withLink := "annotation "+key.Internal.Name+`: "true"`, "annotation "+key.LinkCreate.Name+`: "true"`
	ignored := map[string]bool{}
	for _, rule := range []struct {
		applies bool
		names   []string
		because string // to follow "is ignored"
	}{
		{!r.Internal, []string{key.InternalSubnet.Name}, "without " + withInternal},
		{
			r.Internal, []string{key.PublicIPGroup.Name, key.PublicIPName.Name, key.PublicIPNameIPv6.Name, key.PublicIPPrefix.Name,
				key.PublicIPPrefixIPv6.Name, key.PublicIPTags.Name, key.IPTags.Name, key.DNSLabel.Name},
			"together with " + withInternal + ": an internal Service has no public IP",
		},
		{
			!r.Internal && read(r, key.HAPorts), []string{key.HAPorts.Name},
			"without " + withInternal + "; each port has a rule of its own",
		},
		{r.Link == nil, append(key.LinkOptions(), key.LinkGroup.Name), "without " + withLink},
	} {
		for _, name := range rule.names {
			if value := r.Service.Annotations[name]; value != "" && rule.applies {
				ignored[name] = true
				r.warn(problem.Unheeded, "annotation %s: %q is ignored %s", name, value, rule.because)
			}
		}
	}
	var ports []int32
	for _, p := range r.Service.Spec.Ports {
		ports = append(ports, p.Port)
	}
	for _, doubt := range key.Warnings(r.Service.Annotations, ports) {
		found := &r.found
		if doubt.Key == key.IPTags.Name { // they are judged with the public IP
			found = &r.IPTagWarnings
		}
		if !ignored[doubt.Key] {
			found.Warn(r.Key(), problem.Annotation, "annotation %v; the Service is not refused for it", doubt)
		}
	}
	if probed := r.Service.Spec.HealthCheckNodePort; probed > 0 {
		ports = append(ports, probed)
	}
	r.warnUnknown(ports)
}

// warnUnknown warns of annotations that do not exist, or are about ports, IP families or load balancers that do not. Where
// several load balancers are configured and the Service names none of them, placement refuses it.
func (r *reader) warnUnknown(ports []int32) {
	for _, s := range key.Unknowns(r.Service.Annotations, ports) {
		why := "no such annotation exists, and none is similar"
		switch {
		case s.Port != "":
			why = fmt.Sprintf("%s is no port of the Service, allowed is one of %v", s.Port, ports)
		case s.Nearest != "":
			why = "no such annotation exists, but " + s.Nearest
		}
		r.warn(problem.Unknown, "annotation %s: %q is ignored: %s", s.Name, s.Value, why)
	}
	for _, family := range address.Families() {
		other := reader{Spec: r.Spec}
		if !slices.Contains(r.Service.Families(), family) {
			other.pin(family, "")
		}
		for _, p := range other.found {
			r.warn(p.Reason, "%s; the Service has no %s address, so this is ignored", p.Message, family)
		}
	}
	var names []string
	for _, b := range r.config.Entries() {
		names = append(names, b.Name)
	}
	asked := r.Service.LoadBalancersAsked()
	unknown := slices.DeleteFunc(slices.Clone(asked), func(text string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, text) })
	})
	if len(unknown) > 0 && (len(r.config.Balancers) == 0 || len(unknown) < len(asked)) {
		r.warn(problem.Annotation, "annotation %s: %s left out, allowed are configured load balancers: %s", key.Balancers.Name,
			quoted(unknown), strings.Join(names, ", "))
	}
}

func fewOf(texts []string) string {
	const few = 5
	if len(texts) > few {
		return quoted(texts[:few]) + ", ..."
	}
	return quoted(texts)
}

func quoted(texts []string) string {
	words := make([]string, len(texts))
	for i, t := range texts {
		words[i] = strconv.Quote(t)
	}
	return strings.Join(words, ", ")
}
