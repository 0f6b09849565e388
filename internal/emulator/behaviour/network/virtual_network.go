package network

import (
	"net/netip"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

func virtualNetworkTypes() []behaviour.Type {
	return []behaviour.Type{virtualNetworks(), subnets(), delegations(), peerings()}
}

func virtualNetworks() behaviour.Type {
	return tracked("virtualNetworks", behaviour.Type{
		Style: waiting(3, 10),
		Fill: func(c *behaviour.Call) error {
			return first(
				func() error {
					return choose(c, "properties.privateEndpointVNetPolicies", "Disabled", "Disabled", "Basic")
				},
				func() error { return list(c, "properties.subnets", "properties.virtualNetworkPeerings") },
				func() error { return flag(c, "properties.enableDdosProtection", false) },
				func() error { return checkAddressSpace(c) },
			)
		},
		Check: checkVirtualNetwork,
		InUse: networkInUse,
		Views: map[string]func(c *behaviour.Call) (any, error){
			"CheckIPAddressAvailability": addressAvailability,
		},
	})
}

func addressSpace(doc behaviour.Object) []string {
	return behaviour.Texts(doc, "properties.addressSpace.addressPrefixes")
}

func checkAddressSpace(c *behaviour.Call) error {
	texts := addressSpace(c.Doc)
	if len(texts) == 0 {
		return missing(c, "properties.addressSpace.addressPrefixes")
	}
	ranges, err := parsePrefixes(c.ID, texts)
	if err != nil {
		return err
	}
	for i, p := range ranges {
		if q, clash := overlapping([]netip.Prefix{p}, ranges[:i]); clash {
			return malformed("AddressSpacesOverlap", "Address prefixes of the address space of resource %s overlap: %s is in it twice.", c.ID, q)
		}
	}
	return nil
}

// checkVirtualNetwork checks the subnets against the address space and each other,
// and that what is in use stays.
func checkVirtualNetwork(c *behaviour.Call) error {
	space, err := parsePrefixes(c.ID, addressSpace(c.Doc))
	if err != nil {
		return err
	}
	if err := checkSubnets(c, space); err != nil {
		return err
	}
	for _, old := range behaviour.Objects(c.Old, "properties.subnets") {
		if err := keepSubnet(c, old); err != nil {
			return err
		}
	}
	return checkPeerings(c, space)
}

func checkSubnets(c *behaviour.Call, space []netip.Prefix) error {
	var before []netip.Prefix
	for _, subnet := range behaviour.Objects(c.Doc, "properties.subnets") {
		name := behaviour.Text(subnet, "name")
		ranges, err := parsePrefixes(c.ID.Child("subnets", name), subnetPrefixes(subnet))
		if err != nil {
			return err
		}
		for _, r := range ranges {
			if !covers(space, r) {
				return behaviour.Invalid("NetcfgInvalidSubnet", "Subnet '%s' is not valid in virtual network '%s'.", name, c.ID.Name())
			}
		}
		if _, clash := overlapping(ranges, before); clash {
			return behaviour.Invalid("NetcfgSubnetRangesOverlap", "Subnet '%s' is not valid because its IP address range overlaps with that of an existing subnet in virtual network '%s'.", name, c.ID.Name())
		}
		before = append(before, ranges...)
	}
	return nil
}

// keepSubnet refuses to change a subnet so that what is in it could not be there: the
// policies of one with private link services, and its range when addresses in use are outside.
func keepSubnet(c *behaviour.Call, old behaviour.Object) error {
	name := behaviour.Text(old, "name")
	now := behaviour.Named(c.Doc, "properties.subnets", name)
	if now == nil {
		return nil
	}
	id := c.ID.Child("subnets", name)
	if err := keepLinkPolicies(c, id, now); err != nil {
		return err
	}
	if behaviour.Equal(toAny(subnetPrefixes(old)), toAny(subnetPrefixes(now))) {
		return nil
	}
	ranges, err := parsePrefixes(id, subnetPrefixes(now))
	if err != nil {
		return err
	}
	used, err := NewPrivateAddresses(c.World, id, "")
	if err != nil {
		return err
	}
	for address := range used.used {
		if !holds(ranges, address) {
			return behaviour.Invalid("InUsePrefixCannotBeDeleted", "IpPrefix %s on Subnet %s has active allocations and cannot be deleted.", rangesText(used.ranges), name)
		}
	}
	return nil
}

// keepLinkPolicies: a subnet has no network policies for private link services while there
// are any in it.
func keepLinkPolicies(c *behaviour.Call, id azure.ID, subnet behaviour.Object) error {
	if behaviour.Text(subnet, linkPolicies) == "Disabled" {
		return nil
	}
	for _, r := range users(c.World, id, nicSubnet) {
		if hasByInterface(r.Resource) {
			return behaviour.Invalid("PrivateLinkServiceNetworkPoliciesCannotBeEnabledOnPrivateLinkServiceSubnet", "Private link service network policies cannot be enabled on private link service subnet %s. It is used by %s.", id, r.Resource)
		}
	}
	return nil
}

func toAny(texts []string) []any {
	array := make([]any, len(texts))
	for i, t := range texts {
		array[i] = t
	}
	return array
}

// networkInUse refuses to delete a virtual network that pools of addresses are in.
// Peerings and links of zones do not keep it.
func networkInUse(c *behaviour.Call, _ []behaviour.Referrer) error {
	if by := users(c.World, c.ID, poolNetwork, addressNetwork); len(by) > 0 {
		return behaviour.Invalid("InUseVirtualNetworkCannotBeDeleted", "Virtual network %s cannot be deleted because it is in use by the following resources: %s.", c.ID, joined(objects(by)))
	}
	return nil
}

// subnetUsers are all resources that refer to a subnet from outside its network.
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
	return behaviour.Invalid("InUseSubnetCannotBeDeleted", "Subnet %s is in use by %s and cannot be deleted. In order to delete the subnet, delete all the resources within the subnet. See aka.ms/deletesubnet.", id.Name(), by[0].Object)
}

// addressAvailability answers whether a private address is free in a network, and
// which are when it is not.
func addressAvailability(c *behaviour.Call) (any, error) {
	wanted, ok := parseAddress(c.Query.Get("ipaddress"))
	if !ok {
		return nil, behaviour.Invalid("InvalidIPAddressFormat", "IP address %s is not formatted correctly.", c.Query.Get("ipaddress"))
	}
	const proposals = 5
	for _, subnet := range behaviour.Objects(c.Old, "properties.subnets") {
		id := c.ID.Child("subnets", behaviour.Text(subnet, "name"))
		ranges, err := parsePrefixes(id, subnetPrefixes(subnet))
		if err != nil || !holds(ranges, wanted) {
			continue
		}
		addresses, err := NewPrivateAddresses(c.World, id, "")
		if err != nil {
			return nil, err
		}
		if addresses.Free(wanted.String()) {
			return behaviour.Object{"available": true}, nil
		}
		return behaviour.Object{"available": false, "availableIPAddresses": addresses.FirstFree(family(wanted), proposals)}, nil
	}
	return nil, behaviour.Invalid("PrivateIPAddressNotInAnySubnet", "Private static IP address %s does not belong to any subnet of virtual network %s.", wanted, c.ID.Name())
}
