package file

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/sharedkey"
	"kaz/internal/localazure/plane/token"
	"kaz/internal/localazure/providers"
)

// fileAccount is a local Azure with an account. test/contract judges the API with Azure's SDK. The tests here see what the SDK cannot.
type fileAccount struct {
	testing.TB
	azure   *core.Emulator
	service *Service
	id      azure.ID
	dir     string
}

const host = "account1.file.core.windows.net"

var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func start(t testing.TB) *fileAccount {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	e, err := core.New(core.Options{Providers: providers.All(), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	group := azure.GroupID(core.DefaultSubscription, "rg")
	w := &fileAccount{TB: t, azure: e, id: group.Resource(storage.AccountType, "account1"), dir: t.TempDir()}
	w.start()
	w.apply(group, behaviour.Object{"location": "eastus"})
	w.apply(w.id, behaviour.Object{"location": "eastus", "kind": "FileStorage", "sku": behaviour.Object{"name": "Premium_LRS"}})
	w.apply(w.share("one"), behaviour.Object{"properties": behaviour.Object{"shareQuota": 100}})
	return w
}

func (w *fileAccount) start() {
	w.Helper()
	key, err := testKey()
	if err != nil {
		w.Fatal(err)
	}
	tokens, err := token.New(token.Config{Tenant: core.DefaultTenant, Key: key, World: w.azure.Look})
	if err != nil {
		w.Fatal(err)
	}
	if w.service, err = Start(Config{Tokens: tokens, Azure: w.azure, Dir: w.dir, Log: slog.New(slog.DiscardHandler)}); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = w.service.Close() })
}

func (w *fileAccount) share(name string) azure.ID {
	return w.id.Child("fileServices", "default").Child("shares", name)
}

func (w *fileAccount) apply(id azure.ID, body behaviour.Object) {
	w.Helper()
	if err := w.azure.Do(func(a behaviour.World) error { return a.Apply(behaviour.Itself(), id, body) }); err != nil {
		w.Fatal(err)
	}
}

// send sends a request that is signed with the account's key. The header are names and values in turn.
func (w *fileAccount) send(method, path, body string, header ...string) *httptest.ResponseRecorder {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, "https://"+host+path, strings.NewReader(body))
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("x-ms-version", "2025-05-05")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, _ := w.service.find("account1")
	r.Header.Set("Authorization", "SharedKey account1:"+storage.Sign(a.keys[0], sharedkey.Text(r, "account1", strings.Compare)))
	reply := httptest.NewRecorder()
	w.service.ServeHTTP(reply, r)
	return reply
}

// want sends a request, checks the status and the error code, and returns the headers of the answer.
func (w *fileAccount) want(status int, code, method, path, body string, header ...string) http.Header {
	w.Helper()
	reply := w.send(method, path, body, header...)
	if got := reply.Header().Get("x-ms-error-code"); reply.Code != status || got != code {
		w.Errorf("%s %s: %d %s, want %d %s\n%s", method, path, reply.Code, got, status, code, reply.Body)
	}
	return reply.Header()
}

// hasMetadata reports whether headers have metadata with a name.
func hasMetadata(h http.Header, name string) bool {
	_, found := h["x-ms-meta-"+name]
	return found
}

func (w *fileAccount) file(path, text string) {
	w.Helper()
	w.want(201, "", "PUT", path, "", "x-ms-content-length", formatInt(int64(len(text))))
	w.want(201, "", "PUT", path+"?comp=range", text, "x-ms-write", "update", "x-ms-range", "bytes=0-"+formatInt(int64(len(text)-1)))
}

