// Package app composes the cloud-node-manager: flags to options, and the node
// manager around what they name. Layer L4; it is a package of its own so that kaz can
// run it too.
package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"          // the JSON log format
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
)

// name is the program's.
const name = "cloud-node-manager"

// Command is the program's command line. lookup reads the environment.
func Command(lookup func(string) (string, bool)) *cobra.Command {
	o := newOptions()
	command := &cobra.Command{
		Use:   name,
		Short: "Tell Kubernetes of the machine under a node",
		Long: `The cloud-node-manager runs on each node. It gives a new node its provider id, labels
and addresses from the machine's own metadata service, takes off the taint that keeps
work away until then, and keeps the addresses right.`,
		Example: `  # as a pod on each node
  NODE_NAME=node-1 cloud-node-manager --node-name=node-1 --wait-routes=true

  # with Azure's API in place of the machine's metadata
  cloud-node-manager --node-name=node-1 --use-instance-metadata=false --cloud-config=/etc/kubernetes/azure.json`,
		SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q: no arguments are allowed, only flags", args)
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if err := errors.Join(o.validate(), logsapi.ValidateAndApply(o.logging, nil)); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return asService(ctx, o, func(ctx context.Context) error { return run(ctx, o, lookup) })
		},
	}
	sets := o.flags()
	global := sets.FlagSet("global")
	verflag.AddFlags(global)
	logsapi.AddFlags(o.logging, global)
	// The name that it has in the cloud-controller-manager of before.
	global.StringVar(&o.logging.Format, "log-format", o.logging.Format, "The same as --logging-format.")
	global.Lookup("log-format").Hidden = true
	globalflag.AddGlobalFlags(global, name, logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	cols, _, _ := term.TerminalSize(command.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(command, sets, cols)
	help := command.HelpFunc()
	command.SetHelpFunc(func(command *cobra.Command, args []string) {
		help(command, args)
		_, _ = fmt.Fprintf(command.OutOrStdout(), "\nExamples:\n%s\n", command.Example)
	})
	return command
}
