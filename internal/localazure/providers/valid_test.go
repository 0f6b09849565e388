package providers_test

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

// validTemplates are the sections of templates that Azure takes. Each is what a public template has that was refused here once, or that
// was another one after the second deployment or in what-if. The outputs are in the template.
var validTemplates = map[string]string{
	"a slash at the end of types": `"resources":[
		{"type":"Microsoft.Network/networkSecurityGroups/","apiVersion":"2020-06-01","name":"n","location":"eastus","properties":{}},
		{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2020-06-01","name":"v","location":"eastus",
			"dependsOn":["[resourceId('Microsoft.Network/networkSecurityGroups/', 'n')]"],
			"properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24",
			"networkSecurityGroup":{"id":"[resourceId('Microsoft.Network/networkSecurityGroups/', 'n')]"}}}]}}]`,
	"names of members in another case": `"resources":[
		{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2020-06-01","name":"v","Location":"eastus","Properties":{
			"AddressSpace":{"addressprefixes":["10.0.0.0/16"]},"Subnets":[{"name":"g","properties":{"AddressPrefix":"10.0.0.0/24"}}]}},
		{"type":"Microsoft.Network/publicIpAddresses","apiVersion":"2020-06-01","name":"p","location":"eastus","SKU":{"Name":"Standard"},
			"properties":{"publicIpAllocationMethod":"Static"}},
		{"type":"Microsoft.Network/networkInterfaces","apiVersion":"2020-06-01","name":"n","location":"eastus","dependsOn":["v","p"],
			"properties":{"ipConfigurations":[{"name":"c","properties":{"privateIpAllocationMethod":"Dynamic",
			"publicIpAddress":{"id":"[resourceId('Microsoft.Network/publicIPAddresses', 'p')]"},
			"subnet":{"id":"[resourceId('Microsoft.Network/virtualNetworks/subnets', 'v', 'g')]"}}}]}}],
		"outputs":{"address":{"type":"string","value":
			"[reference('n').ipConfigurations[0].properties.publicIPAddress.id]"}}`,
	"an api-version that is an expression": `"variables":{"v":"2023-01-31"},"resources":[
		{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion":"[variables('v')]","name":"i","location":"eastus"}]`,
	"functions of the template that call others": `"functions":[{"namespace":"own","members":{
		"low":{"parameters":[{"name":"a","type":"string"}],"output":{"type":"string","value":"[toLower(parameters('a'))]"}},
		"both":{"parameters":[{"name":"a","type":"string"}],"output":{"type":"string","value":"[concat(own.low(parameters('a')), 'x')]"}}}}],
		"resources":[{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion":"2023-01-31","name":"[own.both('I')]",
		"location":"eastus"}],"outputs":{"name":{"type":"string","value":"[own.both('I')]"}}`,
	"zones that are empty": `"resources":[{"type":"Microsoft.Network/publicIPAddresses","apiVersion":"2023-09-01","name":"p",
		"location":"eastus","zones":"","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}]`,
	"an account as it was in 2015": `"resources":[{"type":"Microsoft.Storage/storageAccounts","apiVersion":"2015-06-15","name":"account2015",
		"location":"eastus","properties":{"accountType":"Standard_GRS"}}],
		"outputs":{"sku":{"type":"string","value":"[reference('account2015', '2023-01-01', 'Full').sku.name]"}}`,
	"a managed availability set of 2016": `"resources":[{"type":"Microsoft.Compute/availabilitySets","apiVersion":"2016-04-30-preview",
		"name":"a","location":"eastus","properties":{"managed":true,"platformFaultDomainCount":2,"platformUpdateDomainCount":2}}],
		"outputs":{"sku":{"type":"string","value":"[reference('a', '2023-09-01', 'Full').sku.name]"}}`,
	"the location of children": `"resources":[
		{"type":"Microsoft.KeyVault/vaults","apiVersion":"2023-07-01","name":"kvchildren","location":"eastus","properties":{
			"tenantId":"[subscription().tenantId]","sku":{"family":"A","name":"standard"},"accessPolicies":[]}},
		{"type":"Microsoft.KeyVault/vaults/secrets","apiVersion":"2023-07-01","name":"kvchildren/s","location":"eastus",
			"dependsOn":["kvchildren"],"properties":{"value":"hidden"}},
		{"type":"Microsoft.KeyVault/vaults/keys","apiVersion":"2023-07-01","name":"kvchildren/k","location":"eastus",
			"dependsOn":["kvchildren"],"properties":{"kty":"RSA","curveName":"","exp":978220800}},
		{"type":"Microsoft.Network/networkSecurityPerimeters","apiVersion":"2023-07-01-preview","name":"n","location":"eastus","properties":{}},
		{"type":"Microsoft.Network/networkSecurityPerimeters/profiles","apiVersion":"2023-07-01-preview","name":"n/p","location":"eastus",
			"dependsOn":["n"],"properties":{}}],
		"outputs":{"keyLocation":{"type":"string","value":"[reference('kvchildren/k', '2023-07-01', 'Full').location]"},
			"members":{"type":"string","value":
			"[string(intersection(createArray('exp', 'curveName'), map(items(reference('kvchildren/k')), lambda('i', lambdaVariables('i').key))))]"}}`,
	"references to what has required members": `"resources":[
		{"type":"Microsoft.Network/localNetworkGateways","apiVersion":"2023-09-01","name":"l","location":"eastus","properties":{
			"localNetworkAddressSpace":{"addressPrefixes":["192.168.0.0/16"]},"gatewayIpAddress":"1.1.1.1"}},
		{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2023-09-01","name":"v","location":"eastus","properties":{
			"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"GatewaySubnet","properties":{"addressPrefix":"10.0.0.0/24"}}]}},
		{"type":"Microsoft.Network/publicIPAddresses","apiVersion":"2023-09-01","name":"p","location":"eastus","sku":{"name":"Standard"},
			"properties":{"publicIPAllocationMethod":"Static"}},
		{"type":"Microsoft.Network/virtualNetworkGateways","apiVersion":"2023-09-01","name":"g","location":"eastus","dependsOn":["v","p"],
			"properties":{"gatewayType":"Vpn","vpnType":"RouteBased","enableBgp":"true","bgpSettings":{"asn":65010},"ipConfigurations":[{"name":"c",
			"properties":{"subnet":{"id":"[resourceId('Microsoft.Network/virtualNetworks/subnets', 'v', 'GatewaySubnet')]"},
			"publicIPAddress":{"id":"[resourceId('Microsoft.Network/publicIPAddresses', 'p')]"}}}]}},
		{"type":"Microsoft.Network/connections","apiVersion":"2023-09-01","name":"c","location":"eastus","dependsOn":["g","l"],"properties":{
			"connectionType":"IPsec","sharedKey":"hidden","virtualNetworkGateway1":{"id":
			"[resourceId('Microsoft.Network/virtualNetworkGateways', 'g')]"},"localNetworkGateway2":{"id":
			"[resourceId('Microsoft.Network/localNetworkGateways', 'l')]"}}}],
		"outputs":{"peers":{"type":"bool","value":"[not(empty(reference('g').bgpSettings.bgpPeeringAddress))]"},
			"sku":{"type":"bool","value":"[not(empty(reference('g').sku.name))]"}}`,
	"data disks without names": `"resources":[
		{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2023-09-01","name":"v","location":"eastus","properties":{
			"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24"}}]}},
		{"type":"Microsoft.Network/networkInterfaces","apiVersion":"2023-09-01","name":"n","location":"eastus","dependsOn":["v"],"properties":{
			"ipConfigurations":[{"name":"c","properties":{"subnet":{"id":
			"[resourceId('Microsoft.Network/virtualNetworks/subnets', 'v', 's')]"}}}]}},
		{"type":"Microsoft.Compute/virtualMachines","apiVersion":"2024-07-01","name":"m","location":"eastus","dependsOn":["n"],"properties":{
			"hardwareProfile":{"vmSize":"Standard_D2s_v5"},"osProfile":{"computerName":"m","adminUsername":"operator","adminPassword":"Passw0rd!123"},
			"storageProfile":{"imageReference":{"publisher":"Canonical","offer":"ubuntu-24_04-lts","sku":"server","version":"latest"},
			"osDisk":{"createOption":"FromImage"},"dataDisks":[{"lun":0,"createOption":"Empty","diskSizeGB":8},
			{"lun":1,"createOption":"Empty","diskSizeGB":16}]},"networkProfile":{"networkInterfaces":[{"id":
			"[resourceId('Microsoft.Network/networkInterfaces', 'n')]"}]}}}]`,
	"endpoints without priorities": `"resources":[{"type":"Microsoft.Network/trafficManagerProfiles","apiVersion":"2022-04-01","name":"t",
		"location":"global","properties":{"trafficRoutingMethod":"Priority","dnsConfig":{"relativeName":"kaz-valid","ttl":30},
		"monitorConfig":{"protocol":"HTTP","port":80,"path":"/"},"endpoints":[
		{"name":"a","type":"Microsoft.Network/trafficManagerProfiles/externalEndpoints","properties":{"target":"a.example","endpointStatus":"Enabled"}},
		{"name":"b","type":"Microsoft.Network/trafficManagerProfiles/externalEndpoints","properties":{"target":"b.example","endpointStatus":"Enabled"}}]}}],
		"outputs":{"priorities":{"type":"array","value":
			"[map(reference('t').endpoints, lambda('e', lambdaVariables('e').properties.priority))]"}}`,
	"a network whose subnets are resources of their own": `"resources":[
		{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2023-09-01","name":"v","location":"eastus","properties":{
			"addressSpace":{"addressPrefixes":["10.0.0.0/16"]}}},
		{"type":"Microsoft.Network/virtualNetworks/subnets","apiVersion":"2023-09-01","name":"v/s","dependsOn":["v"],"properties":{
			"addressPrefix":"10.0.0.0/24"}},
		{"type":"Microsoft.Network/networkInterfaces","apiVersion":"2023-09-01","name":"n","location":"eastus","dependsOn":["v/s"],"properties":{
			"ipConfigurations":[{"name":"c","properties":{"subnet":{"id":
			"[resourceId('Microsoft.Network/virtualNetworks/subnets', 'v', 's')]"}}}]}}]`,
	"an account with a key of a vault": `"resources":[
		{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion":"2023-01-31","name":"i","location":"eastus"},
		{"type":"Microsoft.KeyVault/vaults","apiVersion":"2023-07-01","name":"kvencrypts","location":"eastus","properties":{
			"tenantId":"[subscription().tenantId]","sku":{"family":"A","name":"standard"},"enablePurgeProtection":true,"accessPolicies":[]}},
		{"type":"Microsoft.KeyVault/vaults/accessPolicies","apiVersion":"2023-07-01","name":"kvencrypts/add","dependsOn":["kvencrypts","i"],
			"properties":{"accessPolicies":[{"tenantId":"[subscription().tenantId]","objectId":"[reference('i').principalId]","permissions":{
			"keys":["get","wrapKey","unwrapKey"]}}]}},
		{"type":"Microsoft.KeyVault/vaults/keys","apiVersion":"2023-07-01","name":"kvencrypts/k","dependsOn":["kvencrypts"],"properties":{
			"kty":"RSA"}},
		{"type":"Microsoft.Storage/storageAccounts","apiVersion":"2023-01-01","name":"encrypted1","location":"eastus","kind":"StorageV2",
			"sku":{"name":"Standard_LRS"},"dependsOn":["kvencrypts/k"],"identity":{"type":"UserAssigned","userAssignedIdentities":{
			"[resourceId('Microsoft.ManagedIdentity/userAssignedIdentities', 'i')]":{}}},"properties":{"encryption":{
			"identity":{"userAssignedIdentity":"[resourceId('Microsoft.ManagedIdentity/userAssignedIdentities', 'i')]"},
			"services":{"blob":{"enabled":true}},"keySource":"Microsoft.Keyvault","keyvaultproperties":{"keyname":"k",
			"keyvaulturi":"[reference('kvencrypts').vaultUri]"}}}}]`,
	"logs, alerts and what uses them": `"resources":[
		{"type":"Microsoft.OperationalInsights/workspaces","apiVersion":"2022-10-01","name":"w","location":"eastus","properties":{
			"sku":{"name":"PerGB2018"}}},
		{"type":"Microsoft.OperationsManagement/solutions","apiVersion":"2015-11-01-preview","name":"ContainerInsights(w)","location":"eastus",
			"dependsOn":["w"],"plan":{"name":"ContainerInsights(w)","publisher":"Microsoft","product":"OMSGallery/ContainerInsights",
			"promotionCode":""},"properties":{"workspaceResourceId":"[resourceId('Microsoft.OperationalInsights/workspaces', 'w')]"}},
		{"type":"Microsoft.App/managedEnvironments","apiVersion":"2023-05-01","name":"e","location":"eastus","dependsOn":["w"],"properties":{
			"appLogsConfiguration":{"destination":"log-analytics","logAnalyticsConfiguration":{"customerId":"[reference('w').customerId]",
			"sharedKey":"[listKeys('w', '2022-10-01').primarySharedKey]"}}}},
		{"type":"Microsoft.App/containerApps","apiVersion":"2023-05-01","name":"a","location":"eastus","dependsOn":["e"],"properties":{
			"managedEnvironmentId":"[resourceId('Microsoft.App/managedEnvironments', 'e')]","configuration":{"ingress":{"external":true,
			"targetPort":80}},"template":{"containers":[{"name":"a","image":"kaz.local/web:1"}]}}},
		{"type":"Microsoft.ContainerInstance/containerGroups","apiVersion":"2023-05-01","name":"g","location":"eastus","properties":{
			"osType":"Linux","containers":[{"name":"g","properties":{"image":"kaz.local/web:1","resources":{"requests":{"cpu":1,"memoryInGB":1}}}}],
			"ipAddress":{"type":"Public","dnsNameLabel":"kaz-g","ports":[{"port":80,"protocol":"TCP"}]}}},
		{"type":"Microsoft.Web/connections","apiVersion":"2016-06-01","name":"c","location":"eastus","properties":{"displayName":"c"}},
		{"type":"Microsoft.Resources/deploymentScripts","apiVersion":"2023-08-01","name":"s","location":"eastus","kind":"AzureCLI","properties":{
			"azCliVersion":"2.52.0","retentionInterval":"PT1H","scriptContent":"true"}}],
		"outputs":{"app":{"type":"string","value":"[reference('a').configuration.ingress.fqdn]"},
			"group":{"type":"bool","value":"[startsWith(reference('g').ipAddress.ip, '198.19.')]"},
			"groupName":{"type":"string","value":"[reference('g').ipAddress.fqdn]"}}`,
	"what is made of a nested deployment's output": `"resources":[
		{"type":"Microsoft.Resources/deployments","apiVersion":"2022-09-01","name":"one","properties":{"mode":"Incremental",
			"expressionEvaluationOptions":{"scope":"inner"},"template":{
			"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0",
			"resources":[{"type":"Microsoft.Network/virtualWans","apiVersion":"2023-09-01","name":"w","location":"eastus","properties":{}},
			{"type":"Microsoft.Network/virtualHubs","apiVersion":"2023-09-01","name":"h","location":"eastus","dependsOn":["w"],"properties":{
				"addressPrefix":"10.9.0.0/24","virtualWan":{"id":"[resourceId('Microsoft.Network/virtualWans', 'w')]"}}},
			{"type":"Microsoft.Network/vpnGateways","apiVersion":"2023-09-01","name":"g","location":"eastus","dependsOn":["h"],"properties":{
				"virtualHub":{"id":"[resourceId('Microsoft.Network/virtualHubs', 'h')]"}}},
			{"type":"Microsoft.Network/vpnSites","apiVersion":"2023-09-01","name":"s","location":"eastus","dependsOn":["w"],"properties":{
				"addressSpace":{"addressPrefixes":["10.8.0.0/24"]},"ipAddress":"1.1.1.1","virtualWan":{"id":
				"[resourceId('Microsoft.Network/virtualWans', 'w')]"}}}],
			"outputs":{"site":{"type":"string","value":"[resourceId('Microsoft.Network/vpnSites', 's')]"}}}}},
		{"type":"Microsoft.Resources/deployments","apiVersion":"2022-09-01","name":"two","dependsOn":["one"],"properties":{"mode":"Incremental",
			"expressionEvaluationOptions":{"scope":"inner"},"parameters":{"site":{"value":"[reference('one').outputs.site.value]"}},"template":{
			"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0",
			"parameters":{"site":{"type":"string"}},"resources":[{"type":"Microsoft.Network/vpnGateways/vpnConnections","apiVersion":"2023-09-01",
			"name":"g/c","properties":{"remoteVpnSite":{"id":"[parameters('site')]"}}}]}}}]`,
	"a nested deployment with an identity that the same deployment makes": `"resources":[
		{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion":"2023-01-31","name":"i","location":"eastus"},
		{"type":"Microsoft.Resources/deployments","apiVersion":"2022-09-01","name":"vault","dependsOn":["i"],"properties":{"mode":"Incremental",
			"expressionEvaluationOptions":{"scope":"inner"},"parameters":{"who":{"value":"[reference('i').principalId]"}},"template":{
			"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0",
			"parameters":{"who":{"type":"string"}},"resources":[{"type":"Microsoft.KeyVault/vaults","apiVersion":"2023-07-01","name":"kvofidentity",
			"location":"eastus","properties":{"tenantId":"[subscription().tenantId]","sku":{"family":"A","name":"standard"},"accessPolicies":[
			{"tenantId":"[subscription().tenantId]","objectId":"[parameters('who')]","permissions":{"secrets":["get"]}}]}}]}}}]`,
	"a container group in a network, and a domain": `"resources":[
		{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2020-11-01","name":"v","location":"eastus","properties":{
			"addressSpace":{"addressPrefixes":["10.7.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.7.1.0/24","delegations":[
			{"name":"d","properties":{"serviceName":"Microsoft.ContainerInstance/containerGroups"}}]}}]}},
		{"type":"Microsoft.Network/networkProfiles","apiVersion":"2020-11-01","name":"n","location":"eastus","dependsOn":["v"],"properties":{
			"containerNetworkInterfaceConfigurations":[{"name":"e","properties":{"ipConfigurations":[{"name":"i","properties":{"subnet":{
			"id":"[resourceId('Microsoft.Network/virtualNetworks/subnets', 'v', 's')]"}}}]}}]}},
		{"type":"Microsoft.ContainerInstance/containerGroups","apiVersion":"2019-12-01","name":"g","location":"eastus","dependsOn":["n"],
			"properties":{"osType":"Linux","networkProfile":{"id":"[resourceId('Microsoft.Network/networkProfiles', 'n')]"},"containers":[
			{"name":"g","properties":{"image":"kaz.local/web:1","resources":{"requests":{"cpu":1,"memoryInGB":1}}}}]}},
		{"type":"Microsoft.Cdn/profiles","apiVersion":"2020-09-01","name":"f","location":"global","sku":{"name":"Standard_AzureFrontDoor"}},
		{"type":"Microsoft.Cdn/profiles/customDomains","apiVersion":"2020-09-01","name":"f/d","dependsOn":["f"],"properties":{
			"hostName":"www.contoso.example","tlsSettings":{"certificateType":"ManagedCertificate"}}}],
		"outputs":{"inSubnet":{"type":"bool","value":"[startsWith(reference('g').ipAddress.ip, '10.7.1.')]"},
			"token":{"type":"bool","value":"[not(empty(reference('f/d').validationProperties.validationToken))]"}}`,
	"a role of the data of another service": `"resources":[
		{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion":"2023-01-31","name":"i","location":"eastus"},
		{"type":"Microsoft.Authorization/roleAssignments","apiVersion":"2022-04-01","name":"[guid('sender')]","dependsOn":["i"],"properties":{
			"principalId":"[reference('i').principalId]","principalType":"ServicePrincipal","roleDefinitionId":
			"[subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '2b629674-e913-4c01-ae53-ef4638d8f975')]"}}]`,
	"zones that are numbers": `"resources":[
		{"type":"Microsoft.Network/publicIPAddresses","apiVersion":"2023-09-01","name":"p","location":"eastus","zones":[1,2,3],
			"sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}},
		{"type":"Microsoft.Compute/disks","apiVersion":"2024-03-02","name":"d","location":"eastus","zones":[2],"sku":{"name":"Premium_LRS"},
			"properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":4}}],
		"outputs":{"zones":{"type":"array","value":
			"[createArray(reference('d', '2024-03-02', 'Full').zones[0], reference('p', '2023-09-01', 'Full').zones[2])]"}}`,
	"a nested profile without a number of answers": `"resources":[
		{"type":"Microsoft.Network/trafficManagerProfiles","apiVersion":"2022-04-01","name":"child","location":"global","properties":{
			"trafficRoutingMethod":"Weighted","dnsConfig":{"relativeName":"kaz-child","ttl":30},
			"monitorConfig":{"protocol":"HTTP","port":80,"path":"/"}}},
		{"type":"Microsoft.Network/trafficManagerProfiles","apiVersion":"2022-04-01","name":"t","location":"global","dependsOn":["child"],
			"properties":{"trafficRoutingMethod":"Priority","maxReturn":0,"dnsConfig":{"relativeName":"kaz-parent","ttl":30},
			"monitorConfig":{"profileMonitorStatus":"Degraded","protocol":"HTTP","port":80,"path":"/"},"endpoints":[{"name":"e",
			"type":"Microsoft.Network/trafficManagerProfiles/nestedEndpoints","properties":{"targetResourceId":
			"[resourceId('Microsoft.Network/trafficManagerProfiles', 'child')]","minChildEndpoints":1,"priority":1,"weight":1}}]}}]`,
	"tags that are numbers": `"resources":[{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion":"2023-01-31","name":"i",
		"location":"eastus","tags":{"a":1,"b":"[add(1, 1)]","c":"x"}}],
		"outputs":{"tags":{"type":"object","value":"[reference('i', '2023-01-31', 'Full').tags]"}}`,
	"the log of a script": `"resources":[
		{"type":"Microsoft.Resources/deploymentScripts","apiVersion":"2020-10-01","name":"s","location":"eastus","kind":"AzureCLI","properties":{
			"azCliVersion":"2.52.0","retentionInterval":"PT1H","scriptContent":"echo hello","forceUpdateTag":"1"}}],
		"outputs":{"log":{"type":"string","value":
			"[reference(resourceId('Microsoft.Resources/deploymentScripts/logs', 's', 'default'), '2020-10-01').log]"},
			"ended":{"type":"bool","value":"[not(empty(reference('s').status.endTime))]"}}`,
	"values": `"resources":[],"outputs":{
		"greater":{"type":"array","value":"[createArray(greater('A', 'a'), less('A', 'a'), greaterOrEquals('a', 'A'), lessOrEquals('a', 'A'))]"},
		"zones":{"type":"array","value":"[pickZones('Microsoft.Network', 'virtualNetworks', 'eastus')]"},
		"manager":{"type":"bool","value":"[startsWith(environment().resourceManager, 'http://')]"},
		"login":{"type":"bool","value":"[startsWith(environment().authentication.loginEndpoint, 'http://')]"},
		"hash":{"type":"bool","value":"[not(empty(deployment().properties.templateHash))]"},
		"distinct":{"type":"array","value":"[distinct(createArray('a', 'b', 'a'))]"}}`,
}

