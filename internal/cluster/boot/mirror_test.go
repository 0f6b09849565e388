package boot

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mirrorHost is a folder of a machine, with the programs that the functions call.
func mirrorHost(t *testing.T, programs map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"etc/kaz", "etc/containerd", "run", "bin"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(root, "bin", name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestPackages checks that machines install the packages of the definition for their processor, and none whose checksum does not fit.
func TestPackages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("package " + r.URL.Path))
	}))
	t.Cleanup(server.Close)
	line := func(name, content string) string {
		sum := sha256.Sum256([]byte(content))
		return hex.EncodeToString(sum[:]) + " " + server.URL + name + "\n"
	}
	for _, test := range []struct {
		name, lines, installed, want string
	}{
		{name: "good", lines: line("/containerd_1.7_arm64.deb", "package /containerd_1.7_arm64.deb") +
			line("/containerd_1.7_amd64.deb", "package /containerd_1.7_amd64.deb") + line("/nft_1_all.deb", "package /nft_1_all.deb"),
			installed: "--force-confold --install containerd_1.7_amd64.deb nft_1_all.deb"},
		{name: "other content", lines: line("/containerd_1.7_amd64.deb", "another package"),
			want: "/containerd_1.7_amd64.deb has another checksum than spec.machines.packages"},
		{name: "other processor", lines: line("/containerd_1.7_arm64.deb", "package /containerd_1.7_arm64.deb"),
			want: "spec.machines.packages has none for amd64"},
	} {
		root := mirrorHost(t, map[string]string{"uname": "echo x86_64",
			"dpkg": `for a in "$@"; do printf '%s ' "${a##*/}"; done >> "$ROOT/installed"`})
		if err := os.WriteFile(filepath.Join(root, "etc/kaz/packages"), []byte(test.lines), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := call(t, awks(t)[0], "", `root=`+root+` state=`+root+`/run PATH=`+root+`/bin:$PATH KAZ_RETRY_DELAY=0; `+
			`export ROOT=$root; packages 2>&1`, "packages", "architecture")
		installed, _ := os.ReadFile(filepath.Join(root, "installed"))
		if strings.TrimSpace(string(installed)) != test.installed || (err == nil) != (test.want == "") || !strings.Contains(out, test.want) {
			t.Errorf("%s: %v, installed %q, want %q; said %s, want %s", test.name, err, installed, test.installed, out, test.want)
		}
	}
}

// TestSandboxImage checks that containerd gets the image of sandboxes in the version of kubeadm, from the definition's repository.
func TestSandboxImage(t *testing.T) {
	d := flatcar(t)
	d.Cluster.Spec.Kubernetes.ImageRepository = "registry.corp.example/kaz"
	b := builder{d: d, spec: d.Cluster.Spec}
	root := mirrorHost(t, map[string]string{"systemctl": `echo "$@" >> "$ROOT/restarted"`,
		"kubeadm": `[ "$*" = "config images list --kubernetes-version v1.36.3 --image-repository registry.corp.example/kaz" ] || exit 1
printf '%s\n' "$7/kube-proxy:v1.36.3" "registry.corp.example/kaz/pause:3.10.1"`})
	config := filepath.Join(root, "etc/containerd/config.toml")
	if err := os.WriteFile(config, []byte(b.containerd(layouts()["CloudInit"])), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // containerd restarts once
		if out, err := call(t, awks(t)[0], "", `root=`+root+` PATH=`+root+`/bin:$PATH KAZ_IMAGES=registry.corp.example/kaz `+
			`KAZ_VERSION=1.36.3; export ROOT=$root; sandbox 2>&1`, "sandbox"); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	text, err := os.ReadFile(config)
	if err != nil || !strings.Contains(string(text), "\n  sandbox_image = \"registry.corp.example/kaz/pause:3.10.1\"\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if restarted, err := os.ReadFile(filepath.Join(root, "restarted")); err != nil || string(restarted) != "restart containerd\n" {
		t.Errorf("%q %v", restarted, err)
	}
}
