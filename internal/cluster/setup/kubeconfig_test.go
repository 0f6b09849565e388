package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSaveKubeconfig checks that a kubeconfig replaces an earlier kubeconfig of the same cluster, even after ReachHere
// changed it. A kubeconfig of another cluster stays.
func TestSaveKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dev.kubeconfig")
	config := func(server, more string) []byte {
		return fmt.Appendf(nil, "apiVersion: v1\nkind: Config\nclusters:\n- name: dev\n  cluster: {server: %q%s}\n", server, more)
	}
	for _, test := range []struct {
		before, now []byte
		refused     bool
	}{
		{nil, config("https://api.dev:6443", ""), false},
		{config("https://api.dev:6443", ", insecure-skip-tls-verify: true"), config("https://api.dev:6443", ""), false},
		{config("https://192.0.2.1:6443", ", tls-server-name: api.dev"), config("https://api.dev:6443", ""), false},
		{config("https://api.prod:6443", ""), config("https://api.dev:6443", ""), true},
		{config("https://192.0.2.1:6443", ", tls-server-name: api.prod"), config("https://api.dev:6443", ""), true},
		{[]byte("no kubeconfig: ["), config("https://api.dev:6443", ""), true},
	} {
		if test.before != nil {
			if err := os.WriteFile(file, test.before, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := SaveKubeconfig(file, test.now)
		if (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), "dev.kubeconfig exists and is of another cluster") {
			t.Errorf("%s\nreplaced by\n%s: %v", test.before, test.now, err)
		}
		if text, readErr := os.ReadFile(file); readErr != nil || err == nil && string(text) != string(test.now) {
			t.Errorf("%v, or the file is not as written", readErr)
		}
	}
}

// TestUndoKubeconfig checks that undo brings back what the file had, and leaves what another process has written since.
func TestUndoKubeconfig(t *testing.T) {
	config := func(name string) string {
		return "apiVersion: v1\nkind: Config\nclusters:\n- name: " + name + "\n  cluster: {server: https://api.dev:6443}\n"
	}
	for name, test := range map[string]struct{ before, since, want string }{
		"new":     {"", "", ""},
		"earlier": {config("first"), "", config("first")},
		"other":   {"", config("third"), config("third")},
	} {
		file := filepath.Join(t.TempDir(), "dev.kubeconfig")
		write := func(text string) {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if test.before != "" {
			write(test.before)
		}
		undo, err := SaveKubeconfig(file, []byte(config("second")))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: others can read the file: %v %v", name, err, info)
		}
		if test.since != "" {
			write(test.since)
		}
		if err := undo(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text, err := os.ReadFile(file)
		if string(text) != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: the file has %q, %v; want %q", name, text, err, test.want)
		}
	}
}
