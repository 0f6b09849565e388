package resources_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
)

const inGroupNew = `,"resourceGroup":"new"`

// Validation lists what nested deployments make, too, and refuses one into a group that neither exists nor is made.
func TestValidationOfNestedDeployments(t *testing.T) {
	a := start(t)
	template := `{"parameters":{"PlaceName":{"type":"string","defaultValue":"x"}},"resources":[` +
		nested("inside", inGroupNew, `{"resources":[`+identityIn("deep", "")+`]}`) + `,` + identityIn("outer", "") + `]}`
	for _, do := range []string{"POST " + deployment + "/validate", "PUT " + deployment} {
		a.Run(exchange{Do: do, Body: of(template, ""), Status: 404, Code: "ResourceGroupNotFound"})
	}
	a.Run(exchange{Do: "PUT ~~/resourceGroups/new", Body: `{"location":"eastus"}`, Status: 201})
	valid := a.Run(exchange{Do: "POST " + deployment + "/validate", Body: of(template, ""),
		Has: has{"properties.parameters.placeName.value": "x", "properties.validatedResources.#": 3}})
	want := []string{"/deployments/inside", "rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/outer",
		"new/providers/Microsoft.ManagedIdentity/userAssignedIdentities/deep"}
	for i, r := range behaviour.Objects(valid, "properties.validatedResources") {
		if id := behaviour.Text(r, "id"); !strings.HasSuffix(id, want[i]) {
			t.Errorf("validated resource %d is %s, want %s", i, id, want[i])
		}
	}
}

// A group may be made by the template, or by a deployment in it. The location of a deployment at a subscription is the name of its region.
func TestValidationOfGroupsThatAreMade(t *testing.T) {
	a := start(t)
	group := `{"type":"Microsoft.Resources/resourceGroups","apiVersion":"2022-09-01","location":"eastus","name":"new"}`
	atSubscription := `{"type":"Microsoft.Resources/deployments","apiVersion":"2022-09-01","name":"groups","location":"eastus",
		"properties":{"mode":"Incremental","template":` + whole(`{"resources":[`+group+`]}`) + `}}`
	inside := nested("inside", inGroupNew, `{"resources":[`+identityIn("deep", "")+`]}`)
	const path = "~~/providers/Microsoft.Resources/deployments/d"
	for _, making := range []string{group, atSubscription} {
		body := strings.Replace(of(`{"resources":[`+making+`,`+inside+`]}`, ""), `{`, `{"location":"WestUS",`, 1)
		a.Run(exchange{Do: "POST " + path + "/validate", Body: body, Has: has{"location": "westus"}})
	}
	body := strings.Replace(of(`{"resources":[`+inside+`]}`, ""), `{`, `{"location":"WestUS",`, 1)
	a.Run(exchange{Do: "POST " + path + "/validate", Body: body, Status: 404, Code: "ResourceGroupNotFound"})
}

// What-if shows what a request can set, without what follows from it.
func TestWhatIfLeavesOutWhatNoRequestSets(t *testing.T) {
	a := start(t)
	account := func(sku string) string {
		return of(`{"resources":[{"type":"Microsoft.Storage/storageAccounts","apiVersion":"2024-01-01","name":"whatifaccount","location":"eastus",
			"sku":{"name":"`+sku+`"},"kind":"StorageV2"}]}`, "")
	}
	ended(a, account("Standard_LRS"), "Succeeded")
	_, header, _ := a.Send("POST", deployment+"/whatIf", account("Standard_GRS"))
	got := a.Run(exchange{Do: "GET " + header.Get("Location"), Has: has{"properties.changes.0.changeType": "Modify",
		"properties.changes.0.delta.#": 1, "properties.changes.0.delta.0.path": "sku.name",
		"properties.changes.0.before.properties.primaryEndpoints": nil, "properties.changes.0.after.apiVersion": "2024-01-01"}})
	if id := behaviourtest.At(got, "properties.changes.0.after.id"); id == nil {
		t.Error("the resource has no id")
	}
	policy := func(place string) string {
		return strings.Replace(of(`{"resources":[{"type":"Microsoft.Authorization/policyDefinitions","apiVersion":"2018-05-01","name":"p",
			"properties":{"policyRule":{"if":{"field":"location","equals":"`+place+`"},"then":{"effect":"deny"}}}}]}`, ""), `{`,
			`{"location":"eastus",`, 1)
	}
	const path = "~~/providers/Microsoft.Resources/deployments/d"
	a.Run(exchange{Do: "PUT " + path, Body: policy("northeurope"), Status: 201})
	_, header, _ = a.Send("POST", path+"/whatIf", policy("westeurope"))
	a.Run(exchange{Do: "GET " + header.Get("Location"), Has: has{"properties.changes.0.delta.#": 1,
		"properties.changes.0.delta.0.path": "properties.policyRule.if.equals"}})
}
