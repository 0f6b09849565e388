// Package app composes the acr-credential-provider: it reads flags and the cloud configuration, and
// answers one request of a kubelet. Layer L4. It is a package of its own so that tests need no
// process.
package app

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kaz/internal/component/flagerror"
	"kaz/internal/component/release"
	"kaz/internal/pullcredential"
)

// Process is the program's environment.
type Process struct {
	In          io.Reader
	Out, Err    io.Writer
	Environment func(string) (string, bool)
	// Client sends all requests; nil is http.DefaultClient's behaviour.
	Client *http.Client
}

// longest is the timeout of an answer. A kubelet waits a minute; a shorter timeout lets it log the
// error.
const longest = 50 * time.Second

// Main runs the program and returns its exit code. It writes only the response to Out.
func Main(args []string, p Process) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	command := Command(p)
	command.SetArgs(args)
	if err := command.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintln(p.Err, "acr-credential-provider:", err)
		return 1
	}
	return 0
}

// options are the program's flags.
type options struct {
	configFile string
	mirrors    string
	binding    pullcredential.Binding
	bindingCA  string
	verbosity  int
}

// Command returns the program's command.
func Command(p Process) *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:   "acr-credential-provider CONFIG-FILE",
		Short: "Give a kubelet credentials for Azure Container Registry",
		Long: `Reads a CredentialProviderRequest (credentialprovider.kubelet.k8s.io/v1) from
standard input and writes the response to standard output. CONFIG-FILE is the
node's azure.json, usually /etc/kubernetes/azure.json.

A kubelet starts it by the name of the file, in the directory
--image-credential-provider-bin-dir, as --image-credential-provider-config says.`,
		Example: `  echo '{"apiVersion":"credentialprovider.kubelet.k8s.io/v1","kind":"CredentialProviderRequest",
    "image":"example.azurecr.io/app:1"}' | acr-credential-provider /etc/kubernetes/azure.json`,
		Version:       release.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return errors.New("config file is not specified")
			case 1:
				return nil
			}
			return fmt.Errorf("expected exactly one argument (config file); Got arguments: %v", args)
		},
		RunE: func(command *cobra.Command, args []string) error {
			o.configFile = args[0]
			ctx, cancel := context.WithTimeout(command.Context(), longest)
			defer cancel()
			return o.run(ctx, p)
		},
	}
	command.SetFlagErrorFunc(flagerror.Explain)
	command.SetOut(p.Out)
	command.SetErr(p.Err)
	o.flags(command)
	return command
}

func (o *options) flags(command *cobra.Command) {
	f := command.Flags()
	f.StringVarP(&o.mirrors, "registry-mirror", "r", "",
		"registries that mirror others: SOURCE:DESTINATION[,SOURCE:DESTINATION], such as "+
			"mcr.microsoft.com:example.azurecr.io")
	f.StringVar(&o.binding.ServerName, "ib-sni-name", "",
		"identity bindings: host name, without a scheme, under which the API server exchanges tokens of service accounts")
	f.StringVar(&o.binding.Address, "ib-apiserver-ip", "", "identity bindings: IP address of the API server; required with --ib-sni-name")
	f.StringVar(&o.binding.ClientID, "ib-default-client-id", "",
		"identity bindings: client id for service accounts without the annotation "+pullcredential.ClientIDAnnotation)
	f.StringVar(&o.binding.TenantID, "ib-default-tenant-id", "",
		"identity bindings: tenant id for service accounts without the annotation "+pullcredential.TenantIDAnnotation)
	f.StringVar(&o.bindingCA, "ib-ca-file", "/etc/kubernetes/certs/ca.crt", "identity bindings: certificate authority of the API server")
	f.IntVarP(&o.verbosity, "v", "v", 0, "log verbosity on standard error; 4 and higher also log decisions")
}

// run answers one request.
func (o *options) run(ctx context.Context, p Process) error {
	log := o.logger(p.Err)
	request, err := pullcredential.Read(p.In)
	if err != nil {
		return err
	}
	provider, err := o.provider(ctx, p, log)
	if err != nil {
		return err
	}
	response, err := provider.Respond(ctx, request)
	if err != nil {
		return fmt.Errorf("credential for image %q: %w", request.Image, err)
	}
	if err := response.Write(p.Out); err != nil {
		return fmt.Errorf("write the response: %w", err)
	}
	return nil
}

func (o *options) logger(to io.Writer) *slog.Logger {
	const detail = 4
	level := slog.LevelWarn
	if o.verbosity >= detail {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
}

// bound returns the identity binding of the flags, or nil if they set none.
func (o *options) bound(log *slog.Logger) (*pullcredential.Binding, error) {
	b := o.binding
	if b.ServerName == "" {
		if b != (pullcredential.Binding{}) {
			log.Warn("flags of identity bindings have no effect without --ib-sni-name")
		}
		return nil, nil
	}
	if err := b.Check(); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(o.bindingCA)
	if err != nil {
		return nil, fmt.Errorf("identity bindings: certificate authority of the API server: %w", err)
	}
	b.Roots = x509.NewCertPool()
	if !b.Roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("identity bindings: no certificate found in %s", o.bindingCA)
	}
	return &b, nil
}
