package network

import (
	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

const subnetNATGateway = "properties.subnets.properties.natGateway"

func natGateways() behaviour.Type {
	return tracked("natGateways", behaviour.Type{
		Style: waiting(10, 10),
		Own:   []string{"properties.subnets"},
		Fill: func(c *behaviour.Call) error {
			return first(
				func() error { return choose(c, "sku.name", "Standard", "Standard", "StandardV2") },
				func() error { return choose(c, "sku.tier", "Regional", "Regional") },
				func() error { return number(c, "properties.idleTimeoutInMinutes", 4, 4, 120) },
				func() error { return choose(c, "properties.type", "Public", "Public", "Private") },
				func() error { return zones(c) },
			)
		},
		Check: checkNATGateway,
		InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
			return behaviour.Invalid("InUseNatGatewayCannotBeDeleted", "Nat Gateway %s cannot be deleted because it is in use by the following resources: %s.", c.ID, joined(objects(by)))
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			show(view, "properties.subnets", users(c.World, c.ID, subnetNATGateway))
		},
	})
}

// checkNATGateway checks the gateway's addresses: Standard ones that nobody else
// has.
func checkNATGateway(c *behaviour.Call) error {
	var attached []attachment
	for _, ref := range behaviour.Objects(c.Doc, gatewayPublicIPs) {
		address := azure.ID(behaviour.Text(ref, "id"))
		attached = append(attached, attachment{c.ID, address})
		doc, ok := c.Get(address)
		if !ok {
			return behaviour.InvalidReference(c.ID, address)
		}
		if !standard(doc) {
			return behaviour.Invalid("NatGatewayPublicIpAddressSkuNotSupported", "Nat Gateway %s cannot use public IP address %s: its sku is %s and must be Standard.", c.ID, address, behaviour.Text(doc, "sku.name"))
		}
	}
	return attachPublicIPs(c, attached)
}
