package site

import (
	"net/netip"

	"kaz/internal/azure"
)

// GatewayName is the name of the application gateway of a new cluster that has one.
const GatewayName = "kaz-gateway"

// gatewayRange is the range of the gateway's subnet, in the half of the network that the nodes leave free.
func gatewayRange() netip.Prefix { return netip.MustParsePrefix("10.241.0.0/24") }

// GatewayID returns the id of the application gateway.
func (s Site) GatewayID() azure.ID { return s.Network("applicationGateways", s.Gateway) }

// GatewayAddressID returns the id of the public address of the application gateway.
func (s Site) GatewayAddressID() azure.ID { return s.Network("publicIPAddresses", s.Gateway) }

// gatewayResources returns the documents of the application gateway, each one behind the documents that it refers to. Its subnet
// has the route table of the nodes, so that the gateway reaches pods. Azure refuses a gateway without a rule, so it has one with an
// empty pool.
func (s Site) gatewayResources() []resource {
	if s.Gateway == "" {
		return nil
	}
	gateway := s.GatewayID()
	subnet := s.Network("virtualNetworks", s.VNet).Child("subnets", "gateway")
	ref := func(id azure.ID) object { return object{"id": id} }
	child := func(kind string) object { return ref(gateway.Child(kind, "default")) }
	named := func(properties object) []object { return []object{{"name": "default", "properties": properties}} }
	return []resource{
		{subnet, object{"properties": object{
			"addressPrefix": gatewayRange(), "routeTable": ref(s.Network("routeTables", s.RouteTable)),
		}}},
		{s.GatewayAddressID(), object{
			"location": s.Location, "sku": object{"name": "Standard"}, "zones": []string{"1", "2", "3"},
			"properties": object{"publicIPAllocationMethod": "Static"},
		}},
		{gateway, object{
			"location": s.Location, "zones": []string{"1", "2", "3"},
			"properties": object{
				"sku":                      object{"name": "Standard_v2", "tier": "Standard_v2"},
				"autoscaleConfiguration":   object{"minCapacity": 0, "maxCapacity": 2},
				"enableHttp2":              true,
				"gatewayIPConfigurations":  named(object{"subnet": ref(subnet)}),
				"frontendIPConfigurations": named(object{"publicIPAddress": ref(s.GatewayAddressID())}),
				"frontendPorts":            named(object{"port": 80}),
				"backendAddressPools":      named(object{}),
				"backendHttpSettingsCollection": named(object{
					"port": 80, "protocol": "Http", "cookieBasedAffinity": "Disabled", "requestTimeout": 30,
				}),
				"httpListeners": named(object{
					"protocol": "Http", "frontendIPConfiguration": child("frontendIPConfigurations"),
					"frontendPort": child("frontendPorts"),
				}),
				"requestRoutingRules": named(object{
					"ruleType": "Basic", "priority": 20000, "httpListener": child("httpListeners"),
					"backendAddressPool": child("backendAddressPools"), "backendHttpSettings": child("backendHttpSettingsCollection"),
				}),
			},
		}},
	}
}
