package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	certificates = "etc/ssl/certs/ca-certificates.crt"
	programs     = "usr/local/bin"
	// nonroot is the user id of distroless images.
	nonroot = "65532"
)

// file is a file of an image.
type file struct {
	name string
	mode int64
	text []byte
}

// base returns the first layer of all images: the certificate authorities of browsers and a user
// other than root.
func base() (v1.Layer, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // trusted for certain certificates only, which a PEM file cannot express
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return layer([]file{
		{certificates, 0o644, roots.Bytes()},
		{"etc/passwd", 0o644,
			[]byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:" + nonroot + ":" + nonroot + ":nonroot:/:/sbin/nologin\n")},
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:" + nonroot + ":\n")},
	})
}

// layer returns a layer with the files and their directories. It is reproducible.
func layer(files []file) (v1.Layer, error) {
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	made := map[string]bool{}
	for _, f := range files {
		parts := strings.Split(f.name, "/")
		for i := 1; i < len(parts); i++ {
			dir := strings.Join(parts[:i], "/") + "/"
			if made[dir] {
				continue
			}
			made[dir] = true
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}); err != nil {
				return nil, err
			}
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.text))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// image returns the image of a program.
func (b build) image(base v1.Layer, program string, p v1.Platform) (v1.Image, error) {
	binary, err := b.compile(program, p)
	if err != nil {
		return nil, err
	}
	top, err := layer([]file{{programs + "/" + program, 0o755, binary}})
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	user, path := nonroot+":"+nonroot, "/"+programs
	if from := b.baseOf(program); from != "" {
		if image, err = open(from, p); err != nil {
			return nil, fmt.Errorf("base image %s: %w", from, err)
		}
		// Its programs mount and format, as root in a privileged container.
		user, path = "0:0", "/"+programs+":/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: base, History: v1.History{CreatedBy: "kaz: certificates and a user"}},
		mutate.Addendum{Layer: top, History: v1.History{CreatedBy: "kaz: " + program}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = p.OS, p.Architecture
	config.Config = v1.Config{
		User:       user,
		Entrypoint: []string{"/" + programs + "/" + program},
		WorkingDir: "/",
		Env:        []string{"PATH=" + path, "SSL_CERT_FILE=/" + certificates},
		Labels:     map[string]string{"org.opencontainers.image.title": program, "org.opencontainers.image.version": b.version},
	}
	return mutate.ConfigFile(image, config)
}

// open opens an image for a platform: in a folder with an OCI layout, or in a registry.
func open(from string, p v1.Platform) (v1.Image, error) {
	if _, err := os.Stat(filepath.Join(from, "index.json")); err == nil {
		index, err := layout.ImageIndexFromPath(from)
		if err != nil {
			return nil, err
		}
		return imageFor(index, p)
	}
	reference, err := name.ParseReference(from)
	if err != nil {
		return nil, fmt.Errorf("no folder with an OCI layout, and no name of an image: %w", err)
	}
	return remote.Image(reference, remote.WithPlatform(p), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// imageFor finds the image for a platform in an index, which can have other indexes.
func imageFor(index v1.ImageIndex, p v1.Platform) (v1.Image, error) {
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range list.Manifests {
		if m.MediaType.IsIndex() {
			inner, err := index.ImageIndex(m.Digest)
			if err != nil {
				return nil, err
			}
			if image, err := imageFor(inner, p); err == nil {
				return image, nil
			}
			continue
		}
		image, err := index.Image(m.Digest)
		if err != nil {
			return nil, err
		}
		config, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		if config.OS == p.OS && config.Architecture == p.Architecture {
			return image, nil
		}
	}
	return nil, fmt.Errorf("no image for %s/%s", p.OS, p.Architecture)
}

// compile builds a program reproducibly, wherever the source is.
func (b build) compile(program string, p v1.Platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "kaz-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, program)
	version := b.version
	if !strings.HasPrefix(version, "v") {
		version = "v0.0.0-" + version
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", binary,
		"-ldflags", "-s -w -buildid= -X k8s.io/component-base/version.gitVersion="+version, "./cmd/"+program)
	cmd.Dir = b.source
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Architecture)
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, said)
	}
	return os.ReadFile(binary)
}
