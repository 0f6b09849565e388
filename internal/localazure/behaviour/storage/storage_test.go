package storage_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/behaviour/storage"
)

type (
	exchange = behaviourtest.Exchange
	has      = map[string]any
)

const (
	accounts = "~/providers/Microsoft.Storage/storageAccounts"
	account  = accounts + "/data1"
	shares   = account + "/fileServices/default/shares"
	blobs    = account + "/blobServices/default/containers"
)

func start(t *testing.T) *behaviourtest.Azure {
	return behaviourtest.Start(t, resources.Provider(), storage.Provider())
}

func withAccount(t *testing.T, body string) *behaviourtest.Azure {
	a := start(t)
	a.Run(exchange{Do: "PUT " + account, Body: body, Status: 202, Header: map[string]string{"Location": "*", "Retry-After": "*"}})
	return a
}

const standard = `{"location":"East US","kind":"StorageV2","sku":{"name":"Standard_LRS"}}`

func TestAnAccountIsCompletedAsAzureDoes(t *testing.T) {
	cases := map[string]struct {
		body string
		has  has
	}{
		"general purpose": {standard, has{
			"location": "eastus", "sku.tier": "Standard", "properties.accessTier": "Hot", "properties.provisioningState": "Succeeded",
			"properties.supportsHttpsTrafficOnly": true, "properties.networkAcls.defaultAction": "Allow",
			"properties.primaryEndpoints.file": "https://data1.file.core.windows.net/",
			"properties.primaryEndpoints.dfs":  "https://data1.dfs.core.windows.net/",
			"properties.secondaryLocation":     nil, "tags": map[string]any{}, "$keys": nil,
			"properties.encryption.services.blob.keyType": "Account",
		}},
		"premium files": {`{"location":"eastus","kind":"FileStorage","sku":{"name":"Premium_LRS"}}`, has{
			"sku.tier": "Premium", "properties.accessTier": nil,
			"properties.primaryEndpoints": map[string]any{"file": "https://data1.file.core.windows.net/"},
		}},
		"replicated to the paired region": {`{"location":"eastus","kind":"StorageV2","sku":{"name":"Standard_RAGRS"}}`, has{
			"properties.secondaryLocation": "westus", "properties.statusOfSecondary": "available",
			"properties.secondaryEndpoints.blob": "https://data1-secondary.blob.core.windows.net/",
			"properties.secondaryEndpoints.file": nil,
		}},
		"China": {`{"location":"chinaeast2","kind":"StorageV2","sku":{"name":"Standard_LRS"}}`, has{
			"properties.primaryEndpoints.blob": "https://data1.blob.core.chinacloudapi.cn/",
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			withAccount(t, c.body).Run(exchange{Do: "GET " + account, Has: c.has})
		})
	}
}

