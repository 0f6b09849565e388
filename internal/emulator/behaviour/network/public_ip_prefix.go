package network

import (
	"kaz/internal/emulator/behaviour"
)

// The places that take addresses from a public IP prefix.
const (
	fromPrefix      = "properties.publicIPPrefix"
	gatewayPrefixes = "properties.publicIpPrefixes"
	frontendPrefix  = "properties.frontendIPConfigurations.properties.publicIPPrefix"
)

func publicIPPrefixes() behaviour.Type {
	return tracked("publicIPPrefixes", behaviour.Type{
		Style: waiting(3, 10),
		Own: []string{"properties.ipPrefix", "properties.publicIPAddresses", "properties.natGateway",
			"properties.loadBalancerFrontendIpConfiguration"},
		Fill: func(c *behaviour.Call) error {
			return first(
				func() error { return choose(c, "sku.name", "Standard", "Standard", "StandardV2") },
				func() error { return choose(c, "sku.tier", "Regional", "Regional", "Global") },
				func() error { return choose(c, "properties.publicIPAddressVersion", IPv4, IPv4, IPv6) },
				func() error { return checkPrefixLength(c) },
				func() error { return list(c, "properties.ipTags") },
				func() error { return zones(c) },
			)
		},
		Settle: func(c *behaviour.Call) error {
			if behaviour.Text(c.Doc, "properties.ipPrefix") != "" {
				return nil
			}
			bits, _ := behaviour.Int(c.Doc, "properties.prefixLength")
			p, err := allocatePrefix(c.World, behaviour.Text(c.Doc, "properties.publicIPAddressVersion"), bits)
			if err != nil {
				return err
			}
			behaviour.Set(c.Doc, "properties.ipPrefix", p.String())
			return nil
		},
		InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
			return behaviour.Invalid("InUsePublicIpPrefixCannotBeDeleted", "Public IP prefix %s cannot be deleted because it is in use by the following resources: %s.", c.ID, joined(objects(by)))
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			show(view, "properties.publicIPAddresses", users(c.World, c.ID, fromPrefix))
			if by := users(c.World, c.ID, gatewayPrefixes); len(by) > 0 {
				behaviour.Set(view, "properties.natGateway", behaviour.Ref(by[0].Resource))
			}
			if by := users(c.World, c.ID, frontendPrefix); len(by) > 0 {
				behaviour.Set(view, "properties.loadBalancerFrontendIpConfiguration", behaviour.Ref(by[0].Object))
			}
		},
	})
}

func checkPrefixLength(c *behaviour.Call) error {
	if behaviour.At(c.Doc, "properties.prefixLength") == nil {
		return missing(c, "properties.prefixLength")
	}
	least, most := 21, 31
	if behaviour.Text(c.Doc, "properties.publicIPAddressVersion") == IPv6 {
		least, most = 109, 127
	}
	if err := number(c, "properties.prefixLength", -1, least, most); err != nil {
		return err
	}
	for _, path := range []string{"properties.prefixLength", "properties.publicIPAddressVersion"} {
		if c.Changed(path) {
			return behaviour.Invalid("PropertyChangeNotAllowed", "Changing property '%s' of public IP prefix %s is not allowed.", path, c.ID)
		}
	}
	return nil
}
