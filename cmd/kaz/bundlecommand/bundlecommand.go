// Package bundlecommand has the commands of kaz bundle. Layer L4: flags to options, nothing else.
package bundlecommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/bundle"
)

// New returns the command kaz bundle.
func New() *cobra.Command {
	return cli.Group("bundle", "Carry images, charts, programs and machine packages into a closed network as one signed file",
		createCommand(), verifyCommand(), loadCommand(), layerCommand(), valuesCommand())
}

// mostText is the size of the greatest key, list or file of certificates that is read.
const mostText = 4 << 20

// text reads the file of a flag.
func text(flag, file string) ([]byte, error) {
	if file == "" {
		return nil, fmt.Errorf("--%s is missing: want a file", flag)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, mostText+1))
	if err == nil && len(content) > mostText {
		err = fmt.Errorf("%s has more than %d bytes", file, mostText)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return content, nil
}

// reading are the flags of commands that read a bundle.
type reading struct {
	key, output string
	errs        io.Writer
}

func (r *reading) define(command *cobra.Command, output bool) *cobra.Command {
	command.Args = cli.Wants(1, 1, "the file of a bundle")
	command.Flags().StringVar(&r.key, "key", "", "file with the public key of the bundle, in PEM (required)")
	if output {
		cli.OutputFlag(command, &r.output)
	}
	return command
}

func (r *reading) options() bundle.Options {
	return bundle.Options{Say: func(line string) { fmt.Fprintln(r.errs, line) }}
}

// open verifies a bundle.
func (r *reading) open(ctx context.Context, command *cobra.Command, file string) (*bundle.Bundle, error) {
	r.errs = command.ErrOrStderr()
	if r.output != "" && r.output != "text" && r.output != "json" && r.output != "yaml" {
		return nil, fmt.Errorf("--output %s: want text, json or yaml", r.output)
	}
	content, err := text("key", r.key)
	if err != nil {
		return nil, err
	}
	key, err := bundle.ParsePublicKey(content)
	if err != nil {
		return nil, fmt.Errorf("--key %s: %w", r.key, err)
	}
	return bundle.Open(ctx, file, key, r.options())
}

// with verifies a bundle and uses it.
func (r *reading) with(command *cobra.Command, file string, use func(context.Context, *bundle.Bundle) error) error {
	ctx := command.Context()
	b, err := r.open(ctx, command, file)
	if err != nil {
		return err
	}
	return errors.Join(use(ctx, b), b.Close())
}

func verifyCommand() *cobra.Command {
	var r reading
	return r.define(&cobra.Command{
		Use:   "verify FILE",
		Short: "Verify the signature and every part of a bundle, and list what it has",
		Long: `Verifies the signature of a bundle and the digest of every part, and lists images, charts and
files. A bundle of which a byte differs is refused.

Without kaz: tar extracts bundle.json and bundle.json.sig, the signature in base64. cosign
verify-blob and openssl verify it.`,
		Example: `  kaz bundle verify kaz.bundle --key bundle.pub
  kaz bundle verify kaz.bundle --key bundle.pub -o json`,
		RunE: func(command *cobra.Command, args []string) error {
			return r.with(command, args[0], func(_ context.Context, b *bundle.Bundle) error {
				return cli.PrintAs(command.OutOrStdout(), r.output, b.Manifest, func(w io.Writer) error { return list(w, b.Manifest) })
			})
		},
	}, true)
}

// list prints what a bundle has.
func list(w io.Writer, m bundle.Manifest) error {
	for _, i := range m.Images {
		fmt.Fprintf(w, "image  %s  %s\n", i.Name, i.Digest)
	}
	for _, c := range m.Charts {
		fmt.Fprintf(w, "chart  %s %s  %s\n", c.Name, c.Version, c.Archive)
	}
	for _, f := range m.Files {
		fmt.Fprintf(w, "file   %s  %s\n", f.Path, f.Digest)
	}
	_, err := fmt.Fprintf(w, "%d images, %d charts, %d files, %d bytes\n", len(m.Images), len(m.Charts), len(m.Files), m.Bytes())
	return err
}

// loaded is what kaz bundle load prints.
type loaded struct {
	Images []string `json:"images,omitempty"`
	Files  []string `json:"files,omitempty"`
}

