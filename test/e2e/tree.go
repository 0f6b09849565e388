package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// tree is the file system of a layer.
type tree struct{ entries map[string]entry }

type entry struct {
	header  tar.Header
	content []byte
}

func newTree() *tree { return &tree{entries: map[string]entry{}} }

func (t *tree) put(file string, h tar.Header, content []byte) {
	h.Name, h.Size, h.Format = file, int64(len(content)), tar.FormatPAX
	t.entries[file] = entry{header: h, content: content}
}

func (t *tree) file(file string, content []byte, mode int64) {
	t.put(file, tar.Header{Typeflag: tar.TypeReg, Mode: mode}, content)
}

// link adds a symbolic link unless there is a file with its name.
func (t *tree) link(file, target string) {
	if _, there := t.entries[file]; !there {
		t.put(file, tar.Header{Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}, nil)
	}
}

func (t *tree) dir(file string, mode int64) {
	t.put(file, tar.Header{Typeflag: tar.TypeDir, Mode: mode}, nil)
}

// copy adds the files of a Debian package.
func (t *tree) copy(from *tar.Reader) error {
	for {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		file := merged(h.Name)
		if h.Typeflag == tar.TypeDir || left(file) {
			continue // layer adds the directories
		}
		content, err := io.ReadAll(from)
		if err != nil {
			return err
		}
		linked := h.Linkname
		if h.Typeflag == tar.TypeLink {
			linked = merged(linked)
		}
		t.put(file, tar.Header{Typeflag: h.Typeflag, Linkname: linked, Mode: h.Mode}, content)
	}
}

// applets returns the names of the applets of the busybox in the tree.
func (t *tree) applets(ctx context.Context, busybox string) ([]string, error) {
	e, there := t.entries[busybox]
	if !there {
		return nil, fmt.Errorf("no %s", busybox)
	}
	dir, err := os.MkdirTemp("", "busybox-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "busybox")
	if err := os.WriteFile(file, e.content, 0o700); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, file, "--list").Output()
	return strings.Fields(string(out)), err
}

// layer returns the layer. Parents come before their children.
func (t *tree) layer() (v1.Layer, error) {
	for _, file := range slices.Collect(maps.Keys(t.entries)) {
		for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
			if _, there := t.entries[dir]; !there {
				t.dir(dir, 0o755)
			}
		}
	}
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, hard := range []bool{false, true} { // a hard link comes after its file
		for _, file := range slices.Sorted(maps.Keys(t.entries)) {
			e := t.entries[file]
			if (e.header.Typeflag == tar.TypeLink) != hard {
				continue
			}
			if err := w.WriteHeader(&e.header); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if _, err := w.Write(e.content); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil })
}
