package storage_test

import (
	"strings"
	"testing"

	"kaz/internal/emulator/behaviour/behaviourtest"
	"kaz/internal/emulator/behaviour/network"
	"kaz/internal/emulator/behaviour/resources"
	"kaz/internal/emulator/behaviour/storage"
)

// The services and policies of an account are stored with what Azure adds.
func TestServicesAndPoliciesOfAnAccount(t *testing.T) {
	withAccount(t, `{"location":"eastus","kind":"storagev2","sku":{"name":"Standard_LRS"},"properties":{"allowBlobPublicAccess":"true",
		"accessTier":"cool","networkAcls":{"defaultAction":"deny"}}}`).Run(
		exchange{Do: "GET " + account, Has: has{"kind": "StorageV2", "properties.allowBlobPublicAccess": true, "properties.accessTier": "Cool",
			"properties.networkAcls.defaultAction": "Deny"}},
		exchange{Do: "GET " + account + "/queueServices/default", Has: has{"properties.cors.corsRules.#": 0, "name": "default"}},
		exchange{Do: "PUT " + account + "/queueServices/default/queues/q1", Body: `{"properties":{"metadata":{"a":"b"}}}`,
			Has: has{"properties.metadata.a": "b", "type": "Microsoft.Storage/storageAccounts/queueServices/queues"}},
		exchange{Do: "GET " + account + "/queueServices/default/queues", Has: has{"value.#": 1}},
		exchange{Do: "PUT " + account + "/tableServices/default/tables/Table1", Has: has{"properties.tableName": "Table1"}},
		exchange{Do: "PUT " + account + "/managementPolicies/default", Body: `{"properties":{"policy":{"rules":[{"name":"r","type":"lifecycle",
			"definition":{}}]}}}`, Has: has{"properties.policy.rules.0.enabled": true, "properties.policy.rules.0.type": "Lifecycle"}},
		exchange{Do: "PUT " + account + "/encryptionScopes/s1", Body: `{"properties":{}}`, Status: 201,
			Has: has{"properties.source": "Microsoft.Storage", "properties.state": "Enabled"}},
		exchange{Do: "PATCH " + account + "/encryptionScopes/s1", Body: `{"properties":{"state":"disabled"}}`,
			Has: has{"properties.state": "Disabled"}},
		exchange{Do: "POST " + account + "/ListAccountSas", Body: `{"signedServices":"b","signedResourceTypes":"o","signedPermission":"r",
			"signedExpiry":"2030-01-01T00:00:00Z"}`},
		exchange{Do: "POST " + account + "/ListAccountSas", Body: `{}`, Status: 400, Code: "InvalidValuesForRequestParameters"},
		exchange{Do: "GET " + account + "/privateLinkResources", Has: has{"value.0.properties.requiredZoneNames.#": 1}},
		exchange{Do: "GET ~~/providers/Microsoft.Storage/skus", Has: has{"value.0.resourceType": "storageAccounts"}},
		exchange{Do: "GET " + account + "/nothings/x", Status: 404, Code: "InvalidResourceType"},
	)
}

// A share with snapshots lists them, and goes only with them.
func TestSnapshotsOfAShare(t *testing.T) {
	a := withAccount(t, standard)
	a.Run(
		exchange{Do: "PUT " + shares + "/share1", Body: `{"properties":{"shareQuota":"5"}}`, Status: 201},
		exchange{Do: "PUT " + shares + "/share1?$expand=snapshots", Body: `{}`},
		exchange{Do: "PUT " + shares + "/share1", Body: `{"properties":{"shareQuota":6}}`},
		exchange{Do: "GET " + shares, Has: has{"value.#": 1, "value.0.properties.snapshotTime": nil, "value.0.properties.shareQuota": 6}},
		exchange{Do: "GET " + shares + "?$expand=snapshots", Has: has{"value.#": 2, "value.0.properties.snapshotTime": nil}},
		exchange{Do: "PUT " + shares + "/share2?$expand=snapshots", Body: `{}`, Status: 404, Code: "ShareNotFound"},
		exchange{Do: "DELETE " + shares + "/share1?$include=none", Status: 409, Code: "ShareHasSnapshots"},
		exchange{Do: "DELETE " + shares + "/share1"},
	)
	if got := a.Run(exchange{Do: "GET " + shares}); behaviourtest.At(got, "value.#") != 0 {
		t.Errorf("shares %v", got)
	}
}

// The account approves the connections of private endpoints, and can reject them.
func TestPrivateEndpointConnectionsOfAnAccount(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), network.Provider(), storage.Provider())
	const net = "~/providers/Microsoft.Network"
	full := strings.Replace(account, "~", behaviourtest.Group, 1)
	subnet := behaviourtest.Group + "/providers/Microsoft.Network/virtualNetworks/v/subnets/s"
	a.Run(
		exchange{Do: "PUT " + account, Body: standard, Status: 202},
		exchange{Do: "PUT " + net + "/virtualNetworks/v", Status: 201, Body: `{"location":"eastus","properties":{"addressSpace":{
			"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`},
		exchange{Do: "PUT " + net + "/privateEndpoints/e", Status: 201, Body: `{"location":"eastus","properties":{"subnet":{"id":"` + subnet +
			`"},"privateLinkServiceConnections":[{"name":"c","properties":{"privateLinkServiceId":"` + full + `","groupIds":["blob"]}}]}}`},
	)
	const state = "properties.privateLinkServiceConnectionState.status"
	shown := a.Run(exchange{Do: "GET " + account, Has: has{"properties.privateEndpointConnections.0." + state: "Approved"}})
	connection, _ := behaviourtest.At(shown, "properties.privateEndpointConnections.0.id").(string)
	reject := `{"properties":{"privateLinkServiceConnectionState":{"status":"Rejected","description":"no"}}}`
	a.Run(
		exchange{Do: "GET " + connection, Has: has{state: "Approved", "properties.privateEndpoint.id": strings.Replace(net, "~",
			behaviourtest.Group, 1) + "/privateEndpoints/e"}},
		exchange{Do: "PUT " + connection, Body: reject, Has: has{state: "Rejected"}},
		exchange{Do: "GET " + net + "/privateEndpoints/e", Has: has{"properties.privateLinkServiceConnections.0." + state: "Rejected"}},
		exchange{Do: "GET " + account + "/privateEndpointConnections", Has: has{"value.#": 1}},
		exchange{Do: "DELETE " + connection},
		exchange{Do: "GET " + net + "/privateEndpoints/e", Has: has{"properties.privateLinkServiceConnections.0." + state: "Disconnected"}},
	)
}
