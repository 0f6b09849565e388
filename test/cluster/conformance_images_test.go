package cluster_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/gateway-api/conformance"

	"kaz/internal/localcluster/image"
)

// Repositories of the images that the manifests of the suite name, without their tags.
const (
	echoImage = "registry.k8s.io/gateway-api/echo-basic"
	dnsImage  = "registry.k8s.io/coredns/coredns"
)

// dnsMain is the CoreDNS of the suite, which has plugins that the name server of a cluster does not need.
const dnsMain = `package main

import (
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/whoami"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
)

func main() {
	dnsserver.Directives = []string{"log", "errors", "forward", "whoami"}
	coremain.Run()
}
`

// conformanceImages builds the backends of the suite from their Go modules, and returns archives with their images. They have the
// tags that the manifests name, so the nodes need no registry.
func conformanceImages(t *testing.T) []string {
	t.Helper()
	began := time.Now()
	dir := t.TempDir()
	echo, dns := filepath.Join(dir, "echo-basic"), filepath.Join(dir, "coredns")
	build(t, ".", echo, "sigs.k8s.io/gateway-api/conformance/echo-basic")
	build(t, dnsModule(t), dns, ".")
	var archives []string
	for _, p := range []image.Program{
		{References: usedTags(t, echoImage), Files: map[string]string{"echo-basic": echo}, Entrypoint: []string{"/echo-basic"}},
		{References: usedTags(t, dnsImage), Files: map[string]string{"coredns": dns}, Entrypoint: []string{"/coredns"}},
	} {
		file := p.Files[strings.TrimPrefix(p.Entrypoint[0], "/")] + ".tar"
		if err := p.Write(file); err != nil {
			t.Fatal(err)
		}
		archives = append(archives, file)
	}
	t.Logf("images of the suite built in %s", short(time.Since(began)))
	return archives
}

// build builds a program with the module in dir.
func build(t *testing.T, dir, out, pkg string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "PWD="+dir, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOTOOLCHAIN=local")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, said)
	}
}

// dnsModule returns a directory with the module of the cluster's name server and [dnsMain].
func dnsModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, kept := range map[string]string{"go.mod": "module.mod", "go.sum": "module.sum"} {
		text, err := os.ReadFile(filepath.Join("../../internal/localcluster/controlplane/modules/coredns", kept))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(dnsMain), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// usedTags returns the references to a repository in the manifests of the suite.
func usedTags(t *testing.T, repository string) []string {
	t.Helper()
	reference := regexp.MustCompile(`\bimage: *(` + regexp.QuoteMeta(repository) + `:[\w.-]+)`)
	var all []string
	err := fs.WalkDir(conformance.Manifests, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := conformance.Manifests.ReadFile(path)
		for _, m := range reference.FindAllSubmatch(text, -1) {
			all = append(all, string(m[1]))
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("the manifests name %d images of %s: %v", len(all), repository, err)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
