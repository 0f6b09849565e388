package providers_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
	"kaz/internal/template/lenient"
)

// children is a template of parents, whose PUT removes their children, and of the children as resources of their own.
const children = `{"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0",
	"resources":[
	{"type":"Microsoft.Network/virtualNetworks","apiVersion":"2022-01-01","name":"v","location":"eastus","properties":{
		"addressSpace":{"addressPrefixes":["10.0.0.0/16"]}}},
	{"type":"Microsoft.Network/virtualNetworks/subnets","apiVersion":"2022-01-01","name":"v/s","dependsOn":["v"],"properties":{
		"addressPrefix":"10.0.0.0/24"}},
	{"type":"Microsoft.Network/networkSecurityGroups","apiVersion":"2022-01-01","name":"n","location":"eastus","properties":{
		"securityRules":[]}},
	{"type":"Microsoft.Network/networkSecurityGroups/securityRules","apiVersion":"2022-01-01","name":"n/r","dependsOn":["n"],"properties":{
		"priority":500,"direction":"Inbound","access":"Allow","protocol":"Tcp","sourcePortRange":"*","destinationPortRange":"80",
		"sourceAddressPrefix":"*","destinationAddressPrefix":"*"}},
	{"type":"Microsoft.Network/loadBalancers","apiVersion":"2022-01-01","name":"l","location":"eastus","sku":{"name":"Standard"},
		"dependsOn":["v/s"],"properties":{"frontendIPConfigurations":[{"name":"f","properties":{"subnet":{
		"id":"[resourceId('Microsoft.Network/virtualNetworks/subnets', 'v', 's')]"}}}]}},
	{"type":"Microsoft.Network/loadBalancers/backendAddressPools","apiVersion":"2022-01-01","name":"l/p","dependsOn":["l"],"properties":{}},
	{"type":"Microsoft.Network/loadBalancers/inboundNatRules","apiVersion":"2022-01-01","name":"l/i","dependsOn":["l","l/p"],"properties":{
		"frontendPort":22,"backendPort":22,"protocol":"Tcp","frontendIPConfiguration":{
		"id":"[resourceId('Microsoft.Network/loadBalancers/frontendIPConfigurations', 'l', 'f')]"}}},
	{"type":"Microsoft.Storage/storageAccounts","apiVersion":"2023-01-01","name":"account1","location":"eastus","kind":"StorageV2",
		"sku":{"name":"Standard_LRS"},"properties":{"encryption":{"keySource":"Microsoft.Storage","services":{"blob":{"enabled":true}}}}},
	{"type":"Microsoft.Storage/storageAccounts/blobServices/containers","apiVersion":"2023-01-01","name":"account1/default/blobs",
		"dependsOn":["account1"],"properties":{}},
	{"type":"Microsoft.ContainerRegistry/registries","apiVersion":"2023-07-01","name":"registry1","location":"eastus",
		"sku":{"name":"Premium"},"properties":{}},
	{"type":"Microsoft.KeyVault/vaults","apiVersion":"2023-07-01","name":"vault1","location":"eastus","properties":{
		"tenantId":"[subscription().tenantId]","sku":{"family":"A","name":"standard"},"accessPolicies":[]}},
	{"type":"Microsoft.KeyVault/vaults/secrets","apiVersion":"2023-07-01","name":"vault1/s","dependsOn":["vault1"],"properties":{
		"value":"hidden"}},
	{"type":"Microsoft.Compute/virtualMachineScaleSets","apiVersion":"2024-07-01","name":"set","location":"eastus","dependsOn":["v/s"],
		"sku":{"name":"Standard_D2s_v5","tier":"Standard","capacity":1},"properties":{"orchestrationMode":"Uniform","overprovision":false,
		"upgradePolicy":{"mode":"Manual"},"virtualMachineProfile":{"osProfile":{"computerNamePrefix":"n","adminUsername":"operator",
		"adminPassword":"Passw0rd!123"},"storageProfile":{"imageReference":{"publisher":"Canonical","offer":"ubuntu-24_04-lts",
		"sku":"server","version":"latest"},"osDisk":{"createOption":"FromImage"},"dataDisks":[{"lun":0,"createOption":"Empty",
		"diskSizeGB":4}]},"networkProfile":{"networkInterfaceConfigurations":[{"name":"n","properties":{"primary":true,
		"ipConfigurations":[{"name":"c","properties":{"subnet":{"id":
		"[resourceId('Microsoft.Network/virtualNetworks/subnets', 'v', 's')]"}}}]}}]}}}},
	{"type":"Microsoft.Compute/virtualMachineScaleSets/extensions","apiVersion":"2024-07-01","name":"set/e","dependsOn":["set"],
		"properties":{"publisher":"Microsoft.Azure.Extensions","type":"CustomScript","typeHandlerVersion":"2.1","settings":{}}},
	{"type":"Microsoft.ManagedIdentity/userAssignedIdentities","apiVersion":"2023-01-31","name":"i","location":"eastus"},
	{"type":"Microsoft.Authorization/roleAssignments","apiVersion":"2022-04-01","name":"[guid('a')]","dependsOn":["i"],"properties":{
		"principalId":"[reference('i').principalId]","principalType":"ServicePrincipal","roleDefinitionId":
		"[subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'acdd72a7-3385-48ef-bd42-f606fba81ae7')]"}}]}`

