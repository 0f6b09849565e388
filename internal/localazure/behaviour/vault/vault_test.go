package vault_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/behaviour/vault"
)

type (
	exchange = behaviourtest.Exchange
	has      = map[string]any
)

const (
	vaults  = "~/providers/Microsoft.KeyVault/vaults"
	keys    = vaults + "/keys-1"
	deleted = "~~/providers/Microsoft.KeyVault/locations/eastus/deletedVaults/keys-1"
	body    = `{"location":"eastus","properties":{"tenantId":"t","sku":{"family":"A","name":"standard"},"accessPolicies":[]}}`
	recover = `{"location":"eastus","properties":{"tenantId":"t","sku":{"family":"A","name":"standard"},"createMode":"recover"}}`
)

func start(t *testing.T) *behaviourtest.Azure {
	return behaviourtest.Start(t, resources.Provider(), vault.Provider())
}

func TestVaultIsReadyWithItsName(t *testing.T) {
	a := start(t)
	a.Run(
		exchange{Do: "PUT " + keys, Body: body,
			Header: map[string]string{"Azure-AsyncOperation": "", "x-ms-keyvault-service-version": "*"}, Has: has{
				"properties.provisioningState": "RegisteringDns", "properties.vaultUri": "https://keys-1.vault.azure.net",
				"properties.softDeleteRetentionInDays": 90, "properties.enableSoftDelete": true, "systemData.createdByType": "User",
				"tags": map[string]any{},
			}},
		exchange{Do: "GET " + keys,
			Has: has{"properties.provisioningState": "Succeeded", "properties.vaultUri": "https://keys-1.vault.azure.net/"}},
		exchange{Do: "PATCH " + keys, Body: `{"properties":{"enablePurgeProtection":true}}`,
			Has: has{"properties.provisioningState": "Succeeded"}},
		exchange{Do: "PATCH " + keys, Body: `{"properties":{"enablePurgeProtection":false}}`, Status: 400, Code: "BadRequest"},
	)
}

func TestRefusedVaults(t *testing.T) {
	a := start(t)
	put := func(name, body, code string) {
		status := 400
		if code == "VaultAlreadyExists" {
			status = 409
		}
		a.Run(exchange{Do: "PUT " + name, Body: body, Status: status, Code: code})
	}
	put(vaults+"/1st", body, "VaultNameNotValid")
	put(vaults+"/a--b", body, "VaultNameNotValid")
	put(keys, `{"location":"eastus","properties":{"tenantId":"t","accessPolicies":[]}}`, "InvalidVaultSku")
	put(keys, `{"location":"eastus","properties":{"sku":{"name":"premium"},"accessPolicies":[]}}`, "BadRequest")
	put(keys, `{"location":"eastus","properties":{"tenantId":"t","sku":{"name":"premium"}}}`, "BadRequest")
	put(keys, `{"location":"eastus","properties":{"tenantId":"t","sku":{"name":"premium"},"accessPolicies":[],
		"softDeleteRetentionInDays":3}}`, "BadRequest")
	a.Run(
		exchange{Do: "PUT " + keys, Body: body},
		exchange{Do: "PUT ~~/resourceGroups/other", Body: `{"location":"eastus"}`, Status: 201},
	)
	put("~~/resourceGroups/other/providers/Microsoft.KeyVault/vaults/keys-1", body, "VaultAlreadyExists")
	const check = "POST ~~/providers/Microsoft.KeyVault/checkNameAvailability"
	a.Run(
		exchange{Do: check, Body: `{"name":"keys-1"}`, Has: has{"nameAvailable": false, "reason": "AlreadyExists"}},
		exchange{Do: check, Body: `{"name":"-"}`, Has: has{"nameAvailable": false, "reason": "AccountNameInvalid"}},
		exchange{Do: check, Body: `{"name":"keys-2"}`, Has: has{"nameAvailable": true}},
	)
}

