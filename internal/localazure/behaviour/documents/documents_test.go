package documents_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/documents"
	"kaz/internal/localazure/behaviour/resources"
)

// The table is read whole, so a mistake in it fails here.
func TestTypesOfTheTable(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range documents.Provider().Types {
		key := strings.ToLower(kind.Name)
		if seen[key] {
			t.Errorf("%s is there twice", kind.Name)
		}
		seen[key] = true
		for name, action := range kind.Actions {
			if action.Status == 0 || action.Long != (action.Status == 202) {
				t.Errorf("%s/%s answers %d, as an operation: %v", kind.Name, name, action.Status, action.Long)
			}
		}
	}
}

type (
	exchange = behaviourtest.Exchange
	has      = map[string]any
)

func TestADocumentIsCreatedReadChangedAndDeleted(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), documents.Provider())
	const workspace = "~/providers/Microsoft.OperationalInsights/workspaces/Logs"
	a.Run(
		exchange{Do: "GET " + workspace, Status: 404, Code: "ResourceNotFound"},
		exchange{Do: "PUT " + workspace, Body: `{"location":"East US","properties":{"sku":{"name":"pergb2018"},"retentionInDays":"31"}}`,
			Status: 201, Header: map[string]string{"Azure-AsyncOperation": "*"}, Has: has{"properties.provisioningState": "Creating"}},
		exchange{Do: "GET " + workspace, Has: has{"name": "Logs", "type": "Microsoft.OperationalInsights/workspaces", "location": "eastus",
			"properties.provisioningState": "Succeeded", "properties.sku.name": "PerGB2018", "properties.retentionInDays": 31,
			"properties.publicNetworkAccessForQuery": "Enabled"}},
		exchange{Do: "PATCH " + workspace, Body: `{"tags":{"a":"b"}}`, Has: has{"tags.a": "b", "properties.retentionInDays": 31}},
		exchange{Do: "GET ~~/providers/microsoft.operationalinsights/workspaces", Has: has{"value.#": 1}},
		exchange{Do: "DELETE " + workspace, Status: 202, Header: map[string]string{"Location": "*"}},
		exchange{Do: "DELETE " + workspace, Status: 204},
	)
}

// A cross connection shows the bandwidth and the place of its circuit, and its provider provisions the circuit with it.
func TestCrossConnectionOfACircuit(t *testing.T) {
	circuits := behaviour.Provider{Types: []behaviour.Type{{Name: "Microsoft.Network/expressRouteCircuits", Style: behaviour.Plain("test"),
		Where: behaviour.Located}}}
	a := behaviourtest.Start(t, resources.Provider(), documents.Provider(), circuits)
	const connection = "~/providers/Microsoft.Network/expressRouteCrossConnections/key"
	const circuit = "/providers/Microsoft.Network/expressRouteCircuits/er"
	body := func(state string) string {
		return `{"location":"eastus","properties":{` + state + `"expressRouteCircuit":{"id":"` + behaviourtest.Group + circuit + `"}}}`
	}
	a.Run(
		exchange{Do: "PUT ~" + circuit, Status: 201, Body: `{"location":"eastus","properties":{
			"serviceProviderProvisioningState":"NotProvisioned",
			"serviceProviderProperties":{"bandwidthInMbps":200,"peeringLocation":"Madrid"}}}`},
		exchange{Do: "PUT " + connection, Status: 200, Body: body("")},
		exchange{Do: "GET " + connection, Has: has{"properties.bandwidthInMbps": 200, "properties.peeringLocation": "Madrid"}},
		exchange{Do: "GET ~" + circuit, Has: has{"properties.serviceProviderProvisioningState": "NotProvisioned"}},
		exchange{Do: "PUT " + connection, Status: 200, Body: body(`"serviceProviderProvisioningState":"Provisioned",`)},
		exchange{Do: "GET ~" + circuit, Has: has{"properties.serviceProviderProvisioningState": "Provisioned"}},
	)
}

