package network_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
)

// Azure converts values that clients spell in another way, and fills in what they leave out.
func TestValuesAreConvertedAndCompleted(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	for name, test := range map[string]struct{ path, body, want string }{
		"texts for booleans and numbers": {net + "/publicIPAddresses/a",
			`{"location":"eastus","sku":{"name":"standard","tier":"regional"},"properties":{"publicIPAllocationMethod":"static",
			"publicIPAddressVersion":"ipv4","idleTimeoutInMinutes":"7"}}`,
			`{"sku":{"name":"Standard","tier":"Regional"},"properties":{"publicIPAllocationMethod":"Static",
			"publicIPAddressVersion":"IPv4","idleTimeoutInMinutes":7}}`},
		"numbers for texts": {nsg, `{"location":"eastus","properties":{"securityRules":[{"name":"r","properties":{"priority":"100",
			"direction":"inbound","access":"ALLOW","protocol":"tcp","sourcePortRange":"*","destinationPortRange":80,
			"sourceAddressPrefix":"*","destinationAddressPrefix":"*"}}]}}`,
			`{"properties":{"securityRules":[{"properties":{"priority":100,"direction":"Inbound","access":"Allow","protocol":"Tcp",
			"destinationPortRange":"80"}}]}}`},
		"empty objects": {net + "/virtualNetworks/b", `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.9.0.0/16"]},
			"dhcpOptions":{},"enableDdosProtection":"False"}}`,
			`{"properties":{"dhcpOptions":{"dnsServers":[]},"enableDdosProtection":false,"subnets":[]}}`},
		"parts of a load balancer": {balancer, balancerBody(`,
			"inboundNatRules":[{"name":"n","properties":{"frontendIPConfiguration":` + ref(frontend) + `,"backendAddressPool":` + ref(pool) + `,
				"frontendPortRangeStart":"1000","frontendPortRangeEnd":1010,"backendPort":22,"protocol":"tcp"}}],
			"inboundNatPools":[{"name":"p","properties":{"frontendIPConfiguration":` + ref(frontend) + `,"protocol":"tcp",
				"frontendPortRangeStart":50000,"frontendPortRangeEnd":"50119","backendPort":22}}]`),
			`{"properties":{"inboundNatRules":[{"properties":{"frontendPort":0,"frontendPortRangeStart":1000,"protocol":"Tcp"}}],
			"inboundNatPools":[{"properties":{"protocol":"Tcp","frontendPortRangeEnd":50119,"enableFloatingIP":false,"enableTcpReset":false,
				"enableDestinationServiceEndpoint":false,"allowBackendPortConflict":false,"idleTimeoutInMinutes":4}}]}}`},
		"network watcher": {net + "/networkWatchers/w", `{"location":"eastus","properties":{"runningOperationIds":["x"]}}`,
			`{"type":"Microsoft.Network/networkWatchers","properties":{"runningOperationIds":[],"provisioningState":"Succeeded"}}`},
		"local network gateway": {net + "/localNetworkGateways/l", `{"location":"eastus","properties":{"gatewayIpAddress":"1.2.3.4",
			"localNetworkAddressSpace":{},"bgpSettings":{"asn":"65010","bgpPeeringAddress":"10.1.0.4"}}}`,
			`{"properties":{"localNetworkAddressSpace":{"addressPrefixes":[]},"bgpSettings":{"asn":65010,"peerWeight":0}}}`},
		"DNS set without its record": {c.zone() + "/CNAME/x", `{"properties":{"TTL":3600}}`,
			`{"name":"x","properties":{"TTL":3600,"provisioningState":"Succeeded"}}`},
	} {
		got := c.put(test.path, test.body)
		if c.has(got, test.want); t.Failed() {
			t.Fatal(name)
		}
	}
	c.refused("PUT", net+"/networkWatchers/w", `{"location":"eastus","properties":{"runningOperationIds":7}}`, 200, "")
	c.refused("PUT", net+"/connections/x", `{"location":"eastus","properties":{"routingWeight":"many"}}`, 400, "InvalidRequestFormat/InvalidJson")
	c.refused("PUT", net+"/connections/x", `{"location":"eastus","properties":{"enableBgp":{}}}`, 400, "InvalidRequestFormat/InvalidJson")
}

