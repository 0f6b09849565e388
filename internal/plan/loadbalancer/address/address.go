// Package address has what the planner needs to know of IP addresses, ranges and
// families, beyond net/netip. Layer L1.
package address

import (
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
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

// ParseRanges parses ranges without host bits, and returns the texts that are none. IPv4 addresses
// in IPv6 form are none, because Azure does not know them.
func ParseRanges(texts []string) (ranges []netip.Prefix, wrong []string) {
	for _, text := range texts {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil || p != p.Masked() || p.Addr().Is4In6() {
			wrong = append(wrong, text)
			continue
		}
		ranges = append(ranges, p)
	}
	return ranges, wrong
}

// Aggregate is the smallest set of ranges with the same addresses of a family, sorted as text.
func Aggregate(ranges []netip.Prefix, family v1.IPFamily) []string {
	some := slices.DeleteFunc(slices.Clone(ranges), func(p netip.Prefix) bool { return Family(p.Addr()) != family })
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
			whole, ok := union(merged[n-2], merged[n-1])
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

// union is the range of which a and b are the two halves.
func union(a, b netip.Prefix) (netip.Prefix, bool) {
	if a.Bits() != b.Bits() || a.Bits() == 0 {
		return netip.Prefix{}, false
	}
	whole := netip.PrefixFrom(a.Addr(), a.Bits()-1).Masked()
	return whole, whole == netip.PrefixFrom(b.Addr(), b.Bits()-1).Masked()
}

// IsReserved reports whether Azure keeps an address of a subnet's range to itself: the first
// four and the last one.
func IsReserved(r netip.Prefix, ip netip.Addr) bool {
	first := r.Masked().Addr()
	for range 4 {
		if ip == first {
			return true
		}
		first = first.Next()
	}
	return r.Contains(ip) && !r.Contains(ip.Next())
}
