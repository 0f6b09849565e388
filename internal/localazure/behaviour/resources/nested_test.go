package resources_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/identity"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/behaviour/vault"
	"kaz/internal/localazure/core"
)

// identityIn is a template resource: a managed identity with a name, which may be an expression.
func identityIn(name, more string) string {
	return `{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion":"2024-11-30","location":"eastus","name":"` + name + `"` +
		more + `}`
}

// nested is a template resource: a deployment of resources and outputs.
func nested(name, more, template string) string {
	return `{"type":"Microsoft.Resources/deployments","apiVersion":"2022-09-01","name":"` + name + `"` + more +
		`,"properties":{"mode":"Incremental","template":` + whole(template) + `}}`
}

func TestNestedDeployments(t *testing.T) {
	a := start(t)
	a.Run(exchange{Do: "PUT ~~/resourceGroups/other", Body: `{"location":"westus"}`, Status: 201})
	done := ended(a, of(`{"parameters":{"p":{"type":"string","defaultValue":"outer"}},"resources":[
		`+nested("here", "", `{"resources":[`+identityIn("[parameters('p')]", "")+`],
			"outputs":{"Group":{"type":"string","value":"[resourceGroup().name]"}}}`)+`,
		{"type":"Microsoft.Resources/deployments","apiVersion":"2022-09-01","name":"there","resourceGroup":"other","dependsOn":["here"],
		 "properties":{"mode":"Incremental","expressionEvaluationOptions":{"scope":"inner"},
			"parameters":{"p":{"value":"[reference('here').outputs.group.value]"},"secret":{"value":"x"}},
			"template":{`+header+`"parameters":{"p":{"type":"string"},"secret":{"type":"securestring"}},
				"resources":[`+identityIn("[concat(parameters('p'), '-inner')]", "")+`],
				"outputs":{"Group":{"type":"string","value":"[resourceGroup().name]"},
					"Secret":{"type":"securestring","value":"[parameters('secret')]"}}}}}],
		"outputs":{"HOSTName":{"type":"string","value":"[reference('there').outputs.Group.value]"}}}`, ""), "Succeeded")
	for path, want := range (has{
		"properties.outputs.hostName.value": "other", "properties.outputResources.#": 2, "properties.dependencies.0.resourceName": "there",
		"properties.dependencies.0.dependsOn.0.resourceName": "here", "properties.providers.0.namespace": "Microsoft.Resources",
	}) {
		if got := behaviourtest.At(done, path); !behaviour.Equal(got, want) {
			t.Errorf("%s of the deployment is %v, want %v", path, got, want)
		}
	}
	const inOther = "~~/resourceGroups/other/providers/Microsoft."
	a.Run(
		exchange{Do: "GET " + identities + "/outer"},
		exchange{Do: "GET " + inOther + "ManagedIdentity/userAssignedIdentities/rg-inner"},
		exchange{Do: "GET ~/providers/Microsoft.Resources/deployments", Has: has{"value.#": 2}},
		exchange{Do: "GET " + inOther + "Resources/deployments/there", Has: has{"properties.outputs.group.value": "other",
			"properties.outputs.secret.value": nil, "properties.outputs.secret.type": "SecureString", "properties.parameters.secret.value": nil,
			"$linked": nil}},
	)
}

