package site

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// IPv4 and IPv6 are the address families, written as Services and Azure write them.
const (
	IPv4 = "IPv4"
	IPv6 = "IPv6"
)

// addresses are the address ranges of a family.
type addresses struct {
	// network is the range of the virtual network, subnet the range of its first subnet.
	network, subnet netip.Prefix
	// pods contains the pod range of each node: a /24, or a /64 of IPv6, for up to 1,000 nodes.
	pods netip.Prefix
	// services is the range of the addresses of Services.
	services netip.Prefix
}

func ipv4Addresses() addresses {
	// Half of the network is free for more subnets.
	network, subnet := netip.MustParsePrefix("10.240.0.0/15"), netip.MustParsePrefix("10.240.0.0/16")
	return addresses{network: network, subnet: subnet, pods: netip.MustParsePrefix("10.244.0.0/14"),
		services: netip.MustParsePrefix("10.96.0.0/16")}
}

// ipv6Addresses has a /64 as its subnet: Azure allows no other size for IPv6.
func ipv6Addresses() addresses {
	return addresses{
		network: netip.MustParsePrefix("fd00:10:240::/48"), subnet: netip.MustParsePrefix("fd00:10:240::/64"),
		pods: netip.MustParsePrefix("fd00:10:244::/48"), services: netip.MustParsePrefix("fd00:10:96::/108"),
	}
}

// DualStack reports whether the site has both families.
func (s Site) DualStack() bool { return slices.Contains(s.IPFamilies, IPv6) }

// addresses returns the ranges of each family of the site, IPv4 first.
func (s Site) addresses() []addresses {
	if s.DualStack() {
		return []addresses{ipv4Addresses(), ipv6Addresses()}
	}
	return []addresses{ipv4Addresses()}
}

// NetworkRanges returns the range of each family of the virtual network, IPv4 first.
func (s Site) NetworkRanges() []netip.Prefix {
	return s.each(func(a addresses) netip.Prefix { return a.network })
}

// SubnetRanges returns the range of each family of the subnet of the nodes, IPv4 first.
func (s Site) SubnetRanges() []netip.Prefix {
	return s.each(func(a addresses) netip.Prefix { return a.subnet })
}

// PodRanges returns the range of each family of the pods, IPv4 first.
func (s Site) PodRanges() []netip.Prefix {
	return s.each(func(a addresses) netip.Prefix { return a.pods })
}

// ServiceRanges returns the range of each family of the Services, IPv4 first.
func (s Site) ServiceRanges() []netip.Prefix {
	return s.each(func(a addresses) netip.Prefix { return a.services })
}

func (s Site) each(of func(addresses) netip.Prefix) []netip.Prefix {
	var all []netip.Prefix
	for _, a := range s.addresses() {
		all = append(all, of(a))
	}
	return all
}

// ReadFamilies returns the families of a command line, IPv4 first, nil for an empty list. Azure has no cluster without
// IPv4.
func ReadFamilies(given []string) ([]string, error) {
	both := []string{IPv4, IPv6}
	for _, known := range [][]string{nil, both[:1], both} {
		if slices.EqualFunc(given, known, strings.EqualFold) {
			return known, nil
		}
	}
	return nil, fmt.Errorf("--ip-families %s: want %s, or %s", strings.Join(given, ","), IPv4, strings.Join(both, ","))
}
