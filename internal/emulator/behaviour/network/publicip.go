package network

import (
	"fmt"
	"strings"

	"kaz/internal/emulator/behaviour"
)

func publicIPAddresses() behaviour.Type {
	return behaviour.Type{
		Name:  "Microsoft.Network/publicIPAddresses",
		Style: waiting(1, 2),
		Where: behaviour.Located,
		Own:   []string{"properties.resourceGuid", "properties.ipAddress", "properties.ipConfiguration"},
		Fill:  fillPublicIP,
		Settle: func(c *behaviour.Call) error {
			if behaviour.Text(c.Doc, "properties.publicIPAllocationMethod") == "Static" {
				behaviour.Default(c.Doc, "properties.ipAddress", newAddress(c))
			}
			return nil
		},
		InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
			return behaviour.Invalid("PublicIPAddressCannotBeDeleted", "Public IP address %s can not be deleted since it is still allocated to resource %s. In order to delete the public IP, disassociate/detach the Public IP address from the resource.  To learn how to do this, see aka.ms/deletepublicip.", c.ID, by[0].Object)
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			if by := c.Referrers(c.ID); len(by) > 0 {
				behaviour.Set(view, "properties.ipConfiguration", behaviour.Ref(by[0].Object))
			}
		},
	}
}

func fillPublicIP(c *behaviour.Call) error {
	guid(c)
	behaviour.Default(c.Doc, "sku.name", "Basic")
	behaviour.Default(c.Doc, "sku.tier", "Regional")
	behaviour.Default(c.Doc, "properties.publicIPAddressVersion", "IPv4")
	behaviour.Default(c.Doc, "properties.publicIPAllocationMethod", "Dynamic")
	behaviour.Default(c.Doc, "properties.idleTimeoutInMinutes", 4)
	behaviour.Default(c.Doc, "properties.ipTags", []any{})
	if label := behaviour.Text(c.Doc, "properties.dnsSettings.domainNameLabel"); label != "" {
		behaviour.Set(c.Doc, "properties.dnsSettings.fqdn", strings.ToLower(label)+"."+c.Location()+".cloudapp.azure.com")
	}
	if !strings.EqualFold(behaviour.Text(c.Doc, "sku.name"), "Standard") {
		return nil
	}
	if behaviour.Text(c.Doc, "properties.publicIPAllocationMethod") != "Static" {
		return behaviour.Invalid("StandardSkuPublicIPAddressesMustBeStatic", "Standard sku publicIp %s must have AllocationMethod set to Static.", c.ID)
	}
	behaviour.Default(c.Doc, "properties.ddosSettings", behaviour.Object{"protectionMode": "VirtualNetworkInherited"})
	return nil
}

// newAddress draws a public address that nobody has.
func newAddress(c *behaviour.Call) string {
	used := map[string]bool{}
	scope := c.ID[:strings.Index(strings.ToLower(string(c.ID)), "/resourcegroups/")]
	for _, doc := range c.List(scope, "Microsoft.Network/publicIPAddresses") {
		used[behaviour.Text(doc, "properties.ipAddress")] = true
	}
	for {
		address := fmt.Sprintf("20.%d.%d.%d", 40+c.Intn(80), c.Intn(256), 1+c.Intn(254))
		if !used[address] {
			return address
		}
	}
}
