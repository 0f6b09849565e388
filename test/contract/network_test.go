package contract

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"kaz/internal/localazure/core"
)

// tags and their change, what the simplest types have to change.
func tags(value string) map[string]*string { return map[string]*string{"made-by": new(value)} }

func tagged(t map[string]*string, value string) bool {
	return t["made-by"] != nil && *t["made-by"] == value
}

func TestNetworkLives(t *testing.T) {
	lives(t, []lifecase{
		{"virtual network", virtualNetworks().run},
		{"subnet", subnets().run},
		{"security group", securityGroups().run},
		{"security rule", securityRules().run},
		{"route table", routeTables().run},
		{"route", routes().run},
		{"public address", publicAddresses().run},
		{"public prefix", publicPrefixes().run},
		{"network interface", networkInterfaces().run},
		{"NAT gateway", natGateways().run},
		{"load balancer", loadBalancers().run},
		{"pool of a load balancer", pools().run},
		{"inbound rule of a load balancer", inboundRules().run},
	})
}

func virtualNetwork(subnets ...string) armnetwork.VirtualNetwork {
	v := armnetwork.VirtualNetwork{Location: new(region), Properties: &armnetwork.VirtualNetworkPropertiesFormat{
		AddressSpace: &armnetwork.AddressSpace{AddressPrefixes: []*string{new("10.0.0.0/8")}},
	}}
	for i, name := range subnets {
		v.Properties.Subnets = append(v.Properties.Subnets,
			&armnetwork.Subnet{Name: new(name), Properties: &armnetwork.SubnetPropertiesFormat{
				AddressPrefix: new(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i + 1), 0, 0}), 16).String()),
			}})
	}
	return v
}

