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
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	acr "kaz/cmd/acr-credential-provider/app"
	gateway "kaz/cmd/application-gateway-controller/app"
	disk "kaz/cmd/azuredisk-csi-driver/app"
	file "kaz/cmd/azurefile-csi-driver/app"
	ccm "kaz/cmd/cloud-controller-manager/app"
	cnm "kaz/cmd/cloud-node-manager/app"
	"kaz/cmd/kaz/bundlecommand"
	"kaz/cmd/kaz/cli"
	"kaz/cmd/kaz/clustercommand"
	"kaz/cmd/kaz/verifycommand"
	"kaz/internal/component/flagerror"
	"kaz/internal/component/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := rootCommand()
	root.SetArgs(arguments(os.Args))
	err := root.ExecuteContext(ctx)
	stop()
	if code, ok := errors.AsType[cli.ExitCode](err); ok {
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

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "kaz",
		Short: "Kubernetes on Azure, and an Azure on this machine to try it on",
		Example: `  kaz local up                 # a local Azure and a cluster on it
  kaz local status             # its processes and files
  kaz local azure              # a local Azure without a cluster
  kaz check                    # what is wrong in a cluster and its Azure, and what mends it
  kaz explain service --all    # what would change in Azure for Services, and why`,
		Version:       release.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(flagerror.Explain)
	root.Flags().Bool("version", false, "print the version of kaz") // the components define a flag of another type
	root.AddCommand(localCommand(), clustercommand.New(), checkCommand(), shadowCommand(), explainCommand(), dnsCommand())
	root.AddCommand(verifycommand.New(), bundlecommand.New(), machineCommand(), versionCommand())
	root.AddCommand(components()...)
	return root
}

// libraryFlags are the flags that Kubernetes' libraries define for every program. cobra adds those of [pflag.CommandLine] to every
// command, where they would do nothing.
var libraryFlags = pflag.CommandLine

// components returns hidden commands for kaz's own components, so that `kaz local` needs no other program.
func components() []*cobra.Command {
	pflag.CommandLine = libraryFlags // the components take some of them
	defer func() { pflag.CommandLine = pflag.NewFlagSet("", pflag.ContinueOnError) }()
	pull := acr.Command(acr.Process{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environment: os.LookupEnv})
	pull.Version = "" // the other components define a version flag of another type
	all := []*cobra.Command{
		ccm.Command(os.LookupEnv), cnm.Command(os.LookupEnv), disk.Command(os.LookupEnv), file.Command(os.LookupEnv),
		gateway.Command(os.LookupEnv), pull,
	}
	for _, command := range all {
		command.Hidden = true
	}
	return all
}
