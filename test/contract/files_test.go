package contract

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/core"
	plane "kaz/internal/localazure/plane/file"
	entra "kaz/internal/localazure/plane/token"
)

const (
	fileAccount = "account1"
	fileHost    = "https://" + fileAccount + ".file.core.windows.net"
	fileOwner   = "44444444-4444-4444-4444-444444444444"
	fileReader  = "55555555-5555-5555-5555-555555555555"
)

// files is a local Azure with its file shares over TLS. They have no simulated time, because their content is real files.
type files struct {
	*testing.T
	emulator *core.Emulator
	plane    *plane.Service
	tokens   *entra.Service
	client   *http.Client
	dir      string
	id       azure.ID
}

var signingKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func startFiles(t *testing.T) *files {
	t.Helper()
	a := &files{T: t, dir: t.TempDir(), id: id("Microsoft.Storage/storageAccounts", fileAccount)}
	a.emulator = build(t, core.Options{AccessControl: true})
	key, err := signingKey()
	a.must(err)
	a.tokens, err = entra.New(entra.Config{Tenant: core.DefaultTenant, Key: key, Log: slog.New(slog.DiscardHandler),
		World: a.emulator.Look, Applications: []entra.Application{
			{ClientID: fileOwner, ObjectID: fileOwner, Secrets: []string{"x"}, Owner: true},
			{ClientID: fileReader, ObjectID: fileReader, Secrets: []string{"y"}},
		}})
	a.must(err)
	a.start()
	a.apply(azure.GroupID(subscription, group), behaviour.Object{"location": region})
	a.apply(a.id, behaviour.Object{"location": region, "kind": "StorageV2", "sku": behaviour.Object{"name": "Standard_LRS"}})
	return a
}

func (a *files) start() {
	a.Helper()
	var err error
	a.plane, err = plane.Start(plane.Config{Tokens: a.tokens, Azure: a.emulator, Dir: a.dir, Log: slog.New(slog.DiscardHandler)})
	a.must(err)
	server := httptest.NewTLSServer(a.plane)
	a.client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	a.Cleanup(func() {
		server.Close()
		a.must(a.plane.Close())
	})
}

func (a *files) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

func (a *files) apply(id azure.ID, body behaviour.Object) {
	a.Helper()
	a.must(a.emulator.Do(func(w behaviour.World) error { return w.Apply(behaviour.Itself(), id, body) }))
}

func (a *files) keys() (keys [2]string) {
	a.emulator.Look(func(w behaviour.World) {
		doc, _ := w.Get(a.id)
		keys = storage.Keys(doc)
	})
	return keys
}

func (a *files) clientOptions() policy.ClientOptions {
	return policy.ClientOptions{Transport: a.client, Retry: policy.RetryOptions{MaxRetries: -1}}
}

// service is a client with a key.
func (a *files) service(key string) *service.Client {
	a.Helper()
	credential, err := service.NewSharedKeyCredential(fileAccount, key)
	a.must(err)
	c, err := service.NewClientWithSharedKeyCredential(fileHost, credential, &service.ClientOptions{ClientOptions: a.clientOptions()})
	a.must(err)
	return c
}

// share makes a share.
func (a *files) share(name string) *share.Client {
	a.Helper()
	c := a.service(a.keys()[0]).NewShareClient(name)
	_, err := c.Create(a.Context(), nil)
	a.must(err)
	return c
}

// upload makes a file.
func (a *files) upload(c *share.Client, name string, data []byte) *file.Client {
	a.Helper()
	f := c.NewRootDirectoryClient().NewFileClient(name)
	_, err := f.Create(a.Context(), int64(len(data)), nil)
	a.must(err)
	if len(data) > 0 {
		a.must(f.UploadBuffer(a.Context(), data, nil))
	}
	return f
}

func (a *files) download(f *file.Client) []byte {
	a.Helper()
	got, err := f.DownloadStream(a.Context(), nil)
	a.must(err)
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	a.must(err)
	return data
}

