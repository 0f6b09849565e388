package clusterengine

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
		err := SaveKubeconfig(file, test.now)
		if (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), "dev.kubeconfig exists and is of another cluster") {
			t.Errorf("%s\nreplaced by\n%s: %v", test.before, test.now, err)
		}
		if text, readErr := os.ReadFile(file); readErr != nil || err == nil && string(text) != string(test.now) {
			t.Errorf("%v, or the file is not as written", readErr)
		}
	}
}
