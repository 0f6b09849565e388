// Package image makes the container images that a local cluster has without a registry. The images are for the sandboxes of
// pods, a web server to try Services with, and client tools. Layer L4.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // the source of the program in the images
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

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
	Web   = "kaz.local/web:1"   // serves at :8080 by default
	Tools = "kaz.local/tools:1" // waits for commands in the container
)

// entrypoints returns the command of each image.
func entrypoints() map[string][]string {
	return map[string][]string{Pause: {"/box", "pause"}, Web: {"/box", "web"}, Tools: {"/box", "sleep"}}
}

// CoreDNS is the name of the image of the cluster's name server.
const CoreDNS = "kaz.local/coredns:1"

// imageUser is the unprivileged user of the images.
const imageUser = "65534:65534"

// Options say how images are made. The zero value makes them for this machine, in the user's cache directory.
type Options struct {
	Dir string // kaz/images in the user's cache directory if empty
	Go  string // the go command; looked up in PATH if empty
	// Prebuilt is a folder with the result of [Box] on another machine, with the version of Go that built this program. Images of
	// it need no go command. Empty means none.
	Prebuilt string
	// Arch is the processor architecture of the program, such as arm64; that of this one if empty.
	Arch string
	// Trimmed leaves the paths of this machine out of the program, so that each machine builds the same bytes.
	Trimmed bool
}

// Make writes an archive with all images and returns its name. It reuses an archive from the same source.
func Make(ctx context.Context, o Options) (string, error) {
	file, err := o.keep("images-", ".tar", func(work string) (string, error) { return o.makeIn(ctx, work) })
	if err != nil {
		return "", fmt.Errorf("make images: %w", err)
	}
	return file, nil
}

// Box compiles the program of the images and returns its path. It reuses a program from the same source.
func Box(ctx context.Context, o Options) (string, error) {
	if file := o.prebuilt(); file != "" {
		return file, nil
	}
	return o.keep("box-", "", func(work string) (string, error) { return o.compile(ctx, work) })
}

// prebuilt returns the file of the prebuilt program, "" if there is none.
func (o Options) prebuilt() string {
	file := filepath.Join(o.Prebuilt, "box-"+o.fingerprint())
	if _, err := os.Stat(file); o.Prebuilt == "" || err != nil {
		return ""
	}
	return file
}

// keep returns the file in the directory that is called by a prefix, the fingerprint and a suffix. If it is not there, a function
// makes it in another directory and returns its path.
func (o Options) keep(prefix, suffix string, make func(work string) (string, error)) (string, error) {
	if o.Dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		o.Dir = filepath.Join(user, "kaz", "images")
	}
	file := filepath.Join(o.Dir, prefix+o.fingerprint()+suffix)
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(o.Dir, ".making-*")
	if err != nil {
		return "", err
	}
	made, err := make(work)
	if err == nil {
		err = os.Rename(made, file)
	}
	return file, errors.Join(err, os.RemoveAll(work))
}

func (o Options) makeIn(ctx context.Context, work string) (string, error) {
	box := o.prebuilt()
	if box == "" {
		var err error
		if box, err = o.compile(ctx, work); err != nil {
			return "", err
		}
	}
	program, err := os.ReadFile(box)
	if err != nil {
		return "", err
	}
	images, err := all(program)
	if err != nil {
		return "", err
	}
	archive := filepath.Join(work, "images.tar")
	return archive, tarball.MultiRefWriteToFile(archive, images)
}

func (o Options) arch() string { return cmp.Or(o.Arch, runtime.GOARCH) }

// fingerprint identifies the source of the program, its compiler and its architecture.
func (o Options) fingerprint() string {
	sum := sha256.Sum256(append([]byte(runtime.Version()+o.arch()), source...))
	return hex.EncodeToString(sum[:6])
}

// compile compiles the program of the images into a directory.
func (o Options) compile(ctx context.Context, work string) (string, error) {
	for file, text := range map[string]string{"main.go": string(source), "go.mod": "module box\n\ngo 1.26.0\n"} {
		if err := os.WriteFile(filepath.Join(work, file), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	box := filepath.Join(work, "box")
	// Without -trimpath the build reuses the compiled standard library.
	cmd := exec.CommandContext(ctx, cmp.Or(o.Go, "go"), "build", "-trimpath="+strconv.FormatBool(o.Trimmed), "-buildvcs=false",
		"-ldflags=-s -w", "-o", box, ".")
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOTOOLCHAIN=local", "GOARCH="+o.arch())
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile: %w: %s", err, out)
	}
	return box, nil
}

// all returns the images of a program. They share one layer.
func all(program []byte) (map[name.Reference]v1.Image, error) {
	layer, err := layerOf("box", program)
	if err != nil {
		return nil, err
	}
	images := map[name.Reference]v1.Image{}
	for n, command := range entrypoints() {
		ref, err := name.ParseReference(n)
		if err != nil {
			return nil, err
		}
		if images[ref], err = withCommand(layer, command); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// Wrap writes an archive with an image of one statically linked program into dir and returns its name. It reuses an archive
// of the same program path, which contains the version.
func Wrap(dir, reference, program string) (string, error) {
	sum := sha256.Sum256([]byte(reference + "\x00" + program))
	file := filepath.Join(dir, filepath.Base(program)+"-"+hex.EncodeToString(sum[:6])+".tar")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := wrap(file, reference, program); err != nil {
		return "", fmt.Errorf("make image %s: %w", reference, err)
	}
	return file, nil
}

func wrap(file, reference, program string) error {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	layer, err := layerOf(filepath.Base(program), text)
	if err != nil {
		return err
	}
	image, err := withCommand(layer, []string{"/" + filepath.Base(program)})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(file), ".making-*")
	if err != nil {
		return err
	}
	err = errors.Join(tarball.Write(ref, image, part), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part.Name()))
	}
	return nil
}

// layerOf returns a layer with one program.
func layerOf(file string, program []byte) (v1.Layer, error) {
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	err := w.WriteHeader(&tar.Header{Name: file, Mode: 0o755, Size: int64(len(program)), Format: tar.FormatPAX})
	if err == nil {
		_, err = w.Write(program)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil })
}

// withCommand returns an image with a layer and a command.
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
	config.Config = v1.Config{Entrypoint: command, User: imageUser}
	return mutate.ConfigFile(image, config)
}
