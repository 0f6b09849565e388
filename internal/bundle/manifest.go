// Package bundle makes and loads bundles: one signed file with container images, Helm charts, programs and machine packages, from which
// a network without a way out is installed. A bundle is a tar archive without compression:
//
//	bundle.json          the manifest: what the bundle has, with the digest and the size of each part
//	bundle.json.sig      the signature of the manifest, in base64
//	oci-layout, index.json, blobs/sha256/...    the parts, as an OCI image layout
//
// Nothing of a bundle is used before its signature and all its parts are verified. Layer L3.
package bundle

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Format is the format of manifests that this package reads and writes.
const Format = "kaz.bundle/v1"

// The parts of a bundle that are no blobs.
const (
	manifestPath  = "bundle.json"
	signaturePath = manifestPath + ".sig"
	layoutPath    = "oci-layout"
	indexPath     = "index.json"
	blobFolder    = "blobs/sha256/"
)

// The limits of a bundle.
const (
	mostManifest  = 16 << 20
	mostSignature = 4 << 10
	mostParts     = 100_000
	mostPart      = 64 << 30
)

// Manifest says what a bundle has.
type Manifest struct {
	Format string `json:"format"`
	// Kaz is the version of the kaz that made the bundle.
	Kaz string `json:"kaz"`
	// Kubernetes are the versions of which the bundle has programs, without "v".
	Kubernetes []string `json:"kubernetes,omitempty"`
	Images     []Image  `json:"images,omitempty"`
	Charts     []Chart  `json:"charts,omitempty"`
	Files      []File   `json:"files,omitempty"`
	// Parts are all files of the archive after manifest and signature, in their order.
	Parts []Part `json:"parts"`
}

// Image is a container image, or an index of images of several platforms.
type Image struct {
	// Name is the full name with a tag, such as registry.k8s.io/pause:3.10.1.
	Name      string   `json:"name"`
	MediaType string   `json:"mediaType"`
	Digest    string   `json:"digest"`
	Size      int64    `json:"size"`
	Platforms []string `json:"platforms,omitempty"`
}

// Chart is a Helm chart. Digest and Size are those of its OCI manifest.
type Chart struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion,omitempty"`
	Digest     string `json:"digest"`
	Size       int64  `json:"size"`
	// Archive is the digest of the chart's archive (.tgz).
	Archive string `json:"archive"`
}

