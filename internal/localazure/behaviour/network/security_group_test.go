package network_test

import (
	"fmt"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
)

// securityRule returns the body of a valid rule with the given changes.
func securityRule(name, properties string) string {
	return `{"name":"` + name + `","properties":{"direction":"Inbound","access":"Allow","protocol":"Tcp","sourcePortRange":"*",` +
		properties + `}}`
}

func TestSecurityGroup(t *testing.T) {
	c := start(t)
	got := c.put(nsg, `{"location":"eastus"}`)
	var names []string
	for _, rule := range behaviour.Objects(got, "properties.defaultSecurityRules") {
		names = append(names, fmt.Sprint(rule["name"], " ", behaviour.At(rule, "properties.priority")))
		if rule["type"] != "Microsoft.Network/networkSecurityGroups/defaultSecurityRules" || rule["etag"] != got["etag"] {
			t.Errorf("default rule %v", rule)
		}
	}
	if want := "AllowVnetInBound 65000,AllowAzureLoadBalancerInBound 65001,DenyAllInBound 65500,AllowVnetOutBound " +
		"65000,AllowInternetOutBound 65001,DenyAllOutBound 65500"; strings.Join(names, ",") != want {
		t.Errorf("default rules: %v", names)
	}
	c.has(got, `{"properties":{"securityRules":[]}}`)
	// A client can write back what it reads.
	c.put(nsg, `{"location":"eastus","properties":{"securityRules":[`+securityRule("a", `"priority":500,"sourceAddressPrefix":"internet",
		"destinationAddressPrefixes":["20.0.0.1","20.0.0.2"],"destinationPortRanges":["80","443"]`)+`],"defaultSecurityRules":[]}}`)
	a := c.get(nsg + "/securityRules/a")
	c.has(a, `{"type":"Microsoft.Network/networkSecurityGroups/securityRules","properties":{"provisioningState":"Succeeded","priority":500,
		"sourceAddressPrefix":"internet","sourceAddressPrefixes":[],"destinationAddressPrefixes":["20.0.0.1","20.0.0.2"],
		"sourcePortRange":"*","sourcePortRanges":[],"destinationPortRanges":["80","443"]}}`)
	c.absent(a, "properties.destinationAddressPrefix", "properties.destinationPortRange")
	sides := c.put(nsg+"/securityRules/sides", securityRule("sides", `"priority":700,"sourceAddressPrefix":"*","destinationPortRange":"80",
		"destinationAddressPrefix":"","destinationAddressPrefixes":["10.0.0.0/24"]`))
	c.has(sides, `{"properties":{"destinationAddressPrefix":"","destinationAddressPrefixes":["10.0.0.0/24"]}}`)
	c.delete(nsg + "/securityRules/sides")
	if n := len(behaviour.Objects(c.get(nsg), "properties.defaultSecurityRules")); n != 6 {
		t.Errorf("%d default rules after a write without them", n)
	}
	if n := len(behaviour.Objects(c.get(nsg+"/defaultSecurityRules"), "value")); n != 6 {
		t.Errorf("list of default rules: %d", n)
	}
	c.delete(nsg + "/securityRules/a")
	c.has(c.get(nsg), `{"properties":{"securityRules":[]}}`)
}

func TestSecurityRuleRefusals(t *testing.T) {
	c := start(t)
	c.put(nsg, `{"location":"eastus","properties":{"securityRules":[`+
		securityRule("taken", `"priority":500,"sourceAddressPrefix":"*","destinationAddressPrefix":"*","destinationPortRange":"80"`)+`]}}`)
	const to = `"destinationAddressPrefix":"*","destinationPortRange":"80"`
	for properties, code := range map[string]string{
		`"priority":500,"sourceAddressPrefix":"*",` + to: "SecurityRuleConflict",
		`"priority":99,"sourceAddressPrefix":"*",` +
			to: "SecurityRuleInvalidPriority",
		`"priority":4097,"sourceAddressPrefix":"*",` +
			to: "SecurityRuleInvalidPriority",
		`"sourceAddressPrefix":"*",` +
			to: "SecurityRuleInvalidPriority",
		`"priority":600,` +
			to: "SecurityRuleParametersMissing",
		`"priority":600,"sourceAddressPrefix":"*","destinationAddressPrefix":"*"`: "SecurityRuleParametersMissing",
		`"priority":600,"sourceAddressPrefix":"10.0.0.1/8",` +
			to: "SecurityRuleInvalidAddressPrefix",
		`"priority":600,"sourceAddressPrefix":"VIRTUAL_NETWORK",` +
			to: "SecurityRuleInvalidAddressPrefix",
		`"priority":600,"sourceAddressPrefixes":["10.0.0.0/8","Internet"],` +
			to: "SecurityRuleParameterContainsUnsupportedValue",
		`"priority":600,"sourceAddressPrefix":"*","sourceAddressPrefixes":["10.0.0.0/8"],` +
			to: "SecurityRuleParameterContainsUnsupportedValue",
		`"priority":600,"sourceAddressPrefix":"*","destinationAddressPrefix":"*",
			"destinationPortRange":"80,443"`: "SecurityRuleInvalidPortRange",
		`"priority":600,"sourceAddressPrefix":"*","destinationAddressPrefix":"*",
			"destinationPortRange":"90-80"`: "SecurityRuleInvalidPortRange",
		`"priority":600,"protocol":"Quic","sourceAddressPrefix":"*",` +
			to: "InvalidRequestFormat/InvalidJson",
		// Neither side of a rule can have both families.
		`"priority":600,"sourceAddressPrefixes":["10.0.0.0/8","fd00::/8"],` +
			to: "ResourceCannotContainAddressPrefixesFromDifferentAddressFamilies",
		`"priority":600,"sourceAddressPrefix":"10.0.0.0/8","destinationAddressPrefix":"fd00::4",
			"destinationPortRange":"80"`: "ResourceCannotContainAddressPrefixesFromDifferentAddressFamilies",
		`"priority":600,"sourceAddressPrefix":"*","destinationAddressPrefixes":["10.0.0.4","fd00::4"],
			"destinationPortRange":"80"`: "ResourceCannotContainAddressPrefixesFromDifferentAddressFamilies",
		`"priority":600,"sourceAddressPrefixes":["10.0.0.0/8","10.1.0.0/16"],` +
			to: "OverlappingSubnetsNotPermittedInSecurityRule",
		`"priority":600,"sourceAddressPrefixes":["10.0.0.4","10.0.0.4/32"],` +
			to: "OverlappingSubnetsNotPermittedInSecurityRule",
		`"priority":600,"sourceAddressPrefix":"*","destinationAddressPrefixes":["fd00::4","fd00:0::4"],
			"destinationPortRange":"80"`: "OverlappingSubnetsNotPermittedInSecurityRule",
	} {
		c.refused("PUT", nsg+"/securityRules/bad", securityRule("bad", properties), 400, code)
	}
	c.put(nsg+"/securityRules/out",
		strings.Replace(securityRule("out", `"priority":500,"sourceAddressPrefix":"*",`+to), "Inbound", "Outbound", 1))
}