// outputs are the outputs of those templates that have some.
var outputs = map[string]map[string]any{
	"tags that are numbers":                      {"tags": map[string]any{"a": "1", "b": "2", "c": "x"}},
	"names of members in another case":           {"address": group + "/providers/Microsoft.Network/publicIPAddresses/p"},
	"functions of the template that call others": {"name": "ix"},
	"an account as it was in 2015":               {"sku": "Standard_GRS"},
	"a managed availability set of 2016":         {"sku": "Aligned"},
	"the location of children":                   {"keyLocation": "eastus", "members": "[]"},
	"references to what has required members":    {"peers": true, "sku": true},
	"endpoints without priorities":               {"priorities": []any{1.0, 2.0}},
	"logs, alerts and what uses them": {"app": "a.e.eastus.azurecontainerapps.io", "group": true,
		"groupName": "kaz-g.eastus.azurecontainer.io"},
	"a container group in a network, and a domain": {"inSubnet": true, "token": true},
	"zones that are numbers":                       {"zones": []any{"2", "3"}},
	"the log of a script":                          {"log": "The local Azure does not run deployment scripts.", "ended": true},
	"values": {"greater": []any{true, false, false, true}, "zones": []any{}, "manager": true, "login": true, "hash": true,
		"distinct": []any{"a", "b"}},
}

