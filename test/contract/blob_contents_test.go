package contract

import (
	"bytes"
	"encoding/base64"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"kaz/internal/localazure/behaviour"
)

// The tests here are a part of what test/storage checks with the SDK's own tests, for every change.

// all is the container of the tests.
func (a *blobs) all() *container.Client { return a.client.ServiceClient().NewContainerClient("leased") }

// content reads a blob, or a range of it.
func (a *blobs) content(c *blob.Client, options *blob.DownloadStreamOptions) string {
	a.Helper()
	got, err := c.DownloadStream(a.Context(), options)
	a.must(err)
	text, err := io.ReadAll(got.Body)
	a.must(err)
	a.must(got.Body.Close())
	return string(text)
}

func (a *blobs) same(what, got, want string) {
	a.Helper()
	if got != want {
		a.Errorf("%s: %q, want %q", what, got, want)
	}
}

func bodyOf(text string) io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader(text)) }

// A client uploads a content in blocks and downloads it in ranges, as it does with what is large. Blocks that a list leaves out are gone.
func TestBlocksAndRanges(t *testing.T) {
	withBlobs(t, func(a *blobs) {
		large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		_, err := a.client.UploadBuffer(a.Context(), "leased", "large", large, &azblob.UploadBufferOptions{BlockSize: 100_000})
		a.must(err)
		got := make([]byte, len(large))
		_, err = a.client.DownloadBuffer(a.Context(), "leased", "large", got, &azblob.DownloadBufferOptions{BlockSize: 70_001})
		a.must(err)
		if !bytes.Equal(got, large) {
			a.Error("the content of the large blob is another one")
		}

		c := a.all().NewBlockBlobClient("small")
		id := func(n string) string { return base64.StdEncoding.EncodeToString([]byte(n)) }
		for _, part := range []string{"a", "b", "c"} {
			_, err := c.StageBlock(a.Context(), id(part), bodyOf(part+part), nil)
			a.must(err)
		}
		_, err = c.GetProperties(a.Context(), nil)
		a.refused(err, bloberror.BlobNotFound)
		_, err = c.StageBlock(a.Context(), id("longer"), bodyOf("x"), nil)
		a.refused(err, bloberror.InvalidBlobOrBlock)
		_, err = c.CommitBlockList(a.Context(), []string{id("a"), id("z")}, nil)
		a.refused(err, bloberror.InvalidBlockList)
		_, err = c.CommitBlockList(a.Context(), []string{id("c"), id("a"), id("c")}, nil)
		a.must(err)
		a.same("blocks", a.content(c.BlobClient(), nil), "ccaacc")
		a.same("range", a.content(c.BlobClient(), &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 1, Count: 3}}), "caa")
		a.same("range beyond the end", a.content(c.BlobClient(), &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 4, Count: 9}}), "cc")
		_, err = c.DownloadStream(a.Context(), &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 6}})
		a.refused(err, bloberror.InvalidRange)
		list, err := c.GetBlockList(a.Context(), blockblob.BlockListTypeAll, nil)
		a.must(err)
		if len(list.CommittedBlocks) != 3 || len(list.UncommittedBlocks) != 0 {
			a.Errorf("%d and %d blocks", len(list.CommittedBlocks), len(list.UncommittedBlocks))
		}
	})
}

// Blocks are appended to a blob at the place that the client expects, until the blob is sealed.
func TestAppendedBlobs(t *testing.T) {
	withBlobs(t, func(a *blobs) {
		c := a.all().NewAppendBlobClient("log")
		_, err := c.Create(a.Context(), nil)
		a.must(err)
		for _, line := range []string{"one\n", "two\n"} {
			_, err := c.AppendBlock(a.Context(), bodyOf(line), nil)
			a.must(err)
		}
		_, err = c.AppendBlock(a.Context(), bodyOf("again"), &appendblob.AppendBlockOptions{
			AppendPositionAccessConditions: &appendblob.AppendPositionAccessConditions{AppendPosition: new(int64(4))}})
		a.refused(err, bloberror.AppendPositionConditionNotMet)
		_, err = c.Seal(a.Context(), nil)
		a.must(err)
		_, err = c.AppendBlock(a.Context(), bodyOf("late"), nil)
		a.refused(err, "BlobIsSealed")
		a.same("log", a.content(c.BlobClient(), nil), "one\ntwo\n")
		_, err = a.all().NewBlockBlobClient("log").StageBlock(a.Context(), "YQ==", bodyOf("x"), nil)
		a.refused(err, bloberror.InvalidBlobType)
	})
}

