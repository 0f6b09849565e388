package boot

import (
	"os"
	"path/filepath"
	"testing"
)

// A machine that makes its file with authorities anew, for authorities of its own, goes on to trust the hosts of the local Azure.
func TestTrust(t *testing.T) {
	root, authority := t.TempDir(), filepath.Join(t.TempDir(), "ca.pem")
	file := filepath.Join(root, bundle)
	for name, text := range map[string]string{authority: "of Azure\n", file: "of browsers\n"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a second boot adds nothing
		if err := trust(root, authority); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{file: "of browsers\nof Azure\n", filepath.Join(root, "usr/local/share/ca-certificates/local-azure.crt"): "of Azure\n"} {
		if text, err := os.ReadFile(name); err != nil || string(text) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, text, want)
		}
	}
}