// File is a file for a web server in the closed network.
type File struct {
	// Path is relative to the folder of that server: v1.36.3/bin/linux/amd64/kubelet, packages/containerd.deb.
	Path   string `json:"path"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// Part is a file of the archive.
type Part struct {
	Path   string `json:"path"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// PackageFolder is the folder of the files that machines install with dpkg.
const PackageFolder = "packages/"

var (
	digestForm  = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	blobForm    = regexp.MustCompile(`^blobs/sha256/[0-9a-f]{64}$`)
	fileForm    = regexp.MustCompile(`^[A-Za-z0-9_][-A-Za-z0-9_.+~:]*(/[A-Za-z0-9_][-A-Za-z0-9_.+~:]*)*$`)
	chartForm   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?$`)
	versionForm = regexp.MustCompile(`^[0-9A-Za-z][-0-9A-Za-z.+]{0,127}$`)
)

// blobPath is the path of the part with a digest.
func blobPath(digest string) string { return blobFolder + strings.TrimPrefix(digest, "sha256:") }

// archivePath is the path of a chart's archive among the files of a web server.
func (c Chart) archivePath() string { return "charts/" + c.Name + "-" + c.Version + ".tgz" }

// parse reads a manifest after its signature was verified.
func parse(text []byte) (Manifest, error) {
	var m Manifest
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var version struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return m, fmt.Errorf("%s: %w", manifestPath, err)
	}
	if version.Format != Format {
		return m, fmt.Errorf("%s: format %q: want %s, or the kaz that made the bundle", manifestPath, version.Format, Format)
	}
	if err := decoder.Decode(&m); err != nil {
		return m, fmt.Errorf("%s: %w", manifestPath, err)
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("%s: %w", manifestPath, err)
	}
	return m, nil
}

// check returns an error if a manifest contradicts itself or names paths that are not allowed. All that is written on another machine
// comes from a manifest, so it is checked when a bundle is made and when it is read.
func (m Manifest) check() error {
	parts, err := m.checkParts()
	if err != nil {
		return err
	}
	var problems []error
	has := func(what, digest string, size int64) {
		if p, ok := parts[blobPath(digest)]; !ok || !digestForm.MatchString(digest) {
			problems = append(problems, fmt.Errorf("%s: no part has its digest %q", what, digest))
		} else if size >= 0 && p.Size != size {
			problems = append(problems, fmt.Errorf("%s: size %d: its part has %d bytes", what, size, p.Size))
		}
	}
	for _, i := range m.Images {
		has("image "+i.Name, i.Digest, i.Size)
	}
	for _, c := range m.Charts {
		has("chart "+c.Name, c.Digest, c.Size)
		has("archive of chart "+c.Name, c.Archive, -1)
		if !chartForm.MatchString(c.Name) || !versionForm.MatchString(c.Version) {
			problems = append(problems, fmt.Errorf("chart %q, version %q: want a name of small letters, digits and '-', and a version",
				c.Name, c.Version))
		}
	}
	for _, f := range m.Files {
		has("file "+f.Path, f.Digest, f.Size)
		problems = append(problems, checkFilePath(f.Path))
	}
	if _, err := targets(m, "registry.invalid"); err != nil {
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return m.checkPaths()
}

// checkParts returns the parts by path.
func (m Manifest) checkParts() (map[string]Part, error) {
	if len(m.Parts) > mostParts {
		return nil, fmt.Errorf("%d parts: want at most %d", len(m.Parts), mostParts)
	}
	parts := map[string]Part{}
	for _, p := range m.Parts {
		switch {
		case p.Path != layoutPath && p.Path != indexPath && !blobForm.MatchString(p.Path):
			return nil, fmt.Errorf("part %q: want %s, %s or %sDIGEST", p.Path, layoutPath, indexPath, blobFolder)
		case !digestForm.MatchString(p.Digest), blobForm.MatchString(p.Path) && p.Path != blobPath(p.Digest):
			return nil, fmt.Errorf("part %s: digest %q: want sha256: and 64 small hexadecimal digits, those of its name", p.Path, p.Digest)
		case p.Size < 0 || p.Size > mostPart:
			return nil, fmt.Errorf("part %s: size %d: want at most %d", p.Path, p.Size, int64(mostPart))
		}
		if _, twice := parts[p.Path]; twice {
			return nil, fmt.Errorf("part %s is there twice", p.Path)
		}
		parts[p.Path] = p
	}
	return parts, nil
}

func checkFilePath(name string) error {
	if !fileForm.MatchString(name) || !fs.ValidPath(name) || len(name) > 400 {
		return fmt.Errorf("file %q: want a relative path of letters, digits and . _ - + ~ :, such as packages/containerd.deb", name)
	}
	return nil
}

// checkPaths returns an error if two valid files or charts would be written to the same path, or one below the other.
func (m Manifest) checkPaths() error {
	var names []string
	for _, f := range m.Files {
		names = append(names, f.Path)
	}
	for _, c := range m.Charts {
		names = append(names, c.archivePath())
	}
	taken := map[string]bool{sumsPath: true}
	for _, n := range names {
		if taken[n] {
			return fmt.Errorf("file %s is there twice", n)
		}
		taken[n] = true
	}
	for _, n := range names {
		for dir := path.Dir(n); dir != "."; dir = path.Dir(dir) {
			if taken[dir] {
				return fmt.Errorf("file %s: %s is a file, too", n, dir)
			}
		}
	}
	return nil
}

// sort brings a manifest into its order, so that the same contents give the same bytes.
func (m Manifest) sort() {
	slices.Sort(m.Kubernetes)
	slices.SortFunc(m.Images, func(a, b Image) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(m.Charts, func(a, b Chart) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
}

// Bytes is the size of all parts.
func (m Manifest) Bytes() int64 {
	var sum int64
	for _, p := range m.Parts {
		sum += p.Size
	}
	return sum
}
