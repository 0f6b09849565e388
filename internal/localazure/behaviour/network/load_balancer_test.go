package network_test

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
)

const (
	scaleSet    = group + "/providers/Microsoft.Compute/virtualMachineScaleSets/set"
	instanceNIC = scaleSet + "/virtualMachines/0/networkInterfaces/n"
	// and the rest
	instanceNICInner = `"properties":{"ipConfigurations":[{"name":"c","properties":{"privateIPAddress":"10.0.0.50","subnet":`
)

func TestLoadBalancer(t *testing.T) {
	c := start(t)
	c.put(publicIP, staticIP)
	first := c.do("PUT", balancer,
		balancerBody(`,"probes":[{"name":"p","properties":{"protocol":"http","port":10256,"requestPath":"/healthz"}}],
		"loadBalancingRules":[`+rule("r", `"protocol":"tcp","frontendPort":80,"backendPort":80,"enableFloatingIP":true,"probe":`+
			ref(balancer+"/probes/p"))+`]`))
	if first.Status != 201 || behaviour.Text(first.Body, "properties.provisioningState") != "Succeeded" {
		t.Errorf("a load balancer is ready in the reply: %d %v", first.Status, first.Body)
	}
	got := c.get(balancer)
	c.has(got, `{"sku":{"name":"Standard","tier":"Regional"},"properties":{
		"frontendIPConfigurations":[{"name":"f","id":"`+frontend+`","type":"Microsoft.Network/loadBalancers/frontendIPConfigurations",
			"properties":{"provisioningState":"Succeeded","privateIPAllocationMethod":"Dynamic","publicIPAddress":`+ref(publicIP)+`,
			"loadBalancingRules":[`+ref(balancer+"/loadBalancingRules/r")+`]}}],
		"backendAddressPools":[{"name":"pool","properties":{"loadBalancerBackendAddresses":[],"loadBalancingRules":[`+ref(balancer+
		"/loadBalancingRules/r")+`]}}],
		"loadBalancingRules":[{"name":"r","properties":{"frontendIPConfiguration":`+ref(frontend)+`,"frontendPort":80,"backendPort":80,
			"enableFloatingIP":true,"idleTimeoutInMinutes":4,"protocol":"Tcp","enableDestinationServiceEndpoint":false,
			"enableTcpReset":false,
			"allowBackendPortConflict":false,"loadDistribution":"Default","disableOutboundSnat":false,
			"backendAddressPool":`+ref(pool)+`,"backendAddressPools":[`+ref(pool)+`]}}],
		"probes":[{"name":"p","properties":{"protocol":"Http","port":10256,"requestPath":"/healthz","intervalInSeconds":15,
		"numberOfProbes":2,
			"probeThreshold":1,"loadBalancingRules":[`+ref(balancer+"/loadBalancingRules/r")+`]}}],
		"inboundNatRules":[],"outboundRules":[],"inboundNatPools":[]}}`)
	c.has(c.get(publicIP), `{"properties":{"ipConfiguration":`+ref(frontend)+`}}`)
	// A client can write back what it reads, also the back-references.
	again := c.do("PUT", balancer, marshal(t, got))
	if again.Status != 200 {
		t.Fatalf("writing back what was read: %d %v", again.Status, again.Body)
	}
	was, is := got["properties"], c.get(balancer)["properties"]
	if !behaviour.Equal(withoutEtags(was), withoutEtags(is)) {
		t.Errorf("after writing back what was read:\n%s\n%s", marshal(t, was), marshal(t, is))
	}
	c.put(balancer, balancerBody(""))
	c.absent(behaviour.Objects(c.get(balancer), "properties.frontendIPConfigurations")[0], "properties.loadBalancingRules")
	c.delete(balancer)
	c.delete(publicIP)
}