func TestAFailedNestedDeploymentKeepsWhatItMade(t *testing.T) {
	a := start(t)
	failed := ended(a, of(`{"resources":[`+nested("n", "", `{"resources":[`+identityIn("made", "")+`,
		{"type":"Microsoft.Storage/storageAccounts","apiVersion": "2024-01-01","name":"notgood1","location":"eastus","sku":{"name":"None_LRS"}}]}`)+
		`]}`, ""), "Failed")
	for path, want := range (has{
		"properties.error.details.0.code":                     "ResourceDeploymentFailure",
		"properties.error.details.0.details.0.code":           "DeploymentFailed",
		"properties.error.details.0.details.0.details.0.code": "InvalidRequestPropertyValue",
	}) {
		if got := behaviourtest.At(failed, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	a.Run(
		exchange{Do: "GET " + identities + "/made"},
		exchange{Do: "GET ~/providers/Microsoft.Resources/deployments/n", Has: has{"properties.provisioningState": "Failed"}},
		exchange{Do: "GET ~/providers/Microsoft.Resources/deployments/n/operations",
			Has: has{"value.#": 2, "value.1.properties.statusCode": "BadRequest"}},
	)
}

// A deployment at a subscription makes a group, and deploys into it.
func TestADeploymentAtASubscription(t *testing.T) {
	a := start(t)
	a.Run(
		exchange{Do: "PUT ~~/providers/Microsoft.Resources/deployments/sub", Status: 201, Body: `{"location":"eastus","properties":{
			"mode":"Incremental","template":{` + header + `"resources":[
			` + nested("in", `,"resourceGroup":"fresh","dependsOn":["[subscriptionResourceId('Microsoft.Resources/resourceGroups', 'fresh')]"]`,
			`{"resources":[`+identityIn("n", "")+`]}`) + `,
			{"type":"Microsoft.Resources/resourceGroups","apiVersion":"2024-03-01","name":"fresh","location":"westus"}]}}}`},
		exchange{Do: "GET ~~/providers/Microsoft.Resources/deployments/sub", Has: has{"properties.provisioningState": "Succeeded"}},
		exchange{Do: "GET ~~/resourceGroups/fresh/providers/Microsoft.ManagedIdentity/userAssignedIdentities/n"},
		exchange{Do: "GET ~~/resourceGroups/fresh/providers/Microsoft.Resources/deployments/in"},
		exchange{Do: "PUT ~~/providers/Microsoft.Resources/deployments/sub", Status: 409, Code: "InvalidDeploymentLocation",
			Body: `{"location":"westus","properties":{"mode":"Incremental","template":{` + header + `"resources":[]}}}`},
	)
}

// sites is the content at URIs.
type sites map[string]string

func (s sites) download(_ context.Context, uri string) ([]byte, error) {
	if text, ok := s[uri]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("404 Not Found")
}

func TestLinkedTemplates(t *testing.T) {
	const parent = "http://templates/main.json"
	a := behaviourtest.StartWith(t, core.Options{
		Providers: []behaviour.Provider{resources.Provider(), identity.Provider(), storage.Provider()},
		Download: sites{
			parent + "?sig=a": `{` + header + `
				// a template with comments, which links to others
				resources: [
					{"type": "Microsoft.Resources/deployments", "apiVersion": "2022-09-01", "name": "beside",
						"properties": {"mode": "Incremental", "templateLink": {"relativePath": "nested/one.json"}}},
					{"type": "Microsoft.Resources/deployments", "apiVersion": "2022-09-01", "name": "absolute",
						"properties": {"mode": "Incremental", "templateLink": {"uri": "[uri(deployment().properties.templateLink.uri, 'two.json')]"},
							"parametersLink": {"uri": "http://templates/two.parameters.json"}}},
					{"type": "Microsoft.Resources/deployments", "apiVersion": "2022-09-01", "name": "late", "dependsOn": ["beside"],
						"properties": {"mode": "Incremental", "templateLink": {"relativePath": "three.json"},
							"parameters": {"n": {"value": "[concat('three', reference('beside').provisioningState)]"}}}},
				],
			}`,
			"http://templates/nested/one.json":     whole(`{"resources":[` + identityIn("one", "") + `]}`),
			"http://templates/two.json":            whole(`{"parameters":{"n":{"type":"string"}},"resources":[` + identityIn("[parameters('n')]", "") + `]}`),
			"http://templates/three.json":          whole(`{"parameters":{"n":{"type":"string"}},"resources":[` + identityIn("[parameters('n')]", "") + `]}`),
			"http://templates/two.parameters.json": `{"parameters":{"n":{"value":"two"}}}`,
		}.download,
	})
	body := `{"properties":{"mode":"Incremental","templateLink":{"uri":"` + parent + `","queryString":"sig=a"}}}`
	done := ended(a, body, "Succeeded")
	if got := behaviourtest.At(done, "properties.templateLink.uri"); got != parent {
		t.Errorf("the link of the deployment is %v", got)
	}
	a.Run(
		exchange{Do: "GET " + identities + "/one"},
		exchange{Do: "GET " + identities + "/two"},
		exchange{Do: "GET " + identities + "/threeSucceeded"},
		exchange{Do: "GET ~/providers/Microsoft.Resources/deployments/beside",
			Has: has{"properties.templateLink.uri": "http://templates/nested/one.json", "properties.templateLink.contentVersion": "1.0.0.0"}},
		exchange{Do: "PUT " + deployment, Status: 400, Code: "InvalidContentLink", Body: strings.Replace(body, "main", "missing", 1)},
		exchange{Do: "POST " + deployment + "/validate", Body: body, Has: has{"properties.provisioningState": "Succeeded"}},
	)
}

func TestADeploymentInModeComplete(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), identity.Provider(), network.Provider())
	ended(a, of(`{"resources":[`+identityIn("a", "")+`,`+identityIn("b", "")+`,`+identityIn("c", "")+`,
		{"type":"Microsoft.Network/networkSecurityGroups","apiVersion": "2024-01-01","name":"nsg","location":"eastus"},
		{"type":"Microsoft.Network/virtualNetworks","apiVersion": "2024-01-01","name":"v","location":"eastus","dependsOn":["nsg"],"properties":{
			"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24",
			"networkSecurityGroup":{"id":"[resourceId('Microsoft.Network/networkSecurityGroups','nsg')]"}}}]}}]}`, ""), "Succeeded")
	ended(a, strings.Replace(of(`{"resources":[`+identityIn("a", "")+`,`+identityIn("b", `,"condition":false`)+`,
		`+nested("n", "", `{"resources":[`+identityIn("c", "")+`]}`)+`]}`, ""), "Incremental", "Complete", 1), "Succeeded")
	a.Run(
		exchange{Do: "GET " + identities, Has: has{"value.#": 2, "value.0.name": "a", "value.1.name": "c"}},
		exchange{Do: "GET ~/resources", Has: has{"value.#": 2}},
		exchange{Do: "GET " + deployment, Has: has{"properties.mode": "Complete"}},
	)
}