func (c cloud) zone() string {
	c.Helper()
	c.put(public, `{"location":"global"}`)
	return public
}

// The parts of a document have ids, types, etags and states, and refer back.
func TestPartsOfATableType(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	const gateway = net + "/virtualNetworkGateways/g"
	got := c.put(gateway, `{"location":"eastus","properties":{"gatewayType":"vpn","vpnType":"routebased","sku":{"name":"VpnGw1","tier":"VpnGw1"},
		"ipConfigurations":[{"name":"c","properties":{"publicIPAddress":`+ref(publicIP)+`,"subnet":`+ref(subnet)+`}}]}}`)
	c.has(got, `{"properties":{"gatewayType":"Vpn","vpnType":"RouteBased","activeActive":false,"bgpSettings":{"asn":65515},
		"ipConfigurations":[{"id":"`+gateway+`/ipConfigurations/c","type":"Microsoft.Network/virtualNetworkGateways/ipConfigurations",
		"properties":{"privateIPAllocationMethod":"Dynamic","provisioningState":"Succeeded"}}]}}`)
	if etag := behaviour.Text(got, "etag"); etag == "" || etag != behaviour.Text(behaviour.Objects(got, "properties.ipConfigurations")[0], "etag") {
		t.Errorf("etag %q", etag)
	}
	again := c.put(gateway, strings.Replace(marshal(t, got), `"VpnGw1"`, `"vpngw2"`, 1))
	if behaviour.Text(again, "properties.resourceGuid") != behaviour.Text(got, "properties.resourceGuid") {
		t.Errorf("resourceGuid changed: %v", again)
	}
}

// Addresses of a pool are resources of their own.
func TestAddressesOfAPoolHaveIDs(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	c.put(balancer, balancerBody(""))
	got := c.put(pool, `{"properties":{"loadBalancerBackendAddresses":[{"name":"a","properties":{"ipAddress":"10.0.0.9","virtualNetwork":`+
		ref(vnet)+`}}]}}`)
	c.has(got, `{"properties":{"loadBalancerBackendAddresses":[{"name":"a","id":"`+pool+`/loadBalancerBackendAddresses/a",
		"type":"Microsoft.Network/loadBalancers/backendAddressPools/loadBalancerBackendAddresses","etag":"`+
		strings.ReplaceAll(behaviour.Text(got, "etag"), `"`, `\"`)+`","properties":{"ipAddress":"10.0.0.9","provisioningState":"Succeeded"}}]}}`)
}