func TestTheListHasOneVaultOnAPage(t *testing.T) {
	a := start(t)
	a.Run(exchange{Do: "PUT " + keys, Body: body}, exchange{Do: "PUT " + vaults + "/keys-2", Body: body})
	var names []string
	next := vaults
	for next != "" {
		_, _, page := a.Send("GET", next, "")
		for _, item := range behaviour.Objects(page, "value") {
			names = append(names, behaviour.Text(item, "name"))
		}
		next = behaviour.Text(page, "nextLink")
	}
	if got := strings.Join(names, " "); got != "keys-1 keys-2" {
		t.Errorf("vaults on all pages: %s", got)
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	a := start(t)
	secret := keys + "/secrets/s"
	a.Run(
		exchange{Do: "PUT " + secret, Body: `{"properties":{"value":"1"}}`, Status: 404, Code: "ParentResourceNotFound"},
		exchange{Do: "PUT " + keys, Body: body},
		exchange{Do: "PUT " + secret, Body: `{"properties":{}}`, Status: 400, Code: "BadRequest"},
	)
	first := a.Run(exchange{Do: "PUT " + secret, Body: `{"properties":{"value":"1"}}`, Has: has{
		"location": "eastus", "properties.value": nil, "$value": nil, "properties.attributes.enabled": true,
		"properties.secretUri": "https://keys-1.vault.azure.net/secrets/s",
	}})
	version := func(o behaviour.Object) string { return behaviour.Text(o, "properties.secretUriWithVersion") }
	patched := a.Run(exchange{Do: "PATCH " + secret, Body: `{"properties":{"attributes":{"enabled":false}}}`,
		Has: has{"properties.attributes.enabled": false}})
	if version(first) != version(patched) {
		t.Error("a change of attributes made a new version")
	}
	if second := a.Run(exchange{Do: "PUT " + secret, Body: `{"properties":{"value":"2"}}`}); version(first) == version(second) {
		t.Error("a new value has the old version")
	}
	a.Look(func(w behaviour.World) {
		if got, ok := vault.Secret(w, azure.ID(strings.Replace(keys, "~", behaviourtest.Group, 1)), "s"); !ok || got != "2" {
			t.Errorf("secret for the data plane: %q, %v", got, ok)
		}
	})
	a.Run(
		exchange{Do: "GET " + keys + "/secrets", Has: has{"value.#": 1, "value.0.$value": nil}},
		exchange{Do: "GET " + keys + "/secrets/none", Status: 404, Code: "ResourceNotFound"},
		exchange{Do: "DELETE " + secret, Status: 405, Code: "MethodNotAllowed"},
	)
}

func TestADeletedVaultIsRecoveredOrPurged(t *testing.T) {
	a := start(t)
	a.Run(
		exchange{Do: "PUT " + keys, Body: body},
		exchange{Do: "PUT " + keys + "/secrets/s", Body: `{"properties":{"value":"1"}}`},
		exchange{Do: "DELETE " + keys},
		exchange{Do: "GET " + keys, Status: 404, Code: "ResourceNotFound"},
		exchange{Do: "GET " + deleted,
			Has: has{"type": "Microsoft.KeyVault/deletedVaults", "properties.location": "eastus", "$vault": nil}},
		exchange{Do: "GET ~~/providers/Microsoft.KeyVault/deletedVaults", Has: has{"value.#": 1, "value.0.name": "keys-1"}},
		exchange{Do: "PUT " + keys, Body: body, Status: 409, Code: "ConflictError"},
		exchange{Do: "PUT " + keys, Body: recover},
		exchange{Do: "GET " + deleted, Status: 404, Code: "DeletedVaultNotFound"},
		exchange{Do: "GET " + keys + "/secrets/s", Has: has{"properties.attributes.enabled": true}},
		exchange{Do: "GET " + keys, Has: has{"$secrets": nil, "properties.createMode": nil}},
		exchange{Do: "DELETE " + keys},
	)
	status, header, _ := a.Send("POST", deleted+"/purge", "")
	if status != 202 || header.Get("Location") == "" {
		t.Fatalf("purge: %d, Location %q", status, header.Get("Location"))
	}
	a.Run(
		exchange{Do: "GET " + header.Get("Location"), Has: has{"status": "Succeeded"}},
		exchange{Do: "PUT " + keys, Body: recover, Status: 404, Code: "VaultNotFound"},
		exchange{Do: "PUT " + keys, Body: body},
		exchange{Do: "GET " + keys + "/secrets", Has: has{"value.#": 0}},
	)
}

func TestPurgeProtection(t *testing.T) {
	a := start(t)
	a.Run(
		exchange{Do: "PUT " + keys, Body: strings.Replace(body, `"tenantId"`, `"enablePurgeProtection":true,"tenantId"`, 1)},
		exchange{Do: "DELETE " + keys},
		exchange{Do: "POST " + deleted + "/purge", Status: 400, Code: "MethodNotAllowed"},
	)
}

func TestDeletedVaultExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t)
		a.Run(exchange{Do: "PUT " + keys, Body: strings.Replace(body, `"tenantId"`, `"softDeleteRetentionInDays":7,"tenantId"`, 1)},
			exchange{Do: "DELETE " + keys})
		<-time.After(8 * 24 * time.Hour)
		a.Run(
			exchange{Do: "GET ~~/providers/Microsoft.KeyVault/deletedVaults", Has: has{"value.#": 0}},
			exchange{Do: "PUT " + keys, Body: body},
		)
	})
}

