// Package image makes the few container images that a local cluster has from the start, without any registry: what
// pods' sandboxes need, a web server to try Services with, and tools to ask it. Layer L4.
package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the source of what is in the images
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

//go:embed box/main.go
var source []byte

// Names of the images.
const (
	Pause = "kaz.local/pause:1"
	Web   = "kaz.local/web:1"   // serves at :8080 unless told otherwise
	Tools = "kaz.local/tools:1" // waits, to run box in
)

// entrypoints are the images and what runs in them.
func entrypoints() map[string][]string {
	return map[string][]string{Pause: {"/box", "pause"}, Web: {"/box", "web"}, Tools: {"/box", "sleep"}}
}

// nobody is the user that images run as.
const nobody = "65534:65534"

// Make writes one archive with all images into dir, unless what is there was made from the same source, and returns
// its name. goCommand is the go command that compiles what is in them; its cache is the user's.
func Make(ctx context.Context, dir, goCommand string) (string, error) {
	sum := sha256.Sum256(append([]byte(runtime.Version()+runtime.GOARCH), source...))
	file := filepath.Join(dir, "images-"+hex.EncodeToString(sum[:6])+".tar")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(dir, ".making-*")
	if err != nil {
		return "", err
	}
	err = makeIn(ctx, work, goCommand)
	if err == nil {
		err = os.Rename(filepath.Join(work, "images.tar"), file)
	}
	if err = errors.Join(err, os.RemoveAll(work)); err != nil {
		return "", fmt.Errorf("make images: %w", err)
	}
	return file, nil
}

func makeIn(ctx context.Context, work, goCommand string) error {
	for file, text := range map[string]string{"main.go": string(source), "go.mod": "module box\n\ngo 1.26.0\n"} {
		if err := os.WriteFile(filepath.Join(work, file), []byte(text), 0o600); err != nil {
			return err
		}
	}
	// Without -trimpath the standard library is the one that is compiled already.
	cmd := exec.CommandContext(ctx, goCommand, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", "box", ".")
	cmd.Dir, cmd.Env = work, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile: %w: %s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(work, "box"))
	if err != nil {
		return err
	}
	images, err := all(program)
	if err != nil {
		return err
	}
	return tarball.MultiRefWriteToFile(filepath.Join(work, "images.tar"), images)
}

// all are the images around a program: one layer, which they share.
func all(program []byte) (map[name.Reference]v1.Image, error) {
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	err := w.WriteHeader(&tar.Header{Name: "box", Mode: 0o755, Size: int64(len(program)), Format: tar.FormatPAX})
	if err == nil {
		_, err = w.Write(program)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	images := map[name.Reference]v1.Image{}
	for n, command := range entrypoints() {
		ref, err := name.ParseReference(n)
		if err != nil {
			return nil, err
		}
		image, err := withCommand(layer, command)
		if err != nil {
			return nil, err
		}
		images[ref] = image
	}
	return images, nil
}

func withCommand(layer v1.Layer, command []string) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = runtime.GOARCH, "linux"
	config.Config = v1.Config{Entrypoint: command, User: nobody}
	return mutate.ConfigFile(image, config)
}