// The resource manager knows the versions of template specs itself, so it does not ask for the spec of one that is not there.
func TestAVersionOfATemplateSpecThatIsNotThere(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), documents.Provider())
	const version = "~/providers/Microsoft.Resources/templateSpecs/s/versions/v1"
	a.Run(
		exchange{Do: "GET " + version, Status: 404, Code: "ResourceNotFound", Header: map[string]string{"x-ms-failure-cause": "gateway"}},
		exchange{Do: "PUT " + version, Body: `{"location":"eastus"}`, Status: 404, Code: "ParentResourceNotFound"},
	)
}

func TestAnOperationOfADocumentIsPolled(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), documents.Provider())
	const cache = "~/providers/Microsoft.Cache/redis/c"
	got := a.Request("PUT", cache, `{"location":"eastus","properties":{"sku":{"name":"basic","family":"c","capacity":"0"}}}`)
	if got.Status != 201 {
		t.Fatalf("PUT: %d %v", got.Status, got.Body)
	}
	a.Run(
		exchange{Do: "GET " + got.Header.Get("Azure-AsyncOperation"), Has: has{"status": "Succeeded", "error": nil}},
		exchange{Do: "GET " + cache, Has: has{"properties.sku.name": "Basic", "properties.sku.family": "C", "properties.sku.capacity": 0,
			"properties.hostName": "c.redis.cache.windows.net"}},
	)
}

func TestChildrenAndActionsOfDocuments(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), documents.Provider())
	const site = "~/providers/Microsoft.Web/sites/Site"
	a.Run(
		exchange{Do: "PUT " + site + "/slots/blue", Body: `{"location":"eastus"}`, Status: 404, Code: "ParentResourceNotFound"},
		exchange{Do: "PUT " + site, Body: `{"location":"eastus","properties":{"httpsOnly":"true"}}`, Has: has{
			"properties.defaultHostName": "site.azurewebsites.net", "properties.httpsOnly": true, "kind": "app"}},
		exchange{Do: "POST " + site + "/restart"},
		exchange{Do: "POST " + site + "/nothing", Status: 404, Code: "InvalidResourceType"},
		exchange{Do: "POST ~/providers/Microsoft.Web/sites/none/restart", Status: 404, Code: "ResourceNotFound"},
		exchange{Do: "PUT ~/providers/Microsoft.Sql/servers/s", Status: 201,
			Body: `{"location":"eastus","properties":{"administratorLogin":"u","administratorLoginPassword":"secret"}}`},
		exchange{Do: "GET ~/providers/Microsoft.Sql/servers/s", Has: has{"properties.administratorLogin": "u",
			"properties.administratorLoginPassword": nil, "properties.fullyQualifiedDomainName": "s.database.windows.net"}},
		exchange{Do: "DELETE " + site},
		exchange{Do: "GET " + site, Status: 404, Code: "ResourceNotFound"},
	)
}