func TestRefusedAccounts(t *testing.T) {
	a := withAccount(t, standard)
	a.Run(
		exchange{Do: "PUT ~~/resourceGroups/other", Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT " + accounts + "/Not-Good", Body: standard, Status: 400, Code: "AccountNameInvalid"},
		exchange{Do: "PUT ~~/resourceGroups/other/providers/Microsoft.Storage/storageAccounts/data1", Body: standard, Status: 409,
			Code: "StorageAccountInAnotherResourceGroup"},
		exchange{Do: "PUT " + accounts + "/data2", Body: `{"location":"eastus","kind":"StorageV2","sku":{"name":"Best"}}`, Status: 400,
			Code: "InvalidRequestPropertyValue"},
		exchange{Do: "PUT " + accounts + "/data2", Body: `{"location":"eastus","kind":"FileStorage","sku":{"name":"Standard_LRS"}}`,
			Status: 400, Code: "AccountPropertyIsInvalid"},
		exchange{Do: "PATCH " + account, Body: `{"properties":{"isHnsEnabled":true}}`},
		exchange{Do: "PATCH " + account, Body: `{"properties":{"isHnsEnabled":false}}`, Status: 400,
			Code: "AccountPropertyCannotBeUpdated"},
		exchange{Do: "DELETE " + account},
		exchange{Do: "DELETE " + account, Status: 204},
	)
}

func TestNamesOfAccountsAreChecked(t *testing.T) {
	a := withAccount(t, standard)
	const check = "POST ~~/providers/Microsoft.Storage/checkNameAvailability"
	a.Run(
		exchange{Do: check, Body: `{"name":"free1"}`, Has: has{"nameAvailable": true}},
		exchange{Do: check, Body: `{"name":"DATA-1"}`, Has: has{"nameAvailable": false, "reason": "AccountNameInvalid"}},
		exchange{Do: check, Body: `{"name":"data1"}`, Has: has{"nameAvailable": false, "reason": "AlreadyExists"}},
		exchange{Do: "GET ~~/providers/Microsoft.Storage/locations/eastus/usages", Has: has{"value.0.currentValue": 1}},
	)
}

func TestKeysAreKeptUntilTheyAreRegenerated(t *testing.T) {
	a := withAccount(t, standard)
	keys := func(do, body string) [2]string {
		got := a.Run(exchange{Do: "POST " + account + do, Body: body,
			Has: has{"keys.#": 2, "keys.0.keyName": "key1", "keys.1.permissions": "FULL"}})
		return [2]string{behaviourtest.At(got, "keys.0.value").(string), behaviourtest.At(got, "keys.1.value").(string)}
	}
	first := keys("/listKeys", "")
	if raw, err := base64.StdEncoding.DecodeString(first[0]); err != nil || len(raw) != 64 || first[0] == first[1] {
		t.Errorf("keys %v: want two different ones of 64 bytes", first)
	}
	a.Run(exchange{Do: "PATCH " + account, Body: `{"tags":{"a":"b"},"$keys":{"key1":"mine"}}`, Has: has{"tags.a": "b"}})
	if again := keys("/listKeys", ""); again != first {
		t.Errorf("keys changed from %v to %v", first, again)
	}
	second := keys("/regenerateKey", `{"keyName":"key2"}`)
	if second[0] != first[0] || second[1] == first[1] {
		t.Errorf("keys after regeneration of key2: %v, before %v", second, first)
	}
	a.Look(func(w behaviour.World) {
		doc, _ := w.Get(azure.ID(strings.Replace(account, "~", behaviourtest.Group, 1)))
		if got := storage.Keys(doc); got != second {
			t.Errorf("keys for the data plane: %v, want %v", got, second)
		}
	})
	a.Run(exchange{Do: "POST " + account + "/regenerateKey", Body: `{"keyName":"key3"}`, Status: 400, Code: "InvalidKeyName"})
}

func TestServicesExistWithTheirAccount(t *testing.T) {
	a := withAccount(t, standard)
	files := account + "/fileServices/default"
	a.Run(
		exchange{Do: "GET " + files, Has: has{"properties.shareDeleteRetentionPolicy.days": 7, "sku.name": "Standard_LRS"}},
		exchange{Do: "PUT " + files, Body: `{"properties":{"shareDeleteRetentionPolicy":{"enabled":false}}}`,
			Has: has{"properties.cors": nil, "properties.shareDeleteRetentionPolicy.enabled": false}},
		exchange{Do: "GET " + files, Has: has{"properties.shareDeleteRetentionPolicy.enabled": false, "properties.cors.corsRules.#": 0}},
		exchange{Do: "DELETE " + files, Status: 405, Code: "MethodNotAllowed"},
		exchange{Do: "GET " + account + "/blobServices", Has: has{"value.#": 1, "value.0.properties.deleteRetentionPolicy.enabled": false}},
		exchange{Do: "PUT " + account + "/blobServices/default",
			Body: `{"properties":{"deleteRetentionPolicy":{"enabled":true,"days":3}}}`,
			Has:  has{"properties.deleteRetentionPolicy.allowPermanentDelete": false, "properties.cors": nil}},
		exchange{Do: "GET " + account + "/blobServices/default",
			Has: has{"properties.deleteRetentionPolicy.days": 3, "properties.cors.corsRules.#": 0}},
		exchange{Do: "PUT " + account + "/blobServices/other", Body: `{}`, Status: 400, Code: "InvalidResourceName"},
		exchange{Do: "GET " + accounts + "/none/fileServices/default", Status: 404, Code: "ParentResourceNotFound"},
	)
}

func TestSharesEchoTheRequest(t *testing.T) {
	a := withAccount(t, standard)
	a.Run(
		exchange{Do: "PUT " + shares + "/share1", Body: `{"properties":{"shareQuota":10}}`, Status: 201,
			Header: map[string]string{"ETag": "*"},
			Has:    has{"properties": map[string]any{"shareQuota": 10.0}, "etag": nil}},
		exchange{Do: "GET " + shares + "/share1", Header: map[string]string{"ETag": "*"}, Has: has{
			"properties.accessTier": "TransactionOptimized", "properties.leaseState": "available", "properties.shareQuota": 10,
			"properties.signedIdentifiers.#": 0, "properties.enabledProtocols": nil,
		}},
		exchange{Do: "PUT " + shares + "/share1", Body: `{"properties":{"accessTier":"Cool"}}`},
		exchange{Do: "PATCH " + shares + "/share1", Body: `{"properties":{"shareQuota":20}}`},
		exchange{Do: "GET " + shares + "?$filter=startswith(name, s)", Has: has{
			"value.#": 1, "value.0.properties.shareQuota": 20, "value.0.properties.accessTier": "Cool",
			"value.0.properties.enabledProtocols": "SMB", "value.0.properties.signedIdentifiers": nil,
		}},
		exchange{Do: "GET " + shares + "?$filter=startswith(name, t)", Has: has{"value.#": 0}},
		exchange{Do: "PUT " + shares + "/share2", Body: `{"properties":{"shareQuota":5121}}`, Status: 400, Code: "InvalidHeaderValue"},
		exchange{Do: "PUT " + shares + "/share--2", Body: `{}`, Status: 400, Code: "InvalidResourceName"},
		exchange{Do: "PUT " + shares + "/s", Body: `{}`, Status: 400, Code: "OutOfRangeInput"},
		exchange{Do: "PUT " + shares + "/nfs", Body: `{"properties":{"enabledProtocols":"NFS"}}`, Status: 400,
			Code: "ProtocolNotSupported"},
		exchange{Do: "GET " + shares + "/none", Status: 404, Code: "ShareNotFound"},
	)
}

func TestLargeAndPremiumShares(t *testing.T) {
	large := withAccount(t,
		`{"location":"eastus","kind":"StorageV2","sku":{"name":"Standard_LRS"},"properties":{"largeFileSharesState":"Enabled"}}`)
	large.Run(
		exchange{Do: "PUT " + shares + "/big", Body: `{}`, Status: 201},
		exchange{Do: "GET " + shares + "/big", Has: has{"properties.shareQuota": 102400}},
	)
	premium := withAccount(t, `{"location":"eastus","kind":"FileStorage","sku":{"name":"Premium_LRS"}}`)
	premium.Run(
		exchange{Do: "PUT " + shares + "/nfs", Body: `{"properties":{"enabledProtocols":"NFS","shareQuota":100}}`, Status: 201},
		exchange{Do: "GET " + shares + "/nfs", Has: has{"properties.accessTier": "Premium", "properties.enabledProtocols": "NFS"}},
	)
	blocks := withAccount(t, `{"location":"eastus","kind":"BlockBlobStorage","sku":{"name":"Premium_LRS"}}`)
	blocks.Run(exchange{Do: "PUT " + shares + "/none", Body: `{}`, Status: 409, Code: "FeatureNotSupportedForAccount"})
}

func TestADeletedShareCanBeRestoredForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := withAccount(t, standard)
		const deleted = "GET " + shares + "?$expand=deleted"
		a.Run(
			exchange{Do: "PUT " + shares + "/share1", Body: `{"properties":{"shareQuota":7}}`, Status: 201},
			exchange{Do: "DELETE " + shares + "/share1"},
			exchange{Do: "GET " + shares, Has: has{"value.#": 0}},
		)
		got := a.Run(exchange{Do: deleted,
			Has: has{"value.#": 1, "value.0.properties.deleted": true, "value.0.properties.remainingRetentionDays": 7}})
		restore := func(status int, code string) {
			a.Run(exchange{Do: "POST " + shares + "/share1/restore", Status: status, Code: code,
				Body: `{"deletedShareName":"share1","deletedShareVersion":"` +
					behaviourtest.At(got, "value.0.properties.version").(string) + `"}`})
		}
		restore(200, "")
		a.Run(
			exchange{Do: "GET " + shares + "/share1", Has: has{"properties.shareQuota": 7, "properties.deleted": nil}},
			exchange{Do: deleted, Has: has{"value.#": 1}},
			exchange{Do: "DELETE " + shares + "/share1"},
		)
		got = a.Run(exchange{Do: deleted, Has: has{"value.#": 1}})
		<-time.After(8 * 24 * time.Hour)
		a.Run(exchange{Do: deleted, Has: has{"value.#": 0}})
		restore(404, "ShareNotFound")
	})
}

