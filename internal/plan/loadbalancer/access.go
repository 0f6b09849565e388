package loadbalancer

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/key"
)

// access is who may reach a Service.
type access struct {
	open bool // there are rules for the Service at all
	from map[v1.IPFamily][][]string
	deny bool // everything else, the virtual network too
}

// opening lets sources in at ports. Its slices are sorted.
type opening struct {
	family   v1.IPFamily
	protocol string
	sources  []string
	ports    []string
}

func readAccess(w wish, found *problems) access {
	s := w.service
	if read(s, key.DisableSecurityRules.Read, found) {
		return access{}
	}
	asked, broken := readSourceRanges(s, found)
	ranges := asked.ranges
	tags := read(s, key.AllowedServiceTags.Read, found)
	slices.Sort(tags)
	tags = slices.Compact(tags)
	if len(ranges) == 0 && len(tags) == 0 && !broken && !w.internal {
		tags = []string{internet}
	}
	a := access{open: true, from: map[v1.IPFamily][][]string{}, deny: broken || len(ranges) > 0 && read(s, key.DenyAllElse.Read, found)}
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		if some := aggregate(ranges, family); len(some) > 0 {
			a.from[family] = append(a.from[family], some)
		}
		for _, tag := range tags {
			if isOfFamily(tag, family) {
				a.from[family] = append(a.from[family], []string{tag})
			}
		}
	}
	if !found.blocking() { // else the last good state stays
		asked.warnEffects(w, a, tags, broken, found)
	}
	return a
}

// isOfFamily reports whether a service tag can stand in a rule of a family: Azure takes addresses
// and ranges for one, too, and has no rule with both families.
func isOfFamily(tag string, family v1.IPFamily) bool {
	address, _, _ := strings.Cut(tag, "/")
	ip, err := netip.ParseAddr(address)
	return err != nil || familyOf(ip) == family
}

// deniesAt reports whether everything else is denied at a Service's address of a family. Where
// packets arrive at the nodes' own addresses, it is so only if the Service has asked for that:
// nodes that lose each other, because Azure has IPv6 so, are no wish of anybody.
func (a access) deniesAt(w wish, family v1.IPFamily) bool {
	return a.deny && (w.fixed || w.floats(family))
}

// openings are what a family's packets may come in at: the Service's own ports, or its node
// ports.
func (a access) openings(s Service, family v1.IPFamily, nodePort bool) []opening {
	var all []opening
	for _, o := range portsByProtocol(s, nodePort) {
		for _, from := range a.from[family] {
			o.family, o.sources = family, from
			all = append(all, o)
		}
	}
	return all
}

// internet is Azure's name for the sources outside of the virtual network.
const internet = "Internet"

// implied are openings to the Internet where ranges let in everybody of a family: other
// controllers wrote those besides. They do not matter.
func (a access) implied(s Service, family v1.IPFamily, nodePort bool) []opening {
	everybody := map[v1.IPFamily]string{v1.IPv4Protocol: "0.0.0.0/0", v1.IPv6Protocol: "::/0"}[family]
	if !slices.ContainsFunc(a.from[family], func(from []string) bool { return slices.Contains(from, everybody) }) {
		return nil
	}
	all := portsByProtocol(s, nodePort)
	for i := range all {
		all[i].family, all[i].sources = family, []string{internet}
	}
	return all
}

// sourceRanges are the address ranges that a Service names.
type sourceRanges struct {
	ranges []netip.Prefix
	where  string // they are named
	reason string // of a warning about them
}

// readSourceRanges reads the address ranges that may connect. Those that are no
// ranges are left out with a warning and reported as broken, so that a slip of the
// pen never opens a Service to the Internet.
func readSourceRanges(s Service, found *problems) (asked sourceRanges, broken bool) {
	const inSpec = "spec.loadBalancerSourceRanges"
	said := "" // what the spec lets in
	for _, from := range []struct {
		where, reason string
		texts         []string
	}{
		{inSpec, ReasonSourceRanges, s.Spec.LoadBalancerSourceRanges},
		{"annotation " + key.AllowedIPRanges.Name, ReasonAllowedIPRanges, read(s, key.AllowedIPRanges.Read, found)},
		{"annotation " + key.SourceRanges.Name, ReasonAllowedIPRanges, read(s, key.SourceRanges.Read, found)},
	} {
		some, wrong := parseRanges(from.texts)
		if len(wrong) > 0 {
			broken = true
			found.warn(s.Key(), from.reason, "%s: %s left out, allowed are ranges without host bits like 10.0.0.0/8; nobody else is let in", from.where, quoted(wrong))
		}
		switch {
		case len(some) == 0:
			continue
		case from.where == inSpec:
			said = quoted(from.texts)
		case said != "":
			found.refuse(s.Key(), ReasonSpec, "%s: %s and %s: %s are both set, allowed is one of them", inSpec, said, from.where, quoted(from.texts))
		}
		asked.ranges = append(asked.ranges, some...)
		asked.where, asked.reason = joined(asked.where, from.where+": "+fewOf(from.texts)), from.reason
	}
	return asked, broken
}

