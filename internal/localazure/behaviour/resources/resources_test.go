package resources_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/core/catalog"
)

func TestGroups(t *testing.T) {
	a := start(t)
	a.Run(
		exchange{Do: "PUT ~~/resourcegroups/two", Body: `{"location":"West US","tags":{"team":"a"}}`, Status: 201,
			Has: has{"location": "westus", "id": behaviourtest.Subscription + "/resourceGroups/two"}},
		exchange{Do: "PUT ~~/resourceGroups/two", Body: `{"location":"eastus"}`, Status: 409, Code: "InvalidResourceGroupLocation"},
		exchange{Do: "PUT ~~/resourceGroups/dot.", Body: `{"location":"eastus"}`, Status: 400, Code: "InvalidResourceGroup"},
		exchange{Do: "PUT ~~/resourceGroups/three", Body: `{}`, Status: 400, Code: "LocationRequired"},
		exchange{Do: "PATCH ~~/resourceGroups/two", Body: `{"tags":{"team":"b"}}`, Has: has{"tags.team": "b", "location": "westus"}},
		exchange{Do: "HEAD ~~/resourceGroups/TWO", Status: 204},
		exchange{Do: "GET ~~/resourceGroups?$filter=tagName eq 'team' and tagValue eq 'b'", Has: has{"value.#": 1, "value.0.name": "two"}},
		exchange{Do: "GET ~~/resourceGroups?$filter=tagName eq 'team' and tagValue eq 'a'", Has: has{"value.#": 0}},
		exchange{Do: "GET ~~/resourceGroups?$filter=tagname has 'team'", Status: 400, Code: "InvalidFilterInQueryString"},
	)
}

func TestSubscriptionTenantAndLocations(t *testing.T) {
	a := start(t)
	a.Run(
		exchange{Do: "GET /subscriptions",
			Has: has{"value.#": 1, "value.0.subscriptionId": core.DefaultSubscription, "value.0.state": "Enabled"}},
		exchange{Do: "GET ~~", Has: has{"tenantId": core.DefaultTenant}},
		exchange{Do: "GET /subscriptions/other", Status: 404, Code: "SubscriptionNotFound"},
		exchange{Do: "GET /subscriptions/other/providers", Status: 404, Code: "SubscriptionNotFound"},
		exchange{Do: "GET /tenants", Has: has{"value.#": 1, "value.0.tenantId": core.DefaultTenant}},
	)
	got := a.Run(exchange{Do: "GET ~~/locations", Has: has{"value.#": len(catalog.Regions())}})
	for _, l := range behaviour.Objects(got, "value") {
		if l["name"] == "eastus" &&
			(l["displayName"] != "East US" || len(behaviour.Array(l, "availabilityZoneMappings")) != 3 ||
				behaviourtest.At(l, "metadata.pairedRegion.0.name") != "westus") {
			t.Errorf("location: %v", l)
		}
	}
}

func TestTheCatalogueOfProviders(t *testing.T) {
	a := start(t)
	got := a.Run(exchange{Do: "GET ~~/providers/microsoft.compute",
		Has: has{"namespace": "Microsoft.Compute", "registrationState": "Registered", "registrationPolicy": "RegistrationRequired"}})
	types := map[string]behaviour.Object{}
	for _, r := range behaviour.Objects(got, "resourceTypes") {
		types[behaviour.Text(r, "resourceType")] = r
	}
	machines := types["virtualMachines"]
	zones := 0
	for _, r := range catalog.Regions() {
		if len(r.Zones) > 0 {
			zones++
		}
	}
	if n := len(behaviour.Array(machines, "zoneMappings")); n != zones || n == 0 {
		t.Errorf("%d regions with zones for machines, want %d", n, zones)
	}
	if n := len(behaviour.Array(machines, "locations")); n != len(catalog.Regions()) {
		t.Errorf("machines in %d locations, want %d", n, len(catalog.Regions()))
	}
	if !strings.Contains(behaviour.Text(machines, "capabilities"), "SupportsTags, SupportsLocation") ||
		behaviourtest.At(machines, "apiVersions.0") == nil {
		t.Errorf("machines: %v", machines)
	}
	a.Run(
		exchange{Do: "GET ~~/providers/Microsoft.Nothing", Status: 404, Code: "InvalidResourceNamespace"},
		exchange{Do: "POST ~~/providers/Microsoft.Network/register", Has: has{"registrationState": "Registered"}},
		exchange{Do: "GET /providers/Microsoft.Network", Has: has{"registrationState": nil, "namespace": "Microsoft.Network"}},
		exchange{Do: "GET ~~/providers",
			Has: has{"value.0.namespace": "Microsoft.Authorization", "value.0.registrationPolicy": "RegistrationFree"}},
	)
}

