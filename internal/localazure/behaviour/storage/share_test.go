package storage_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/behaviour/storage"
)

func withSKU(t *testing.T, sku string) *behaviourtest.Azure {
	t.Helper()
	return withAccount(t, fmt.Sprintf(`{"location":"eastus","kind":"FileStorage","sku":{"name":%q}}`, sku))
}

// Azure documents the limits of a share by the billing model, which the SKU of the account selects.
func TestQuotaAndPerformanceBySKU(t *testing.T) {
	const iops, bandwidth = "properties.provisionedIops", "properties.provisionedBandwidthMibps"
	cases := map[string]struct {
		sku, body string
		code      string
		has       has
	}{
		"SSD v2 fills in what fits the quota": {"PremiumV2_LRS", `{"shareQuota":100}`, "", has{iops: 3100, bandwidth: 110}},
		"SSD v2 at its least":                 {"PremiumV2_LRS", `{"shareQuota":32}`, "", has{iops: 3032, bandwidth: 104}},
		"SSD v2 below its least":              {"PremiumV2_LRS", `{"shareQuota":31}`, "FileShareProvisionedStorageInvalid", nil},
		"SSD v2 above its most":               {"PremiumV2_LRS", `{"shareQuota":262145}`, "FileShareProvisionedStorageInvalid", nil},
		"SSD v2 keeps what is given":          {"PremiumV2_ZRS", `{"shareQuota":64,"provisionedIops":9999}`, "", has{iops: 9999, bandwidth: 107}},
		"SSD v2 with too few IOPS":            {"PremiumV2_LRS", `{"shareQuota":64,"provisionedIops":100}`, "FileShareProvisionedIopsInvalid", nil},
		"SSD v2 with too much bandwidth": {"PremiumV2_LRS", `{"shareQuota":64,"provisionedBandwidthMibps":10341}`,
			"FileShareProvisionedBandwidthInvalid", nil},
		"HDD v2":                        {"StandardV2_LRS", `{"shareQuota":1000}`, "", has{iops: 1200, bandwidth: 80}},
		"HDD v2 has no NFS":             {"StandardV2_LRS", `{"shareQuota":64,"enabledProtocols":"NFS"}`, "ProtocolNotSupported", nil},
		"SSD v1 below its least":        {"Premium_LRS", `{"shareQuota":99}`, "InvalidHeaderValue", nil},
		"SSD v1 has no IOPS of its own": {"Premium_LRS", `{"shareQuota":100,"provisionedIops":5000}`, "", has{iops: nil}},
		"SSD has one tier":              {"Premium_LRS", `{"shareQuota":100,"accessTier":"Hot"}`, "InvalidRequestPropertyValue", nil},
		"squash of SMB":                 {"Premium_LRS", `{"shareQuota":100,"rootSquash":"RootSquash"}`, "InvalidRequestPropertyValue", nil},
		"squash of NFS": {"Premium_LRS", `{"shareQuota":100,"enabledProtocols":"nfs"}`, "",
			has{"properties.enabledProtocols": "NFS", "properties.rootSquash": "NoRootSquash"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := withSKU(t, c.sku)
			if c.code != "" {
				a.Run(exchange{Do: "PUT " + shares + "/one", Body: `{"properties":` + c.body + `}`, Status: 400, Code: c.code})
				return
			}
			a.Run(
				exchange{Do: "PUT " + shares + "/one", Body: `{"properties":` + c.body + `}`, Status: 201},
				exchange{Do: "GET " + shares + "/one", Has: c.has},
			)
		})
	}
}

