package component

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // the JSON log format
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"

	"kaz/internal/component/flagerror"
	"kaz/internal/component/release"
	"kaz/internal/observe"
)

// Program describes a program: flags without arguments, and logs in the format of Kubernetes.
type Program struct {
	Name, Short, Long string
	Example           string // "" for none
	Flags             cliflag.NamedFlagSets
	Logging           *logsapi.LoggingConfiguration
	Validate          func() error // returns all problems of the flags
	// Run runs until ctx ends. SIGINT and SIGTERM end ctx. log is slog's default too, and has what Kubernetes' libraries log.
	Run func(ctx context.Context, log *slog.Logger) error
}

// Command returns the program's command.
func (p Program) Command() *cobra.Command {
	command := &cobra.Command{
		Use: p.Name, Short: p.Short, Long: p.Long, Example: p.Example,
		SilenceUsage: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q: no arguments are allowed, only flags", args)
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error {
			if done, err := Instead(command); done || err != nil {
				return err
			}
			if err := errors.Join(p.Validate(), logsapi.ValidateAndApply(p.Logging, nil)); err != nil {
				return err
			}
			log, err := observe.NewLogger(os.Stderr, slog.Level(-int(p.Logging.Verbosity)), p.Logging.Format)
			if err != nil {
				return err
			}
			observe.UseForKubernetes(log)
			slog.SetDefault(log)
			log.Info("the program starts", "program", p.Name, "version", release.Version())
			ctx, stop := UntilSignal(command.Context())
			defer stop()
			return p.Run(ctx, log)
		},
	}
	command.SetFlagErrorFunc(flagerror.Explain)
	AddGlobalFlags(p.Flags.FlagSet("global"), p.Name, p.Logging)
	for _, set := range p.Flags.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	cols, _, _ := term.TerminalSize(command.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(command, p.Flags, cols)
	if p.Example == "" {
		return command
	}
	help := command.HelpFunc()
	command.SetHelpFunc(func(command *cobra.Command, args []string) {
		help(command, args)
		_, _ = fmt.Fprintf(command.OutOrStdout(), "\nExamples:\n%s\n", command.Example)
	})
	return command
}

// UntilSignal returns a context that SIGINT and SIGTERM end.
func UntilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// AddGlobalFlags adds the version and logging flags that all Kubernetes programs have. It also sets
// the version that Kubernetes' libraries report.
func AddGlobalFlags(global *pflag.FlagSet, name string, logging *logsapi.LoggingConfiguration) {
	release.Version()
	verflag.AddFlags(global)
	addProbeFlag(global)
	logsapi.AddFlags(logging, global)
	globalflag.AddGlobalFlags(global, name, logs.SkipLoggingConfigurationFlags())
}
