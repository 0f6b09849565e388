package probe

import (
	"context"
	"net/http"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
)

// account is the fixture with a storage account.
const account = "account"

func storageProbes() []Probe {
	const area = "storage"
	needs := []string{account}
	shares := []string{shareType + "/read", shareType + "/write", shareType + "/delete"}
	return []Probe{
		{
			Name: "share-exists", Area: area, Minutes: 1, Cents: 1, Needs: needs, Rights: shares, Run: shareExists,
			Tries: "PUT a file share that exists, with another size; want ShareAlreadyExists, or that it is changed",
		},
		{
			Name: "share-snapshots", Area: area, Minutes: 1, Cents: 1, Needs: needs, Rights: shares, Run: shareSnapshots,
			Tries: "list the snapshots of a share by Azure Resource Manager; want that it is there, and see whether with its metadata",
		},
		{
			Name: "account-written-back", Area: area, Minutes: 1, Needs: needs, Run: accountWrittenBack,
			Tries: "PUT a storage account with the body of its GET; want success",
		},
		{
			Name: "account-versions", Area: area, Minutes: 1, Needs: needs, Run: accountVersions,
			Tries: "read a storage account in the API version 2023-05-01; want that it shows networkAcls.ipv6Rules, which came later",
		},
	}
}

const shareType = "Microsoft.Storage/storageAccounts/fileServices/shares"

// accountID is a storage account of a probe.
func accountID(b *bench.Bench, suffix string) azure.ID {
	return b.GroupID().Resource(accountType, b.Unique(suffix))
}

// sharedAccount is the account of the fixture.
func sharedAccount(b *bench.Bench) azure.ID {
	return b.GroupID().Resource(accountType, "kazv"+b.Random+"shared")
}

func storageAccount(b *bench.Bench) object {
	a := sku("Standard_LRS", at(b, object{"minimumTlsVersion": "TLS1_2", "allowBlobPublicAccess": false}))
	a["kind"] = "StorageV2"
	return a
}

func makeAccount(ctx context.Context, b *bench.Bench) {
	b.Make(ctx, sharedAccount(b), storageAccount(b))
}

func shareID(b *bench.Bench, name string) azure.ID {
	return sharedAccount(b).Child("fileServices", "default").Child("shares", name)
}

func quota(gib int) object { return object{"properties": object{"shareQuota": gib}} }

func shareExists(ctx context.Context, b *bench.Bench) {
	id := shareID(b, "exists")
	b.Make(ctx, id, quota(1))
	a := b.Try(ctx, azure.Put, id, quota(2))
	size := bench.Text(b.Get(ctx, id), "properties.shareQuota")
	refused := a.Refused(http.StatusConflict, "ShareAlreadyExists") && size == "1"
	b.Agree(refused || !a.Failed && size == "2", "PUT of a share of 1 GiB with 2 GiB: %s; it has %s GiB then", a, size)
}

func shareSnapshots(ctx context.Context, b *bench.Bench) {
	id := shareID(b, "snapshots")
	b.Make(ctx, id, quota(1))
	b.Make(ctx, id, object{"properties": object{"metadata": object{"kaz": "snapshot"}}}, bench.Parameter("$expand", "snapshots"))
	found := 0
	for _, d := range b.Expanded(ctx, id.Parent(), shareType, "snapshots") {
		if bench.Text(d, "properties.snapshotTime") == "" {
			continue
		}
		found++
		shown := bench.Has(d, "properties.metadata.kaz")
		b.See("the list shows the metadata of a snapshot: %t", shown)
	}
	b.Agree(found == 1, "the list has %d of 1 snapshots", found)
}

func accountWrittenBack(ctx context.Context, b *bench.Bench) { writtenBack(ctx, b, sharedAccount(b)) }

func accountVersions(ctx context.Context, b *bench.Bench) {
	a := b.Try(ctx, azure.Get, sharedAccount(b), nil, bench.Parameter("api-version", "2023-05-01"))
	shown := bench.Has(a.Body, "properties.networkAcls.ipv6Rules")
	b.Agree(!a.Failed && shown, "GET in 2023-05-01: %s; it shows networkAcls.ipv6Rules: %t", a, shown)
}