func virtualNetworks() life[armnetwork.VirtualNetwork] {
	return life[armnetwork.VirtualNetwork]{
		want: func(string) armnetwork.VirtualNetwork { return virtualNetwork("nodes") },
		put: func(a *local, name string, r armnetwork.VirtualNetwork) (armnetwork.VirtualNetwork, error) {
			got, err := ended(a.network.NewVirtualNetworksClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.VirtualNetwork, err
		},
		get: func(a *local, name string) (armnetwork.VirtualNetwork, error) {
			got, err := a.network.NewVirtualNetworksClient().Get(a.Context(), group, name, nil)
			return got.VirtualNetwork, err
		},
		list: func(a *local) ([]*armnetwork.VirtualNetwork, error) {
			return every(a.network.NewVirtualNetworksClient().NewListPager(group, nil),
				func(p armnetwork.VirtualNetworksClientListResponse) []*armnetwork.VirtualNetwork { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewVirtualNetworksClient().BeginDelete(a.Context(), group, name, nil))
		},
		id: func(r *armnetwork.VirtualNetwork) *string { return r.ID },
		change: func(r *armnetwork.VirtualNetwork) {
			r.Properties.Subnets = append(r.Properties.Subnets, &armnetwork.Subnet{Name: new("pods"),
				Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: new("10.200.0.0/16")}})
		},
		changed: func(r *armnetwork.VirtualNetwork) bool { return len(r.Properties.Subnets) == 2 },
	}
}

func subnets() life[armnetwork.Subnet] {
	return life[armnetwork.Subnet]{
		given: func(a *local) {
			_, err := virtualNetworks().put(a, "vnet", virtualNetwork())
			a.must(err)
			_, err = securityGroups().put(a, "nsg", securityGroups().want("nsg"))
			a.must(err)
		},
		want: func(name string) armnetwork.Subnet {
			prefix := map[string]string{"one": "10.1.0.0/16", "Two": "10.2.0.0/16"}[name]
			return armnetwork.Subnet{Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: new(prefix)}}
		},
		put: func(a *local, name string, r armnetwork.Subnet) (armnetwork.Subnet, error) {
			got, err := ended(a.network.NewSubnetsClient().BeginCreateOrUpdate(a.Context(), group, "vnet", name, r, nil))
			return got.Subnet, err
		},
		get: func(a *local, name string) (armnetwork.Subnet, error) {
			got, err := a.network.NewSubnetsClient().Get(a.Context(), group, "vnet", name, nil)
			return got.Subnet, err
		},
		list: func(a *local) ([]*armnetwork.Subnet, error) {
			return every(a.network.NewSubnetsClient().NewListPager(group, "vnet", nil),
				func(p armnetwork.SubnetsClientListResponse) []*armnetwork.Subnet { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewSubnetsClient().BeginDelete(a.Context(), group, "vnet", name, nil))
		},
		id: func(r *armnetwork.Subnet) *string { return r.ID },
		change: func(r *armnetwork.Subnet) {
			r.Properties.NetworkSecurityGroup = &armnetwork.SecurityGroup{ID: new(string(networkID("networkSecurityGroups", "nsg")))}
		},
		changed: func(r *armnetwork.Subnet) bool { return r.Properties.NetworkSecurityGroup != nil },
		absent:  "NotFound",
	}
}

func allow(name string, priority int32, port string) *armnetwork.SecurityRule {
	return &armnetwork.SecurityRule{Name: new(name), Properties: &armnetwork.SecurityRulePropertiesFormat{
		Priority: new(priority), Direction: new(armnetwork.SecurityRuleDirectionInbound), Access: new(armnetwork.SecurityRuleAccessAllow),
		Protocol: new(armnetwork.SecurityRuleProtocolTCP), SourceAddressPrefix: new("Internet"), SourcePortRange: new("*"),
		DestinationAddressPrefixes: []*string{new("203.0.113.4"), new("203.0.113.5")}, DestinationPortRanges: []*string{new(port)},
	}}
}

func securityGroups() life[armnetwork.SecurityGroup] {
	return life[armnetwork.SecurityGroup]{
		want: func(string) armnetwork.SecurityGroup {
			return armnetwork.SecurityGroup{Location: new(region), Properties: &armnetwork.SecurityGroupPropertiesFormat{
				SecurityRules: []*armnetwork.SecurityRule{allow("web", 500, "80")}}}
		},
		put: func(a *local, name string, r armnetwork.SecurityGroup) (armnetwork.SecurityGroup, error) {
			got, err := ended(a.network.NewSecurityGroupsClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.SecurityGroup, err
		},
		get: func(a *local, name string) (armnetwork.SecurityGroup, error) {
			got, err := a.network.NewSecurityGroupsClient().Get(a.Context(), group, name, nil)
			return got.SecurityGroup, err
		},
		list: func(a *local) ([]*armnetwork.SecurityGroup, error) {
			return every(a.network.NewSecurityGroupsClient().NewListPager(group, nil),
				func(p armnetwork.SecurityGroupsClientListResponse) []*armnetwork.SecurityGroup { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewSecurityGroupsClient().BeginDelete(a.Context(), group, name, nil))
		},
		id: func(r *armnetwork.SecurityGroup) *string { return r.ID },
		change: func(r *armnetwork.SecurityGroup) {
			r.Properties.SecurityRules = append(r.Properties.SecurityRules, allow("tls", 501, "443"))
		},
		changed: func(r *armnetwork.SecurityGroup) bool {
			return len(r.Properties.SecurityRules) == 2 && len(r.Properties.DefaultSecurityRules) == 6
		},
	}
}

func securityRules() life[armnetwork.SecurityRule] {
	return life[armnetwork.SecurityRule]{
		given: func(a *local) {
			_, err := securityGroups().put(a, "nsg", armnetwork.SecurityGroup{Location: new(region)})
			a.must(err)
		},
		want: func(name string) armnetwork.SecurityRule {
			return *allow(name, map[string]int32{"one": 100, "Two": 200}[name], "80")
		},
		put: func(a *local, name string, r armnetwork.SecurityRule) (armnetwork.SecurityRule, error) {
			got, err := ended(a.network.NewSecurityRulesClient().BeginCreateOrUpdate(a.Context(), group, "nsg", name, r, nil))
			return got.SecurityRule, err
		},
		get: func(a *local, name string) (armnetwork.SecurityRule, error) {
			got, err := a.network.NewSecurityRulesClient().Get(a.Context(), group, "nsg", name, nil)
			return got.SecurityRule, err
		},
		list: func(a *local) ([]*armnetwork.SecurityRule, error) {
			return every(a.network.NewSecurityRulesClient().NewListPager(group, "nsg", nil),
				func(p armnetwork.SecurityRulesClientListResponse) []*armnetwork.SecurityRule { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewSecurityRulesClient().BeginDelete(a.Context(), group, "nsg", name, nil))
		},
		id:     func(r *armnetwork.SecurityRule) *string { return r.ID },
		change: func(r *armnetwork.SecurityRule) { r.Properties.Access = new(armnetwork.SecurityRuleAccessDeny) },
		changed: func(r *armnetwork.SecurityRule) bool {
			return *r.Properties.Access == armnetwork.SecurityRuleAccessDeny
		},
		absent: "NotFound",
	}
}

func route(name, prefix, next string) *armnetwork.Route {
	return &armnetwork.Route{Name: new(name), Properties: &armnetwork.RoutePropertiesFormat{
		AddressPrefix: new(prefix), NextHopType: new(armnetwork.RouteNextHopTypeVirtualAppliance), NextHopIPAddress: new(next)}}
}

func routeTables() life[armnetwork.RouteTable] {
	return life[armnetwork.RouteTable]{
		want: func(string) armnetwork.RouteTable {
			return armnetwork.RouteTable{Location: new(region), Properties: &armnetwork.RouteTablePropertiesFormat{
				Routes: []*armnetwork.Route{route("node-0", "10.244.0.0/24", "10.1.0.4")}}}
		},
		put: func(a *local, name string, r armnetwork.RouteTable) (armnetwork.RouteTable, error) {
			got, err := ended(a.network.NewRouteTablesClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.RouteTable, err
		},
		get: func(a *local, name string) (armnetwork.RouteTable, error) {
			got, err := a.network.NewRouteTablesClient().Get(a.Context(), group, name, nil)
			return got.RouteTable, err
		},
		list: func(a *local) ([]*armnetwork.RouteTable, error) {
			return every(a.network.NewRouteTablesClient().NewListPager(group, nil),
				func(p armnetwork.RouteTablesClientListResponse) []*armnetwork.RouteTable { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewRouteTablesClient().BeginDelete(a.Context(), group, name, nil))
		},
		id: func(r *armnetwork.RouteTable) *string { return r.ID },
		change: func(r *armnetwork.RouteTable) {
			r.Properties.Routes = append(r.Properties.Routes, route("node-1", "10.244.1.0/24", "10.1.0.5"))
		},
		changed: func(r *armnetwork.RouteTable) bool { return len(r.Properties.Routes) == 2 },
	}
}

func routes() life[armnetwork.Route] {
	return life[armnetwork.Route]{
		given: func(a *local) {
			_, err := routeTables().put(a, "rt", armnetwork.RouteTable{Location: new(region)})
			a.must(err)
		},
		want: func(name string) armnetwork.Route {
			return *route(name, map[string]string{"one": "10.244.0.0/24", "Two": "10.244.1.0/24"}[name], "10.1.0.4")
		},
		put: func(a *local, name string, r armnetwork.Route) (armnetwork.Route, error) {
			got, err := ended(a.network.NewRoutesClient().BeginCreateOrUpdate(a.Context(), group, "rt", name, r, nil))
			return got.Route, err
		},
		get: func(a *local, name string) (armnetwork.Route, error) {
			got, err := a.network.NewRoutesClient().Get(a.Context(), group, "rt", name, nil)
			return got.Route, err
		},
		list: func(a *local) ([]*armnetwork.Route, error) {
			return every(a.network.NewRoutesClient().NewListPager(group, "rt", nil),
				func(p armnetwork.RoutesClientListResponse) []*armnetwork.Route { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewRoutesClient().BeginDelete(a.Context(), group, "rt", name, nil))
		},
		id:      func(r *armnetwork.Route) *string { return r.ID },
		change:  func(r *armnetwork.Route) { r.Properties.NextHopIPAddress = new("10.1.0.9") },
		changed: func(r *armnetwork.Route) bool { return *r.Properties.NextHopIPAddress == "10.1.0.9" },
		absent:  "NotFound",
	}
}

func publicAddress() armnetwork.PublicIPAddress {
	return armnetwork.PublicIPAddress{
		Location: new(region), Zones: []*string{new("1"), new("2"), new("3")},
		SKU: &armnetwork.PublicIPAddressSKU{Name: new(armnetwork.PublicIPAddressSKUNameStandard)},
		Properties: &armnetwork.PublicIPAddressPropertiesFormat{
			PublicIPAllocationMethod: new(armnetwork.IPAllocationMethodStatic), PublicIPAddressVersion: new(armnetwork.IPVersionIPv4)},
	}
}

func publicAddresses() life[armnetwork.PublicIPAddress] {
	return life[armnetwork.PublicIPAddress]{
		want: func(name string) armnetwork.PublicIPAddress {
			p := publicAddress()
			p.Properties.DNSSettings = &armnetwork.PublicIPAddressDNSSettings{DomainNameLabel: new("label-" + string(name[0]|0x20))}
			return p
		},
		put: func(a *local, name string, r armnetwork.PublicIPAddress) (armnetwork.PublicIPAddress, error) {
			got, err := ended(a.network.NewPublicIPAddressesClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.PublicIPAddress, err
		},
		get: func(a *local, name string) (armnetwork.PublicIPAddress, error) {
			got, err := a.network.NewPublicIPAddressesClient().Get(a.Context(), group, name, nil)
			return got.PublicIPAddress, err
		},
		list: func(a *local) ([]*armnetwork.PublicIPAddress, error) {
			return every(a.network.NewPublicIPAddressesClient().NewListPager(group, nil),
				func(p armnetwork.PublicIPAddressesClientListResponse) []*armnetwork.PublicIPAddress { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewPublicIPAddressesClient().BeginDelete(a.Context(), group, name, nil))
		},
		id:     func(r *armnetwork.PublicIPAddress) *string { return r.ID },
		change: func(r *armnetwork.PublicIPAddress) { r.Properties.IdleTimeoutInMinutes = new(int32(10)) },
		changed: func(r *armnetwork.PublicIPAddress) bool {
			_, err := netip.ParseAddr(*r.Properties.IPAddress)
			return err == nil && *r.Properties.IdleTimeoutInMinutes == 10 &&
				*r.Properties.DNSSettings.Fqdn == "label-o.eastus.cloudapp.azure.com"
		},
	}
}

func publicPrefixes() life[armnetwork.PublicIPPrefix] {
	return life[armnetwork.PublicIPPrefix]{
		want: func(string) armnetwork.PublicIPPrefix {
			return armnetwork.PublicIPPrefix{Location: new(region),
				SKU: &armnetwork.PublicIPPrefixSKU{Name: new(armnetwork.PublicIPPrefixSKUNameStandard)},
				Properties: &armnetwork.PublicIPPrefixPropertiesFormat{PrefixLength: new(int32(30)),
					PublicIPAddressVersion: new(armnetwork.IPVersionIPv4)}}
		},
		put: func(a *local, name string, r armnetwork.PublicIPPrefix) (armnetwork.PublicIPPrefix, error) {
			got, err := ended(a.network.NewPublicIPPrefixesClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.PublicIPPrefix, err
		},
		get: func(a *local, name string) (armnetwork.PublicIPPrefix, error) {
			got, err := a.network.NewPublicIPPrefixesClient().Get(a.Context(), group, name, nil)
			return got.PublicIPPrefix, err
		},
		list: func(a *local) ([]*armnetwork.PublicIPPrefix, error) {
			return every(a.network.NewPublicIPPrefixesClient().NewListPager(group, nil),
				func(p armnetwork.PublicIPPrefixesClientListResponse) []*armnetwork.PublicIPPrefix { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewPublicIPPrefixesClient().BeginDelete(a.Context(), group, name, nil))
		},
		id:     func(r *armnetwork.PublicIPPrefix) *string { return r.ID },
		change: func(r *armnetwork.PublicIPPrefix) { r.Tags = tags("judge") },
		changed: func(r *armnetwork.PublicIPPrefix) bool {
			p, err := netip.ParsePrefix(*r.Properties.IPPrefix)
			return err == nil && p.Bits() == 30 && tagged(r.Tags, "judge")
		},
	}
}

func networkInterface(subnet string) armnetwork.Interface {
	return armnetwork.Interface{Location: new(region), Properties: &armnetwork.InterfacePropertiesFormat{
		IPConfigurations: []*armnetwork.InterfaceIPConfiguration{{Name: new("ipconfig"),
			Properties: &armnetwork.InterfaceIPConfigurationPropertiesFormat{
				Subnet: &armnetwork.Subnet{ID: new(string(networkID("virtualNetworks", "vnet").Child("subnets", subnet)))},
			}}}}}
}

func networkInterfaces() life[armnetwork.Interface] {
	return life[armnetwork.Interface]{
		given: func(a *local) {
			_, err := virtualNetworks().put(a, "vnet", virtualNetwork("nodes"))
			a.must(err)
		},
		want: func(string) armnetwork.Interface { return networkInterface("nodes") },
		put: func(a *local, name string, r armnetwork.Interface) (armnetwork.Interface, error) {
			got, err := ended(a.network.NewInterfacesClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.Interface, err
		},
		get: func(a *local, name string) (armnetwork.Interface, error) {
			got, err := a.network.NewInterfacesClient().Get(a.Context(), group, name, nil)
			return got.Interface, err
		},
		list: func(a *local) ([]*armnetwork.Interface, error) {
			return every(a.network.NewInterfacesClient().NewListPager(group, nil),
				func(p armnetwork.InterfacesClientListResponse) []*armnetwork.Interface { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewInterfacesClient().BeginDelete(a.Context(), group, name, nil))
		},
		id:     func(r *armnetwork.Interface) *string { return r.ID },
		change: func(r *armnetwork.Interface) { r.Properties.EnableIPForwarding = new(true) },
		changed: func(r *armnetwork.Interface) bool {
			return *r.Properties.EnableIPForwarding && *r.Properties.IPConfigurations[0].Properties.PrivateIPAddress == "10.1.0.4"
		},
	}
}

func natGateways() life[armnetwork.NatGateway] {
	return life[armnetwork.NatGateway]{
		given: func(a *local) {
			_, err := publicAddresses().put(a, "out", publicAddress())
			a.must(err)
		},
		want: func(string) armnetwork.NatGateway {
			return armnetwork.NatGateway{Location: new(region),
				SKU:        &armnetwork.NatGatewaySKU{Name: new(armnetwork.NatGatewaySKUNameStandard)},
				Properties: &armnetwork.NatGatewayPropertiesFormat{}}
		},
		put: func(a *local, name string, r armnetwork.NatGateway) (armnetwork.NatGateway, error) {
			got, err := ended(a.network.NewNatGatewaysClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.NatGateway, err
		},
		get: func(a *local, name string) (armnetwork.NatGateway, error) {
			got, err := a.network.NewNatGatewaysClient().Get(a.Context(), group, name, nil)
			return got.NatGateway, err
		},
		list: func(a *local) ([]*armnetwork.NatGateway, error) {
			return every(a.network.NewNatGatewaysClient().NewListPager(group, nil),
				func(p armnetwork.NatGatewaysClientListResponse) []*armnetwork.NatGateway { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewNatGatewaysClient().BeginDelete(a.Context(), group, name, nil))
		},
		id: func(r *armnetwork.NatGateway) *string { return r.ID },
		change: func(r *armnetwork.NatGateway) {
			r.Properties.PublicIPAddresses = []*armnetwork.SubResource{ref(networkID("publicIPAddresses", "out"))}
		},
		changed: func(r *armnetwork.NatGateway) bool { return len(r.Properties.PublicIPAddresses) == 1 },
	}
}

// What belongs together is seen from both sides, and what is in use cannot go.
func TestWhatIsInUseCannotBeDeleted(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		networkInterfaces().given(a)
		_, err := securityGroups().put(a, "nsg", securityGroups().want(""))
		a.must(err)
		_, err = routeTables().put(a, "rt", routeTables().want(""))
		a.must(err)
		_, err = publicAddresses().put(a, "ip", publicAddress())
		a.must(err)

		nic := networkInterface("nodes")
		nic.Properties.NetworkSecurityGroup = &armnetwork.SecurityGroup{ID: new(string(networkID("networkSecurityGroups", "nsg")))}
		nic.Properties.IPConfigurations[0].Properties.PublicIPAddress = &armnetwork.PublicIPAddress{ID: new(string(networkID(
			"publicIPAddresses", "ip")))}
		_, err = networkInterfaces().put(a, "nic", nic)
		a.must(err)
		subnet, err := a.network.NewSubnetsClient().Get(a.Context(), group, "vnet", "nodes", nil)
		a.must(err)
		subnet.Properties.RouteTable = &armnetwork.RouteTable{ID: new(string(networkID("routeTables", "rt")))}
		_, err = ended(a.network.NewSubnetsClient().BeginCreateOrUpdate(a.Context(), group, "vnet", "nodes", subnet.Subnet, nil))
		a.must(err)

		configuration := string(networkID("networkInterfaces", "nic").Child("ipConfigurations", "ipconfig"))
		address, err := publicAddresses().get(a, "ip")
		a.must(err)
		has(a, "IP configuration of the public address", address.Properties.IPConfiguration.ID, configuration)
		network, err := virtualNetworks().get(a, "vnet")
		a.must(err)
		has(a, "IP configuration in the subnet", network.Properties.Subnets[0].Properties.IPConfigurations[0].ID, configuration)
		rules, err := securityGroups().get(a, "nsg")
		a.must(err)
		has(a, "interface of the security group", rules.Properties.NetworkInterfaces[0].ID, string(networkID("networkInterfaces", "nic")))
		table, err := routeTables().get(a, "rt")
		a.must(err)
		has(a, "subnet of the route table", table.Properties.Subnets[0].ID,
			string(networkID("virtualNetworks", "vnet").Child("subnets", "nodes")))

		a.refused(publicAddresses().remove(a, "ip"), http.StatusBadRequest, "PublicIPAddressCannotBeDeleted")
		a.refused(virtualNetworks().remove(a, "vnet"), http.StatusBadRequest, "InUseSubnetCannotBeDeleted")
		a.refused(subnets().remove(a, "nodes"), http.StatusBadRequest, "InUseSubnetCannotBeDeleted")
		a.refused(securityGroups().remove(a, "nsg"), http.StatusBadRequest, "InUseNetworkSecurityGroupCannotBeDeleted")
		a.refused(routeTables().remove(a, "rt"), http.StatusBadRequest, "InUseRouteTableCannotBeDeleted")

		a.must(networkInterfaces().remove(a, "nic"))
		a.must(publicAddresses().remove(a, "ip"))
		a.must(securityGroups().remove(a, "nsg"))
		a.must(virtualNetworks().remove(a, "vnet"))
		a.must(routeTables().remove(a, "rt"))
	})
}

func TestNetworkUpdatesOfTags(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		_, err := publicAddresses().put(a, "ip", publicAddress())
		a.must(err)
		before, err := publicAddresses().get(a, "ip")
		a.must(err)
		_, err = a.network.NewPublicIPAddressesClient().UpdateTags(a.Context(), group, "ip",
			armnetwork.TagsObject{Tags: tags("patch")}, nil)
		a.must(err)
		after, err := publicAddresses().get(a, "ip")
		a.must(err)
		if !tagged(after.Tags, "patch") {
			a.Errorf("tags after the patch: %v", after.Tags)
		}
		has(a, "address after the patch", after.Properties.IPAddress, *before.Properties.IPAddress)
	})
}

func TestNetworkRefusals(t *testing.T) {
	for _, c := range []struct {
		name, code string
		status     int
		try        func(a *local) error
	}{
		{"subnet outside of its network", "NetcfgInvalidSubnet", http.StatusBadRequest, func(a *local) error {
			v := virtualNetwork("nodes")
			v.Properties.Subnets[0].Properties.AddressPrefix = new("192.168.0.0/24")
			_, err := virtualNetworks().put(a, "v", v)
			return err
		}},
		{"subnets that overlap", "NetcfgSubnetRangesOverlap", http.StatusBadRequest, func(a *local) error {
			v := virtualNetwork("a", "b")
			v.Properties.Subnets[1].Properties.AddressPrefix = new("10.1.128.0/24")
			_, err := virtualNetworks().put(a, "v", v)
			return err
		}},
		{"prefix that is none", "InvalidAddressPrefixFormat", http.StatusBadRequest, func(a *local) error {
			v := virtualNetwork()
			v.Properties.AddressSpace.AddressPrefixes[0] = new("10.0.0.0/zz")
			_, err := virtualNetworks().put(a, "v", v)
			return err
		}},
		{"two rules with one priority", "SecurityRuleConflict", http.StatusBadRequest, func(a *local) error {
			r := securityGroups().want("")
			r.Properties.SecurityRules = append(r.Properties.SecurityRules, allow("other", 500, "81"))
			_, err := securityGroups().put(a, "n", r)
			return err
		}},
		{"reference to what is not there", "InvalidResourceReference", http.StatusBadRequest, func(a *local) error {
			_, err := networkInterfaces().put(a, "n", networkInterface("absent"))
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
				a.group()
				a.refused(c.try(a), c.status, c.code)
			})
		})
	}
}