func (a *files) refused(err error, status int, code string) {
	a.Helper()
	refusal, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || refusal.StatusCode != status || refusal.ErrorCode != code {
		a.Errorf("error %v, want %d %s", err, status, code)
	}
}

func TestSharesOverREST(t *testing.T) {
	a := startFiles(t)
	c := a.service(a.keys()[1]).NewShareClient("one")
	_, err := c.Create(a.Context(), &share.CreateOptions{Quota: new(int32(7)), Metadata: noted("made"), AccessTier: new(share.AccessTierCool)})
	a.must(err)
	_, err = c.Create(a.Context(), nil)
	a.refused(err, http.StatusConflict, "ShareAlreadyExists")
	got, err := c.GetProperties(a.Context(), nil)
	a.must(err)
	has(a, "quota", got.Quota, 7)
	has(a, "tier", got.AccessTier, "Cool")
	has(a, "protocols", got.EnabledProtocols, "SMB")
	if !hasNote(got.Metadata, "made") {
		a.Errorf("metadata %v", got.Metadata)
	}
	_, err = c.SetProperties(a.Context(), &share.SetPropertiesOptions{Quota: new(int32(9))})
	a.must(err)
	_, err = c.SetMetadata(a.Context(), &share.SetMetadataOptions{Metadata: noted("changed")})
	a.must(err)
	got, err = c.GetProperties(a.Context(), nil)
	a.must(err)
	has(a, "quota after the change", got.Quota, 9)
	if !hasNote(got.Metadata, "changed") {
		a.Errorf("metadata after the change %v", got.Metadata)
	}
	a.emulator.Look(func(w behaviour.World) {
		doc, _ := storage.Share(w, a.id, "one")
		if quota, _ := behaviour.Int(doc, "properties.shareQuota"); quota != 9 {
			a.Errorf("quota in Azure Resource Manager %d, want 9", quota)
		}
	})
	_, err = a.service(a.keys()[0]).NewShareClient("bad--name").Create(a.Context(), nil)
	a.refused(err, http.StatusBadRequest, "InvalidResourceName")
	_, err = c.SetProperties(a.Context(), &share.SetPropertiesOptions{Quota: new(int32(6000))})
	a.refused(err, http.StatusBadRequest, "InvalidHeaderValue")
	_, err = c.Delete(a.Context(), nil)
	a.must(err)
	_, err = c.GetProperties(a.Context(), nil)
	a.refused(err, http.StatusNotFound, "ShareNotFound")
}

func TestListOfShares(t *testing.T) {
	a := startFiles(t)
	for i := range 5 {
		a.share(fmt.Sprintf("share%d", i))
	}
	c := a.service(a.keys()[0])
	_, err := c.NewShareClient("share1").CreateSnapshot(a.Context(), &share.CreateSnapshotOptions{Metadata: noted("of snapshot")})
	a.must(err)
	_, err = c.NewShareClient("share4").Delete(a.Context(), nil)
	a.must(err)
	var got []string
	pages := 0
	for pager := c.NewListSharesPager(&service.ListSharesOptions{MaxResults: new(int32(2)), Prefix: new("share"),
		Include: service.ListSharesInclude{Metadata: true, Snapshots: true, Deleted: true}}); pager.More(); pages++ {
		page, err := pager.NextPage(a.Context())
		a.must(err)
		for _, s := range page.Shares {
			text := *s.Name
			if s.Snapshot != nil {
				text += " snapshot " + *s.Metadata["note"]
			}
			if s.Deleted != nil && *s.Deleted {
				text += " deleted"
			}
			got = append(got, text)
		}
	}
	want := []string{"share0", "share1", "share1 snapshot of snapshot", "share2", "share3", "share4 deleted"}
	if !slices.Equal(got, want) || pages != 3 {
		t.Errorf("%d pages with %q, want 3 with %q", pages, got, want)
	}
	deleted := ""
	for pager := c.NewListSharesPager(&service.ListSharesOptions{Include: service.ListSharesInclude{Deleted: true}}); pager.More(); {
		page, err := pager.NextPage(a.Context())
		a.must(err)
		for _, s := range page.Shares {
			if s.Deleted != nil && *s.Deleted {
				deleted = *s.Version
			}
		}
	}
	_, err = c.RestoreShare(a.Context(), "share4", deleted, nil)
	a.must(err)
	_, err = c.NewShareClient("share4").GetProperties(a.Context(), nil)
	a.must(err)
}

