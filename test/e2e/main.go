// Command e2e makes the container images that Kubernetes' end-to-end tests need, without a registry. The programs in them
// are built from Go modules, and the rest comes from Debian packages. The images have the names that the tests use, but
// not the content of Kubernetes' own images.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	programs := flag.String("programs", "", "directory with the programs of the images")
	packages := flag.String("packages", "", "directory that keeps the Debian packages")
	out := flag.String("out", "", "archive to write")
	flag.Parse()
	if *programs == "" || *packages == "" || *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	b := builder{programs: *programs, debian: debian{dir: *packages}}
	if err := b.write(ctx, *out); err != nil {
		fmt.Fprintln(os.Stderr, "e2e images:", err)
		os.Exit(1)
	}
}

// builder builds images from programs and Debian packages.
type builder struct {
	programs string
	debian   debian
}

// write writes an archive with all images.
func (b builder) write(ctx context.Context, file string) error {
	layers := map[string]v1.Layer{} // images share layers
	all := map[name.Reference]v1.Image{}
	for _, i := range images() {
		built, err := b.build(ctx, i, layers)
		if err != nil {
			return fmt.Errorf("%s: %w", i.names[0], err)
		}
		for _, n := range i.names {
			ref, err := name.ParseReference(n)
			if err != nil {
				return err
			}
			all[ref] = built
		}
	}
	part := file + ".part"
	if err := tarball.MultiRefWriteToFile(part, all); err != nil {
		return err
	}
	return os.Rename(part, file)
}

func (b builder) build(ctx context.Context, i image, layers map[string]v1.Layer) (v1.Image, error) {
	built := empty.Image
	for _, l := range i.layers {
		layer := layers[l.name]
		if layer == nil {
			var err error
			if layer, err = b.layer(ctx, l); err != nil {
				return nil, fmt.Errorf("layer %s: %w", l.name, err)
			}
			layers[l.name] = layer
		}
		var err error
		if built, err = mutate.AppendLayers(built, layer); err != nil {
			return nil, err
		}
	}
	config, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS = runtime.GOARCH, "linux"
	config.Config = v1.Config{
		Entrypoint: i.entrypoint, Cmd: i.command, User: i.user,
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	return mutate.ConfigFile(built, config)
}

// layer builds a layer: the files of Debian packages, programs, texts and symbolic links, in this order.
func (b builder) layer(ctx context.Context, l layer) (v1.Layer, error) {
	t := newTree()
	if len(l.packages) > 0 {
		if err := b.debian.unpack(ctx, l.packages, t); err != nil {
			return nil, err
		}
	}
	for path, p := range l.programs {
		text, err := os.ReadFile(filepath.Join(b.programs, p.name))
		if err != nil {
			return nil, err
		}
		t.file(path, text, 0o755|p.mode)
	}
	for path, text := range l.files {
		t.file(path, []byte(text), 0o644)
	}
	for path, target := range l.links {
		t.link(path, target)
	}
	for _, path := range l.open {
		t.dir(path, 0o1777)
	}
	if l.applets != "" {
		names, err := t.applets(ctx, l.applets)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			t.link("usr/bin/"+n, "/"+l.applets)
		}
	}
	return t.layer()
}
