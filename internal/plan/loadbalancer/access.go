package loadbalancer

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/key"
)

// access is who may reach a Service.
type access struct {
	allow []opening
	deny  bool // everything else, the virtual network too
}

// opening lets sources in at ports. Its slices are sorted.
type opening struct {
	protocol string
	sources  []string
	ports    []string
}

func readAccess(s Service, found *problems) access {
	if read(s, key.DisableSecurityRules.Read, found) {
		return access{}
	}
	ranges, broken := readSourceRanges(s, found)
	tags := read(s, key.AllowedServiceTags.Read, found)
	if len(s.Spec.LoadBalancerSourceRanges) > 0 && len(tags) > 0 {
		found.warn(s.Key(), ReasonTwoSources, "spec.loadBalancerSourceRanges and annotation %s are both set: both are let in", key.AllowedServiceTags.Name)
	}
	var sources [][]string
	if v4 := aggregate(ranges); len(v4) > 0 {
		sources = append(sources, v4)
	}
	for _, tag := range slices.Compact(slices.Sorted(slices.Values(tags))) {
		sources = append(sources, []string{tag})
	}
	if len(ranges) == 0 && len(tags) == 0 && !broken {
		sources = [][]string{{"Internet"}}
	}
	a := access{deny: broken || len(ranges) > 0 && read(s, key.DenyAllElse.Read, found)}
	for _, o := range portsByProtocol(s) {
		for _, from := range sources {
			a.allow = append(a.allow, opening{protocol: o.protocol, ports: o.ports, sources: from})
		}
	}
	return a
}

// readSourceRanges reads the address ranges that may connect. Those that are no
// ranges are left out with a warning and reported as broken, so that a slip of the
// pen never opens a Service to the Internet.
func readSourceRanges(s Service, found *problems) (ranges []netip.Prefix, broken bool) {
	inSpec, wrong := parseRanges(s.Spec.LoadBalancerSourceRanges)
	if len(wrong) > 0 {
		found.warn(s.Key(), ReasonSourceRanges, "spec.loadBalancerSourceRanges: %s left out, allowed are ranges without host bits like 10.0.0.0/8; nobody else is let in", quoted(wrong))
	}
	written := slices.Concat(read(s, key.AllowedIPRanges.Read, found), read(s, key.SourceRanges.Read, found))
	noted, wrongNoted := parseRanges(written)
	if len(wrongNoted) > 0 {
		found.warn(s.Key(), ReasonAllowedIPRanges, "annotation %s: %s left out, allowed are ranges without host bits like 10.0.0.0/8; nobody else is let in", key.AllowedIPRanges.Name, quoted(wrongNoted))
	}
	if len(inSpec) > 0 && len(noted) > 0 {
		found.refuse(s.Key(), ReasonSpec, "spec.loadBalancerSourceRanges and annotation %s are both set, allowed is one of them", key.AllowedIPRanges.Name)
	}
	return slices.Concat(inSpec, noted), len(wrong)+len(wrongNoted) > 0
}

func parseRanges(texts []string) (ranges []netip.Prefix, wrong []string) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil || p != p.Masked() {
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

// aggregate is the fewest IPv4 ranges that hold the same addresses, sorted as text.
func aggregate(ranges []netip.Prefix) []string {
	var v4 []netip.Prefix
	for _, p := range ranges {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		}
	}
	slices.SortFunc(v4, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	var merged []netip.Prefix
	for _, p := range v4 {
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

// portsByProtocol is the Service's ports, as the packets carry them.
func portsByProtocol(s Service) []opening {
	var out []opening
	for _, protocol := range []string{"Tcp", "Udp"} {
		var ports []string
		for _, p := range s.Spec.Ports {
			if protocols[protocolOf(p)] == protocol {
				ports = append(ports, strconv.Itoa(int(p.Port)))
			}
		}
		if slices.Sort(ports); len(ports) > 0 {
			out = append(out, opening{protocol: protocol, ports: slices.Compact(ports)})
		}
	}
	return out
}