func TestAccessPoliciesAreAddedReplacedAndRemoved(t *testing.T) {
	a := start(t)
	policy := func(object, secrets string) string {
		return `{"properties":{"accessPolicies":[{"tenantId":"t","objectId":"` + object + `","permissions":{"secrets":[` + secrets + `]}}]}}`
	}
	const first, second = "properties.accessPolicies.0.permissions.secrets", "properties.accessPolicies.1.permissions.secrets"
	a.Run(
		exchange{Do: "PUT " + keys + "/accessPolicies/add", Body: policy("a", `"get"`), Status: 404, Code: "ParentResourceNotFound"},
		exchange{Do: "PUT " + keys, Body: body},
		exchange{Do: "PUT " + keys + "/accessPolicies/add", Body: policy("a", `"get"`), Has: has{
			"type": "Microsoft.KeyVault/vaults/accessPolicies", "properties.accessPolicies.#": 1}},
		exchange{Do: "PUT " + keys + "/accessPolicies/add", Body: policy("A", `"Get","list"`), Has: has{first + ".#": 2, first + ".1": "list"}},
		exchange{Do: "PUT " + keys + "/accessPolicies/replace", Body: policy("b", `"set"`), Has: has{"properties.accessPolicies.#": 2}},
		exchange{Do: "GET " + keys, Has: has{first + ".#": 2, second + ".0": "set"}},
		exchange{Do: "PUT " + keys + "/accessPolicies/remove", Body: policy("a", `"get"`), Has: has{first + ".#": 1, first + ".0": "list"}},
		exchange{Do: "PUT " + keys + "/accessPolicies/remove", Body: policy("b", `"set"`), Has: has{"properties.accessPolicies.#": 1}},
		exchange{Do: "PUT " + keys + "/accessPolicies/remove", Body: policy("c", `"set"`), Has: has{"properties.accessPolicies.#": 1}},
		exchange{Do: "PUT " + keys + "/accessPolicies/none", Body: policy("b", `"set"`), Status: 400, Code: "BadRequest"},
	)
}

// Values of a vault are converted, and its network rules completed.
func TestValuesOfAVault(t *testing.T) {
	start(t).Run(
		exchange{Do: "GET ~~/providers/Microsoft.KeyVault/deletedManagedHSMs", Has: has{"value.#": 0}},
		exchange{Do: "PUT " + keys, Body: strings.Replace(body, `"standard"`, `"Standard"`, 1)},
		exchange{Do: "PATCH " + keys, Body: `{"properties":{"enabledForDeployment":"true","networkAcls":{"ipRules":[{"value":"1.2.3.4"}]}}}`},
		exchange{Do: "GET " + keys, Has: has{"properties.sku.name": "standard", "properties.enabledForDeployment": true,
			"properties.networkAcls.virtualNetworkRules.#": 0, "properties.networkAcls.bypass": "AzureServices"}},
		exchange{Do: "PUT " + keys + "/privateEndpointConnections/c", Body: `{"properties":{"privateLinkServiceConnectionState":{
			"status":"Approved"}}}`, Has: has{"properties.privateLinkServiceConnectionState.actionsRequired": "None"}},
	)
}

// A key that ARM creates has versions. A second PUT changes nothing.
func TestKeysOfAVault(t *testing.T) {
	a := start(t)
	const key = keys + "/keys/k1"
	made := a.Run(
		exchange{Do: "PUT " + keys, Body: body},
		exchange{Do: "PUT " + key, Body: `{"properties":{"kty":"none"}}`, Status: 400, Code: "BadRequest"},
		exchange{Do: "PUT " + key, Body: `{"properties":{"kty":"RSA"}}`, Has: has{"properties.keySize": 2048, "location": "eastus",
			"properties.attributes.enabled": true, "properties.keyUri": "https://keys-1.vault.azure.net/keys/k1",
			"properties.attributes.recoveryLevel": "Recoverable+Purgeable"}},
	)
	short := strings.Replace(keys, "keys-1", "keys-2", 1)
	a.Run(
		exchange{Do: "PUT " + short, Body: strings.Replace(body, `"properties":{`, `"properties":{"softDeleteRetentionInDays":7,`, 1)},
		exchange{Do: "PUT " + short + "/keys/k1", Body: `{"properties":{"kty":"RSA"}}`,
			Has: has{"properties.attributes.recoveryLevel": "CustomizedRecoverable+Purgeable"}},
	)
	a.Run(
		exchange{Do: "PUT " + key, Body: `{"properties":{"kty":"EC"}}`, Has: has{"properties.kty": "RSA",
			"properties.keyUriWithVersion": behaviourtest.At(made, "properties.keyUriWithVersion")}},
		exchange{Do: "GET " + keys + "/keys", Has: has{"value.#": 1}},
		exchange{Do: "GET " + key + "/versions", Has: has{"value.#": 1, "value.0.type": "Microsoft.KeyVault/vaults/keys/versions"}},
	)
}
