package file_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/csi/file"
	"kaz/internal/fileservice"
	"kaz/internal/localazure/core"
	plane "kaz/internal/localazure/plane/file"
	"kaz/internal/localazure/plane/token"
	"kaz/internal/plan/parameter"
	"kaz/internal/testkit"
)

// within sends all requests to one server, but those that refuse names.
type within struct {
	server http.Handler
	refuse func(*http.Request) bool
	lose   func(*http.Request) bool // whose answers do not arrive
	fault  *fileFault
}

func (w *within) Do(r *http.Request) (*http.Response, error) {
	if w.refuse != nil && w.refuse(r) {
		return answer(r, http.StatusConflict, "SharingViolation"), nil
	}
	if w.fault != nil {
		return w.fault.do(r, w.serve)
	}
	got, err := w.serve(r)
	if err == nil && w.lose != nil && w.lose(r) {
		return nil, errors.New("the answer is lost")
	}
	return got, err
}

// serve lets the server answer a request.
func (w *within) serve(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	in := httptest.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), r.Body)
	in.Header = http.Header{}
	for name, values := range r.Header { // the SDK writes names in small letters
		in.Header[http.CanonicalHeaderKey(name)] = values
	}
	in.ContentLength = r.ContentLength
	out := httptest.NewRecorder()
	w.server.ServeHTTP(out, in)
	got := out.Result()
	got.Request = r
	return got, r.Context().Err()
}

// answer is an answer with a status and, unless it is empty, the code of an error.
func answer(r *http.Request, status int, code string) *http.Response {
	out := httptest.NewRecorder()
	if code != "" {
		out.Header().Set("x-ms-error-code", code)
	}
	out.WriteHeader(status)
	got := out.Result()
	got.Request = r
	return got
}

// signingKey is the key with which tokens are signed.
var signingKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// driverObject is the object id of the driver's identity.
const driverObject = "00000000-0000-0000-0000-0000000000d1"

// identity signs in as an application.
type identity struct {
	tokens *token.Service
	as     token.Application
}

func (i identity) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	t, err := i.tokens.Issue(i.as, "", "https://storage.azure.com/", time.Hour)
	return azcore.AccessToken{Token: t.Text, ExpiresOn: t.Expires}, err
}

// withFiles gives a driver cluster the data plane of file shares.
func (w *driverCluster) withFiles() *within {
	w.t.Helper()
	driver := token.Application{ClientID: driverObject, ObjectID: driverObject}
	tokens, err := token.New(token.Config{Tenant: core.DefaultTenant, Key: signingKey(), Log: slog.New(slog.DiscardHandler), World: w.Look,
		Applications: []token.Application{driver}})
	if err != nil {
		w.t.Fatal(err)
	}
	service, err := plane.Start(plane.Config{Tokens: tokens, Azure: w.Emulator, Dir: w.t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := service.Close(); err != nil {
			w.t.Error(err)
		}
	})
	transport := &within{server: service}
	w.config.Files = fileservice.Options{Transport: transport, Identity: identity{tokens, driver}}.Open
	w.Controller = file.NewController(w.config)
	w.dirOf = func(volume string) string {
		for _, a := range service.Accounts() {
			for _, s := range a.Shares {
				if a.Name == accountOf(volume) && s.Name == strings.Split(volume, "#")[2] {
					return s.Path
				}
			}
		}
		w.t.Fatalf("no directory of %s", volume)
		return ""
	}
	return transport
}

