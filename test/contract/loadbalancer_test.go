package contract

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
)

func balancerID(name string) azure.ID { return networkID("loadBalancers", name) }

// loadBalancer has one of everything.
func loadBalancer(name string) armnetwork.LoadBalancer {
	self := balancerID(name)
	frontend, pool := ref(self.Child("frontendIPConfigurations", "public")), ref(self.Child("backendAddressPools", "nodes"))
	return armnetwork.LoadBalancer{
		Location: new(region), SKU: &armnetwork.LoadBalancerSKU{Name: new(armnetwork.LoadBalancerSKUNameStandard)},
		Properties: &armnetwork.LoadBalancerPropertiesFormat{
			FrontendIPConfigurations: []*armnetwork.FrontendIPConfiguration{{Name: new("public"),
				Properties: &armnetwork.FrontendIPConfigurationPropertiesFormat{
					PublicIPAddress: &armnetwork.PublicIPAddress{ID: new(string(networkID("publicIPAddresses", "ip-"+name)))}}}},
			BackendAddressPools: []*armnetwork.BackendAddressPool{{Name: new("nodes")}},
			Probes: []*armnetwork.Probe{{Name: new("http"), Properties: &armnetwork.ProbePropertiesFormat{
				Protocol: new(armnetwork.ProbeProtocolHTTP), Port: new(int32(30080)), RequestPath: new("/healthz"),
				IntervalInSeconds: new(int32(5)), ProbeThreshold: new(int32(2))}}},
			LoadBalancingRules: []*armnetwork.LoadBalancingRule{{Name: new("tcp-80"),
				Properties: &armnetwork.LoadBalancingRulePropertiesFormat{
					Protocol: new(armnetwork.TransportProtocolTCP), FrontendPort: new(int32(80)), BackendPort: new(int32(80)),
					EnableFloatingIP: new(true), EnableTCPReset: new(true), DisableOutboundSnat: new(true),
					IdleTimeoutInMinutes:    new(int32(4)),
					FrontendIPConfiguration: frontend, BackendAddressPool: pool, Probe: ref(self.Child("probes", "http"))}}},
			OutboundRules: []*armnetwork.OutboundRule{{Name: new("out"), Properties: &armnetwork.OutboundRulePropertiesFormat{
				Protocol: new(armnetwork.LoadBalancerOutboundRuleProtocolAll), AllocatedOutboundPorts: new(int32(1024)),
				BackendAddressPool: pool, FrontendIPConfigurations: []*armnetwork.SubResource{frontend}}}},
			InboundNatRules: []*armnetwork.InboundNatRule{{Name: new("ssh"), Properties: &armnetwork.InboundNatRulePropertiesFormat{
				Protocol: new(armnetwork.TransportProtocolTCP), FrontendPort: new(int32(50022)), BackendPort: new(int32(22)),
				FrontendIPConfiguration: frontend}}},
		},
	}
}

