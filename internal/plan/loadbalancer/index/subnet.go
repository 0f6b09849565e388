package index

import (
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
)

// Subnet is what is known of a subnet.
type Subnet struct {
	Exists bool // or may exist: it could not be read
	ranges []netip.Prefix
}

func (x *Index) readSubnets() error {
	for _, id := range Subnets(x.Input) {
		view, exists, err := plan.View[network.Subnet](x.Have, id)
		if err != nil {
			return err
		}
		_, unread := x.Have.Unread(id, network.Subnets)
		known := Subnet{Exists: exists || unread}
		for _, text := range slices.Concat(view.Properties.AddressPrefixes, []string{view.Properties.AddressPrefix}) {
			if p, err := netip.ParsePrefix(text); err == nil {
				known.ranges = append(known.ranges, p)
			}
		}
		x.subnets[id.Key()] = known
	}
	return nil
}

func (s Subnet) String() string {
	texts := make([]string, len(s.ranges))
	for i, r := range s.ranges {
		texts[i] = r.String()
	}
	return strings.Join(texts, ", ")
}

// Refuses says why no Service can have an address of the subnet, "" when one can.
func (s Subnet) Refuses(ip netip.Addr) string {
	switch {
	case len(s.ranges) == 0: // it is not known
		return ""
	case !s.Holds(ip):
		return "is not in the subnet"
	case slices.ContainsFunc(s.ranges, func(r netip.Prefix) bool { return address.IsReserved(r, ip) }):
		return "is one that Azure keeps to itself in the subnet"
	}
	return ""
}

// Lacks reports whether the subnet has no address of a family.
func (s Subnet) Lacks(family v1.IPFamily) bool {
	return len(s.ranges) > 0 && !slices.ContainsFunc(s.ranges, func(p netip.Prefix) bool { return address.Family(p.Addr()) == family })
}

// Holds reports whether an address is one of the subnet.
func (s Subnet) Holds(ip netip.Addr) bool {
	return slices.ContainsFunc(s.ranges, func(p netip.Prefix) bool { return p.Contains(ip) })
}
