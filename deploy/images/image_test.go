package main

import (
	"archive/tar"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// small is the program that takes the least time to compile.
const small = "health-probe-proxy"

func built(t *testing.T, version, repository string, push bool) (v1.ImageIndex, v1.Descriptor) {
	t.Helper()
	b := build{
		source: filepath.Join("..", ".."), out: t.TempDir(), version: version, repository: repository, push: push,
		programs: []string{small}, platforms: []string{"linux/amd64", "linux/arm64"},
	}
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	all, err := layout.ImageIndexFromPath(filepath.Join(b.out, small))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(all); err != nil {
		t.Error(err)
	}
	list, err := all.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	index, err := all.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index, list.Manifests[0]
}

// TestImage checks that the layout has an image for each platform. Its program runs as a user other
// than root and trusts the certificate authorities. A second build is identical.
func TestImage(t *testing.T) {
	index, descriptor := built(t, "v1.36.0", "localhost/kaz", false)
	if name := descriptor.Annotations["io.containerd.image.name"]; name != "localhost/kaz/"+small+":v1.36.0" {
		t.Errorf("the image is called %q", name)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkConfig(t, image, *m.Platform)
		root := extract(t, image)
		checkCertificates(t, filepath.Join(root, certificates))
		if m.Platform.Architecture == runtime.GOARCH && runtime.GOOS == "linux" {
			said, err := exec.CommandContext(t.Context(), filepath.Join(root, programs, small), "--version").CombinedOutput()
			if err != nil || !strings.Contains(string(said), "v1.36.0") {
				t.Errorf("--version: %v, %s", err, said)
			}
		}
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("platforms %q, want %q", platforms, want)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	pushed := strings.TrimPrefix(server.URL, "http://") + "/kaz"
	if _, again := built(t, "v1.36.0", pushed, true); again.Digest != descriptor.Digest {
		t.Errorf("first %s, then %s", descriptor.Digest, again.Digest)
	}
	tag, err := name.NewTag(pushed + "/" + small + ":v1.36.0")
	if err != nil {
		t.Fatal(err)
	}
	got, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "arm64"}))
	if err != nil {
		t.Fatal(err)
	}
	checkConfig(t, got, v1.Platform{OS: "linux", Architecture: "arm64"})
}

func checkConfig(t *testing.T, image v1.Image, p v1.Platform) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if config.OS != p.OS || config.Architecture != p.Architecture || c.User != "65532:65532" ||
		!slices.Equal(c.Entrypoint, []string{"/usr/local/bin/" + small}) ||
		!slices.Contains(c.Env, "PATH=/usr/local/bin") || c.Labels["org.opencontainers.image.version"] != "v1.36.0" ||
		!config.Created.IsZero() {
		t.Errorf("%s: %+v", p, config)
	}
}

// extract unpacks the image's files.
func extract(t *testing.T, image v1.Image) string {
	t.Helper()
	root := t.TempDir()
	text := mutate.Extract(image)
	defer text.Close()
	for r := tar.NewReader(text); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, filepath.Clean("/"+h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var data []byte
			if data, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, data, h.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func checkCertificates(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if n := strings.Count(string(text), "BEGIN CERTIFICATE"); !pool.AppendCertsFromPEM(text) || n < 100 {
		t.Errorf("%d certificates", n)
	}
}

// TestBase checks that a program's image has the files of its base image for the same platform.
func TestBase(t *testing.T) {
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for _, architecture := range []string{"arm64", "amd64"} {
		tools, err := layer([]file{{"usr/sbin/mkfs.ext4", 0o755, []byte("for " + architecture)}})
		if err != nil {
			t.Fatal(err)
		}
		image, err := mutate.AppendLayers(empty.Image, tools)
		if err != nil {
			t.Fatal(err)
		}
		image, err = mutate.ConfigFile(image, &v1.ConfigFile{OS: "linux", Architecture: architecture, RootFS: rootOf(t, image)})
		if err != nil {
			t.Fatal(err)
		}
		if err := path.AppendImage(image); err != nil {
			t.Fatal(err)
		}
	}
	b := build{source: filepath.Join("..", ".."), out: t.TempDir(), version: "v1", repository: "localhost/kaz",
		programs: []string{small}, platforms: []string{"linux/amd64"}, bases: []string{small + "=" + dir}}
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	all, err := layout.ImageIndexFromPath(filepath.Join(b.out, small))
	if err != nil {
		t.Fatal(err)
	}
	image, err := imageFor(all, v1.Platform{OS: "linux", Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Config.User != "0:0" || !strings.Contains(strings.Join(config.Config.Env, " "), ":/usr/sbin:") {
		t.Errorf("%+v, %v", config, err)
	}
	root := extract(t, image)
	if text, err := os.ReadFile(filepath.Join(root, "usr/sbin/mkfs.ext4")); err != nil || string(text) != "for amd64" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(root, programs, small)); err != nil {
		t.Error(err)
	}
	if _, err := open(dir, v1.Platform{OS: "linux", Architecture: "riscv64"}); err == nil ||
		!strings.Contains(err.Error(), "no image for linux/riscv64") {
		t.Error(err)
	}
}

func rootOf(t *testing.T, image v1.Image) v1.RootFS {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return config.RootFS
}

// TestRefused checks that invalid builds are rejected before anything is built.
func TestRefused(t *testing.T) {
	b := build{source: filepath.Join("..", ".."), out: t.TempDir(), version: "a b", programs: []string{small, "kubelet", "azuredisk-csi-driver"},
		platforms: []string{"linux/amd64", "linux/amd64", "plan9/arm"}, bases: []string{"cloud-node-manager=x", small + "="}}
	err := b.run()
	if err == nil {
		t.Fatal("it is built")
	}
	for _, want := range []string{`-version "a b"`, `"kubelet" is no program`, `-platforms: "linux/amd64"`, `"plan9/arm"`,
		`-bases: "cloud-node-manager=x"`, `-bases: "` + small + `="`, "-bases has no azuredisk-csi-driver: it needs an image with mount"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in: %v", want, err)
		}
	}
}