// fill writes files of a tree to the share of a volume.
func (w *driverCluster) fill(volume string, content map[string]string) {
	w.t.Helper()
	for name, text := range content {
		path := filepath.Join(w.dirOf(volume), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

// check compares the files of a volume's share.
func (w *driverCluster) check(what, volume string, want map[string]string) {
	w.t.Helper()
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(w.dirOf(volume), name))
		if err != nil || string(got) != text {
			w.t.Errorf("%s: %s: %q, %v, want %q", what, name, got, err, text)
		}
	}
}

func tree() map[string]string {
	files := map[string]string{"a/b/c/deep": "deep", "empty": "", "large": strings.Repeat("0123456789", 100000)}
	for i := range 20 {
		files[fmt.Sprintf("many/f%d", i)] = fmt.Sprint(i)
	}
	return files
}

// TestCopies checks rows 45 and 49: clones and restored snapshots have every file, also in another account.
func TestCopies(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	w.withFiles()
	source := w.volume("pvc-source").GetVolumeId()
	w.fill(source, tree())
	taken, err := w.snapshot(source, "s1")
	if err != nil {
		t.Fatal(err)
	}
	early := request("pvc-early")
	early.VolumeContentSource = fromSnapshot(taken.GetSnapshotId())
	if _, err := w.CreateVolume(t.Context(), early); err != nil {
		t.Fatal(err)
	}
	w.fill(source, map[string]string{"late": "after the snapshot"})
	for what, c := range map[string]struct {
		parameters []string
		source     *csispec.VolumeContentSource
		late       bool
	}{
		"clone":                       {nil, fromVolume(source), true},
		"clone to another account":    {[]string{"skuName", "Premium_LRS"}, fromVolume(source), true},
		"snapshot":                    {nil, fromSnapshot(taken.GetSnapshotId()), false},
		"snapshot to another account": {[]string{"createAccount", "true"}, fromSnapshot(taken.GetSnapshotId()), false},
	} {
		r := request("pvc-"+strings.ReplaceAll(what, " ", "-"), c.parameters...)
		r.VolumeContentSource = c.source
		for range 2 {
			made, err := w.CreateVolume(t.Context(), r)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			w.check(what, made.GetVolume().GetVolumeId(), tree())
			if _, err := os.Stat(filepath.Join(w.dirOf(made.GetVolume().GetVolumeId()), "late")); (err == nil) != c.late {
				t.Errorf("%s: file late: %v", what, err)
			}
		}
	}
	for what, c := range map[string]struct {
		source *csispec.VolumeContentSource
		size   int64
		want   codes.Code
	}{
		"49":        {fromSnapshot("garbage"), 10 * gib, codes.NotFound},
		"49 other":  {fromVolume("garbage"), 10 * gib, codes.NotFound},
		"too small": {fromVolume(source), gib, codes.OutOfRange},
	} {
		r := request("pvc-bad")
		r.VolumeContentSource, r.CapacityRange.RequiredBytes = c.source, c.size
		_, err := w.CreateVolume(t.Context(), r)
		wantCode(t, what, err, c.want)
	}
}

// isCopy reports whether a request begins to copy a file.
func isCopy(r *http.Request) bool {
	for name := range r.Header { // the SDK writes names in small letters
		if strings.EqualFold(name, "x-ms-copy-source") {
			return r.Method == http.MethodPut
		}
	}
	return false
}

// TestCopyUnderWay checks row 47: while a volume is copied, the same request is Aborted and begins no second copy. The request
// after one that was given up completes the volume.
func TestCopyUnderWay(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	transport := w.withFiles()
	source := w.volume("pvc-source").GetVolumeId()
	w.fill(source, tree())
	begun, proceed := make(chan string, len(tree())), make(chan struct{})
	transport.refuse = func(r *http.Request) bool {
		if !isCopy(r) {
			return false
		}
		begun <- r.URL.Path
		select {
		case <-proceed:
		case <-r.Context().Done():
		}
		return false
	}
	r := request("pvc-copy")
	r.VolumeContentSource = fromVolume(source)
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := w.CreateVolume(ctx, r)
		ended <- err
	}()
	for range atOnce {
		<-begun
	}
	for range 2 {
		_, err := w.CreateVolume(t.Context(), r)
		wantCode(t, "47", err, codes.Aborted)
	}
	if len(begun) > 0 {
		t.Error("a second copy was begun")
	}
	other := request("pvc-other")
	if _, err := w.CreateVolume(t.Context(), other); err != nil {
		t.Errorf("another volume: %v", err)
	}
	giveUp()
	if code := status.Code(<-ended); code != codes.Canceled {
		t.Errorf("a request that was given up: %s", code)
	}
	transport.refuse = nil
	close(proceed)
	made, err := w.CreateVolume(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	w.check("47", made.GetVolume().GetVolumeId(), tree())
}

// TestCopyWithoutRole checks row 48. If the identity of the driver may create shares and may not read files, the copy is
// made with the key of the account. If the account forbids keys, the error names the missing permission.
func TestCopyWithoutRole(t *testing.T) {
	w := newDriverCluster(t, core.Options{AccessControl: true})
	w.withFiles()
	w.Put(testkit.Group.Resource("Microsoft.Authorization/roleAssignments", "00000000-0000-0000-0000-0000000000f1"), map[string]any{
		"properties": map[string]any{"principalId": driverObject, "principalType": "ServicePrincipal", "roleDefinitionId": "/subscriptions/" +
			testkit.Subscription + "/providers/Microsoft.Authorization/roleDefinitions/b24988ac-6180-42a0-ab88-20f7382dd24c"}, // Contributor
	})
	source := w.volume("pvc-source").GetVolumeId()
	w.fill(source, tree())
	for name, class := range map[string][]string{"pvc-same": nil, "pvc-another": {"skuName", "Premium_LRS"}} {
		r := request(name, append(class, "useDataPlaneAPI", "oauth")...)
		r.VolumeContentSource = fromVolume(source)
		made, err := w.CreateVolume(t.Context(), r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w.check(name, made.GetVolume().GetVolumeId(), tree())
	}
	account := testkit.Group.Resource(storage.Accounts, accountOf(source))
	if _, err := w.Client.Patch(t.Context(), azure.Write{ID: account, Body: []byte(`{"properties":{"allowSharedKeyAccess":false}}`)}); err != nil {
		t.Fatal(err)
	}
	r := request("pvc-no-keys", "useDataPlaneAPI", "oauth", "storageAccount", accountOf(source))
	r.VolumeContentSource = fromVolume(source)
	_, err := w.again().CreateVolume(t.Context(), r)
	wantCode(t, "an account without keys", err, codes.Aborted)
	if err == nil || !strings.Contains(err.Error(), "AuthorizationPermissionMismatch") {
		t.Errorf("%v does not name the missing permission", err)
	}
}

// atOnce is how many files the driver copies at a time.
const atOnce = 16

// TestPartialCopy checks row 46 and defect 1: while a file cannot be copied there is no volume, and the next call goes on.
func TestPartialCopy(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	transport := w.withFiles()
	source := w.volume("pvc-source").GetVolumeId()
	w.fill(source, tree())
	copied := map[string]int{}
	broken := true
	var mu sync.Mutex
	transport.refuse = func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if !isCopy(r) {
			return false
		}
		if broken && strings.HasSuffix(r.URL.Path, "/many/f7") {
			return true
		}
		copied[r.URL.Path]++
		return false
	}
	r := request("pvc-copy")
	r.VolumeContentSource = fromVolume(source)
	for range 2 {
		if made, err := w.CreateVolume(t.Context(), r); err == nil {
			t.Fatalf("a volume with a missing file: %v", made)
		}
	}
	broken = false
	made, err := w.CreateVolume(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	w.check("46", made.GetVolume().GetVolumeId(), tree())
	total := 0
	for _, n := range copied {
		total += n
	}
	if again := total - len(tree()); again > 2*atOnce { // those that were under way when one failed
		t.Errorf("%d files were copied again", again)
	}
}

// TestDataPlane checks volumes of a class that has the key in a Secret, or asks for the data plane. It checks rows 39, 51,
// 54 and 56, and defects 10 and 38.
func TestDataPlane(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	w.withFiles()
	first := w.volume("pvc-arm").GetVolumeId()
	secret := w.secrets.values["default/azure-storage-account-"+accountOf(first)+"-secret"]
	w.Controller = file.NewController(file.Config{Name: file.DefaultName, Files: w.config.Files, Cluster: cluster(), Log: slog.New(slog.DiscardHandler)})
	r := request("pvc-secret")
	r.Secrets = secret
	made, err := w.CreateVolume(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	id := made.GetVolume().GetVolumeId()
	if s := w.share(id); s.QuotaGiB != 10 || parameter.Lookup(s.Metadata, "createdBy") != file.DefaultName {
		t.Errorf("%+v", s)
	}
	larger := request("pvc-secret")
	larger.Secrets, larger.CapacityRange.RequiredBytes = secret, 20*gib
	_, err = w.CreateVolume(t.Context(), larger)
	wantCode(t, "27", err, codes.AlreadyExists)
	of := &csispec.CreateSnapshotRequest{Name: "s1", SourceVolumeId: id, Secrets: secret}
	taken, err := w.CreateSnapshot(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := w.CreateSnapshot(t.Context(), of); err != nil || again.GetSnapshot().GetSnapshotId() != taken.GetSnapshot().GetSnapshotId() {
		t.Errorf("50: %v, %v", again, err)
	}
	of.SourceVolumeId = first
	_, err = w.CreateSnapshot(t.Context(), of)
	wantCode(t, "51", err, codes.AlreadyExists)
	deleteVolume := &csispec.DeleteVolumeRequest{VolumeId: id, Secrets: secret}
	_, err = w.DeleteVolume(t.Context(), deleteVolume)
	wantCode(t, "54", err, codes.FailedPrecondition)
	for range 2 {
		if _, err := w.DeleteSnapshot(t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: taken.GetSnapshot().GetSnapshotId(), Secrets: secret}); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if _, err := w.DeleteVolume(t.Context(), deleteVolume); err != nil {
			t.Errorf("56: %v", err)
		}
	}
	_, err = w.DeleteVolume(t.Context(), &csispec.DeleteVolumeRequest{VolumeId: id})
	wantCode(t, "neither secret nor configuration", err, codes.FailedPrecondition)

	wrong := request("pvc-wrong")
	wrong.Secrets = map[string]string{"azurestorageaccountname": accountOf(first), "azurestorageaccountkey": "d3Jvbmc="}
	_, err = w.CreateVolume(t.Context(), wrong)
	wantCode(t, "a wrong key", err, codes.PermissionDenied)

	w.Controller = w.again()
	w.Forget()
	planned := w.volume("pvc-plane", "useDataPlaneAPI", "true").GetVolumeId()
	if calls := w.calls(); calls["PUT shares"] > 0 || w.share(planned).QuotaGiB != 10 {
		t.Errorf("%v", calls)
	}
	tiered := w.volume("pvc-tier", "useDataPlaneAPI", "true", "shareAccessTier", "Hot").GetVolumeId()
	fast := w.volume("pvc-fast", "useDataPlaneAPI", "true", "skuName", "PremiumV2_LRS", "provisionedIOPS", "5000",
		"provisionedBandwidth", "300").GetVolumeId()
	if s := w.share(tiered); s.AccessTier != "Hot" {
		t.Errorf("defect 10: %+v", s)
	}
	if s := w.share(fast); s.IOPS == nil || *s.IOPS != 5000 || s.BandwidthMiBs == nil || *s.BandwidthMiBs != 300 {
		t.Errorf("defect 10: %+v", s)
	}
}

// TestEndpointSuffix checks defect 22: with a key in a Secret, snapshots and deletions go to the server that the class names, too.
func TestEndpointSuffix(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	transport := w.withFiles()
	account := accountOf(w.volume("pvc-arm").GetVolumeId())
	secret := w.secrets.values["default/azure-storage-account-"+account+"-secret"]
	var hosts []string
	transport.refuse = func(r *http.Request) bool {
		hosts = append(hosts, r.URL.Host)
		r.URL.Host, r.Host = account+".file.core.windows.net", "" // the server knows one suffix
		return false
	}
	w.config.Azure = nil
	c := w.again()
	r := request("pvc-1", "storageEndpointSuffix", "core.example.net")
	r.Secrets = secret
	made, err := c.CreateVolume(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	id := made.GetVolume().GetVolumeId()
	w.volumes = []file.Claimed{{Name: "pvc-1", Handle: id, Attributes: map[string]string{"storageEndpointSuffix": "core.example.net"}}}
	taken, err := c.CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: "s1", SourceVolumeId: id, Secrets: secret})
	if err != nil {
		t.Fatal(err)
	}
	snapshot := taken.GetSnapshot().GetSnapshotId()
	if _, err := c.DeleteSnapshot(t.Context(), &csispec.DeleteSnapshotRequest{SnapshotId: snapshot, Secrets: secret}); err != nil {
		t.Error(err)
	}
	w.volumes[0].Released = true
	if _, err := c.DeleteVolume(t.Context(), &csispec.DeleteVolumeRequest{VolumeId: id, Secrets: secret}); err != nil || w.exists(id) {
		t.Errorf("%v, the share exists: %t", err, w.exists(id))
	}
	for _, host := range hosts {
		if host != account+".file.core.example.net" {
			t.Errorf("a request to %s", host)
		}
	}
}

func fromVolume(id string) *csispec.VolumeContentSource {
	return &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Volume{
		Volume: &csispec.VolumeContentSource_VolumeSource{VolumeId: id},
	}}
}

func fromSnapshot(id string) *csispec.VolumeContentSource {
	return &csispec.VolumeContentSource{Type: &csispec.VolumeContentSource_Snapshot{
		Snapshot: &csispec.VolumeContentSource_SnapshotSource{SnapshotId: id},
	}}
}

// TestLostAnswerOfASnapshot checks that a snapshot by the data plane whose answer is lost is not taken again.
func TestLostAnswerOfASnapshot(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	transport := w.withFiles()
	id := w.volume("pvc-1").GetVolumeId()
	r := &csispec.CreateSnapshotRequest{Name: "s", SourceVolumeId: id,
		Secrets: w.secrets.values["default/azure-storage-account-"+accountOf(id)+"-secret"]}
	lost := false
	transport.lose = func(r *http.Request) bool {
		now := !lost && r.URL.Query().Get("comp") == "snapshot"
		lost = lost || now
		return now
	}
	if _, err := w.CreateSnapshot(t.Context(), r); err == nil || !lost {
		t.Errorf("%v, want an error: the answer is lost", err)
	}
	if _, err := w.CreateSnapshot(t.Context(), r); err != nil {
		t.Error(err)
	}
	if all, err := w.ListSnapshots(t.Context(), &csispec.ListSnapshotsRequest{SourceVolumeId: id}); err != nil || len(all.GetEntries()) != 1 {
		t.Errorf("snapshots: %v, %v, want one", all.GetEntries(), err)
	}
}

// TestCopiesWithSecret checks that snapshots and shares are copied with the user's own key, without a cloud configuration.
func TestCopiesWithSecret(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	w.withFiles()
	id := w.volume("pvc-source").GetVolumeId()
	other := w.volume("pvc-other", "skuName", "Premium_LRS").GetVolumeId()
	secret := w.secrets.values["default/azure-storage-account-"+accountOf(id)+"-secret"]
	w.fill(id, tree())
	c := file.NewController(file.Config{Name: file.DefaultName, Files: w.config.Files, Cluster: cluster(), Log: slog.New(slog.DiscardHandler)})
	taken, err := c.CreateSnapshot(t.Context(), &csispec.CreateSnapshotRequest{Name: "s1", SourceVolumeId: id, Secrets: secret})
	if err != nil {
		t.Fatal(err)
	}
	snapshot := taken.GetSnapshot().GetSnapshotId()
	w.fill(id, map[string]string{"late": "after the snapshot"})
	copied := func(name string, size int64, source *csispec.VolumeContentSource, want codes.Code) string {
		t.Helper()
		r := request(name)
		r.Secrets, r.VolumeContentSource, r.CapacityRange.RequiredBytes = secret, source, size
		var made *csispec.CreateVolumeResponse
		for range 2 {
			made, err = c.CreateVolume(t.Context(), r)
			wantCode(t, name, err, want)
		}
		return made.GetVolume().GetVolumeId()
	}
	for name, source := range map[string]*csispec.VolumeContentSource{"pvc-clone": fromVolume(id), "pvc-restored": fromSnapshot(snapshot)} {
		made := copied(name, 10*gib, source, codes.OK)
		for path := range tree() {
			if _, err := os.Stat(filepath.Join(w.dirOf(made), path)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := os.Stat(filepath.Join(w.dirOf(made), "late"))
		if late := err == nil; late != (name == "pvc-clone") {
			t.Errorf("%s: has the file that was written after the snapshot: %t", name, late)
		}
	}
	copied("pvc-small", gib, fromVolume(id), codes.OutOfRange)
	copied("pvc-far", 200*gib, fromVolume(other), codes.InvalidArgument)
	copied("pvc-none", 10*gib, fromVolume(strings.Replace(id, "pvc-source", "pvc-gone", 1)), codes.NotFound)
}
