package providers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

const net = group + "/providers/Microsoft.Network"

// samples are bodies with many fields, by lower-case type.
func samples() map[string]string {
	return map[string]string{
		"microsoft.network/loadbalancers": `{"location":"eastus","sku":{"name":"Standard"},
			"properties":{"frontendIPConfigurations":[{"name":"f","zones":["1"],
			"properties":{"publicIPAddress":{"id":"` + net + `/publicIPAddresses/x"}}},{"name":"g",
			"properties":{"subnet":{"id":"` + network + `/subnets/nodes"},"privateIPAddress":"10.0.0.9",
			"privateIPAllocationMethod":"Static"}}],
"backendAddressPools":[{"name":"p","properties":{"loadBalancerBackendAddresses":[{"name":"a","properties":{"ipAddress":"10.0.0.5",
"virtualNetwork":{"id":"` + network + `"}}}]}}],"probes":[{"name":"h","properties":{"protocol":"Tcp","port":80}}],
"loadBalancingRules":[{"name":"r","properties":{"protocol":"Tcp","frontendPort":80,"backendPort":80,
"frontendIPConfiguration":{"id":"` + net + `/loadBalancers/x/frontendIPConfigurations/f"},
"backendAddressPool":{"id":"` + net + `/loadBalancers/x/backendAddressPools/p"},"probe":{"id":"` + net + `/loadBalancers/x/probes/h"}}}],
"inboundNatRules":[],"outboundRules":[],"inboundNatPools":[]}}`,
		"microsoft.network/expressroutecircuits/peerings": `{"properties":{"peeringType":"AzurePrivatePeering"}}`, // their names are types
		"microsoft.network/publicipaddresses": `{"location":"eastus","zones":["1"],"sku":{"name":"Standard","tier":"Regional"},
			"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","dnsSettings":{"domainNameLabel":"label1"},
			"ipTags":[{"ipTagType":"RoutingPreference","tag":"Internet"}],"publicIPPrefix":{"id":"` + net + `/publicIPPrefixes/x"}}}`,
		"microsoft.network/virtualnetworks": `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8",
			"fd00::/48"]},"subnets":[{"name":"x","properties":{"addressPrefix":"10.0.0.0/24","addressPrefixes":["10.0.0.0/24"],
			"serviceEndpoints":[{"service":"Microsoft.Storage"}],"delegations":[{"name":"d","properties":{"serviceName":"a"}}]}}],
			"virtualNetworkPeerings":[]}}`,
		"microsoft.network/networksecuritygroups": `{"location":"eastus","properties":{"securityRules":[{"name":"r",
			"properties":{"priority":500,"direction":"Inbound","access":"Allow","protocol":"Tcp","sourcePortRange":"*",
			"destinationPortRanges":["80","443"],"sourceAddressPrefix":"Internet","destinationAddressPrefixes":["1.2.3.4"]}}]}}`,
		"microsoft.network/networkinterfaces": `{"location":"eastus","properties":{"ipConfigurations":[{"name":"i",
			"properties":{"primary":true,"privateIPAllocationMethod":"Dynamic","subnet":{"id":"` + network + `/subnets/nodes"},
			"loadBalancerBackendAddressPools":[]}}],"networkSecurityGroup":{"id":"` + net + `/networkSecurityGroups/x"},
			"dnsSettings":{"dnsServers":[]}}}`,
		"microsoft.network/routetables": `{"location":"eastus","properties":{"routes":[{"name":"r",
			"properties":{"addressPrefix":"10.1.0.0/16","nextHopType":"VirtualAppliance","nextHopIpAddress":"10.0.0.4"}}]}}`,
		"microsoft.compute/virtualmachinescalesets": `{"location":"eastus","zones":["1","2"],"sku":{"name":"Standard_D4s_v5",
			"tier":"Standard","capacity":2},"identity":{"type":"SystemAssigned","userAssignedIdentities":{}},
			"properties":{"upgradePolicy":{"mode":"Manual"},"orchestrationMode":"Uniform",
			"virtualMachineProfile":{"osProfile":{"computerNamePrefix":"n","adminUsername":"u",
			"linuxConfiguration":{"ssh":{"publicKeys":[{"path":"p","keyData":"k"}]}}},
			"storageProfile":{"imageReference":{"publisher":"Canonical","offer":"ubuntu-24_04-lts","sku":"server","version":"latest"},
			"osDisk":{"createOption":"FromImage"},"dataDisks":[{"lun":0,"createOption":"Empty","diskSizeGB":4}]},
			"networkProfile":{"networkInterfaceConfigurations":[{"name":"nic","properties":{"primary":true,
			"ipConfigurations":[{"name":"c","properties":{"primary":true,"subnet":{"id":"` + network + `/subnets/nodes"},
			"loadBalancerBackendAddressPools":[],"publicIPAddressConfiguration":{"name":"p",
			"properties":{"idleTimeoutInMinutes":4}}}}]}}]},"extensionProfile":{"extensions":[{"name":"e","properties":{"publisher":"a",
			"type":"b"}}]}}}}`,
		"microsoft.compute/virtualmachines": `{"location":"eastus","zones":["1"],
			"properties":{"hardwareProfile":{"vmSize":"Standard_D4s_v5"},"storageProfile":{"imageReference":{"publisher":"Canonical",
			"offer":"ubuntu-24_04-lts","sku":"server","version":"latest"},"osDisk":{"createOption":"FromImage",
			"managedDisk":{"storageAccountType":"Premium_LRS"}},"dataDisks":[{"lun":1,"createOption":"Empty","diskSizeGB":4}]},
			"osProfile":{"computerName":"c","adminUsername":"u","linuxConfiguration":{"disablePasswordAuthentication":true}},
			"networkProfile":{"networkInterfaces":[{"id":"` + net + `/networkInterfaces/x","properties":{"primary":true}}]}}}`,
		"microsoft.compute/disks": `{"location":"eastus","zones":["1"],"sku":{"name":"Premium_LRS"},
			"properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":10,"maxShares":2}}`,
		"microsoft.compute/snapshots": `{"location":"eastus","properties":{"creationData":{"createOption":"Copy",
			"sourceResourceId":"` + group + `/providers/Microsoft.Compute/disks/x"},"incremental":true}}`,
		"microsoft.storage/storageaccounts": `{"location":"eastus","kind":"StorageV2","sku":{"name":"Standard_LRS"},
			"properties":{"networkAcls":{"defaultAction":"Deny","virtualNetworkRules":[{"id":"` + network + `/subnets/nodes"}]},
			"minimumTlsVersion":"TLS1_2"}}`,
		"microsoft.network/virtualnetworks/virtualnetworkpeerings": `{"properties":{"remoteVirtualNetwork":{"id":"` + network +
			`"},"allowForwardedTraffic":true}}`,
		"microsoft.network/privatednszones/cname": `{"properties":{"ttl":60,"cnameRecord":{"cname":"a.io"}}}`,
		"microsoft.network/privatednszones/srv": `{"properties":{"ttl":60,"srvRecords":[{"priority":1,"weight":1,"port":1,
			"target":"a.io"}]}}`,
		"microsoft.authorization/roledefinitions": `{"properties":{"roleName":"r","permissions":[{"actions":["*"],"notActions":[]}],
			"assignableScopes":["/subscriptions/` + core.DefaultSubscription + `"]}}`,
		"microsoft.network/privatednszones/a": `{"properties":{"ttl":300,"aRecords":[{"ipv4Address":"1.2.3.4"}]}}`,
		"microsoft.network/dnszones/txt":      `{"properties":{"TTL":300,"TXTRecords":[{"value":["a","b"]}],"metadata":{"a":"b"}}}`,
		"microsoft.resources/deployments": `{"properties":{"mode":"Incremental","template":{
			"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0",
			"parameters":{"p":{"type":"string","defaultValue":"v"}},"variables":{"a":"[parameters('p')]"},"resources":[{
			"type":"Microsoft.Network/routeTables","apiVersion":"2024-05-01","name":"[variables('a')]","location":"eastus",
			"dependsOn":[]}],"outputs":{"o":{"type":"string","value":"x"}}},"parameters":{}}}`,
		"microsoft.network/privateendpoints": `{"location":"eastus","properties":{"subnet":{"id":"` + network +
			`/subnets/nodes"},"privateLinkServiceConnections":[{"name":"c","properties":{"privateLinkServiceId":"` + net +
			`/privateLinkServices/x","groupIds":["g"]}}]}}`,
		"microsoft.network/privatelinkservices": `{"location":"eastus","properties":{"loadBalancerFrontendIpConfigurations":[{"id":"` +
			net + `/loadBalancers/x/frontendIPConfigurations/g"}],"ipConfigurations":[{"name":"i","properties":{"subnet":{"id":"` +
			network + `/subnets/nodes"},"primary":true}}],"visibility":{"subscriptions":["*"]}}}`,
		"microsoft.network/natgateways": `{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIpPrefixes":[{"id":"` +
			net + `/publicIPPrefixes/x"}],"idleTimeoutInMinutes":4}}`,
		"microsoft.authorization/roleassignments": `{"properties":{"roleDefinitionId":"/subscriptions/` +
			core.DefaultSubscription +
			`/providers/Microsoft.Authorization/roleDefinitions/b24988ac-6180-42a0-ab88-20f7382dd24c",
				"principalId":"b24988ac-6180-42a0-ab88-20f7382dd24e","principalType":"ServicePrincipal"}}`,
		"microsoft.network/publicipprefixes": `{"location":"eastus","sku":{"name":"Standard"},"zones":["1"],"properties":{
			"prefixLength":28}}`,
		"microsoft.network/privatednszones": `{"location":"global"}`,
		"microsoft.network/dnszones":        `{"location":"global","properties":{"zoneType":"Public"}}`,
		"microsoft.network/privatednszones/virtualnetworklinks": `{"location":"global","properties":{"virtualNetwork":{"id":"` +
			network + `"},"registrationEnabled":false}}`,
		"microsoft.network/virtualnetworks/subnets": `{"properties":{"addressPrefix":"10.0.7.0/24",
			"networkSecurityGroup":{"id":"` + net + `/networkSecurityGroups/x"},"routeTable":{"id":"` + net + `/routeTables/x"}}}`,
		"microsoft.network/routetables/routes": `{"properties":{"addressPrefix":"10.2.0.0/16",
			"nextHopType":"VnetLocal"}}`,
		"microsoft.network/networksecuritygroups/securityrules": `{"properties":{"priority":700,"direction":"Inbound","access":"Deny",
			"protocol":"*","sourcePortRange":"*","destinationPortRange":"*","sourceAddressPrefix":"*","destinationAddressPrefix":"*"}}`,
		"microsoft.network/privateendpoints/privatednszonegroups": `{"properties":{"privateDnsZoneConfigs":[{"name":"z","properties":{
			"privateDnsZoneId":"` + net + `/privateDnsZones/x.io"}}]}}`,
		"microsoft.network/loadbalancers/inboundnatrules": `{"properties":{"frontendPort":2222,"backendPort":22,
			"protocol":"Tcp","frontendIPConfiguration":{"id":"` + net + `/loadBalancers/x/frontendIPConfigurations/f"}}}`,
		"microsoft.compute/virtualmachinescalesets/virtualmachines": `{"location":"eastus","properties":{"protectionPolicy":{
			"protectFromScaleIn":true},"storageProfile":{"dataDisks":[{"lun":0,"createOption":"Attach","managedDisk":{
			"id":"` + group + `/providers/Microsoft.Compute/disks/x"}}]}}}`,
		"microsoft.storage/storageaccounts/fileservices/shares": `{"properties":{"shareQuota":100,"enabledProtocols":"SMB"}}`,
		"microsoft.keyvault/vaults/keys":                        `{"properties":{"kty":"RSA"}}`,
		"microsoft.network/virtualnetworkgateways":              `{"location":"eastus","properties":{"gatewayType":"Vpn"}}`,
		"microsoft.keyvault/vaults/secrets":                     `{"properties":{"value":"v"}}`,
		"microsoft.keyvault/vaults": `{"location":"eastus","properties":{"tenantId":"t","sku":{
			"family":"A","name":"standard"},"accessPolicies":[]}}`,
		"microsoft.containerregistry/registries": `{"location":"eastus","sku":{"name":"Premium"},"properties":{
			"adminUserEnabled":true}}`,
	}
}

