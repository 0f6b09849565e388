package site

import (
	"context"
	"fmt"
	"net/netip"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
)

// GatewayName is the name of the first application gateway of a new cluster that has one.
const GatewayName = "kaz-gateway"

// MaxGateways is the greatest number of application gateways. Their subnet has addresses for the instances of more.
const MaxGateways = 50

// gatewayRange is the range of the gateways' subnet, in the half of the network that the nodes leave free.
func gatewayRange() netip.Prefix { return netip.MustParsePrefix("10.241.0.0/24") }

// GatewayIDs returns the ids of the application gateways.
func (s Site) GatewayIDs() []azure.ID {
	var all []azure.ID
	for _, name := range s.gatewayNames() {
		all = append(all, s.Network("applicationGateways", name))
	}
	return all
}

// gatewayNames returns the names of the application gateways. They keep their names when there are more.
func (s Site) gatewayNames() []string {
	if s.Gateway == "" {
		return nil
	}
	names := []string{s.Gateway}
	for i := 2; i <= s.Gateways; i++ {
		names = append(names, fmt.Sprintf("%s-%d", s.Gateway, i))
	}
	return names
}

// createGateways creates the missing application gateways, and the subnet that they share. They are slow and independent of each other.
func (s Site) createGateways(ctx context.Context, c client, created created) error {
	names := s.gatewayNames()
	if len(names) == 0 {
		return nil
	}
	if _, err := s.gatewaySubnet().create(ctx, c, created); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		group.Go(func() error {
			for _, r := range s.gatewayResources(name) {
				if _, err := r.create(ctx, c, created); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// gatewaySubnet returns the document of the subnet of the application gateways. It has the route table of the nodes, so that the
// gateways reach pods.
func (s Site) gatewaySubnet() resource {
	return resource{s.Network("virtualNetworks", s.VNet).Child("subnets", "gateway"), object{"properties": object{
		"addressPrefix": gatewayRange(), "routeTable": object{"id": s.Network("routeTables", s.RouteTable)},
	}}}
}

// gatewayResources returns the documents of an application gateway, each one behind the documents that it refers to. Azure refuses
// a gateway without a rule, so it has one with an empty pool.
func (s Site) gatewayResources(name string) []resource {
	gateway, address := s.Network("applicationGateways", name), s.Network("publicIPAddresses", name)
	ref := func(id azure.ID) object { return object{"id": id} }
	child := func(kind string) object { return ref(gateway.Child(kind, "default")) }
	named := func(properties object) []object { return []object{{"name": "default", "properties": properties}} }
	return []resource{
		{address, object{
			"location": s.Location, "sku": object{"name": "Standard"}, "zones": []string{"1", "2", "3"},
			"properties": object{"publicIPAllocationMethod": "Static"},
		}},
		{gateway, object{
			"location": s.Location, "zones": []string{"1", "2", "3"},
			"properties": object{
				"sku":                      object{"name": "Standard_v2", "tier": "Standard_v2"},
				"autoscaleConfiguration":   object{"minCapacity": 0, "maxCapacity": 2},
				"enableHttp2":              true,
				"gatewayIPConfigurations":  named(object{"subnet": ref(s.gatewaySubnet().id)}),
				"frontendIPConfigurations": named(object{"publicIPAddress": ref(address)}),
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
