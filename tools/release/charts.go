package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// Media types of a chart in a registry.
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// writeCharts packages the charts with the version of the release, and writes an archive with an OCI layout of each.
func (r *release) writeCharts(ctx context.Context) error {
	charts, err := filepath.Glob(filepath.Join(r.source, "deploy", "charts", "*"))
	if err != nil {
		return err
	}
	packaged := filepath.Join(r.work, "charts")
	for _, chart := range append(charts, filepath.Join(r.source, "deploy", "chart")) {
		if err := r.command(ctx, nil, r.tool("helm"), "package", chart, "--destination", packaged,
			"--version", strings.TrimPrefix(r.version, "v"), "--app-version", r.version); err != nil {
			return fmt.Errorf("%s: %w", chart, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(packaged, "*.tgz"))
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := r.writeChart(file); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

// writeChart writes the archive of a chart with the date of the commit, and its OCI layout.
func (r *release) writeChart(packaged string) error {
	text, err := os.ReadFile(packaged)
	if err != nil {
		return err
	}
	dated, description, err := r.dateChart(text)
	if err != nil {
		return err
	}
	file := filepath.Join(r.out, filepath.Base(packaged))
	if err := os.WriteFile(file, dated, 0o644); err != nil {
		return err
	}
	folder := strings.TrimSuffix(packaged, ".tgz")
	if err := writeChartLayout(folder, dated, description); err != nil {
		return err
	}
	return r.writeTar(strings.TrimSuffix(file, ".tgz")+"_oci.tar", folder, "", false)
}

// dateChart returns a chart's archive, with the date of the commit for all files, and the chart's description, Chart.yaml.
func (r *release) dateChart(packaged []byte) (dated, description []byte, err error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(packaged))
	if err != nil {
		return nil, nil, err
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for content := tar.NewReader(unzipped); ; {
		h, err := content.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		text, err := io.ReadAll(content)
		if err != nil {
			return nil, nil, err
		}
		if _, name, _ := strings.Cut(h.Name, "/"); name == "Chart.yaml" {
			description = text
		}
		err = w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: h.Name, Mode: 0o644, Size: h.Size, ModTime: r.date, Format: tar.FormatPAX,
		})
		if err != nil {
			return nil, nil, err
		}
		if _, err := w.Write(text); err != nil {
			return nil, nil, err
		}
	}
	err = errors.Join(w.Close(), zipped.Close())
	return out.Bytes(), description, err
}

// writeChartLayout writes an OCI layout with a chart, as registries have it.
func writeChartLayout(folder string, chart, description []byte) error {
	config, err := yaml.YAMLToJSON(description)
	if err != nil {
		return fmt.Errorf("file Chart.yaml: %w", err)
	}
	var metadata struct{ Name, Version string }
	if err := json.Unmarshal(config, &metadata); err != nil {
		return fmt.Errorf("file Chart.yaml: %w", err)
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: map[string]string{
		"org.opencontainers.image.title": metadata.Name, "org.opencontainers.image.version": metadata.Version,
	}}
	if manifest.Config, err = writeBlob(path, config, chartConfig); err != nil {
		return err
	}
	content, err := writeBlob(path, chart, chartContent)
	if err != nil {
		return err
	}
	manifest.Layers = []v1.Descriptor{content}
	text, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	described, err := writeBlob(path, text, types.OCIManifestSchema1)
	if err != nil {
		return err
	}
	described.Annotations = map[string]string{"org.opencontainers.image.ref.name": metadata.Version}
	return path.AppendDescriptor(described)
}

// writeBlob writes a blob into a layout.
func writeBlob(path layout.Path, content []byte, kind types.MediaType) (v1.Descriptor, error) {
	hash, size, err := v1.SHA256(bytes.NewReader(content))
	if err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{MediaType: kind, Size: size, Digest: hash}, path.WriteBlob(hash, io.NopCloser(bytes.NewReader(content)))
}
