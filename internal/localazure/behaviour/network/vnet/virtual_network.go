package vnet

import (
	"net/netip"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/loadbalancer"
	"kaz/internal/localazure/behaviour/network/schema"
)

func virtualNetworks() behaviour.Type {
	return schema.Tracked("virtualNetworks", behaviour.Type{
		Style: schema.RetryAfter(3, 10),
		Fill: func(c *behaviour.Call) error {
			// A PUT without peerings keeps them. Only an empty list removes them.
			if was := behaviour.At(c.Old, peeringsPath); was != nil {
				behaviour.Default(c.Doc, peeringsPath, behaviour.Clone(was))
			}
			if was := behaviour.At(c.Old, subnetsPath); was != nil && keepsSubnets(c) {
				behaviour.Default(c.Doc, subnetsPath, behaviour.Clone(was))
			}
			return schema.FirstError(
				func() error {
					return schema.Choose(c, "properties.privateEndpointVNetPolicies", "Disabled", "Disabled", "Basic")
				},
				func() error { return schema.List(c, "properties.subnets", peeringsPath) },
				func() error { return schema.Flag(c, "properties.enableDdosProtection", false) },
				func() error { return checkAddressSpace(c) },
			)
		},
		Check: checkVirtualNetwork,
		Show:  showNetwork,
		InUse: networkInUse,
		Views: map[string]func(c *behaviour.Call) (any, error){
			"CheckIPAddressAvailability": addressAvailability, "usages": networkUsage,
		},
	})
}

// isOld reports whether the request has an API version before 2020-11-01. Recorded answers of such versions show the protection of
// machines, and policies for private endpoints are enabled unless a request says otherwise.
func isOld(c *behaviour.Call) bool {
	version := c.Query.Get("api-version")
	return version != "" && version < "2020-11-01"
}

func showNetwork(c *behaviour.Call, view behaviour.Object) {
	showCommunities(view)
	if isOld(c) {
		behaviour.Default(view, "properties.enableVmProtection", false)
	}
}

// subnetsPath are the subnets of a virtual network.
const subnetsPath = "properties.subnets"

// keepsSubnets reports whether a PUT without subnets keeps those that are there. Azure announced it for the API version 2023-09-01:
// https://techcommunity.microsoft.com/blog/azurenetworkingblog/azure-virtual-network-now-supports-updates-without-subnet-property/4067952
func keepsSubnets(c *behaviour.Call) bool {
	version := c.Query.Get("api-version")
	return version == "" || version >= "2023-09-01"
}

