package bundle

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	ocilayout "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// newKey is a key of the kind that cosign makes.
func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// write writes a file in a folder, and returns its path.
func write(t *testing.T, dir, file, text string) string {
	t.Helper()
	at := filepath.Join(dir, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

// platformImage is a random image for a platform.
func platformImage(t *testing.T, platform v1.Platform) v1.Image {
	t.Helper()
	image, err := random.Image(3000, 2)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = platform.OS, platform.Architecture
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

// multiPlatform is an index with images of platforms.
func multiPlatform(t *testing.T, platforms ...string) v1.ImageIndex {
	t.Helper()
	var index v1.ImageIndex = empty.Index
	for _, text := range platforms {
		p, err := v1.ParsePlatform(text)
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: platformImage(t, *p), Descriptor: v1.Descriptor{Platform: p}})
	}
	return index
}

// sources are inputs of every kind.
func sources(t *testing.T) CreateOptions {
	t.Helper()
	dir := t.TempDir()
	// A layout as deploy/images writes it.
	at, err := ocilayout.Write(filepath.Join(dir, "images", "cloud-node-manager"), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{containerdName: "localhost/kaz/cloud-node-manager:devel"}
	if err := at.AppendIndex(multiPlatform(t, "linux/amd64", "linux/arm64"), ocilayout.WithAnnotations(names)); err != nil {
		t.Fatal(err)
	}
	// An archive as docker save writes it.
	tag := name.MustParseReference("registry.k8s.io/pause:3.10.1").(name.Tag)
	saved := filepath.Join(dir, "pause.tar")
	if err := tarball.WriteToFile(saved, tag, platformImage(t, v1.Platform{OS: "linux", Architecture: "amd64"})); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "chart/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.2.3+build\nappVersion: devel\n")
	write(t, dir, "chart/values.yaml", "image: {repository: registry.k8s.io/pause, tag: 3.10.1}\n")
	write(t, dir, "chart/templates/pod.yaml", "kind: Pod\n")
	return CreateOptions{
		Images: []string{filepath.Join(dir, "images"), saved}, Platforms: []string{"linux/amd64", "linux/arm64"},
		Charts:   []string{filepath.Join(dir, "chart")},
		Files:    []string{"kaz/acr-credential-provider=" + write(t, dir, "program", "a program")},
		Packages: []string{write(t, dir, "containerd_1%3a1.7.0_amd64.deb", "a package")}, // as apt-get download names it
		Key:      newKey(t), Version: "v1.2.3", Transport: http.DefaultTransport,
	}
}

// create makes a bundle.
func create(t *testing.T, o CreateOptions) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kaz.bundle")
	if _, err := Create(t.Context(), file, o); err != nil {
		t.Fatal(err)
	}
	return file
}

