package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	frameworkapp "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/term"
	"k8s.io/controller-manager/pkg/leadermigration"

	"kaz/internal/cloudconfig"
	"kaz/internal/cloudprovider"
	kit "kaz/internal/component"
	"kaz/internal/component/flagerror"
	kubeconfigs "kaz/internal/component/kubeconfig"
	"kaz/internal/component/release"
	"kaz/internal/component/traces"
	"kaz/internal/reconcile"
)

// program holds everything that the command needs to run.
type program struct {
	options     *options.CloudControllerManagerOptions
	controllers map[string]frameworkapp.ControllerInitFuncConstructor
	aliases     map[string]string
	own         ownFlags
	source      source
	selector    labels.Selector // selects nodes
	// check validates the flags of the service controller.
	check func() error
	// prepare reads the flags of kaz's own controllers.
	prepare func(*config.CompletedConfig) error
	// open creates the cloud for a configuration. wrap decorates its ARM client.
	open func(ctx context.Context, c *config.CompletedConfig, settings cloudconfig.Config,
		wrap func(reconcile.Azure) reconcile.Azure) (*cloudprovider.Cloud, error)
	running *sync.WaitGroup // controllers that may have Azure writes in flight
	notices *notices
}

const examples = `  # as a pod of the control plane, with the usual azure.json
  cloud-controller-manager --cloud-config=/etc/kubernetes/azure.json --cluster-name=kubernetes \
    --controllers='*,-cloud-node' --configure-cloud-routes=false --leader-elect=true

  # with routes to the pods of each node, without cloud-node-manager
  cloud-controller-manager --cloud-config=/etc/kubernetes/azure.json --allocate-node-cidrs=true \
    --configure-cloud-routes=true --cluster-cidr=10.244.0.0/16

  # at a desk
  cloud-controller-manager --cloud-config=azure.json --kubeconfig=$HOME/.kube/config \
    --leader-elect=false --secure-port=0 -v=2`

// command returns the program's command. It has the framework's flags, but stops gracefully.
func (p *program) command(more cliflag.NamedFlagSets) *cobra.Command {
	logging := logs.NewOptions()
	command := &cobra.Command{
		Use:   component,
		Short: "Connect a Kubernetes cluster to Azure: nodes, routes and load balancers",
		Long: `The cloud-controller-manager connects a Kubernetes cluster to Azure: it tracks
the machines of the nodes, gives Services their load balancers and pods their routes.`,
		Example:      examples,
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if done, err := kit.Instead(command); done || err != nil {
				return err
			}
			if err := logsapi.ValidateAndApply(logging, utilfeature.DefaultFeatureGate); err != nil {
				return err
			}
			cliflag.PrintFlags(command.Flags())
			warnOfFlags(command.Flags())
			ctx, stop := kit.UntilSignal(command.Context())
			defer stop()
			return p.run(ctx)
		},
	}
	sets := p.options.Flags(frameworkapp.ControllerNames(p.controllers), frameworkapp.ControllersDisabledByDefault.List(), p.aliases,
		frameworkapp.AllWebhooks, frameworkapp.DisabledByDefaultWebhooks)
	command.SetFlagErrorFunc(flagerror.Explain)
	global := sets.FlagSet("global")
	kit.AddGlobalFlags(global, component, logging)
	addLogFormat(global)
	for _, name := range more.Order {
		sets.FlagSet(name).AddFlagSet(more.FlagSets[name])
	}
	p.own.add(&sets)
	p.source.addFlags(sets.FlagSet("cloud provider"))
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	showHelp(command, sets)
	return command
}

// showHelp prints the examples first, then the flags in their groups.
func showHelp(command *cobra.Command, sets cliflag.NamedFlagSets) {
	columns, _, _ := term.TerminalSize(command.OutOrStdout())
	usage := func(to io.Writer) {
		_, _ = fmt.Fprintf(to, "Usage:\n  %s\n\nExamples:\n%s\n", command.UseLine(), command.Example)
		cliflag.PrintSections(to, sets, columns)
	}
	command.SetUsageFunc(func(command *cobra.Command) error {
		usage(command.OutOrStderr())
		return nil
	})
	command.SetHelpFunc(func(command *cobra.Command, _ []string) {
		_, _ = fmt.Fprintf(command.OutOrStdout(), "%s\n\n", strings.TrimSpace(command.Long))
		usage(command.OutOrStdout())
	})
}