func TestAllResources(t *testing.T) {
	a := start(t)
	a.Run(
		exchange{Do: "PUT ~~/resourceGroups/two", Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT " + identities + "/a", Body: `{"location":"eastus","tags":{"x":"1"}}`, Status: 201},
		exchange{Do: "PUT " + identities + "/b", Body: `{"location":"westus"}`, Status: 201},
		exchange{Do: "PUT ~~/resourceGroups/two/providers/Microsoft.ContainerRegistry/registries/images",
			Body: `{"location":"eastus","sku":{"name":"Basic"}}`, Status: 201},
		exchange{Do: "PUT " + deployment, Body: of(`{"resources":[]}`, ""), Status: 201},
	)
	cases := map[string]int{
		"~~/resources": 3,
		"~~/resources?$filter=resourceType eq 'microsoft.containerregistry/registries'": 1,
		"~~/resources?$filter=tagName eq 'x' and tagValue eq '1'":                       1,
		"~~/resources?$filter=location eq 'eastus' and name ne 'a'":                     1,
		"~~/resources?$filter=name eq 'a' or name eq 'images'":                          2,
		"~~/resources?$filter=resourceGroup eq 'TWO'":                                   1,
		"~/resources":                           2,
		"~~/resourcegroups/two/resources":       1,
		"~/resources?$filter=name eq 'it''s'":   0,
		"~/resources?$expand=provisioningState": 2,
	}
	for path, want := range cases {
		a.Run(exchange{Do: "GET " + path, Has: has{"value.#": want}})
	}
	page := a.Run(exchange{Do: "GET ~~/resources?$top=2",
		Has: has{"value.#": 2, "value.0.properties": nil, "value.0.type": "Microsoft.ManagedIdentity/userAssignedIdentities"}})
	a.Run(
		exchange{Do: "GET " + behaviour.Text(page, "nextLink"), Has: has{"value.#": 1, "nextLink": nil}},
		exchange{Do: "GET ~~/resources?$filter=substringof('a', name)", Status: 400, Code: "InvalidFilterInQueryString"},
		exchange{Do: "GET ~none/resources", Status: 404, Code: "ResourceGroupNotFound"},
	)
}

// A subscription has tag names with predefined values.
func TestTagNames(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider())
	const names = "~~/tagNames"
	a.Run(
		exchange{Do: "PUT " + names + "/cost", Status: 201, Has: has{"tagName": "cost", "values.#": 0, "count.type": "Total"}},
		exchange{Do: "PUT " + names + "/cost"},
		exchange{Do: "PUT " + names + "/none/tagValues/x", Status: 404, Code: "TagNameNotFound"},
		exchange{Do: "PUT " + names + "/cost/tagValues/x", Status: 201, Has: has{"tagValue": "x"}},
		exchange{Do: "GET " + names, Has: has{"value.#": 1, "value.0.values.0.tagValue": "x"}},
		exchange{Do: "DELETE " + names + "/cost/tagValues/x"},
		exchange{Do: "DELETE " + names + "/cost/tagValues/x", Status: 204},
		exchange{Do: "DELETE " + names + "/cost"},
		exchange{Do: "DELETE " + names + "/cost", Status: 204},
		exchange{Do: "PUT ~~/providers/Microsoft.Features/featureProviders/Microsoft.Compute/subscriptionFeatureRegistrations/f", Body: `{}`,
			Has: has{"properties.state": "Registered"}},
	)
}
