package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// The media types of a chart in a registry, as Helm pushes and pulls it.
const (
	chartConfigType = "application/vnd.cncf.helm.config.v1+json"
	chartLayerType  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// mostChart is the size of the greatest archive of a chart.
const mostChart = 32 << 20

// addChart adds a chart of a folder or of an archive (.tgz), as a file and as an artifact for registries.
func (w *writer) addChart(from string) error {
	loaded, packed, err := readChart(from)
	if err != nil {
		return err
	}
	if err := loaded.Validate(); err != nil {
		return err
	}
	config, err := json.Marshal(loaded.Metadata)
	if err != nil {
		return err
	}
	c := Chart{Name: loaded.Metadata.Name, Version: loaded.Metadata.Version, AppVersion: loaded.Metadata.AppVersion,
		Archive: w.addBytes(packed)}
	type descriptor struct {
		MediaType string `json:"mediaType"`
		Digest    string `json:"digest"`
		Size      int    `json:"size"`
	}
	manifest, err := json.Marshal(struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Config        descriptor        `json:"config"`
		Layers        []descriptor      `json:"layers"`
		Annotations   map[string]string `json:"annotations"`
	}{2, ociManifest, descriptor{chartConfigType, w.addBytes(config), len(config)},
		[]descriptor{{chartLayerType, c.Archive, len(packed)}},
		map[string]string{"org.opencontainers.image.title": c.Name, "org.opencontainers.image.version": c.Version}})
	if err != nil {
		return err
	}
	c.Digest, c.Size = w.addBytes(manifest), int64(len(manifest))
	w.manifest.Charts = append(w.manifest.Charts, c)
	return nil
}

const ociManifest = "application/vnd.oci.image.manifest.v1+json"

// readChart reads a chart, and returns its archive, too.
func readChart(from string) (*chart.Chart, []byte, error) {
	info, err := os.Stat(from)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		loaded, err := loader.LoadDir(from)
		if err != nil {
			return nil, nil, err
		}
		packed, err := pack(loaded)
		return loaded, packed, err
	}
	if info.Size() > mostChart {
		return nil, nil, fmt.Errorf("it has %d bytes: want at most %d", info.Size(), mostChart)
	}
	packed, err := os.ReadFile(from)
	if err != nil {
		return nil, nil, err
	}
	files, err := archive.LoadArchiveFiles(bytes.NewReader(packed))
	if err != nil {
		return nil, nil, fmt.Errorf("no archive of a chart (.tgz): %w", err)
	}
	loaded, err := loader.LoadFiles(files)
	return loaded, packed, err
}

// pack makes the archive of a chart. The same files give the same bytes.
func pack(c *chart.Chart) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	w := tar.NewWriter(zipped)
	files := slices.Clone(c.Raw)
	slices.SortFunc(files, func(a, b *common.File) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(c.Metadata.Name, f.Name), Mode: 0o644, Size: int64(len(f.Data))}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err := zipped.Close()
	return packed.Bytes(), err
}
