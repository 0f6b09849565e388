package contract

import (
	"errors"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/storage/armstorage/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"kaz/localazure"
)

// rig is a local Azure as the tests of other programs start it, with the clients of this one.
type rig struct {
	*testing.T
	azure    *localazure.Azure
	groups   *armresources.ResourceGroupsClient
	networks *armnetwork.VirtualNetworksClient
	accounts *armstorage.AccountsClient
}

func newRig(t *testing.T, o localazure.Options) *rig {
	t.Helper()
	azure := o.Start(t)
	groups, err := armresources.NewResourceGroupsClient(azure.Subscription, azure.Credential(), azure.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	networks, err := armnetwork.NewVirtualNetworksClient(azure.Subscription, azure.Credential(), azure.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := armstorage.NewAccountsClient(azure.Subscription, azure.Credential(), azure.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t, azure, groups, networks, accounts}
	if _, err := groups.CreateOrUpdate(t.Context(), group, armresources.ResourceGroup{Location: new(region)}, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// network makes a virtual network and waits for it.
func (r *rig) network(name string) error {
	poller, err := r.networks.BeginCreateOrUpdate(r.Context(), group, name, armnetwork.VirtualNetwork{
		Location: new(region),
		Properties: &armnetwork.VirtualNetworkPropertiesFormat{
			AddressSpace: &armnetwork.AddressSpace{AddressPrefixes: to.SliceOfPtrs("10.0.0.0/16")},
		},
	}, nil)
	if err == nil {
		_, err = poller.PollUntilDone(r.Context(), nil)
	}
	return err
}

// TestHelper uses the helper for tests as its page says: clients of Resource Manager and of a data plane, and faults.
func TestHelper(t *testing.T) {
	t.Parallel()
	r := newRig(t, localazure.Options{Latency: "0.01"})
	if err := r.network("net"); err != nil {
		t.Fatal(err)
	}
	r.azure.Inject(localazure.Fault{Method: http.MethodPut, Type: "Microsoft.Network/virtualNetworks", Times: 1, Fault: "error",
		Status: http.StatusConflict, Code: "AnotherOperationInProgress"})
	var refused *azcore.ResponseError
	if err := r.network("other"); !errors.As(err, &refused) || refused.ErrorCode != "AnotherOperationInProgress" {
		t.Errorf("a write with a fault: %v", err)
	}
	if err := r.network("other"); err != nil {
		t.Errorf("the write after it: %v", err)
	}
	r.azure.Inject(localazure.Fault{Method: http.MethodPut, Fault: "error", Status: http.StatusBadRequest})
	r.azure.ClearFaults()
	if err := r.network("third"); err != nil {
		t.Errorf("a write after all faults are removed: %v", err)
	}
}

// account makes a storage account.
func (r *rig) account(name string, keys bool) {
	r.Helper()
	poller, err := r.accounts.BeginCreate(r.Context(), group, name, armstorage.AccountCreateParameters{
		Location: new(region), Kind: new(armstorage.KindStorageV2), SKU: &armstorage.SKU{Name: new(armstorage.SKUNameStandardLRS)},
		Properties: &armstorage.AccountPropertiesCreateParameters{AllowSharedKeyAccess: new(keys)},
	}, nil)
	if err == nil {
		_, err = poller.PollUntilDone(r.Context(), nil)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// blobs returns a client with a key of one account for the blobs of another.
func (r *rig) blobs(of, at string) *azblob.Client {
	r.Helper()
	keys, err := r.accounts.ListKeys(r.Context(), group, of, nil)
	if err != nil {
		r.Fatal(err)
	}
	key, err := azblob.NewSharedKeyCredential(at, *keys.Keys[1].Value)
	if err != nil {
		r.Fatal(err)
	}
	client, err := azblob.NewClientWithSharedKeyCredential("https://"+at+".blob.core.windows.net/", key,
		&azblob.ClientOptions{ClientOptions: policy.ClientOptions{Transport: r.azure.HTTPClient()}})
	if err != nil {
		r.Fatal(err)
	}
	return client
}

// TestHelperStorage reads and writes blobs with keys of accounts, at their public names.
func TestHelperStorage(t *testing.T) {
	t.Parallel()
	r := newRig(t, localazure.Options{})
	r.account("account1", true)
	r.account("account2", true)
	r.account("account3", false)
	own := r.blobs("account1", "account1")
	if _, err := own.CreateContainer(t.Context(), "box", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := own.UploadBuffer(t.Context(), "box", "a note/ü", []byte("hello"), nil); err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 5)
	if _, err := own.DownloadBuffer(t.Context(), "box", "a note/ü", content, nil); err != nil || string(content) != "hello" {
		t.Errorf("the blob: %q %v", content, err)
	}
	for client, want := range map[*azblob.Client]bloberror.Code{
		r.blobs("account2", "account1"): bloberror.AuthenticationFailed,
		r.blobs("account3", "account3"): "KeyBasedAuthenticationNotPermitted",
	} {
		if _, err := client.CreateContainer(t.Context(), "other", nil); !bloberror.HasCode(err, want) {
			t.Errorf("want %s: %v", want, err)
		}
	}
}

// TestHelperLogin logs in as a program does.
func TestHelperLogin(t *testing.T) {
	t.Parallel()
	r := newRig(t, localazure.Options{})
	login, err := azidentity.NewClientSecretCredential(r.azure.Tenant, r.azure.ClientID, r.azure.ClientSecret,
		&azidentity.ClientSecretCredentialOptions{ClientOptions: policy.ClientOptions{Transport: r.azure.HTTPClient()}})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := armresources.NewResourceGroupsClient(r.azure.Subscription, login, r.azure.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := groups.Get(t.Context(), group, nil); err != nil {
		t.Error(err)
	}
}
