package bundle

import (
	"encoding/json"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// mostDocument is the size of the greatest manifest or configuration of an image.
const mostDocument = 8 << 20

// blobs is where manifests, configurations and layers of images are, by digest.
type blobs interface {
	openBlob(digest string) (io.ReadCloser, int64, error)
}

// readBlob reads a small blob.
func readBlob(from blobs, digest string) ([]byte, error) {
	r, size, err := from.openBlob(digest)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > mostDocument {
		return nil, fmt.Errorf("%s has %d bytes: want a manifest of at most %d", digest, size, mostDocument)
	}
	return io.ReadAll(r)
}

// document is the manifest of an image or of an index, among blobs.
type document struct {
	from blobs
	raw  []byte
	of   v1.Descriptor
}

func documentAt(from blobs, of v1.Descriptor) (document, error) {
	raw, err := readBlob(from, of.Digest.String())
	return document{from, raw, of}, err
}

func (d document) MediaType() (types.MediaType, error) { return d.of.MediaType, nil }
func (d document) RawManifest() ([]byte, error)        { return d.raw, nil }

// imageAt is the image of which a descriptor is the manifest.
func imageAt(from blobs, of v1.Descriptor) (v1.Image, error) {
	d, err := documentAt(from, of)
	if err != nil {
		return nil, err
	}
	core := imageCore{document: d}
	if err := json.Unmarshal(d.raw, &core.manifest); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", of.Digest, err)
	}
	return partial.CompressedToImage(core)
}

type imageCore struct {
	document
	manifest v1.Manifest
}

func (i imageCore) RawConfigFile() ([]byte, error) {
	return readBlob(i.from, i.manifest.Config.Digest.String())
}

func (i imageCore) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if digest == i.manifest.Config.Digest {
		return layer{i.from, i.manifest.Config}, nil
	}
	for _, l := range i.manifest.Layers {
		if l.Digest == digest {
			return layer{i.from, l}, nil
		}
	}
	return nil, fmt.Errorf("image %s has no layer %s", i.of.Digest, digest)
}

type layer struct {
	from blobs
	of   v1.Descriptor
}

func (l layer) Digest() (v1.Hash, error)            { return l.of.Digest, nil }
func (l layer) Size() (int64, error)                { return l.of.Size, nil }
func (l layer) MediaType() (types.MediaType, error) { return l.of.MediaType, nil }
func (l layer) Descriptor() (*v1.Descriptor, error) { return &l.of, nil }
func (l layer) Compressed() (io.ReadCloser, error) {
	r, _, err := l.from.openBlob(l.of.Digest.String())
	return r, err
}

// indexAt is the index of images of which a descriptor is the manifest.
func indexAt(from blobs, of v1.Descriptor) (v1.ImageIndex, error) {
	d, err := documentAt(from, of)
	if err != nil {
		return nil, err
	}
	index := imageIndex{document: d}
	if err := json.Unmarshal(d.raw, &index.manifest); err != nil {
		return nil, fmt.Errorf("index %s: %w", of.Digest, err)
	}
	return index, nil
}

type imageIndex struct {
	document
	manifest v1.IndexManifest
}

func (i imageIndex) Digest() (v1.Hash, error)                  { return i.of.Digest, nil }
func (i imageIndex) Size() (int64, error)                      { return int64(len(i.raw)), nil }
func (i imageIndex) IndexManifest() (*v1.IndexManifest, error) { return i.manifest.DeepCopy(), nil }
func (i imageIndex) Image(digest v1.Hash) (v1.Image, error) {
	of, err := i.child(digest)
	if err != nil {
		return nil, err
	}
	return imageAt(i.from, of)
}

func (i imageIndex) ImageIndex(digest v1.Hash) (v1.ImageIndex, error) {
	of, err := i.child(digest)
	if err != nil {
		return nil, err
	}
	return indexAt(i.from, of)
}

func (i imageIndex) child(digest v1.Hash) (v1.Descriptor, error) {
	for _, m := range i.manifest.Manifests {
		if m.Digest == digest {
			return m, nil
		}
	}
	return v1.Descriptor{}, fmt.Errorf("index %s has no manifest %s", i.of.Digest, digest)
}