// nameOf returns a name that the type allows.
func nameOf(segment string) string {
	switch segment {
	case "storageAccounts", "registries", "vaults":
		return "xresource1"
	case "privateDnsZones", "dnszones":
		return "x.io"
	case "roleAssignments", "roleDefinitions":
		return "b24988ac-6180-42a0-ab88-20f7382dd24d"
	case "blobServices", "fileServices":
		return "default"
	case "containers", "shares":
		return "xyz"
	}
	return "x"
}

// pathOf returns the path of a resource of a type.
func pathOf(fullType string) string {
	if fullType == "Microsoft.Resources/resourceGroups" {
		return group
	}
	namespace, rest, _ := strings.Cut(fullType, "/")
	path := group + "/providers/" + namespace
	for i, segment := range strings.Split(rest, "/") {
		name := nameOf(segment)
		if segment == "virtualMachines" && i > 0 {
			name = "0"
		}
		path += "/" + segment + "/" + name
	}
	return path
}

// Bodies with any value in any place are refused or accepted, and never make a type fail.
func TestMalformedBodies(t *testing.T) {
	var log, state bytes.Buffer
	options := core.Options{Providers: providers.All(), Log: slog.New(slog.NewTextHandler(&log, nil))}
	full, err := core.New(options)
	if err != nil {
		t.Fatal(err)
	}
	bodies, types := samples(), full.Types()
	prepare(full, bodies)
	if err := full.Save(&state); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		log.Reset()
		e, err := core.New(options)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Load(bytes.NewReader(state.Bytes())); err != nil {
			t.Fatal(err)
		}
		for range 30 {
			typ := rapid.SampledFrom(types).Draw(t, "type")
			path := pathOf(typ.Name)
			method := rapid.SampledFrom([]string{"PUT", "PUT", "PUT", "PATCH", "POST", "GET", "DELETE"}).Draw(t, "method")
			switch {
			case method == "POST" && slices.Contains(typ.Actions, "generateKeyPair"):
				continue // takes long, and has no body
			case method == "POST" && len(typ.Actions) > 0:
				path += "/" + rapid.SampledFrom(typ.Actions).Draw(t, "action")
			case method == "GET" && len(typ.Views) > 0:
				path += "/" + rapid.SampledFrom(typ.Views).Draw(t, "view")
			}
			body := mutated(t, sampleOf(bodies, typ.Name))
			w := httptest.NewRecorder()
			e.ServeHTTP(w, httptest.NewRequest(method, path+"?api-version=2025-05-01", strings.NewReader(body)))
			if w.Code >= 500 || log.Len() > 0 {
				t.Fatalf("%s %s %s: %d %s\n%s", method, path, body, w.Code, w.Body, log.String())
			}
		}
	})
}