// open opens a bundle that is good.
func open(t *testing.T, file string, key crypto.Signer) *Bundle {
	t.Helper()
	b, err := Open(t.Context(), file, key.Public(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// newRegistry is a registry of this machine, and its address.
func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func reference(t *testing.T, text string) name.Reference {
	t.Helper()
	r, err := name.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLoad(t *testing.T) {
	o := sources(t)
	b := open(t, create(t, o), o.Key)
	to := newRegistry(t) + "/mirror"
	pushed, err := b.Push(t.Context(), to, http.DefaultTransport, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range pushed {
		at, digest, _ := strings.Cut(p, "@")
		names = append(names, strings.TrimPrefix(at, to))
		got, err := remote.Get(reference(t, at))
		if err != nil || got.Digest.String() != digest {
			t.Errorf("%s: %v %v", p, got, err)
		}
	}
	want := []string{"/kaz/cloud-node-manager:devel", "/pause:3.10.1", "/charts/web:1.2.3_build"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	// Each layer of each platform is there.
	for _, architecture := range []string{"amd64", "arm64"} {
		image, err := remote.Image(reference(t, to+"/kaz/cloud-node-manager:devel"),
			remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture}))
		if err != nil {
			t.Fatal(err)
		}
		if err := tarball.Write(name.MustParseReference("x.example/team/app:1"), image, io.Discard); err != nil {
			t.Error(err)
		}
	}
	dir := t.TempDir()
	for range 2 { // the second one finds all there
		files, err := b.Unpack(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"charts/web-1.2.3+build.tgz", "kaz/acr-credential-provider", "packages/containerd_1:1.7.0_amd64.deb"}
		if diff := cmp.Diff(want, files); diff != "" {
			t.Error(diff)
		}
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "--quiet", sumsPath)
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}
}

// TestReproducible checks that the same contents and key give the same bytes.
func TestReproducible(t *testing.T) {
	o := sources(t)
	first, err := os.ReadFile(create(t, o))
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(o.Images)
	second, err := os.ReadFile(create(t, o))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("two bundles of %d and %d bytes differ", len(first), len(second))
	}
}

// TestPull checks that images come from a registry, without those of other platforms, and that images of a bundle can be in another one.
func TestPull(t *testing.T) {
	from := newRegistry(t)
	index := multiPlatform(t, "linux/amd64", "linux/s390x", "linux/arm64")
	image := from + "/team/app:1"
	if err := remote.WriteIndex(reference(t, image), index); err != nil {
		t.Fatal(err)
	}
	o := CreateOptions{Images: []string{image}, Platforms: []string{"linux/amd64", "linux/arm64"}, Key: newKey(t), Transport: http.DefaultTransport}
	file := create(t, o)
	b := open(t, file, o.Key)
	want := []string{"linux/amd64", "linux/arm64"}
	if diff := cmp.Diff(want, b.Manifest.Images[0].Platforms); diff != "" {
		t.Error(diff)
	}
	o.Images = []string{"other.example/app:2=" + file}
	again := open(t, create(t, o), o.Key)
	if got := again.Manifest.Images[0]; got.Digest != b.Manifest.Images[0].Digest || got.Name != "other.example/app:2" {
		t.Errorf("image of another bundle: %+v", got)
	}
	o.Platforms = []string{"linux/riscv64"}
	if _, err := Create(t.Context(), filepath.Join(t.TempDir(), "b"), o); err == nil || !strings.Contains(err.Error(), "no image for [linux/riscv64]") {
		t.Errorf("absent platform: %v", err)
	}
}

// TestChanged checks that a bundle of which any byte differs, or is missing, is refused.
func TestChanged(t *testing.T) {
	o := sources(t)
	good, err := os.ReadFile(create(t, o))
	if err != nil {
		t.Fatal(err)
	}
	opened := func(text []byte) error {
		t.Helper()
		file := filepath.Join(t.TempDir(), "kaz.bundle")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := Open(t.Context(), file, o.Key.Public(), Options{})
		if err == nil {
			return b.Close()
		}
		return err
	}
	if err := opened(good); err != nil {
		t.Fatal(err)
	}
	// The contents of each file of the archive, and its padding, which no signature has.
	contents := map[int]bool{}
	offset := 0
	reader := bytes.NewReader(good)
	for archive := tar.NewReader(reader); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		offset = len(good) - reader.Len()
		for i := range int(h.Size) {
			contents[offset+i] = true
		}
	}
	step := max(1, len(good)/400)
	for at := 0; at < len(good); at += step {
		changed := bytes.Clone(good)
		changed[at] ^= 1
		if err := opened(changed); err == nil && contents[at] {
			t.Errorf("byte %d of %d was changed and nothing noticed", at, len(good))
		}
		if err := opened(good[:at]); err == nil {
			t.Errorf("the first %d of %d bytes were taken for a bundle", at, len(good))
		}
	}
	for _, text := range [][]byte{good[:len(good)-1], good[:len(good)-512], append(bytes.Clone(good), 0)} {
		if err := opened(text); err == nil || !strings.Contains(err.Error(), "truncated, or something was appended") {
			t.Errorf("%d of %d bytes: %v", len(text), len(good), err)
		}
	}
	o.Key = newKey(t)
	if err := opened(good); err == nil || !strings.Contains(err.Error(), "another key signed it") {
		t.Errorf("another key: %v", err)
	}
}

// rewrite copies a bundle, and changes its files.
func rewrite(t *testing.T, file string, change func(h *tar.Header, text []byte) (*tar.Header, []byte)) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for archive := tar.NewReader(f); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if h, text = change(h, text); h == nil {
			continue
		}
		if err := errors.Join(w.WriteHeader(h), func() error { _, err := w.Write(text); return err }()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, t.TempDir(), "kaz.bundle", out.String())
}

