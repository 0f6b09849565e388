package definition

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Rendered are the objects of a chart of an extension.
type Rendered struct {
	Extension string `json:"extension"`
	Release   string `json:"release"`
	// AtBoot says that the first member applies them.
	AtBoot bool `json:"atBoot"`
	// Manifests are applied one after the other: the first ones have what the others need, such as CustomResourceDefinitions.
	Manifests []Packed `json:"manifests"`
}

// Packed is a text that is compressed in JSON, because Azure keeps at most 4 MiB of a deployment, and manifests are long.
type Packed string

// mostPacked bounds a text that is read.
const mostPacked = 64 << 20

// MarshalJSON compresses the text.
func (p Packed) MarshalJSON() ([]byte, error) {
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(w, string(p)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return json.Marshal(base64.StdEncoding.EncodeToString(zipped.Bytes()))
}

// UnmarshalJSON reads a compressed text.
func (p *Packed) UnmarshalJSON(text []byte) error {
	var encoded string
	if err := json.Unmarshal(text, &encoded); err != nil {
		return err
	}
	zipped, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("compressed text: %w", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return fmt.Errorf("compressed text: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, mostPacked+1))
	if err != nil {
		return fmt.Errorf("compressed text: %w", err)
	}
	if len(plain) > mostPacked {
		return fmt.Errorf("compressed text: has more than %d bytes", mostPacked)
	}
	*p = Packed(plain)
	return nil
}

// Renderer renders a chart for a version of Kubernetes. The path of a chart is relative to the file of its layer. An error about a
// field of the chart is a [FieldError].
type Renderer func(c Chart, layer, version string) ([]Packed, error)

// FieldError is an error about a field of a document.
type FieldError struct {
	Field string
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the error itself.
func (e *FieldError) Unwrap() error { return e.Err }

// charts checks that each chart of an extension has one source, and that each release exists once.
func (v *validator) charts(e Extension) {
	for i, c := range e.Spec.Charts {
		at := fmt.Sprintf("spec.charts[%d]", i)
		switch {
		case c.Path == "" && c.URL == "":
			v.add("Extension", e.Metadata.Name, at, "the release %s has no chart: want path, or url and sha256", c.ReleaseName)
		case c.Path != "" && c.URL != "":
			v.add("Extension", e.Metadata.Name, at+".url", "the chart has a path, too: want one of both")
		case c.URL != "" && c.SHA256 == "":
			v.add("Extension", e.Metadata.Name, at+".sha256", "missing: want the SHA-256 of the archive at the URL")
		}
		for _, other := range v.d.Extensions {
			for j, had := range other.Spec.Charts {
				before := other.Metadata.Name < e.Metadata.Name || other.Metadata.Name == e.Metadata.Name && j < i
				if before && had.ReleaseName == c.ReleaseName && had.Namespace == c.Namespace {
					v.add("Extension", e.Metadata.Name, at+".releaseName", "Extension %s has this release in namespace %s, too: want "+
						"another name", other.Metadata.Name, c.Namespace)
				}
			}
		}
	}
}

var errNoCharts = errors.New("charts are not rendered here: want manifests")

// render renders the charts of all extensions.
func (v *validator) render(render Renderer) {
	for _, e := range v.d.Extensions {
		i := slices.IndexFunc(v.docs, func(d *document) bool { return d.kind == "Extension" && d.name == e.Metadata.Name })
		for j, c := range e.Spec.Charts {
			all, err := []Packed(nil), errNoCharts
			if render != nil {
				all, err = render(c, v.docs[i].tree.at.File, v.d.Cluster.Spec.Kubernetes.Version)
			}
			if err != nil {
				path := fmt.Sprintf("spec.charts[%d]", j)
				if field, ok := errors.AsType[*FieldError](err); ok {
					path, err = path+"."+field.Field, field.Err
				}
				v.add("Extension", e.Metadata.Name, path, "release %s: %s", c.ReleaseName, err)
				continue
			}
			v.d.Rendered = append(v.d.Rendered, Rendered{e.Metadata.Name, c.ReleaseName, c.AtBoot, all})
		}
	}
}
