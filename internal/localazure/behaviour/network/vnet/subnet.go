package vnet

import (
	"net/netip"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/schema"
	"kaz/internal/localazure/core/catalog"
)

// The paths at which a private address refers to its subnet.
const (
	nicSubnet      = "properties.ipConfigurations.properties.subnet"
	frontendSubnet = "properties.frontendIPConfigurations.properties.subnet"
	endpointSubnet = "properties.subnet"
	gatewaySubnet  = "properties.gatewayIPConfigurations.properties.subnet"
)

func subnets() behaviour.Type {
	return schema.Inside("virtualNetworks/subnets", "properties.subnets", behaviour.Type{
		Style: schema.RetryAfter(3, 10),
		Own: []string{"properties.ipConfigurations", "properties.privateEndpoints", "properties.ipConfigurationProfiles",
			"properties.serviceAssociationLinks", "properties.resourceNavigationLinks", "properties.purpose",
			"properties.applicationGatewayIPConfigurations"},
		Fill: fillSubnet,
		InUse: func(c *behaviour.Call, _ []behaviour.Referrer) error {
			if by := subnetUsers(c.World, c.ID); len(by) > 0 {
				return subnetInUse(c.ID, by)
			}
			return nil
		},
		Show: showSubnet,
	})
}

// LinkPolicies is the path of a subnet's network policies for private link services.
const LinkPolicies = "properties.privateLinkServiceNetworkPolicies"

func fillSubnet(c *behaviour.Call) error {
	if len(ipam.SubnetPrefixes(c.Doc)) == 0 {
		return schema.Missing(c, "properties.addressPrefix")
	}
	ranges, err := ipam.ParsePrefixes(c.ID, ipam.SubnetPrefixes(c.Doc))
	if err != nil {
		return err
	}
	if err := checkSubnetSizes(c, ranges); err != nil {
		return err
	}
	policies := "Disabled"
	if isOld(c) {
		policies = "Enabled"
	}
	err = schema.FirstError(
		func() error { return schema.List(c, "properties.delegations") },
		func() error {
			return schema.Choose(c, "properties.privateEndpointNetworkPolicies", policies,
				"Disabled", "Enabled", "NetworkSecurityGroupEnabled", "RouteTableEnabled")
		},
		func() error {
			return schema.Choose(c, LinkPolicies, "Enabled", "Disabled", "Enabled")
		},
		func() error { return checkSubnetReferences(c) },
	)
	if err != nil {
		return err
	}
	for _, endpoint := range behaviour.Objects(c.Doc, "properties.serviceEndpoints") {
		endpoint["provisioningState"] = "Succeeded"
		behaviour.Default(endpoint, "locations", endpointLocations(c, behaviour.Text(endpoint, "service")))
	}
	return nil
}

// endpointLocations returns where a subnet reaches a service: storage in the region and its pair, SQL in the region, others everywhere.
func endpointLocations(c *behaviour.Call, service string) []any {
	switch location := c.Location(); strings.ToLower(service) {
	case "microsoft.storage":
		if region, ok := catalog.FindRegion(location); ok && region.Pair != "" {
			return []any{location, region.Pair}
		}
		return []any{location}
	case "microsoft.sql":
		return []any{location}
	}
	return []any{"*"}
}

// checkSubnetSizes checks the sizes of a subnet's ranges: Azure reserves five addresses of an IPv4 range, and an IPv6
// range is a /64.
func checkSubnetSizes(c *behaviour.Call, ranges []netip.Prefix) error {
	const smallestIPv4, onlyIPv6 = 29, 64
	var v4, v6 int
	for _, r := range ranges {
		if r.Addr().Is4() {
			v4++
			if r.Bits() > smallestIPv4 {
				return behaviour.Invalid("NetcfgInvalidSubnet",
					"Subnet '%s' is not valid in virtual network '%s': the smallest IPv4 subnet is /%d, %s is smaller.", c.ID.Name(),
					c.ID.Parent().Name(), smallestIPv4, r)
			}
			continue
		}
		v6++
		if r.Bits() != onlyIPv6 {
			return behaviour.Invalid("NetcfgInvalidSubnet",
				"Subnet '%s' is not valid in virtual network '%s': an IPv6 subnet must be a /%d, %s is not.", c.ID.Name(),
				c.ID.Parent().Name(), onlyIPv6, r)
		}
	}
	if v4 == 0 {
		return behaviour.Invalid("NetcfgInvalidSubnet",
			"Subnet '%s' is not valid in virtual network '%s': it has no IPv4 address prefix.", c.ID.Name(), c.ID.Parent().Name())
	}
	return nil
}

func checkSubnetReferences(c *behaviour.Call) error {
	for path, fullType := range map[string]string{
		"properties.networkSecurityGroup": schema.Namespace + "networkSecurityGroups",
		"properties.routeTable":           schema.Namespace + "routeTables",
		"properties.natGateway":           schema.Namespace + "natGateways",
	} {
		if behaviour.At(c.Doc, path) == nil {
			continue
		}
		id, err := schema.Reference(c, path, fullType)
		if err != nil {
			return err
		}
		if doc, ok := c.Get(id); ok && behaviour.Text(doc, "location") != behaviour.Text(c.Parent, "location") {
			return behaviour.InvalidReference(c.ID, id)
		}
	}
	return nil
}

func showSubnet(c *behaviour.Call, view behaviour.Object) {
	schema.ShowReferences(view, "properties.ipConfigurations", addressUsers(c))
	schema.ShowReferences(view, "properties.applicationGatewayIPConfigurations", schema.ReferrersAt(c.World, c.ID, gatewaySubnet))
	if endpoints := schema.ReferrersAt(c.World, c.ID, endpointSubnet); len(endpoints) > 0 {
		behaviour.Set(view, "properties.privateEndpoints", behaviour.Refs(schema.ObjectIDs(endpoints)))
	}
}

// addressUsers returns the IP configurations and frontends with an address in a subnet.
func addressUsers(c *behaviour.Call) []behaviour.Referrer {
	var by []behaviour.Referrer
	for _, r := range schema.ReferrersAt(c.World, c.ID, nicSubnet, frontendSubnet) {
		if !ipam.UsesInterface(r.Resource) {
			by = append(by, r)
		}
	}
	return by
}