// A copy has the content, the properties and the metadata of its source. A snapshot stays as it is when its blob changes.
func TestCopiesAndSnapshots(t *testing.T) {
	withBlobs(t, func(a *blobs) {
		source, copied := a.all().NewBlockBlobClient("source"), a.all().NewBlockBlobClient("copy")
		_, err := source.Upload(a.Context(), bodyOf("first"), &blockblob.UploadOptions{Metadata: map[string]*string{"Color": new("red")},
			HTTPHeaders: &blob.HTTPHeaders{BlobContentType: new("text/plain")}, Tags: map[string]string{"kind": "test"}})
		a.must(err)
		_, err = copied.StartCopyFromURL(a.Context(), source.URL(), nil)
		a.must(err)
		got, err := copied.GetProperties(a.Context(), nil)
		a.must(err)
		if *got.ContentType != "text/plain" || *got.Metadata["Color"] != "red" || *got.CopyStatus != blob.CopyStatusTypeSuccess {
			a.Errorf("copy: %s, %v, %s", *got.ContentType, got.Metadata, *got.CopyStatus)
		}
		_, err = copied.StartCopyFromURL(a.Context(), "https://elsewhere.example/a", nil)
		a.refused(err, bloberror.CannotVerifyCopySource)

		taken, err := source.CreateSnapshot(a.Context(), nil)
		a.must(err)
		_, err = source.Upload(a.Context(), bodyOf("second"), nil)
		a.must(err)
		old, err := source.WithSnapshot(*taken.Snapshot)
		a.must(err)
		a.same("snapshot", a.content(old.BlobClient(), nil), "first")
		a.same("blob", a.content(source.BlobClient(), nil), "second")
		_, err = source.Delete(a.Context(), nil)
		a.refused(err, bloberror.SnapshotsPresent)
		a.same("list", a.names(container.ListBlobsInclude{Snapshots: true}), "copy source@ source")
		_, err = source.Delete(a.Context(), &blob.DeleteOptions{DeleteSnapshots: new(blob.DeleteSnapshotsOptionTypeInclude)})
		a.must(err)
		a.same("list at the end", a.names(container.ListBlobsInclude{Snapshots: true}), "copy")
	})
}

