package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/azurecommand"
	"kaz/cmd/kaz/cli"
	"kaz/internal/localcluster"
	"kaz/internal/localcluster/realnodes"
	"kaz/internal/localcluster/site"
)

func localCommand() *cobra.Command {
	return cli.Group("local", "Run an Azure, and a Kubernetes cluster on it, on this machine",
		upCommand(), downCommand(), statusCommand(), loadCommand(), shellCommand(), logsCommand(), azurecommand.New(), prebuildCommand())
}

func upCommand() *cobra.Command {
	var o localcluster.UpOptions
	var detach bool
	command := &cobra.Command{
		Use:   "up",
		Short: "Start a local Azure and a Kubernetes cluster on it, or continue those in --dir",
		Long: `Starts a local Azure with a resource group, a network and scale sets, and a
Kubernetes control plane. The nodes are the machines of the scale sets.

The command runs until Ctrl-C, which stops everything. With --detach the cluster runs
until kaz local down. --dir keeps the state, and the next up continues with it.

With --engine the cluster is made as kaz cluster deploy makes it: its machines boot from
an image with systemd and cloud-init, also those of the control plane. That needs root on
Linux, and the first start makes the image. --definition has the files of its definition.

Machines of this Azure run what their custom data and run commands say, as root of this
machine. So whoever may write machines in this Azure, as its owner may, is root here.`,
		Example: `  kaz local up
  kaz local up --nodes 5 --scale-sets 2 --detach
  kaz local up --ip-families IPv4,IPv6               # dual stack
  kaz local up --without cloud-controller-manager    # to run another one
  kaz local up --gateway                             # an application gateway, for Ingresses and Gateways
  kaz local up --latency azure --throttle azure      # the delays and rate limits of the real Azure
  kaz local up --engine --nodes 2                    # machines that boot, with the cluster engine
  kaz local up --engine --definition cluster.yaml --definition team-a.yaml --kubernetes 1.35.4,1.36.3`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runUp(command, o, detach)
		},
	}
	cli.DirFlag(command, &o.Dir)
	upFlags(command, &o)
	command.Flags().BoolVar(&detach, "detach", false, "return when the cluster is up and leave it running")
	return command
}

// upFlags defines the flags of up except --dir and --detach.
func upFlags(command *cobra.Command, o *localcluster.UpOptions) {
	f := command.Flags()
	f.IntVar(&o.Nodes, "nodes", 0, "number of nodes, 1 to 1000 (default 3, or the number of the existing cluster)")
	f.IntVar(&o.ScaleSets, "scale-sets", 0, "number of scale sets for the nodes (default 1, or the number of the existing cluster)")
	f.StringVar(&o.NodesKind, "nodes-kind", "",
		"real (namespaces with a kubelet each; needs root on Linux) or hollow (simulated) (default real if this machine can run them)")
	f.BoolVar(&o.Engine, "engine", false, "make the cluster with the cluster engine, of machines that boot from an image")
	f.StringSliceVar(&o.Definitions, "definition", nil,
		"with --engine, file of the cluster's definition, can be repeated, the base first (default one control plane and --nodes nodes)")
	f.StringSliceVar(&o.Releases, "kubernetes", nil,
		"release of Kubernetes such as 1.35.4; with --engine the releases in the image, and without --definition the first one is that of "+
			"the cluster (default that of the definition, those of the existing cluster, else the release that kaz is made for)")
	f.StringSliceVar(&o.IPFamilies, "ip-families", nil,
		"address families of nodes, pods and Services: IPv4, or IPv4,IPv6 (default IPv4, or those of the existing cluster)")
	f.StringSliceVar(&o.Without, "without", nil, "component to leave out, can be repeated: "+strings.Join(localcluster.Components(), ", "))
	f.StringVar(&o.Azure.Identities, "identities", "", "file with the identities that can log in to Azure, and their roles")
	f.StringSliceVar(&o.Images, "image", nil,
		"archive with images (tar, OCI or docker) that real nodes import at boot, can be repeated")
	f.BoolVar(&o.Gateway, "gateway", false, "make an application gateway, and run the controller that serves Ingresses by it")
	f.IntVar(&o.Gateways, "gateways", 0, fmt.Sprintf(
		"number of application gateways, 1 to %d, as with --gateway (default 1, or the number of the existing cluster)", site.MaxGateways))
	f.BoolVar(&o.Example, "example", false, "on real nodes, run a web server behind a load balancer and wait until it answers")
	azurecommand.BehaviourFlags(command, &o.Azure)
}

// runUp runs a cluster in this process, or in another one if detach is true.
func runUp(command *cobra.Command, o localcluster.UpOptions, detach bool) error {
	var err error
	if o.Program, err = os.Executable(); err != nil {
		return err
	}
	for _, name := range []string{"nodes", "scale-sets", "gateways"} {
		if f := command.Flags().Lookup(name); f.Changed && f.Value.String() == "0" {
			return fmt.Errorf("--%s 0: want at least 1", name)
		}
	}
	o.Out = command.OutOrStdout()
	// The reader of a pipe, such as tee, may end first at Ctrl-C. SIGPIPE must not end kaz before it has stopped
	// everything. The signal is caught, because child processes inherit an ignored one.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if detach {
		return localcluster.Detach(command.Context(), o, cli.SameArguments(command, []string{"local", "up"}, "detach"))
	}
	return localcluster.Up(command.Context(), o, func(s localcluster.Status) {
		printWelcome(command.OutOrStdout(), s, s.Dir != command.Flags().Lookup("dir").DefValue)
	})
}

