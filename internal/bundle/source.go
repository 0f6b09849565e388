package bundle

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// found is an image of a source: content is a [v1.Image] or a [v1.ImageIndex].
type found struct {
	name    string
	content any
}

// containerdName is the annotation with the full name of an image. Layouts of kaz's own images have it.
const containerdName = "io.containerd.image.name"

// imagesOf returns the images of a source: NAME of a registry, a path, or NAME=PATH. A path is a folder with an OCI layout, a folder with
// such folders, or an archive: an OCI layout in a tar archive, or what docker save writes.
func (w *writer) imagesOf(source string, options []remote.Option) ([]found, error) {
	given, file, named := strings.Cut(source, "=")
	if !named {
		given, file = "", source
	}
	info, err := os.Stat(file)
	switch {
	case err != nil && named:
		return nil, err
	case err != nil && strings.ContainsAny(source[:1], "./"):
		return nil, err
	case err != nil:
		return pulled(source, options)
	case info.IsDir():
		return w.folder(given, file)
	default:
		return w.archive(given, file)
	}
}

// pulled opens an image in a registry.
func pulled(source string, options []remote.Option) ([]found, error) {
	reference, err := name.NewTag(source, name.StrictValidation)
	if err != nil {
		return nil, fmt.Errorf("no such file, and no name of an image such as registry.k8s.io/pause:3.10.1: %w", err)
	}
	d, err := remote.Get(reference, options...)
	if err != nil {
		return nil, err
	}
	if d.MediaType.IsIndex() {
		index, err := d.ImageIndex()
		return []found{{source, index}}, err
	}
	image, err := d.Image()
	return []found{{source, image}}, err
}

// folder returns the images of a folder with an OCI layout, or of folders with layouts in it.
func (w *writer) folder(given, dir string) ([]found, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, root)
	if _, err := root.Stat(indexPath); err == nil {
		return layoutImages(given, layoutFolder{root})
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []found
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), indexPath)); err != nil {
			continue
		}
		images, err := w.folder(given, filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		all = append(all, images...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("neither it nor a folder in it has %s of an OCI layout", indexPath)
	}
	return all, nil
}

// archive returns the images of a tar archive.
func (w *writer) archive(given, file string) ([]found, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	w.closers = append(w.closers, f)
	a, err := readArchive(f)
	if err != nil {
		return nil, err
	}
	if _, isLayout := a.files[indexPath]; isLayout {
		return layoutImages(given, a)
	}
	return dockerImages(given, file)
}

// layout is an OCI image layout.
type layout interface {
	blobs
	open(file string) (io.ReadCloser, int64, error)
}

// layoutFolder is a layout in a folder.
type layoutFolder struct{ root *os.Root }

func (l layoutFolder) open(file string) (io.ReadCloser, int64, error) {
	f, err := l.root.Open(filepath.FromSlash(file))
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", file)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

func (l layoutFolder) openBlob(digest string) (io.ReadCloser, int64, error) {
	return openChecked(l, digest)
}

// layoutArchive is a layout in a tar archive, which is read in place.
type layoutArchive struct {
	file  *os.File
	files map[string]section
}

// readArchive finds the files of an archive.
func readArchive(f *os.File) (layoutArchive, error) {
	a := layoutArchive{f, map[string]section{}}
	archive := tar.NewReader(f)
	for len(a.files) <= mostParts {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return a, nil
		}
		if err != nil {
			return a, fmt.Errorf("not an archive (tar) of images: %w", err)
		}
		offset, err := f.Seek(0, io.SeekCurrent)
		if err != nil {
			return a, err
		}
		if h.Typeflag == tar.TypeReg {
			file := path.Clean(h.Name)
			a.files[file] = section{Part{Path: file, Size: h.Size}, offset}
		}
	}
	return a, fmt.Errorf("it has more than %d files", mostParts)
}

func (l layoutArchive) open(file string) (io.ReadCloser, int64, error) {
	s, ok := l.files[file]
	if !ok {
		return nil, 0, fmt.Errorf("it has no %s", file)
	}
	return io.NopCloser(io.NewSectionReader(l.file, s.offset, s.Size)), s.Size, nil
}

func (l layoutArchive) openBlob(digest string) (io.ReadCloser, int64, error) {
	return openChecked(l, digest)
}

// openChecked opens a blob of a layout. Its end is an error if the blob has another digest.
func openChecked(l layout, digest string) (io.ReadCloser, int64, error) {
	if !digestForm.MatchString(digest) {
		return nil, 0, fmt.Errorf("digest %q: want sha256: and 64 small hexadecimal digits", digest)
	}
	file := blobPath(digest)
	r, size, err := l.open(file)
	if err != nil {
		return nil, 0, err
	}
	return struct {
		io.Reader
		io.Closer
	}{newChecked(r, Part{file, digest, size}), r}, size, nil
}

// layoutImages returns the images of a layout, which have their names in annotations, or the given name if there is one.
func layoutImages(given string, l layout) ([]found, error) {
	r, size, err := l.open(indexPath)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > mostDocument {
		return nil, fmt.Errorf("%s has %d bytes: want at most %d", indexPath, size, mostDocument)
	}
	var index v1.IndexManifest
	if err := json.NewDecoder(r).Decode(&index); err != nil {
		return nil, fmt.Errorf("%s: %w", indexPath, err)
	}
	if given != "" && len(index.Manifests) != 1 {
		return nil, fmt.Errorf("it has %d images: want one for the name %s", len(index.Manifests), given)
	}
	var all []found
	for _, m := range index.Manifests {
		label := given
		if label == "" {
			label = m.Annotations[containerdName]
		}
		if label == "" {
			return nil, fmt.Errorf("%s: the image %s has no annotation %s: give its name, as in NAME=PATH",
				indexPath, m.Digest, containerdName)
		}
		content, err := contentAt(l, m)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", label, err)
		}
		all = append(all, found{label, content})
	}
	return all, nil
}

// contentAt is the image or the index at a descriptor.
func contentAt(from blobs, d v1.Descriptor) (any, error) {
	if d.MediaType.IsIndex() {
		return indexAt(from, d)
	}
	if d.MediaType != types.OCIManifestSchema1 && d.MediaType != types.DockerManifestSchema2 {
		return nil, fmt.Errorf("media type %q: want an image or an index of images", d.MediaType)
	}
	return imageAt(from, d)
}

// dockerImages returns the images of an archive as docker save writes it.
func dockerImages(given, file string) ([]found, error) {
	list, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) })
	if err != nil {
		return nil, fmt.Errorf("not an archive of images: neither %s nor manifest.json: %w", indexPath, err)
	}
	if given != "" && len(list) != 1 {
		return nil, fmt.Errorf("it has %d images: want one for the name %s", len(list), given)
	}
	var all []found
	for _, one := range list {
		for _, label := range one.RepoTags {
			tag, err := name.NewTag(label)
			if err != nil {
				return nil, err
			}
			image, err := tarball.ImageFromPath(file, &tag)
			if err != nil {
				return nil, fmt.Errorf("image %s: %w", label, err)
			}
			all = append(all, found{label, image})
			if given != "" {
				return []found{{given, image}}, nil
			}
		}
		if len(one.RepoTags) == 0 {
			return nil, errors.New("an image of it has no name: save it by its name")
		}
	}
	return all, nil
}
