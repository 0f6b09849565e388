package bundle

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// addImage adds an image or an index with all that it refers to.
func (w *writer) addImage(f found) error {
	if index, ok := f.content.(v1.ImageIndex); ok {
		f.content = w.onlyPlatforms(index)
	}
	digest, size, mediaType, err := w.collect(f.content, 0)
	if err != nil {
		return err
	}
	platforms, err := platformsOf(f.content)
	if err != nil {
		return err
	}
	for _, had := range w.manifest.Images {
		if had.Name == f.name && had.Digest == digest {
			return nil
		}
	}
	w.manifest.Images = append(w.manifest.Images,
		Image{Name: f.name, MediaType: string(mediaType), Digest: digest, Size: size, Platforms: platforms})
	return nil
}

// deepest is how far indexes may be in each other.
const deepest = 4

// described is what images and indexes have in common.
type described interface {
	partial.WithRawManifest
	MediaType() (types.MediaType, error)
}

// collect adds the parts of an image or of an index, and returns its digest, size and media type.
func (w *writer) collect(content any, depth int) (string, int64, types.MediaType, error) {
	var err error
	switch one := content.(type) {
	case v1.Image:
		err = w.collectImage(one)
	case v1.ImageIndex:
		err = w.collectIndex(one, depth)
	}
	if err != nil {
		return "", 0, "", err
	}
	document := content.(described)
	raw, err := document.RawManifest()
	if err != nil {
		return "", 0, "", err
	}
	mediaType, err := document.MediaType()
	return w.addBytes(raw), int64(len(raw)), mediaType, err
}

func (w *writer) collectImage(image v1.Image) error {
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	w.addBytes(config)
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			return err
		}
		size, err := l.Size()
		if err != nil {
			return err
		}
		w.add(digest.String(), size, l.Compressed)
	}
	return nil
}

func (w *writer) collectIndex(index v1.ImageIndex, depth int) error {
	if depth == deepest {
		return fmt.Errorf("more than %d indexes in each other", deepest)
	}
	list, err := index.IndexManifest()
	if err != nil {
		return err
	}
	if len(list.Manifests) == 0 {
		return fmt.Errorf("it has no image for %s", w.options.Platforms)
	}
	for _, m := range list.Manifests {
		var child any
		if m.MediaType.IsIndex() {
			child, err = index.ImageIndex(m.Digest)
		} else {
			child, err = index.Image(m.Digest)
		}
		if err != nil {
			return err
		}
		if _, _, _, err := w.collect(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// onlyPlatforms leaves out the images of an index that are for other platforms. An index of which nothing is left out keeps its digest.
func (w *writer) onlyPlatforms(index v1.ImageIndex) v1.ImageIndex {
	other := func(d v1.Descriptor) bool {
		return d.Platform != nil && !slices.Contains(w.options.Platforms, d.Platform.OS+"/"+d.Platform.Architecture)
	}
	list, err := index.IndexManifest()
	if err != nil || !slices.ContainsFunc(list.Manifests, other) {
		return index // collectIndex returns the error
	}
	return mutate.RemoveManifests(index, other)
}

// platformsOf are the platforms of an image or an index.
func platformsOf(content any) ([]string, error) {
	var all []string
	switch one := content.(type) {
	case v1.Image:
		config, err := one.ConfigFile()
		if err != nil {
			return nil, err
		}
		all = append(all, config.OS+"/"+config.Architecture)
	case v1.ImageIndex:
		list, err := one.IndexManifest()
		if err != nil {
			return nil, err
		}
		for _, m := range list.Manifests {
			if m.Platform != nil {
				all = append(all, m.Platform.OS+"/"+m.Platform.Architecture)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// addBytes adds a blob of which the bytes are known, and returns its digest.
func (w *writer) addBytes(text []byte) string {
	digest := digestOf(text)
	w.add(digest, int64(len(text)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil })
	return digest
}

// add adds a blob.
func (w *writer) add(digest string, size int64, open func() (io.ReadCloser, error)) {
	at := blobPath(digest)
	if _, had := w.parts[at]; !had {
		w.parts[at] = input{Part{at, digest, size}, open}
	}
}