// printWelcome prints commands to try. They have --dir if namesDir is true.
func printWelcome(w io.Writer, s localcluster.Status, namesDir bool) {
	dir := ""
	if namesDir {
		dir = " --dir " + shellWord(s.Dir)
	}
	if s.Example != "" {
		fmt.Fprintf(w, "\nThe example answers:\n\n  curl %s\n", s.Example)
	}
	fmt.Fprintf(w, "\nThe cluster is up. In another terminal:\n\n  . %s\n  kubectl get nodes\n", shellWord(s.Environment))
	image, target := "nginx", ""
	if s.NodesKind != localcluster.NodesHollow {
		image, target = "kaz.local/web:1", " --target-port=8080"
	}
	fmt.Fprintf(w, `  kubectl create deployment web --image=%[1]s --replicas=3
  kubectl expose deployment web --port=80%[2]s --type=LoadBalancer
  kubectl wait service/web --for=jsonpath={.status.loadBalancer.ingress}
  kubectl get service web
  kaz explain service default/web%[3]s
  kaz local azure list%[3]s
  kaz local azure web%[3]s
  kaz local status%[3]s
`, image, target, dir)
	if s.NodesKind != localcluster.NodesHollow && len(s.Machines) > 0 {
		fmt.Fprintf(w, "  kaz local ssh%s %s\n", dir, s.Machines[0].Name)
	}
	if host, port, err := net.SplitHostPort(s.DNS); err == nil {
		fmt.Fprintf(w, "\nThe name server of public DNS zones answers:\n\n  dig @%s -p %s NAME\n", host, port)
	}
	fmt.Fprintf(w, "\nThe kubectl that was built for it is %s\n", s.Kubectl)
}

// shellWord returns a path as one word of a shell.
func shellWord(path string) string {
	if !strings.ContainsAny(path, " \t'\"\\$`&|;<>()*?[]#~!{}") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

func downCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster in --dir and its Azure, and keep their state",
		Long: `Stops the cluster in --dir and its Azure, and keeps their state.

It also removes what killed kaz processes left of real nodes on this machine, of all
clusters: network namespaces, routes and control groups.`,
		Example: `  kaz local down
  kaz local down --dir /tmp/other`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), 2*time.Minute)
			defer cancel()
			stopped, err := localcluster.Down(ctx, dir)
			for _, name := range stopped {
				fmt.Fprintln(command.OutOrStdout(), "stopped", name)
			}
			if err == nil && len(stopped) == 0 {
				fmt.Fprintln(command.OutOrStdout(), "nothing was running in", dir)
			}
			abandoned, sweepErr := realnodes.SweepAbandoned(ctx)
			for _, name := range abandoned {
				fmt.Fprintf(command.OutOrStdout(), "removed leftovers of %s, a killed kaz process\n", name)
			}
			return errors.Join(err, sweepErr)
		},
	}
	cli.DirFlag(command, &dir)
	return command
}

// mostArchives is how many archives one command loads.
const mostArchives = 1000

func loadCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "load ARCHIVE...",
		Short: "Import images into the nodes of the running cluster in --dir",
		Long: `Imports archives with images into the machines of the running cluster in --dir, so that pods
run them without a registry. An archive is what docker save, podman save and crane pull write,
or an OCI layout as tar.

Real nodes that boot later import them, too. Machines that boot from an image (--engine) have
them until they are made anew.`,
		Example: `  docker save web:dev -o web.tar; kaz local load web.tar
  kubectl create deployment web --image=web:dev`,
		Args: cli.Wants(1, mostArchives, "one archive with images or several"),
		RunE: func(command *cobra.Command, args []string) error {
			for _, archive := range args {
				machines, err := localcluster.LoadImages(command.Context(), dir, archive)
				if err != nil {
					return err
				}
				fmt.Fprintf(command.OutOrStdout(), "loaded %s into %s\n", archive, strings.Join(machines, ", "))
			}
			return nil
		},
	}
	cli.DirFlag(command, &dir)
	return command
}

func statusCommand() *cobra.Command {
	var dir, output string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show the cluster in --dir; exit status 3 if none runs",
		Example: `  kaz local status
  kaz local status -o json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			s, err := localcluster.ReadStatus(dir)
			if errors.Is(err, localcluster.ErrDown) {
				fmt.Fprintln(command.ErrOrStderr(), err)
				return cli.ExitCode(3)
			}
			if err != nil {
				return err
			}
			return cli.PrintAs(command.OutOrStdout(), output, s, s.Write)
		},
	}
	cli.DirFlag(command, &dir)
	cli.OutputFlag(command, &output)
	return command
}