func TestLoadBalancerRefusals(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	c.put(net+"/publicIPAddresses/basic", `{"location":"eastus"}`)
	c.put(net+"/publicIPAddresses/six", staticIP6)
	const tcp80 = `"protocol":"Tcp","frontendPort":80,"backendPort":80`
	rules := func(rules ...string) string {
		return balancerBody(`,"loadBalancingRules":[` + strings.Join(rules, ",") + `]`)
	}
	probe := func(properties string) string {
		return balancerBody(`,"probes":[{"name":"p","properties":{` + properties + `}}]`)
	}
	frontends := func(properties ...string) string {
		var parts []string
		for i, p := range properties {
			parts = append(parts, fmt.Sprintf(`{"name":"f%d","properties":{%s}}`, i, p))
		}
		return `{` + standard + `,"properties":{"frontendIPConfigurations":[` + strings.Join(parts, ",") + `]}}`
	}
	address, basic := `"publicIPAddress":`+ref(publicIP), `"publicIPAddress":`+ref(net+"/publicIPAddresses/basic")
	for _, test := range []struct{ why, body, code string }{
		{"no address", frontends(""), "FrontendIPConfigHasNoSubnetOrPublicIP"},
		{"two addresses", frontends(address + `,"subnet":` + ref(subnet)), "FrontendIPConfigHasBothSubnetAndPublicIP"},
		{"another SKU", frontends(basic), "DifferentSkuLoadBalancersAndPublicIPAddressNotAllowed"},
		{"one address twice", frontends(address, address), "PublicIPReferencedByMultipleIPConfigs"},
		{"no such address", frontends(`"publicIPAddress":` + ref(net+"/publicIPAddresses/none")), "InvalidResourceReference"},
		{"no such subnet", frontends(`"subnet":` + ref(vnet+"/subnets/none")), "InvalidResourceReference"},
		{"IPv6 alone", frontends(`"publicIPAddress":` + ref(net+"/publicIPAddresses/six")),
			"AtleastOneIpV4RequiredForIpV6LbFrontendIpConfiguration"},
		{"static without address", frontends(`"privateIPAllocationMethod":"Static","subnet":` + ref(subnet)), "PrivateIPAddressMissing"},
		{"address outside", frontends(`"privateIPAllocationMethod":"Static","privateIPAddress":"10.9.0.4","subnet":` + ref(subnet)),
			"PrivateIPAddressNotInSubnet"},
		{"parts without frontend", `{` + standard + `,"properties":{"backendAddressPools":[{"name":"p"}]}}`,
			"LoadBalancerWithoutFrontendIPCantHaveChildResources"},
		{"no such frontend", rules(strings.ReplaceAll(rule("r", tcp80), frontend, frontend+"x")), "InvalidResourceReference"},
		{"no such pool", rules(strings.ReplaceAll(rule("r", tcp80), pool, pool+"x")), "InvalidResourceReference"},
		{"no such probe", rules(rule("r", tcp80+`,"probe":`+ref(balancer+"/probes/p"))), "InvalidResourceReference"},
		{"a frontend of another", rules(strings.ReplaceAll(rule("r", tcp80), frontend, strings.Replace(frontend, "/lb/", "/other/", 1))),
			"InvalidResourceReference"},
		{"same frontend and port", rules(rule("a", tcp80), rule("b", strings.Replace(tcp80, `"backendPort":80`, `"backendPort":81`, 1))),
			"RulesUseSameFrontendPortProtocolAndIPConfig"},
		{"same backend port", rules(rule("a", tcp80), rule("b", strings.Replace(tcp80, `"frontendPort":80`, `"frontendPort":81`, 1))),
			"RulesUseSameBackendPortProtocolAndPool"},
		{"same backend port, floating",
			rules(rule("a", tcp80+`,"enableFloatingIP":true`),
				rule("b", strings.Replace(tcp80, `"frontendPort":80`, `"frontendPort":81`, 1)+`,"enableFloatingIP":true`)),
			"RulesUseSameBackendPortProtocolAndPoolAndFrontendIPWithFloatingIPEnabled"},
		{"all ports in public", rules(rule("a", `"protocol":"All","frontendPort":0,"backendPort":0`)),
			"InvalidRequestFormat/LoadBalancingRuleHAPortsNotSupported"},
		{"all protocols, one port", rules(rule("a", `"protocol":"All","frontendPort":80,"backendPort":80`)),
			"InvalidRequestFormat/LoadBalancingRuleInvalidPort"},
		{"no port", rules(rule("a", `"protocol":"Tcp"`)), "InvalidRequestFormat/MissingRequiredProperty"},
		{"idle too long", rules(rule("a", tcp80+`,"idleTimeoutInMinutes":101`)), "InvalidRequestFormat/InvalidPropertyValue"},
		{"idle too short", rules(rule("a", tcp80+`,"idleTimeoutInMinutes":3`)), "InvalidRequestFormat/InvalidPropertyValue"},
		{"probe too often", probe(`"protocol":"Tcp","port":80,"intervalInSeconds":4`), "InvalidRequestFormat/InvalidPropertyValue"},
		{"probe too slow", probe(`"protocol":"Tcp","port":80,"intervalInSeconds":60,"probeThreshold":2`),
			"LoadBalancerProbeInvalidInterval"},
		{"probe too far apart", probe(`"protocol":"Tcp","port":80,"intervalInSeconds":120`), "InvalidRequestFormat/InvalidPropertyValue"},
		{"probe without path", probe(`"protocol":"Http","port":80`), "LoadBalancerProbeMissingRequestPath"},
		{"probe with path", probe(`"protocol":"Tcp","port":80,"requestPath":"/"`), "LoadBalancerProbeRequestPathNotAllowed"},
		{"no frontend", rules(`{"name":"r","properties":{"backendAddressPool":` + ref(pool) + `,` + tcp80 + `}}`),
			"InvalidRequestFormat/MissingJsonReferenceId"},
		{"pool and other pools", rules(rule("r", tcp80+`,"backendAddressPools":[`+ref(pool)+`,`+ref(pool+"2")+`]`)),
			"InvalidRequestFormat/BothBackendAddressPoolAndBackendAddressPools"},
		{"one member twice",
			strings.Replace(balancerBody(""), `"name":"pool"`, `"name":"pool","properties":{"virtualNetwork":`+ref(vnet)+
				`,"loadBalancerBackendAddresses":[`+member("10.0.0.4")+`,`+member("10.0.0.5")+`]}`, 1),
			"InvalidRequestFormat/DuplicateResourceName"},
		{"outbound rule without frontend",
			balancerBody(`,"outboundRules":[` + strings.Replace(outbound("a"), ref(frontend), "", 1) + `]`),
			"InvalidRequestFormat/OutboundRuleMissingFrontend"},
		{"two outbound rules", balancerBody(`,"outboundRules":[` + outbound("a") + `,` + outbound("b") + `]`),
			"MoreThanOneOutboundRuleUsingSameFrontendIPConfigurationAndProtocolIsNotSupported"},
		{"a rule and an outbound rule",
			balancerBody(`,"loadBalancingRules":[` + rule("r", tcp80) + `],"outboundRules":[` + outbound("o") + `]`),
			"LoadBalancingRuleMustDisableSNATSinceSameFrontendIPConfigurationIsReferencedByOutboundRule"},
		{"NAT on a rule's port",
			balancerBody(`,"loadBalancingRules":[` + rule("r", tcp80) +
				`],"inboundNatRules":[{"name":"n","properties":{"frontendIPConfiguration":` + ref(frontend) +
				`,"protocol":"Tcp","frontendPort":80,"backendPort":22}}]`), "RulesUseSameFrontendPortProtocolAndIPConfig"},
		{"name too long", strings.Replace(balancerBody(""), `"name":"pool"`, `"name":"`+strings.Repeat("p", 81)+`"`, 1),
			"InvalidResourceName"},
	} {
		t.Run(test.why, func(t *testing.T) {
			inner := c
			inner.TB = t
			inner.refused("PUT", balancer, test.body, 400, test.code)
		})
	}
	if got := c.do("GET", balancer, ""); got.Status != 404 {
		t.Errorf("a refused load balancer exists: %v", got.Body)
	}
	c.put(balancer, probe(`"protocol":"Tcp","port":80,"intervalInSeconds":7,"probeThreshold":17`)) // 119 s
	c.put(balancer,
		balancerBody(`,"loadBalancingRules":[`+rule("r", tcp80+`,"disableOutboundSnat":true`)+`],"outboundRules":[`+outbound("o")+`]`))
}

