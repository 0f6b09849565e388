package network_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
)

// Older API versions show the protection of machines, and enable policies for private endpoints.
func TestOldVirtualNetwork(t *testing.T) {
	c := start(t)
	const body = `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},
		"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.1.0/24"}}]}}`
	c.has(c.put(vnet+"?api-version=2020-07-01", body), `{"properties":{"enableVmProtection":false,
		"subnets":[{"properties":{"privateEndpointNetworkPolicies":"Enabled"}}]}}`)
	c.absent(c.get(vnet+"?api-version=2020-11-01"), "properties.enableVmProtection")
	c.has(c.put(vnet+"?api-version=2020-11-01", body), `{"properties":{
		"subnets":[{"properties":{"privateEndpointNetworkPolicies":"Disabled"}}]}}`)
}

func TestVirtualNetwork(t *testing.T) {
	c := start(t)
	c.has(c.put(vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]}}}`),
		`{"type":"Microsoft.Network/virtualNetworks","properties":{"provisioningState":"Succeeded",
			"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},
		"privateEndpointVNetPolicies":"Disabled","subnets":[],"virtualNetworkPeerings":[],"enableDdosProtection":false}}`)
	got := c.put(subnet,
		`{"properties":{"addressPrefix":"10.0.1.0/24","delegations":[{"name":"d",
			"properties":{"serviceName":"Microsoft.Web/serverFarms"}}]}}`)
	c.has(got, `{"type":"Microsoft.Network/virtualNetworks/subnets","properties":{"addressPrefix":"10.0.1.0/24",
		"privateEndpointNetworkPolicies":"Disabled",
		"privateLinkServiceNetworkPolicies":"Enabled","delegations":[{"name":"d",
		"type":"Microsoft.Network/virtualNetworks/subnets/delegations",
		"id":"`+subnet+
		`/delegations/d","properties":{"provisioningState":"Succeeded","serviceName":"Microsoft.Web/serverFarms",
		"actions":["Microsoft.Network/virtualNetworks/subnets/action"]}}]}}`)
	c.has(c.get(vnet), `{"properties":{"subnets":[{"name":"nodes","id":"`+subnet+`"}]}}`)
	c.delete(subnet)
	c.delete(vnet)
}

func TestSubnetRefusals(t *testing.T) {
	c := start(t)
	c.network()
	for body, code := range map[string]string{
		`{"properties":{}}`: "InvalidRequestFormat/MissingRequiredProperty",
		`{"properties":{"addressPrefix":"10.0.0.128/25"}}`:                                       "NetcfgSubnetRangesOverlap",
		`{"properties":{"addressPrefix":"10.1.0.0/24"}}`:                                         "NetcfgInvalidSubnet",
		`{"properties":{"addressPrefix":"10.0.1.0/30"}}`:                                         "NetcfgInvalidSubnet",
		`{"properties":{"addressPrefix":"fd00:1:0:1::/64"}}`:                                     "NetcfgInvalidSubnet",
		`{"properties":{"addressPrefix":"10.0.1.5/24"}}`:                                         "InvalidCIDRNotation",
		`{"properties":{"addressPrefix":"ten"}}`:                                                 "InvalidAddressPrefixFormat",
		`{"properties":{"addressPrefix":"10.0.1.0/24","networkSecurityGroup":` + ref(nsg) + `}}`: "InvalidResourceReference",
		`{"properties":{"addressPrefix":"10.0.1.0/24","routeTable":` + ref(vnet) +
			`}}`: "InvalidRequestFormat/InvalidJsonReferenceId",
	} {
		c.refused("PUT", vnet+"/subnets/other", body, 400, code)
	}
	c.put(nic, nicBody(""))
	c.refused("DELETE", subnet, "", 400, "InUseSubnetCannotBeDeleted")
	c.refused("DELETE", vnet, "", 400, "InUseSubnetCannotBeDeleted")
	c.refused("PUT", vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[]}}`, 400,
		"InUseSubnetCannotBeDeleted")
	c.refused("PUT", subnet, `{"properties":{"addressPrefix":"10.0.8.0/24"}}`, 400, "InUsePrefixCannotBeDeleted")
	c.put(subnet, `{"properties":{"addressPrefix":"10.0.0.0/25"}}`)
	c.delete(nic)
	c.delete(subnet)
	c.refused("PUT", vnet, `{"location":"eastus"}`, 400, "InvalidRequestFormat/MissingRequiredProperty")
	c.refused("PUT", vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16","10.0.8.0/24"]}}}`, 400,
		"InvalidRequestFormat/AddressSpacesOverlap")
}