func TestSharesOfAnAccountHaveLimitsTogether(t *testing.T) {
	t.Run("shares", func(t *testing.T) {
		a := withSKU(t, "StandardV2_LRS")
		for i := range 50 {
			a.Run(exchange{Do: fmt.Sprintf("PUT %s/share%d", shares, i), Status: 201, Body: `{"properties":{"shareQuota":32,"provisionedIops":500,
				"provisionedBandwidthMibps":60}}`})
		}
		a.Run(
			exchange{Do: "PUT " + shares + "/another", Body: `{"properties":{"shareQuota":32}}`, Status: 409,
				Code: "TotalSharesCountExceedsAccountLimit"},
			exchange{Do: "PATCH " + shares + "/share1", Body: `{"properties":{"shareQuota":33}}`},
		)
	})
	t.Run("capacity, with deleted shares", func(t *testing.T) {
		const full = "TotalSharesProvisionedCapacityExceedsAccountLimit"
		a := withSKU(t, "Premium_LRS")
		a.Run(
			exchange{Do: "PUT " + shares + "/one", Body: `{"properties":{"shareQuota":100000}}`, Status: 201},
			exchange{Do: "PUT " + shares + "/two", Body: `{"properties":{"shareQuota":2401}}`, Status: 409, Code: full},
			exchange{Do: "PUT " + shares + "/two", Body: `{"properties":{"shareQuota":2400}}`, Status: 201},
			exchange{Do: "PATCH " + shares + "/two", Body: `{"properties":{"shareQuota":2401}}`, Status: 409, Code: full},
			exchange{Do: "DELETE " + shares + "/one"},
			exchange{Do: "PUT " + shares + "/three", Body: `{"properties":{"shareQuota":100}}`, Status: 409, Code: full},
		)
	})
	t.Run("IOPS", func(t *testing.T) {
		withSKU(t, "PremiumV2_LRS").Run(
			exchange{Do: "PUT " + shares + "/one", Body: `{"properties":{"shareQuota":32,"provisionedIops":100000}}`, Status: 201},
			exchange{Do: "PUT " + shares + "/two", Body: `{"properties":{"shareQuota":32,"provisionedIops":3000}}`, Status: 409,
				Code: "TotalSharesProvisionedIopsExceedsAccountLimit"},
		)
	})
}

func TestTheProtocolOfAShareStays(t *testing.T) {
	withSKU(t, "Premium_LRS").Run(
		exchange{Do: "PUT " + shares + "/one", Body: `{"properties":{"shareQuota":100,"enabledProtocols":"NFS","rootSquash":"AllSquash"}}`,
			Status: 201},
		exchange{Do: "PATCH " + shares + "/one", Body: `{"properties":{"shareQuota":200}}`},
		exchange{Do: "GET " + shares + "/one", Has: has{"properties.enabledProtocols": "NFS", "properties.rootSquash": "AllSquash"}},
		exchange{Do: "PATCH " + shares + "/one", Body: `{"properties":{"enabledProtocols":"SMB"}}`, Status: 400,
			Code: "InvalidRequestPropertyValue"},
	)
}

// A request names a snapshot by its time in a header.
func TestASnapshotIsReadAndDeletedByItsTime(t *testing.T) {
	a := withAccount(t, standard)
	one := shares + "/one"
	a.Run(exchange{Do: "PUT " + one, Body: `{"properties":{"shareQuota":5,"metadata":{"of":"share"}}}`, Status: 201})
	take := func(body string) string {
		got := a.Run(exchange{Do: "PUT " + one + "?$expand=snapshots", Body: body})
		at, _ := behaviourtest.At(got, "properties.snapshotTime").(string)
		return at
	}
	first, second := take(`{"properties":{"metadata":{"initiator":"a"}}}`), take(`{}`)
	if first == "" || first == second {
		t.Fatalf("times of snapshots %q and %q: want two", first, second)
	}
	read := func(at string, status int, code string) behaviour.Object {
		got := a.Request("GET", one, "", "x-ms-snapshot", at)
		if got.Status != status || got.Code() != code {
			t.Errorf("GET of snapshot %s: %d %s, want %d %s", at, got.Status, got.Code(), status, code)
		}
		return got.Body
	}
	if got := read(first, 200, ""); behaviour.Text(got, "properties.metadata.initiator") != "a" ||
		behaviour.Text(got, "properties.snapshotTime") != first {
		t.Errorf("first snapshot %v", got)
	}
	if got := read(second, 200, ""); behaviour.Text(got, "properties.metadata.of") != "share" {
		t.Errorf("second snapshot %v", got)
	}
	read("2001-01-01T00:00:00.0000000Z", 404, "ShareSnapshotNotFound")
	for _, want := range []struct {
		status int
		code   string
	}{{200, ""}, {404, "ShareSnapshotNotFound"}} {
		if got := a.Request("DELETE", one, "", "x-ms-snapshot", first); got.Status != want.status || got.Code() != want.code {
			t.Errorf("DELETE of the snapshot: %d %s, want %d %s", got.Status, got.Code(), want.status, want.code)
		}
	}
	read(first, 404, "ShareSnapshotNotFound")
	a.Run(exchange{Do: "GET " + shares + "?$expand=snapshots", Has: has{"value.#": 2, "value.1.properties.snapshotTime": second}})
}

func TestAShareHasTwoHundredSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := withAccount(t, standard)
		a.Run(exchange{Do: "PUT " + shares + "/one", Body: `{}`, Status: 201})
		for range 200 {
			a.Run(exchange{Do: "PUT " + shares + "/one?$expand=snapshots", Body: `{}`})
			<-time.After(time.Second)
		}
		a.Run(exchange{Do: "PUT " + shares + "/one?$expand=snapshots", Body: `{}`, Status: 409, Code: "SnapshotCountExceeded"})
	})
}

// The data plane has the content of a share by a name that no other share gets.
func TestContentOfAShare(t *testing.T) {
	a := withAccount(t, standard)
	content := func() (name string) {
		a.Look(func(w behaviour.World) {
			doc, _ := storage.Share(w, azure.ID(strings.Replace(account, "~", behaviourtest.Group, 1)), "one")
			name = storage.Content(doc)
		})
		return name
	}
	a.Run(exchange{Do: "PUT " + shares + "/one", Body: `{}`, Status: 201})
	first := content()
	a.Run(exchange{Do: "PUT " + shares + "/one", Body: `{"properties":{"shareQuota":7},"$content":"x"}`})
	if first == "" || content() != first {
		t.Errorf("content %q, after an update %q", first, content())
	}
	a.Run(exchange{Do: "DELETE " + shares + "/one"}, exchange{Do: "PUT " + shares + "/one", Body: `{}`, Status: 201})
	if content() == first {
		t.Errorf("a new share of the name has the content %q of the deleted one", first)
	}
}

func TestPagesOfShares(t *testing.T) {
	a := withAccount(t, standard)
	for i := range 5 {
		a.Run(exchange{Do: fmt.Sprintf("PUT %s/share%d", shares, i), Body: `{}`, Status: 201})
	}
	a.Run(exchange{Do: "PUT " + shares + "/share1?$expand=snapshots", Body: `{}`}, exchange{Do: "PUT " + shares + "/share1?$expand=snapshots", Body: `{}`})
	url, seen := shares+"?$maxpagesize=2&$expand=snapshots", 0
	for pages := 0; url != ""; pages++ {
		got := a.Run(exchange{Do: "GET " + url})
		seen += behaviourtest.At(got, "value.#").(int)
		url = behaviour.Text(got, "nextLink")
		if pages > 4 {
			t.Fatal("the list has no end")
		}
	}
	if seen != 7 {
		t.Errorf("%d shares and snapshots on all pages, want 7", seen)
	}
}

func TestSettingsOfTheFileService(t *testing.T) {
	files := account + "/fileServices/default"
	const multichannel = `{"properties":{"protocolSettings":{"smb":{"multichannel":{"enabled":true}}}}}`
	a := withSKU(t, "Premium_LRS")
	a.Run(
		exchange{Do: "PUT " + files, Body: multichannel},
		exchange{Do: "PUT " + files, Body: `{"properties":{"shareDeleteRetentionPolicy":{"enabled":false}}}`},
		exchange{Do: "GET " + files, Has: has{"properties.protocolSettings.smb.multichannel.enabled": true,
			"properties.shareDeleteRetentionPolicy.enabled": false}},
		exchange{Do: "PUT " + files, Body: `{"properties":{"shareDeleteRetentionPolicy":{"enabled":true,"days":366}}}`, Status: 400,
			Code: "InvalidRequestPropertyValue"},
	)
	withAccount(t, standard).Run(exchange{Do: "PUT " + files, Body: multichannel, Status: 409, Code: "FeatureNotSupportedForAccount"})
}