func loadCommand() *cobra.Command {
	var r reading
	var registry, dir, authorities string
	command := r.define(&cobra.Command{
		Use:   "load FILE",
		Short: "Verify a bundle, and load it into a registry and a folder for a web server",
		Long: `Verifies the whole bundle first: of a bundle that is not good, nothing is loaded.

--registry gets the images, and the charts as OCI artifacts. The registry in the name of an image
is replaced: registry.k8s.io/pause:3.10.1 becomes REGISTRY/pause:3.10.1, and the chart NAME becomes
oci://REGISTRY/charts/NAME. --dir gets the programs, machine packages and archives of charts, for
any web server, with SHA256SUMS.

Credentials of the registry are those of docker login: the file config.json in DOCKER_CONFIG or
~/.docker. The proxy is that of HTTPS_PROXY and NO_PROXY.`,
		Example: `  kaz bundle load kaz.bundle --key bundle.pub --registry registry.corp.example/kaz --ca-file corp.pem
  kaz bundle load kaz.bundle --key bundle.pub --dir /srv/www/kaz`,
		RunE: func(command *cobra.Command, args []string) error {
			if registry == "" && dir == "" {
				return errors.New("nothing to load to: want --registry, --dir or both")
			}
			if registry != "" {
				if _, err := bundle.TargetName(registry, registry+"/name:tag"); err != nil {
					return fmt.Errorf("--registry %s: want a registry with or without a path, such as registry.example.com/kaz", registry)
				}
			}
			return r.with(command, args[0], func(ctx context.Context, b *bundle.Bundle) error {
				var done loaded
				err := load(ctx, b, r.options(), registry, dir, authorities, &done)
				if err != nil {
					return err
				}
				return cli.PrintAs(command.OutOrStdout(), r.output, done, func(w io.Writer) error {
					_, err := fmt.Fprintf(w, "loaded %d images and charts, %d files\n", len(done.Images), len(done.Files))
					return err
				})
			})
		},
	}, true)
	command.Flags().StringVar(&registry, "registry", "", "registry for images and charts, with a path or without")
	command.Flags().StringVar(&dir, "dir", "", "folder for programs, packages and archives of charts")
	command.Flags().StringVar(&authorities, "ca-file", "",
		"file with certificate authorities of the registry, in PEM, beside those of the system")
	return command
}

func load(ctx context.Context, b *bundle.Bundle, o bundle.Options, registry, dir, authorities string, done *loaded) error {
	if registry != "" {
		var pem []byte
		var err error
		if authorities != "" {
			if pem, err = text("ca-file", authorities); err != nil {
				return err
			}
		}
		transport, err := bundle.NewTransport(pem)
		if err != nil {
			return fmt.Errorf("--ca-file %s: %w", authorities, err)
		}
		defer transport.CloseIdleConnections()
		if done.Images, err = b.Push(ctx, registry, transport, o); err != nil {
			return err
		}
	}
	if dir == "" {
		return nil
	}
	var err error
	done.Files, err = b.Unpack(ctx, dir, o)
	return err
}

func layerCommand() *cobra.Command {
	var r reading
	var mirror bundle.Mirror
	var cluster string
	command := r.define(&cobra.Command{
		Use:   "layer FILE",
		Short: "Print a layer for the definition of a cluster whose machines take all from the mirror",
		Long: `Prints a layer with the fields of a definition that name the mirror: the repository of images, the
URL and the checksums of the programs of Kubernetes, the machine packages and the add-ons.`,
		Example: `  kaz bundle layer kaz.bundle --key bundle.pub --cluster prod \
      --registry registry.corp.example/kaz --files https://files.corp.example/kaz > mirror.yaml
  kaz cluster deploy ha.yaml mirror.yaml`,
		RunE: func(command *cobra.Command, args []string) error {
			for _, flag := range []string{"cluster", "registry", "files"} {
				if command.Flag(flag).Value.String() == "" {
					return fmt.Errorf("--%s is missing", flag)
				}
			}
			return r.with(command, args[0], func(_ context.Context, b *bundle.Bundle) error {
				layer, err := b.Manifest.Layer(cluster, mirror)
				if err != nil {
					return err
				}
				_, err = command.OutOrStdout().Write(layer)
				return err
			})
		},
	}, false)
	command.Flags().StringVar(&cluster, "cluster", "", "name of the cluster (required)")
	command.Flags().StringVar(&mirror.Registry, "registry", "", "registry to which the bundle was loaded (required)")
	command.Flags().StringVar(&mirror.Files, "files", "", "URL of the web server with the folder to which it was loaded (required)")
	return command
}

func valuesCommand() *cobra.Command {
	var r reading
	var registry, chart string
	command := r.define(&cobra.Command{
		Use:   "values FILE",
		Short: "Print values with which a chart of the bundle takes its images from the registry",
		Example: `  kaz bundle values kaz.bundle --key bundle.pub --chart azuredisk-csi-driver \
      --registry registry.corp.example/kaz > values.yaml
  helm install disks oci://registry.corp.example/kaz/charts/azuredisk-csi-driver --values values.yaml`,
		RunE: func(command *cobra.Command, args []string) error {
			if registry == "" {
				return errors.New("--registry is missing")
			}
			return r.with(command, args[0], func(_ context.Context, b *bundle.Bundle) error {
				values, err := b.Values(chart, registry)
				if err != nil {
					return err
				}
				_, err = command.OutOrStdout().Write(values)
				return err
			})
		},
	}, false)
	command.Flags().StringVar(&chart, "chart", "", "name of the chart (required)")
	command.Flags().StringVar(&registry, "registry", "", "registry to which the bundle was loaded (required)")
	return command
}