// member adds the same member to a pool by one address or another.
func member(address string) string {
	return `{"name":"node1","properties":{"ipAddress":"` + address + `"}}`
}

func outbound(name string) string {
	return `{"name":"` + name + `","properties":{"protocol":"All","frontendIPConfigurations":[` + ref(frontend) +
		`],"backendAddressPool":` + ref(pool) + `}}`
}

func TestLoadBalancerLimits(t *testing.T) {
	c := start(t)
	c.network()
	c.put(subnet, `{"properties":{"addressPrefix":"10.0.0.0/20"}}`)
	many := func(n int) string {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf(`{"name":"f%d","properties":{"subnet":%s}}`, i, ref(subnet)))
		}
		return `{` + standard + `,"properties":{"frontendIPConfigurations":[` + strings.Join(parts, ",") + `]}}`
	}
	c.put(balancer, many(600))
	c.refused("PUT", balancer, many(601), 400, "FrontendIPConfigurationCountLimitReached")
	c.delete(balancer)
	c.put(publicIP, staticIP)
	rules := func(n int) string {
		var parts []string
		for i := range n {
			parts = append(parts, rule(fmt.Sprint("r", i), fmt.Sprintf(`"protocol":"Tcp","frontendPort":%d,"backendPort":%d`, i+1, i+1)))
		}
		return balancerBody(`,"loadBalancingRules":[` + strings.Join(parts, ",") + `]`)
	}
	c.put(balancer, rules(1500))
	c.refused("PUT", balancer, rules(1501), 400, "LoadBalancerRuleCountLimitReached")
	c.refused("PUT", nic, nicBody(`,"loadBalancerBackendAddressPools":[`+ref(pool)+`]`), 400, "LoadBalancerRuleCountLimitReachedForNic")
	c.put(balancer, rules(300))
	c.put(nic, nicBody(`,"loadBalancerBackendAddressPools":[`+ref(pool)+`]`))
	c.refused("PUT", balancer, rules(301), 400, "LoadBalancerRuleCountLimitReachedForNic")
	// Rules of the internal load balancer count too, whichever write is last.
	inner := func(n int) string {
		return strings.Replace(strings.ReplaceAll(rules(n), balancer, balancer+"-internal"), `"publicIPAddress":`+ref(publicIP),
			`"subnet":`+ref(subnet), 1)
	}
	c.put(balancer+"-internal", inner(100))
	c.put(balancer, rules(200))
	both := ref(pool) + "," + ref(strings.Replace(pool, balancer, balancer+"-internal", 1))
	c.put(nic, nicBody(`,"loadBalancerBackendAddressPools":[`+both+`]`))
	c.refused("PUT", balancer+"-internal", inner(101), 400, "LoadBalancerRuleCountLimitReachedForNic")
	c.refused("PUT", balancer, rules(201), 400, "LoadBalancerRuleCountLimitReachedForNic")
	c.put(balancer, rules(199))
	c.put(balancer+"-internal", inner(101))
}

