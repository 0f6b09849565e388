package kubeconfig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// TestExplain checks that the errors about kubeconfigs say what is wanted, and have no words of a library.
func TestExplain(t *testing.T) {
	const cluster = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://a}}]\n"
	const noCluster, noKubeconfig = "it names no cluster; want a kubeconfig with a current-context", "it is no kubeconfig; want a YAML or JSON"
	for text, want := range map[string]string{
		"":                               noCluster,
		"apiVersion: v1\nkind: Config\n": noCluster,
		"[]":                             noKubeconfig,
		"- a\n- b\n":                     noKubeconfig,
		"a: b: c":                        noKubeconfig,
		"kind: Pod\napiVersion: v1\n":    noKubeconfig,
		"apiVersion: v1\nkind: Config\nclusters: 1\n":                                  noKubeconfig,
		cluster + "current-context: nowhere\n":                                         `it has no context "nowhere"; want one that kubectl config get-contexts shows`,
		cluster + "contexts: [{name: x, context: {cluster: d}}]\ncurrent-context: x\n": noCluster,
	} {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := clientcmd.BuildConfigFromFlags("", file)
		got := Explain(err)
		if got == nil || !strings.HasPrefix(got.Error(), want) {
			t.Errorf("%q: %v (%v), want %s", text, got, err, want)
		}
	}
	_, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{},
		&clientcmd.ConfigOverrides{CurrentContext: "nowhere"}).ClientConfig()
	if got := Explain(err); got == nil || !strings.HasPrefix(got.Error(), `it has no context "nowhere"`) {
		t.Errorf("--context: %v (%v)", got, err)
	}
	if err := errors.New("another one"); !errors.Is(Explain(err), err) || Explain(nil) != nil {
		t.Error("other errors are not kept")
	}
}
