package publicip

import (
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/schema"
)

// The paths at which resources refer to a public IP prefix.
const (
	fromPrefix      = "properties.publicIPPrefix"
	gatewayPrefixes = "properties.publicIpPrefixes"
	frontendPrefix  = "properties.frontendIPConfigurations.properties.publicIPPrefix"
)

func publicIPPrefixes() behaviour.Type {
	return schema.Tracked("publicIPPrefixes", behaviour.Type{
		Style: schema.RetryAfter(3, 10),
		Own: []string{"properties.ipPrefix", "properties.publicIPAddresses", "properties.natGateway",
			"properties.loadBalancerFrontendIpConfiguration"},
		Fill: func(c *behaviour.Call) error {
			return schema.FirstError(
				func() error { return schema.Choose(c, "sku.name", "Standard", "Standard", "StandardV2") },
				func() error { return schema.Choose(c, "sku.tier", "Regional", "Regional", "Global") },
				func() error {
					return schema.Choose(c, "properties.publicIPAddressVersion", ipam.IPv4, ipam.IPv4, ipam.IPv6)
				},
				func() error { return checkPrefixLength(c) },
				func() error { return schema.List(c, "properties.ipTags") },
				func() error { return schema.CheckZones(c) },
			)
		},
		Settle: func(c *behaviour.Call) error {
			if behaviour.Text(c.Doc, "properties.ipPrefix") != "" {
				return nil
			}
			bits, _ := behaviour.Int(c.Doc, "properties.prefixLength")
			p, err := ipam.AllocatePrefix(c.World, behaviour.Text(c.Doc, "properties.publicIPAddressVersion"), bits)
			if err != nil {
				return err
			}
			behaviour.Set(c.Doc, "properties.ipPrefix", p.String())
			return nil
		},
		InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
			return behaviour.Invalid("InUsePublicIpPrefixCannotBeDeleted",
				"Public IP prefix %s cannot be deleted because it is in use by the following resources: %s.", c.ID,
				schema.JoinIDs(schema.ObjectIDs(by)))
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			schema.ShowReferences(view, "properties.publicIPAddresses", schema.ReferrersAt(c.World, c.ID, fromPrefix))
			if by := schema.ReferrersAt(c.World, c.ID, gatewayPrefixes); len(by) > 0 {
				behaviour.Set(view, "properties.natGateway", behaviour.Ref(by[0].Resource))
			}
			if by := schema.ReferrersAt(c.World, c.ID, frontendPrefix); len(by) > 0 {
				behaviour.Set(view, "properties.loadBalancerFrontendIpConfiguration", behaviour.Ref(by[0].Object))
			}
		},
	})
}

func checkPrefixLength(c *behaviour.Call) error {
	if behaviour.At(c.Doc, "properties.prefixLength") == nil {
		return schema.Missing(c, "properties.prefixLength")
	}
	least, most := 21, 31
	if behaviour.Text(c.Doc, "properties.publicIPAddressVersion") == ipam.IPv6 {
		least, most = 109, 127
	}
	if err := schema.Number(c, "properties.prefixLength", -1, least, most); err != nil {
		return err
	}
	for _, path := range []string{"properties.prefixLength", "properties.publicIPAddressVersion"} {
		if c.Changed(path) {
			return behaviour.Invalid("PropertyChangeNotAllowed", "Changing property '%s' of public IP prefix %s is not allowed.",
				path, c.ID)
		}
	}
	return nil
}