func TestInternalLoadBalancer(t *testing.T) {
	c := start(t)
	c.network()
	body := func(more string) string {
		return `{` + standard + `,"properties":{"frontendIPConfigurations":[{"name":"f","zones":["1","2","3"],"properties":{"subnet":` +
			ref(subnet) + more + `}}],
			"backendAddressPools":[{"name":"pool"}],"loadBalancingRules":[` + rule("ha",
			`"protocol":"All","frontendPort":0,"backendPort":0,"enableFloatingIP":true`) + `]}}`
	}
	c.has(c.put(balancer,
		body("")), `{"properties":{"frontendIPConfigurations":[{"zones":["1","2","3"],"properties":{"privateIPAddress":"10.0.0.4",
		"privateIPAllocationMethod":"Dynamic","privateIPAddressVersion":"IPv4"}}]}}`)
	c.put(nic, nicBody(""))
	c.has(c.get(nic), `{"properties":{"ipConfigurations":[{"properties":{"privateIPAddress":"10.0.0.5"}}]}}`)
	c.has(c.put(balancer, body("")), `{"properties":{"frontendIPConfigurations":[{"properties":{"privateIPAddress":"10.0.0.4"}}]}}`)
	c.has(c.put(balancer, body(`,"privateIPAllocationMethod":"Static","privateIPAddress":"10.0.0.77"`)),
		`{"properties":{"frontendIPConfigurations":[{"properties":{"privateIPAddress":"10.0.0.77"}}]}}`)
	if got := refs(c.get(subnet), "properties.ipConfigurations"); got != "f c" {
		t.Errorf("IP configurations of the subnet: %q", got)
	}
	c.refused("PUT", balancer, strings.Replace(body(""), `"3"]`, `"9"]`, 1), 400, "InvalidAvailabilityZone")
}