// TestParts checks what is said of an archive whose files are others than the manifest says.
func TestParts(t *testing.T) {
	o := sources(t)
	file := create(t, o)
	b := open(t, file, o.Key)
	last := b.Manifest.Parts[len(b.Manifest.Parts)-1].Path
	for _, test := range []struct {
		name   string
		change func(*tar.Header, []byte) (*tar.Header, []byte)
		want   string
	}{
		{"missing", func(h *tar.Header, text []byte) (*tar.Header, []byte) {
			if h.Name == last {
				return nil, nil
			}
			return h, text
		}, last + " is missing: the file is truncated, or no bundle"},
		{"missing index", func(h *tar.Header, text []byte) (*tar.Header, []byte) {
			if h.Name == indexPath {
				return nil, nil
			}
			return h, text
		}, indexPath + " is missing: the archive has \"blobs/sha256/"},
		{"longer", func(h *tar.Header, text []byte) (*tar.Header, []byte) {
			if h.Name == last {
				text = append(text, 'x')
				h.Size++
			}
			return h, text
		}, last + " has "},
		{"changed", func(h *tar.Header, text []byte) (*tar.Header, []byte) {
			if h.Name == last {
				text[0] ^= 1
			}
			return h, text
		}, "want " + b.Manifest.Parts[len(b.Manifest.Parts)-1].Digest + "; it was changed"},
		{"outside", func(h *tar.Header, text []byte) (*tar.Header, []byte) {
			if h.Name == last {
				h.Name = "../../etc/passwd"
			}
			return h, text
		}, last + " is missing: the archive has \"../../etc/passwd\" there"},
		{"link", func(h *tar.Header, text []byte) (*tar.Header, []byte) {
			if h.Name == last {
				h.Typeflag, h.Linkname, h.Size, text = tar.TypeSymlink, "/etc/passwd", 0, nil
			}
			return h, text
		}, last + " is missing: the archive has"},
		{"no signature", func(h *tar.Header, text []byte) (*tar.Header, []byte) {
			if h.Name == signaturePath {
				return nil, nil
			}
			return h, text
		}, signaturePath + " is missing"},
		{"great manifest", func(h *tar.Header, text []byte) (*tar.Header, []byte) {
			if h.Name == manifestPath {
				text = append(text, bytes.Repeat([]byte(" "), mostManifest)...)
				h.Size = int64(len(text))
			}
			return h, text
		}, manifestPath + " has "},
	} {
		b, err := Open(t.Context(), rewrite(t, file, test.change), o.Key.Public(), Options{})
		if err == nil {
			_ = b.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
}

// TestChangedLater checks that a part which changes after a bundle was verified is neither pushed nor written.
func TestChangedLater(t *testing.T) {
	o := sources(t)
	file := create(t, o)
	b := open(t, file, o.Key)
	s, err := b.blob(b.Manifest.Files[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("other"), s.offset); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := b.Unpack(t.Context(), dir, Options{}); err == nil || !strings.Contains(err.Error(), "it was changed") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(b.Manifest.Files[0].Path))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the changed file was written: %v", err)
	}
}

// TestLinksOfTheFolder checks that a link in the folder of a web server leads no file out of it.
func TestLinksOfTheFolder(t *testing.T) {
	o := sources(t)
	b := open(t, create(t, o), o.Key)
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "packages")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Unpack(t.Context(), dir, Options{}); err == nil {
		t.Error("a file was written through a link")
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside: %v %v", left, err)
	}
}

// TestWrongInputs checks what is said of contents that cannot be in a bundle, and that no file is left.
func TestWrongInputs(t *testing.T) {
	good := sources(t)
	dir := t.TempDir()
	text := write(t, dir, "text", "text")
	for _, test := range []struct {
		name   string
		change func(*CreateOptions)
		want   string
	}{
		{"nothing", func(o *CreateOptions) { *o = CreateOptions{Key: o.Key} }, "nothing is in the bundle"},
		{"outside", func(o *CreateOptions) { o.Files = []string{"../up=" + text} }, `file "../up": want a relative path`},
		{"absolute", func(o *CreateOptions) { o.Files = []string{"/etc/up=" + text} }, `file "/etc/up": want a relative path`},
		{"twice", func(o *CreateOptions) { o.Files = []string{"a=" + text, "a=" + text} }, "file a is there twice"},
		{"below", func(o *CreateOptions) { o.Files = []string{"a=" + text, "a/b=" + text} }, "file a/b: a is a file, too"},
		{"no pair", func(o *CreateOptions) { o.Files = []string{text} }, "want PATH=FILE"},
		{"no package", func(o *CreateOptions) { o.Packages = []string{text} }, "want a file that ends with .deb"},
		{"no image", func(o *CreateOptions) { o.Images = []string{text} }, "not an archive (tar) of images"},
		{"no file", func(o *CreateOptions) { o.Images = []string{"./nowhere"} }, "no such file"},
		{"no name", func(o *CreateOptions) { o.Images = []string{"Nowhere"} }, "no such file, and no name of an image"},
		{"same name", func(o *CreateOptions) {
			o.Images = append(o.Images, "mcr.example/pause:3.10.1="+filepath.Join(o.Images[0], "cloud-node-manager"))
		}, "would both be registry.invalid/pause:3.10.1 in a mirror"},
		{"no chart", func(o *CreateOptions) { o.Charts = []string{text} }, "no archive of a chart (.tgz)"},
		{"unknown version", func(o *CreateOptions) { o.Kubernetes, o.Programs = []string{"1.99.0"}, dir },
			"v1.99.0/bin/linux/amd64/kubeadm: this kaz has no checksum of it: give it with --checksums"},
		{"other program", func(o *CreateOptions) {
			o.Kubernetes, o.Programs = []string{"1.36.3"}, dir
			for _, a := range []string{"amd64", "arm64"} {
				for _, p := range []string{"kubeadm", "kubelet", "kubectl"} {
					write(t, dir, "v1.36.3/bin/linux/"+a+"/"+p, "not this program")
				}
			}
		}, "it was changed"},
	} {
		o := good
		test.change(&o)
		out := t.TempDir()
		_, err := Create(t.Context(), filepath.Join(out, "b"), o)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v %v", test.name, left, err)
		}
	}
}