// warnEffects tells who is let in that may not be expected to be, and who is not.
func (asked sourceRanges) warnEffects(w wish, a access, tags []string, broken bool, found *problems) {
	if len(tags) > 0 && len(w.service.Spec.LoadBalancerSourceRanges) > 0 {
		found.warn(w.service.Key(), ReasonTwoSources, "spec.loadBalancerSourceRanges and annotation %s are both set: both are let in", key.AllowedServiceTags.Name)
	}
	if len(tags) > 0 {
		asked.where = joined(asked.where, "annotation "+key.AllowedServiceTags.Name+": "+fewOf(tags))
		asked.reason = firstOf(asked.reason, ReasonAllowedIPRanges)
	}
	asked.warnShutOut(w, a, found)
	if a.deny {
		warnDenied(w, broken, found)
	}
}

// warnShutOut tells of families of a Service that have no range: nobody comes in there, and
// there is no rule at which that could be seen.
func (asked sourceRanges) warnShutOut(w wish, a access, found *problems) {
	outside := "nobody from the Internet"
	if w.internal {
		outside = "nobody from outside of the virtual network"
	}
	for _, family := range familiesOf(w.service) {
		nobody := outside
		if a.deniesAt(w, family) {
			nobody = "nobody"
		}
		if asked.where != "" && len(a.from[family]) == 0 {
			found.warn(w.service.Key(), asked.reason, "%s: none is of the family %s: they let %s in at the Service's %s address, allowed are ranges of each of its families",
				asked.where, family, nobody, family)
		}
	}
}

// warnDenied tells of denials that are more, or less, than a Service's own address: where
// packets arrive at the nodes' own addresses.
func warnDenied(w wish, broken bool, found *problems) {
	s := w.service
	cause := "annotation " + key.DenyAllElse.Name
	if broken {
		cause = "a range that is left out"
	}
	if w.fixed {
		found.warn(s.Key(), ReasonNodesDenied, "annotation %s: packets arrive at the nodes' own addresses, and because of %s everything else to the nodes' own addresses is denied as well, on all ports: also from other nodes, and Azure's health probes; "+
			"allowed is floating IP, which denies at the Service's address alone", key.DisableFloatingIP.Name, cause)
		return
	}
	denied := []string{}
	for _, family := range familiesOf(s) {
		if w.floats(family) {
			denied = append(denied, "its "+string(family)+" address")
		}
	}
	if len(denied) == len(familiesOf(s)) {
		return
	}
	if further, _ := key.AdditionalIPs.Read(s.Annotations); len(further) > 0 {
		denied = append(denied, "the addresses of annotation "+key.AdditionalIPs.Name)
	}
	what := "So nothing is denied at all"
	if len(denied) > 0 {
		what = "Denied is everything else at " + strings.Join(denied, " and ")
	}
	found.warn(s.Key(), ReasonNotDenied, "%s: at its IPv6 address it denies nobody from the virtual network: Azure has packets for it arrive at the nodes' own addresses, and the nodes could not reach each other there. %s", cause, what)
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " and " + b
}

// fewOf is the first ones of many texts.
func fewOf(texts []string) string {
	const few = 5
	if len(texts) > few {
		return quoted(texts[:few]) + ", ..."
	}
	return quoted(texts)
}

func parseRanges(texts []string) (ranges []netip.Prefix, wrong []string) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil || p != p.Masked() || p.Addr().Is4In6() { // Azure knows no IPv4 in IPv6
			wrong = append(wrong, text)
			continue
		}
		ranges = append(ranges, p)
	}
	return ranges, wrong
}

func quoted(texts []string) string {
	words := make([]string, len(texts))
	for i, t := range texts {
		words[i] = strconv.Quote(t)
	}
	return strings.Join(words, ", ")
}

// aggregate is the fewest ranges that hold the same addresses of a family, sorted as
// text.
func aggregate(ranges []netip.Prefix, family v1.IPFamily) []string {
	var some []netip.Prefix
	for _, p := range ranges {
		if familyOf(p.Addr()) == family {
			some = append(some, p)
		}
	}
	slices.SortFunc(some, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	var merged []netip.Prefix
	for _, p := range some {
		if n := len(merged); n > 0 && merged[n-1].Contains(p.Addr()) {
			continue
		}
		merged = append(merged, p)
		for n := len(merged); n > 1; n = len(merged) {
			whole, ok := siblings(merged[n-2], merged[n-1])
			if !ok {
				break
			}
			merged = append(merged[:n-2], whole)
		}
	}
	texts := make([]string, len(merged))
	for i, p := range merged {
		texts[i] = p.String()
	}
	slices.Sort(texts)
	return texts
}

// siblings is the range whose two halves a and b are.
func siblings(a, b netip.Prefix) (netip.Prefix, bool) {
	if a.Bits() != b.Bits() || a.Bits() == 0 {
		return netip.Prefix{}, false
	}
	whole := netip.PrefixFrom(a.Addr(), a.Bits()-1).Masked()
	return whole, whole == netip.PrefixFrom(b.Addr(), b.Bits()-1).Masked()
}

// portsByProtocol is the Service's ports, as the packets carry them: its own, or its node
// ports.
func portsByProtocol(s Service, nodePort bool) []opening {
	var out []opening
	for _, protocol := range []string{"Tcp", "Udp", "*"} {
		var ports []string
		for _, p := range s.Spec.Ports {
			port := p.Port
			if nodePort {
				port = p.NodePort
			}
			if protocols[protocolOf(p)] == protocol && port > 0 {
				ports = append(ports, strconv.Itoa(int(port)))
			}
		}
		if slices.Sort(ports); len(ports) > 0 {
			out = append(out, opening{protocol: protocol, ports: slices.Compact(ports)})
		}
	}
	return out
}
