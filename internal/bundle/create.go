package bundle

import (
	"archive/tar"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CreateOptions say what a bundle has.
type CreateOptions struct {
	// Images are sources of images: NAME of a registry, PATH of a layout or an archive, or NAME=PATH.
	Images []string
	// Platforms are those of images of several platforms that are taken, and of the programs of Kubernetes.
	Platforms []string
	// Charts are folders or archives (.tgz) of Helm charts.
	Charts []string
	// Files are PATH=FILE: what a web server of the closed network has at a path.
	Files []string
	// Packages are files that machines install with dpkg.
	Packages []string
	// Kubernetes are versions of which the bundle gets the programs that machines install, from Programs: a folder or a URL, laid out
	// as dl.k8s.io. Checksums are further ones, as sha256sum prints them.
	Kubernetes []string
	Programs   string
	Checksums  string

	// Key signs the bundle, and Version is that of kaz.
	Key     crypto.Signer
	Version string
	// Transport reads from registries and URLs.
	Transport http.RoundTripper
	Options
}

// input is a part of a bundle that is made.
type input struct {
	Part
	open func() (io.ReadCloser, error)
}

// writer makes a bundle.
type writer struct {
	options  CreateOptions
	manifest Manifest
	parts    map[string]input
	closers  []io.Closer
}

// Create makes a bundle in a file. The file is there when it is complete.
func Create(ctx context.Context, file string, o CreateOptions) (Manifest, error) {
	w := &writer{options: o, manifest: Manifest{Format: Format, Kaz: o.Version}, parts: map[string]input{}}
	err := w.gather(ctx)
	if err == nil {
		err = w.writeFile(ctx, file)
	}
	for _, c := range w.closers {
		err = errors.Join(err, c.Close())
	}
	return w.manifest, err
}

// gather finds all that the bundle has. The layers of images are not read yet.
func (w *writer) gather(ctx context.Context) error {
	o := w.options
	for _, source := range o.Images {
		w.say("image " + source)
		images, err := w.imagesOf(source, remoteOptions(ctx, o.Transport))
		if err != nil {
			return fmt.Errorf("image %s: %w", source, err)
		}
		for _, i := range images {
			if err := w.addImage(i); err != nil {
				return fmt.Errorf("image %s: %w", i.name, err)
			}
		}
	}
	for _, from := range o.Charts {
		if err := w.addChart(from); err != nil {
			return fmt.Errorf("chart %s: %w", from, err)
		}
	}
	for _, given := range o.Files {
		at, from, ok := strings.Cut(given, "=")
		if !ok {
			return fmt.Errorf("file %s: want PATH=FILE", given)
		}
		if err := w.addFile(at, from); err != nil {
			return fmt.Errorf("file %s: %w", given, err)
		}
	}
	for _, from := range o.Packages {
		if !strings.HasSuffix(from, ".deb") {
			return fmt.Errorf("package %s: want a file that ends with .deb", from)
		}
		// apt-get writes the colon behind the epoch of a version so.
		name := strings.ReplaceAll(filepath.Base(from), "%3a", ":")
		if err := w.addFile(PackageFolder+name, from); err != nil {
			return fmt.Errorf("package %s: %w", from, err)
		}
	}
	if err := w.programs(ctx); err != nil {
		return err
	}
	return w.complete()
}

func (w *writer) say(line string) {
	if w.options.Say != nil {
		w.options.Say(line)
	}
}

// addFile adds a file of this machine.
func (w *writer) addFile(at, from string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no file")
	}
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		return err
	}
	digest := "sha256:" + hex.EncodeToString(sum.Sum(nil))
	w.manifest.Files = append(w.manifest.Files, File{Path: at, Digest: digest, Size: size})
	w.add(digest, size, func() (io.ReadCloser, error) { return os.Open(from) })
	return nil
}

// complete adds what makes the parts an OCI image layout, and the list of parts.
func (w *writer) complete() error {
	if len(w.parts) == 0 {
		return errors.New("nothing is in the bundle: want images, charts, files, packages or programs of Kubernetes")
	}
	w.manifest.sort()
	index, err := w.manifest.index()
	if err != nil {
		return err
	}
	parts := []input{fixed(layoutPath, []byte(`{"imageLayoutVersion":"1.0.0"}`)), fixed(indexPath, index)}
	for _, at := range slices.Sorted(maps.Keys(w.parts)) {
		parts = append(parts, w.parts[at])
	}
	for _, p := range parts {
		w.manifest.Parts = append(w.manifest.Parts, p.Part)
		w.parts[p.Path] = p
	}
	return w.manifest.check()
}

// fixed is a part with a text.
func fixed(at string, text []byte) input {
	return input{Part{at, digestOf(text), int64(len(text))},
		func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(text))), nil }}
}

// index is the index of the OCI image layout, with which other programs read the images of a bundle.
func (m Manifest) index() ([]byte, error) {
	type descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int64             `json:"size"`
		Annotations map[string]string `json:"annotations"`
	}
	all := []descriptor{}
	for _, i := range m.Images {
		all = append(all, descriptor{i.MediaType, i.Digest, i.Size, map[string]string{containerdName: i.Name,
			"org.opencontainers.image.ref.name": i.Name}})
	}
	return json.Marshal(struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}{2, "application/vnd.oci.image.index.v1+json", all})
}

// writeFile writes the bundle beside its file, and renames it when it is complete.
func (w *writer) writeFile(ctx context.Context, file string) error {
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".part-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it is gone after a success
	err = w.write(ctx, f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

func (w *writer) write(ctx context.Context, to io.Writer) error {
	text, err := json.MarshalIndent(w.manifest, "", " ")
	if err != nil {
		return err
	}
	if len(text) > mostManifest {
		return fmt.Errorf("the manifest has %d bytes: want at most %d; make several bundles", len(text), mostManifest)
	}
	signature, err := sign(w.options.Key, text)
	if err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	archive := tar.NewWriter(to)
	progress := newProgress("written", w.manifest.Bytes(), w.options.Say)
	parts := []input{fixed(manifestPath, text), fixed(signaturePath, signature)}
	for _, p := range w.manifest.Parts {
		parts = append(parts, w.parts[p.Path])
	}
	for i, p := range parts {
		counted := io.Writer(archive)
		if i > 1 {
			counted = io.MultiWriter(archive, progress)
		}
		if err := copyPart(ctx, archive, counted, p); err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
	}
	return archive.Close()
}

// copyPart writes a part, and compares what was read with its digest.
func copyPart(ctx context.Context, archive *tar.Writer, to io.Writer, p input) error {
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: p.Path, Mode: 0o644, Size: p.Size}); err != nil {
		return err
	}
	r, err := p.open()
	if err != nil {
		return err
	}
	_, err = io.Copy(to, until(ctx, newChecked(r, p.Part)))
	return errors.Join(err, r.Close())
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