// A copy that takes long is pending. Until it ends the target cannot be changed, and an abort leaves it empty.
func TestALongCopyIsPendingAndCanBeAborted(t *testing.T) {
	w := start(t)
	w.file("/one/from", "content")
	w.service.copies.hold = func(ctx context.Context) { <-ctx.Done() }
	started := w.want(202, "", "PUT", "/one/to", "", "x-ms-copy-source", "https://"+host+"/one/from")
	id := started.Get("x-ms-copy-id")
	if status := started.Get("x-ms-copy-status"); status != pending || id == "" {
		t.Fatalf("copy %q is %q", id, status)
	}
	w.want(409, "PendingCopyOperation", "DELETE", "/one/to", "")
	w.want(409, "PendingCopyOperation", "PUT", "/one/to", "", "x-ms-content-length", "1")
	w.want(409, "PendingCopyOperation", "PUT", "/one/to?comp=range", "x", "x-ms-write", "update", "x-ms-range", "bytes=0-0")
	w.want(409, "PendingCopyOperation", "PUT", "/one/to", "", "x-ms-copy-source", "https://"+host+"/one/from")
	w.want(409, "CopyIdMismatch", "PUT", "/one/to?comp=copy&copyid=other", "", "x-ms-copy-action", "abort")
	w.want(204, "", "PUT", "/one/to?comp=copy&copyid="+id, "", "x-ms-copy-action", "abort")
	got := w.want(200, "", "HEAD", "/one/to", "")
	if got.Get("x-ms-copy-status") != aborted || got.Get("Content-Length") != "0" {
		t.Errorf("after the abort %s with %s bytes", got.Get("x-ms-copy-status"), got.Get("Content-Length"))
	}
	w.want(202, "", "DELETE", "/one/to", "")
}

func TestACopyThatAStopInterruptsHasFailed(t *testing.T) {
	w := start(t)
	w.file("/one/from", "content")
	w.service.copies.hold = func(ctx context.Context) { <-ctx.Done() }
	w.want(202, "", "PUT", "/one/to", "", "x-ms-copy-source", "https://"+host+"/one/from")
	if err := w.service.Close(); err != nil {
		t.Fatal(err)
	}
	w.start()
	if got := w.want(200, "", "HEAD", "/one/to", ""); got.Get("x-ms-copy-status") != broken {
		t.Errorf("after a restart %s", got.Get("x-ms-copy-status"))
	}
}

// What the API stores with a file goes with it, also when another program renames it.
func TestPropertiesOfAFile(t *testing.T) {
	w := start(t)
	w.want(201, "", "PUT", "/one/file", "", "x-ms-content-length", "3", "x-ms-content-type", "text/plain", "x-ms-meta-a", "b",
		"x-ms-file-attributes", "ReadOnly|Hidden", "x-ms-file-creation-time", "2001-02-03T04:05:06.0000000Z",
		"x-ms-file-last-write-time", "2002-02-03T04:05:06.0000000Z")
	got := w.want(200, "", "HEAD", "/one/FILE", "")
	for name, want := range map[string]string{"Content-Type": "text/plain", "x-ms-file-attributes": "ReadOnly|Hidden",
		"x-ms-file-creation-time": "2001-02-03T04:05:06.0000000Z", "x-ms-file-last-write-time": "2002-02-03T04:05:06.0000000Z"} {
		if got.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.Get(name), want)
		}
	}
	if !hasMetadata(got, "a") {
		t.Errorf("headers %v have no metadata", got)
	}
	w.want(201, "", "PUT", "/one/file", "", "x-ms-content-length", "0")
	if again := w.want(200, "", "HEAD", "/one/file", ""); hasMetadata(again, "a") {
		t.Error("a file that is created again has the metadata of the one before")
	}
}

func TestFilesOfNFSSharesHaveModesAndOwners(t *testing.T) {
	w := start(t)
	w.apply(w.share("nfs"), behaviour.Object{"properties": behaviour.Object{"shareQuota": 100, "enabledProtocols": "NFS"}})
	w.want(201, "", "PUT", "/nfs/file", "", "x-ms-content-length", "0", "x-ms-mode", "0640")
	got := w.want(200, "", "HEAD", "/nfs/file", "")
	if got.Get("x-ms-mode") != "0640" || got.Get("x-ms-file-file-type") != "Regular" || got.Get("x-ms-owner") == "" {
		t.Errorf("mode %q, type %q, owner %q", got.Get("x-ms-mode"), got.Get("x-ms-file-file-type"), got.Get("x-ms-owner"))
	}
	w.want(404, "ResourceNotFound", "HEAD", "/nfs/FILE", "")
	w.want(400, "InvalidHeaderValue", "PUT", "/nfs/file", "", "x-ms-content-length", "0", "x-ms-mode", "9")
}

