package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Program is a container image with files of this machine. Its processes are root's.
type Program struct {
	References []string
	// Files are the files, by their path in the image.
	Files map[string]string
	// Links are symbolic links, by their path in the image.
	Links      map[string]string
	Entrypoint []string
}

// search is where the processes of an image find programs.
const search = "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Write writes the image into an archive.
func (p Program) Write(file string) error {
	layer, err := p.layer()
	if err != nil {
		return err
	}
	built, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	config, err := built.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = runtime.GOARCH, "linux"
	config.Config = v1.Config{Entrypoint: p.Entrypoint, Env: []string{search}}
	if built, err = mutate.ConfigFile(built, config); err != nil {
		return err
	}
	all := map[name.Reference]v1.Image{}
	for _, text := range p.References {
		reference, err := name.ParseReference(text)
		if err != nil {
			return err
		}
		all[reference] = built
	}
	return tarball.MultiRefWriteToFile(file, all)
}

// layer returns the layer with the files. They are not compressed: the layer never leaves this machine.
func (p Program) layer() (v1.Layer, error) {
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	if err := p.writeDirs(w); err != nil {
		return nil, err
	}
	for _, inside := range slices.Sorted(maps.Keys(p.Files)) {
		content, err := os.ReadFile(p.Files[inside])
		if err != nil {
			return nil, err
		}
		err = w.WriteHeader(&tar.Header{Name: inside, Mode: 0o755, Size: int64(len(content)), Format: tar.FormatPAX})
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, inside := range slices.Sorted(maps.Keys(p.Links)) {
		if err := w.WriteHeader(&tar.Header{Name: inside, Typeflag: tar.TypeSymlink, Linkname: p.Links[inside], Mode: 0o777,
			Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressionLevel(0))
}

// writeDirs writes the directories of the files, and one for temporary files.
func (p Program) writeDirs(w *tar.Writer) error {
	dirs := map[string]int64{"tmp": 0o1777}
	for _, inside := range slices.Concat(slices.Collect(maps.Keys(p.Files)), slices.Collect(maps.Keys(p.Links))) {
		for dir := path.Dir(inside); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = 0o755
		}
	}
	var problems []error
	for _, dir := range slices.SortedFunc(maps.Keys(dirs), strings.Compare) {
		problems = append(problems,
			w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: dirs[dir], Format: tar.FormatPAX}))
	}
	return errors.Join(problems...)
}