func TestDirectoriesAndFiles(t *testing.T) {
	a := startFiles(t)
	root := a.share("one").NewRootDirectoryClient()
	sub := root.NewSubdirectoryClient("Sub")
	_, err := root.NewSubdirectoryClient("none").NewSubdirectoryClient("below").Create(a.Context(), nil)
	a.refused(err, http.StatusNotFound, "ParentNotFound")
	_, err = sub.Create(a.Context(), &directory.CreateOptions{Metadata: noted("of directory")})
	a.must(err)
	_, err = sub.Create(a.Context(), nil)
	a.refused(err, http.StatusConflict, "ResourceAlreadyExists")
	properties, err := root.NewSubdirectoryClient("sUB").GetProperties(a.Context(), nil)
	a.must(err)
	if !hasNote(properties.Metadata, "of directory") || *properties.FileAttributes != "Directory" {
		a.Errorf("directory %+v", properties)
	}

	f := sub.NewFileClient("file ä.txt")
	_, err = f.Create(a.Context(), 10, &file.CreateOptions{Metadata: noted("of file"), HTTPHeaders: &file.HTTPHeaders{ContentType: new("text/plain")}})
	a.must(err)
	_, err = f.UploadRange(a.Context(), 2, body("hello"), nil)
	a.must(err)
	_, err = f.UploadRange(a.Context(), 8, body("too long"), nil)
	a.refused(err, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
	if got := a.download(f); string(got) != "\x00\x00hello\x00\x00\x00" {
		a.Errorf("content %q", got)
	}
	part, err := f.DownloadStream(a.Context(), &file.DownloadStreamOptions{Range: file.HTTPRange{Offset: 3, Count: 3},
		RangeGetContentMD5: new(true)})
	a.must(err)
	text, err := io.ReadAll(part.Body)
	a.must(err)
	if string(text) != "ell" || *part.ContentRange != "bytes 3-5/10" || part.ContentMD5 == nil {
		a.Errorf("part %q %v", text, part.ContentRange)
	}
	got, err := f.GetProperties(a.Context(), nil)
	a.must(err)
	has(a, "type", got.ContentType, "text/plain")
	has(a, "length", got.ContentLength, 10)
	if !hasNote(got.Metadata, "of file") {
		a.Errorf("metadata %v", got.Metadata)
	}
	_, err = f.Resize(a.Context(), 4, nil)
	a.must(err)
	_, err = f.SetMetadata(a.Context(), &file.SetMetadataOptions{Metadata: noted("again")})
	a.must(err)
	after, err := f.GetProperties(a.Context(), nil)
	a.must(err)
	has(a, "length after the change", after.ContentLength, 4)
	has(a, "type after the change of the size", after.ContentType, "text/plain")
	if !hasNote(after.Metadata, "again") || *after.ETag == *got.ETag {
		a.Errorf("metadata %v, ETag %s and before %s", after.Metadata, *after.ETag, *got.ETag)
	}

	_, err = sub.Delete(a.Context(), nil)
	a.refused(err, http.StatusConflict, "DirectoryNotEmpty")
	_, err = sub.NewFileClient("none").Delete(a.Context(), nil)
	a.refused(err, http.StatusNotFound, "ResourceNotFound")
	_, err = root.NewFileClient("Sub").GetProperties(a.Context(), nil)
	a.refused(err, http.StatusConflict, "ResourceTypeMismatch")
	moved, err := f.Rename(a.Context(), "moved", nil)
	a.must(err)
	_ = moved
	_, err = root.NewFileClient("moved").Delete(a.Context(), nil)
	a.must(err)
	_, err = sub.Delete(a.Context(), nil)
	a.must(err)
}

func TestListOfADirectory(t *testing.T) {
	a := startFiles(t)
	c := a.share("one")
	for i := range 7 {
		a.upload(c, fmt.Sprintf("file%d", i), make([]byte, i))
	}
	_, err := c.NewDirectoryClient("dir").Create(a.Context(), nil)
	a.must(err)
	var names []string
	pages := 0
	for pager := c.NewRootDirectoryClient().NewListFilesAndDirectoriesPager(&directory.ListFilesAndDirectoriesOptions{MaxResults: new(int32(3)),
		Include: directory.ListFilesInclude{Timestamps: true, ETag: true, Attributes: true}}); pager.More(); pages++ {
		page, err := pager.NextPage(a.Context())
		a.must(err)
		for _, d := range page.Segment.Directories {
			names = append(names, *d.Name+"/")
		}
		for i, f := range page.Segment.Files {
			names = append(names, *f.Name)
			if *f.Properties.ContentLength != int64(len(names)-2) || f.Properties.LastWriteTime == nil || f.ID == nil {
				t.Errorf("file %d of page %d: %+v", i, pages, *f.Properties)
			}
		}
	}
	want := []string{"dir/", "file0", "file1", "file2", "file3", "file4", "file5", "file6"}
	if !slices.Equal(names, want) || pages != 3 {
		t.Errorf("%d pages with %q, want 3 with %q", pages, names, want)
	}
}

func TestRangesOfAFile(t *testing.T) {
	a := startFiles(t)
	f := a.share("one").NewRootDirectoryClient().NewFileClient("sparse")
	const mib = 1 << 20
	_, err := f.Create(a.Context(), 64*mib, nil)
	a.must(err)
	_, err = f.UploadRange(a.Context(), 8*mib, body(strings.Repeat("x", 2*mib)), nil)
	a.must(err)
	_, err = f.ClearRange(a.Context(), file.HTTPRange{Offset: 9 * mib, Count: mib}, nil)
	a.must(err)
	got, err := f.GetRangeList(a.Context(), nil)
	a.must(err)
	if len(got.Ranges) != 1 || *got.Ranges[0].Start != 8*mib || *got.Ranges[0].End != 9*mib-1 {
		t.Errorf("%d ranges, the first %+v", len(got.Ranges), got.Ranges[0])
	}
}

func TestSnapshotsHaveTheContentOfTheirTime(t *testing.T) {
	a := startFiles(t)
	c := a.share("one")
	f := a.upload(c, "file", []byte("before"))
	taken, err := c.CreateSnapshot(a.Context(), nil)
	a.must(err)
	_, err = f.UploadRange(a.Context(), 0, body("after!"), nil)
	a.must(err)
	old, err := c.WithSnapshot(*taken.Snapshot)
	a.must(err)
	oldFile := old.NewRootDirectoryClient().NewFileClient("file")
	if got := a.download(oldFile); string(got) != "before" {
		t.Errorf("content of the snapshot %q", got)
	}
	if got := a.download(f); string(got) != "after!" {
		t.Errorf("content of the share %q", got)
	}
	_, err = oldFile.Delete(a.Context(), nil)
	a.refused(err, http.StatusBadRequest, "InvalidQueryParameterValue")
	_, err = c.Delete(a.Context(), nil)
	a.refused(err, http.StatusConflict, "ShareHasSnapshots")
	_, err = old.Delete(a.Context(), nil)
	a.must(err)
	_, err = oldFile.GetProperties(a.Context(), nil)
	a.refused(err, http.StatusNotFound, "ShareSnapshotNotFound")
	_, err = c.Delete(a.Context(), nil)
	a.must(err)
}

// A snapshot that Azure Resource Manager takes has the content of its time too.
func TestSnapshotsOfAzureResourceManager(t *testing.T) {
	a := startFiles(t)
	c := a.share("one")
	f := a.upload(c, "file", []byte("before"))
	var at time.Time
	a.must(a.emulator.Do(func(w behaviour.World) (err error) {
		at, err = storage.TakeSnapshot(w, a.id.Child("fileServices", "default").Child("shares", "one"), nil)
		return err
	}))
	_, err := f.UploadRange(a.Context(), 0, body("after!"), nil)
	a.must(err)
	old, err := c.WithSnapshot(behaviour.Timestamp(at))
	a.must(err)
	if got := a.download(old.NewRootDirectoryClient().NewFileClient("file")); string(got) != "before" {
		t.Errorf("content of the snapshot %q", got)
	}
}

func TestServerSideCopy(t *testing.T) {
	a := startFiles(t)
	c := a.share("source")
	data := make([]byte, 5<<20)
	_, _ = rand.Read(data)
	from := a.upload(c, "file", data)
	_, err := from.SetMetadata(a.Context(), &file.SetMetadataOptions{Metadata: noted("copied")})
	a.must(err)
	taken, err := c.CreateSnapshot(a.Context(), nil)
	a.must(err)
	_, err = from.UploadRange(a.Context(), 0, body("changed"), nil)
	a.must(err)
	old, err := c.WithSnapshot(*taken.Snapshot)
	a.must(err)
	source := old.NewRootDirectoryClient().NewFileClient("file")
	target := a.share("target").NewRootDirectoryClient()

	t.Run("file", func(t *testing.T) {
		to := target.NewFileClient("copy")
		started, err := to.StartCopyFromURL(a.Context(), source.URL(), nil)
		a.must(err)
		got := a.copied(to)
		if *got.CopyID != *started.CopyID || *got.CopyStatus != file.CopyStatusTypeSuccess || !hasNote(got.Metadata, "copied") {
			t.Errorf("copy %s %s with metadata %v", *got.CopyID, *got.CopyStatus, got.Metadata)
		}
		if !bytes.Equal(a.download(to), data) {
			t.Error("the copy differs from the snapshot")
		}
		_, err = to.AbortCopy(a.Context(), *started.CopyID, nil)
		a.refused(err, http.StatusConflict, "NoPendingCopyOperation")
	})
	t.Run("ranges", func(t *testing.T) {
		to := target.NewFileClient("ranges")
		_, err := to.Create(a.Context(), int64(len(data)), nil)
		a.must(err)
		_, err = to.UploadRangeFromURL(a.Context(), source.URL(), 0, 0, 4<<20, nil)
		a.refused(err, http.StatusForbidden, "CannotVerifyCopySource")
		url, err := from.GetSASURL(sas.FilePermissions{Read: true}, time.Now().Add(time.Hour), nil)
		a.must(err)
		url += "&sharesnapshot=" + *taken.Snapshot
		for at := int64(0); at < int64(len(data)); at += 4 << 20 {
			_, err = to.UploadRangeFromURL(a.Context(), url, at, at, min(4<<20, int64(len(data))-at), nil)
			a.must(err)
		}
		if !bytes.Equal(a.download(to), data) {
			t.Error("the copy differs from the snapshot")
		}
	})
	t.Run("no source", func(t *testing.T) {
		_, err := target.NewFileClient("none").StartCopyFromURL(a.Context(), fileHost+"/source/none", nil)
		a.refused(err, http.StatusNotFound, "ResourceNotFound")
		_, err = target.NewFileClient("none").StartCopyFromURL(a.Context(), "https://other.file.core.windows.net/source/file", nil)
		a.refused(err, http.StatusNotFound, "CannotVerifyCopySource")
	})
}

// copied waits for a copy.
func (a *files) copied(f *file.Client) file.GetPropertiesResponse {
	a.Helper()
	for {
		got, err := f.GetProperties(a.Context(), nil)
		a.must(err)
		if *got.CopyStatus != file.CopyStatusTypePending {
			return got
		}
	}
}

func TestSharedAccessSignatures(t *testing.T) {
	a := startFiles(t)
	c := a.share("one")
	f := a.upload(c, "file", []byte("data"))
	end := time.Now().Add(time.Hour)
	clientOf := func(url string, err error) *file.Client {
		a.must(err)
		client, err := file.NewClientWithNoCredential(url, &file.ClientOptions{ClientOptions: a.clientOptions()})
		a.must(err)
		return client
	}
	url, err := f.GetSASURL(sas.FilePermissions{Read: true}, end, nil)
	reading := clientOf(url, err)
	if got := a.download(reading); string(got) != "data" {
		t.Errorf("content %q", got)
	}
	_, err = reading.Delete(a.Context(), nil)
	a.refused(err, http.StatusForbidden, "AuthorizationPermissionMismatch")
	_, err = clientOf(strings.Replace(url, "/one/file", "/one/other", 1), nil).GetProperties(a.Context(), nil)
	a.refused(err, http.StatusForbidden, "AuthenticationFailed")
	_, err = clientOf(f.GetSASURL(sas.FilePermissions{Read: true}, time.Now().Add(-time.Hour),
		&file.GetSASURLOptions{StartTime: new(time.Now().Add(-2 * time.Hour))})).GetProperties(a.Context(), nil)
	a.refused(err, http.StatusForbidden, "AuthenticationFailed")

	all, err := a.service(a.keys()[0]).GetSASURL(sas.AccountResourceTypes{Service: true, Container: true, Object: true},
		sas.AccountPermissions{Read: true, List: true}, end, nil)
	a.must(err)
	account, err := service.NewClientWithNoCredential(all, &service.ClientOptions{ClientOptions: a.clientOptions()})
	a.must(err)
	_, err = account.NewListSharesPager(nil).NextPage(a.Context())
	a.must(err)
	_, err = account.NewShareClient("one").NewRootDirectoryClient().NewListFilesAndDirectoriesPager(nil).NextPage(a.Context())
	a.must(err)
	_, err = account.NewShareClient("two").Create(a.Context(), nil)
	a.refused(err, http.StatusForbidden, "AuthorizationPermissionMismatch")
}

// A signature that Azure Resource Manager makes works as the signatures of clients.
func TestSignaturesOfAzureResourceManager(t *testing.T) {
	a := startFiles(t)
	a.upload(a.share("one"), "file", []byte("data"))
	var query string
	a.must(a.emulator.Do(func(w behaviour.World) error {
		got, err := w.Act(behaviour.Itself(), a.id, "ListAccountSas",
			behaviour.Object{"signedServices": "f", "signedResourceTypes": "o", "signedPermission": "r",
				"signedExpiry": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
		body, _ := got.(behaviour.Object)
		query = behaviour.Text(body, "accountSasToken")
		return err
	}))
	c, err := file.NewClientWithNoCredential(fileHost+"/one/file?"+query, &file.ClientOptions{ClientOptions: a.clientOptions()})
	a.must(err)
	if got := a.download(c); string(got) != "data" {
		t.Errorf("content %q", got)
	}
}

func TestKeysOfTheAccount(t *testing.T) {
	a := startFiles(t)
	before := a.keys()
	check := func(key string) error {
		_, err := a.service(key).NewListSharesPager(nil).NextPage(a.Context())
		return err
	}
	a.must(check(before[0]))
	a.must(check(before[1]))
	a.must(a.emulator.Do(func(w behaviour.World) error {
		_, err := w.Act(behaviour.Itself(), a.id, "regenerateKey", behaviour.Object{"keyName": "key1"})
		return err
	}))
	a.refused(check(before[0]), http.StatusForbidden, "AuthenticationFailed")
	a.must(check(a.keys()[0]))
	a.must(check(before[1]))
	a.apply(a.id, behaviour.Object{"location": region, "kind": "StorageV2", "sku": behaviour.Object{"name": "Standard_LRS"},
		"properties": behaviour.Object{"allowSharedKeyAccess": false}})
	a.refused(check(before[1]), http.StatusForbidden, "KeyBasedAuthenticationNotPermitted")
}

// bearer is a credential with tokens of the local Azure.
type bearer struct {
	*files
	client string
}

func (b bearer) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	app, _ := b.tokens.ByClientID(b.client)
	issued, err := b.tokens.Issue(app, "", strings.TrimSuffix(o.Scopes[0], "/.default"), time.Hour)
	return azcore.AccessToken{Token: issued.Text, ExpiresOn: issued.Expires}, err
}

func TestTokensAndRoles(t *testing.T) {
	a := startFiles(t)
	a.upload(a.share("one"), "file", []byte("data"))
	as := func(client string, intent *share.TokenIntent) *file.Client {
		c, err := share.NewClient(fileHost+"/one", bearer{a, client},
			&share.ClientOptions{ClientOptions: a.clientOptions(), FileRequestIntent: intent})
		a.must(err)
		return c.NewRootDirectoryClient().NewFileClient("file")
	}
	backup := new(share.TokenIntentBackup)
	if got := a.download(as(fileOwner, backup)); string(got) != "data" {
		t.Errorf("content %q", got)
	}
	_, err := as(fileOwner, nil).GetProperties(a.Context(), nil)
	a.refused(err, http.StatusBadRequest, "MissingRequiredHeader")
	_, err = as(fileReader, backup).GetProperties(a.Context(), nil)
	a.refused(err, http.StatusForbidden, "AuthorizationPermissionMismatch")
	const privilegedReader = "b8eda974-7b85-4f76-af95-65846b26df6d"
	a.apply(a.id+"/providers/Microsoft.Authorization/roleAssignments/66666666-6666-6666-6666-666666666666", behaviour.Object{
		"properties": behaviour.Object{"principalId": fileReader, "principalType": "ServicePrincipal",
			"roleDefinitionId": string(azure.SubscriptionID(subscription)) + "/providers/Microsoft.Authorization/roleDefinitions/" + privilegedReader}})
	if got := a.download(as(fileReader, backup)); string(got) != "data" {
		t.Errorf("content %q", got)
	}
	_, err = as(fileReader, backup).Delete(a.Context(), nil)
	a.refused(err, http.StatusForbidden, "AuthorizationPermissionMismatch")
}

func TestTheQuotaIsEnforced(t *testing.T) {
	a := startFiles(t)
	c := a.service(a.keys()[0]).NewShareClient("small")
	_, err := c.Create(a.Context(), &share.CreateOptions{Quota: new(int32(1))})
	a.must(err)
	_, err = c.NewRootDirectoryClient().NewFileClient("large").Create(a.Context(), 1<<30+1, nil)
	a.refused(err, http.StatusRequestEntityTooLarge, "ShareSizeLimitReached")
	stats, err := c.GetStatistics(a.Context(), nil)
	a.must(err)
	has(a, "usage of an empty share", stats.ShareUsageBytes, 0)
	a.upload(c, "file", make([]byte, 1<<20))
	stats, err = c.GetStatistics(a.Context(), nil)
	a.must(err)
	has(a, "usage", stats.ShareUsageBytes, 1<<20)
}

// Content outlives the process. The content of a deleted account does not.
func TestContentOutlivesTheProcess(t *testing.T) {
	a := startFiles(t)
	c := a.share("one")
	f := a.upload(c, "file", []byte("data"))
	a.start()
	if got := a.download(a.service(a.keys()[0]).NewShareClient("one").NewRootDirectoryClient().NewFileClient("file")); string(got) != "data" {
		t.Errorf("content after a restart %q", got)
	}
	_ = f
	a.must(a.emulator.Do(func(w behaviour.World) error { return w.Remove(behaviour.Itself(), a.id) }))
	a.start()
	left, err := filepath.Glob(filepath.Join(a.dir, "*"))
	a.must(err)
	if len(left) > 0 {
		t.Errorf("content of the deleted account: %v", left)
	}
	_, err = os.Stat(a.dir)
	a.must(err)
}

// body is a request's body.
func body(text string) io.ReadSeekCloser { return nopCloser{strings.NewReader(text)} }

type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }

// noted is metadata with a note.
func noted(text string) map[string]*string { return map[string]*string{"note": new(text)} }

// hasNote reports whether metadata has the note. The names of headers come in any case.
func hasNote(metadata map[string]*string, text string) bool {
	for name, value := range metadata {
		if strings.EqualFold(name, "note") && value != nil && *value == text {
			return true
		}
	}
	return false
}