// TestPrograms checks that programs come from a server that is laid out as dl.k8s.io, by their checksums.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	var sums strings.Builder
	for _, p := range []string{"kubeadm", "kubelet", "kubectl"} {
		at := "v1.99.0/bin/linux/amd64/" + p
		write(t, dir, at, "the program "+p)
		sums.WriteString(strings.TrimPrefix(digestOf([]byte("the program "+p)), "sha256:") + "  " + at + "\n")
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	for _, from := range []string{dir, server.URL} {
		o := CreateOptions{Kubernetes: []string{"1.99.0"}, Programs: from, Checksums: sums.String(), Platforms: []string{"linux/amd64"},
			Key: newKey(t), Transport: http.DefaultTransport}
		b := open(t, create(t, o), o.Key)
		out := t.TempDir()
		if _, err := b.Unpack(t.Context(), out, Options{}); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(out, "v1.99.0/bin/linux/amd64/kubelet")); string(text) != "the program kubelet" {
			t.Errorf("%s: %q %v", from, text, err)
		}
	}
}

// TestKeys checks the kinds of keys, and that openssl verifies the signature.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	for kind, arguments := range map[string][]string{
		"ecdsa":   {"genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"},
		"sec1":    {"ecparam", "-name", "prime256v1", "-genkey"},
		"ed25519": {"genpkey", "-algorithm", "ED25519"},
	} {
		text, err := exec.CommandContext(t.Context(), "openssl", arguments...).Output()
		if err != nil {
			t.Fatal(err)
		}
		key, err := ParsePrivateKey(text)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		private, public := write(t, dir, kind+".key", string(text)), filepath.Join(dir, kind+".pub")
		run(t, "openssl", "pkey", "-in", private, "-pubout", "-out", public)
		text, err = os.ReadFile(public)
		if err != nil {
			t.Fatal(err)
		}
		verifier, err := ParsePublicKey(text)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := sign(key, []byte("text"))
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(verifier, []byte("text"), signature); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if err := verify(verifier, []byte("test"), signature); err == nil {
			t.Errorf("%s: another text has the same signature", kind)
		}
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(signature)))
		if err != nil {
			t.Fatal(err)
		}
		signed, said := write(t, dir, kind+".sig", string(raw)), write(t, dir, kind+".txt", "text")
		if _, isEd := key.Public().(ed25519.PublicKey); isEd {
			run(t, "openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", said, "-sigfile", signed)
		} else {
			run(t, "openssl", "dgst", "-sha256", "-verify", public, "-signature", signed, said)
		}
	}
	rsa := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY"})
	if _, err := ParsePrivateKey(rsa); err == nil || !strings.Contains(err.Error(), "want PRIVATE KEY or EC PRIVATE KEY") {
		t.Errorf("RSA: %v", err)
	}
	wrong, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(wrong)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})); err == nil {
		t.Error("a key of another curve was taken")
	}
}

func run(t *testing.T, program string, arguments ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
		t.Errorf("%s %v: %v\n%s", program, arguments, err, out)
	}
}

// TestCancelled checks that a context ends each copy, and leaves no bundle.
func TestCancelled(t *testing.T) {
	o := sources(t)
	file := create(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, file, o.Key.Public(), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
	dir := t.TempDir()
	if _, err := Create(ctx, filepath.Join(dir, "b"), o); !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v %v", left, err)
	}
}