func TestRefusedRequests(t *testing.T) {
	w := start(t)
	w.file("/one/file", "text")
	long := strings.Repeat("x", 300)
	cases := []struct {
		status             int
		code, method, path string
		header             []string
	}{
		{400, "InvalidResourceName", "PUT", "/one/..%2f..%2fetc/x", []string{"x-ms-content-length", "1"}},
		{400, "InvalidResourceName", "PUT", "/one/%2e%2e/x", []string{"x-ms-content-length", "1"}},
		{400, "InvalidResourceName", "PUT", "/one/a%00b", []string{"x-ms-content-length", "1"}},
		{400, "InvalidResourceName", "PUT", "/one/" + long, []string{"x-ms-content-length", "1"}},
		{400, "InvalidResourceName", "PUT", "/one/a:b", []string{"x-ms-content-length", "1"}},
		{400, "MissingRequiredHeader", "PUT", "/one/new", nil},
		{400, "InvalidHeaderValue", "PUT", "/one/new", []string{"x-ms-content-length", "-1"}},
		{413, "ShareSizeLimitReached", "PUT", "/one/new", []string{"x-ms-content-length", "107374182401"}},
		{400, "InvalidHeaderValue", "PUT", "/one/new", []string{"x-ms-content-length", "1", "x-ms-file-last-write-time", "soon"}},
		{400, "MissingRequiredHeader", "PUT", "/one/file?comp=range", []string{"x-ms-write", "update"}},
		{400, "InvalidHeaderValue", "PUT", "/one/file?comp=range", []string{"x-ms-range", "bytes=0-1", "x-ms-write", "append"}},
		{400, "InvalidHeaderValue", "PUT", "/one/file?comp=range", []string{"x-ms-range", "bytes=2-1", "x-ms-write", "update"}},
		{400, "InvalidHeaderValue", "PUT", "/one/file?comp=range", []string{"x-ms-range", "bytes=0-1", "x-ms-write", "update"}},
		{413, "RequestBodyTooLarge", "PUT", "/one/file?comp=range", []string{"x-ms-range", "bytes=0-4194304", "x-ms-write", "update"}},
		{416, "InvalidRange", "GET", "/one/file", []string{"x-ms-range", "bytes=4-"}},
		{400, "UnsupportedQueryParameter", "PUT", "/one/file?comp=lease", nil},
		{400, "UnsupportedQueryParameter", "GET", "/one/file?comp=rangelist&prevsharesnapshot=x", nil},
		{400, "InvalidQueryParameterValue", "GET", "/one?restype=container", nil},
		{405, "UnsupportedHttpVerb", "POST", "/one/file", nil},
		{404, "ShareNotFound", "GET", "/none/file", nil},
		{400, "InvalidQueryParameterValue", "GET", "/one/file?sharesnapshot=yesterday", nil},
		{400, "OutOfRangeQueryParameterValue", "GET", "/one?restype=directory&comp=list&maxresults=0", nil},
		{400, "InvalidQueryParameterValue", "GET", "/one?restype=directory&comp=list&marker=%25", nil},
		{409, "CannotDeleteFileOrDirectory", "DELETE", "/one?restype=directory", nil},
	}
	for _, c := range cases {
		w.want(c.status, c.code, c.method, c.path, "", c.header...)
	}
}