// Rules tell their keys, which stay the same. Names are free or taken. A container has the throughput that it was made with.
func TestKeysNamesAndThroughput(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), documents.Provider())
	const bus = "~/providers/Microsoft.ServiceBus/namespaces/bus1"
	const cosmos = "~/providers/Microsoft.DocumentDB/databaseAccounts/c1"
	first := a.Run(
		exchange{Do: "PUT " + bus, Body: `{"location":"eastus","sku":{"name":"Standard"}}`, Status: 201},
		exchange{Do: "PUT " + bus + "/AuthorizationRules/r", Body: `{"properties":{"rights":["Listen"]}}`},
		exchange{Do: "POST " + bus + "/AuthorizationRules/r/listKeys", Has: has{"keyName": "r"}},
	)
	a.Run(
		exchange{Do: "POST " + bus + "/AuthorizationRules/r/listKeys", Has: has{"primaryKey": first["primaryKey"]}},
		exchange{Do: "POST ~~/providers/Microsoft.ServiceBus/checkNameAvailability", Body: `{"name":"BUS1"}`, Has: has{"nameAvailable": false}},
		exchange{Do: "POST ~~/providers/Microsoft.ServiceBus/checkNameAvailability", Body: `{"name":"bus2"}`, Has: has{"nameAvailable": true}},
		exchange{Do: "PUT " + cosmos, Body: `{"location":"eastus","properties":{"locations":[{"locationName":"eastus"}]}}`},
		exchange{Do: "PUT " + cosmos + "/tables/t", Status: 202, Body: `{"properties":{"resource":{"id":"t"},"options":{"throughput":500}}}`},
		exchange{Do: "GET " + cosmos + "/tables/t/throughputSettings/default", Has: has{"properties.resource.throughput": 500}},
		exchange{Do: "POST " + cosmos + "/tables/t/throughputSettings/default/migrateToAutoscale", Status: 202},
		exchange{Do: "GET " + bus + "/AuthorizationRules/RootManageSharedAccessKey", Has: has{"properties.rights.#": 3}},
		exchange{Do: "GET " + bus + "/networkRuleSets/default", Has: has{"properties.defaultAction": "Allow"}},
		exchange{Do: "PUT " + bus + "/disasterRecoveryConfigs/a", Body: `{"properties":{"partnerNamespace":""}}`, Status: 201},
		exchange{Do: "PUT " + bus + "b", Body: `{"location":"westus","sku":{"name":"Standard"}}`, Status: 201},
		exchange{Do: "PUT " + bus + "/disasterRecoveryConfigs/a", Body: `{"properties":{"partnerNamespace":"` + strings.Replace(bus, "~",
			behaviourtest.Group, 1) + `b"}}`, Has: has{"properties.role": "Primary"}},
		exchange{Do: "GET " + bus + "b/disasterRecoveryConfigs/a", Has: has{"properties.role": "Secondary"}},
		exchange{Do: "GET " + bus + "/disasterRecoveryConfigs/a/AuthorizationRules", Has: has{"value.#": 2}},
		exchange{Do: "GET " + bus + "/disasterRecoveryConfigs/a/AuthorizationRules/r", Has: has{"name": "r"}},
		exchange{Do: "GET " + bus + "/privateLinkResources/namespace", Has: has{"properties.groupId": "namespace"}},
		exchange{Do: "GET " + bus + "/privateLinkResources/other", Status: 404, Code: "NotFound"},
		exchange{Do: "GET " + bus + "/providers/Microsoft.Insights/diagnosticSettingsCategories", Has: has{"value.0.name": "AllMetrics"}},
		exchange{Do: "GET " + bus + "/providers/Microsoft.Insights/diagnosticSettingsCategories/AllMetrics",
			Has: has{"properties.categoryType": "Metrics"}},
		exchange{Do: "GET " + bus + "/providers/Microsoft.Insights/metricDefinitions", Has: has{"value.#": 0}},
		exchange{Do: "GET ~~/providers/Microsoft.ContainerInstance/locations/eastus/cachedImages", Has: has{"value.#": 0}},
		exchange{Do: "PUT ~/providers/Microsoft.ContainerService/managedClusters/k", Status: 201, Body: `{"location":"eastus","properties":{
			"dnsPrefix":"k","agentPoolProfiles":[{"name":"p","mode":"system"}]}}`},
		exchange{Do: "GET ~/providers/Microsoft.ContainerService/managedClusters/k", Has: has{"properties.enableRBAC": true,
			"properties.agentPoolProfiles.0.mode": "System", "properties.agentPoolProfiles.0.osSKU": "Ubuntu",
			"properties.networkProfile.loadBalancerSku": "standard"}},
		exchange{Do: "PUT ~/providers/Microsoft.RecoveryServices/vaults/v", Body: `{"location":"eastus","sku":{"name":"standard"},
			"properties":{}}`, Status: 201},
		exchange{Do: "GET ~/providers/Microsoft.RecoveryServices/vaults/v", Has: has{"sku.name": "Standard",
			"properties.privateEndpointStateForBackup": "None"}},
	)
	if key, _ := first["primaryKey"].(string); !strings.Contains(first["primaryConnectionString"].(string), "SharedAccessKey="+key) {
		t.Errorf("keys %v", first)
	}
}