// reservedRanges are those that Microsoft's questions and answers about virtual networks exclude. The error's code was not looked up.
func reservedRanges() []netip.Prefix {
	var all []netip.Prefix
	for text := range strings.FieldsSeq("224.0.0.0/4 255.255.255.255/32 127.0.0.0/8 169.254.0.0/16 168.63.129.16/32") {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func checkAddressSpace(c *behaviour.Call) error {
	texts := ipam.AddressSpace(c.Doc)
	if len(texts) == 0 {
		return schema.Missing(c, "properties.addressSpace.addressPrefixes")
	}
	ranges, err := ipam.ParsePrefixes(c.ID, texts)
	if err != nil {
		return err
	}
	for i, p := range ranges {
		if q, reserved := ipam.Overlapping([]netip.Prefix{p}, reservedRanges()); reserved {
			return schema.Malformed("AddressPrefixReserved",
				"Address prefix %s of resource %s overlaps with %s, which cannot be used in a virtual network.", p, c.ID, q)
		}
		if q, clash := ipam.Overlapping([]netip.Prefix{p}, ranges[:i]); clash {
			return schema.Malformed("AddressSpacesOverlap",
				"Address prefixes of the address space of resource %s overlap: %s is in it twice.", c.ID, q)
		}
	}
	return nil
}

// checkVirtualNetwork checks the subnets against the address space, each other and the resources in them.
func checkVirtualNetwork(c *behaviour.Call) error {
	space, err := ipam.ParsePrefixes(c.ID, ipam.AddressSpace(c.Doc))
	if err != nil {
		return err
	}
	if err := checkSubnets(c, space); err != nil {
		return err
	}
	for _, old := range behaviour.Objects(c.Old, "properties.subnets") {
		if err := checkSubnetChange(c, old); err != nil {
			return err
		}
	}
	return checkPeerings(c, space)
}

func checkSubnets(c *behaviour.Call, space []netip.Prefix) error {
	var before []netip.Prefix
	for _, subnet := range behaviour.Objects(c.Doc, "properties.subnets") {
		name := behaviour.Text(subnet, "name")
		ranges, err := ipam.ParsePrefixes(c.ID.Child("subnets", name), ipam.SubnetPrefixes(subnet))
		if err != nil {
			return err
		}
		for _, r := range ranges {
			if !ipam.Covers(space, r) {
				return behaviour.Invalid("NetcfgInvalidSubnet", "Subnet '%s' is not valid in virtual network '%s'.", name, c.ID.Name())
			}
		}
		if _, clash := ipam.Overlapping(ranges, before); clash {
			return behaviour.Invalid("NetcfgSubnetRangesOverlap",
				"Subnet '%s' is not valid because its IP address range overlaps with that of an existing subnet in virtual network '%s'.",
				name, c.ID.Name())
		}
		before = append(before, ranges...)
	}
	return nil
}

// checkSubnetChange refuses to change a subnet against the resources in it. These are private link services, which need
// disabled policies, and addresses outside of the new ranges.
func checkSubnetChange(c *behaviour.Call, old behaviour.Object) error {
	name := behaviour.Text(old, "name")
	now := behaviour.Named(c.Doc, "properties.subnets", name)
	if now == nil {
		return nil
	}
	id := c.ID.Child("subnets", name)
	if err := checkLinkPolicies(c, id, now); err != nil {
		return err
	}
	if behaviour.Equal(schema.Array(ipam.SubnetPrefixes(old)), schema.Array(ipam.SubnetPrefixes(now))) {
		return nil
	}
	ranges, err := ipam.ParsePrefixes(id, ipam.SubnetPrefixes(now))
	if err != nil {
		return err
	}
	used, err := ipam.NewAllocator(c.World, id, "")
	if err != nil {
		return err
	}
	if used.Outside(ranges) {
		return behaviour.Invalid("InUsePrefixCannotBeDeleted",
			"IpPrefix %s on Subnet %s has active allocations and cannot be deleted.", used.Ranges(), name)
	}
	return nil
}

// checkLinkPolicies refuses network policies for private link services on a subnet with such services.
func checkLinkPolicies(c *behaviour.Call, id azure.ID, subnet behaviour.Object) error {
	if behaviour.Text(subnet, LinkPolicies) == "Disabled" {
		return nil
	}
	for _, r := range schema.ReferrersAt(c.World, id, nicSubnet) {
		if ipam.UsesInterface(r.Resource) {
			return behaviour.Invalid("PrivateLinkServiceNetworkPoliciesCannotBeEnabledOnPrivateLinkServiceSubnet",
				"Private link service network policies cannot be enabled on private link service subnet %s. It is used by %s.", id,
				r.Resource)
		}
	}
	return nil
}

// networkInUse refuses to delete a virtual network with pools of IP addresses. Peerings and DNS zone links do not
// matter.
func networkInUse(c *behaviour.Call, _ []behaviour.Referrer) error {
	if by := schema.ReferrersAt(c.World, c.ID, loadbalancer.PoolNetworkPath, loadbalancer.AddressNetworkPath); len(by) > 0 {
		return behaviour.Invalid("InUseVirtualNetworkCannotBeDeleted",
			"Virtual network %s cannot be deleted because it is in use by the following resources: %s.", c.ID,
			schema.JoinIDs(schema.ObjectIDs(by)))
	}
	return nil
}

// subnetUsers returns the resources outside of the network that refer to a subnet.
func subnetUsers(w behaviour.World, id azure.ID) []behaviour.Referrer {
	var by []behaviour.Referrer
	for _, r := range w.Referrers(id) {
		if !r.Resource.Equal(id.Parent()) {
			by = append(by, r)
		}
	}
	return by
}

func subnetInUse(id azure.ID, by []behaviour.Referrer) error {
	return behaviour.Invalid("InUseSubnetCannotBeDeleted",
		"Subnet %s is in use by %s and cannot be deleted. In order to delete the subnet, delete all the resources within the "+
			"subnet. See aka.ms/deletesubnet.", id.Name(), by[0].Object)
}

// addressAvailability reports whether a private address is free, and proposes others if it is not.
func addressAvailability(c *behaviour.Call) (any, error) {
	wanted, ok := ipam.Parse(c.Query.Get("ipaddress"))
	if !ok {
		return nil, behaviour.Invalid("InvalidIPAddressFormat", "IP address %s is not formatted correctly.", c.Query.Get("ipaddress"))
	}
	const proposals = 5
	for _, subnet := range behaviour.Objects(c.Old, "properties.subnets") {
		id := c.ID.Child("subnets", behaviour.Text(subnet, "name"))
		ranges, err := ipam.ParsePrefixes(id, ipam.SubnetPrefixes(subnet))
		if err != nil || !ipam.Holds(ranges, wanted) {
			continue
		}
		addresses, err := ipam.NewAllocator(c.World, id, "")
		if err != nil {
			return nil, err
		}
		free := addresses.Free(wanted.String())
		answer := behaviour.Object{"available": free, "isPlatformReserved": ipam.Reserved(ranges, wanted)}
		if !free {
			answer["availableIPAddresses"] = addresses.FirstFree(ipam.Family(wanted), proposals)
		}
		return answer, nil
	}
	return nil, behaviour.Invalid("PrivateIPAddressNotInAnySubnet",
		"Private static IP address %s does not belong to any subnet of virtual network %s.", wanted, c.ID.Name())
}
