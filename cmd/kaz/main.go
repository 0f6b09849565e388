// Command kaz is the command line of Kubernetes on Azure: `kaz local` runs an Azure and a cluster on this machine, and
// `kaz explain` shows what the cloud-controller-manager would change. Layer L4: flags to options, nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	acr "kaz/cmd/acr-credential-provider/app"
	disk "kaz/cmd/azuredisk-csi-driver/app"
	file "kaz/cmd/azurefile-csi-driver/app"
	ccm "kaz/cmd/cloud-controller-manager/app"
	cnm "kaz/cmd/cloud-node-manager/app"
	"kaz/cmd/internal/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := rootCommand()
	root.SetArgs(arguments(os.Args))
	err := root.ExecuteContext(ctx)
	stop()
	if code, ok := errors.AsType[exitCode](err); ok {
		os.Exit(int(code))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kaz:", err)
		os.Exit(1)
	}
}

// arguments returns the arguments of a command line. A link with the name of a component runs that component, so that an image
// needs one program for all of them.
func arguments(line []string) []string {
	name := filepath.Base(line[0])
	if slices.ContainsFunc(components(), func(c *cobra.Command) bool { return c.Name() == name }) {
		return append([]string{name}, line[1:]...)
	}
	return line[1:]
}

// exitCode is an exit status. The error that led to it is already printed.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit status %d", int(c)) }

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "kaz",
		Short: "Kubernetes on Azure, and an Azure on this machine to try it on",
		Example: `  kaz local up                 # a local Azure and a cluster on it
  kaz local status             # its processes and files
  kaz local azure              # a local Azure without a cluster
  kaz explain service --all    # what would change in Azure for Services, and why`,
		Version:       release.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.Flags().Bool("version", false, "print the version of kaz") // the components define a flag of another type
	root.AddCommand(localCommand(), clusterCommand(), explainCommand())
	root.AddCommand(machineCommand())
	root.AddCommand(components()...)
	return root
}

// group returns a command that has only subcommands. A missing or unknown subcommand is an error, so that a script does not
// take the help text with exit status 0 for a result.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short, DisableFlagsInUseLine: true,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}, // they belong to the subcommand
		Args:               cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			var names []string
			for _, c := range command.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			if len(args) == 0 {
				return fmt.Errorf("%s: no command given: want %s", command.Name(), strings.Join(names, ", "))
			}
			return fmt.Errorf("unknown command %q for %q: want %s", args[0], command.CommandPath(), strings.Join(names, ", "))
		},
	}
	command.AddCommand(commands...)
	return command
}

// wants returns a check for the number of arguments. Unlike cobra's own checks its errors say what the arguments are.
func wants(least, most int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fmt.Errorf("%s: no argument given: want %s", command.Name(), what)
		case len(args) > most:
			return fmt.Errorf("%s: %s: want %s", command.Name(), strings.Join(args, " "), what)
		}
		return nil
	}
}

// components returns hidden commands for kaz's own components, so that `kaz local` needs no other program.
func components() []*cobra.Command {
	pull := acr.Command(acr.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environment: os.LookupEnv})
	pull.Version = "" // the other components define a version flag of another type
	all := []*cobra.Command{
		ccm.Command(os.LookupEnv), cnm.Command(os.LookupEnv), disk.Command(os.LookupEnv), file.Command(os.LookupEnv), pull,
	}
	for _, command := range all {
		command.Hidden = true
	}
	return all
}
