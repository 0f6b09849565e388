// Command kaz is Kubernetes on Azure at a person's fingertips: `kaz local` runs an
// Azure and a cluster on this machine. Layer L4: flags to options, nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	acr "kaz/cmd/acr-credential-provider/app"
	ccm "kaz/cmd/cloud-controller-manager/app"
	cnm "kaz/cmd/cloud-node-manager/app"
	"kaz/cmd/internal/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := rootCommand().ExecuteContext(ctx)
	stop()
	if code, ok := errors.AsType[exitCode](err); ok {
		os.Exit(int(code))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kaz:", err)
		os.Exit(1)
	}
}

// exitCode is an error that has been reported already.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit status %d", int(c)) }

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "kaz",
		Short: "Kubernetes on Azure, and an Azure on this machine to try it on",
		Example: `  kaz local up                 # a local Azure and a cluster on it
  kaz local status             # what runs, and where its files are
  kaz local azure              # only the local Azure
  kaz explain service --all   # what would be done for Services, and why`,
		Version:       release.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.Flags().Bool("version", false, "which version of kaz this is") // that of the components is of another kind
	root.AddCommand(localCommand(), explainCommand())
	root.AddCommand(machineCommand())
	root.AddCommand(components()...)
	return root
}

// group is a command that only has others under it. To name none of them, or one that there is
// not, is an error: who asked it something must not take it for an answer.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short, DisableFlagsInUseLine: true,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}, // they are of the command that is meant
		Args:               cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			var names []string
			for _, c := range command.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			if len(args) == 0 {
				return fmt.Errorf("%s: no command is named: want %s", command.Name(), strings.Join(names, ", "))
			}
			return fmt.Errorf("unknown command %q for %q: want %s", args[0], command.CommandPath(), strings.Join(names, ", "))
		},
	}
	command.AddCommand(commands...)
	return command
}

// wants is how many arguments a command takes, and what they are: cobra's own errors do not say
// of what there is none.
func wants(least, most int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fmt.Errorf("%s: nothing is named: want %s", command.Name(), what)
		case len(args) > most:
			return fmt.Errorf("%s: %s: want %s", command.Name(), strings.Join(args, " "), what)
		}
		return nil
	}
}

// components let `kaz local` run kaz's own components from the one program that is
// sure to be there.
func components() []*cobra.Command {
	pull := acr.Command(acr.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environment: os.LookupEnv})
	pull.Version = "" // its flag would be that of the others, which is of another kind
	all := []*cobra.Command{ccm.Command(os.LookupEnv), cnm.Command(os.LookupEnv), pull}
	for _, command := range all {
		command.Hidden = true
	}
	return all
}
