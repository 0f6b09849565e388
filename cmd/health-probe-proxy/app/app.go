// Package app composes the health-probe-proxy: flags to options, and the proxy around
// what they name. Layer L4.
package app

import (
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
	_ "k8s.io/component-base/logs/json/register" // the JSON log format
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
)

// name is the program's.
const name = "health-probe-proxy"

// Command is the program's command line.
func Command() *cobra.Command {
	o := newOptions()
	command := &cobra.Command{
		Use:   name,
		Short: "Answer health probes that come with a PROXY header",
		Long: `The health-probe-proxy runs on each node, in the host's network. A load balancer behind
a private link service with the PROXY protocol puts a PROXY header before its health
probes, too, and kube-proxy's health server does not understand it. This program takes
the header off, if there is one, and asks kube-proxy.`,
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
			return run(ctx, o, nil)
		},
	}
	sets := o.flags()
	global := sets.FlagSet("global")
	verflag.AddFlags(global)
	logsapi.AddFlags(o.logging, global)
	globalflag.AddGlobalFlags(global, name, logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	cols, _, _ := term.TerminalSize(command.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(command, sets, cols)
	return command
}
