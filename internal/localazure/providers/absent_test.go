package providers_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

// TestResourcesOfPublicTemplates deploys, twice, what public templates have beside machines and networks: access policies as resources,
// solutions and keys of log workspaces, and connections.
func TestResourcesOfPublicTemplates(t *testing.T) {
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	send(e, "PUT", group, `{"location":"eastus"}`)
	policies := func(operation, object, permission string) string {
		return `{"type":"Microsoft.KeyVault/vaults/accessPolicies","apiVersion":"2023-07-01","name":"vault1/` + operation + `","dependsOn":[%s],
			"properties":{"accessPolicies":[{"tenantId":"[subscription().tenantId]","objectId":"` + object + `","permissions":{"secrets":["` +
			permission + `"]}}]}}`
	}
	body := deploymentOf(t, `{"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
		"contentVersion":"1.0.0.0","resources":[
		{"type":"Microsoft.KeyVault/vaults","apiVersion":"2023-07-01","name":"vault1","location":"eastus","properties":{
			"tenantId":"[subscription().tenantId]","sku":{"family":"A","name":"standard"},"accessPolicies":[]}},
		`+fmt.Sprintf(policies("add", "a", "get"), `"vault1"`)+`,
		`+fmt.Sprintf(policies("replace", "b", "list"), `"vault1/add"`)+`,
		`+fmt.Sprintf(policies("remove", "a", "get"), `"vault1/replace"`)+`,
		{"type":"Microsoft.OperationalInsights/workspaces","apiVersion":"2023-09-01","name":"logs","location":"eastus","properties":{}},
		{"type":"Microsoft.OperationsManagement/solutions","apiVersion":"2015-11-01-preview","name":"ContainerInsights(logs)",
			"location":"eastus","dependsOn":["logs"],"plan":{"name":"ContainerInsights(logs)","product":"OMSGallery/ContainerInsights",
			"publisher":"Microsoft","promotionCode":""},"properties":{"workspaceResourceId":
			"[resourceId('Microsoft.OperationalInsights/workspaces', 'logs')]"}},
		{"type":"Microsoft.Web/connections","apiVersion":"2016-06-01","name":"mail","location":"eastus","properties":{"displayName":"mail",
			"api":{"id":"[subscriptionResourceId('Microsoft.Web/locations/managedApis', 'eastus', 'office365')]"}}}],
		"outputs":{"key":{"type":"string","value":
			"[listKeys(resourceId('Microsoft.OperationalInsights/workspaces', 'logs'), '2020-08-01').primarySharedKey]"}}}`)
	const path = group + "/providers/Microsoft.Resources/deployments/d"
	for range 2 {
		if status, reply := send(e, "PUT", path, body); status >= 300 {
			t.Fatalf("deployment: %d %v", status, reply)
		}
		if fault := failureOf(e, path); fault != "" {
			t.Fatalf("deployment: %s", fault)
		}
		_, vault := send(e, "GET", group+"/providers/Microsoft.KeyVault/vaults/vault1", "")
		text, err := json.Marshal(vault)
		if err != nil || !strings.Contains(string(text), `"objectId":"b"`) || strings.Contains(string(text), `"objectId":"a"`) {
			t.Errorf("the policies of the vault are %s, want that of b alone", text)
		}
	}
	if status, reply := send(e, "GET", group+"/providers/Microsoft.KeyVault/vaults/vault1/accessPolicies/add", ""); status != 404 {
		t.Errorf("an operation on policies is there: %d %v", status, reply)
	}
}
