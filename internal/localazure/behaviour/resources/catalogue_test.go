package resources_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/providers"
)

// TestTheCatalogueListsEveryType: clients look up types and their api-versions in
// the catalogue before they use them.
func TestTheCatalogueListsEveryType(t *testing.T) {
	all := providers.All()
	a := behaviourtest.Start(t, all...)
	listed := map[string]bool{}
	asked := map[string]bool{}
	ask := func(namespace string) {
		if asked[strings.ToLower(namespace)] {
			return
		}
		asked[strings.ToLower(namespace)] = true
		p := a.Run(exchange{Do: "GET ~~/providers/" + namespace, Has: has{"registrationState": "Registered"}})
		for _, r := range behaviour.Objects(p, "resourceTypes") {
			listed[strings.ToLower(namespace+"/"+behaviour.Text(r, "resourceType"))] = true
		}
	}
	for _, p := range all {
		for _, typ := range p.Types {
			namespace, _, _ := strings.Cut(typ.Name, "/")
			ask(namespace)
			if strings.Count(typ.Name, "/") == 1 && !listed[strings.ToLower(typ.Name)] {
				t.Errorf("%s is not in the catalogue of providers: add it to types.tsv or documents.tsv", typ.Name)
			}
		}
	}
}

// Every provider lists what can be done with its types.
func TestOperationsOfAProvider(t *testing.T) {
	a := behaviourtest.Start(t, providers.All()...)
	a.Run(
		exchange{Do: "GET /providers/Microsoft.Storage/operations", Has: has{"value.0.name": "Microsoft.Storage/storageAccounts/read",
			"value.0.display.resource": "Storage Accounts"}},
		exchange{Do: "GET /providers/Nobody.Knows/operations", Status: 404, Code: "InvalidResourceNamespace"},
		exchange{Do: "GET /providers/Microsoft.Authorization/providerOperations/Microsoft.Storage",
			Has: has{"name": "Microsoft.Storage", "resourceTypes.0.operations.#": 3}},
		exchange{Do: "GET /providers/Microsoft.Authorization/providerOperations/Nobody.Knows", Status: 404, Code: "ProviderNotFound"},
		exchange{Do: "GET ~/providers/Microsoft.Authorization/denyAssignments", Has: has{"value.#": 0}},
		exchange{Do: "GET ~~/providers/Microsoft.Authorization/classicAdministrators", Has: has{"value.#": 0}},
		exchange{Do: "GET ~~/providers/Microsoft.Storage/resourceTypes", Has: has{"value.0.resourceType": "storageAccounts"}},
		exchange{Do: "POST /providers/Microsoft.Resources/calculateTemplateHash", Body: `{"resources": []}`,
			Has: has{"minifiedTemplate": `{"resources":[]}`}},
		exchange{Do: "GET ~~/providers/Nobody.Knows/providerPermissions", Status: 404, Code: "InvalidResourceNamespace"},
	)
}
