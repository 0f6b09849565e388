package main

import (
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
)

// saved writes a random image as deploy/images does, into a folder with layouts.
func saved(t *testing.T, dir, name string) {
	t.Helper()
	index, err := random.Index(1000, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	all := mutate.AppendManifests(mutate.RemoveManifests(index, func(v1.Descriptor) bool { return true }),
		mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}})
	at, err := layout.Write(filepath.Join(dir, name), mutate.RemoveManifests(index, func(v1.Descriptor) bool { return true }))
	if err != nil {
		t.Fatal(err)
	}
	if err := at.AppendIndex(all, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name": "localhost/kaz/" + name + ":v1.36.0",
	})); err != nil {
		t.Fatal(err)
	}
}

// closedRegistry is a registry with a certificate of its own, which asks for a password. It returns its address and its authority.
func closedRegistry(t *testing.T) (address string, authority []byte) {
	t.Helper()
	stored := registry.New()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "carrier" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="closed"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		stored.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "https://"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// TestGuideToClosedNetworks runs the commands of docs/guides/air-gapped.md as they are, but for the addresses of the registry, and for
// programs of Kubernetes, which come from a folder. The registry has an authority of its own and wants a password.
func TestGuideToClosedNetworks(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join(root, "docs", "guides", "air-gapped.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	give := func(name, text string, mode os.FileMode) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	address, authority := closedRegistry(t)
	give("bin/kaz", fmt.Sprintf("#!/bin/sh\nexec %q \"$@\"\n", os.Args[0]), 0o755)
	give("corp.pem", string(authority), 0o600)
	give("docker/config.json", fmt.Sprintf(`{"auths": {%q: {"username": "carrier", "password": "secret"}}}`, address), 0o600)
	give("containerd_1.7.24_amd64.deb", "a package", 0o600)
	sums := ""
	for _, program := range []string{"kubeadm", "kubelet", "kubectl"} {
		path := "v9.9.9/bin/linux/amd64/" + program
		give("programs/"+path, program, 0o600)
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(program)), path)
	}
	give("sums.txt", sums, 0o600)
	saved(t, filepath.Join(dir, "more"), "pause")
	for _, name := range []string{"cloud-controller-manager", "cloud-node-manager", "azuredisk-csi-driver"} {
		saved(t, filepath.Join(dir, "bin", "images"), name)
	}
	give("images.txt", "registry.k8s.io/pause:3.10.1="+filepath.Join(dir, "more", "pause")+"\n", 0o600)
	definition, err := os.ReadFile(filepath.Join(root, "docs", "example-manifests", "cluster", "dev.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	give("dev.yaml", regexp.MustCompile(`(?m)^  addons: .*$`).ReplaceAllString(string(definition), ""), 0o600)
	if err := os.Symlink(filepath.Join(root, "deploy"), filepath.Join(dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	in := strings.NewReplacer("registry.corp.example", address,
		"--kubernetes 1.36.3", "--kubernetes 9.9.9 --programs programs --checksums sums.txt")
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	if len(blocks) != 5 {
		t.Errorf("%d blocks of commands, want 5", len(blocks))
	}
	for _, block := range blocks {
		command := exec.CommandContext(t.Context(), "sh", "-euc", in.Replace(block[1]))
		command.Dir = dir
		command.Env = append(command.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"),
			"DOCKER_CONFIG="+filepath.Join(dir, "docker"), "HOME="+dir)
		if said, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", block[1], err, said)
		}
	}
	for file, want := range map[string]string{
		"www/SHA256SUMS": "v9.9.9/bin/linux/amd64/kubelet", "values.yaml": address + "/kaz/", "mirror.yaml": "containerd_1.7.24_amd64.deb",
		"generated/template.json": address,
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: want %s in it, %v\n%.2000s", file, want, err, text)
		}
	}
}