// names returns the names of the blobs, with an @ behind those of snapshots.
func (a *blobs) names(include container.ListBlobsInclude) string {
	a.Helper()
	var all []string
	for pages := a.all().NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: include, MaxResults: new(int32(1))}); pages.More(); {
		page, err := pages.NextPage(a.Context())
		a.must(err)
		for _, b := range page.Segment.BlobItems {
			name := *b.Name
			if b.Snapshot != nil && *b.Snapshot != "" {
				name += "@"
			}
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

// Blobs are found by their tags, listed by folders, and deleted in a batch.
func TestManyBlobs(t *testing.T) {
	withBlobs(t, func(a *blobs) {
		for name, tag := range map[string]string{"a/1": "x", "a/2": "y", "b/1": "x", "c": "x"} {
			_, err := a.all().NewBlockBlobClient(name).Upload(a.Context(), bodyOf(name), &blockblob.UploadOptions{Tags: map[string]string{"kind": tag}})
			a.must(err)
		}
		page, err := a.all().NewListBlobsHierarchyPager("/", nil).NextPage(a.Context())
		a.must(err)
		if len(page.Segment.BlobPrefixes) != 2 || len(page.Segment.BlobItems) != 1 || *page.Segment.BlobPrefixes[0].Name != "a/" {
			a.Errorf("folders: %d, files: %d", len(page.Segment.BlobPrefixes), len(page.Segment.BlobItems))
		}
		found, err := a.client.ServiceClient().FilterBlobs(a.Context(), `"kind"='x' AND @container='leased'`, nil)
		a.must(err)
		if len(found.Blobs) != 3 {
			a.Errorf("%d blobs have the tag, want 3", len(found.Blobs))
		}
		batch, err := a.all().NewBatchBuilder()
		a.must(err)
		a.must(batch.Delete("a/1", nil))
		a.must(batch.Delete("none", nil))
		answer, err := a.all().SubmitBatch(a.Context(), batch, nil)
		a.must(err)
		if len(answer.Responses) != 2 || answer.Responses[0].Error != nil {
			a.Errorf("answers of the batch: %v", answer.Responses)
		} else {
			a.refused(answer.Responses[1].Error, bloberror.BlobNotFound)
		}
		a.same("list", a.names(container.ListBlobsInclude{}), "a/2 b/1 c")
	})
}

// allowKeys allows requests with keys of the account, or forbids them.
func (a *blobs) allowKeys(allowed bool) {
	a.Helper()
	a.must(a.azure.Do(func(w behaviour.World) error {
		w.Edit(id("Microsoft.Storage/storageAccounts", "account1"), func(doc behaviour.Object) {
			behaviour.Set(doc, "properties.allowSharedKeyAccess", allowed)
		})
		return nil
	}))
}

// A signature by the key of a user and one by a stored access policy give what they say. One that only creates replaces nothing.
func TestSignaturesWithoutKeys(t *testing.T) {
	withBlobs(t, func(a *blobs) {
		a.must(a.upload(a.all().NewBlockBlobClient("file"), nil))
		now := time.Now().UTC()
		user, err := a.client.ServiceClient().GetUserDelegationCredential(a.Context(), service.KeyInfo{
			Start: new(now.Format(time.RFC3339)), Expiry: new(now.Add(2 * time.Hour).Format(time.RFC3339))}, nil)
		a.must(err)
		signed, err := sas.BlobSignatureValues{ExpiryTime: now.Add(time.Hour), ContainerName: "leased",
			Permissions: (&sas.ContainerPermissions{Read: true, Create: true}).String()}.SignWithUserDelegation(user)
		a.must(err)
		c, err := azblob.NewClientWithNoCredential("https://account1.blob.core.windows.net?"+signed.Encode(), &a.options)
		a.must(err)
		a.same("content", a.content(c.ServiceClient().NewContainerClient("leased").NewBlobClient("file"), nil), "x")
		for name, want := range map[string]bloberror.Code{"file": "UnauthorizedBlobOverwrite", "new": ""} {
			_, err := c.UploadBuffer(a.Context(), "leased", name, []byte("y"), nil)
			if want == "" {
				a.must(err)
			} else {
				a.refused(err, want)
			}
		}
		_, err = c.DeleteBlob(a.Context(), "leased", "file", nil)
		a.refused(err, bloberror.AuthorizationPermissionMismatch)
		a.allowKeys(false)
		a.same("content without keys of the account", a.content(c.ServiceClient().NewContainerClient("leased").NewBlobClient("file"), nil), "x")
		a.allowKeys(true)

		_, err = a.all().SetAccessPolicy(a.Context(), &container.SetAccessPolicyOptions{ContainerACL: []*container.SignedIdentifier{{ID: new("p"),
			AccessPolicy: &container.AccessPolicy{Expiry: new(now.Add(time.Hour)), Permission: new("r")}}}})
		a.must(err)
		key, err := azblob.NewSharedKeyCredential("account1", a.key)
		a.must(err)
		signed, err = sas.BlobSignatureValues{ContainerName: "leased", Identifier: "p"}.SignWithSharedKey(key)
		a.must(err)
		c, err = azblob.NewClientWithNoCredential("https://account1.blob.core.windows.net?"+signed.Encode(), &a.options)
		a.must(err)
		read := c.ServiceClient().NewContainerClient("leased").NewBlobClient("file")
		a.same("content", a.content(read, nil), "x")
		_, err = a.all().SetAccessPolicy(a.Context(), nil)
		a.must(err)
		_, err = read.DownloadStream(a.Context(), nil)
		a.refused(err, bloberror.AuthenticationFailed)
	})
}