// TestValidTemplates deploys templates that Azure takes. The same deployment again changes nothing, and what-if has no change then.
func TestValidTemplates(t *testing.T) {
	for name, sections := range validTemplates {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, err := core.New(core.Options{Providers: providers.All()})
				if err != nil {
					t.Fatal(err)
				}
				send(e, "PUT", group, `{"location":"eastus"}`)
				const path = group + "/providers/Microsoft.Resources/deployments/d"
				verdict, why := judged(t, e, path, `{"properties":{"mode":"Incremental","template":{"$schema":
					"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0",`+sections+`}}}`)
				if verdict != asItShouldBe {
					t.Fatalf("%s: %s", verdict, why)
				}
				w := httptest.NewRecorder()
				e.ServeHTTP(w, httptest.NewRequest("GET", path+"?api-version=2024-03-01", nil))
				var deployed struct {
					Properties struct {
						Outputs map[string]struct{ Value any }
					}
				}
				if err := json.Unmarshal(w.Body.Bytes(), &deployed); err != nil {
					t.Fatal(err)
				}
				got := map[string]any{}
				for name, o := range deployed.Properties.Outputs {
					got[name] = o.Value
				}
				if want := outputs[name]; len(want)+len(got) > 0 {
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("outputs: %s", diff)
					}
				}
			})
		})
	}
}