func loadBalancers() life[armnetwork.LoadBalancer] {
	return life[armnetwork.LoadBalancer]{
		given: func(a *local) {
			for _, name := range []string{"ip-one", "ip-Two"} {
				_, err := publicAddresses().put(a, name, publicAddress())
				a.must(err)
			}
		},
		want: loadBalancer,
		put: func(a *local, name string, r armnetwork.LoadBalancer) (armnetwork.LoadBalancer, error) {
			got, err := ended(a.network.NewLoadBalancersClient().BeginCreateOrUpdate(a.Context(), group, name, r, nil))
			return got.LoadBalancer, err
		},
		get: func(a *local, name string) (armnetwork.LoadBalancer, error) {
			got, err := a.network.NewLoadBalancersClient().Get(a.Context(), group, name, nil)
			return got.LoadBalancer, err
		},
		list: func(a *local) ([]*armnetwork.LoadBalancer, error) {
			return every(a.network.NewLoadBalancersClient().NewListPager(group, nil),
				func(p armnetwork.LoadBalancersClientListResponse) []*armnetwork.LoadBalancer { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewLoadBalancersClient().BeginDelete(a.Context(), group, name, nil))
		},
		id: func(r *armnetwork.LoadBalancer) *string { return r.ID },
		change: func(r *armnetwork.LoadBalancer) {
			p := r.Properties
			p.InboundNatRules, p.OutboundRules = []*armnetwork.InboundNatRule{}, []*armnetwork.OutboundRule{}
			p.LoadBalancingRules[0].Properties.FrontendPort = new(int32(8080))
		},
		changed: func(r *armnetwork.LoadBalancer) bool {
			p := r.Properties
			return len(p.InboundNatRules)+len(p.OutboundRules) == 0 && *p.LoadBalancingRules[0].Properties.FrontendPort == 8080
		},
	}
}

// givenBalancer is one balancer for the lives of its sub-resources.
func givenBalancer(a *local) {
	_, err := publicAddresses().put(a, "ip-lb", publicAddress())
	a.must(err)
	lb := loadBalancer("lb")
	p := lb.Properties
	p.InboundNatRules, p.BackendAddressPools, p.LoadBalancingRules, p.OutboundRules = nil, nil, nil, nil
	_, err = loadBalancers().put(a, "lb", lb)
	a.must(err)
}

func pools() life[armnetwork.BackendAddressPool] {
	return life[armnetwork.BackendAddressPool]{
		given: func(a *local) {
			givenBalancer(a)
			_, err := virtualNetworks().put(a, "vnet", virtualNetwork("nodes"))
			a.must(err)
		},
		want: func(string) armnetwork.BackendAddressPool {
			return armnetwork.BackendAddressPool{Properties: &armnetwork.BackendAddressPoolPropertiesFormat{}}
		},
		put: func(a *local, name string, r armnetwork.BackendAddressPool) (armnetwork.BackendAddressPool, error) {
			got, err := ended(a.network.NewLoadBalancerBackendAddressPoolsClient().BeginCreateOrUpdate(a.Context(), group, "lb",
				name, r, nil))
			return got.BackendAddressPool, err
		},
		get: func(a *local, name string) (armnetwork.BackendAddressPool, error) {
			got, err := a.network.NewLoadBalancerBackendAddressPoolsClient().Get(a.Context(), group, "lb", name, nil)
			return got.BackendAddressPool, err
		},
		list: func(a *local) ([]*armnetwork.BackendAddressPool, error) {
			return every(a.network.NewLoadBalancerBackendAddressPoolsClient().NewListPager(group, "lb", nil),
				func(p armnetwork.LoadBalancerBackendAddressPoolsClientListResponse) []*armnetwork.BackendAddressPool {
					return p.Value
				})
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewLoadBalancerBackendAddressPoolsClient().BeginDelete(a.Context(), group, "lb", name, nil))
		},
		id: func(r *armnetwork.BackendAddressPool) *string { return r.ID },
		change: func(r *armnetwork.BackendAddressPool) {
			r.Properties.LoadBalancerBackendAddresses = []*armnetwork.LoadBalancerBackendAddress{{Name: new("node-0"),
				Properties: &armnetwork.LoadBalancerBackendAddressPropertiesFormat{IPAddress: new("10.1.0.10"),
					VirtualNetwork: ref(networkID("virtualNetworks", "vnet"))}}}
		},
		changed: func(r *armnetwork.BackendAddressPool) bool {
			addresses := r.Properties.LoadBalancerBackendAddresses
			return len(addresses) == 1 && *addresses[0].Properties.IPAddress == "10.1.0.10"
		},
		absent: "NotFound",
	}
}

func inboundRules() life[armnetwork.InboundNatRule] {
	return life[armnetwork.InboundNatRule]{
		given: givenBalancer,
		want: func(name string) armnetwork.InboundNatRule {
			return armnetwork.InboundNatRule{Properties: &armnetwork.InboundNatRulePropertiesFormat{
				Protocol: new(armnetwork.TransportProtocolTCP), BackendPort: new(int32(22)),
				FrontendPort:            new(map[string]int32{"one": 50001, "Two": 50002}[name]),
				FrontendIPConfiguration: ref(balancerID("lb").Child("frontendIPConfigurations", "public"))}}
		},
		put: func(a *local, name string, r armnetwork.InboundNatRule) (armnetwork.InboundNatRule, error) {
			got, err := ended(a.network.NewInboundNatRulesClient().BeginCreateOrUpdate(a.Context(), group, "lb", name, r, nil))
			return got.InboundNatRule, err
		},
		get: func(a *local, name string) (armnetwork.InboundNatRule, error) {
			got, err := a.network.NewInboundNatRulesClient().Get(a.Context(), group, "lb", name, nil)
			return got.InboundNatRule, err
		},
		list: func(a *local) ([]*armnetwork.InboundNatRule, error) {
			return every(a.network.NewInboundNatRulesClient().NewListPager(group, "lb", nil),
				func(p armnetwork.InboundNatRulesClientListResponse) []*armnetwork.InboundNatRule { return p.Value })
		},
		remove: func(a *local, name string) error {
			return gone(a.network.NewInboundNatRulesClient().BeginDelete(a.Context(), group, "lb", name, nil))
		},
		id:      func(r *armnetwork.InboundNatRule) *string { return r.ID },
		change:  func(r *armnetwork.InboundNatRule) { r.Properties.BackendPort = new(int32(2222)) },
		changed: func(r *armnetwork.InboundNatRule) bool { return *r.Properties.BackendPort == 2222 },
		absent:  "NotFound",
	}
}

