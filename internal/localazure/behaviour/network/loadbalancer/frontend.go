package loadbalancer

import (
	"cmp"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/publicip"
	"kaz/internal/localazure/behaviour/network/schema"
)

func frontends() behaviour.Type {
	return schema.Inside("loadBalancers/frontendIPConfigurations", FrontendsPath, behaviour.Type{
		ReadOnly: true,
		Fill:     fillFrontend,
		InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
			return behaviour.Invalid("CannotDeleteLoadBalancerWithPrivateLinkService",
				"Cannot delete load balancer %s or its frontend IP configuration %s with private link service %s attached to it.",
				c.ID.Parent(), c.ID.Name(), by[0].Resource)
		},
		Show: showFrontend,
	})
}

func fillFrontend(c *behaviour.Call) error {
	subnet, address, prefix := "properties.subnet", "properties.publicIPAddress", "properties.publicIPPrefix"
	public := behaviour.At(c.Doc, address) != nil || behaviour.At(c.Doc, prefix) != nil
	internal := behaviour.At(c.Doc, subnet) != nil
	switch {
	case public && internal:
		return behaviour.Invalid("FrontendIPConfigHasBothSubnetAndPublicIP",
			"Frontend IP Configuration %s must not reference both a Subnet and a Public IP Address.", c.ID)
	case !public && !internal && behaviour.At(c.Doc, "properties.gatewayLoadBalancer") == nil:
		return behaviour.Invalid("FrontendIPConfigHasNoSubnetOrPublicIP",
			"Frontend IP Configuration %s must reference either a Subnet or a Public IP Address.", c.ID)
	}
	for path, fullType := range map[string]string{
		subnet: schema.Namespace + "virtualNetworks/subnets", address: schema.Namespace + "publicIPAddresses", prefix: schema.Namespace +
			"publicIPPrefixes",
	} {
		if behaviour.At(c.Doc, path) == nil {
			continue
		}
		if _, err := schema.Reference(c, path, fullType); err != nil {
			return err
		}
	}
	if err := schema.Choose(c, "properties.privateIPAllocationMethod", "Dynamic", "Dynamic", "Static"); err != nil {
		return err
	}
	if !internal {
		behaviour.Remove(c.Doc, "properties.privateIPAddress")
		if behaviour.At(c.Doc, "properties.privateIPAddressVersion") == nil {
			return nil
		}
	}
	return schema.Choose(c, "properties.privateIPAddressVersion", ipam.IPv4, ipam.IPv4, ipam.IPv6)
}

// showFrontend removes NAT rules that were deleted one by one since the last write of the load balancer.
func showFrontend(c *behaviour.Call, view behaviour.Object) {
	refs := behaviour.Objects(view, "properties.inboundNatRules")
	if len(refs) == 0 {
		return
	}
	kept := []any{}
	for _, ref := range refs {
		if _, ok := c.Get(azure.ID(behaviour.Text(ref, "id"))); ok {
			kept = append(kept, ref)
		}
	}
	behaviour.Set(view, "properties.inboundNatRules", kept)
	if len(kept) == 0 {
		behaviour.Remove(view, "properties.inboundNatRules")
	}
}

// checkFrontends checks addresses, SKUs, zones and families, and allocates the addresses of internal frontends.
func checkFrontends(b *balancer) error {
	var wanted []ipam.Configuration
	var attached []publicip.Attachment
	for id, part := range b.all(FrontendsPath) {
		if err := checkFrontendZones(b, id, part); err != nil {
			return err
		}
		if behaviour.At(part, "properties.subnet") != nil {
			old := behaviour.Named(b.Old, FrontendsPath, behaviour.Text(part, "name"))
			wanted = append(wanted,
				ipam.Configuration{ID: id, Now: behaviour.Sub(part, "properties"), Was: behaviour.Sub(old, "properties")})
		}
		if address := behaviour.RefID(part, "properties.publicIPAddress"); address != "" {
			attached = append(attached, publicip.Attachment{Object: id, Address: address})
			if err := checkFrontendSKU(b, id, address); err != nil {
				return err
			}
		}
	}
	if err := publicip.Attach(b.Call, attached); err != nil {
		return err
	}
	if err := ipam.AssignPrivate(b.Call, wanted); err != nil {
		return err
	}
	return checkFamilies(b)
}

func checkFrontendZones(b *balancer, id azure.ID, part behaviour.Object) error {
	if behaviour.At(part, "zones") == nil {
		return nil
	}
	call := *b.Call
	call.ID, call.Doc, call.Parent = id, part, b.Doc
	if err := schema.CheckZones(&call); err != nil {
		return err
	}
	address := behaviour.RefID(part, "properties.publicIPAddress")
	switch n := len(behaviour.Texts(part, "zones")); {
	case n > 0 && !b.standard():
		return behaviour.Invalid("ZonesNotSupportedForBasicSkuLoadBalancer",
			"Frontend IP Configuration %s must not have zones: the load balancer has sku Basic.", id)
	case n > 0 && address != "":
		return behaviour.Invalid("LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress",
			"Frontend IP Configuration %s has %d zones and references public IP address %s. Only one that references a subnet can "+
				"have zones.", id, n, address)
	}
	return nil
}

func checkFrontendSKU(b *balancer, id, address azure.ID) error {
	doc, ok := b.Get(address)
	if !ok {
		return behaviour.InvalidReference(id, address)
	}
	if schema.IsStandard(doc) != b.standard() {
		return behaviour.Invalid("DifferentSkuLoadBalancersAndPublicIPAddressNotAllowed",
			"Different sku load balancers and public Ip address are not allowed. Public Ip address %s sku is %s, load balancer "+
				"%s sku is %s.",
			address, behaviour.Text(doc, "sku.name"), b.ID, behaviour.Text(b.Doc, "sku.name"))
	}
	return nil
}

// checkFamilies refuses IPv6 frontends without an IPv4 frontend.
func checkFamilies(b *balancer) error {
	var v6 azure.ID
	v4 := false
	for id, part := range b.all(FrontendsPath) {
		if familyOf(b, part) == ipam.IPv6 {
			v6 = id
		} else {
			v4 = true
		}
	}
	if v6 != "" && !v4 {
		return behaviour.Invalid("AtleastOneIpV4RequiredForIpV6LbFrontendIpConfiguration",
			"Load balancer %s has the IPv6 frontend IP configuration %s. It must have at least one frontend IP configuration with IPv4.",
			b.ID, v6)
	}
	return nil
}

// familyOf returns the address family of a frontend.
func familyOf(b *balancer, part behaviour.Object) string {
	for _, path := range []string{"properties.publicIPAddress", "properties.publicIPPrefix"} {
		if id := behaviour.RefID(part, path); id != "" {
			doc, _ := b.Get(id)
			return behaviour.Text(doc, "properties.publicIPAddressVersion")
		}
	}
	return cmp.Or(behaviour.Text(part, "properties.privateIPAddressVersion"), ipam.IPv4)
}

// internal reports whether a frontend of a load balancer is in a subnet.
func internal(doc behaviour.Object) bool {
	for _, part := range behaviour.Objects(doc, FrontendsPath) {
		if behaviour.At(part, "properties.subnet") != nil {
			return true
		}
	}
	return false
}
