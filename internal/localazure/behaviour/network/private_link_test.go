package network_test

import (
	"fmt"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

const (
	service  = net + "/privateLinkServices/pls"
	endpoint = net + "/privateEndpoints/pe"
	zone     = net + "/privateDnsZones/privatelink.file.core.windows.net"
)

// linkable creates a network with a subnet for private link services, and an internal load balancer.
func (c cloud) linkable() {
	c.Helper()
	c.put(vnet, `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},
		"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/24","privateLinkServiceNetworkPolicies":"Disabled"}},
		{"name":"closed","properties":{"addressPrefix":"10.0.1.0/24"}}]}}`)
	c.put(balancer, `{`+standard+`,"properties":{"frontendIPConfigurations":[{"name":"f","properties":{"subnet":`+ref(subnet)+`}}]}}`)
}

func serviceBody(subnet string) string {
	return `{"location":"eastus","properties":{"loadBalancerFrontendIpConfigurations":[` + ref(frontend) + `],
		"ipConfigurations":[{"name":"c","properties":{"privateIPAddressVersion":"IPv4","subnet":` + ref(subnet) + `}}]}}`
}

func endpointBody(to, more string) string {
	return `{"location":"eastus","properties":{"subnet":` + ref(subnet) +
		`,"privateLinkServiceConnections":[{"name":"link","properties":{"privateLinkServiceId":"` + to + `"` + more + `}}]}}`
}

// TestLongNameOfAPrivateLinkService checks that only the name itself counts, not the name of the interface
// that Azure creates for it.
func TestLongNameOfAPrivateLinkService(t *testing.T) {
	c := start(t)
	c.linkable()
	const longest = 80
	c.put(net+"/privateLinkServices/"+strings.Repeat("p", longest), serviceBody(subnet))
	c.refused("PUT", net+"/privateLinkServices/"+strings.Repeat("p", longest+1), serviceBody(subnet), 400, "InvalidResourceName")
}

func TestPrivateLink(t *testing.T) {
	c := start(t)
	c.linkable()
	etag := c.get(balancer)["etag"]
	got := c.put(service, serviceBody(subnet))
	if c.get(balancer)["etag"] == etag {
		t.Error("a load balancer has its old etag after a private link service was added")
	}
	c.has(got, `{"properties":{"provisioningState":"Succeeded","fqdns":[],"enableProxyProtocol":false,"privateEndpointConnections":[],
		"loadBalancerFrontendIpConfigurations":[`+ref(frontend)+`],"ipConfigurations":[{"name":"c",
		"type":"Microsoft.Network/privateLinkServices/ipConfigurations",
		"properties":{"provisioningState":"Succeeded","privateIPAllocationMethod":"Dynamic","primary":true,
		"privateIPAddressVersion":"IPv4"}}]}}`)
	if alias := behaviour.Text(got, "properties.alias"); !strings.HasPrefix(alias, "pls.") ||
		!strings.HasSuffix(alias, ".eastus.azure.privatelinkservice") {
		t.Errorf("alias %q", alias)
	}
	own := refs(got, "properties.networkInterfaces")
	c.has(c.get(net+"/networkInterfaces/"+own), `{"properties":{"privateLinkService":`+ref(service)+
		`,"ipConfigurations":[{"properties":{"privateIPAddress":"10.0.0.5"}}]}}`)
	c.refused("DELETE", net+"/networkInterfaces/"+own, "", 400, "NicInUse")
	if again := refs(c.put(service, serviceBody(subnet)), "properties.networkInterfaces"); again != own {
		t.Errorf("a second PUT makes another interface: %s, was %s", again, own)
	}
	c.has(c.put(endpoint,
		endpointBody(service, "")), `{"properties":{"provisioningState":"Succeeded","manualPrivateLinkServiceConnections":[],
		"customNetworkInterfaceName":"","ipConfigurations":[],"customDnsConfigs":[],"isIPv6EnabledPrivateEndpoint":false,
		"privateLinkServiceConnections":[{"name":"link","properties":{"privateLinkServiceConnectionState":{"status":"Approved",
		"description":"Auto Approved","actionsRequired":"None"}}}]}}`)
	c.refused("DELETE", balancer, "", 400, "CannotDeleteLoadBalancerWithPrivateLinkService")
	c.refused("DELETE", service, "", 400, "PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted")
	c.refused("DELETE", subnet, "", 400, "InUseSubnetCannotBeDeleted")
	connection := behaviour.Objects(c.get(service), "properties.privateEndpointConnections")[0]
	c.has(connection, `{"properties":{"privateEndpoint":`+ref(endpoint)+`,"privateLinkServiceConnectionState":{"status":"Approved"}}}`)
	path := behaviour.Text(connection, "id")
	c.put(path, `{"properties":{"privateLinkServiceConnectionState":{"status":"Rejected","description":"no"}}}`)
	c.has(c.get(endpoint),
		`{"properties":{"privateLinkServiceConnections":[{"properties":{"privateLinkServiceConnectionState":{"status":"Rejected",
			"description":"no"}}}]}}`)
	c.delete(path)
	c.has(c.get(endpoint),
		`{"properties":{"privateLinkServiceConnections":[{"properties":{"privateLinkServiceConnectionState":{"status":"Disconnected"}}}]}}`)
	c.delete(service)
	c.delete(endpoint)
	c.delete(balancer)
	if left := behaviour.Objects(c.get(net+"/networkInterfaces"), "value"); len(left) > 0 {
		t.Errorf("interfaces of what is gone: %v", left)
	}
	c.delete(vnet)
}

// A connection from an approved subscription need not wait.
func TestAutoApproval(t *testing.T) {
	c := start(t)
	c.linkable()
	manual := strings.Replace(endpointBody(service, ""), "privateLinkServiceConnections", "manualPrivateLinkServiceConnections", 1)
	for approval, want := range map[string]string{"": "Pending", `"another"`: "Pending", `"another",
		"` + strings.ToUpper(string(azure.ID(service).Subscription())) + `"`: "Approved"} {
		c.put(service,
			strings.Replace(serviceBody(subnet), `"ipConfigurations"`, `"autoApproval":{"subscriptions":[`+approval+
				`]},"ipConfigurations"`, 1))
		state := `"privateLinkServiceConnectionState":{"status":"` + want + `"}`
		c.has(c.put(endpoint, manual), `{"properties":{"manualPrivateLinkServiceConnections":[{"properties":{`+state+`}}]}}`)
		c.has(c.get(service), `{"properties":{"privateEndpointConnections":[{"properties":{`+state+`}}]}}`)
		c.delete(endpoint)
	}
}

// A private link service can have network interfaces as backends, but no IP addresses.
func TestPrivateLinkAndPoolsOfAddresses(t *testing.T) {
	const refusal = "PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer"
	c := start(t)
	c.linkable()
	addresses := `{"properties":{"virtualNetwork":` + ref(vnet) +
		`,"loadBalancerBackendAddresses":[{"name":"node1","properties":{"ipAddress":"10.0.0.4"}}]}}`
	c.put(pool, addresses)
	c.refused("PUT", service, serviceBody(subnet), 400, refusal)
	c.put(pool, `{"properties":{"loadBalancerBackendAddresses":[]}}`)
	c.put(service, serviceBody(subnet))
	c.refused("PUT", pool, addresses, 400, refusal)
	c.refused("PUT", balancer, `{`+standard+`,"properties":{"frontendIPConfigurations":[{"name":"f","properties":{"subnet":`+ref(subnet)+
		`}}],"backendAddressPools":[{"name":"pool",`+addresses[1:]+`]}}`, 400, refusal)
	c.refused("POST", balancer+"/migrateToIpBased", `{"pools":["pool"]}`, 400, refusal)
	c.delete(service)
	c.put(pool, addresses)
}

// A private link service keeps its addresses, and no other resource can have them.
func TestAddressesOfAPrivateLinkService(t *testing.T) {
	c := start(t)
	c.linkable()
	body := func(wanted ...string) string {
		var all []string
		for i, a := range wanted {
			all = append(all,
				fmt.Sprintf(`{"name":"c-%s","properties":{"primary":%v,"privateIPAllocationMethod":"Static","privateIPAddress":%q,
					"subnet":%s}}`, a, i == 0, a, ref(subnet)))
		}
		return `{"location":"eastus","properties":{"loadBalancerFrontendIpConfigurations":[` + ref(frontend) + `],"ipConfigurations":[` +
			strings.Join(all, ",") + `]}}`
	}
	c.put(service, body("10.0.0.20"))
	c.put(service, body("10.0.0.20", "10.0.0.21"))
	got := c.put(service, body("10.0.0.21", "10.0.0.20"))
	own := refs(got, "properties.networkInterfaces")
	c.has(c.get(net+"/networkInterfaces/"+own),
		`{"properties":{"ipConfigurations":[{"properties":{"privateIPAddress":"10.0.0.21"}},
			{"properties":{"privateIPAddress":"10.0.0.20"}}]}}`)
	c.refused("PUT", net+"/privateLinkServices/other", body("10.0.0.20"), 400, "PrivateIPAddressIsAllocated")
	c.put(service, body("10.0.0.21"))
	c.put(net+"/privateLinkServices/other", body("10.0.0.20"))
}

func TestDeletingAnEndpointDisconnectsIt(t *testing.T) {
	c := start(t)
	c.linkable()
	c.put(service, serviceBody(subnet))
	c.put(endpoint, strings.Replace(endpointBody(service, ""), "privateLinkServiceConnections", "manualPrivateLinkServiceConnections", 1))
	c.has(c.get(endpoint),
		`{"properties":{"manualPrivateLinkServiceConnections":[{"properties":{"privateLinkServiceConnectionState":{
			"status":"Pending"}}}]}}`)
	if n := len(behaviour.Objects(c.get(subnet), "properties.privateEndpoints")); n != 1 {
		t.Errorf("%d private endpoints of the subnet", n)
	}
	c.delete(endpoint)
	c.has(c.get(service), `{"properties":{"privateEndpointConnections":[]}}`)
	c.delete(service)
}

func TestPrivateLinkRefusals(t *testing.T) {
	c := start(t)
	c.linkable()
	c.refused("PUT", service, serviceBody(vnet+"/subnets/closed"), 400,
		"PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled")
	c.refused("PUT", service, strings.ReplaceAll(serviceBody(subnet), frontend, frontend+"x"), 400, "InvalidResourceReference")
	c.refused("PUT", service, `{"location":"eastus"}`, 400, "InvalidRequestFormat/MissingRequiredProperty")
	c.refused("PUT", endpoint, endpointBody(service, ""), 400, "InvalidResourceReference")
	c.refused("PUT", endpoint, `{"location":"eastus","properties":{"subnet":`+ref(subnet)+`}}`, 400,
		"InvalidRequestFormat/PrivateEndpointMustHaveOneConnection")
	c.put(service, serviceBody(subnet))
	c.refused("PUT", balancer, `{`+standard+`,"properties":{"frontendIPConfigurations":[{"name":"other","properties":{"subnet":`+
		ref(subnet)+`}}]}}`, 400, "CannotDeleteLoadBalancerWithPrivateLinkService")
	c.refused("PUT", service+"/privateEndpointConnections/made-up", `{"properties":{}}`, 400,
		"InvalidRequestFormat/PrivateEndpointConnectionNotFound")
	for _, nic := range behaviour.Objects(c.get(net+"/networkInterfaces"), "value") {
		if owner := behaviour.RefID(nic, "properties.privateLinkService"); owner != azure.ID(service) {
			t.Errorf("an interface of a refused endpoint: %v", nic)
		}
	}
}

func TestSubnetOfAPrivateLinkService(t *testing.T) {
	c := start(t)
	c.linkable()
	c.put(service, serviceBody(subnet))
	closed := `{"properties":{"addressPrefix":"10.0.0.0/24"}}`
	c.refused("PUT", subnet, closed, 400, "PrivateLinkServiceNetworkPoliciesCannotBeEnabledOnPrivateLinkServiceSubnet")
	c.put(subnet, `{"properties":{"addressPrefix":"10.0.0.0/24","privateLinkServiceNetworkPolicies":"Disabled"}}`)
	c.delete(service)
	c.put(subnet, closed)
}

func TestZoneGroupWritesRecords(t *testing.T) {
	c := start(t)
	c.linkable()
	account := group + "/providers/Microsoft.Storage/storageAccounts/Files"
	c.put(account, `{"location":"eastus"}`)
	c.put(zone, `{"location":"global"}`)
	c.has(c.put(endpoint, endpointBody(account, `,"groupIds":["file"]`)),
		`{"properties":{"customDnsConfigs":[{"fqdn":"files.file.core.windows.net","ipAddresses":["10.0.0.5"]}]}}`)
	zoneGroup := endpoint + "/privateDnsZoneGroups/group"
	body := `{"properties":{"privateDnsZoneConfigs":[{"name":"z","properties":{"privateDnsZoneId":"` + zone + `"}}]}}`
	c.has(c.put(zoneGroup, body), `{"properties":{"privateDnsZoneConfigs":[{"name":"z","properties":{"privateDnsZoneId":"`+zone+`",
		"recordSets":[{"recordType":"A","recordSetName":"files","fqdn":"files.privatelink.file.core.windows.net","ttl":10,
		"ipAddresses":["10.0.0.5"]}]}}]}}`)
	c.has(c.get(zone+"/A/files"),
		`{"properties":{"fqdn":"files.privatelink.file.core.windows.net.","ttl":10,"aRecords":[{"ipv4Address":"10.0.0.5"}]}}`)
	c.put(zoneGroup, body)
	c.refused("PUT", endpoint+"/privateDnsZoneGroups/bad",
		`{"properties":{"privateDnsZoneConfigs":[{"name":"z","properties":{"privateDnsZoneId":"`+vnet+`"}}]}}`, 400,
		"InvalidRequestFormat/InvalidPrivateDnsZoneId")
	c.delete(zoneGroup)
	c.refused("GET", zone+"/A/files", "", 404, "NotFound")
	c.put(zoneGroup, body)
	c.delete(endpoint)
	c.refused("GET", zone+"/A/files", "", 404, "NotFound")
}

// A registry has a second name for its layers, with the region. Each name has an address of its own.
func TestEndpointOfARegistry(t *testing.T) {
	c := start(t)
	c.linkable()
	registry, privateZone := group+"/providers/Microsoft.ContainerRegistry/registries/Images", net+"/privateDnsZones/privatelink.azurecr.io"
	c.put(registry, `{"location":"eastus"}`)
	c.put(privateZone, `{"location":"global"}`)
	names := `{"properties":{"customDnsConfigs":[{"fqdn":"images.azurecr.io","ipAddresses":["10.0.0.5"]},
		{"fqdn":"images.eastus.data.azurecr.io","ipAddresses":["10.0.0.6"]}]}}`
	body := endpointBody(registry, `,"groupIds":["registry"]`)
	c.has(c.put(endpoint, body), names)
	c.has(c.put(endpoint, body), names)
	c.put(endpoint+"/privateDnsZoneGroups/group",
		`{"properties":{"privateDnsZoneConfigs":[{"name":"z","properties":{"privateDnsZoneId":"`+privateZone+`"}}]}}`)
	c.has(c.get(privateZone+"/A/images"), `{"properties":{"aRecords":[{"ipv4Address":"10.0.0.5"}]}}`)
	c.has(c.get(privateZone+"/A/images.eastus.data"), `{"properties":{"aRecords":[{"ipv4Address":"10.0.0.6"}]}}`)
}

func TestEndpointMovesToAnotherService(t *testing.T) {
	c := start(t)
	c.linkable()
	other := net + "/privateLinkServices/other"
	c.put(service, serviceBody(subnet))
	c.put(other, serviceBody(subnet))
	c.put(endpoint, endpointBody(service, ""))
	c.put(endpoint, endpointBody(other, ""))
	c.has(c.get(service), `{"properties":{"privateEndpointConnections":[]}}`)
	if n := len(behaviour.Objects(c.get(other), "properties.privateEndpointConnections")); n != 1 {
		t.Errorf("%d connections of the service that the endpoint moved to", n)
	}
}

func TestEndpointNames(t *testing.T) {
	c := start(t)
	c.linkable()
	for target, want := range map[string]string{
		"Microsoft.Storage/storageAccounts/Acct blob":           "acct.blob.core.windows.net",
		"Microsoft.Storage/storageAccounts/acct file_secondary": "acct.file.core.windows.net",
		"Microsoft.KeyVault/vaults/safe vault":                  "safe.vault.azure.net",
		"Microsoft.Sql/servers/db sqlServer":                    "",
	} {
		id, sub, _ := strings.Cut(target, " ")
		if strings.Contains(id, "storageAccounts") {
			c.put(group+"/providers/"+id, `{"location":"eastus"}`)
		}
		got := c.put(endpoint, endpointBody(group+"/providers/"+id, `,"groupIds":["`+sub+`"]`))
		configs := behaviour.Objects(got, "properties.customDnsConfigs")
		if want == "" && len(configs) == 0 {
			continue
		}
		if len(configs) != 1 || configs[0]["fqdn"] != want {
			t.Errorf("names of an endpoint to %s: %v, want %s", target, configs, want)
		}
	}
}

func TestPrivateLinkLimits(t *testing.T) {
	c := start(t)
	c.linkable()
	const most = 8
	var frontends, configurations []string
	for i := range most + 1 {
		frontends = append(frontends, fmt.Sprintf(`{"name":"f%d","properties":{"subnet":%s}}`, i, ref(subnet)))
		configurations = append(configurations,
			fmt.Sprintf(`{"name":"c%d","properties":{"primary":%v,"subnet":%s}}`, i, i == 0, ref(subnet)))
	}
	at := func(i, addresses int) string {
		return fmt.Sprintf(`{"location":"eastus","properties":{"loadBalancerFrontendIpConfigurations":[%s],"ipConfigurations":[%s]}}`,
			ref(fmt.Sprint(balancer, "/frontendIPConfigurations/f", i)), strings.Join(configurations[:addresses], ","))
	}
	c.put(balancer, `{`+standard+`,"properties":{"frontendIPConfigurations":[`+strings.Join(frontends, ",")+`]}}`)
	c.refused("PUT", service, at(0, most+1), 400, "PrivateLinkServiceIpConfigurationCountLimitReached")
	for i := range most {
		c.put(fmt.Sprint(service, i), at(i, most))
	}
	c.refused("PUT", fmt.Sprint(service, most), at(most, 1), 400, "PrivateLinkServiceCountLimitReachedForLoadBalancer")
	c.put(fmt.Sprint(service, 0), at(0, 1)) // an existing service counts once
	c.delete(fmt.Sprint(service, 0))
	c.put(fmt.Sprint(service, most), at(most, 1))
	c.put(net+"/loadBalancers/basic",
		`{"location":"eastus","properties":{"frontendIPConfigurations":[{"name":"f0","properties":{"subnet":`+ref(subnet)+`}}]}}`)
	c.refused("PUT", service, strings.ReplaceAll(at(0, 1), "/lb/", "/basic/"), 400, "PrivateLinkServiceRequiresStandardLoadBalancer")
}
