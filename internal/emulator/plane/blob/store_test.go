package blob_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/emulator/plane/blob"
)

// Blobs with a directory outlive the service, with their etags, metadata and leases. Deleted ones do not.
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

// A file that is not that of a blob is named.
func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "0.blob"), []byte("{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&blob.Service{Dir: dir}).Load(); err == nil || !strings.Contains(err.Error(), "0.blob") {
		t.Errorf("got %v", err)
	}
}
