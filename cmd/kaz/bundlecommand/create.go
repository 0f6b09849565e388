package bundlecommand

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/bundle"
	"kaz/internal/component/release"
)

// creating are the flags of kaz bundle create.
type creating struct {
	bundle.CreateOptions
	key, imageList, checksums, authorities, output string
}

func createCommand() *cobra.Command {
	var c creating
	command := &cobra.Command{
		Use:   "create FILE",
		Short: "Make a bundle",
		Long: `Makes a bundle on a machine that reaches its contents. The same contents and the same key give the
same bytes. Layers are compared with their digests, and programs of Kubernetes with the checksums
that this kaz has.

--image takes NAME of a registry, PATH, or NAME=PATH. A path is a folder with an OCI layout or with
several, as deploy/images makes them, or an archive: of a layout, of docker save, or another bundle.
Credentials are those of docker login.

The key is an ECDSA key on the curve P-256, as of openssl or cosign without a password, or an
Ed25519 key.`,
		Example: `  openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out bundle.key
  openssl pkey -in bundle.key -pubout -out bundle.pub
  kubeadm config images list --kubernetes-version v1.36.3 > images.txt
  kaz bundle create kaz.bundle --key bundle.key --kubernetes 1.36.3 --image-list images.txt \
      --image bin/images --chart deploy/charts/azuredisk-csi-driver --package containerd_1.7.24_amd64.deb`,
		Args: cli.Wants(1, 1, "the file of the bundle"),
		RunE: func(command *cobra.Command, args []string) error { return c.run(command, args[0]) },
	}
	f := command.Flags()
	f.StringVar(&c.key, "key", "", "file with the private key that signs the bundle, in PEM (required)")
	f.StringArrayVar(&c.Images, "image", nil, "image: NAME, PATH or NAME=PATH; repeat it")
	f.StringVar(&c.imageList, "image-list", "", "file with an image for --image in each line")
	f.StringSliceVar(&c.Platforms, "platform", []string{"linux/amd64", "linux/arm64"}, "platforms of images and programs")
	f.StringArrayVar(&c.Charts, "chart", nil, "folder or archive (.tgz) of a Helm chart; repeat it")
	f.StringArrayVar(&c.Files, "file", nil, "PATH=FILE: a file, and its path on the web server; repeat it")
	f.StringArrayVar(&c.Packages, "package", nil, "package (.deb) that machines install; repeat it")
	f.StringSliceVar(&c.Kubernetes, "kubernetes", nil,
		"versions of Kubernetes, such as 1.36.3, whose kubeadm, kubelet and kubectl the bundle has")
	f.StringVar(&c.Programs, "programs", "https://dl.k8s.io", "URL or folder with these programs, laid out as https://dl.k8s.io")
	f.StringVar(&c.checksums, "checksums", "",
		"file with further checksums of these programs, as sha256sum prints them: SUM  v1.36.3/bin/linux/amd64/kubelet")
	f.StringVar(&c.authorities, "ca-file", "",
		"file with certificate authorities of registries and --programs, in PEM, beside those of the system")
	cli.OutputFlag(command, &c.output)
	return command
}

var (
	platformForm = regexp.MustCompile(`^linux/(amd64|arm64)$`)
	releaseForm  = regexp.MustCompile(`^\d+\.\d+\.\d+$`)
)

// check returns what is wrong with the flags.
func (c *creating) check() error {
	var problems []error
	for _, p := range c.Platforms {
		if !platformForm.MatchString(p) {
			problems = append(problems, fmt.Errorf("--platform %s: want linux/amd64 or linux/arm64", p))
		}
	}
	for _, v := range c.Kubernetes {
		if !releaseForm.MatchString(v) {
			problems = append(problems, fmt.Errorf("--kubernetes %s: want a version such as 1.36.3", v))
		}
	}
	if c.output != "text" && c.output != "json" && c.output != "yaml" {
		problems = append(problems, fmt.Errorf("--output %s: want text, json or yaml", c.output))
	}
	return errors.Join(problems...)
}

// read reads the files of flags.
func (c *creating) read() error {
	content, err := text("key", c.key)
	if err != nil {
		return err
	}
	if c.Key, err = bundle.ParsePrivateKey(content); err != nil {
		return fmt.Errorf("--key %s: %w", c.key, err)
	}
	if c.imageList != "" {
		if content, err = text("image-list", c.imageList); err != nil {
			return err
		}
		c.Images = append(c.Images, strings.Fields(string(content))...)
	}
	if c.checksums != "" {
		if content, err = text("checksums", c.checksums); err != nil {
			return err
		}
		c.Checksums = string(content)
	}
	return nil
}

func (c *creating) run(command *cobra.Command, file string) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := c.read(); err != nil {
		return err
	}
	var authorities []byte
	var err error
	if c.authorities != "" {
		if authorities, err = text("ca-file", c.authorities); err != nil {
			return err
		}
	}
	transport, err := bundle.NewTransport(authorities)
	if err != nil {
		return fmt.Errorf("--ca-file %s: %w", c.authorities, err)
	}
	defer transport.CloseIdleConnections()
	c.Transport, c.Version = transport, release.Version()
	c.Say = func(line string) { fmt.Fprintln(command.ErrOrStderr(), line) }
	m, err := bundle.Create(command.Context(), file, c.CreateOptions)
	if err != nil {
		return err
	}
	return cli.PrintAs(command.OutOrStdout(), c.output, m, func(w io.Writer) error { return list(w, m) })
}