// Internal frontends have zones themselves. Other frontends have the zones of the public IP. An edge zone has none.
func TestZonesOfFrontends(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	zonal := func(body string) string {
		return strings.Replace(body, `{"name":"f",`, `{"name":"f","zones":["1"],`, 1)
	}
	c.refused("PUT", balancer, zonal(balancerBody("")), 400, "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress")
	const edge = `"extendedLocation":{"name":"edge1","type":"EdgeZone"}`
	inside := `{` + standard + `,` + edge + `,"properties":{"frontendIPConfigurations":[{"name":"f","properties":{"subnet":` +
		ref(subnet) + `}}]}}`
	c.refused("PUT", balancer, zonal(inside), 400, "InvalidRequestFormat/AvailabilityZonesNotSupportedInExtendedLocation")
	c.has(c.put(balancer, inside), `{`+edge+`,"properties":{"frontendIPConfigurations":[{"name":"f"}]}}`)
	address := `{` + standard + `,` + edge + `,"properties":{"publicIPAllocationMethod":"Static"}`
	c.refused("PUT", publicIP+"-2", address+`,"zones":["1","2"]}`, 400,
		"InvalidRequestFormat/AvailabilityZonesNotSupportedInExtendedLocation")
	c.has(c.put(publicIP+"-2", address+`}`), `{`+edge+`}`)
}

func TestPoolMembers(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	c.put(balancer, balancerBody(""))
	join := `"loadBalancerBackendAddressPools":[` + ref(pool) + `]`
	c.put(nic, nicBody(","+join))
	c.put(scaleSet,
		`{"location":"eastus","properties":{"virtualMachineProfile":{"networkProfile":{"networkInterfaceConfigurations":[{"name":"n",
			"properties":{"ipConfigurations":[{"name":"c","properties":{`+join+`}}]}}]}}}}`)
	c.put(scaleSet+"/virtualMachines/0", `{"location":"eastus"}`)
	c.put(instanceNIC, `{`+instanceNICInner+ref(subnet)+`,`+join+`}}]}}`)
	got := c.get(pool)
	c.has(got, `{"properties":{"backendIPConfigurations":[`+ref(instanceNIC+"/ipConfigurations/c")+`,`+ref(nic+"/ipConfigurations/c")+`]}}`)
	c.has(c.get(balancer), `{"properties":{"backendAddressPools":[`+marshal(t, got)+`]}}`)
	// The members are shown as addresses too, and may be sent back.
	etag := `"etag":` + marshal(t, got["etag"])
	c.has(got, `{"properties":{"loadBalancerBackendAddresses":[
		{`+etag+`,"properties":{"provisioningState":"Succeeded","networkInterfaceIPConfiguration":`+ref(instanceNIC+"/ipConfigurations/c")+`}},
		{"name":"rg_`+path.Base(nic)+`c","id":"`+pool+`/loadBalancerBackendAddresses/rg_`+path.Base(nic)+`c",`+etag+`,
			"type":"Microsoft.Network/loadBalancers/backendAddressPools/loadBalancerBackendAddresses",
			"properties":{"provisioningState":"Succeeded","networkInterfaceIPConfiguration":`+ref(nic+"/ipConfigurations/c")+`}}]}}`)
	c.put(balancer, marshal(t, c.get(balancer)))
	if n := len(behaviour.Objects(c.get(pool), "properties.loadBalancerBackendAddresses")); n != 2 {
		t.Errorf("%d members are shown after a PUT of what was shown", n)
	}
	// The interface has the membership: a PUT of the pool does not change it.
	c.put(pool, `{"properties":{"backendIPConfigurations":[]}}`)
	if n := len(behaviour.Objects(c.get(pool), "properties.backendIPConfigurations")); n != 2 {
		t.Errorf("%d members after a PUT of the pool", n)
	}
	c.refused("DELETE", pool, "", 400, "LoadBalancerInUseByVirtualMachineScaleSet")
	refusal := c.refused("DELETE", balancer, "", 400, "LoadBalancerInUseByVirtualMachineScaleSet")
	// Controllers parse the scale set out of the message.
	named := regexp.MustCompile(`.*/subscriptions/(?:.*)/resourceGroups/(.*)/providers/Microsoft.Compute/virtualMachineScaleSets/(.+)\.`)
	found := named.FindStringSubmatch(behaviour.Text(refusal.Body, "error.message"))
	if len(found) != 3 || found[1] != "rg" || found[2] != "set" {
		t.Errorf("scale set in %v: %q", refusal.Body, found)
	}
	c.delete(scaleSet)
	c.delete(balancer)
	if pools := behaviour.At(behaviour.Objects(c.get(nic), "properties.ipConfigurations")[0],
		"properties.loadBalancerBackendAddressPools"); len(pools.([]any)) != 0 {
		t.Errorf("pools of an interface after their load balancer is gone: %v", pools)
	}
}

