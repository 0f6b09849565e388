package dataplane

import (
	"context"
	"io"
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
	return Container{Client: Client{Token: token, HTTP: server.Client()}, URL: server.URL + "/kaz-dev"}
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
