package dataplane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// account is a storage account with the blobs of one container.
type account struct {
	blobs map[string]string
	asked []string
}

func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("comp") == "list" {
		a.list(w, r.URL.Query().Get("prefix"), r.URL.Query().Get("marker"))
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/kaz-dev/")
	a.asked = append(a.asked, r.Method+" "+name)
	_, has := a.blobs[name]
	switch {
	case r.Header.Get("Authorization") != "Bearer t" || r.Header.Get("x-ms-version") == "":
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodPut && has && r.Header.Get("If-None-Match") == "*":
		w.WriteHeader(http.StatusConflict)
	case r.Method == http.MethodPut && r.Header.Get("x-ms-blob-type") == "BlockBlob":
		text, _ := io.ReadAll(r.Body)
		a.blobs[name] = string(text)
		w.WriteHeader(http.StatusCreated)
	case !has:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		delete(a.blobs, name)
		w.WriteHeader(http.StatusAccepted)
	default:
		_, _ = io.WriteString(w, a.blobs[name])
	}
}

// list lists blobs, two a page.
func (a *account) list(w io.Writer, prefix, marker string) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(a.blobs)) {
		if strings.HasPrefix(name, prefix) && name >= marker {
			names = append(names, name)
		}
	}
	next := ""
	if len(names) > 2 {
		names, next = names[:2], names[2]
	}
	_, _ = fmt.Fprintf(w, "<EnumerationResults><Blobs><Blob><Name>%s</Name></Blob></Blobs><NextMarker>%s</NextMarker></EnumerationResults>",
		strings.Join(names, "</Name></Blob><Blob><Name>"), next)
}

func opened(t *testing.T, a *account) Container {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	token := func(_ context.Context, scope string) (string, error) {
		if scope != storageScope {
			t.Errorf("a token for %s", scope)
		}
		return "t", nil
	}
	return Container{Client: Client{Token: token, HTTP: server.Client()}, URL: server.URL + "/kaz-dev", Cluster: "dev",
		Seal: func(context.Context) (Seal, error) { return seal("key"), nil }}
}

