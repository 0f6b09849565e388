package contract

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

func TestApplicationGatewayLives(t *testing.T) {
	lives(t, []lifecase{{"application gateway", applicationGateways().run}})
}

// gatewayPart refers to a part of an application gateway.
func gatewayPart(gateway, list, name string) *armnetwork.SubResource {
	return &armnetwork.SubResource{ID: new(string(networkID("applicationGateways", gateway).Child(list, name)))}
}

// applicationGateway is one with a private frontend, a rule for all requests, and one for connections of TCP.
func applicationGateway(name string) armnetwork.ApplicationGateway {
	subnet := &armnetwork.SubResource{ID: new(string(networkID("virtualNetworks", "vnet").Child("subnets", "gateways")))}
	return armnetwork.ApplicationGateway{Location: new(region), Properties: &armnetwork.ApplicationGatewayPropertiesFormat{
		SKU: &armnetwork.ApplicationGatewaySKU{Name: new(armnetwork.ApplicationGatewaySKUNameStandardV2),
			Tier: new(armnetwork.ApplicationGatewayTierStandardV2), Capacity: new(int32(2))},
		GatewayIPConfigurations: []*armnetwork.ApplicationGatewayIPConfiguration{{Name: new("ip"),
			Properties: &armnetwork.ApplicationGatewayIPConfigurationPropertiesFormat{Subnet: subnet}}},
		FrontendIPConfigurations: []*armnetwork.ApplicationGatewayFrontendIPConfiguration{{Name: new("front"),
			Properties: &armnetwork.ApplicationGatewayFrontendIPConfigurationPropertiesFormat{Subnet: subnet}}},
		FrontendPorts: []*armnetwork.ApplicationGatewayFrontendPort{
			{Name: new("http"), Properties: &armnetwork.ApplicationGatewayFrontendPortPropertiesFormat{Port: new(int32(80))}},
			{Name: new("postgres"), Properties: &armnetwork.ApplicationGatewayFrontendPortPropertiesFormat{Port: new(int32(5432))}},
		},
		BackendAddressPools: []*armnetwork.ApplicationGatewayBackendAddressPool{{Name: new("pool"),
			Properties: &armnetwork.ApplicationGatewayBackendAddressPoolPropertiesFormat{
				BackendAddresses: []*armnetwork.ApplicationGatewayBackendAddress{{IPAddress: new("10.0.1.4")}}}}},
		BackendHTTPSettingsCollection: []*armnetwork.ApplicationGatewayBackendHTTPSettings{{Name: new("set"),
			Properties: &armnetwork.ApplicationGatewayBackendHTTPSettingsPropertiesFormat{Port: new(int32(8080)),
				Protocol: new(armnetwork.ApplicationGatewayProtocolHTTP)}}},
		HTTPListeners: []*armnetwork.ApplicationGatewayHTTPListener{{Name: new("listener"),
			Properties: &armnetwork.ApplicationGatewayHTTPListenerPropertiesFormat{
				Protocol:                new(armnetwork.ApplicationGatewayProtocolHTTP),
				FrontendIPConfiguration: gatewayPart(name, "frontendIPConfigurations", "front"),
				FrontendPort:            gatewayPart(name, "frontendPorts", "http")}}},
		RequestRoutingRules: []*armnetwork.ApplicationGatewayRequestRoutingRule{{Name: new("rule"),
			Properties: &armnetwork.ApplicationGatewayRequestRoutingRulePropertiesFormat{
				RuleType: new(armnetwork.ApplicationGatewayRequestRoutingRuleTypeBasic), Priority: new(int32(10)),
				HTTPListener:        gatewayPart(name, "httpListeners", "listener"),
				BackendAddressPool:  gatewayPart(name, "backendAddressPools", "pool"),
				BackendHTTPSettings: gatewayPart(name, "backendHttpSettingsCollection", "set")}}},
		Listeners: []*armnetwork.ApplicationGatewayListener{{Name: new("stream"),
			Properties: &armnetwork.ApplicationGatewayListenerPropertiesFormat{
				Protocol:                new(armnetwork.ApplicationGatewayProtocolTCP),
				FrontendIPConfiguration: gatewayPart(name, "frontendIPConfigurations", "front"),
				FrontendPort:            gatewayPart(name, "frontendPorts", "postgres")}}},
		BackendSettingsCollection: []*armnetwork.ApplicationGatewayBackendSettings{{Name: new("stream"),
			Properties: &armnetwork.ApplicationGatewayBackendSettingsPropertiesFormat{Port: new(int32(5432)), Timeout: new(int32(60)),
				Protocol: new(armnetwork.ApplicationGatewayProtocolTCP)}}},
		RoutingRules: []*armnetwork.ApplicationGatewayRoutingRule{{Name: new("stream"),
			Properties: &armnetwork.ApplicationGatewayRoutingRulePropertiesFormat{
				RuleType: new(armnetwork.ApplicationGatewayRequestRoutingRuleTypeBasic), Priority: new(int32(20)),
				Listener:           gatewayPart(name, "listeners", "stream"),
				BackendAddressPool: gatewayPart(name, "backendAddressPools", "pool"),
				BackendSettings:    gatewayPart(name, "backendSettingsCollection", "stream")}}},
	}}
}

func applicationGateways() life[armnetwork.ApplicationGateway] {
	return life[armnetwork.ApplicationGateway]{
		given: func(a *local) {
			network := armnetwork.VirtualNetwork{Location: new(region), Properties: &armnetwork.VirtualNetworkPropertiesFormat{
				AddressSpace: &armnetwork.AddressSpace{AddressPrefixes: []*string{new("10.0.0.0/16")}},
				Subnets: []*armnetwork.Subnet{{Name: new("gateways"),
					Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: new("10.0.0.0/24")}}}}}
			_, err := ended(a.network.NewVirtualNetworksClient().BeginCreateOrUpdate(a.Context(), group, "vnet", network, nil))
			a.must(err)
		},
		want: applicationGateway,
		put: func(a *local, name string, r armnetwork.ApplicationGateway) (armnetwork.ApplicationGateway, error) {
			got, err := ended(a.network.NewApplicationGatewaysClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.ApplicationGateway, err
		},
		get: func(a *local, name string) (armnetwork.ApplicationGateway, error) {
			got, err := a.network.NewApplicationGatewaysClient().Get(a.Context(), group, name, nil)
			return got.ApplicationGateway, err
		},
		list: func(a *local) ([]*armnetwork.ApplicationGateway, error) {
			return every(a.network.NewApplicationGatewaysClient().NewListPager(group, nil),
				func(p armnetwork.ApplicationGatewaysClientListResponse) []*armnetwork.ApplicationGateway {
					return p.Value
				})
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewApplicationGatewaysClient().BeginDelete(a.Context(), group, name, nil))
		},
		id:     func(r *armnetwork.ApplicationGateway) *string { return r.ID },
		change: func(r *armnetwork.ApplicationGateway) { r.Properties.EnableHTTP2 = new(true) },
		changed: func(r *armnetwork.ApplicationGateway) bool {
			return *r.Properties.EnableHTTP2 && *r.Properties.OperationalState == armnetwork.ApplicationGatewayOperationalStateRunning &&
				*r.Properties.FrontendIPConfigurations[0].Properties.PrivateIPAddress != ""
		},
	}
}