func TestUnsignedAndOldRequestsAreRefused(t *testing.T) {
	w := start(t)
	w.want(403, "AuthenticationFailed", "GET", "/?comp=list", "", "x-ms-date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
	for header, code := range map[string]string{"": "NoAuthenticationInformation", "SharedKey account1:AAAA": "AuthenticationFailed",
		"SharedKey other:AAAA": "AuthenticationFailed", "Bearer x": "InvalidAuthenticationInfo"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "https://"+host+"/?comp=list", http.NoBody)
		r.Header.Set("Authorization", header)
		r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
		reply := httptest.NewRecorder()
		w.service.ServeHTTP(reply, r)
		if got := reply.Header().Get("x-ms-error-code"); got != code {
			t.Errorf("authorization %q: %d %s, want %s", header, reply.Code, got, code)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://"+host+"/?comp=list", http.NoBody)
	reply := httptest.NewRecorder()
	w.service.ServeHTTP(reply, r)
	if got := reply.Header().Get("x-ms-error-code"); got != "AccountRequiresHttps" {
		t.Errorf("without TLS %s", got)
	}
}

func TestHostsOfAccounts(t *testing.T) {
	for host, want := range map[string]string{
		"Account1.file.core.windows.net": "account1", "account1.file.core.windows.net:443": "account1",
		"account1.privatelink.file.core.windows.net": "account1", "account1.file.core.chinacloudapi.cn.": "account1",
		"account1.file.core.localhost:8443": "account1", "account1.blob.core.windows.net": "", "file.core.windows.net": "",
		"a.b.file.core.windows.net": "", "": "",
	} {
		if got := accountOf(host); got != want {
			t.Errorf("host %q: account %q, want %q", host, got, want)
		}
	}
}

// Azure's clients sort the names of headers without their hyphens.
func TestOrderOfSignedHeaders(t *testing.T) {
	names := []string{"x-ms-date", "x-ms-content-length", "x-ms-content", "x-ms-contentx"}
	slices.SortFunc(names, sharedkey.WithoutHyphens)
	if want := []string{"x-ms-content", "x-ms-content-length", "x-ms-contentx", "x-ms-date"}; !slices.Equal(names, want) {
		t.Errorf("order %v, want %v", names, want)
	}
}

func TestResourcesOfURLs(t *testing.T) {
	for text, want := range map[string]target{
		"/?comp=list":                   {scope: serviceScope},
		"/s?restype=share":              {scope: shareScope, share: "s", parts: []string{}},
		"/s?restype=directory":          {scope: directoryScope, share: "s", parts: []string{}},
		"/s/a%20b/c?restype=directory":  {scope: directoryScope, share: "s", parts: []string{"a b", "c"}},
		"/s/a/c?sharesnapshot=x":        {scope: fileScope, share: "s", parts: []string{"a", "c"}, snapshot: "x"},
		"/s/a%2Bb?comp=range&timeout=1": {scope: fileScope, share: "s", parts: []string{"a+b"}},
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseTarget(u)
		if err != nil || got.scope != want.scope || got.share != want.share || !slices.Equal(got.parts, want.parts) ||
			got.snapshot != want.snapshot {
			t.Errorf("%s: %+v %v, want %+v", text, got, err, want)
		}
	}
}

// TestCopyThatEndsWhileItIsRead checks the status of a copy that ends after its target is opened and before its state is
// read. The reply shows the final status. A pending copy of an earlier process is shown as broken.
func TestCopyThatEndsWhileItIsRead(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	o, all := &opened{root: root}, copies{}
	h, err := o.open("target", os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	store := func(status string) {
		if err := (properties{Copy: &copyState{ID: "1", Status: status}}).write(h.File); err != nil {
			t.Fatal(err)
		}
	}
	store(pending)
	reader, err := o.open("target", os.O_RDONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(reader.Close(), h.Close()) }()
	shown := func() string {
		header := http.Header{}
		all.show(header, reader)
		return header.Get("x-ms-copy-status")
	}
	if got := shown(); got != broken {
		t.Errorf("a copy of an earlier process is %s, want %s", got, broken)
	}
	store(succeeded)
	if got := shown(); got != succeeded {
		t.Errorf("a copy that ended meanwhile is %s, want %s", got, succeeded)
	}
}
