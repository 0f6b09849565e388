package resources_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/providers"
)

// machineTemplate is a machine with its network, in an order in which it cannot be
// made, as command-line tools write such templates.
const machineTemplate = `{
	"$schema": "https://schema.management.azure.com/schemas/2015-01-01/deploymentTemplate.json#", "contentVersion": "1.0.0.0",
	"parameters": {"adminPassword": {"type": "securestring", "metadata": {"description": "Secure adminPassword"}}},
	"variables": {},
	"resources": [
		{"name": "vm1", "type": "Microsoft.Compute/virtualMachines", "apiVersion": "2022-11-01", "location": "westus", "tags": {},
			"dependsOn": ["Microsoft.Network/networkInterfaces/nic1"],
			"properties": {
				"hardwareProfile": {"vmSize": "Standard_D2s_v3"},
					"networkProfile": {"networkInterfaces": [{"id": "~/providers/Microsoft.Network/networkInterfaces/nic1"}]},
				"storageProfile": {"osDisk": {"createOption": "FromImage", "caching": "ReadWrite", "managedDisk": {}},
					"imageReference": {"publisher": "Canonical", "offer": "0001-com-ubuntu-server-jammy", "sku": "22_04-lts-gen2",
					"version": "latest"}},
				"osProfile": {"computerName": "vm1", "adminUsername": "u", "adminPassword": "[parameters('adminPassword')]"}
			}},
		{"type": "Microsoft.Network/networkInterfaces", "name": "nic1", "apiVersion": "2022-01-01", "location": "westus",
			"dependsOn": ["Microsoft.Network/virtualNetworks/net", "Microsoft.Network/networkSecurityGroups/nsg",
			"Microsoft.Network/publicIpAddresses/ip"],
			"properties": {"networkSecurityGroup": {"id": "~/providers/Microsoft.Network/networkSecurityGroups/nsg"},
				"ipConfigurations": [{"name": "c", "properties": {"privateIPAllocationMethod": "Dynamic",
					"subnet": {"id": "[resourceId('Microsoft.Network/virtualNetworks/subnets', 'net', 's')]"},
					"publicIPAddress": {"id": "~/providers/Microsoft.Network/publicIPAddresses/ip"}}}]}},
		{"type": "Microsoft.Network/networkSecurityGroups", "name": "nsg", "apiVersion": "2022-01-01", "location": "westus",
			"properties": {}},
		{"type": "Microsoft.Network/publicIPAddresses", "name": "ip", "apiVersion": "2022-05-01", "location": "westus",
			"sku": {"name": "Standard"}, "properties": {"publicIPAllocationMethod": "Static"}},
		{"type": "Microsoft.Network/virtualNetworks", "name": "net", "apiVersion": "2022-01-01", "location": "westus",
			"properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "subnets": [{"name": "s",
			"properties": {"addressPrefix": "10.0.0.0/24"}}]}}
	],
	"outputs": {"network": {"type": "object", "value": "[reference('net')]"}, "address": {"type": "string",
			"value": "[reference('ip').ipAddress]"}}
}`

func TestPrivateEndpointsAreShownByWhatTheyLeadTo(t *testing.T) {
	a := behaviourtest.Start(t, providers.All()...)
	const account = "~/providers/Microsoft.Storage/storageAccounts/data1"
	full := func(id string) string { return strings.Replace(id, "~", behaviourtest.Group, 1) }
	a.Run(
		exchange{Do: "PUT " + account, Body: `{"location":"eastus","kind":"StorageV2","sku":{"name":"Standard_LRS"}}`, Status: 202},
		exchange{Do: "PUT ~/providers/Microsoft.Network/virtualNetworks/net", Status: 201,
			Body: `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s",
				"properties":{"addressPrefix":"10.0.0.0/24"}}]}}`},
		exchange{Do: "GET " + account, Has: has{"properties.privateEndpointConnections.#": 0}},
		exchange{Do: "PUT ~/providers/Microsoft.Network/privateEndpoints/pe", Status: 201,
			Body: `{"location":"eastus","properties":{"subnet":{"id":"` +
				full("~/providers/Microsoft.Network/virtualNetworks/net/subnets/s") +
				`"},"privateLinkServiceConnections":[{"name":"c","properties":{"privateLinkServiceId":"` + full(account) +
				`","groupIds":["file"]}}]}}`},
		exchange{Do: "GET " + account, Has: has{
			"properties.privateEndpointConnections.#": 1,
			"properties.privateEndpointConnections.0.properties.privateEndpoint.id": full(
				"~/providers/Microsoft.Network/privateEndpoints/pe"),
			"properties.privateEndpointConnections.0.properties.privateLinkServiceConnectionState.status": "Approved",
		}},
	)
}

func TestAMachineIsDeployedWithItsNetwork(t *testing.T) {
	a := behaviourtest.Start(t, providers.All()...)
	done := ended(a, of(strings.ReplaceAll(machineTemplate, "~", behaviourtest.Group), `{"adminPassword":{"value":"hidden-1!"}}`),
		"Succeeded")
	a.Run(
		exchange{Do: "GET ~/providers/Microsoft.Compute/virtualMachines/vm1/instanceView",
			Has: has{"statuses.1.code": "PowerState/running"}},
		exchange{Do: "GET ~/providers/Microsoft.Network/networkInterfaces/nic1",
			Has: has{"properties.ipConfigurations.0.properties.privateIPAddress": "10.0.0.4"}},
		exchange{Do: "GET ~/resources?$filter=resourceType eq 'Microsoft.Network/publicIPAddresses'", Has: has{"value.#": 1}},
		exchange{Do: "HEAD " + deployment, Status: 204},
	)
	if text := behaviour.Text(done, "properties.outputs.address.value"); !strings.Contains(text, ".") {
		t.Errorf("address in the outputs: %q", text)
	}
	if used := behaviourtest.At(done,
		"properties.outputs.network.value.subnets.0.properties.ipConfigurations.#"); !behaviour.Equal(used, 1) {
		t.Errorf("the subnet in the outputs has %v configurations, want the machine's", used)
	}
	if behaviourtest.At(done, "properties.parameters.adminPassword.value") != nil {
		t.Error("the deployment shows a secret parameter")
	}
}
