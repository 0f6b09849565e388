package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// target is what a registry gets: an image or a chart under a name.
type target struct {
	source string
	to     name.Tag
	of     v1.Descriptor
}

// TargetName is the name of an image in a mirror: the registry of the image is replaced by that of the mirror, with its path.
func TargetName(registry, image string) (string, error) {
	of, rest, found := strings.Cut(image, "/")
	if !found || of != "localhost" && !strings.ContainsAny(of, ".:") {
		return "", fmt.Errorf("%q: want the full name of an image with its registry, such as registry.k8s.io/pause:3.10.1", image)
	}
	return registry + "/" + rest, nil
}

// targets are the images and charts of a bundle with their names in a mirror.
func targets(m Manifest, registry string) ([]target, error) {
	var all []target
	add := func(source, to, mediaType, digest string, size int64) error {
		tag, err := name.NewTag(to, name.StrictValidation)
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		hash, err := v1.NewHash(digest)
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		for _, other := range all {
			if other.to.String() == tag.String() {
				return fmt.Errorf("%s and %s would both be %s in a mirror: want one of them in the bundle", other.source, source, tag)
			}
		}
		all = append(all, target{source, tag, v1.Descriptor{MediaType: types.MediaType(mediaType), Digest: hash, Size: size}})
		return nil
	}
	for _, i := range m.Images {
		to, err := TargetName(registry, i.Name)
		if err != nil {
			return nil, err
		}
		if err := add("image "+i.Name, to, i.MediaType, i.Digest, i.Size); err != nil {
			return nil, err
		}
	}
	for _, c := range m.Charts {
		// Helm writes a version with "+" so, because tags have none.
		to := registry + "/charts/" + c.Name + ":" + strings.ReplaceAll(c.Version, "+", "_")
		if err := add("chart "+c.Name, to, ociManifest, c.Digest, c.Size); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// jobs is how many layers are copied at once.
const jobs = 4

// remoteOptions are those of requests to registries. Credentials come from the configuration of Docker or Podman.
func remoteOptions(ctx context.Context, transport http.RoundTripper) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithTransport(transport), remote.WithJobs(jobs),
		remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("kaz")}
}

// Push pushes images and charts into a registry. What the registry has already is not sent again.
func (b *Bundle) Push(ctx context.Context, registry string, transport http.RoundTripper, o Options) ([]string, error) {
	all, err := targets(b.Manifest, registry)
	if err != nil {
		return nil, err
	}
	var pushed []string
	for i, t := range all {
		if o.Say != nil {
			o.Say(fmt.Sprintf("%d of %d: %s", i+1, len(all), t.to))
		}
		if err := b.push(t, remoteOptions(ctx, transport)); err != nil {
			return pushed, fmt.Errorf("%s: push %s: %w", t.source, t.to, err)
		}
		pushed = append(pushed, t.to.String()+"@"+t.of.Digest.String())
	}
	return pushed, nil
}

func (b *Bundle) push(t target, options []remote.Option) error {
	content, err := contentAt(b, t.of)
	if err != nil {
		return err
	}
	if index, ok := content.(v1.ImageIndex); ok {
		return remote.WriteIndex(t.to, index, options...)
	}
	return remote.Write(t.to, content.(v1.Image), options...)
}

// sumsPath is the file with the checksums of all files that [Bundle.Unpack] writes.
const sumsPath = "SHA256SUMS"

// Unpack writes files and the archives of charts into a folder for a web server. Files that are there already stay. Nothing is written
// outside of the folder, whatever links it has.
func (b *Bundle) Unpack(ctx context.Context, dir string, o Options) ([]string, error) {
	files := slices.Clone(b.Manifest.Files)
	for _, c := range b.Manifest.Charts {
		s, err := b.blob(c.Archive)
		if err != nil {
			return nil, err
		}
		files = append(files, File{c.archivePath(), c.Archive, s.Size})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var total int64
	for _, f := range files {
		total += f.Size
	}
	progress := newProgress("copied", total, o.Say)
	var written []string
	var sums strings.Builder
	for _, f := range files {
		if err := b.unpack(ctx, root, f, progress); err != nil {
			return written, fmt.Errorf("file %s: %w", f.Path, err)
		}
		written = append(written, f.Path)
		fmt.Fprintf(&sums, "%s  %s\n", strings.TrimPrefix(f.Digest, "sha256:"), f.Path)
	}
	return written, root.WriteFile(sumsPath, []byte(sums.String()), 0o644)
}

func (b *Bundle) unpack(ctx context.Context, root *os.Root, f File, progress io.Writer) error {
	s, err := b.blob(f.Digest)
	if err != nil {
		return err
	}
	from := io.TeeReader(until(ctx, b.open(s)), progress)
	if had, err := sumOf(root, f.Path); err == nil && had == f.Digest {
		_, err := io.Copy(io.Discard, from)
		return err
	}
	if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
		return err
	}
	part := f.Path + ".part"
	to, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return errors.Join(err, root.Remove(part))
	}
	return root.Rename(part, f.Path)
}

// sumOf is the digest of a file.
func sumOf(root *os.Root, file string) (string, error) {
	f, err := root.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), err
}