// TestPutReplaces checks that a PUT of a virtual network or of a network interface replaces its lists: subnets and service endpoints, and
// pools of load balancers.
func TestPutReplaces(t *testing.T) {
	c := start(t)
	const space = `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[`
	nodes := func(more string) string {
		return `{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/24"` + more + `}}`
	}
	c.put(vnet, space+nodes(`,"serviceEndpoints":[{"service":"Microsoft.Storage"}]`)+
		`,{"name":"users","properties":{"addressPrefix":"10.0.1.0/24"}}]}}`)
	c.put(vnet, space+nodes("")+`]}}`)
	subnets := behaviour.Objects(c.get(vnet), "properties.subnets")
	if len(subnets) != 1 || len(behaviour.Objects(subnets[0], "properties.serviceEndpoints")) > 0 {
		t.Errorf("subnets %v, want nodes alone, without service endpoints", subnets)
	}
	c.put(publicIP, staticIP)
	c.put(balancer, balancerBody(""))
	c.put(nic, nicBody(`,"loadBalancerBackendAddressPools":[`+ref(pool)+`]`))
	c.put(nic, nicBody(""))
	ip := behaviour.Objects(c.get(nic), "properties.ipConfigurations")[0]
	if pools := behaviour.Objects(ip, "properties.loadBalancerBackendAddressPools"); len(pools) > 0 {
		t.Errorf("pools %v, want none", pools)
	}
}

func TestAddressAvailability(t *testing.T) {
	c := start(t)
	c.network()
	c.put(nic, nicBody(""))
	c.has(c.get(vnet+"/CheckIPAddressAvailability?ipAddress=10.0.0.9"), `{"available":true,"isPlatformReserved":false}`)
	c.has(c.get(vnet+"/CheckIPAddressAvailability?ipAddress=10.0.0.3"), `{"available":false,"isPlatformReserved":true}`)
	c.has(c.get(vnet+"/CheckIPAddressAvailability?ipAddress=10.0.0.255"), `{"available":false,"isPlatformReserved":true}`)
	c.has(c.get(vnet+"/CheckIPAddressAvailability?ipAddress=10.0.0.4"),
		`{"available":false,"isPlatformReserved":false,"availableIPAddresses":["10.0.0.5","10.0.0.6","10.0.0.7","10.0.0.8","10.0.0.9"]}`)
	c.refused("GET", vnet+"/CheckIPAddressAvailability?ipAddress=10.9.0.4", "", 400, "PrivateIPAddressNotInAnySubnet")
}

