package storage_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/behaviour/storage"
)

// The services and policies of an account are stored with what Azure adds.
func TestServicesAndPoliciesOfAnAccount(t *testing.T) {
	withAccount(t, `{"location":"eastus","kind":"storagev2","sku":{"name":"Standard_LRS"},"properties":{"allowBlobPublicAccess":"true",
		"accessTier":"cool","networkAcls":{"defaultAction":"deny"}}}`).Run(
		exchange{Do: "GET " + account, Has: has{"kind": "StorageV2", "properties.allowBlobPublicAccess": true, "properties.accessTier": "Cool",
			"properties.networkAcls.defaultAction": "Deny"}},
		exchange{Do: "GET " + account + "?api-version=2025-06-01", Has: has{"properties.allowCrossTenantDelegationSas": false}},
		exchange{Do: "GET " + account + "?api-version=2025-01-01", Has: has{"properties.allowCrossTenantDelegationSas": nil}},
		exchange{Do: "GET " + account + "/queueServices/default", Has: has{"properties.cors.corsRules.#": 0, "name": "default"}},
		exchange{Do: "PUT " + account + "/queueServices/default/queues/orders", Body: `{"properties":{"metadata":{"a":"b"}}}`,
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

// What an account's parts show depends on whether they are written or read.
func TestViewsOfTheParts(t *testing.T) {
	withAccount(t, standard).Run(
		exchange{Do: "PUT " + account + "/managementPolicies/default", Body: `{"properties":{"policy":{"rules":[{"name":"r","type":"Lifecycle",
			"definition":{}}]}}}`, Has: has{"name": "DefaultManagementPolicy"}},
		exchange{Do: "GET " + account + "/managementPolicies/default", Has: has{"name": "DefaultManagementPolicy"}},
		exchange{Do: "PUT " + account + "/inventoryPolicies/default", Body: `{"properties":{"policy":{"enabled":true,"type":"Inventory",
			"rules":[]}}}`, Has: has{"name": "DefaultInventoryPolicy"}},
		exchange{Do: "GET " + account + "/inventoryPolicies", Has: has{"value.0.name": "DefaultInventoryPolicy"}},
		exchange{Do: "PUT " + account + "/encryptionScopes/s1", Body: `{"properties":{}}`, Status: 201,
			Has: has{"properties.keyVaultProperties": has{}}},
		exchange{Do: "GET " + account + "/encryptionScopes/s1", Has: has{"properties.keyVaultProperties": nil}},
		exchange{Do: "PUT " + account + "/queueServices/default/queues/orders", Has: has{"properties.metadata": has{}}},
		exchange{Do: "GET " + account + "/queueServices/default/queues/orders", Has: has{"properties.metadata": has{}}},
		exchange{Do: "PUT " + account + "/tableServices/default/tables/people", Has: has{"properties.signedIdentifiers": nil}},
		exchange{Do: "GET " + account + "/tableServices/default/tables/people", Has: has{"properties.signedIdentifiers.#": 0}},
		exchange{Do: "GET " + account + "/tableServices/default/tables", Has: has{"value.0.properties.signedIdentifiers.#": 0}},
		exchange{Do: "PUT " + account + "/localUsers/u", Body: `{"properties":{"homeDirectory":"h"}}`, Has: has{
			"properties.hasSshPassword": nil}},
		exchange{Do: "GET " + account + "/localUsers/u", Has: has{"properties.hasSshPassword": false}},
		exchange{Do: "PUT " + account + "/fileServices/default", Body: `{"properties":{"shareDeleteRetentionPolicy":{"enabled":false}}}`,
			Has: has{"properties.shareDeleteRetentionPolicy": has{"enabled": false}}},
		exchange{Do: "GET " + account + "/fileServices/default", Has: has{"properties.shareDeleteRetentionPolicy.days": 0}},
	)
}

// A service completes how it tracks the last access, and has no such policy after it was switched off.
func TestTrackingOfTheLastAccess(t *testing.T) {
	const blobs, policy = account + "/blobServices/default", "properties.lastAccessTimeTrackingPolicy"
	withAccount(t, standard).Run(
		exchange{Do: "PUT " + blobs, Body: `{"properties":{"lastAccessTimeTrackingPolicy":{"enable":true}}}`,
			Has: has{policy + ".name": "AccessTimeTracking", policy + ".trackingGranularityInDays": 1, policy + ".blobType.0": "blockBlob"}},
		exchange{Do: "GET " + blobs, Has: has{policy + ".enable": true, policy + ".name": "AccessTimeTracking"}},
		exchange{Do: "PUT " + blobs, Body: `{"properties":{"lastAccessTimeTrackingPolicy":{"enable":false}}}`, Has: has{policy: nil}},
		exchange{Do: "GET " + blobs, Has: has{policy: nil}},
	)
}

// The policy of a new account's blobs is complete, and not locked.
func TestImmutabilityOfNewAccounts(t *testing.T) {
	body := func(policy string) string {
		return `{"location":"eastus","kind":"StorageV2","sku":{"name":"Standard_LRS"},"properties":{"immutableStorageWithVersioning":{
			"enabled":true,"immutabilityPolicy":` + policy + `}}}`
	}
	const failure = "InvalidStorageAccountImmutabilityPolicy"
	withAccount(t, standard).Run(
		exchange{Do: "PUT " + account + "2", Body: body(`{"immutabilityPeriodSinceCreationInDays":10}`), Status: 400, Code: failure},
		exchange{Do: "PUT " + account + "2", Body: body(`{"state":"Unlocked"}`), Status: 400, Code: failure},
		exchange{Do: "PUT " + account + "2", Body: body(`{"immutabilityPeriodSinceCreationInDays":10,"state":"Locked"}`), Status: 400,
			Code: failure},
		exchange{Do: "PUT " + account + "2", Body: body(`{"immutabilityPeriodSinceCreationInDays":10,"state":"Unlocked"}`), Status: 202},
	)
}

// Scopes are listed by their names and states.
func TestListsOfScopes(t *testing.T) {
	const scopes = account + "/encryptionScopes"
	withAccount(t, standard).Run(
		exchange{Do: "PUT " + scopes + "/mine", Body: `{"properties":{}}`, Status: 201},
		exchange{Do: "PUT " + scopes + "/test1", Body: `{"properties":{}}`, Status: 201},
		exchange{Do: "PUT " + scopes + "/test2", Body: `{"properties":{}}`, Status: 201},
		exchange{Do: "PATCH " + scopes + "/test2", Body: `{"properties":{"state":"Disabled"}}`},
		exchange{Do: "GET " + scopes, Has: has{"value.#": 3}},
		exchange{Do: "GET " + scopes + "?$include=All", Has: has{"value.#": 3}},
		exchange{Do: "GET " + scopes + "?$include=Disabled", Has: has{"value.#": 1, "value.0.name": "test2"}},
		exchange{Do: "GET " + scopes + "?$include=Enabled", Has: has{"value.#": 2}},
		exchange{Do: "GET " + scopes + "?$filter=startswith(name, test)", Has: has{"value.#": 2, "value.0.name": "test1"}},
	)
}

// What depends on the SKU of an account: the parts for private endpoints, and settings of the protocol SMB.
func TestPartsDependOnTheSKU(t *testing.T) {
	for _, c := range []struct {
		kind, sku string
		groups    int
		channels  any
	}{
		{"StorageV2", "Standard_LRS", 6, nil},
		{"StorageV2", "Standard_RAGRS", 11, nil},
		{"FileStorage", "Premium_LRS", 1, has{"enabled": false}},
	} {
		withAccount(t, `{"location":"eastus","kind":"`+c.kind+`","sku":{"name":"`+c.sku+`"}}`).Run(
			exchange{Do: "GET " + account + "/privateLinkResources", Has: has{"value.#": c.groups}},
			exchange{Do: "GET " + account + "/fileServices/default", Has: has{"properties.protocolSettings.smb.multichannel": c.channels}},
		)
	}
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

// Containers can be held and made immutable.
func TestHolds(t *testing.T) {
	a := withAccount(t, standard)
	const container = account + "/blobServices/default/containers/c-1"
	const policy, history = container + "/immutabilityPolicies/default", "properties.immutabilityPolicy.updateHistory."
	body := func(days string) string {
		return `{"properties":{"immutabilityPeriodSinceCreationInDays":` + days + `}}`
	}
	a.Run(
		exchange{Do: "PUT " + container, Body: `{}`, Status: 201},
		exchange{Do: "POST " + container + "/setLegalHold", Body: `{"tags":["Tag2","tag1"]}`,
			Has: has{"hasLegalHold": true, "tags.0": "tag1", "tags.1": "tag2"}},
		exchange{Do: "GET " + container, Has: has{"properties.hasLegalHold": true, "properties.legalHold.tags.#": 2,
			"properties.legalHold.tags.0.tag": "tag1"}},
		exchange{Do: "POST " + container + "/clearLegalHold", Body: `{"tags":["tag1","tag2"]}`, Has: has{"hasLegalHold": false, "tags.#": 0}},
		exchange{Do: "PUT " + policy, Body: body("3"), Header: map[string]string{"ETag": "*"},
			Has: has{"properties.state": "Unlocked", "type": "Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies"}},
		exchange{Do: "GET " + container, Has: has{"properties.hasImmutabilityPolicy": true,
			"properties.immutabilityPolicy.properties.immutabilityPeriodSinceCreationInDays": 3}},
		exchange{Do: "POST " + policy + "/extend", Body: body("9"), Status: 409, Code: "ImmutabilityPolicyUpdateNotAllowed"},
		exchange{Do: "POST " + policy + "/lock", Has: has{"properties.state": "Locked"}},
		exchange{Do: "POST " + policy + "/extend", Body: body("9"), Has: has{"properties.immutabilityPeriodSinceCreationInDays": 9,
			"$history": nil}},
		exchange{Do: "GET " + policy, Has: has{"properties.state": "Locked", "$history": nil}},
		exchange{Do: "GET " + container, Has: has{history + "#": 3, history + "0.update": "put", history + "1.update": "lock",
			history + "2.update": "extend", history + "1.immutabilityPeriodSinceCreationInDays": 3,
			history + "2.immutabilityPeriodSinceCreationInDays": 9}},
		exchange{Do: "DELETE " + policy, Status: 409, Code: "ContainerImmutabilityPolicyFailure"},
		exchange{Do: "PUT " + container + "2", Body: `{}`, Status: 201},
		exchange{Do: "PUT " + container + "2/immutabilityPolicies/default", Body: body("3")},
		exchange{Do: "DELETE " + container + "2/immutabilityPolicies/default", Has: has{"properties.immutabilityPeriodSinceCreationInDays": 0}},
	)
}

// Containers and shares are leased for 15 to 60 seconds or for ever. A container with a lease is not deleted.
func TestLeases(t *testing.T) {
	const container, id = account + "/blobServices/default/containers/c-1", "00000000-0000-0000-0000-00000000000a"
	lease := func(action, more string) string { return `{"action":"` + action + `"` + more + `}` }
	ask := func(action, more string, status int, code string, want has) exchange {
		return exchange{Do: "POST " + container + "/lease", Body: lease(action, more), Status: status, Code: code, Has: want}
	}
	const acquired = `,"proposedLeaseId":"` + id + `","leaseDuration":`
	synctest.Test(t, func(t *testing.T) {
		a := withAccount(t, standard)
		a.Run(
			exchange{Do: "PUT " + container, Body: `{}`, Status: 201},
			ask("Take", "", 400, "InvalidRequestPropertyValue", nil),
			ask("Acquire", "", 400, "MissingRequiredProperty", nil),
			ask("Acquire", `,"leaseDuration":14`, 400, "InvalidRequestPropertyValue", nil),
			ask("Acquire", `,"leaseDuration":15,"proposedLeaseId":"x"`, 400, "InvalidRequestPropertyValue", nil),
			ask("Renew", `,"leaseId":"`+id+`"`, 409, "LeaseIdMismatchWithLeaseOperation", nil),
			ask("Acquire", acquired+"15", 200, "", has{"leaseId": id}),
			exchange{Do: "GET " + container, Has: has{"properties.leaseState": "Leased", "properties.leaseStatus": "Locked",
				"properties.leaseDuration": "Fixed", "$lease": nil}},
			exchange{Do: "DELETE " + container, Status: 412, Code: "LeaseIdMissing"},
		)
		<-time.After(15 * time.Second)
		a.Run(
			exchange{Do: "GET " + container, Has: has{"properties.leaseState": "Expired", "properties.leaseStatus": "Unlocked",
				"properties.leaseDuration": nil}},
			ask("Acquire", acquired+"-1", 200, "", has{"leaseId": id}),
			ask("Break", `,"breakPeriod":61`, 400, "InvalidRequestPropertyValue", nil),
			ask("Break", `,"breakPeriod":20`, 200, "", has{"leaseTimeSeconds": "20"}),
			exchange{Do: "GET " + container, Has: has{"properties.leaseState": "Breaking", "properties.leaseStatus": "Locked"}},
			ask("Release", `,"leaseId":"`+id+`"`, 200, "", has{"leaseId": id}),
			exchange{Do: "GET " + container, Has: has{"properties.leaseState": "Available", "properties.leaseStatus": "Unlocked"}},
			exchange{Do: "DELETE " + container},
			exchange{Do: "PUT " + shares + "/share1", Body: `{}`, Status: 201},
			exchange{Do: "POST " + shares + "/share1/lease", Body: lease("Acquire", acquired+"-1"), Has: has{"leaseId": id}},
			exchange{Do: "GET " + shares + "/share1", Has: has{"properties.leaseState": "leased", "properties.leaseDuration": "infinite"}},
		)
	})
}

// An account has the endpoints of its routing preference and of its DNS zone, the version of its key, and the keys of Kerberos.
func TestEndpointsAndKeysOfAnAccount(t *testing.T) {
	a := withAccount(t, `{"location":"eastus","kind":"StorageV2","sku":{"name":"Standard_RAGRS"},"properties":{"dnsEndpointType":"azurednszone",
		"routingPreference":{"publishMicrosoftEndpoints":true,"publishInternetEndpoints":"true"},"encryption":{"keySource":"microsoft.keyvault",
		"keyvaultproperties":{"keyname":"k","keyvaulturi":"https://v.vault.azure.net/"}}}}`)
	const blob = "properties.primaryEndpoints."
	a.Run(
		exchange{Do: "GET " + account + "?$expand=geoReplicationStats", Has: has{
			blob + "blob":                                          "https://data1.z13.blob.storage.azure.net/",
			blob + "microsoftEndpoints.file":                       "https://data1-microsoftrouting.z13.file.storage.azure.net/",
			blob + "internetEndpoints.queue":                       nil,
			blob + "internetEndpoints.blob":                        "https://data1-internetrouting.z13.blob.storage.azure.net/",
			"properties.secondaryEndpoints.internetEndpoints.blob": "https://data1-secondary-internetrouting.z13.blob.storage.azure.net/",
			"properties.secondaryEndpoints.file":                   nil,
			"properties.geoReplicationStats.status":                "Live",
		}},
		exchange{Do: "POST " + account + "/listKeys?$expand=kerb", Has: has{"keys.#": 2}},
		exchange{Do: "POST " + account + "/regenerateKey", Body: `{"keyName":"kerb1"}`, Has: has{"keys.#": 3, "keys.2.keyName": "kerb1"}},
		exchange{Do: "POST " + account + "/listKeys", Has: has{"keys.#": 2}},
		exchange{Do: "POST " + account + "/failover", Status: 202, Header: map[string]string{"Location": "*"}},
		exchange{Do: "PUT " + account + "/queueServices/default/queues/orders", Body: `{}`},
		exchange{Do: "DELETE " + account + "/queueServices/default/queues/orders", Status: 204},
		exchange{Do: "GET " + account + "/queueServices/default/queues/orders", Status: 404, Code: "QueueNotFound"},
		exchange{Do: "GET " + account + "/managementPolicies/default", Status: 404, Code: "ManagementPolicyNotFound"},
		exchange{Do: "GET " + account + "/privateLinkResources/file_secondary", Status: 404, Code: "NotFound"},
		exchange{Do: "GET ~~/providers/Microsoft.Storage/skus", Has: has{"value.0.capabilities.#": 3}},
		exchange{Do: "GET " + account + "/privateLinkResources/blob", Has: has{"properties.groupId": "blob"}},
		exchange{Do: "PUT " + account + "2", Body: standard, Status: 202},
		exchange{Do: "DELETE " + account + "2"},
		exchange{Do: "GET ~~/providers/Microsoft.Storage/deletedAccounts", Has: has{"value.#": 1, "value.0.name": "data12"}},
		exchange{Do: "GET ~~/providers/Microsoft.Storage/locations/eastus/deletedAccounts/data12",
			Has: has{"type": "Microsoft.Storage/deletedAccounts"}},
	)
	policy := a.Run(exchange{Do: "PUT " + account + "/objectReplicationPolicies/default", Body: `{"properties":{"sourceAccount":"s",
		"destinationAccount":"d","rules":[{"sourceContainer":"a","destinationContainer":"b"}]}}`})
	if name, _ := policy["name"].(string); name == "default" || behaviourtest.At(policy, "properties.policyId") != any(name) {
		t.Errorf("the policy has the name %q: %v", name, policy)
	}
	key := a.Run(exchange{Do: "GET " + account})
	const path = "properties.encryption.keyvaultproperties.currentVersionedKeyIdentifier"
	if text, _ := behaviourtest.At(key, path).(string); !strings.HasPrefix(text, "https://v.vault.azure.net/keys/k/") {
		t.Errorf("%s is %q", path, text)
	}
}
