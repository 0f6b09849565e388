package blob_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

// Blobs with a directory outlive the service, with their etags, metadata and leases. Deleted blobs do not.
func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	ask := startIn(t, dir)
	// A line break is part of the content.
	put := ask("PUT", "/c/kept", "good", "one\ntwo\n", "x-ms-meta-color", "red", "Content-Type", "text/plain")
	put.Body.Close()
	const lease = "11111111-1111-1111-1111-111111111111"
	ask("PUT", "/c/kept?comp=lease", "good", "", "x-ms-lease-action", "acquire", "x-ms-lease-duration", "-1",
		"x-ms-proposed-lease-id", lease).Body.Close()
	for _, name := range []string{"gone", "emptied"} {
		ask("PUT", "/c/"+name, "good", "x").Body.Close()
	}
	ask("DELETE", "/c/gone", "good", "").Body.Close()
	ask("PUT", "/c/emptied", "good", "").Body.Close()

	ask = startIn(t, dir)
	got := ask("GET", "/c/kept", "good", "")
	text, err := io.ReadAll(got.Body)
	got.Body.Close()
	if err != nil || string(text) != "one\ntwo\n" || got.Header.Get("ETag") != put.Header.Get("ETag") ||
		got.Header.Get("x-ms-meta-color") != "red" || got.Header.Get("Content-Type") != "text/plain" ||
		got.Header.Get("x-ms-lease-state") != "leased" {
		t.Errorf("%v, %q, %v", err, text, got.Header)
	}
	for name, want := range map[string]int{"gone": 404, "emptied": 200} {
		got := ask("GET", "/c/"+name, "good", "")
		got.Body.Close()
		if got.StatusCode != want {
			t.Errorf("%s: status %d, want %d", name, got.StatusCode, want)
		}
	}
	got = ask("PUT", "/c/kept", "good", "x")
	got.Body.Close()
	if got.StatusCode != 412 {
		t.Errorf("a write without the lease: status %d", got.StatusCode)
	}
	ask("DELETE", "/c?restype=container", "good", "").Body.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("after the end of the container: %v, %v", left, err)
	}
}

// What is acknowledged is there after a restart: names, metadata and types that a file could not keep are refused.
func TestNamesOutsideUTF8(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	ask := startIn(t, dir)
	var kept []string
	for _, c := range []struct{ path, header, value string }{
		{"/c/plain", "", ""}, {"/c/%C3%A9", "", ""}, {"/c/%ff", "", ""}, {"/c/a%c3%28", "", ""}, {"/c/%00", "", ""},
		{"/c/meta", "x-ms-meta-a", "\xff"}, {"/c/kind", "Content-Type", "text/\xe9"}, {"/c/large", "x-ms-meta-a", strings.Repeat("x", 8<<10)},
	} {
		got := ask("PUT", c.path, "good", c.path, c.header, c.value)
		got.Body.Close()
		switch {
		case got.StatusCode == 201:
			kept = append(kept, c.path)
		case got.StatusCode != 400:
			t.Errorf("%s: status %d", c.path, got.StatusCode)
		}
	}
	ask = startIn(t, dir)
	for _, path := range kept {
		got := ask("GET", path, "good", "")
		text, err := io.ReadAll(got.Body)
		got.Body.Close()
		if err != nil || string(text) != path {
			t.Errorf("%s after a restart: status %d, %q, %v", path, got.StatusCode, text, err)
		}
	}
	if len(kept) != 3 {
		t.Errorf("kept are %q", kept)
	}
}

// A blob whose file is unreadable is set aside, and temporary files of a killed process are removed.
func TestUnreadableBlob(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	startIn(t, dir)("PUT", "/c/kept", "good", "x").Body.Close()
	for name, text := range map[string]string{"broken.blob": "{", ".new-123": "half a blob", "mine.txt": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := startIn(t, dir)("GET", "/c/kept", "good", "")
	got.Body.Close()
	if got.StatusCode != 200 {
		t.Errorf("the other blob: status %d", got.StatusCode)
	}
	for name, want := range map[string]bool{"broken.blob": false, "broken.blob.unreadable": true, ".new-123": false, "mine.txt": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestContainerMadeAgain checks that a container that is created again has no blob of the earlier container. It deletes the
// container, its account or its group, and also restarts the service.
func TestContainerMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	account := groupID().Resource("Microsoft.Storage/storageAccounts", "acc")
	container := account.Child("blobServices", "default").Child("containers", "con")
	do := func(f func(w behaviour.World) error) {
		t.Helper()
		if err := e.Do(f); err != nil {
			t.Fatal(err)
		}
	}
	made := func(w behaviour.World) error {
		return errors.Join(w.Apply(behaviour.Itself(), groupID(), behaviour.Object{"location": "westeurope"}),
			w.Apply(behaviour.Itself(), account,
				behaviour.Object{"location": "westeurope", "kind": "StorageV2", "sku": behaviour.Object{"name": "Standard_LRS"}}),
			w.Apply(behaviour.Itself(), container, behaviour.Object{}))
	}
	status := func(ask asking, method string) int {
		got := ask(method, "/con/blob", "good", "x")
		got.Body.Close()
		return got.StatusCode
	}
	for _, deleted := range []azure.ID{container, account, groupID()} {
		do(made)
		ask := serve(t, e, dir)
		if got := status(ask, "GET"); got != 404 {
			t.Errorf("the container has a blob before one is written: %d", got)
		}
		if got := status(ask, "PUT"); got != 201 {
			t.Errorf("write: %d", got)
		}
		do(made) // a write of what exists makes nothing anew
		if got := status(ask, "GET"); got != 200 {
			t.Errorf("the blob is gone: %d", got)
		}
		if got := status(serve(t, e, dir), "GET"); got != 200 {
			t.Errorf("after a restart the blob is gone: %d", got)
		}
		do(func(w behaviour.World) error { return w.Remove(behaviour.Itself(), deleted) })
		do(made)
		for name, ask := range map[string]asking{"at once": ask, "after a restart": serve(t, e, dir)} {
			if got := status(ask, "GET"); got != 404 {
				t.Errorf("%s was deleted and made again, and %s the blob is there: %d", deleted.Name(), name, got)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
}