func TestPeering(t *testing.T) {
	c := start(t)
	c.network()
	other := net + "/virtualNetworks/other"
	peering := func(to string) string { return `{"properties":{"remoteVirtualNetwork":` + ref(to) + `}}` }
	c.put(other, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.1.0.0/16"]}}}`)
	there, back := vnet+"/virtualNetworkPeerings/there", other+"/virtualNetworkPeerings/back"
	c.has(c.put(there,
		peering(other)), `{"properties":{"peeringState":"Initiated","peeringSyncLevel":"RemoteNotInSync","allowVirtualNetworkAccess":true,
		"allowForwardedTraffic":false,"remoteAddressSpace":{"addressPrefixes":["10.1.0.0/16"]}}}`)
	if second := c.do("PUT", back, peering(vnet)); behaviour.Text(second.Body, "properties.peeringState") != "Connected" {
		t.Errorf("the first reply to the second peering: %v, want it connected", second.Body)
	}
	c.has(c.put(back, peering(vnet)), `{"properties":{"peeringState":"Connected"}}`)
	c.has(c.get(there), `{"properties":{"peeringState":"Connected","peeringSyncLevel":"FullyInSync"}}`)
	c.delete(back)
	c.has(c.get(there), `{"properties":{"peeringState":"Disconnected"}}`)
	c.refused("PUT", vnet+"/virtualNetworkPeerings/again", peering(other), 400, "RemoteVnetAlreadyPeered")
	c.refused("PUT", vnet+"/virtualNetworkPeerings/self", peering(vnet), 400, "VnetCannotPeerWithItself")
	c.put(net+"/virtualNetworks/same", `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.128.0/17"]}}}`)
	c.refused("PUT", vnet+"/virtualNetworkPeerings/same", peering(net+"/virtualNetworks/same"), 400, "VnetAddressSpacesOverlap")
}

// TestMembershipTakesTime checks that a write of an interface ends in its reply, unless it changes the pools or groups of the interface.
func TestMembershipTakesTime(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	c.put(balancer, balancerBody(""))
	c.put(net+"/applicationSecurityGroups/asg", `{"location":"eastus"}`)
	pools := `,"loadBalancerBackendAddressPools":[` + ref(pool) + `]`
	groups := `,"applicationSecurityGroups":[` + ref(net+"/applicationSecurityGroups/asg") + `]`
	for i, step := range []struct {
		more string
		long bool
	}{{"", false}, {pools, true}, {pools, false}, {pools + groups, true}, {groups, true}, {groups, false}, {"", true}} {
		got := c.do("PUT", nic, nicBody(step.more))
		if long := got.Header.Get("Azure-AsyncOperation") != ""; long != step.long || got.Status != 201-min(i, 1) {
			t.Errorf("step %d: PUT with %q: %d, operation %v, want %v", i, step.more, got.Status, long, step.long)
		}
		c.ended(nic, got)
	}
}

func TestNetworkInterface(t *testing.T) {
	c := start(t)
	c.network()
	first := c.do("PUT", nic, nicBody(""))
	if first.Status != 201 || first.Header.Get("Azure-AsyncOperation") != "" {
		t.Errorf("a network interface is made in the reply: %d %v", first.Status, first.Header)
	}
	got := c.get(nic)
	c.has(got, `{"kind":"Regular","type":"Microsoft.Network/networkInterfaces","properties":{"provisioningState":"Succeeded",
		"ipConfigurations":[{"name":"c",
		"id":"`+nic+`/ipConfigurations/c","type":"Microsoft.Network/networkInterfaces/ipConfigurations",
		"properties":{"provisioningState":"Succeeded",
		"privateIPAddress":"10.0.0.4","privateIPAllocationMethod":"Dynamic","primary":true,"privateIPAddressVersion":"IPv4",
		"subnet":`+ref(subnet)+`}}],
		"dnsSettings":{"dnsServers":[],"appliedDnsServers":[]},"enableAcceleratedNetworking":false,"enableIPForwarding":false,
		"hostedWorkloads":[],
		"tapConfigurations":[],"nicType":"Standard","allowPort25Out":true,"auxiliaryMode":"None","auxiliarySku":"None"}}`)
	if suffix := behaviour.Text(got, "properties.dnsSettings.internalDomainNameSuffix"); !strings.HasSuffix(suffix,
		".bx.internal.cloudapp.net") {
		t.Errorf("internal domain name suffix %q", suffix)
	}
	c.absent(got, "properties.macAddress", "properties.virtualMachine", "properties.primary")
	if got := refs(c.get(subnet), "properties.ipConfigurations"); got != "c" {
		t.Errorf("IP configurations of the subnet: %q", got)
	}
	machine := group + "/providers/Microsoft.Compute/virtualMachines/vm"
	c.put(machine, `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[`+ref(nic)+`]}}}`)
	c.has(c.get(nic), `{"properties":{"virtualMachine":`+ref(machine)+`,"primary":true}}`)
	if mac := behaviour.Text(c.get(nic), "properties.macAddress"); !strings.HasPrefix(mac, "00-0D-3A-") {
		t.Errorf("hardware address %q", mac)
	}
	c.refused("DELETE", nic, "", 400, "NicInUse")
	c.delete(machine)
	c.put(nic, nicBody(`,"privateIPAllocationMethod":"Static","privateIPAddress":"10.0.0.9"`))
	c.has(c.get(nic), `{"properties":{"ipConfigurations":[{"properties":{"privateIPAddress":"10.0.0.9"}}]}}`)
	c.delete(nic)
}

func TestNetworkInterfaceOfBothFamilies(t *testing.T) {
	c := start(t)
	c.network()
	two := func(first, second string) string {
		return `{"location":"eastus","properties":{"ipConfigurations":[{"name":"a","properties":{"subnet":` + ref(subnet) + first + `}},
			{"name":"b","properties":{"subnet":` + ref(subnet) + second + `}}]}}`
	}
	c.has(c.put(nic, two(`,"primary":true`, `,"privateIPAddressVersion":"IPv6"`)), `{"properties":{"ipConfigurations":[
		{"properties":{"privateIPAddress":"10.0.0.4","primary":true}},{"properties":{"privateIPAddress":"fd00:1::4","primary":false}}]}}`)
	c.refused("PUT", nic, two(`,"primary":true`, `,"primary":true`), 400, "NetworkInterfaceHasMultiplePrimaryIpConfigurations")
	c.refused("PUT", nic, two(`,"privateIPAddressVersion":"IPv6"`, ``), 400, "NetworkInterfacePrimaryIpConfigurationMustBeIPv4")
	c.refused("PUT", nic, `{"location":"eastus","properties":{}}`, 400, "InvalidRequestFormat/NetworkInterfaceMustHaveIpConfiguration")
	c.refused("PUT", nic, nicBody(`,"publicIPAddress":`+ref(publicIP)), 400, "InvalidResourceReference")
	c.refused("PUT", net+"/networkInterfaces/far", strings.Replace(nicBody(""), "eastus", "westus", 1), 400, "InvalidResourceReference")
}

func TestPublicAddressHasOneHolder(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	with := nicBody(`,"publicIPAddress":` + ref(publicIP))
	c.put(nic, with)
	c.has(c.get(publicIP), `{"properties":{"ipConfiguration":`+ref(nic+"/ipConfigurations/c")+`}}`)
	c.refused("PUT", net+"/networkInterfaces/other", with, 400, "PublicIPAddressInUse")
	c.refused("PUT", balancer, balancerBody(""), 400, "PublicIPAddressInUse")
	c.refused("PUT", net+"/natGateways/gateway", `{`+standard+`,"properties":{"publicIpAddresses":[`+ref(publicIP)+`]}}`, 400,
		"PublicIPAddressInUse")
	got := c.refused("DELETE", publicIP, "", 400, "PublicIPAddressCannotBeDeleted")
	if message := behaviour.Text(got.Body, "error.message"); !strings.Contains(message, nic+"/ipConfigurations/c") {
		t.Errorf("the error does not name the holder of the address: %s", message)
	}
	c.put(nic, nicBody(""))
	c.delete(publicIP)
}

func TestRouteTable(t *testing.T) {
	c := start(t)
	c.has(c.put(table, `{"location":"eastus"}`), `{"properties":{"disableBgpRoutePropagation":false,"routes":[]}}`)
	c.has(c.put(table+"/routes/r",
		`{"properties":{"addressPrefix":"10.244.0.0/24","nextHopType":"virtualAppliance","nextHopIpAddress":"10.0.0.4"}}`),
		`{"type":"Microsoft.Network/routeTables/routes","properties":{"provisioningState":"Succeeded","addressPrefix":"10.244.0.0/24",
		"nextHopType":"VirtualAppliance","nextHopIpAddress":"10.0.0.4","hasBgpOverride":false}}`)
	for body, code := range map[string]string{
		`{"properties":{"nextHopType":"None"}}`:                                           "InvalidRequestFormat/MissingRequiredProperty",
		`{"properties":{"addressPrefix":"10.1.0.0/16"}}`:                                  "InvalidRequestFormat/MissingRequiredProperty",
		`{"properties":{"addressPrefix":"10.1.0.0/16","nextHopType":"Teleport"}}`:         "InvalidRequestFormat/InvalidJson",
		`{"properties":{"addressPrefix":"10.1.0.0/16","nextHopType":"VirtualAppliance"}}`: "MissingNextHopIpAddress",
		`{"properties":{"addressPrefix":"10.1.0.0/16","nextHopType":"VirtualAppliance",
			"nextHopIpAddress":"me"}}`: "InvalidNextHopIpAddress",
		`{"properties":{"addressPrefix":"10.1.0.0/16","nextHopType":"None",
			"nextHopIpAddress":"10.0.0.4"}}`: "NextHopIpAddressNotAllowed",
		`{"properties":{"addressPrefix":"10.1.0.1/16","nextHopType":"None"}}`:   "InvalidCIDRNotation",
		`{"properties":{"addressPrefix":"everywhere","nextHopType":"None"}}`:    "InvalidAddressPrefixFormat",
		`{"properties":{"addressPrefix":"10.244.0.0/24","nextHopType":"None"}}`: "RouteConflict",
	} {
		c.refused("PUT", table+"/routes/bad", body, 400, code)
	}
	c.put(table+"/routes/tag", `{"properties":{"addressPrefix":"Storage","nextHopType":"Internet"}}`)
	c.network()
	c.put(subnet, `{"properties":{"addressPrefix":"10.0.0.0/24","routeTable":`+ref(table)+`}}`)
	if got := refs(c.get(table), "properties.subnets"); got != "nodes" {
		t.Errorf("subnets of the route table: %q", got)
	}
	c.refused("DELETE", table, "", 400, "InUseRouteTableCannotBeDeleted")
	c.put(subnet, `{"properties":{"addressPrefix":"10.0.0.0/24"}}`)
	c.delete(table)
}

func TestRouteTableLimit(t *testing.T) {
	c := start(t)
	routes := func(n int) string {
		var parts []string
		for i := range n {
			parts = append(parts,
				fmt.Sprintf(`{"name":"r%d","properties":{"addressPrefix":"10.%d.%d.0/24","nextHopType":"None"}}`, i, i/256, i%256))
		}
		return `{"location":"eastus","properties":{"routes":[` + strings.Join(parts, ",") + `]}}`
	}
	c.put(table, routes(400))
	c.refused("PUT", table, routes(401), 400, "RouteCountLimitReached")
}

func TestNATGateway(t *testing.T) {
	c := start(t)
	c.network()
	gateway := net + "/natGateways/gateway"
	c.refused("PUT", gateway, `{`+standard+`,"properties":{"publicIpAddresses":[`+ref(publicIP)+`]}}`, 404, "NotFound")
	c.put(publicIP, staticIP)
	c.has(c.put(gateway, `{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIpAddresses":[`+ref(publicIP)+`]}}`),
		`{"sku":{"name":"Standard","tier":"Regional"},"properties":{"idleTimeoutInMinutes":4,"type":"Public","publicIpAddresses":[`+
			ref(publicIP)+`]}}`)
	c.has(c.get(publicIP), `{"properties":{"natGateway":`+ref(gateway)+`}}`)
	c.put(subnet, `{"properties":{"addressPrefix":"10.0.0.0/24","natGateway":`+ref(gateway)+`}}`)
	if got := refs(c.get(gateway), "properties.subnets"); got != "nodes" {
		t.Errorf("subnets of the gateway: %q", got)
	}
	c.refused("DELETE", gateway, "", 400, "InUseNatGatewayCannotBeDeleted")
	c.refused("DELETE", publicIP, "", 400, "PublicIPAddressCannotBeDeleted")
	c.put(net+"/publicIPAddresses/basic", `{"location":"eastus"}`)
	c.refused("PUT", net+"/natGateways/other", `{`+standard+`,"properties":{"publicIpAddresses":[`+ref(net+"/publicIPAddresses/basic")+
		`]}}`, 400, "NatGatewayPublicIpAddressSkuNotSupported")
	newer := net + "/natGateways/newer"
	c.put(newer, `{"location":"eastus","sku":{"name":"StandardV2"}}`)
	early, late := c.get(newer+"?api-version=2024-07-01"), c.get(newer+"?api-version=2025-07-01")
	c.has(early, `{"properties":{"scope":"Public"}}`)
	c.absent(early, "properties.flowlogs")
	c.has(late, `{"properties":{"scope":"Public","flowlogs":{"logsVersions":{}}}}`)
	c.absent(late, "properties.type")
	c.put(subnet, `{"properties":{"addressPrefix":"10.0.0.0/24"}}`)
	c.delete(gateway)
	c.delete(publicIP)
}

func TestGroupsOfAddresses(t *testing.T) {
	c := start(t)
	c.put(net+"/applicationSecurityGroups/web", `{"location":"eastus"}`)
	addresses := net + "/ipGroups/offices"
	c.has(c.put(addresses, `{"location":"eastus","properties":{"ipAddresses":["10.0.0.0/24","10.1.0.1-10.1.0.9","10.2.0.1"]}}`),
		`{"properties":{"provisioningState":"Succeeded","firewalls":[],"firewallPolicies":[]}}`)
	c.refused("PUT", addresses, `{"location":"eastus","properties":{"ipAddresses":["10.1.0.9-10.1.0.1"]}}`, 400, "InvalidIpGroupAddress")
	if got := c.do("DELETE", addresses, ""); got.Status != 200 {
		t.Errorf("delete of an IP group: %d", got.Status)
	}
}

func TestUsages(t *testing.T) {
	c := start(t)
	c.put(publicIP, staticIP)
	c.put(net+"/publicIPAddresses/basic", `{"location":"eastus"}`)
	counts := map[string]any{}
	for _, usage := range behaviour.Objects(c.get(subscription+"/providers/Microsoft.Network/locations/eastus/usages"), "value") {
		counts[behaviour.Text(usage, "name.value")] = usage["currentValue"]
	}
	if counts["PublicIPAddresses"] != 2.0 || counts["StaticPublicIPAddresses"] != 1.0 || counts["LoadBalancers"] != 0.0 {
		t.Errorf("usages: %v", counts)
	}
}

func TestDeletingTheGroupTakesEverything(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	c.put(balancer, balancerBody(""))
	c.put(nic, nicBody(`,"loadBalancerBackendAddressPools":[`+ref(pool)+`]`))
	if got := c.do("DELETE", group, ""); got.Status != 202 {
		t.Fatalf("delete of the group: %d %v", got.Status, got.Body)
	}
	if got := c.do("GET", nic, ""); got.Code() != "ResourceGroupNotFound" {
		t.Errorf("a network interface after its group: %d %v", got.Status, got.Body)
	}
	c.put(group, `{"location":"eastus"}`)
	for _, list := range []string{"loadBalancers", "networkInterfaces", "publicIPAddresses", "virtualNetworks"} {
		if left := behaviour.Objects(c.get(net+"/"+list), "value"); len(left) > 0 {
			t.Errorf("%s after their group was deleted: %v", list, left)
		}
	}
}

// TestDelegations checks that what a subnet can be delegated to is listed with the actions that a delegation shows.
func TestDelegations(t *testing.T) {
	c := start(t)
	const at = "/providers/Microsoft.Network/locations/eastus/availableDelegations"
	listed := behaviour.Objects(c.get(group+at), "value")
	servers := c.put(vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s",
		"properties":{"addressPrefix":"10.0.0.0/24","delegations":[{"name":"d",
		"properties":{"serviceName":"Microsoft.DBforMySQL/serversv2"}}]}}]}}`)
	c.has(servers, `{"properties":{"subnets":[{"properties":{"delegations":[{"properties":{"actions":
		["Microsoft.Network/virtualNetworks/subnets/join/action"]}}]}}]}}`)
	for i, d := range behaviour.Objects(c.get(subscription+at), "value") {
		service := behaviour.Text(d, "serviceName")
		c.put(vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"nodes",
			"properties":{"addressPrefix":"10.0.0.0/24","delegations":[{"name":"d","properties":{"serviceName":"`+
			strings.ToUpper(service)+`"}}]}}]}}`)
		delegation := behaviour.Objects(c.get(subnet), "properties.delegations")[0]
		actions := behaviour.Texts(delegation, "properties.actions")
		if len(actions) == 0 || !slices.Equal(actions, behaviour.Texts(d, "actions")) {
			t.Errorf("%s: delegated with the actions %v, listed with %v", service, actions, d["actions"])
		}
		want := strings.Replace(group, "resourceGroups", "resourceGroup", 1) +
			"/providers/Microsoft.Network/availableDelegations/" + behaviour.Text(d, "name")
		if got := behaviour.Text(listed[i], "id"); got != want {
			t.Errorf("listed in the group as %s, want %s", got, want)
		}
	}
}
