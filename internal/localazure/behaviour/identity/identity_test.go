package identity_test

import (
	"fmt"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/identity"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/core"
)

type (
	exchange = behaviourtest.Exchange
	has      = map[string]any
)

const (
	node        = "~/providers/Microsoft.ManagedIdentity/userAssignedIdentities/node"
	credentials = node + "/federatedIdentityCredentials"
)

func start(t *testing.T) *behaviourtest.Azure {
	return behaviourtest.Start(t, resources.Provider(), identity.Provider())
}

func TestAnIdentityKeepsItsIds(t *testing.T) {
	a := start(t)
	shown := strings.Replace(strings.Replace(node, "~", behaviourtest.Group, 1), "resourceGroups", "resourcegroups", 1)
	made := a.Run(exchange{Do: "PUT " + node, Body: `{"location":"eastus"}`, Status: 201,
		Header: map[string]string{"Location": shown},
		Has:    has{"id": shown, "properties.tenantId": core.DefaultTenant, "properties.isolationScope": "None", "tags": map[string]any{}}})
	client := behaviour.Text(made, "properties.clientId")
	old := behaviour.Text(a.Run(exchange{Do: "GET " + node + "?api-version=2018-11-30"}), "properties.clientSecretUrl")
	if !strings.HasSuffix(old, "&aid="+client) || !strings.HasPrefix(old, "https://control-eastus.identity.azure.net/subscriptions/") {
		t.Errorf("the URL of the credentials in an old API version: %s", old)
	}
	a.Run(exchange{Do: "GET " + node + "?api-version=2023-01-31", Has: has{"properties.clientSecretUrl": nil}})
	a.Run(
		exchange{Do: "PUT " + node, Body: `{"location":"eastus","tags":{"a":"b"},"properties":{"clientId":"mine"}}`,
			Has: has{"properties.clientId": client, "tags.a": "b"}},
		exchange{Do: "PATCH " + node, Body: `{"properties":{"isolationScope":"Regional"}}`,
			Has: has{"properties.clientId": client, "properties.isolationScope": "Regional"}},
		exchange{Do: "GET " + node + "none", Status: 404, Code: "ResourceNotFound"},
	)
	a.Look(func(w behaviour.World) {
		for _, key := range []string{client, behaviour.Text(made, "properties.principalId"), shown} {
			if got, ok := identity.Find(w, key); !ok || got.ClientID != client || !got.ID.Equal(azure.ID(shown)) {
				t.Errorf("identity %s: %v, %v", key, got, ok)
			}
		}
		if _, ok := identity.Find(w, "none"); ok {
			t.Error("found an identity that is not there")
		}
	})
	a.Run(exchange{Do: "DELETE " + node}, exchange{Do: "DELETE " + node, Status: 204})
}

func TestAssociatedResources(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), identity.Provider(), storage.Provider())
	list := func(query string) string {
		return "POST " + node + "/listAssociatedResources?api-version=2021-09-30-preview" + query
	}
	a.Run(exchange{Do: "PUT " + node, Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: list(""), Has: has{"totalCount": 0, "value.#": 0}})
	for _, name := range []string{"second", "first", "other"} {
		a.Run(exchange{Do: "PUT ~/providers/Microsoft.Storage/storageAccounts/" + name, Status: 202,
			Body: `{"location":"eastus","kind":"StorageV2","sku":{"name":"Standard_LRS"},"identity":{"type":"UserAssigned",
				"userAssignedIdentities":{"` + strings.Replace(node, "~", behaviourtest.Group, 1) + `":{}}}}`})
	}
	a.Run(
		exchange{Do: list(""), Has: has{"totalCount": 3, "value.0.name": "first", "value.0.type": "microsoft.storage/storageaccounts",
			"value.0.resourceGroup": "rg", "value.0.subscriptionDisplayName": "kaz", "value.2.name": "second", "nextLink": nil}},
		exchange{Do: list("&$orderby=name%20desc&$top=2"), Has: has{"totalCount": 3, "value.0.name": "second", "value.#": 2}},
		exchange{Do: list("&$orderby=name%20desc&$top=2&$skip=2"), Has: has{"value.0.name": "first", "value.#": 1, "nextLink": nil}},
		exchange{Do: list("&$filter=contains(name,%20'ir')"), Has: has{"totalCount": 1, "value.0.name": "first"}},
		exchange{Do: list("&$filter=name%20eq%20'other'"), Has: has{"totalCount": 1, "value.0.name": "other"}},
		exchange{Do: list("&$filter=name%20lt%20'other'"), Status: 400, Code: "BadRequest"},
		exchange{Do: list("&$orderby=type"), Status: 400, Code: "BadRequest"},
		exchange{Do: list("&$top=-1"), Status: 400, Code: "BadRequest"},
		exchange{Do: "POST " + node + "/listAssociatedResources?api-version=2023-01-31", Status: 404, Code: "InvalidResourceType"},
		exchange{Do: "POST " + node + "none/listAssociatedResources?api-version=2021-09-30-preview", Status: 404, Code: "ResourceNotFound"},
	)
}

func TestFederatedCredentials(t *testing.T) {
	a := start(t)
	body := func(subject string) string {
		return `{"properties":{"issuer":"https://oidc","subject":"` + subject + `","audiences":["api://AzureADTokenExchange"]}}`
	}
	a.Run(
		exchange{Do: "PUT " + credentials + "/one", Body: body("s1"), Status: 404, Code: "ParentResourceNotFound"},
		exchange{Do: "PUT " + node, Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT " + credentials + "/one", Body: body("s1"), Status: 201,
			Header: map[string]string{"Location": strings.Replace(strings.Replace(credentials+"/one", "~", behaviourtest.Group, 1),
				"resourceGroups", "resourcegroups", 1)},
			Has: has{"properties.subject": "s1", "properties.provisioningState": nil}},
		exchange{Do: "PUT " + credentials + "/one", Body: body("s1")},
		exchange{Do: "PUT " + credentials + "/two", Body: body("s1"), Status: 409, Code: "Conflict"},
		exchange{Do: "PUT " + credentials + "/two", Body: `{"properties":{"issuer":"i","subject":"s"}}`, Status: 400, Code: "BadRequest"},
		exchange{Do: "PUT " + credentials + "/x", Body: body("s2"), Status: 400, Code: "BadRequest"},
		exchange{Do: "GET " + credentials, Has: has{"value.#": 1}},
		exchange{Do: "GET " + credentials + "/none", Status: 404, Code: "NotFound"},
	)
	id := azure.ID(strings.Replace(node, "~", behaviourtest.Group, 1))
	a.Look(func(w behaviour.World) {
		cases := []struct {
			issuer, subject, audience string
			trusted                   bool
		}{
			{"https://oidc", "s1", "api://AzureADTokenExchange", true},
			{"https://oidc/", "s1", "api://AzureADTokenExchange", false},
			{"https://oidc", "S1", "api://AzureADTokenExchange", false},
			{"https://oidc", "s1", "other", false},
		}
		for _, c := range cases {
			if got := identity.Trusts(w, id, c.issuer, c.subject, []string{"x", c.audience}); got != c.trusted {
				t.Errorf("trust of %v: %v", c, got)
			}
		}
	})
	for i := 2; i <= 20; i++ {
		a.Run(exchange{Do: fmt.Sprintf("PUT %s/c-%d", credentials, i), Body: body(fmt.Sprint("s", i)), Status: 201})
	}
	a.Run(exchange{Do: "PUT " + credentials + "/c-21", Body: body("s21"), Status: 400, Code: "BadRequest"})
}
