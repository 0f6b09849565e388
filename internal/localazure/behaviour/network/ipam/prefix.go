// Package ipam has the IP addresses of the local Azure: families, ranges, service tags, and the allocation of private and
// public addresses (IP address management). Layer L2.
package ipam

import (
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// Address families in Azure's spelling.
const (
	IPv4 = "IPv4"
	IPv6 = "IPv6"
)

// Family returns the family of an address in Azure's spelling.
func Family(a netip.Addr) string {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// ParsePrefix parses an address range of a resource. The bits after the prefix length must be zero.
func ParsePrefix(of azure.ID, text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{},
			behaviour.Invalid("InvalidAddressPrefixFormat",
				"Address prefix %s of resource %s is not formatted correctly. It should follow CIDR notation, for example 10.0.0.0/24.",
				text, of)
	}
	if masked := p.Masked(); masked != p {
		return netip.Prefix{},
			behaviour.Invalid("InvalidCIDRNotation",
				"The address prefix %s in resource %s has an invalid CIDR notation. For the given prefix length, the address prefix "+
					"should be %s.", text, of, masked)
	}
	return p, nil
}

func ParsePrefixes(of azure.ID, texts []string) ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		p, err := ParsePrefix(of, text)
		if err != nil {
			return nil, err
		}
		prefixes[i] = p
	}
	return prefixes, nil
}

// Covers reports whether one of the ranges contains all of p.
func Covers(ranges []netip.Prefix, p netip.Prefix) bool {
	for _, r := range ranges {
		if r.Bits() <= p.Bits() && r.Contains(p.Addr()) {
			return true
		}
	}
	return false
}

// Holds reports whether one of the ranges contains the address.
func Holds(ranges []netip.Prefix, a netip.Addr) bool {
	return Covers(ranges, netip.PrefixFrom(a, a.BitLen()))
}

// Overlapping returns a range of a that overlaps a range of b, and whether there is one.
func Overlapping(a, b []netip.Prefix) (netip.Prefix, bool) {
	for _, p := range a {
		if slices.ContainsFunc(b, p.Overlaps) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// Parse parses a single address of either family.
func Parse(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil || a.Is4In6() || a.Zone() != "" {
		return netip.Addr{}, false
	}
	return a, true
}

// lastOf returns the highest address of a range.
func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(bytes)
	return a
}

// Nth returns the nth address of a range, from the end for a negative n.
func Nth(p netip.Prefix, n int) netip.Addr {
	a := p.Masked().Addr()
	for range n {
		a = a.Next()
	}
	if n < 0 {
		a = lastOf(p)
		for range -n - 1 {
			a = a.Prev()
		}
	}
	return a
}

// plus returns the address n above a.
func plus(a netip.Addr, n uint64) netip.Addr {
	bytes := a.AsSlice()
	for i := len(bytes) - 1; i >= 0 && n > 0; i-- {
		n += uint64(bytes[i])
		bytes[i] = byte(n)
		n >>= 8
	}
	sum, _ := netip.AddrFromSlice(bytes)
	return sum
}

// IsAddressOrRange reports whether a text is an address, or a range without bits after its prefix length.
func IsAddressOrRange(text string) bool {
	if _, ok := Parse(text); ok {
		return true
	}
	p, err := netip.ParsePrefix(text)
	return err == nil && !p.Addr().Is4In6() && p.Masked() == p
}
