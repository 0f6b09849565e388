package image

import (
	"archive/tar"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Every image is in the archive, runs a command of box as an unprivileged user, and has the shared layer.
func TestMake(t *testing.T) {
	dir := t.TempDir()
	file, err := Make(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	layers := map[string]bool{}
	for reference, want := range entrypoints() {
		tag, err := name.NewTag(reference)
		if err != nil {
			t.Fatal(err)
		}
		image, err := tarball.ImageFromPath(file, &tag)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, config.Config.Entrypoint); diff != "" || config.Config.User != imageUser || config.OS != "linux" {
			t.Errorf("%s: %s, user %s, %s", reference, diff, config.Config.User, config.OS)
		}
		content, err := image.Layers()
		if err != nil || len(content) != 1 {
			t.Fatal(len(content), err)
		}
		digest, err := content[0].Digest()
		if err != nil {
			t.Fatal(err)
		}
		layers[digest.String()] = true
	}
	if len(layers) != 1 {
		t.Errorf("%d layers", len(layers))
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	// An existing archive is reused without the go command.
	again, err := Make(t.Context(), Options{Dir: dir, Go: "/nonexistent/go"})
	if err != nil || again != file {
		t.Fatal(again, err)
	}
	after, err := os.Stat(file)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("made again: %v", err)
	}
}

// TestPrebuiltBox checks that images are made of the program that another machine compiled, without the go command, and that a
// program for another architecture is compiled for it without the paths of this machine.
func TestPrebuiltBox(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "go")
	text := "#!/bin/sh\nwhile [ \"$1\" != -o ]; do flags=\"$flags $1\"; shift; done; echo \"$GOARCH $flags\" > \"$2\"\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	prebuilt := filepath.Join(dir, "prebuilt")
	for arch, want := range map[string]string{"": runtime.GOARCH + " ", "mips64": "mips64 "} {
		box, err := Box(t.Context(), Options{Dir: prebuilt, Go: script, Arch: arch, Trimmed: true})
		if err != nil {
			t.Fatal(err)
		}
		program, err := os.ReadFile(box)
		if got := string(program); err != nil || !strings.HasPrefix(got, want) || !strings.Contains(got, " -trimpath=true ") {
			t.Errorf("%q, %v", got, err)
		}
		again, err := Box(t.Context(), Options{Dir: t.TempDir(), Prebuilt: prebuilt, Go: "/nonexistent/go", Arch: arch})
		if err != nil || again != box {
			t.Errorf("%s, %v, want %s", again, err, box)
		}
	}
	if _, err := Make(t.Context(), Options{Dir: t.TempDir(), Prebuilt: prebuilt, Go: "/nonexistent/go"}); err != nil {
		t.Error(err)
	}
	if _, err := Make(t.Context(), Options{Dir: t.TempDir(), Prebuilt: dir, Go: "/nonexistent/go"}); err == nil {
		t.Error("images are made of nothing")
	}
}

// What fails says what the compiler said, and leaves nothing.
func TestMakeFails(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "go")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho no compiler today; exit 2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(dir, "cache")
	if _, err := Make(t.Context(), Options{Dir: cache, Go: script}); err == nil || !strings.Contains(err.Error(), "no compiler today") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Make(ctx, Options{Dir: cache, Go: script}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(cache, "*")); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	var missing *exec.Error
	if _, err := Make(t.Context(), Options{Dir: cache, Go: "no-such-go"}); !errors.As(err, &missing) {
		t.Error(err)
	}
}

// An image of programs has their files, the links to them, and their directories.
func TestProgram(t *testing.T) {
	file, to := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(file, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := Program{References: []string{"localhost/kaz/one:devel", "localhost/kaz/two:devel"}, Files: map[string]string{"usr/bin/one": file},
		Links: map[string]string{"usr/local/bin/two": "../../bin/one"}, Entrypoint: []string{"/usr/local/bin/two"}}
	if err := p.Write(to); err != nil {
		t.Fatal(err)
	}
	for _, reference := range p.References {
		tag, err := name.NewTag(reference)
		if err != nil {
			t.Fatal(err)
		}
		built, err := tarball.ImageFromPath(to, &tag)
		if err != nil {
			t.Fatal(err)
		}
		layers, err := built.Layers()
		if err != nil {
			t.Fatal(err)
		}
		content, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for r := tar.NewReader(content); ; {
			h, err := r.Next()
			if err != nil {
				break
			}
			found[h.Name] = h.Linkname
		}
		want := map[string]string{"tmp/": "", "usr/": "", "usr/bin/": "", "usr/local/": "", "usr/local/bin/": "", "usr/bin/one": "",
			"usr/local/bin/two": "../../bin/one"}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("%s: %s", reference, diff)
		}
	}
}