// A PUT of a virtual network without peerings keeps them.
func TestPeeringsSurviveAPutWithoutThem(t *testing.T) {
	c := start(t)
	c.network()
	const other = net + "/virtualNetworks/other"
	c.put(other, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.200.0.0/16"]}}}`)
	c.put(vnet+"/virtualNetworkPeerings/p", `{"properties":{"remoteVirtualNetwork":`+ref(other)+`}}`)
	const bare = `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16","fd00:1::/48"]}%s}}`
	if got := c.put(vnet, strings.Replace(bare, "%s", "", 1)); len(behaviour.Array(got, "properties.virtualNetworkPeerings")) != 1 {
		t.Errorf("a PUT without peerings removed them: %v", got)
	}
	if got := c.put(vnet, strings.Replace(bare, "%s", `,"virtualNetworkPeerings":[]`, 1)); len(behaviour.Array(got, "properties.virtualNetworkPeerings")) != 0 {
		t.Errorf("a PUT with an empty list keeps peerings: %v", got)
	}
}

// A PUT of a virtual network without subnets keeps them from the API version 2023-09-01 on. An earlier one and an empty list remove them.
func TestSubnetsOfAPutWithoutThem(t *testing.T) {
	for _, tt := range []struct {
		version, more string
		want          int
	}{{"2023-09-01", "", 1}, {"2024-05-01", `,"subnets":null`, 1}, {"2023-06-01", "", 0}, {"2024-05-01", `,"subnets":[]`, 0}} {
		c := start(t)
		c.network()
		got := c.put(vnet+"?api-version="+tt.version,
			`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16","fd00:1::/48"]}`+tt.more+`}}`)
		if n := len(behaviour.Array(got, "properties.subnets")); n != tt.want {
			t.Errorf("api-version %s%s: %d subnets, want %d", tt.version, tt.more, n, tt.want)
		}
	}
}

// Writes of record sets have the etag in a header. The SOA of a private zone has a minimum of ten seconds.
func TestEtagsOfRecordSetWrites(t *testing.T) {
	c := start(t)
	c.put(inside, `{"location":"global"}`)
	for _, test := range []struct{ path, body string }{
		{inside + "/A/a", `{"properties":{"ttl":60,"aRecords":[]}}`}, {c.zone() + "/A/a", `{"properties":{"TTL":60,"ARecords":[]}}`},
	} {
		got := c.do("PUT", test.path, test.body)
		if etag := got.Header.Get("ETag"); etag == "" || etag != behaviour.Text(got.Body, "etag") {
			t.Errorf("PUT %s: ETag %q, body %v", test.path, etag, got.Body)
		}
	}
	c.has(c.get(inside+"/SOA/@"), `{"properties":{"soaRecord":{"minimumTtl":10}}}`)
	c.has(c.get(public+"/SOA/@"), `{"properties":{"SOARecord":{"minimumTTL":300}}}`)
}

// Actions and views of the table answer, actions with 202 as operations with an output.
func TestActionsOfTheTable(t *testing.T) {
	c := start(t)
	c.network()
	c.put(net+"/networkWatchers/w", `{"location":"eastus"}`)
	const flowLog = `{"targetResourceId":"` + vnet + `","properties":{"enabled":true}}`
	got := c.do("POST", net+"/networkWatchers/w/configureFlowLog", flowLog)
	if got.Status != 202 {
		t.Fatalf("configureFlowLog: %d %v", got.Status, got.Body)
	}
	c.ended("configureFlowLog", got)
	c.has(c.do("GET", got.Header.Get("Location"), "").Body, flowLog)
	got = c.do("POST", subnet+"/PrepareNetworkPolicies", `{"serviceName":"Microsoft.Sql/managedInstances"}`)
	if end := c.do("GET", got.Header.Get("Location"), ""); got.Status != 202 || end.Status != 204 {
		t.Errorf("PrepareNetworkPolicies: %d, then %d", got.Status, end.Status)
	}
	c.has(c.get(subnet+"/ResourceNavigationLinks"), `{"value":[]}`)
	c.has(c.get(vnet+"/usages"), `{"value":[{"id":"`+subnet+`","currentValue":0,"limit":251,"unit":"Count"}]}`)
}

// The catalogues of the table answer, with the subscription and the location of the request.
func TestCataloguesOfTheTable(t *testing.T) {
	c := start(t)
	const here = subscription + "/providers/Microsoft.Network/"
	for path, want := range map[string]string{
		"locations/eastus/serviceTags": `{"name":"Public","type":"Microsoft.Network/serviceTags"}`,
		"applicationGatewayAvailableSslOptions/default/predefinedPolicies/AppGwSslPolicy20220101S": `{"name":"AppGwSslPolicy20220101S"}`,
		"locations/eastus/autoApprovedPrivateLinkServices":                                         `{"value":[]}`,
	} {
		c.has(c.get(here+path), want)
	}
	delegations := behaviour.Objects(c.get(here+"locations/eastus/availableDelegations"), "value")
	if len(delegations) == 0 || !strings.HasPrefix(behaviour.Text(delegations[0], "id"), here) {
		t.Errorf("delegations %v", delegations)
	}
}

// A network interface of a machine tells what applies to it.
func TestEffectiveRoutesAndRules(t *testing.T) {
	c := start(t)
	c.put(table, `{"location":"eastus","properties":{"routes":[{"name":"all","properties":{"addressPrefix":"0.0.0.0/0","nextHopType":
		"VirtualAppliance","nextHopIpAddress":"10.0.0.9"}}]}}`)
	c.put(nsg, `{"location":"eastus","properties":{"securityRules":[{"name":"web","properties":{"priority":100,"direction":"Inbound",
		"access":"Allow","protocol":"Tcp","sourcePortRange":"*","destinationPortRange":"80","sourceAddressPrefix":"*",
		"destinationAddressPrefix":"*"}}]}}`)
	c.put(vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[
		{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/24","routeTable":`+ref(table)+`,"networkSecurityGroup":`+ref(nsg)+`,
		"serviceEndpoints":[{"service":"Microsoft.Storage"},{"service":"Microsoft.KeyVault"}]}}]}}`)
	c.has(c.get(subnet), `{"properties":{"serviceEndpoints":[{"locations":["eastus","westus"]},{"locations":["*"]}]}}`)
	c.put(nic, nicBody(""))
	c.refused("POST", nic+"/effectiveRouteTable", "", 400, "NetworkInterfaceNotAttachedToVM")
	c.put(group+"/providers/Microsoft.Compute/virtualMachines/m",
		`{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[`+ref(nic)+`]}}}`)
	output := func(action string) behaviour.Object {
		got := c.do("POST", nic+"/"+action, "")
		c.ended(action, got)
		return c.do("GET", got.Header.Get("Location"), "").Body
	}
	routes := behaviour.Objects(output("effectiveRouteTable"), "value")
	c.has(routes[0], `{"source":"Default","state":"Active","addressPrefix":["10.0.0.0/16"],"nextHopType":"VnetLocal"}`)
	c.has(routes[1], `{"source":"Default","state":"Invalid","addressPrefix":["0.0.0.0/0"],"nextHopType":"Internet"}`)
	c.has(routes[len(routes)-1], `{"name":"all","source":"User","nextHopType":"VirtualAppliance","nextHopIpAddress":["10.0.0.9"]}`)
	groups := behaviour.Objects(output("effectiveNetworkSecurityGroups"), "value")
	if len(groups) != 1 || len(behaviour.Objects(groups[0], "effectiveSecurityRules")) != 7 {
		t.Fatalf("groups %v", groups)
	}
	c.has(groups[0], `{"networkSecurityGroup":`+ref(nsg)+`,"association":{"subnet":`+ref(subnet)+`}}`)
	c.has(behaviour.Objects(groups[0], "effectiveSecurityRules")[0],
		`{"name":"securityRules/web","protocol":"Tcp","destinationPortRanges":["80-80"],"sourcePortRange":"0-65535"}`)
}

// The shared key of a connection is a resource of its own.
func TestSharedKeyOfAConnection(t *testing.T) {
	c := start(t)
	const connection = net + "/connections/c"
	got := c.put(connection, `{"location":"eastus","properties":{"connectionType":"IPsec","sharedKey":"first"}}`)
	c.absent(got, "properties.sharedKey", "$sharedKey")
	c.has(c.get(connection+"/sharedkey"), `{"value":"first"}`)
	c.has(c.do("PUT", connection+"/sharedkey", `{"value":"second"}`).Body, `{"value":"second"}`)
	c.put(connection, `{"location":"eastus","properties":{"connectionType":"IPsec"}}`)
	c.has(c.get(connection+"/sharedkey"), `{"value":"second"}`)
	c.has(c.do("POST", connection+"/sharedkey/reset", `{"keyLength":10}`).Body, `{"keyLength":10}`)
	if key := behaviour.Text(c.get(connection+"/sharedkey"), "value"); len(key) != 10 {
		t.Errorf("key %q", key)
	}
	c.refused("GET", net+"/connections/none/sharedkey", "", 404, "ResourceNotFound")
}

// Only {"id": ...} must refer to an existing resource. Ids in lists of texts are looked up later.
func TestIdsInListsAreNotChecked(t *testing.T) {
	c := start(t)
	c.network()
	const missing = net + "/expressRouteCircuits/none"
	c.put(net+"/serviceEndpointPolicies/p", `{"location":"eastus","properties":{"serviceEndpointPolicyDefinitions":[{"name":"d","properties":{
		"service":"Microsoft.Storage","serviceResources":["`+group+`/providers/Microsoft.Storage/storageAccounts/none"]}}]}}`)
	c.refused("PUT", net+"/connections/c", `{"location":"eastus","properties":{"peer":`+ref(missing)+`}}`, 400, "InvalidResourceReference")
}

// A virtual network gateway lists its connections.
func TestConnectionsOfAGateway(t *testing.T) {
	c := start(t)
	const gateway = net + "/virtualNetworkGateways/g"
	c.put(gateway, `{"location":"eastus","properties":{"gatewayType":"Vpn"}}`)
	c.put(net+"/connections/c", `{"location":"eastus","properties":{"virtualNetworkGateway1":`+ref(gateway)+`}}`)
	c.has(c.get(gateway+"/connections"), `{"value":[{"name":"c"}]}`)
}

// A VPN gateway speaks BGP at the last address of its subnet. A firewall has the first address.
func TestAddressesOfGateways(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	configuration := `{"name":"c","properties":{"publicIPAddress":` + ref(publicIP) + `,"subnet":` + ref(subnet) + `}}`
	const gateway = net + "/virtualNetworkGateways/g"
	got := c.put(gateway, `{"location":"eastus","properties":{"gatewayType":"Vpn","ipConfigurations":[`+configuration+`]}}`)
	c.has(got, `{"properties":{"vpnGatewayGeneration":"Generation1","bgpSettings":{"bgpPeeringAddress":"10.0.0.254","bgpPeeringAddresses":[
		{"ipconfigurationId":"`+gateway+`/ipConfigurations/c","defaultBgpIpAddresses":["10.0.0.254"],"customBgpIpAddresses":[],
		"tunnelIpAddresses":["`+behaviour.Text(c.get(publicIP), "properties.ipAddress")+`"]}]}}}`)
	c.has(c.put(net+"/virtualNetworkGateways/e", `{"location":"eastus","properties":{"gatewayType":"ExpressRoute"}}`),
		`{"properties":{"vpnGatewayGeneration":"None"}}`)
	c.has(c.put(net+"/azureFirewalls/f", `{"location":"eastus","properties":{"ipConfigurations":[{"name":"c","properties":{"subnet":`+
		ref(subnet)+`}}]}}`), `{"properties":{"ipConfigurations":[{"properties":{"privateIPAddress":"10.0.0.4"}}]}}`)
	made := c.do("PUT", net+"/networkWatchers/w", `{"location":"eastus"}`)
	if behaviour.Text(made.Body, "properties.provisioningState") != "Succeeded" {
		t.Errorf("a network watcher is not ready at once: %v", made.Body)
	}
}

func TestProtectionOfPublicAddresses(t *testing.T) {
	c := start(t)
	const plan, own, other = net + "/ddosProtectionPlans/plan", net + "/publicIPAddresses/own", net + "/publicIPAddresses/other"
	const standard = `{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"`
	c.has(c.put(plan, `{"location":"eastus"}`), `{"properties":{"publicIPAddresses":[],"virtualNetworks":[]}}`)
	c.put(own, standard+`,"ddosSettings":{"protectionMode":"Enabled","ddosProtectionPlan":{"id":"`+plan+`"}}}}`)
	c.put(other, standard+`}}`)
	c.has(c.get(plan), `{"properties":{"publicIPAddresses":[{"id":"`+own+`"}]}}`)
	c.put(vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"enableDdosProtection":true,
		"ddosProtectionPlan":{"id":"`+plan+`"},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`)
	c.put(net+"/networkInterfaces/n", `{"location":"eastus","properties":{"ipConfigurations":[{"name":"c","properties":{
		"subnet":{"id":"`+vnet+`/subnets/s"},"publicIPAddress":{"id":"`+other+`"}}}]}}`)
	for id, want := range map[string]string{
		own:   `{"isWorkloadProtected":"True","ddosProtectionPlanId":"` + plan + `","publicIpAddressId":"` + own + `"}`,
		other: `{"isWorkloadProtected":"False","publicIpAddressId":"` + other + `"}`,
		vnet: `{"value":[{"isWorkloadProtected":"True","ddosProtectionPlanId":"` + plan + `",
			"publicIpAddressId":"` + other + `"}]}`,
	} {
		started := c.do("POST", id+"/ddosProtectionStatus", "")
		c.ended(id, started)
		c.has(c.do("GET", started.Header.Get("Location"), "").Body, want)
	}
}

// A port has two links, whatever a request names. A circuit on it needs no provider.
func TestLinksOfAPort(t *testing.T) {
	c := start(t)
	const port = net + "/expressRoutePorts/port"
	const body = `{"location":"eastus","properties":{"peeringLocation":"here","bandwidthInGbps":100,"encapsulation":"QinQ","links":[
		{"name":"link1","properties":{"adminState":"Enabled"}}]}}`
	for range 2 {
		c.has(c.put(port, body), `{"properties":{"links":[{"name":"link1","properties":{"adminState":"Enabled"}},
			{"name":"link2","properties":{"adminState":"Disabled"}}]}}`)
	}
	const circuit = net + "/expressRouteCircuits/c"
	c.has(c.put(circuit, `{"location":"eastus","sku":{"name":"Premium_MeteredData"},"properties":{"expressRoutePort":{"id":"`+port+`"},
		"bandwidthInGbps":10}}`), `{"properties":{"serviceProviderProvisioningState":"Provisioned"}}`)
	c.has(c.get(port), `{"properties":{"circuits":[{"id":"`+circuit+`"}]}}`)
}

// The configurations of a virtual WAN are those of the gateways in its hubs.
func TestServerConfigurationsOfAWAN(t *testing.T) {
	c := start(t)
	const wan, hub, configuration = net + "/virtualWans/w", net + "/virtualHubs/h", net + "/vpnServerConfigurations/v"
	c.put(wan, `{"location":"eastus"}`)
	c.put(hub, `{"location":"eastus","properties":{"addressPrefix":"10.1.0.0/23","virtualWan":{"id":"`+wan+`"}}}`)
	c.put(configuration, `{"location":"eastus"}`)
	c.put(net+"/p2svpnGateways/g", `{"location":"eastus","properties":{"virtualHub":{"id":"`+hub+`"},
		"vpnServerConfiguration":{"id":"`+configuration+`"}}}`)
	started := c.do("POST", wan+"/vpnServerConfigurations", "{}")
	c.ended(wan, started)
	c.has(c.do("GET", started.Header.Get("Location"), "").Body, `{"vpnServerConfigurationResourceIds":["`+configuration+`"]}`)
}

// The hash in a name with a scope is the same for all addresses of the scope.
func TestScopesOfDomainNames(t *testing.T) {
	c := start(t)
	name := func(address, scope string) string {
		body := `{"location":"eastus","properties":{"publicIPAllocationMethod":"Static","dnsSettings":{"domainNameLabel":"` + address +
			`label","domainNameLabelScope":"` + scope + `"}},"sku":{"name":"Standard"}}`
		first := behaviour.Text(c.put(net+"/publicIPAddresses/"+address, body), "properties.dnsSettings.fqdn")
		if again := behaviour.Text(c.put(net+"/publicIPAddresses/"+address, body), "properties.dnsSettings.fqdn"); again != first {
			t.Errorf("the name of the scope %s is %s, then %s", scope, first, again)
		}
		return strings.TrimPrefix(first, address+"label.")
	}
	if a, b := name("aaa", "TenantReuse"), name("bbb", "TenantReuse"); a != b || strings.Count(a, ".") != 4 {
		t.Errorf("the names of two addresses of a tenant end with %s and %s", a, b)
	}
	if a, b := name("ccc", "NoReuse"), name("ddd", "NoReuse"); a == b {
		t.Errorf("the names of two addresses without reuse end with %s", a)
	}
}