// The parts of a balancer are read one by one, and know each other.
func TestPartsOfALoadBalancer(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		loadBalancers().given(a)
		lb, err := loadBalancers().put(a, "one", loadBalancer("one"))
		a.must(err)
		for _, part := range []*string{
			lb.Properties.FrontendIPConfigurations[0].Etag, lb.Properties.BackendAddressPools[0].Etag, lb.Properties.Probes[0].Etag,
			lb.Properties.LoadBalancingRules[0].Etag, lb.Properties.OutboundRules[0].Etag, lb.Properties.InboundNatRules[0].Etag,
		} {
			has(a, "etag of a part", part, *lb.Etag)
		}

		self := balancerID("one")
		frontend, err := a.network.NewLoadBalancerFrontendIPConfigurationsClient().Get(a.Context(), group, "one", "public", nil)
		a.must(err)
		has(a, "rule of the frontend", frontend.Properties.LoadBalancingRules[0].ID, string(self.Child("loadBalancingRules", "tcp-80")))
		has(a, "outbound rule of the frontend", frontend.Properties.OutboundRules[0].ID, string(self.Child("outboundRules", "out")))
		has(a, "inbound rule of the frontend", frontend.Properties.InboundNatRules[0].ID, string(self.Child("inboundNatRules", "ssh")))
		rule, err := a.network.NewLoadBalancerLoadBalancingRulesClient().Get(a.Context(), group, "one", "tcp-80", nil)
		a.must(err)
		has(a, "distribution", rule.Properties.LoadDistribution, armnetwork.LoadDistributionDefault)
		has(a, "first of the pools", rule.Properties.BackendAddressPools[0].ID, string(self.Child("backendAddressPools", "nodes")))
		probe, err := a.network.NewLoadBalancerProbesClient().Get(a.Context(), group, "one", "http", nil)
		a.must(err)
		has(a, "rule of the probe", probe.Properties.LoadBalancingRules[0].ID, string(self.Child("loadBalancingRules", "tcp-80")))
		out, err := a.network.NewLoadBalancerOutboundRulesClient().Get(a.Context(), group, "one", "out", nil)
		a.must(err)
		has(a, "ports", out.Properties.AllocatedOutboundPorts, 1024)

		address, err := publicAddresses().get(a, "ip-one")
		a.must(err)
		has(a, "frontend of the address", address.Properties.IPConfiguration.ID, string(self.Child("frontendIPConfigurations", "public")))
		a.refused(publicAddresses().remove(a, "ip-one"), http.StatusBadRequest, "PublicIPAddressCannotBeDeleted")
	})
}

// A network interface says that it is in a pool, and the pool shows it.
func TestPoolShowsItsMembers(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		loadBalancers().given(a)
		networkInterfaces().given(a)
		lb := loadBalancer("one")
		lb.Properties.OutboundRules = nil
		_, err := loadBalancers().put(a, "one", lb)
		a.must(err)
		pool := balancerID("one").Child("backendAddressPools", "nodes")
		for i := range 3 {
			nic := networkInterface("nodes")
			nic.Properties.IPConfigurations[0].Properties.LoadBalancerBackendAddressPools = []*armnetwork.BackendAddressPool{{ID: new(string(pool))}}
			_, err := networkInterfaces().put(a, fmt.Sprint("nic-", i), nic)
			a.must(err)
		}
		got, err := a.network.NewLoadBalancerBackendAddressPoolsClient().Get(a.Context(), group, "one", "nodes", nil)
		a.must(err)
		if n := len(got.Properties.BackendIPConfigurations); n != 3 {
			a.Errorf("the pool shows %d members, want 3", n)
		}
		a.must(networkInterfaces().remove(a, "nic-1"))
		whole, err := loadBalancers().get(a, "one")
		a.must(err)
		if n := len(whole.Properties.BackendAddressPools[0].Properties.BackendIPConfigurations); n != 2 {
			a.Errorf("the pool shows %d members after one went, want 2", n)
		}
	})
}