func TestOnePublicAndOneInternalLoadBalancer(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	c.put(balancer, balancerBody(""))
	other, inside := net+"/loadBalancers/other", net+"/loadBalancers/inside"
	c.put(net+"/publicIPAddresses/two", staticIP)
	c.put(other, strings.ReplaceAll(balancerBody(""), publicIP, net+"/publicIPAddresses/two"))
	c.put(inside, `{`+standard+`,"properties":{"frontendIPConfigurations":[{"name":"f","properties":{"subnet":`+ref(subnet)+
		`}}],"backendAddressPools":[{"name":"pool"}]}}`)
	in := func(balancers ...string) string {
		var pools []string
		for _, b := range balancers {
			pools = append(pools, ref(b+"/backendAddressPools/pool"))
		}
		return nicBody(`,"loadBalancerBackendAddressPools":[` + strings.Join(pools, ",") + `]`)
	}
	c.put(nic, in(balancer, inside))
	c.refused("PUT", nic, in(balancer, other), 400, "NetworkInterfaceUsesMultipleLoadBalancersOfSameType")
	c.refused("PUT", nic, in(net+"/loadBalancers/none"), 400, "InvalidResourceReference")
}

func TestOneRuleForABackendPort(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	body := func(backend int, more string) string {
		second := strings.ReplaceAll(rule("b", fmt.Sprintf(`"protocol":"Tcp","frontendPort":81,"backendPort":%d%s`, backend, more)),
			pool, pool+"2")
		return strings.Replace(balancerBody(`,"loadBalancingRules":[`+rule("a", `"protocol":"Tcp","frontendPort":80,"backendPort":80`)+
			`,`+second+`]`),
			`{"name":"pool"}`, `{"name":"pool"},{"name":"pool2"}`, 1)
	}
	both := `"loadBalancerBackendAddressPools":[` + ref(pool) + `,` + ref(pool+"2") + `]`
	c.put(balancer, body(80, ""))
	c.put(nic, nicBody(`,"loadBalancerBackendAddressPools":[`+ref(pool)+`]`))
	c.refused("PUT", nic, nicBody(`,`+both), 400, "RulesOfSameLoadBalancerTypeUseSameBackendPortProtocolAndIPConfig")
	for _, free := range []string{body(81, ""), body(80, `,"enableFloatingIP":true`), body(80, `,"allowBackendPortConflict":true`)} {
		c.put(balancer, free)
		c.put(nic, nicBody(`,`+both))
		c.refused("PUT", balancer, body(80, ""), 400, "RulesOfSameLoadBalancerTypeUseSameBackendPortProtocolAndIPConfig")
	}
}

func TestPoolOfAddresses(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	c.put(balancer, balancerBody(""))
	body := func(network, address string) string {
		return `{"properties":{` + network + `"loadBalancerBackendAddresses":[{"name":"node1","properties":{"ipAddress":"` +
			address + `"}}]}}`
	}
	in := `"virtualNetwork":` + ref(vnet) + `,`
	c.has(c.put(pool, body(in, "10.0.0.4")), `{"properties":{"virtualNetwork":`+ref(vnet)+
		`,"loadBalancerBackendAddresses":[{"name":"node1","properties":{"ipAddress":"10.0.0.4"}}]}}`)
	c.refused("PUT", pool, body("", "10.0.0.4"), 400, "LoadBalancerBackendAddressMissingVirtualNetwork")
	c.refused("PUT", pool, body(in, "192.168.0.4"), 400, "LoadBalancerBackendAddressNotInVirtualNetwork")
	c.refused("PUT", pool, body(in, "node"), 400, "InvalidIPAddressFormat")
	c.refused("PUT", pool, strings.ReplaceAll(body(in, "10.0.0.4"), "/vnet", "/none"), 400, "InvalidResourceReference")
	c.refused("DELETE", vnet, "", 400, "InUseVirtualNetworkCannotBeDeleted")
	const mixed = "CannotMixIPBasedAddressesAndIPConfigurationsOnLoadBalancerBackendAddressPool"
	c.refused("PUT", nic, nicBody(`,"loadBalancerBackendAddressPools":[`+ref(pool)+`]`), 400, mixed)
	c.put(pool, `{"properties":{}}`)
	c.put(nic, nicBody(`,"loadBalancerBackendAddressPools":[`+ref(pool)+`]`))
	c.refused("PUT", pool, body(in, "10.0.0.4"), 400, mixed)
	c.delete(nic)
	c.delete(vnet)
}