// predict returns what a deployment would change: the output of an operation.
func predict(a *behaviourtest.Azure, number, body string, want has) behaviour.Object {
	a.Helper()
	got := a.Request("POST", deployment+number+"/whatIf", body)
	if got.Status != 202 || got.Body != nil {
		a.Fatalf("whatIf: %d %v", got.Status, got.Body)
	}
	end := a.Request("GET", got.Header.Get("Location"), "")
	for path, value := range want {
		if found := behaviourtest.At(end.Body, path); !behaviour.Equal(found, value) {
			a.Errorf("whatIf: %s is %v, want %v", path, found, value)
		}
	}
	if end.Status != 200 {
		a.Errorf("the end of whatIf: %d %v", end.Status, end.Body)
	}
	return end.Body
}

func TestWhatIf(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), identity.Provider(), network.Provider())
	network := func(prefixes, tags string) string {
		return `{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2024-05-01","name":"v","location":"eastus","tags":` + tags + `,
			"properties":{"addressSpace":{"addressPrefixes":` + prefixes + `}}}`
	}
	ended(a, of(`{"resources":[`+network(`["10.0.0.0/16"]`, `{"a":"1","b":"2"}`)+`,`+identityIn("same", "")+`,`+
		identityIn("unknown", "")+`]}`, ""), "Succeeded")
	before := a.Run(exchange{Do: "GET ~/resources"})
	template := `{"resources":[` + network(`["10.0.0.0/16","10.1.0.0/16"]`, `{"a":"3","c":"4"}`) + `,` +
		identityIn("same", "") + `,` + nested("n", "", `{"resources":[`+identityIn("new", "")+`]}`) + `]}`
	predict(a, "3", of(template, ""), has{
		"status": "Succeeded", "properties.changes.#": 4,
		"properties.changes.0.changeType": "Create", "properties.changes.0.after.name": "new", "properties.changes.0.before": nil,
		"properties.changes.0.after.apiVersion": "2024-11-30",
		"properties.changes.1.changeType":       "NoChange", "properties.changes.1.before.name": "same",
		"properties.changes.2.changeType": "Ignore", "properties.changes.2.before.name": "unknown",
		"properties.changes.3.changeType": "Modify", "properties.changes.3.delta.#": 4,
		"properties.changes.3.delta.0.path":                        "properties.addressSpace.addressPrefixes",
		"properties.changes.3.delta.0.propertyChangeType":          "Array",
		"properties.changes.3.delta.0.children.0.path":             "1",
		"properties.changes.3.delta.0.children.0.after":            "10.1.0.0/16",
		"properties.changes.3.delta.1.path":                        "tags.a",
		"properties.changes.3.delta.1.before":                      "1",
		"properties.changes.3.delta.1.after":                       "3",
		"properties.changes.3.delta.1.propertyChangeType":          "Modify",
		"properties.changes.3.delta.2.propertyChangeType":          "Delete",
		"properties.changes.3.delta.3.propertyChangeType":          "Create",
		"properties.changes.3.before.tags.a":                       "1",
		"properties.changes.3.before.properties.provisioningState": nil,
	})
	predict(a, "3", strings.Replace(of(template, ""), `"mode":"Incremental"`,
		`"mode":"Complete","whatIfSettings":{"resultFormat":"ResourceIdOnly"}`, 1), has{
		"properties.changes.0.changeType": "Deploy", "properties.changes.0.after": nil, "properties.changes.2.changeType": "Delete"})
	predict(a, "3", of(`{"resources":[{}]}`, ""), has{"status": "Failed", "error.code": "InvalidTemplate"})
	predict(a, "3", of(`{"resources":[{"type":"Microsoft.Network/networkSecurityGroups","apiVersion":"2024-05-01","name":"nsg",
		"location":"eastus","properties":{"securityRules":[{"name":"r","properties":{}}]}}]}`, ""), has{"status": "Failed",
		"error.code": "InvalidTemplateDeployment", "error.details.#": 1})
	a.Run(
		exchange{Do: "GET " + deployment + "3", Status: 404, Code: "DeploymentNotFound"},
		exchange{Do: "GET ~/providers/Microsoft.Resources/deployments/n", Status: 404, Code: "DeploymentNotFound"},
		exchange{Do: "POST " + deployment + "3/whatIf", Body: `{}`, Status: 400, Code: "InvalidRequestContent"},
	)
	if after := a.Run(exchange{Do: "GET ~/resources"}); !behaviour.Equal(before, after) {
		t.Errorf("the what-if changed %v\nto %v", before, after)
	}
}

