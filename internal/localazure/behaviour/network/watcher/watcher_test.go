package watcher_test

import (
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
)

type (
	exchange = behaviourtest.Exchange
	has      = map[string]any
)

const (
	net     = "~/providers/Microsoft.Network/"
	id      = behaviourtest.Group + "/providers/Microsoft.Network/"
	machine = behaviourtest.Group + "/providers/Microsoft.Compute/virtualMachines/m"
	watcher = net + "networkWatchers/w"
)

// start makes a machine with the address 10.0.0.4. Its subnet lets SSH in and nothing else from the Internet, its interface forbids
// what 10.9.0.0/16 sends, and packets to 10.8.0.0/16 go through an appliance.
func start(t *testing.T) *behaviourtest.Azure {
	machines := behaviour.Provider{Types: []behaviour.Type{
		{Name: "Microsoft.Compute/virtualMachines", Style: behaviour.Plain("test"), Where: behaviour.Located}}}
	a := behaviourtest.Start(t, resources.Provider(), network.Provider(), machines)
	rule := func(name, access, source, port string) string {
		return `{"location":"eastus","properties":{"securityRules":[{"name":"` + name + `","properties":{"priority":100,"direction":"Inbound",
			"access":"` + access + `","protocol":"Tcp","sourceAddressPrefix":"` + source + `","sourcePortRange":"*",
			"destinationAddressPrefix":"*","destinationPortRange":"` + port + `"}}]}}`
	}
	a.Run(
		exchange{Do: "PUT " + net + "networkSecurityGroups/subnet", Body: rule("ssh", "Allow", "*", "22"), Status: 201},
		exchange{Do: "PUT " + net + "networkSecurityGroups/interface", Body: rule("no", "Deny", "10.9.0.0/16", "*"), Status: 201},
		exchange{Do: "PUT " + net + "routeTables/r", Status: 201, Body: `{"location":"eastus","properties":{"routes":[{"name":"r","properties":{
			"addressPrefix":"10.8.0.0/16","nextHopType":"VirtualAppliance","nextHopIpAddress":"10.0.0.9"}}]}}`},
		exchange{Do: "PUT " + net + "virtualNetworks/v", Status: 201, Body: `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":[
			"10.0.0.0/16","10.9.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24",
			"routeTable":{"id":"` + id + `routeTables/r"},"networkSecurityGroup":{"id":"` + id + `networkSecurityGroups/subnet"}}}]}}`},
		exchange{Do: "PUT " + net + "networkInterfaces/n", Status: 201, Body: `{"location":"eastus","properties":{
			"networkSecurityGroup":{"id":"` + id + `networkSecurityGroups/interface"},"ipConfigurations":[{"name":"c","properties":{
			"subnet":{"id":"` + id + `virtualNetworks/v/subnets/s"}}}]}}`},
		exchange{Do: "PUT " + machine, Status: 201, Body: `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[
			{"id":"` + id + `networkInterfaces/n"}]}}}`},
		exchange{Do: "PUT " + watcher, Body: `{"location":"eastus"}`, Status: 201},
	)
	return a
}

// ask begins an action about the machine, and returns its output.
func ask(t *testing.T, a *behaviourtest.Azure, action, more string) behaviour.Object {
	t.Helper()
	started := a.Request("POST", watcher+"/"+action, `{"targetResourceId":"`+machine+`"`+more+`}`)
	if started.Status != 202 {
		t.Fatalf("%s: %d %v", action, started.Status, started.Body)
	}
	return a.Request("GET", started.Header.Get("Location"), "").Body
}