// A backend address of a global load balancer is that of the regional frontend that it refers to.
func TestBackendAddressOfAFrontend(t *testing.T) {
	c := start(t)
	address := behaviour.Text(c.put(publicIP, staticIP), "properties.ipAddress")
	c.put(balancer, balancerBody(""))
	const global, globalIP = net + "/loadBalancers/global", net + "/publicIPAddresses/global"
	c.put(globalIP, strings.Replace(staticIP, `"name":"Standard"`, `"name":"Standard","tier":"Global"`, 1))
	c.put(global, `{"location":"eastus","sku":{"name":"Standard","tier":"Global"},"properties":{"frontendIPConfigurations":[{"name":"f",
		"properties":{"publicIPAddress":`+ref(globalIP)+`}}]}}`)
	body := func(ip, of string) string {
		return `{"properties":{"loadBalancerBackendAddresses":[{"name":"one","properties":{` + ip +
			`"loadBalancerFrontendIPConfiguration":` + ref(of) + `}}]}}`
	}
	want := `{"properties":{"loadBalancerBackendAddresses":[{"properties":{"ipAddress":"` + address + `"}}]}}`
	c.has(c.put(global+"/backendAddressPools/p", body("", frontend)), want)
	c.has(c.put(global+"/backendAddressPools/p", body(`"ipAddress":"`+address+`",`, frontend)), want)
	c.refused("PUT", global+"/backendAddressPools/p", body("", frontend+"none"), 400, "InvalidResourceReference")
}

func TestMigrateToIPBased(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	c.put(balancer, balancerBody(""))
	c.put(nic, nicBody(`,"loadBalancerBackendAddressPools":[`+ref(pool)+`]`))
	got := c.do("POST", balancer+"/migrateToIpBased", `{"pools":["pool"]}`)
	if got.Status != 200 {
		t.Fatalf("migrateToIpBased: %d %v", got.Status, got.Body)
	}
	c.has(got.Body, `{"migratedPools":["pool"]}`)
	migrated := c.get(pool)
	c.has(migrated, `{"properties":{"virtualNetwork":`+ref(vnet)+
		`,"loadBalancerBackendAddresses":[{"properties":{"ipAddress":"10.0.0.4"}}]}}`)
	c.absent(migrated, "properties.backendIPConfigurations")
	c.has(c.get(nic), `{"properties":{"ipConfigurations":[{"properties":{"loadBalancerBackendAddressPools":[]}}]}}`)
}

func TestInlineChildren(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	c.put(balancer, balancerBody(`,"loadBalancingRules":[`+rule("r", `"protocol":"Udp","frontendPort":53,"backendPort":53`)+`]`))
	c.refused("DELETE", pool, "", 400, "InUseBackendAddressPoolCannotBeDeleted")
	second := balancer + "/backendAddressPools/second"
	c.put(second, `{"properties":{}}`)
	c.delete(second)
	nat := balancer + "/inboundNatRules/ssh"
	c.has(c.put(nat, `{"properties":{"frontendIPConfiguration":`+ref(frontend)+`,"frontendPort":2222,"backendPort":22,"protocol":"Tcp"}}`),
		`{"properties":{"frontendPort":2222,"backendPort":22,"protocol":"Tcp","idleTimeoutInMinutes":4,"enableFloatingIP":false,
			"enableTcpReset":false}}`)
	c.has(c.get(frontend), `{"properties":{"inboundNatRules":[`+ref(nat)+`]}}`)
	c.put(nic, nicBody(`,"loadBalancerInboundNatRules":[`+ref(nat)+`]`))
	c.has(c.get(nat), `{"properties":{"backendIPConfiguration":`+ref(nic+"/ipConfigurations/c")+`}}`)
	c.put(nic, nicBody(""))
	c.delete(nat)
	c.absent(c.get(frontend), "properties.inboundNatRules")
	for _, list := range []string{"frontendIPConfigurations", "loadBalancingRules", "backendAddressPools"} {
		if n := len(behaviour.Objects(c.get(balancer+"/"+list), "value")); n != 1 {
			t.Errorf("%d %s in the list, want 1", n, list)
		}
	}
	c.refused("GET", balancer+"/probes/none", "", 404, "NotFound")
	c.refused("PUT", balancer+"/probes/p", `{"properties":{"protocol":"Tcp","port":80}}`, 405, "MethodNotAllowed")
}

