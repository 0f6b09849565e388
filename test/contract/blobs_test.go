package contract

import (
	"bytes"
	"crypto/tls"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/core"
	plane "kaz/internal/localazure/plane/blob"
)

// blobs is a local Azure with its blobs, in the process.
type blobs struct {
	*testing.T
	azure   *core.Emulator
	client  *azblob.Client
	key     string
	options azblob.ClientOptions
}

// handled sends requests to a handler in the process.
type handled struct{ http.Handler }

// Do implements policy.Transporter.
func (h handled) Do(r *http.Request) (*http.Response, error) {
	reply := httptest.NewRecorder()
	sent := r.Clone(r.Context())
	sent.Host, sent.Header, sent.TLS = r.URL.Host, http.Header{}, &tls.ConnectionState{}
	for name, values := range r.Header { // the SDK spells names as HTTP/1 does not
		for _, value := range values {
			sent.Header.Add(name, value)
		}
	}
	if sent.Body == nil {
		sent.Body = http.NoBody
	}
	h.ServeHTTP(reply, sent)
	got := reply.Result()
	got.Request = r
	for name, values := range maps.Clone(got.Header) { // as a client reads them
		delete(got.Header, name)
		got.Header[http.CanonicalHeaderKey(name)] = values
	}
	return got, nil
}

// withBlobs runs a test with the blobs of the account "account1".
func withBlobs(t *testing.T, f func(a *blobs)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := build(t, core.Options{})
		a := &blobs{T: t, azure: e}
		a.must(e.Do(func(w behaviour.World) error {
			if err := w.Apply(behaviour.Itself(), azure.GroupID(subscription, group), behaviour.Object{"location": region}); err != nil {
				return err
			}
			account := id("Microsoft.Storage/storageAccounts", "account1")
			if err := w.Apply(behaviour.Itself(), account, behaviour.Object{"location": region, "kind": "StorageV2",
				"sku": behaviour.Object{"name": "Standard_LRS"}}); err != nil {
				return err
			}
			doc, _ := w.Get(account)
			a.key = storage.Keys(doc)[0]
			return nil
		}))
		service := &plane.Service{Azure: e, Authenticate: func(string, ...string) (*behaviour.Principal, error) {
			return &behaviour.Principal{ObjectID: "me"}, nil
		}}
		a.options = azblob.ClientOptions{ClientOptions: policy.ClientOptions{Transport: handled{service},
			Retry: policy.RetryOptions{MaxRetries: -1}}}
		var err error
		a.client, err = azblob.NewClient("https://account1.blob.core.windows.net", token("any"), &a.options)
		a.must(err)
		_, err = a.client.CreateContainer(a.Context(), "leased", nil)
		a.must(err)
		f(a)
	})
}

func (a *blobs) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// refused wants an error with a code.
func (a *blobs) refused(err error, code bloberror.Code) {
	a.Helper()
	if !bloberror.HasCode(err, code) {
		a.Errorf("got %v, want the code %s", err, code)
	}
}

func (a *blobs) upload(c *blockblob.Client, leaseID *string) error {
	body := streaming.NopCloser(bytes.NewReader([]byte("x")))
	_, err := c.Upload(a.Context(), body, &blockblob.UploadOptions{AccessConditions: conditions(leaseID)})
	return err
}

func conditions(leaseID *string) *blob.AccessConditions {
	return &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: leaseID}}
}

