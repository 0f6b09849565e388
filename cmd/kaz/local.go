package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"kaz/internal/local"
)

func localCommand() *cobra.Command {
	return group("local", "Run an Azure, and a Kubernetes cluster on it, on this machine",
		upCommand(), downCommand(), statusCommand(), shellCommand(), logsCommand(), azureCommand())
}

// dirFlag adds --dir; its default is the same for all commands.
func dirFlag(command *cobra.Command, dir *string) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "."
	}
	command.Flags().StringVar(dir, "dir", filepath.Join(home, ".kaz", "local"), "directory with everything of the cluster: state, keys, logs, files for clients")
}

func upCommand() *cobra.Command {
	var o local.UpOptions
	var detach bool
	command := &cobra.Command{
		Use:   "up",
		Short: "Start a local Azure and a Kubernetes cluster on it, or continue the ones in --dir",
		Long: `Starts a local Azure with a resource group, a network and scale sets, and a
Kubernetes control plane whose nodes are the scale sets' machines.

Runs until Ctrl-C, which stops everything; with --detach until kaz local down.
The state is kept in --dir, and the next up continues with it.`,
		Example: `  kaz local up
  kaz local up --nodes 5 --scale-sets 2 --detach
  kaz local up --ip-families IPv4,IPv6               # dual stack
  kaz local up --without cloud-controller-manager    # to run another one against it
  kaz local up --latency azure --throttle azure      # as slow and as strict as the real one`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var err error
			if o.Program, err = os.Executable(); err != nil {
				return err
			}
			for _, name := range []string{"nodes", "scale-sets"} {
				if f := command.Flags().Lookup(name); f.Changed && f.Value.String() == "0" {
					return fmt.Errorf("--%s 0: want at least 1", name)
				}
			}
			o.Out = command.OutOrStdout()
			// Who reads may be gone first, as tee after Ctrl-C: that is no reason to end at once.
			// Caught, for what is ignored would be so in all that is started.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
			if detach {
				return local.Detach(command.Context(), o, upArguments(command))
			}
			return local.Up(command.Context(), o, func(s local.Status) {
				printWelcome(command.OutOrStdout(), s, s.Dir != command.Flags().Lookup("dir").DefValue)
			})
		},
	}
	f := command.Flags()
	dirFlag(command, &o.Dir)
	f.IntVar(&o.Nodes, "nodes", 0, "number of nodes, 1 to 1000 (default 3, or as many as there are)")
	f.IntVar(&o.ScaleSets, "scale-sets", 0, "number of scale sets that the nodes are spread over (default 1, or as many as there are)")
	f.StringVar(&o.NodesKind, "nodes-kind", "", "real (namespaces with a kubelet each; needs root on Linux) or hollow (simulated); without it real where that is possible")
	f.StringSliceVar(&o.IPFamilies, "ip-families", nil, "IPv4, or IPv4,IPv6 for nodes, pods and Services with addresses of both (default IPv4, or as there is)")
	f.StringSliceVar(&o.Without, "without", nil, "component to leave out, can be repeated: "+strings.Join(local.Components(), ", "))
	f.StringVar(&o.Azure.Latency, "latency", "off", "how long Azure takes: off, azure (as the real one), or a factor of that such as 0.1")
	f.StringVar(&o.Azure.Throttle, "throttle", "off", "whether Azure limits requests: off, or azure (as the real one)")
	f.StringVar(&o.Azure.AccessControl, "access-control", "off", "whether Azure enforces role assignments: on or off")
	f.StringVar(&o.Azure.Identities, "identities", "", "file of who can log in to Azure, and with which roles")
	f.StringSliceVar(&o.Images, "image", nil, "archive with images (tar, of OCI or docker) that real nodes have from their boot on, can be repeated")
	f.BoolVar(&o.Example, "example", false, "on real nodes, run a web server behind a load balancer and wait until it answers")
	f.BoolVar(&detach, "detach", false, "return when the cluster is up and leave it running")
	return command
}

