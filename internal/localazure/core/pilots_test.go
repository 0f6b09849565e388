package core_test

import (
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// pilots are small types, one of each family, with which the core is tested. They
// have the names of real types but are as simple as can be.
func pilots() behaviour.Provider {
	return behaviour.Provider{Types: []behaviour.Type{
		{
			Name: "Microsoft.Network/routeTables", Style: behaviour.Network(), Where: behaviour.Located,
			Own:  []string{"properties.resourceGuid"},
			Fill: fillTable,
			InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
				return behaviour.Invalid("InUseRouteTableCannotBeDeleted", "%s is in use by %s", c.ID, by[0].Object)
			},
			Show: func(c *behaviour.Call, view behaviour.Object) {
				var users []azure.ID
				for _, r := range c.Referrers(c.ID) {
					users = append(users, r.Object)
				}
				if users != nil {
					behaviour.Set(view, "properties.subnets", behaviour.Refs(users))
				}
			},
		},
		{
			Name: "Microsoft.Network/routeTables/routes", Style: behaviour.Network(), Inline: "properties.routes",
			Fill: func(c *behaviour.Call) error {
				if behaviour.Text(c.Doc, "properties.addressPrefix") == "" {
					return behaviour.Invalid("InvalidRequestFormat", "%s needs an addressPrefix", c.ID)
				}
				behaviour.Default(c.Doc, "properties.hasBgpOverride", false)
				return nil
			},
		},
		{Name: "Microsoft.Network/virtualNetworks", Style: behaviour.Network(), Where: behaviour.Located},
		{
			Name: "Microsoft.Network/virtualNetworks/subnets", Style: behaviour.Network(), Inline: "properties.subnets",
			InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
				return behaviour.Invalid("InUseSubnetCannotBeDeleted", "Subnet %s is in use by %s", c.ID.Name(), by[0].Object)
			},
		},
		publicIPs(),
		machines(),
		{
			Name: "Microsoft.Compute/disks", Style: behaviour.Disk(), Where: behaviour.Located,
			Settle: func(c *behaviour.Call) error {
				behaviour.Default(c.Doc, "sku.name", "Standard_LRS")
				return nil
			},
		},
		{Name: "Microsoft.Storage/storageAccounts", Style: behaviour.Storage(), Where: behaviour.Located},
		{Name: "Microsoft.Storage/storageAccounts/shares", Style: ticking(), Page: 2},
		{Name: "Microsoft.Network/privateDnsZones", Style: behaviour.PrivateDNS(), Where: behaviour.Global},
		{
			Name: "Microsoft.Resources/resourceGroups", Style: behaviour.Group(), Where: behaviour.Located, Own: []string{"properties"},
			Fill: func(c *behaviour.Call) error {
				if strings.Contains(c.ID.Name(), " ") {
					e := behaviour.Invalid("InvalidResourceGroup", "%q has a blank", c.ID.Name())
					e.Gateway = true
					return e
				}
				return nil
			},
		},
		{Name: "Microsoft.Authorization/roleAssignments", Style: behaviour.Plain("Microsoft.Authorization")},
		{Name: "Microsoft.Authorization/roleDefinitions", Style: behaviour.Plain("Microsoft.Authorization")},
	}}
}

func fillTable(c *behaviour.Call) error {
	if behaviour.At(c.Doc, "properties.resourceGuid") == nil {
		behaviour.Set(c.Doc, "properties.resourceGuid", c.GUID())
	}
	behaviour.Default(c.Doc, "properties.routes", []any{})
	if behaviour.Bool(c.Doc, "properties.panic") {
		c.Put(c.ID, behaviour.Object{})
		panic("a mistake in a behaviour")
	}
	return nil
}

func publicIPs() behaviour.Type {
	return behaviour.Type{
		Name: "Microsoft.Network/publicIPAddresses", Style: behaviour.Network(), Where: behaviour.Located,
		Own: []string{"properties.ipAddress"},
		Settle: func(c *behaviour.Call) error {
			behaviour.Default(c.Doc, "properties.ipAddress", fmt.Sprintf("20.0.0.%d", c.Intn(250)))
			return nil
		},
	}
}

func machines() behaviour.Type {
	return behaviour.Type{
		Name: "Microsoft.Compute/virtualMachines", Style: behaviour.Compute(), Where: behaviour.Located,
		Settle: func(c *behaviour.Call) error {
			behaviour.Default(c.Doc, "properties.vmId", c.GUID())
			return nil
		},
		Actions: map[string]behaviour.Action{
			"powerOff": {Long: true, Settle: func(c *behaviour.Call) (any, error) {
				behaviour.Set(c.Doc, "properties.power", "stopped")
				return nil, nil
			}},
			"listKeys": {Do: func(*behaviour.Call) (any, error) { return behaviour.Object{"keys": []any{"k"}}, nil }},
		},
		Views: map[string]func(*behaviour.Call) (any, error){
			"instanceView": func(c *behaviour.Call) (any, error) {
				return behaviour.Object{"power": behaviour.At(c.Old, "properties.power")}, nil
			},
		},
	}
}

func ticking() behaviour.Style {
	s := behaviour.Plain("Microsoft.Storage")
	s.Etag, s.EtagHeader = behaviour.Ticks, behaviour.OnGetAndPut
	return s
}