func TestContainer(t *testing.T) {
	a := &account{blobs: map[string]string{"initialized": "vm-a"}}
	c := opened(t, a)
	ctx := t.Context()
	if name, err := c.Latest(ctx); err != nil || name != "" {
		t.Errorf("the newest of no backups: %q %v", name, err)
	}
	path := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(path, []byte("etcd"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"1.db", "2.db"} {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Save(ctx, name, file); err != nil {
			t.Fatal(err)
		}
	}
	if name, err := c.Latest(ctx); err != nil || name != "etcd/2.db" {
		t.Errorf("the newest backup is %q: %v", name, err)
	}
	for name, want := range map[string]bool{"etcd/1.db": true, "etcd/3.db": false} {
		if has, err := c.Has(ctx, name); err != nil || has != want {
			t.Errorf("has %s: %v %v", name, has, err)
		}
	}
	if _, err := c.Has(ctx, "../other/a.db"); err == nil || !strings.Contains(err.Error(), "want the name of a blob") {
		t.Errorf("a name that leaves the container: %v", err)
	}
	a.asked = nil
	if err := c.Mark(ctx, "etcd/1.db"); err != nil {
		t.Fatal(err)
	}
	if want := []string{"DELETE initialized", "PUT restore"}; !slices.Equal(want, a.asked) {
		t.Error(cmp.Diff(want, a.asked))
	}
	if name, err := c.Marked(ctx); err != nil || name != "etcd/1.db" {
		t.Errorf("marked: %q %v", name, err)
	}
	for range 2 { // a second time is no error
		if err := c.Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if name, err := c.Marked(ctx); err != nil || name != "" || a.blobs["etcd/1.db"] != "etcd" {
		t.Errorf("after the release %q is marked: %v %v", name, err, a.blobs)
	}
}

// seal signs with a hash of itself and the text.
type seal string

func (s seal) Sign(text []byte) ([]byte, error) {
	sum := sha256.Sum256(append([]byte(s), text...))
	return sum[:], nil
}

func (s seal) Signed(text, signature []byte) bool {
	own, _ := s.Sign(text)
	return bytes.Equal(own, signature)
}

// TestSignatures checks that a backup is taken only if the cluster made it under that name, or if it was adopted.
func TestSignatures(t *testing.T) {
	a := &account{blobs: map[string]string{}}
	c := opened(t, a)
	path := filepath.Join(t.TempDir(), "backup")
	if err := os.WriteFile(path, []byte("etcd"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Save(t.Context(), "1.db", file); err != nil {
		t.Fatal(err)
	}
	if a.blobs["etcd/1.db"] != "etcd" {
		t.Errorf("the backup is %q", a.blobs["etcd/1.db"])
	}
	if err := c.Verify(t.Context(), "etcd/1.db"); err != nil {
		t.Error(err)
	}
	a.blobs["etcd/2.db"] = "etcd" // without a signature
	a.blobs["etcd/3.db"], a.blobs["etcd/3.db.sig"] = "etcd", a.blobs["etcd/1.db.sig"]
	a.blobs["etcd/4.db"], a.blobs["etcd/4.db.sig"] = "etcd", "?"
	for _, name := range []string{"etcd/2.db", "etcd/3.db", "etcd/4.db"} {
		if err := c.Verify(t.Context(), name); !errors.Is(err, ErrUnsigned) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.blobs["etcd/1.db"] = "planted"
	if err := c.Verify(t.Context(), "etcd/1.db"); !errors.Is(err, ErrUnsigned) {
		t.Errorf("other content: %v", err)
	}
	other := c
	other.Cluster = "other"
	a.blobs["etcd/1.db"] = "etcd"
	if err := other.Verify(t.Context(), "etcd/1.db"); !errors.Is(err, ErrUnsigned) {
		t.Errorf("of another cluster: %v", err)
	}
	if err := c.Adopt(t.Context(), "etcd/2.db"); err != nil || c.Verify(t.Context(), "etcd/2.db") != nil {
		t.Errorf("adopted: %v", err)
	}
	c.Token = func(context.Context, string) (string, error) { return "", io.ErrUnexpectedEOF }
	if err := c.Verify(t.Context(), "etcd/2.db"); err == nil || errors.Is(err, ErrUnsigned) {
		t.Errorf("without an answer: %v", err)
	}
}

// TestPrune checks that the newest backups stay, that other blobs stay, and that nothing is deleted while a backup is marked.
func TestPrune(t *testing.T) {
	a := &account{blobs: map[string]string{"etcd/latest": "etcd/20260102T050405Z-20.db", "etcd/mine.db": "x", "initialized": "vm-a"}}
	for _, name := range []string{"20260102T030405Z-5", "20260102T040405Z-100", "20260102T050405Z-20", "20260101T050405Z-900"} {
		a.blobs["etcd/"+name+".db"], a.blobs["etcd/"+name+".db.sig"] = "x", "s"
	}
	c := opened(t, a)
	a.blobs["restore"] = "etcd/20260102T030405Z-5.db"
	for _, keep := range []int{1, 0} { // during a restore, and if all are kept
		if deleted, err := c.Prune(t.Context(), keep); err != nil || len(deleted) > 0 || len(a.blobs) < 11 {
			t.Errorf("keep %d: %v %v", keep, deleted, err)
		}
		delete(a.blobs, "restore")
	}
	deleted, err := c.Prune(t.Context(), 2)
	if want := []string{"etcd/20260101T050405Z-900.db", "etcd/20260102T030405Z-5.db"}; err != nil || !slices.Equal(deleted, want) {
		t.Errorf("%v %v", deleted, err)
	}
	want := []string{"etcd/20260102T040405Z-100.db", "etcd/20260102T040405Z-100.db.sig", "etcd/20260102T050405Z-20.db",
		"etcd/20260102T050405Z-20.db.sig", "etcd/latest", "etcd/mine.db", "initialized"}
	if got := slices.Sorted(maps.Keys(a.blobs)); !slices.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}
