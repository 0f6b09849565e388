// Command images builds the container images of kaz's programs as OCI layouts, without a registry or
// a container runtime. The build is reproducible: the same source gives the same digests. It has its
// own module because only it needs these dependencies.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func main() {
	var b build
	var programs, platforms, bases string
	flag.StringVar(&b.source, "source", ".", "folder of the repository")
	flag.StringVar(&b.out, "out", filepath.Join("bin", "images"), "folder that gets a layout for each program")
	flag.StringVar(&b.version, "version", "devel", "version of the programs, and tag of their images")
	flag.StringVar(&b.repository, "repository", "localhost/kaz", "what images are called: REPOSITORY/PROGRAM:VERSION")
	flag.StringVar(&programs, "programs", "cloud-controller-manager,cloud-node-manager,health-probe-proxy",
		"programs of cmd, with commas between")
	flag.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64", "platforms, with commas between")
	flag.StringVar(&bases, "bases", "",
		"base images of programs, with commas between: PROGRAM=LAYOUT, a folder with an OCI layout, or PROGRAM=IMAGE in a registry; "+
			"without one, an image has certificates and a user")
	flag.BoolVar(&b.push, "push", false, "push the images to -repository as well, with the credentials of docker login")
	flag.Parse()
	b.programs, b.platforms = strings.Split(programs, ","), strings.Split(platforms, ",")
	if bases != "" {
		b.bases = strings.Split(bases, ",")
	}
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// build is the configuration of a build.
type build struct {
	source, out         string
	version, repository string
	programs, platforms []string
	bases               []string // PROGRAM=LAYOUT or PROGRAM=IMAGE
	push                bool
}

// needsBase are programs that run other programs, which an image must have.
var needsBase = map[string]string{
	"azuredisk-csi-driver": "mount, umount, blkid, fsck, mkfs.ext4, mkfs.xfs, resize2fs and xfs_growfs",
	"azurefile-csi-driver": "mount, umount, mount.cifs and mount.nfs",
}

// baseOf returns the base image of a program, "" for none.
func (b build) baseOf(program string) string {
	for _, given := range b.bases {
		if of, base, ok := strings.Cut(given, "="); ok && of == program {
			return base
		}
	}
	return ""
}

var (
	tagForm      = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	platformForm = regexp.MustCompile(`^linux/(amd64|arm64)$`)
)

func (b build) check() error {
	var problems []error
	if !tagForm.MatchString(b.version) {
		problems = append(problems, fmt.Errorf("-version %q: want a tag such as v1.36.0", b.version))
	}
	for _, p := range b.programs {
		if _, err := os.Stat(filepath.Join(b.source, "cmd", p, "main.go")); p == "" || err != nil {
			problems = append(problems, fmt.Errorf("-programs: %q is no program of %s", p, filepath.Join(b.source, "cmd")))
		}
	}
	for _, given := range b.bases {
		if of, base, _ := strings.Cut(given, "="); base == "" || !slices.Contains(b.programs, of) {
			problems = append(problems, fmt.Errorf("-bases: %q, want PROGRAM=LAYOUT or PROGRAM=IMAGE with a program of -programs", given))
		}
	}
	for _, p := range b.programs {
		if tools := needsBase[p]; tools != "" && b.baseOf(p) == "" {
			problems = append(problems, fmt.Errorf("-bases has no %s: it needs an image with %s", p, tools))
		}
	}
	for i, p := range b.platforms {
		if !platformForm.MatchString(p) || slices.Contains(b.platforms[:i], p) {
			problems = append(problems, fmt.Errorf("-platforms: %q, want linux/amd64 and linux/arm64, each once at most", p))
		}
	}
	return errors.Join(problems...)
}

func (b build) run() error {
	if err := b.check(); err != nil {
		return err
	}
	base, err := base()
	if err != nil {
		return err
	}
	for _, program := range b.programs {
		index, err := b.index(base, program)
		if err != nil {
			return fmt.Errorf("image of %s: %w", program, err)
		}
		digest, err := b.write(index, program)
		if err != nil {
			return fmt.Errorf("image of %s: %w", program, err)
		}
		if b.push {
			if err := b.send(index, program); err != nil {
				return fmt.Errorf("push the image of %s: %w", program, err)
			}
		}
		fmt.Printf("%s/%s:%s@%s in %s\n", b.repository, program, b.version, digest, filepath.Join(b.out, program))
	}
	return nil
}

// index returns a program's image for all platforms.
func (b build) index(base v1.Layer, program string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, "application/vnd.oci.image.index.v1+json")
	for _, platform := range b.platforms {
		p, err := v1.ParsePlatform(platform)
		if err != nil {
			return nil, err
		}
		image, err := b.image(base, program, *p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: p}})
	}
	return index, nil
}

// send pushes a program's image to its repository.
func (b build) send(index v1.ImageIndex, program string) error {
	tag, err := name.NewTag(fmt.Sprintf("%s/%s:%s", b.repository, program, b.version))
	if err != nil {
		return err
	}
	return remote.WriteIndex(tag, index, remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// write replaces the program's layout.
func (b build) write(index v1.ImageIndex, program string) (v1.Hash, error) {
	dir := filepath.Join(b.out, program)
	if err := os.RemoveAll(dir); err != nil {
		return v1.Hash{}, err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	// Layouts use the first name, containerd the second.
	names := map[string]string{
		"org.opencontainers.image.ref.name": b.version,
		"io.containerd.image.name":          fmt.Sprintf("%s/%s:%s", b.repository, program, b.version),
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}