// TestWhatIfOfADeployment: a what-if of the template that was deployed last has no change, for all templates of this repository that
// deploy alone at a resource group.
func TestWhatIfOfADeployment(t *testing.T) {
	templates := map[string]string{"children": children}
	for _, pattern := range []string{"test/contract/testdata/quickstart/*.json", "test/az/templates/network.json"} {
		files, err := filepath.Glob(filepath.Join("../../..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no templates in %s: %v", pattern, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "deploymentTemplate.json") {
				templates[filepath.Base(name)] = string(text)
			}
		}
	}
	for name, text := range templates {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { whatIfAgain(t, text) }) })
	}
}

// whatIfAgain deploys a template, and an hour later asks what that would change.
func whatIfAgain(t *testing.T, text string) {
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	send(e, "PUT", group, `{"location":"eastus"}`)
	body := deploymentOf(t, text)
	const path = group + "/providers/Microsoft.Resources/deployments/d"
	if status, reply := send(e, "PUT", path, body); status >= 300 {
		t.Fatalf("deployment: %d %v", status, reply)
	}
	if fault := failureOf(e, path); fault != "" {
		t.Fatalf("deployment: %s", fault)
	}
	<-time.After(time.Hour)
	changes := whatIfOf(t, e, path, body)
	for _, c := range changes {
		if c["changeType"] != "NoChange" && c["changeType"] != "Ignore" {
			t.Errorf("%s of %s: %v", c["changeType"], c["resourceId"], c["delta"])
		}
	}
	if len(changes) == 0 {
		t.Error("the what-if says nothing")
	}
}

// TestWhatIfRefuses: what-if refuses a rule without what a rule needs, as the deployment does.
func TestWhatIfRefuses(t *testing.T) {
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	send(e, "PUT", group, `{"location":"eastus"}`)
	const path = group + "/providers/Microsoft.Resources/deployments/d"
	body := deploymentOf(t, `{"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
		"contentVersion":"1.0.0.0","resources":[{"type":"Microsoft.Network/networkSecurityGroups","apiVersion":"2024-05-01","name":"n",
		"location":"eastus","properties":{"securityRules":[{"name":"r","properties":{}}]}}]}`)
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("POST", path+"/whatIf?api-version=2024-03-01", strings.NewReader(body)))
	end := httptest.NewRecorder()
	e.ServeHTTP(end, httptest.NewRequest("GET", w.Header().Get("Location"), nil))
	if text := end.Body.String(); !strings.Contains(text, "InvalidTemplateDeployment") || !strings.Contains(text, "Failed") {
		t.Errorf("the end of the what-if: %s", text)
	}
	send(e, "PUT", path, body)
	if fault := failureOf(e, path); fault == "" {
		t.Error("the deployment succeeds")
	}
}

// deploymentOf is a request to deploy a template, with a value for each parameter that needs one.
func deploymentOf(t *testing.T, text string) string {
	t.Helper()
	document, err := lenient.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"String": "valueof1", "SecureString": "Passw0rd!123", "Int": 1, "Bool": true, "Array": []any{},
		"Object": map[string]any{}}
	parameters := map[string]any{}
	declared, _ := document["parameters"].(map[string]any)
	for name, d := range declared {
		declaration, _ := d.(map[string]any)
		for kind, value := range values {
			if strings.EqualFold(fmt.Sprint(declaration["type"]), kind) && declaration["defaultValue"] == nil {
				parameters[name] = map[string]any{"value": value}
			}
		}
	}
	if declared["authenticationType"] != nil {
		parameters["authenticationType"] = map[string]any{"value": "password"}
	}
	body, err := json.Marshal(map[string]any{"properties": map[string]any{"mode": "Incremental", "template": document,
		"parameters": parameters}})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// failureOf is the error of a deployment, "" for none.
func failureOf(e *core.Emulator, path string) string {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("GET", path+"?api-version=2024-03-01", nil))
	var deployment struct {
		Properties struct{ Error json.RawMessage }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &deployment); err != nil {
		return err.Error()
	}
	return string(deployment.Properties.Error)
}

// whatIfOf are the changes that a what-if of a deployment predicts.
func whatIfOf(t *testing.T, e *core.Emulator, path, body string) []map[string]any {
	t.Helper()
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("POST", path+"/whatIf?api-version=2024-03-01", strings.NewReader(body)))
	location := w.Header().Get("Location")
	if location == "" {
		t.Fatalf("what-if: %d %s", w.Code, w.Body)
	}
	w = httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("GET", location, nil))
	var end struct {
		Status     string
		Properties struct{ Changes []map[string]any }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &end); err != nil || end.Status != "Succeeded" {
		t.Fatalf("the end of the what-if: %d %s", w.Code, w.Body)
	}
	return end.Properties.Changes
}

// send sends a request and returns the status and the body of the reply.
func send(e *core.Emulator, method, path, body string) (int, any) {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(method, path+"?api-version=2024-03-01", strings.NewReader(body)))
	var reply any
	_ = json.Unmarshal(w.Body.Bytes(), &reply) // a reply may have no body
	return w.Code, reply
}
