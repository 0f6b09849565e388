package contract

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/storage/armstorage/v2"

	"kaz/internal/localazure/core"
)

func TestStorageLives(t *testing.T) {
	lives(t, []lifecase{{"file share", shares().run}, {"blob container", containers().run}})
}

// account makes a storage account with the name "account1".
func account(a *local) {
	a.Helper()
	_, err := ended(clients(a, armstorage.NewClientFactory).NewAccountsClient().BeginCreate(a.Context(), group, "account1",
		armstorage.AccountCreateParameters{
			Location: new(region), Kind: new(armstorage.KindStorageV2), SKU: &armstorage.SKU{Name: new(armstorage.SKUNameStandardLRS)},
			Properties: &armstorage.AccountPropertiesCreateParameters{EnableHTTPSTrafficOnly: new(true),
				MinimumTLSVersion: new(armstorage.MinimumTLSVersionTLS12)}}, nil))
	a.must(err)
}

func TestStorageAccounts(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		c := clients(a, armstorage.NewClientFactory).NewAccountsClient()
		free, err := c.CheckNameAvailability(a.Context(),
			armstorage.AccountCheckNameAvailabilityParameters{Name: new("account1"), Type: new("Microsoft.Storage/storageAccounts")}, nil)
		a.must(err)
		has(a, "name is free", free.NameAvailable, true)
		account(a)
		got, err := c.GetProperties(a.Context(), group, "account1", nil)
		a.must(err)
		has(a, "state", got.Properties.ProvisioningState, armstorage.ProvisioningStateSucceeded)
		keys, err := c.ListKeys(a.Context(), group, "account1", nil)
		a.must(err)
		if len(keys.Keys) != 2 {
			a.Errorf("%d keys, want 2", len(keys.Keys))
		}
		updated, err := c.Update(a.Context(), group, "account1", armstorage.AccountUpdateParameters{Tags: tags("patch")}, nil)
		a.must(err)
		if !tagged(updated.Tags, "patch") {
			a.Errorf("tags after the patch: %v", updated.Tags)
		}
		all, err := every(c.NewListByResourceGroupPager(group, nil),
			func(p armstorage.AccountsClientListByResourceGroupResponse) []*armstorage.Account { return p.Value })
		a.must(err)
		if len(all) != 1 {
			a.Errorf("%d accounts, want 1", len(all))
		}
		_, err = c.Delete(a.Context(), group, "account1", nil)
		a.must(err)
		_, err = c.GetProperties(a.Context(), group, "account1", nil)
		a.refused(err, http.StatusNotFound, "ResourceNotFound")
	})
}

// Shares and containers in lists are items of a type of their own.
func shares() life[armstorage.FileShare] {
	c := func(a *local) *armstorage.FileSharesClient {
		return clients(a, armstorage.NewClientFactory).NewFileSharesClient()
	}
	return life[armstorage.FileShare]{
		given: account,
		names: [2]string{"one", "two"},
		want: func(string) armstorage.FileShare {
			return armstorage.FileShare{FileShareProperties: &armstorage.FileShareProperties{ShareQuota: new(int32(10))}}
		},
		put: func(a *local, name string, r armstorage.FileShare) (armstorage.FileShare, error) {
			got, err := c(a).Create(a.Context(), group, "account1", name,
				armstorage.FileShare{FileShareProperties: &armstorage.FileShareProperties{ShareQuota: r.FileShareProperties.ShareQuota}},
				nil)
			return got.FileShare, err
		},
		get: func(a *local, name string) (armstorage.FileShare, error) {
			got, err := c(a).Get(a.Context(), group, "account1", name, nil)
			return got.FileShare, err
		},
		list: func(a *local) ([]*armstorage.FileShare, error) {
			items, err := every(c(a).NewListPager(group, "account1", nil),
				func(p armstorage.FileSharesClientListResponse) []*armstorage.FileShareItem { return p.Value })
			all := make([]*armstorage.FileShare, len(items))
			for i, item := range items {
				all[i] = &armstorage.FileShare{ID: item.ID, FileShareProperties: item.Properties}
			}
			return all, err
		},
		remove: func(a *local, name string) error {
			_, err := c(a).Delete(a.Context(), group, "account1", name, nil)
			return err
		},
		id:      func(r *armstorage.FileShare) *string { return r.ID },
		change:  func(r *armstorage.FileShare) { r.FileShareProperties.ShareQuota = new(int32(20)) },
		changed: func(r *armstorage.FileShare) bool { return *r.FileShareProperties.ShareQuota == 20 },
		absent:  "ShareNotFound",
	}
}

func containers() life[armstorage.BlobContainer] {
	c := func(a *local) *armstorage.BlobContainersClient {
		return clients(a, armstorage.NewClientFactory).NewBlobContainersClient()
	}
	return life[armstorage.BlobContainer]{
		given: account,
		names: [2]string{"one", "two"},
		want: func(string) armstorage.BlobContainer {
			return armstorage.BlobContainer{ContainerProperties: &armstorage.ContainerProperties{}}
		},
		put: func(a *local, name string, r armstorage.BlobContainer) (armstorage.BlobContainer, error) {
			got, err := c(a).Create(a.Context(), group, "account1", name,
				armstorage.BlobContainer{ContainerProperties: &armstorage.ContainerProperties{Metadata: r.ContainerProperties.Metadata}},
				nil)
			return got.BlobContainer, err
		},
		get: func(a *local, name string) (armstorage.BlobContainer, error) {
			got, err := c(a).Get(a.Context(), group, "account1", name, nil)
			return got.BlobContainer, err
		},
		list: func(a *local) ([]*armstorage.BlobContainer, error) {
			items, err := every(c(a).NewListPager(group, "account1", nil),
				func(p armstorage.BlobContainersClientListResponse) []*armstorage.ListContainerItem { return p.Value })
			all := make([]*armstorage.BlobContainer, len(items))
			for i, item := range items {
				all[i] = &armstorage.BlobContainer{ID: item.ID, ContainerProperties: item.Properties}
			}
			return all, err
		},
		remove: func(a *local, name string) error {
			_, err := c(a).Delete(a.Context(), group, "account1", name, nil)
			return err
		},
		id:      func(r *armstorage.BlobContainer) *string { return r.ID },
		change:  func(r *armstorage.BlobContainer) { r.ContainerProperties.Metadata = tags("judge") },
		changed: func(r *armstorage.BlobContainer) bool { return tagged(r.ContainerProperties.Metadata, "judge") },
		absent:  "ContainerNotFound",
	}
}
