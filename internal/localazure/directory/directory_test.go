package directory

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kaz/internal/host/freeport"
	"kaz/internal/host/process"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/server"
)

// write writes files of a directory.
func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeleteKeepsFilesOfOthers checks which files go. Links are removed and not followed.
func TestDeleteKeepsFilesOfOthers(t *testing.T) {
	dir, other := filepath.Join(t.TempDir(), "azure"), t.TempDir()
	if err := Claim(dir); err != nil {
		t.Fatal(err)
	}
	write(t, other, "precious")
	write(t, dir, "state.json", "state-keys.json", "state-blobs/a/b", "ca.pem", "ca-key.pem", "ca-az/config", "logs/azure.log")
	if err := os.Symlink(other, filepath.Join(dir, "state-link")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "notes", "stateful", "logs/requests.jsonl")
	stopped, kept, err := Delete(t.Context(), dir)
	if want := []string{"logs", "notes", "stateful"}; err != nil || stopped || !slices.Equal(kept, want) {
		t.Errorf("%v, %v, %v; want %v", stopped, kept, err, want)
	}
	for _, file := range []string{filepath.Join(other, "precious"), filepath.Join(dir, "logs", "requests.jsonl")} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := Delete(t.Context(), dir); !errors.Is(err, ErrForeign) {
		t.Errorf("what is left is not removed: %v", err)
	}
	empty := filepath.Join(t.TempDir(), "azure")
	if err := Claim(empty); err != nil {
		t.Fatal(err)
	}
	write(t, empty, "state.json", "logs/azure.log")
	if _, kept, err := Delete(t.Context(), empty); err != nil || len(kept) > 0 {
		t.Errorf("%v, %v", kept, err)
	}
	if _, err := os.Stat(empty); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
	if stopped, kept, err := Delete(t.Context(), empty); stopped || len(kept) > 0 || err != nil {
		t.Errorf("a directory that is not there: %v, %v, %v", stopped, kept, err)
	}
}

// TestHeld checks that one program at a time has a directory, and that Delete removes nothing of a program that it cannot stop.
func TestHeld(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "azure")
	group, err := Hold(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close(t.Context(), 0)
	write(t, dir, "state.json")
	if _, err := Hold(t.Context(), dir); !errors.Is(err, process.ErrInUse) {
		t.Errorf("a second holder: %v", err)
	}
	if _, err := Detach(t.Context(), dir, "/bin/false", nil, os.Stderr); !errors.Is(err, process.ErrInUse) ||
		!strings.Contains(err.Error(), "stop it with: kaz local azure stop --dir "+dir) {
		t.Errorf("a second one in the background: %v", err)
	}
	if _, _, err := Delete(t.Context(), dir); !errors.Is(err, process.ErrInUse) { // this process does not stop itself
		t.Errorf("delete: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "state.json")); err != nil {
		t.Errorf("the state: %v", err)
	}
}

// TestAddressesAreKept checks that the next start has the addresses of the last one, unless flags name others or they are taken.
func TestAddressesAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "azure")
	if err := Claim(dir); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	free, err := freeport.Choose("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const last = "127.0.0.1:1"
	if err := Served(dir, client.Info{ARM: "https://" + free[0], ARMHTTP: "http://" + taken.Addr().String(), Proxy: "http://" + last}); err != nil {
		t.Fatal(err)
	}
	o := server.Options{Address: "127.0.0.1:0", HTTPAddress: "127.0.0.1:0", ProxyAddress: "127.0.0.1:8081"}
	if err := Prepare(dir, &o); err != nil || o.Address != free[0] || o.HTTPAddress == taken.Addr().String() || o.ProxyAddress != "127.0.0.1:8081" {
		t.Errorf("%+v, %v", o, err)
	}
	o = server.Options{Address: "0.0.0.0:0"}
	if err := Prepare(dir, &o); err != nil || o.Address != "0.0.0.0:0" || o.ProxyAddress != "" {
		t.Errorf("other hosts: %+v, %v", o, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "local-azure.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(dir, &server.Options{}); err == nil || !strings.Contains(err.Error(), "local-azure.json cannot be read") {
		t.Errorf("a broken file: %v", err)
	}
}

// TestPrepare checks the files of the options.
func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	var o server.Options
	if err := Prepare(dir, &o); err != nil || o.State != filepath.Join(dir, "state.json") || o.CAFile != filepath.Join(dir, "ca.pem") {
		t.Errorf("%+v, %v", o, err)
	}
	o = server.Options{CAFile: "/other/ca.pem"}
	if err := Prepare(dir, &o); err != nil || o.CAFile != "/other/ca.pem" {
		t.Errorf("%+v, %v", o, err)
	}
	if err := Prepare(dir, &o); err == nil || !strings.Contains(err.Error(), "--dir has the state; give one of both") {
		t.Errorf("both: %v", err)
	}
}
