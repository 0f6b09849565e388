package network

import (
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// Address families as Azure spells them.
const (
	IPv4 = "IPv4"
	IPv6 = "IPv6"
)

// family is the address family of an address in Azure's spelling.
func family(a netip.Addr) string {
	if a.Is4() {
		return IPv4
	}
	return IPv6
}

// parsePrefix reads an address range of a resource. Bits behind the prefix's
// length must be zero.
func parsePrefix(of azure.ID, text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, behaviour.Invalid("InvalidAddressPrefixFormat", "Address prefix %s of resource %s is not formatted correctly. It should follow CIDR notation, for example 10.0.0.0/24.", text, of)
	}
	if masked := p.Masked(); masked != p {
		return netip.Prefix{}, behaviour.Invalid("InvalidCIDRNotation", "The address prefix %s in resource %s has an invalid CIDR notation. For the given prefix length, the address prefix should be %s.", text, of, masked)
	}
	return p, nil
}

func parsePrefixes(of azure.ID, texts []string) ([]netip.Prefix, error) {
	prefixes := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		p, err := parsePrefix(of, text)
		if err != nil {
			return nil, err
		}
		prefixes[i] = p
	}
	return prefixes, nil
}

// covers reports whether one of the ranges has all of p.
func covers(ranges []netip.Prefix, p netip.Prefix) bool {
	for _, r := range ranges {
		if r.Bits() <= p.Bits() && r.Contains(p.Addr()) {
			return true
		}
	}
	return false
}

// holds reports whether one of the ranges has the address.
func holds(ranges []netip.Prefix, a netip.Addr) bool {
	return covers(ranges, netip.PrefixFrom(a, a.BitLen()))
}

// overlapping finds two ranges that share addresses.
func overlapping(a, b []netip.Prefix) (netip.Prefix, bool) {
	for _, p := range a {
		if slices.ContainsFunc(b, p.Overlaps) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// parseAddress reads a single address of either family.
func parseAddress(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.TrimSpace(text))
	if err != nil || a.Is4In6() || a.Zone() != "" {
		return netip.Addr{}, false
	}
	return a, true
}

// lastOf is the highest address of a range.
func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(bytes)
	return a
}

// plus is the address n places above a.
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