func TestNetworkRulesNeedSubnetsWithAServiceEndpoint(t *testing.T) {
	a := behaviourtest.Start(t, resources.Provider(), network.Provider(), storage.Provider())
	const net = "~/providers/Microsoft.Network/virtualNetworks/v"
	a.Run(exchange{Do: "PUT " + net, Status: 201, Body: `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},
		"subnets":[{"name":"plain","properties":{"addressPrefix":"10.0.0.0/24"}},
		{"name":"storage","properties":{"addressPrefix":"10.0.1.0/24","serviceEndpoints":[{"service":"Microsoft.Storage"}]}}]}}`})
	with := func(subnet string) string {
		id := strings.Replace(net, "~", behaviourtest.Group, 1) + "/subnets/" + subnet
		return `{"location":"eastus","kind":"FileStorage","sku":{"name":"Premium_LRS"},"properties":{"networkAcls":{"defaultAction":"Deny",
			"virtualNetworkRules":[{"id":"` + id + `"}]}}}`
	}
	a.Run(
		exchange{Do: "PUT " + account, Body: with("none"), Status: 400, Code: "NetworkAclsValidationFailure"},
		exchange{Do: "PUT " + account, Body: with("plain"), Status: 400, Code: "NetworkAclsValidationFailure"},
		exchange{Do: "PUT " + account, Body: with("storage"), Status: 202},
		exchange{Do: "GET " + account, Has: has{"properties.networkAcls.virtualNetworkRules.0.action": "Allow"}},
	)
}

func TestPropertiesOfAnAccountThatCannotChange(t *testing.T) {
	a := withAccount(t, `{"location":"eastus","kind":"StorageV2","sku":{"name":"Standard_LRS"},"properties":{"largeFileSharesState":"Enabled",
		"encryption":{"requireInfrastructureEncryption":true},"publicNetworkAccess":"disabled","allowSharedKeyAccess":"false",
		"azureFilesIdentityBasedAuthentication":{"directoryServiceOptions":"none","smbOAuthSettings":{"isSmbOAuthEnabled":"true"}}}}`)
	a.Run(
		exchange{Do: "GET " + account, Has: has{"properties.publicNetworkAccess": "Disabled", "properties.allowSharedKeyAccess": false,
			"properties.azureFilesIdentityBasedAuthentication.smbOAuthSettings.isSmbOAuthEnabled": true,
			"properties.azureFilesIdentityBasedAuthentication.directoryServiceOptions":            "None"}},
		exchange{Do: "PATCH " + account, Body: `{"properties":{"largeFileSharesState":"Disabled"}}`, Status: 400,
			Code: "AccountPropertyCannotBeUpdated"},
		exchange{Do: "PATCH " + account, Body: `{"properties":{"encryption":{"requireInfrastructureEncryption":false}}}`, Status: 400,
			Code: "AccountPropertyCannotBeUpdated"},
	)
}

// Shares of provisioned v2 go beyond their IOPS for a while, and their values go down once a day.
func TestBurstAndDowngrade(t *testing.T) {
	a := withSKU(t, "PremiumV2_LRS")
	a.Run(
		exchange{Do: "PUT " + shares + "/one", Body: `{"properties":{"shareQuota":100,"provisionedIops":5000}}`, Status: 201},
		exchange{Do: "GET " + shares + "/one", Has: has{"properties.includedBurstIops": 15000.0, "properties.maxBurstCreditsForIops": 36000000.0}},
		exchange{Do: "PUT " + shares + "/small", Body: `{"properties":{"shareQuota":32,"provisionedIops":3000}}`, Status: 201},
		exchange{Do: "GET " + shares + "/small", Has: has{"properties.includedBurstIops": 10000.0}},
	)
	service, _, _ := strings.Cut(shares, "/shares")
	usage := a.Request("GET", service+"/usages", "")
	all := behaviour.Objects(usage.Body, "value")
	if len(all) != 1 {
		t.Fatalf("usages: %d %v", usage.Status, usage.Body)
	}
	for path, want := range map[string]int{"liveShares.fileShareCount": 2, "liveShares.provisionedIOPS": 8000, "softDeletedShares.fileShareCount": 0} {
		if got, _ := behaviour.Int(all[0], "properties.storageAccountUsage."+path); got != want {
			t.Errorf("%s is %d, want %d", path, got, want)
		}
	}
	next := func(field string) string {
		return behaviour.Text(a.Request("GET", shares+"/one", "").Body, "properties.nextAllowed"+field+"DowngradeTime")
	}
	iops, quota := next("ProvisionedIops"), next("Quota")
	if _, err := time.Parse(time.RFC1123, iops); err != nil || quota == "" {
		t.Errorf("the next decrease is at %q and %q", iops, quota)
	}
}
