package contract

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"kaz/internal/localazure/core"
)

// A load balancer is offered as a private link service, and an endpoint uses it.
func TestPrivateLinks(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		v := virtualNetwork("nodes", "clients")
		v.Properties.Subnets[0].Properties.PrivateLinkServiceNetworkPolicies = new(armnetwork.VirtualNetworkPrivateLinkServiceNetworkPoliciesDisabled)
		_, err := virtualNetworks().put(a, "vnet", v)
		a.must(err)
		nodes := &armnetwork.Subnet{ID: new(string(networkID("virtualNetworks", "vnet").Child("subnets", "nodes")))}
		_, err = loadBalancers().put(a, "internal",
			armnetwork.LoadBalancer{Location: new(region),
				SKU: &armnetwork.LoadBalancerSKU{Name: new(armnetwork.LoadBalancerSKUNameStandard)},
				Properties: &armnetwork.LoadBalancerPropertiesFormat{FrontendIPConfigurations: []*armnetwork.FrontendIPConfiguration{{Name: new(
					"private"),
					Properties: &armnetwork.FrontendIPConfigurationPropertiesFormat{Subnet: nodes}}}}})
		a.must(err)
		service, err := ended(a.network.NewPrivateLinkServicesClient().BeginCreateOrUpdate(a.Context(), group, "pls",
			armnetwork.PrivateLinkService{Location: new(region),
				Properties: &armnetwork.PrivateLinkServiceProperties{
					LoadBalancerFrontendIPConfigurations: []*armnetwork.FrontendIPConfiguration{{ID: new(string(balancerID("internal").Child(
						"frontendIPConfigurations", "private")))}},
					IPConfigurations: []*armnetwork.PrivateLinkServiceIPConfiguration{{Name: new("nat"),
						Properties: &armnetwork.PrivateLinkServiceIPConfigurationProperties{
							Subnet: nodes, Primary: new(true), PrivateIPAllocationMethod: new(armnetwork.IPAllocationMethodDynamic)}}}}},
			nil))
		a.must(err)
		if service.Properties.Alias == nil {
			a.Error("the service has no alias")
		}
		_, err = ended(a.network.NewPrivateEndpointsClient().BeginCreateOrUpdate(a.Context(), group, "pe",
			armnetwork.PrivateEndpoint{Location: new(region),
				Properties: &armnetwork.PrivateEndpointProperties{
					Subnet: &armnetwork.Subnet{ID: new(string(networkID("virtualNetworks", "vnet").Child("subnets", "clients")))},
					PrivateLinkServiceConnections: []*armnetwork.PrivateLinkServiceConnection{{Name: new("to"),
						Properties: &armnetwork.PrivateLinkServiceConnectionProperties{
							PrivateLinkServiceID: service.ID}}}}}, nil))
		a.must(err)
		endpoint, err := a.network.NewPrivateEndpointsClient().Get(a.Context(), group, "pe", nil)
		a.must(err)
		has(a, "state of the connection",
			endpoint.Properties.PrivateLinkServiceConnections[0].Properties.PrivateLinkServiceConnectionState.Status, "Approved")
		seen, err := a.network.NewPrivateLinkServicesClient().Get(a.Context(), group, "pls", nil)
		a.must(err)
		if len(seen.Properties.PrivateEndpointConnections) != 1 {
			a.Errorf("the service sees %d connections, want 1", len(seen.Properties.PrivateEndpointConnections))
		}
		a.must(gone(a.network.NewPrivateEndpointsClient().BeginDelete(a.Context(), group, "pe", nil)))
		a.must(gone(a.network.NewPrivateLinkServicesClient().BeginDelete(a.Context(), group, "pls", nil)))
	})
}

func TestPeerings(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		_, err := virtualNetworks().put(a, "left", virtualNetwork())
		a.must(err)
		right := virtualNetwork()
		right.Properties.AddressSpace.AddressPrefixes = []*string{new("172.16.0.0/12")}
		_, err = virtualNetworks().put(a, "right", right)
		a.must(err)
		c := a.network.NewVirtualNetworkPeeringsClient()
		peer := func(from, to string) armnetwork.VirtualNetworkPeering {
			got, err := ended(c.BeginCreateOrUpdate(a.Context(), group, from, "to-"+to,
				armnetwork.VirtualNetworkPeering{Properties: &armnetwork.VirtualNetworkPeeringPropertiesFormat{
					AllowVirtualNetworkAccess: new(true), RemoteVirtualNetwork: ref(networkID("virtualNetworks", to))}}, nil))
			a.must(err)
			return got.VirtualNetworkPeering
		}
		one := peer("left", "right")
		has(a, "state of a peering from one side", one.Properties.PeeringState, armnetwork.VirtualNetworkPeeringStateInitiated)
		two := peer("right", "left")
		has(a, "state of a peering from both sides", two.Properties.PeeringState, armnetwork.VirtualNetworkPeeringStateConnected)
	})
}

func TestDefaultRules(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		_, err := securityGroups().put(a, "nsg", securityGroups().want(""))
		a.must(err)
		all, err := every(a.network.NewDefaultSecurityRulesClient().NewListPager(group, "nsg", nil),
			func(p armnetwork.DefaultSecurityRulesClientListResponse) []*armnetwork.SecurityRule { return p.Value })
		a.must(err)
		if len(all) != 6 {
			a.Errorf("%d default rules, want 6", len(all))
		}
	})
}

func TestSSHKeys(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		c := a.compute.NewSSHPublicKeysClient()
		_, err := c.Create(a.Context(), group, "key", armcompute.SSHPublicKeyResource{Location: new(region)}, nil)
		a.must(err)
		pair, err := c.GenerateKeyPair(a.Context(), group, "key", nil)
		a.must(err)
		got, err := c.Get(a.Context(), group, "key", nil)
		a.must(err)
		has(a, "public key", got.Properties.PublicKey, *pair.PublicKey)
	})
}