func TestContainers(t *testing.T) {
	a := withAccount(t, standard)
	a.Run(
		exchange{Do: "PUT " + blobs + "/con1", Body: `{"properties":{"metadata":{"a":"b"}}}`, Status: 201,
			Header: map[string]string{"ETag": "*"},
			Has:    has{"properties.publicAccess": "None", "properties.deleted": false, "properties.leaseState": nil, "etag": nil}},
		exchange{Do: "GET " + blobs + "/con1",
			Has: has{"properties.metadata.a": "b", "properties.legalHold.hasLegalHold": false, "properties.leaseState": "Available"}},
		exchange{Do: "GET " + blobs,
			Has: has{"value.0.properties.immutableStorageWithVersioning.enabled": false, "value.0.properties.legalHold": nil}},
		exchange{Do: "PUT " + blobs + "/con2", Body: `{"properties":{"publicAccess":"Blob"}}`, Status: 409,
			Code: "PublicAccessNotPermitted"},
		exchange{Do: "PUT " + blobs + "/C", Body: `{}`, Status: 400, Code: "OutOfRangeInput"},
		exchange{Do: "PUT " + blobs + "/Big", Body: `{}`, Status: 400, Code: "InvalidResourceName"},
		exchange{Do: "GET " + blobs + "/none", Status: 404, Code: "ContainerNotFound"},
		exchange{Do: "DELETE " + blobs + "/con1"},
		exchange{Do: "DELETE " + blobs + "/con1", Status: 204},
	)
}
