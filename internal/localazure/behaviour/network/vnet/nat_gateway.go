package vnet

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/publicip"
	"kaz/internal/localazure/behaviour/network/schema"
)

const subnetNATGateway = "properties.subnets.properties.natGateway"

func natGateways() behaviour.Type {
	return schema.Tracked("natGateways", behaviour.Type{
		Style: schema.RetryAfter(10, 10),
		Own:   []string{"properties.subnets"},
		Fill: func(c *behaviour.Call) error {
			return schema.FirstError(
				func() error { return schema.Choose(c, "sku.name", "Standard", "Standard", "StandardV2") },
				func() error { return schema.Choose(c, "sku.tier", "Regional", "Regional") },
				func() error { return schema.Number(c, "properties.idleTimeoutInMinutes", 4, 4, 120) },
				func() error { return schema.Choose(c, reach(c.Doc), "Public", "Public", "Private") },
				func() error { return schema.CheckZones(c) },
			)
		},
		Check: checkNATGateway,
		InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
			return behaviour.Invalid("InUseNatGatewayCannotBeDeleted",
				"Nat Gateway %s cannot be deleted because it is in use by the following resources: %s.", c.ID,
				schema.JoinIDs(schema.ObjectIDs(by)))
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			if reach(view) == gatewayScope && c.Query.Get("api-version") >= "2025-07-01" {
				behaviour.Set(view, "properties.flowlogs", behaviour.Object{"logsVersions": behaviour.Object{}})
			}
			schema.ShowReferences(view, "properties.subnets", schema.ReferrersAt(c.World, c.ID, subnetNATGateway))
		},
	})
}

// gatewayScope is what StandardV2 has instead of a type.
const gatewayScope = "properties.scope"

// reach is the property that says whether a gateway is public. Its name depends on the SKU.
func reach(gateway behaviour.Object) string {
	if behaviour.Text(gateway, "sku.name") == "StandardV2" {
		return gatewayScope
	}
	return "properties.type"
}

// checkNATGateway checks that the gateway's addresses are Standard and not used elsewhere.
func checkNATGateway(c *behaviour.Call) error {
	var attached []publicip.Attachment
	for _, ref := range behaviour.Objects(c.Doc, publicip.NATGatewayAddresses) {
		address := azure.ID(behaviour.Text(ref, "id"))
		attached = append(attached, publicip.Attachment{Object: c.ID, Address: address})
		doc, ok := c.Get(address)
		if !ok {
			return behaviour.Refusal(404, "NotFound", "Resource %s not found.", address)
		}
		if !schema.IsStandard(doc) {
			return behaviour.Invalid("NatGatewayPublicIpAddressSkuNotSupported",
				"Nat Gateway %s cannot use public IP address %s: its sku is %s and must be Standard.", c.ID, address,
				behaviour.Text(doc, "sku.name"))
		}
	}
	return publicip.Attach(c, attached)
}
