package cluster

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kaz/internal/bundle"
	"kaz/internal/cluster/definition"
)

// digest is one of a file that no test reads.
var digest = "sha256:" + strings.Repeat("5a", 32)

// mirrorLayer is the layer that a bundle brings to a definition.
func mirrorLayer(t *testing.T, cluster string) definition.Layer {
	t.Helper()
	m := bundle.Manifest{
		Images: []bundle.Image{{Name: "localhost/kaz/cloud-controller-manager:v1.2.3"}, {Name: "registry.k8s.io/pause:3.10.1"}},
		Files:  []bundle.File{{Path: "packages/containerd_1.7.24_amd64.deb", Digest: digest}, {Path: "kaz/kaz", Digest: digest}},
	}
	for _, architecture := range []string{"amd64", "arm64"} {
		for _, program := range []string{"kubeadm", "kubectl", "kubelet"} {
			at := definition.ArtifactPath("1.36.3", architecture, program)
			m.Files = append(m.Files, bundle.File{Path: at, Digest: digest})
		}
	}
	text, err := m.Layer(cluster, bundle.Mirror{Registry: "registry.corp.example/kaz", Files: "https://files.corp.example/kaz/"})
	if err != nil {
		t.Fatal(err)
	}
	return definition.Layer{Name: "mirror.yaml", Text: text}
}

// withMirror is the definition of an example in a closed network. The example's own field for add-ons is left out: a field is set once.
func withMirror(t *testing.T, name, cluster string) definition.Definition {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`(?m)^  addons: .*$`).ReplaceAll(text, nil)
	d, err := definition.Load(definition.Layer{Name: name, Text: text}, mirrorLayer(t, cluster))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var (
	hostOfURL  = regexp.MustCompile(`\bhttps?://([-A-Za-z0-9.]+)`)
	hostOfPull = regexp.MustCompile(`(?i)\b(?:image|sandbox_image|imageRepository)["']?\s*[:=]\s*["']?([-a-z0-9.]+)[:/]`)
	// registries and servers from which a machine of another cluster gets programs, packages and images.
	public = regexp.MustCompile(`\b(registry\.k8s\.io|dl\.k8s\.io|pkgs\.k8s\.io|k8s\.gcr\.io|gcr\.io|docker\.io|quay\.io|ghcr\.io|` +
		`mcr\.microsoft\.com|github\.com|download\.docker\.com|archive\.ubuntu\.com|deb\.debian\.org)\b`)
)

// isInside reports whether a host is the mirror, an endpoint of Azure or the cluster itself, or an address.
func isInside(host string) bool {
	if slices.Contains([]string{"registry.corp.example", "files.corp.example", "169.254.169.254", "127.0.0.1", "localhost"}, host) {
		return true
	}
	// schema.management.azure.com names schemas, which nothing reads from there.
	return slices.ContainsFunc([]string{".azure.com", ".azure.net", ".windows.net", ".azure.cn", ".chinacloudapi.cn", ".usgovcloudapi.net"},
		func(end string) bool { return strings.HasSuffix(host, end) })
}

// TestMirrorAlone checks that no document of a cluster in a closed network names a host beside the mirror and Azure's own, in any format.
func TestMirrorAlone(t *testing.T) {
	for name, cluster := range map[string]string{"ha.yaml": "prod", "dev.yaml": "dev"} {
		p := plan(t, withMirror(t, name, cluster))
		seen := map[string]bool{}
		for _, format := range Formats() {
			for file, content := range p.Files(format) {
				text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", "") // a name space
				if plain, err := url.PathUnescape(text); err == nil {
					text += plain
				}
				if found := public.FindString(text); found != "" {
					t.Errorf("%s: %s of %v has %s", name, file, format, found)
				}
				for _, m := range append(hostOfURL.FindAllStringSubmatch(text, -1), hostOfPull.FindAllStringSubmatch(text, -1)...) {
					seen[m[1]] = true
					if !isInside(m[1]) {
						t.Errorf("%s: %s of %v names the host %s", name, file, format, m[1])
					}
				}
			}
		}
		if !seen["registry.corp.example"] || !seen["files.corp.example"] {
			t.Errorf("%s: the mirror is not named: %v", name, seen)
		}
	}
	// The same search finds public hosts in a cluster without a mirror.
	for _, content := range plan(t, example(t, "ha.yaml")).Files(ARM) {
		if public.Match(content) {
			return
		}
	}
	t.Error("no public host is found where there is one")
}
