package vm

import (
	"cmp"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/network/ipam"
)

// MakeInterface creates a network interface from its description in a model, with the public addresses of the
// description.
func MakeInterface(c *behaviour.Call, config behaviour.Object, suffix string) (azure.ID, error) {
	id := schema.GroupOf(c.ID).Resource(schema.InterfaceType, behaviour.Text(config, "name")+"-"+suffix)
	var addresses []any
	for _, model := range behaviour.Objects(config, "properties.ipConfigurations") {
		props := behaviour.Object{"subnet": behaviour.Clone(behaviour.Sub(model, "properties.subnet"))}
		for _, field := range []string{"primary", "privateIPAddressVersion", "loadBalancerBackendAddressPools",
			"applicationGatewayBackendAddressPools", "applicationSecurityGroups"} {
			if v := behaviour.At(model, "properties."+field); v != nil {
				props[field] = behaviour.Clone(v)
			}
		}
		if public := behaviour.Sub(model, "properties.publicIPAddressConfiguration"); public != nil {
			made, err := makePublicIP(c, public, suffix)
			if err != nil {
				return "", err
			}
			props["publicIPAddress"] = behaviour.Ref(made)
		}
		addresses = append(addresses, behaviour.Object{"name": behaviour.Text(model, "name"), "properties": props})
	}
	body := behaviour.Object{"location": c.Location(), "properties": behaviour.Object{
		"ipConfigurations":            addresses,
		"enableAcceleratedNetworking": behaviour.Bool(config, "properties.enableAcceleratedNetworking"),
		"enableIPForwarding":          behaviour.Bool(config, "properties.enableIPForwarding"),
	}}
	for _, field := range []string{"networkSecurityGroup", "dnsSettings"} {
		if v := behaviour.At(config, "properties."+field); v != nil {
			behaviour.Set(body, "properties."+field, behaviour.Clone(v))
		}
	}
	return id, c.Apply(behaviour.Itself(), id, body)
}

func makePublicIP(c *behaviour.Call, config behaviour.Object, suffix string) (azure.ID, error) {
	id := schema.GroupOf(c.ID).Resource(schema.NetworkAddress, behaviour.Text(config, "name")+"-"+suffix)
	body := behaviour.Object{"location": c.Location(), "sku": behaviour.Object{"name": "Standard"}, "properties": behaviour.Object{
		"publicIPAllocationMethod": "Static",
		"publicIPAddressVersion":   cmp.Or(behaviour.Text(config, "properties.publicIPAddressVersion"), ipam.IPv4),
	}}
	return id, c.Apply(behaviour.Itself(), id, body)
}

// makeInterfaces creates the interfaces that a virtual machine describes instead of referring to them.
func makeInterfaces(c *behaviour.Call, configs []behaviour.Object) error {
	refs := []any{}
	for _, config := range configs {
		nic, err := MakeInterface(c, config, schema.Hex32(c)[:8])
		if err != nil {
			return err
		}
		refs = append(refs, behaviour.Object{"id": string(nic), "properties": behaviour.Object{
			"primary":      len(configs) == 1 || behaviour.Bool(config, "properties.primary"),
			"deleteOption": cmp.Or(behaviour.Text(config, "properties.deleteOption"), "Detach"),
		}})
	}
	behaviour.Remove(c.Doc, "properties.networkProfile.networkInterfaceConfigurations")
	behaviour.Set(c.Doc, "properties.networkProfile.networkInterfaces", refs)
	return nil
}