// The lease client of the official SDK leases a blob, renews, changes, breaks and releases the lease.
func TestLeasesOfBlobs(t *testing.T) {
	withBlobs(t, func(a *blobs) {
		file := a.client.ServiceClient().NewContainerClient("leased").NewBlockBlobClient("file")
		a.must(a.upload(file, nil))
		first, err := lease.NewBlobClient(file, nil)
		a.must(err)
		second, err := lease.NewBlobClient(file, nil)
		a.must(err)
		_, err = first.AcquireLease(a.Context(), 15, nil)
		a.must(err)
		_, err = second.AcquireLease(a.Context(), 15, nil)
		a.refused(err, bloberror.LeaseAlreadyPresent)
		a.refused(a.upload(file, nil), bloberror.LeaseIDMissing)
		a.refused(a.upload(file, second.LeaseID()), bloberror.LeaseIDMismatchWithBlobOperation)
		a.must(a.upload(file, first.LeaseID()))
		got, err := file.GetProperties(a.Context(), nil)
		a.must(err)
		if *got.LeaseState != lease.StateTypeLeased || *got.LeaseStatus != lease.StatusTypeLocked ||
			*got.LeaseDuration != lease.DurationTypeFixed {
			a.Errorf("lease of the blob: %s %s %s", *got.LeaseState, *got.LeaseStatus, *got.LeaseDuration)
		}
		<-time.After(15 * time.Second)
		a.refused(a.upload(file, first.LeaseID()), bloberror.LeaseLost)
		_, err = second.AcquireLease(a.Context(), -1, nil)
		a.must(err)
		_, err = first.RenewLease(a.Context(), nil)
		a.refused(err, bloberror.LeaseIDMismatchWithLeaseOperation)
		changed, err := second.ChangeLease(a.Context(), "00000000-0000-0000-0000-00000000000c", nil)
		a.must(err)
		broken, err := second.BreakLease(a.Context(), &lease.BlobBreakOptions{BreakPeriod: new(int32(30))})
		a.must(err)
		if *changed.LeaseID != *second.LeaseID() || *broken.LeaseTime != 30 {
			a.Errorf("changed to %s, broken in %d seconds", *changed.LeaseID, *broken.LeaseTime)
		}
		_, err = second.RenewLease(a.Context(), nil)
		a.refused(err, bloberror.LeaseIsBrokenAndCannotBeRenewed)
		_, err = second.AcquireLease(a.Context(), 15, nil)
		a.refused(err, bloberror.LeaseIsBreakingAndCannotBeAcquired)
		_, err = second.ReleaseLease(a.Context(), nil)
		a.must(err)
		_, err = file.Delete(a.Context(), nil)
		a.must(err)
	})
}

// The lease client of the official SDK leases a container, which no other client deletes.
func TestLeasesOfContainers(t *testing.T) {
	withBlobs(t, func(a *blobs) {
		all := a.client.ServiceClient().NewContainerClient("leased")
		holder, err := lease.NewContainerClient(all, nil)
		a.must(err)
		_, err = holder.AcquireLease(a.Context(), 60, nil)
		a.must(err)
		got, err := all.GetProperties(a.Context(), nil)
		a.must(err)
		if *got.LeaseState != lease.StateTypeLeased || *got.LeaseDuration != lease.DurationTypeFixed {
			a.Errorf("lease of the container: %s %s", *got.LeaseState, *got.LeaseDuration)
		}
		_, err = all.Delete(a.Context(), nil)
		a.refused(err, bloberror.LeaseIDMissing)
		broken, err := holder.BreakLease(a.Context(), nil)
		a.must(err)
		if *broken.LeaseTime != 60 {
			a.Errorf("broken in %d seconds, want 60", *broken.LeaseTime)
		}
		_, err = all.Delete(a.Context(), &container.DeleteOptions{AccessConditions: &container.AccessConditions{
			LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: holder.LeaseID()}}})
		a.must(err)
		_, err = holder.AcquireLease(a.Context(), 60, nil)
		a.refused(err, bloberror.ContainerNotFound)
	})
}

// A signature that the official SDK makes with the key of the account allows to read the blob that it is for, and no other.
func TestSignaturesOfBlobs(t *testing.T) {
	withBlobs(t, func(a *blobs) {
		a.must(a.upload(a.client.ServiceClient().NewContainerClient("leased").NewBlockBlobClient("file"), nil))
		key, err := azblob.NewSharedKeyCredential("account1", a.key)
		a.must(err)
		signed, err := sas.BlobSignatureValues{Protocol: sas.ProtocolHTTPS, ExpiryTime: time.Now().UTC().Add(time.Hour),
			ContainerName: "leased", BlobName: "file", Permissions: (&sas.BlobPermissions{Read: true}).String()}.SignWithSharedKey(key)
		a.must(err)
		c, err := azblob.NewClientWithNoCredential("https://account1.blob.core.windows.net?"+signed.Encode(), &a.options)
		a.must(err)
		got, err := c.DownloadStream(a.Context(), "leased", "file", nil)
		a.must(err)
		text, err := io.ReadAll(got.Body)
		a.must(err)
		a.must(got.Body.Close())
		if string(text) != "x" {
			a.Errorf("content %q", text)
		}
		_, err = c.DownloadStream(a.Context(), "leased", "other", nil)
		a.refused(err, bloberror.AuthenticationFailed)
		_, err = c.DeleteBlob(a.Context(), "leased", "file", nil)
		a.refused(err, bloberror.AuthorizationPermissionMismatch)
	})
}
