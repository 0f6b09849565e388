package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	framework "k8s.io/cloud-provider"
	frameworkapp "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version"
	"k8s.io/component-base/version/verflag"

	"kaz/internal/cloudprovider"
	"kaz/internal/observe/tracing"
)

// program is what the command line runs.
type program struct {
	options     *options.CloudControllerManagerOptions
	controllers map[string]frameworkapp.ControllerInitFuncConstructor
	aliases     map[string]string
	open        func(context.Context, *config.CompletedConfig) (framework.Interface, error)
	finish      func()
	own         ownFlags
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

// command is the framework's, which has the same flags, except for how it ends.
func (p *program) command(more cliflag.NamedFlagSets) *cobra.Command {
	logging := logs.NewOptions()
	command := &cobra.Command{
		Use:   component,
		Short: "Connect a Kubernetes cluster to Azure: nodes, routes and load balancers",
		Long: `The cloud-controller-manager connects a Kubernetes cluster to Azure: it knows what became
of the nodes' machines, gives Services their load balancers and pods their routes.`,
		Example:      examples,
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(logging, utilfeature.DefaultFeatureGate); err != nil {
				return err
			}
			cliflag.PrintFlags(command.Flags())
			warnOfFlags(command.Flags())
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return p.run(ctx)
		},
	}
	sets := p.options.Flags(frameworkapp.ControllerNames(p.controllers), frameworkapp.ControllersDisabledByDefault.List(), p.aliases,
		frameworkapp.AllWebhooks, frameworkapp.DisabledByDefaultWebhooks)
	global := sets.FlagSet("global")
	verflag.AddFlags(global)
	logsapi.AddFlags(logging, global)
	addLogFormat(global)
	globalflag.AddGlobalFlags(global, component, logs.SkipLoggingConfigurationFlags())
	for _, name := range more.Order {
		sets.FlagSet(name).AddFlagSet(more.FlagSets[name])
	}
	p.own.add(&sets)
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	showHelp(command, sets)
	return command
}

// showHelp shows the flags in their groups, and examples before them.
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
	c, err := p.options.Config(frameworkapp.ControllerNames(p.controllers), frameworkapp.ControllersDisabledByDefault.List(), p.aliases,
		frameworkapp.AllWebhooks, frameworkapp.DisabledByDefaultWebhooks)
	selector, ownErr := p.own.read()
	if err := errors.Join(err, ownErr, checkProvider(p.options.KubeCloudShared.CloudProvider.Name, cloudprovider.Name)); err != nil {
		return err
	}
	traces, err := tracing.Open(ctx, p.own.tracingFile, component, version.Get().GitVersion)
	if err != nil {
		return fmt.Errorf("--tracing-config-file: %w", err)
	}
	defer func() {
		if err := traces.Close(ctx); err != nil {
			slog.Warn("tracing", "error", err)
		}
	}()
	slog.Info(component, "version", version.Get().GitVersion)
	completed := c.Complete()
	cloud, err := p.open(ctx, completed)
	if err != nil {
		return err
	}
	filterNodes(completed.SharedInformers, selector)
	m := &manager{
		config: completed, cloud: cloud, finish: p.finish,
		controllers: frameworkapp.ConstructControllerInitializers(p.controllers, completed, cloud),
	}
	return m.run(ctx)
}