// upArguments are the arguments that run the same up in the foreground.
func upArguments(command *cobra.Command) []string {
	args := []string{"local", "up"}
	for _, name := range []string{"dir", "nodes", "scale-sets", "nodes-kind", "image", "ip-families", "example", "without", "latency", "throttle", "access-control", "identities"} {
		f := command.Flags().Lookup(name)
		if f.Changed || name == "dir" {
			args = append(args, "--"+name+"="+strings.Trim(f.Value.String(), "[]"))
		}
	}
	return args
}

// printWelcome says what to try. Commands name the directory where they would not
// find it by themselves.
func printWelcome(w io.Writer, s local.Status, elsewhere bool) {
	where := ""
	if elsewhere {
		where = " --dir " + shellWord(s.Dir)
	}
	if s.Example != "" {
		fmt.Fprintf(w, "\nThe example answers:\n\n  curl %s\n", s.Example)
	}
	fmt.Fprintf(w, "\nThe cluster is up. In another terminal:\n\n  . %s\n  kubectl get nodes\n", shellWord(s.Environment))
	image, target := "nginx", ""
	if s.NodesKind == local.NodesReal {
		image, target = "kaz.local/web:1", " --target-port=8080"
	}
	fmt.Fprintf(w, `  kubectl create deployment web --image=%[1]s --replicas=3
  kubectl expose deployment web --port=80%[2]s --type=LoadBalancer
  kubectl wait service/web --for=jsonpath={.status.loadBalancer.ingress}
  kubectl get service web
  kaz explain service default/web%[3]s
  kaz local azure list%[3]s
  kaz local status%[3]s
`, image, target, where)
	if s.NodesKind == local.NodesReal && len(s.Machines) > 0 {
		fmt.Fprintf(w, "  kaz local ssh%s %s\n", where, s.Machines[0].Name)
	}
	fmt.Fprintf(w, "\nThe kubectl that was built for it is %s\n", s.Kubectl)
}

// shellWord is a path as a shell reads it as one word.
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
		Short: "Stop the cluster in --dir and its Azure; their state is kept",
		Long: `Stop the cluster in --dir and its Azure; their state is kept.

Of real nodes, also what a kaz that was killed left on this machine is removed:
network namespaces, routes and control groups, whichever directory its cluster has.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), 2*time.Minute)
			defer cancel()
			stopped, err := local.Down(ctx, dir)
			for _, name := range stopped {
				fmt.Fprintln(command.OutOrStdout(), "stopped", name)
			}
			if err == nil && len(stopped) == 0 {
				fmt.Fprintln(command.OutOrStdout(), "nothing was running in", dir)
			}
			abandoned, left := local.SweepAbandoned(ctx)
			for _, name := range abandoned {
				fmt.Fprintln(command.OutOrStdout(), "removed what is left of", name+", a kaz that was killed")
			}
			return errors.Join(err, left)
		},
	}
	dirFlag(command, &dir)
	return command
}

func statusCommand() *cobra.Command {
	var dir, output string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show what runs in --dir; exit status 3 when nothing does",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			s, err := local.ReadStatus(dir)
			if errors.Is(err, local.ErrDown) {
				fmt.Fprintln(command.ErrOrStderr(), err)
				return exitCode(3)
			}
			if err != nil {
				return err
			}
			return printAs(command.OutOrStdout(), output, s, s.Write)
		},
	}
	dirFlag(command, &dir)
	outputFlag(command, &output)
	return command
}

func outputFlag(command *cobra.Command, output *string) {
	command.Flags().StringVarP(output, "output", "o", "text", "text, json or yaml")
}

// printAs prints v in the form that the user asked for.
func printAs(w io.Writer, output string, v any, text func(io.Writer) error) error {
	var data []byte
	var err error
	switch output {
	case "text":
		return text(w)
	case "json":
		data, err = json.MarshalIndent(v, "", "  ")
		data = append(data, '\n')
	case "yaml":
		data, err = yaml.Marshal(v)
	default:
		return fmt.Errorf("--output %s: want text, json or yaml", output)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}
