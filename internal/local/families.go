package local

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// The families of addresses, as Services and Azure write them.
const (
	IPv4 = "IPv4"
	IPv6 = "IPv6"
)

// addresses are the ranges of a family.
type addresses struct {
	// network is the range of the virtual network, subnet that of its first subnet.
	network, subnet netip.Prefix
	// pods is where the nodes get their ranges of pod addresses from: a /24, or a /64 of
	// IPv6, for each of as many nodes as a local cluster can have.
	pods netip.Prefix
	// services is the range of the addresses of Services.
	services netip.Prefix
}

func ipv4Addresses() addresses {
	// Half of the network is free for further subnets.
	network, subnet := netip.MustParsePrefix("10.240.0.0/15"), netip.MustParsePrefix("10.240.0.0/16")
	return addresses{network: network, subnet: subnet, pods: netip.MustParsePrefix("10.244.0.0/14"), services: netip.MustParsePrefix("10.96.0.0/16")}
}

// ipv6Addresses has the subnet of the only size that Azure has for IPv6.
func ipv6Addresses() addresses {
	return addresses{
		network: netip.MustParsePrefix("fd00:10:240::/48"), subnet: netip.MustParsePrefix("fd00:10:240::/64"),
		pods: netip.MustParsePrefix("fd00:10:244::/48"), services: netip.MustParsePrefix("fd00:10:96::/108"),
	}
}

// dualStack reports whether the site has both families.
func (s Site) dualStack() bool { return slices.Contains(s.IPFamilies, IPv6) }

// addresses are the ranges of the families that a site has, IPv4 first.
func (s Site) addresses() []addresses {
	if s.dualStack() {
		return []addresses{ipv4Addresses(), ipv6Addresses()}
	}
	return []addresses{ipv4Addresses()}
}

func (s Site) networkRanges() []netip.Prefix {
	return s.each(func(a addresses) netip.Prefix { return a.network })
}

func (s Site) subnetRanges() []netip.Prefix {
	return s.each(func(a addresses) netip.Prefix { return a.subnet })
}

func (s Site) podRanges() []netip.Prefix {
	return s.each(func(a addresses) netip.Prefix { return a.pods })
}

func (s Site) serviceRanges() []netip.Prefix {
	return s.each(func(a addresses) netip.Prefix { return a.services })
}

func (s Site) each(of func(addresses) netip.Prefix) []netip.Prefix {
	var all []netip.Prefix
	for _, a := range s.addresses() {
		all = append(all, of(a))
	}
	return all
}

// readFamilies are families as a person writes them; nil for no wish. IPv4 is always
// there, as on Azure.
func readFamilies(given []string) ([]string, error) {
	both := []string{IPv4, IPv6}
	for _, known := range [][]string{nil, both[:1], both} {
		if slices.EqualFunc(given, known, strings.EqualFold) {
			return known, nil
		}
	}
	return nil, fmt.Errorf("--ip-families %s: want %s, or %s", strings.Join(given, ","), IPv4, strings.Join(both, ","))
}

// chooseFamilies decides which families of addresses there will be. A cluster keeps
// those that it has.
func (c *cluster) chooseFamilies() error {
	wanted, err := readFamilies(c.IPFamilies)
	if err != nil {
		return err
	}
	if len(c.memory.Site.ScaleSets) == 0 {
		c.IPFamilies = wanted
		return nil
	}
	c.IPFamilies = []string{IPv4}
	if c.memory.Site.dualStack() {
		c.IPFamilies = append(c.IPFamilies, IPv6)
	}
	if len(wanted) > 0 && !slices.Equal(wanted, c.IPFamilies) {
		return fmt.Errorf("--ip-families %s: the cluster in %s has %s, and that cannot be changed", strings.Join(wanted, ","), c.group.Dir(), strings.Join(c.IPFamilies, ","))
	}
	return nil
}
