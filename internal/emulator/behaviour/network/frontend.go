package network

import (
	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

func frontends() behaviour.Type {
	return inside("loadBalancers/frontendIPConfigurations", frontendsPath, behaviour.Type{
		ReadOnly: true,
		Fill:     fillFrontend,
		InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
			return behaviour.Invalid("CannotDeleteLoadBalancerWithPrivateLinkService", "Cannot delete load balancer %s or its frontend IP configuration %s with private link service %s attached to it.", c.ID.Parent(), c.ID.Name(), by[0].Resource)
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
		return behaviour.Invalid("FrontendIPConfigHasBothSubnetAndPublicIP", "Frontend IP Configuration %s must not reference both a Subnet and a Public IP Address.", c.ID)
	case !public && !internal && behaviour.At(c.Doc, "properties.gatewayLoadBalancer") == nil:
		return behaviour.Invalid("FrontendIPConfigHasNoSubnetOrPublicIP", "Frontend IP Configuration %s must reference either a Subnet or a Public IP Address.", c.ID)
	}
	for path, fullType := range map[string]string{
		subnet: namespace + "virtualNetworks/subnets", address: namespace + "publicIPAddresses", prefix: namespace + "publicIPPrefixes",
	} {
		if behaviour.At(c.Doc, path) == nil {
			continue
		}
		if _, err := reference(c, path, fullType); err != nil {
			return err
		}
	}
	if err := choose(c, "properties.privateIPAllocationMethod", "Dynamic", "Dynamic", "Static"); err != nil {
		return err
	}
	if !internal {
		behaviour.Remove(c.Doc, "properties.privateIPAddress")
		behaviour.Remove(c.Doc, "properties.privateIPAddressVersion")
		return nil
	}
	return choose(c, "properties.privateIPAddressVersion", IPv4, IPv4, IPv6)
}

// showFrontend drops NAT rules that were deleted one by one since the load
// balancer was written.
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

// checkFrontends checks addresses, SKUs, zones and families, and gives internal
// frontends their addresses.
func (b *balancer) checkFrontends() error {
	var holders []holder
	var attached []attachment
	err := b.each(frontendsPath, func(id azure.ID, part behaviour.Object) error {
		if err := b.checkFrontendZones(id, part); err != nil {
			return err
		}
		if behaviour.At(part, "properties.subnet") != nil {
			old := behaviour.Named(b.Old, frontendsPath, behaviour.Text(part, "name"))
			holders = append(holders, holder{id: id, now: behaviour.Sub(part, "properties"), was: behaviour.Sub(old, "properties")})
		}
		if address := behaviour.RefID(part, "properties.publicIPAddress"); address != "" {
			attached = append(attached, attachment{id, address})
			return b.checkFrontendSKU(id, address)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := attachPublicIPs(b.Call, attached); err != nil {
		return err
	}
	addresses := privateAddresses{call: b.Call}
	if err := addresses.give(holders); err != nil {
		return err
	}
	return b.checkFamilies()
}

func (b *balancer) checkFrontendZones(id azure.ID, part behaviour.Object) error {
	if behaviour.At(part, "zones") == nil {
		return nil
	}
	call := *b.Call
	call.ID, call.Doc, call.Parent = id, part, b.Doc
	if err := zones(&call); err != nil {
		return err
	}
	address := behaviour.RefID(part, "properties.publicIPAddress")
	switch n := len(behaviour.Texts(part, "zones")); {
	case n > 0 && !b.standard():
		return behaviour.Invalid("ZonesNotSupportedForBasicSkuLoadBalancer", "Frontend IP Configuration %s must not have zones: the load balancer has sku Basic.", id)
	case n > 0 && address != "":
		return behaviour.Invalid("LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress", "Frontend IP Configuration %s has %d zones and references public IP address %s. Only one that references a subnet can have zones.", id, n, address)
	}
	return nil
}

func (b *balancer) checkFrontendSKU(id, address azure.ID) error {
	doc, ok := b.Get(address)
	if !ok {
		return behaviour.InvalidReference(id, address)
	}
	if standard(doc) != b.standard() {
		return behaviour.Invalid("DifferentSkuLoadBalancersAndPublicIPAddressNotAllowed", "Different sku load balancers and public Ip address are not allowed. Public Ip address %s sku is %s, load balancer %s sku is %s.",
			address, behaviour.Text(doc, "sku.name"), b.ID, behaviour.Text(b.Doc, "sku.name"))
	}
	return nil
}

// checkFamilies: IPv6 frontends need one with IPv4 beside them.
func (b *balancer) checkFamilies() error {
	var v6 azure.ID
	v4 := false
	_ = b.each(frontendsPath, func(id azure.ID, part behaviour.Object) error { // it does not fail
		if b.familyOf(part) == IPv6 {
			v6 = id
		} else {
			v4 = true
		}
		return nil
	})
	if v6 != "" && !v4 {
		return behaviour.Invalid("AtleastOneIpV4RequiredForIpV6LbFrontendIpConfiguration", "Load balancer %s has the IPv6 frontend IP configuration %s. It must have at least one frontend IP configuration with IPv4.", b.ID, v6)
	}
	return nil
}

// familyOf is the address family of a frontend.
func (b *balancer) familyOf(part behaviour.Object) string {
	if v := behaviour.Text(part, "properties.privateIPAddressVersion"); v != "" {
		return v
	}
	for _, path := range []string{"properties.publicIPAddress", "properties.publicIPPrefix"} {
		if id := behaviour.RefID(part, path); id != "" {
			doc, _ := b.Get(id)
			return behaviour.Text(doc, "properties.publicIPAddressVersion")
		}
	}
	return IPv4
}

// internal reports whether a load balancer's frontends are in a subnet.
func internal(doc behaviour.Object) bool {
	for _, part := range behaviour.Objects(doc, frontendsPath) {
		if behaviour.At(part, "properties.subnet") != nil {
			return true
		}
	}
	return false
}