// What a group's template makes is what was exported.
func TestExportOfAGroup(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), identity.Provider(), network.Provider())
	ended(a, of(`{"resources":[`+identityIn("one", "")+`,
		{"type":"Microsoft.Network/networkSecurityGroups","apiVersion": "2024-01-01","name":"nsg","location":"eastus"},
		{"type":"Microsoft.Network/virtualNetworks","apiVersion": "2024-01-01","name":"v","location":"eastus","dependsOn":["nsg"],"properties":{
			"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24",
			"networkSecurityGroup":{"id":"[resourceId('Microsoft.Network/networkSecurityGroups','nsg')]"}}}]}}]}`, ""), "Succeeded")
	exported := a.Run(exchange{Do: "POST ~/exportTemplate", Body: `{"resources":["*"],"options":"IncludeParameterDefaultValue"}`, Has: has{
		"template.resources.#": 3, "template.parameters.virtualNetworks_v_name.defaultValue": "v",
		"template.resources.2.name":        "[parameters('virtualNetworks_v_name')]",
		"template.resources.2.dependsOn.0": "[resourceId('Microsoft.Network/networkSecurityGroups', parameters('networkSecurityGroups_nsg_name'))]",
		"template.resources.2.properties.subnets.0.properties.networkSecurityGroup.id": "[resourceId('Microsoft.Network/networkSecurityGroups', parameters('networkSecurityGroups_nsg_name'))]",
	}})
	text, err := json.Marshal(exported["template"])
	if err != nil {
		t.Fatal(err)
	}
	changes := predict(a, "2", of(string(text), ""), nil)
	for _, change := range behaviour.Objects(changes, "properties.changes") {
		if change["changeType"] != "NoChange" {
			t.Errorf("the exported template would change %v", change)
		}
	}
}

func TestAParameterRefersToASecret(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), identity.Provider(), vault.Provider())
	const keys = behaviourtest.Group + "/providers/Microsoft.KeyVault/vaults/keys"
	a.Run(
		exchange{Do: "PUT " + keys, Body: `{"location":"eastus","properties":{"tenantId":"` + core.DefaultTenant +
			`","sku":{"family":"A","name":"standard"},"accessPolicies":[],"enabledForTemplateDeployment":true}}`},
		exchange{Do: "PUT " + keys + "/secrets/s", Body: `{"properties":{"value":"hidden"}}`},
	)
	body := of(`{"parameters":{"p":{"type":"securestring"}},"resources":[`+identityIn("n", `,"tags":{"p":"[parameters('p')]"}`)+`]}`,
		`{"p":{"reference":{"keyVault":{"id":"`+keys+`"},"secretName":"s"}}}`)
	ended(a, body, "Succeeded")
	a.Run(
		exchange{Do: "GET " + identities + "/n", Has: has{"tags.p": "hidden"}},
		exchange{Do: "GET " + deployment, Has: has{"properties.parameters.p.value": nil, "properties.parameters.p.type": "SecureString"}},
		exchange{Do: "PUT " + deployment, Body: strings.Replace(body, "vaults/keys", "vaults/none", 1), Status: 400,
			Code: "KeyVaultParameterReferenceNotFound"},
		exchange{Do: "PUT " + deployment, Body: strings.Replace(body, `"secretName":"s"`, `"secretName":"none"`, 1), Status: 400,
			Code: "KeyVaultParameterReferenceSecretRetrieveFailed"},
	)
	for _, enabled := range []string{`,"enabledForTemplateDeployment":false`, `,"enabledForTemplateDeployment":null`} {
		a.Run(
			exchange{Do: "PUT " + keys, Body: `{"location":"eastus","properties":{"tenantId":"` + core.DefaultTenant +
				`","sku":{"family":"A","name":"standard"},"accessPolicies":[]` + enabled + `}}`},
			exchange{Do: "PUT " + deployment, Body: body, Status: 400, Code: "KeyVaultParameterReferenceSecretRetrieveFailed"},
			exchange{Do: "POST " + deployment + "/validate", Body: body, Status: 400, Code: "KeyVaultParameterReferenceSecretRetrieveFailed"},
		)
	}
}
