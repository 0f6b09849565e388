package network_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/localazure/behaviour"
)

// The addresses of gateways, routers, firewalls and appliances in a hub stay when the same body is sent again.
func TestAddressesInAHub(t *testing.T) {
	c := start(t)
	c.put(net+"/virtualWans/wan", `{"location":"eastus","properties":{}}`)
	hub := net + "/virtualHubs/hub"
	got := c.put(hub, `{"location":"eastus","properties":{"addressPrefix":"10.9.0.0/23","virtualWan":{"id":"`+net+`/virtualWans/wan"}}}`)
	if routers := behaviour.Texts(got, "properties.virtualRouterIps"); !cmp.Equal(routers, []string{"10.9.0.68", "10.9.0.69"}) {
		t.Errorf("routers %v", routers)
	}
	inHub := `"virtualHub":{"id":"` + hub + `"}`
	for path, body := range map[string]string{
		net + "/vpnGateways/vpn": `{"location":"eastus","properties":{"bgpSettings":{"bgpPeeringAddresses":[{"ipconfigurationId":"Instance1",
			"customBgpIpAddresses":["169.254.21.10"]}]},` + inHub + `}}`,
		net + "/azureFirewalls/fw": `{"location":"eastus","properties":{"sku":{"name":"AZFW_Hub","tier":"Standard"},
			"hubIPAddresses":{"publicIPs":{"count":2}},` + inHub + `}}`,
		net + "/networkVirtualAppliances/nva": `{"location":"eastus","properties":{"networkProfile":{"networkInterfaceConfigurations":[
			{"type":"PublicNic","properties":{"ipConfigurations":[{"name":"public"}]}}]},` + inHub + `}}`,
	} {
		first := c.put(path, body)
		delete(first, "etag")
		again := c.put(path, body)
		delete(again, "etag")
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("%s changes with the same body (-first +again):\n%s", path, diff)
		}
	}
	gateway := c.get(net + "/vpnGateways/vpn")
	peers := behaviour.Objects(gateway, "properties.bgpSettings.bgpPeeringAddresses")
	if len(peers) != 2 || behaviour.Texts(peers[0], "defaultBgpIpAddresses")[0] != "10.9.0.4" ||
		behaviour.Texts(peers[1], "customBgpIpAddresses")[0] != "169.254.21.10" || len(behaviour.Texts(peers[1], "tunnelIpAddresses")) != 1 {
		t.Errorf("the instances of the gateway peer at %v", peers)
	}
	firewall := c.get(net + "/azureFirewalls/fw")
	if n := len(behaviour.Array(firewall, "properties.hubIPAddresses.publicIPs.addresses")); n != 2 {
		t.Errorf("the firewall has %d public addresses of 2", n)
	}
	appliance := c.get(net + "/networkVirtualAppliances/nva")
	nics := behaviour.Objects(appliance, "properties.virtualApplianceNics")
	if len(nics) != 2 || behaviour.Text(nics[0], "privateIpAddress") != "10.9.1.254" || behaviour.Text(nics[1], "publicIpAddress") == "" {
		t.Errorf("the appliance has the interfaces %v", nics)
	}
}

// A peering of subnets leads to their prefixes alone, and shows the communities of the other network.
func TestPeeringOfSubnets(t *testing.T) {
	c := start(t)
	one, other := net+"/virtualNetworks/one", net+"/virtualNetworks/other"
	c.put(one, `{"location":"westus","properties":{"addressSpace":{"addressPrefixes":["10.1.0.0/16","fd01::/48"]},"subnets":[
		{"name":"a","properties":{"addressPrefixes":["10.1.1.0/24","fd01::/64"]}},{"name":"b","properties":{"addressPrefix":"10.1.2.0/24"}}]}}`)
	c.put(other, `{"location":"eastus","properties":{"bgpCommunities":{"virtualNetworkCommunity":"12076:20002"},
		"addressSpace":{"addressPrefixes":["10.2.0.0/16"]},"subnets":[{"name":"c","properties":{"addressPrefix":"10.2.3.0/24"}}]}}`)
	peering := one + "/virtualNetworkPeerings/p"
	to := `"remoteVirtualNetwork":{"id":"` + other + `"}`
	got := c.put(peering, `{"properties":{"peerCompleteVnets":false,"localSubnetNames":["a"],"remoteSubnetNames":["c"],`+to+`}}`)
	for path, want := range map[string][]string{
		"properties.localAddressSpace.addressPrefixes":  {"10.1.1.0/24", "fd01::/64"},
		"properties.remoteAddressSpace.addressPrefixes": {"10.2.3.0/24"},
	} {
		if prefixes := behaviour.Texts(got, path); !cmp.Equal(prefixes, want) {
			t.Errorf("%s: %v, want %v", path, prefixes, want)
		}
	}
	if community := behaviour.Text(got, "properties.remoteBgpCommunities.regionalCommunity"); community != "12076:50004" {
		t.Errorf("the region of the other network has the community %q", community)
	}
	got = c.put(peering, `{"properties":{"peerCompleteVnets":false,"enableOnlyIPv6Peering":true,"localSubnetNames":["a"],`+to+`}}`)
	if prefixes := behaviour.Texts(got, "properties.localAddressSpace.addressPrefixes"); !cmp.Equal(prefixes, []string{"fd01::/64"}) {
		t.Errorf("IPv6 alone peers %v", prefixes)
	}
}

// The parameters of clients that a gateway was given come back, and RADIUS servers show their secrets to the action alone.
func TestParametersOfVPNClients(t *testing.T) {
	c := start(t)
	path := net + "/vpnServerConfigurations/config"
	c.put(path, `{"location":"eastus","properties":{"radiusServers":[{"radiusServerAddress":"10.0.0.9","radiusServerSecret":"s"}]}}`)
	got := c.do("POST", path+"/listRadiusSecrets", "")
	want := behaviour.Object{"value": []any{behaviour.Object{"radiusServerAddress": "10.0.0.9", "radiusServerSecret": "s"}}}
	if diff := cmp.Diff(want, got.Body); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}