func TestSecurityGroupLimit(t *testing.T) {
	c := start(t)
	rules := func(n int) string {
		var parts []string
		for i := range n {
			parts = append(parts,
				securityRule(fmt.Sprint("r", i),
					fmt.Sprintf(`"priority":%d,"sourceAddressPrefix":"*","destinationAddressPrefix":"*","destinationPortRange":"80"`,
						100+i)))
		}
		return `{"location":"eastus","properties":{"securityRules":[` + strings.Join(parts, ",") + `]}}`
	}
	c.put(nsg, rules(1000))
	c.refused("PUT", nsg, rules(1001), 400, "SecurityRuleCountLimitReached")
}

// The limit is for all rules of the group together, for sources and for destinations.
func TestSecurityGroupPrefixLimit(t *testing.T) {
	c := start(t)
	const most, each = 4000, 1000
	for _, side := range []struct{ many, other string }{
		{"sourceAddressPrefixes", "destinationAddressPrefix"}, {"destinationAddressPrefixes", "sourceAddressPrefix"},
	} {
		rules := func(n int) string {
			var parts, prefixes []string
			for i := range n {
				prefixes = append(prefixes, fmt.Sprintf(`"10.1.%d.%d"`, i/250, i%250))
				if len(prefixes) == each || i == n-1 {
					parts = append(parts,
						securityRule(fmt.Sprint("r", i), fmt.Sprintf(`"priority":%d,%q:[%s],%q:"*","destinationPortRange":"80"`,
							100+len(parts), side.many, strings.Join(prefixes, ","), side.other)))
					prefixes = nil
				}
			}
			return `{"location":"eastus","properties":{"securityRules":[` + strings.Join(parts, ",") + `]}}`
		}
		const code = "SecurityRuleAddressesOrPortsPerSecurityGroupLimitReached"
		c.put(nsg, rules(most))
		c.refused("PUT", nsg, rules(most+1), 400, code)
		c.refused("PUT", nsg+"/securityRules/one",
			securityRule("one", `"priority":600,"sourceAddressPrefix":"*","destinationAddressPrefix":"*","destinationPortRange":"80"`),
			400, code)
	}
}

func TestSecurityGroupInUse(t *testing.T) {
	c := start(t)
	c.network()
	c.put(nsg, `{"location":"eastus"}`)
	c.put(nic, strings.Replace(nicBody(""), `"properties":{`, `"properties":{"networkSecurityGroup":`+ref(nsg)+`,`, 1))
	c.put(subnet, `{"properties":{"addressPrefix":"10.0.0.0/24","networkSecurityGroup":`+ref(nsg)+`}}`)
	got := c.get(nsg)
	if refs(got, "properties.networkInterfaces") != "nic" || refs(got, "properties.subnets") != "nodes" {
		t.Errorf("users of the security group: %v", got["properties"])
	}
	c.refused("DELETE", nsg, "", 400, "InUseNetworkSecurityGroupCannotBeDeleted")
	c.put(nic, nicBody(""))
	c.put(subnet, `{"properties":{"addressPrefix":"10.0.0.0/24"}}`)
	set := group + "/providers/Microsoft.Compute/virtualMachineScaleSets/set"
	c.put(set, `{"location":"eastus","properties":{"virtualMachineProfile":{"networkProfile":{"networkInterfaceConfigurations":[{
		"name":"n","properties":{"networkSecurityGroup":`+ref(nsg)+`}}]}}}}`)
	c.refused("DELETE", nsg, "", 400, "NetworkSecurityGroupInUseByVirtualMachineScaleSet")
	c.delete(set)
	c.delete(nsg)
}