// prepare creates one resource of each type in the group.
func prepare(e *core.Emulator, bodies map[string]string) {
	put := func(path, body string) {
		e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("PUT", path+"?api-version=2025-05-01", strings.NewReader(body)))
	}
	put(group, `{"location":"eastus"}`)
	put(network,
		`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]},"subnets":[{"name":"nodes","properties":{
			"addressPrefix":"10.0.0.0/24","privateLinkServiceNetworkPolicies":"Disabled"}}]}}`)
	for range 3 { // some need resources that come later
		for _, typ := range e.Types() {
			put(pathOf(typ.Name), sampleOf(bodies, typ.Name))
		}
	}
}

func sampleOf(bodies map[string]string, fullType string) string {
	if body := bodies[strings.ToLower(fullType)]; body != "" {
		return body
	}
	if strings.Contains(strings.ToLower(fullType), "dnszones/") {
		return `{"properties":{"ttl":60}}`
	}
	return `{"location":"eastus","properties":{}}`
}

// mutated replaces some values of a body by others.
func mutated(t *rapid.T, body string) string {
	var tree any
	if err := json.Unmarshal([]byte(body), &tree); err != nil {
		t.Fatalf("sample %s: %v", body, err)
	}
	for range rapid.IntRange(0, 3).Draw(t, "mutations") {
		places := allPlaces(tree)
		place := rapid.SampledFrom(places).Draw(t, "place")
		place.set(anything().Draw(t, "value"))
	}
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func anything() *rapid.Generator[any] {
	return rapid.SampledFrom([]any{
		nil, 0, -1, 1.5, 1 << 40, true, "", "x", "*", "999", "10.0.0.0/33", "::1", "/subscriptions/a", group +
			"/providers/Microsoft.Network/loadBalancers/x",
		network + "/subnets/nodes", []any{}, []any{nil}, []any{1, "a"}, []any{map[string]any{}}, map[string]any{},
		map[string]any{"id": 7}, map[string]any{"id": "x", "name": "y"},
		[]any{map[string]any{"name": "a"}, map[string]any{"name": "A", "properties": nil}}, strings.Repeat("a", 300),
	})
}

// place is the position of a value in a tree.
type place struct {
	name string
	set  func(any)
}

func (p place) String() string { return p.name }

func allPlaces(tree any) []place {
	var places []place
	var walk func(name string, v any)
	walk = func(name string, v any) {
		switch x := v.(type) {
		case map[string]any:
			keys := make([]string, 0, len(x))
			for k := range x {
				keys = append(keys, k)
			}
			sort.Strings(keys)
			for _, k := range keys {
				places = append(places, place{name + "." + k, func(to any) { x[k] = to }})
				walk(name+"."+k, x[k])
			}
		case []any:
			for i := range x {
				places = append(places, place{fmt.Sprintf("%s[%d]", name, i), func(to any) { x[i] = to }})
				walk(fmt.Sprintf("%s[%d]", name, i), x[i])
			}
		}
	}
	walk("", tree)
	return slices.Clip(places)
}