func TestDroppingAPoolWithMembers(t *testing.T) {
	c := start(t)
	c.network()
	c.put(publicIP, staticIP)
	c.put(balancer, balancerBody(""))
	c.put(nic, nicBody(`,"loadBalancerBackendAddressPools":[`+ref(pool)+`]`))
	c.put(balancer, strings.Replace(balancerBody(""), `"name":"pool"`, `"name":"other"`, 1))
	c.has(c.get(nic), `{"properties":{"ipConfigurations":[{"properties":{"loadBalancerBackendAddressPools":[]}}]}}`)
	set := strings.ReplaceAll(`{"location":"eastus","properties":{"pools":[POOL]}}`, "POOL", ref(balancer+"/backendAddressPools/other"))
	c.put(scaleSet, set)
	c.refused("PUT", balancer, balancerBody(""), 400, "LoadBalancerInUseByVirtualMachineScaleSet")
}

func TestInboundPools(t *testing.T) {
	c := start(t)
	c.put(publicIP, staticIP)
	c.has(c.put(balancer,
		balancerBody(`,"inboundNatPools":[{"name":"ssh","properties":{"frontendIPConfiguration":`+ref(frontend)+`,"protocol":"tcp",
		"frontendPortRangeStart":50000,"frontendPortRangeEnd":50119,"backendPort":22}}]`)), `{"properties":{
		"frontendIPConfigurations":[{"properties":{"inboundNatPools":[`+ref(balancer+"/inboundNatPools/ssh")+`]}}],
		"inboundNatPools":[{"properties":{"protocol":"Tcp","backendPort":22,"idleTimeoutInMinutes":4,"enableFloatingIP":false}}]}}`)
	// Older clients write numbers and booleans as strings.
	c.has(c.put(balancer,
		balancerBody(`,"loadBalancingRules":[`+
			rule("r", `"protocol":"TCP","frontendPort":"80","backendPort":"8080","enableFloatingIP":"False"`)+`]`)),
		`{"properties":{"loadBalancingRules":[{"properties":{"frontendPort":80,"backendPort":8080,"enableFloatingIP":false,
			"protocol":"Tcp"}}]}}`)
	c.refused("PUT", balancer,
		balancerBody(`,"loadBalancingRules":[`+
			rule("r", `"protocol":"Tcp","frontendPort":80,"backendPort":80,"enableFloatingIP":"maybe"`)+`]`), 400,
		"InvalidRequestFormat/InvalidJson")
	c.refused("PUT", balancer, strings.Replace(balancerBody(""), `"sku":{"name":"Standard"}`, `"sku":{"name":"Gateway"}`, 1), 400,
		"LoadBalancerSkuCannotBeChanged")
}

func TestBasicLoadBalancer(t *testing.T) {
	c := start(t)
	c.put(publicIP, `{"location":"eastus"}`)
	basic := func(more string) string {
		return strings.Replace(balancerBody(more), `,"sku":{"name":"Standard"}`, "", 1)
	}
	c.has(c.put(balancer, basic("")), `{"sku":{"name":"Basic","tier":"Regional"}}`)
	c.refused("PUT", balancer, strings.Replace(basic(""), `{"name":"f",`, `{"name":"f","zones":["1"],`, 1), 400,
		"ZonesNotSupportedForBasicSkuLoadBalancer")
	c.refused("PUT", balancer, basic(`,"outboundRules":[`+outbound("o")+`]`), 400, "InvalidRequestFormat/OutboundRulesNotSupported")
	c.refused("PUT", balancer,
		basic(`,"loadBalancingRules":[`+rule("r", `"protocol":"Tcp","frontendPort":80,"backendPort":80,"idleTimeoutInMinutes":31`)+`]`),
		400, "InvalidRequestFormat/InvalidPropertyValue")
	c.refused("PUT", balancer, basic(`,"probes":[{"name":"p","properties":{"protocol":"Https","port":443,"requestPath":"/"}}]`), 400,
		"LoadBalancerProbeHttpsNotSupported")
	c.delete(balancer)
	c.delete(publicIP)
}