// run opens the cloud and runs the controllers until ctx ends.
func (p *program) run(ctx context.Context) error {
	if err := errors.Join(p.checkKubeconfig(), p.checkCertificate(), p.checkControllers()); err != nil {
		return err
	}
	c, err := p.options.Config(frameworkapp.ControllerNames(p.controllers), frameworkapp.ControllersDisabledByDefault.List(), p.aliases,
		frameworkapp.AllWebhooks, frameworkapp.DisabledByDefaultWebhooks)
	var ownErr error
	p.selector, ownErr = p.own.read()
	shared := p.options.KubeCloudShared
	err = errors.Join(err, ownErr, checkProvider(shared.CloudProvider.Name, cloudprovider.Name),
		cloudconfig.CheckClusterName(shared.ClusterName), p.check())
	if err != nil {
		return err
	}
	endTraces, err := traces.Open(ctx, p.own.tracingFile, component)
	if err != nil {
		return err
	}
	defer endTraces()
	slog.Info(component, "version", release.Version())
	completed := c.Complete()
	m, err := p.manager(ctx, completed)
	if err != nil {
		return err
	}
	defer p.notices.stop()
	return m.run(ctx)
}

// checkKubeconfig validates the kubeconfig. The framework's error does not name the file.
func (p *program) checkKubeconfig() error {
	kubeconfig, master := p.options.Generic.ClientConnection.Kubeconfig, p.options.Master
	if kubeconfig == "" && master == "" {
		return nil // a pod uses its service account
	}
	_, err := kubeconfigs.Read(master, kubeconfig)
	return err
}

// checkCertificate validates the serving certificate. The framework's error does not name the files.
func (p *program) checkCertificate() error {
	serving := p.options.SecureServing
	files := serving.ServerCert.CertKey
	if serving.BindPort <= 0 || files.CertFile == "" && files.KeyFile == "" {
		return nil
	}
	if _, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile); err != nil {
		return fmt.Errorf("--tls-cert-file %q, --tls-private-key-file %q: %w", files.CertFile, files.KeyFile, err)
	}
	return nil
}

// checkControllers rejects unknown names in --controllers. The framework's error does not list the
// known names.
func (p *program) checkControllers() error {
	known := frameworkapp.ControllerNames(p.controllers)
	for _, given := range p.options.Generic.Controllers {
		name := strings.TrimPrefix(given, "-")
		if _, alias := p.aliases[name]; given != "*" && !alias && !slices.Contains(known, name) {
			return fmt.Errorf("--controllers %q: allowed: * for all that are on by default, NAME to enable one, "+
				"-NAME to disable one, where NAME is one of %s",
				given, strings.Join(known, ", "))
		}
	}
	return nil
}

// manager returns the runner of the controllers, with the current cloud configuration.
func (p *program) manager(ctx context.Context, c *config.CompletedConfig) (*manager, error) {
	generic := c.ComponentConfig.Generic
	if p.source.reloading && leadermigration.Enabled(&generic) {
		return nil, errors.New(
			"--enable-dynamic-reloading and --enable-leader-migration cannot be combined: controllers under two locks cannot restart " +
				"together")
	}
	if err := p.prepare(c); err != nil {
		return nil, err
	}
	shared := c.ComponentConfig.KubeCloudShared
	p.source.path, p.source.cluster = shared.CloudProvider.CloudConfigFile, shared.ClusterName
	settings, err := p.source.read(ctx, c.VersionedClient)
	if err != nil {
		return nil, err
	}
	p.notices = newNotices(context.WithoutCancel(ctx), c.Client, generic.LeaderElection)
	first, err := p.generation(ctx, c, settings)
	if err != nil {
		p.notices.stop()
		return nil, err
	}
	m := &manager{config: c, first: first, metrics: p.own.metrics, checked: map[string]bool{}}
	if p.source.reloading {
		m.reload = &reloader{
			source: p.source, client: c.VersionedClient, notices: p.notices, results: registered(newReloadResults()),
			open: func(ctx context.Context, settings cloudconfig.Config) (*generation, error) {
				return p.generation(ctx, c, settings)
			},
		}
	}
	return m, nil
}

// registered registers a metric and returns it. It returns the existing metric if it was registered
// before.
func registered[C prometheus.Collector](c C) C {
	err := legacyregistry.Registerer().Register(c)
	if again, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if first, ok := again.ExistingCollector.(C); ok {
			return first
		}
	}
	return c
}