func TestFlowsAreVerified(t *testing.T) {
	a := start(t)
	for _, c := range []struct{ direction, remote, local, far, access, rule string }{
		{"Inbound", "8.8.8.8", "22", "5000", "Deny", "defaultSecurityRules/DenyAllInBound"},
		{"Inbound", "8.8.8.8", "80", "5000", "Deny", "defaultSecurityRules/DenyAllInBound"},
		{"Inbound", "10.9.0.1", "22", "5000", "Deny", "securityRules/no"},
		{"Inbound", "10.0.0.5", "80", "5000", "Allow", "defaultSecurityRules/AllowVnetInBound"},
		{"Inbound", "168.63.129.16", "80", "5000", "Allow", "defaultSecurityRules/AllowAzureLoadBalancerInBound"},
		{"Outbound", "8.8.8.8", "5000", "443", "Allow", "defaultSecurityRules/AllowInternetOutBound"},
		{"Outbound", "192.168.0.1", "5000", "443", "Deny", "defaultSecurityRules/DenyAllOutBound"},
	} {
		got := ask(t, a, "ipFlowVerify", `,"direction":"`+c.direction+`","protocol":"TCP","localIPAddress":"10.0.0.4","localPort":"`+c.local+
			`","remoteIPAddress":"`+c.remote+`","remotePort":"`+c.far+`"`)
		if got["access"] != c.access || got["ruleName"] != c.rule {
			t.Errorf("%s %s %s: %v, want %s by %s", c.direction, c.remote, c.local, got, c.access, c.rule)
		}
	}
	a.Run(
		exchange{Do: "POST " + watcher + "/ipFlowVerify", Body: `{}`, Status: 400, Code: "InvalidRequestFormat"},
		exchange{Do: "POST " + watcher + "/ipFlowVerify", Body: `{"targetResourceId":"` + machine + `x"}`, Status: 404, Code: "ResourceNotFound"},
	)
}

func TestNextHops(t *testing.T) {
	a := start(t)
	for to, want := range map[string]has{
		"10.8.0.1": {"nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.0.0.9", "routeTableId": id + "routeTables/r"},
		"10.0.0.7": {"nextHopType": "VnetLocal", "nextHopIpAddress": nil, "routeTableId": "System Route"},
		"8.8.8.8":  {"nextHopType": "Internet", "nextHopIpAddress": nil, "routeTableId": "System Route"},
		"10.7.0.1": {"nextHopType": "None", "nextHopIpAddress": nil, "routeTableId": "System Route"},
	} {
		got := ask(t, a, "nextHop", `,"sourceIPAddress":"10.0.0.4","destinationIPAddress":"`+to+`"`)
		for name, value := range want {
			if got[name] != value {
				t.Errorf("the next hop to %s is %v, want %v", to, got, want)
			}
		}
	}
}

func TestViewsOfAMachineAndAGroup(t *testing.T) {
	a := start(t)
	got := ask(t, a, "securityGroupView", "")
	if rules := "networkInterfaces.0.securityRuleAssociations"; behaviourtest.At(got, rules+".effectiveSecurityRules.0.name") != "UserRule_ssh" ||
		behaviourtest.At(got, rules+".subnetAssociation.securityRules.0.name") != "ssh" {
		t.Errorf("the view of the machine is %v", got)
	}
	got = ask(t, a, "networkConfigurationDiagnostic",
		`,"profiles":[{"direction":"Inbound","protocol":"TCP","source":"8.8.8.8","destination":"10.0.0.4","destinationPort":"80"}]`)
	if at := "results.0.networkSecurityGroupResult."; behaviourtest.At(got, at+"securityRuleAccessResult") != "Deny" ||
		behaviourtest.At(got, at+"evaluatedNetworkSecurityGroups.0.matchedRule.ruleName") != "DefaultInboundDenyAll" ||
		behaviourtest.At(got, at+"evaluatedNetworkSecurityGroups.0.rulesEvaluationResult.0.destinationPortMatched") != false {
		t.Errorf("the diagnostic is %v", got)
	}
	shown := a.Run(exchange{Do: "POST " + watcher + "/topology", Body: `{"targetResourceGroupName":"rg"}`})
	contained := map[string]bool{}
	for _, resource := range behaviour.Objects(shown, "resources") {
		for _, one := range behaviour.Objects(resource, "associations") {
			contained[behaviour.Text(resource, "name")+" "+behaviour.Text(one, "associationType")+" "+behaviour.Text(one, "name")] = true
		}
	}
	for _, want := range []string{"m Contains n", "v Contains s", "s Associated subnet", "s Associated r", "n Associated interface"} {
		if !contained[want] {
			t.Errorf("the topology lacks %q: %v", want, contained)
		}
	}
}

func TestFlowLogsAreKept(t *testing.T) {
	a := start(t)
	if got := ask(t, a, "queryFlowLogStatus", ""); behaviour.Bool(got, "properties.enabled") {
		t.Errorf("a flow log that nothing configured is %v", got)
	}
	ask(t, a, "configureFlowLog", `,"properties":{"enabled":true,"storageId":"x"}`)
	if got := ask(t, a, "queryFlowLogStatus", ""); !behaviour.Bool(got, "properties.enabled") {
		t.Errorf("the flow log is %v", got)
	}
	a.Run(exchange{Do: "GET " + watcher, Has: has{"$flowLogs": nil}})
}
