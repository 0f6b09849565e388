// Package address has what the planner needs to know of IP addresses, ranges and
// families, beyond net/netip. Layer L1.
package address

import (
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// Families are the IP families in the order in which they are planned.
func Families() []v1.IPFamily { return []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} }

// Family is the family of an address.
func Family(ip netip.Addr) v1.IPFamily {
	if ip.Is4() {
		return v1.IPv4Protocol
	}
	return v1.IPv6Protocol
}

// FamilyNamed is the family of an address version as Azure writes it; IPv4 is the default.
func FamilyNamed(version string) v1.IPFamily {
	if strings.EqualFold(version, string(v1.IPv6Protocol)) {
		return v1.IPv6Protocol
	}
	return v1.IPv4Protocol
}

// Plain writes an address in the canonical form, because Azure keeps an IPv6 address as it was
// written. A text that is no address is returned unchanged.
func Plain(text string) string {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	return ip.Unmap().String()
}

// IsPublic reports whether an address can be one of the Internet.
func IsPublic(ip netip.Addr) bool {
	carrierGrade := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10) // providers' own networks
	azureHost := netip.AddrFrom4([4]byte{168, 63, 129, 16})                       // the address of the host for its machines
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !carrierGrade.Contains(ip) && ip != azureHost
}

// ParseRanges parses ranges without host bits, and returns the texts that are not such ranges. IPv4 addresses in IPv6
// form do not count, because Azure does not know them.
func ParseRanges(texts []string) (ranges []netip.Prefix, wrong []string) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil || p != p.Masked() || p.Addr().Is4In6() {
			wrong = append(wrong, text)
		} else {
			ranges = append(ranges, p)
		}
	}
	return ranges, wrong
}

// Aggregate is the smallest set of ranges with the same addresses of a family, sorted as text.
func Aggregate(ranges []netip.Prefix, family v1.IPFamily) []string {
	some := slices.DeleteFunc(slices.Clone(ranges), func(p netip.Prefix) bool { return Family(p.Addr()) != family })
	slices.SortFunc(some, netip.Prefix.Compare)
	var merged []netip.Prefix
	for _, p := range some {
		n := len(merged) - 1
		if n >= 0 && merged[n].Contains(p.Addr()) {
			continue
		}
		for ; n >= 0 && merged[n].Bits() == p.Bits(); n-- { // two halves are one range, and may be a half again
			whole := netip.PrefixFrom(p.Addr(), p.Bits()-1).Masked()
			if !whole.Contains(merged[n].Addr()) {
				break
			}
			p = whole
		}
		merged = append(merged[:n+1], p)
	}
	texts := make([]string, len(merged))
	for i, p := range merged {
		texts[i] = p.String()
	}
	slices.Sort(texts)
	return texts
}

// OfPublicIP stands for the address of a public IP until Azure has chosen it.
func OfPublicIP(id azure.ID) string { return plan.Output(id, "properties.ipAddress") }

// OfFrontend stands for the private address of a frontend until Azure has chosen it.
func OfFrontend(balancer azure.ID, name string) string {
	return plan.Output(balancer, "properties.frontendIPConfigurations["+name+"].properties.privateIPAddress")
}
