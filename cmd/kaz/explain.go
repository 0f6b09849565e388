package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	ccm "kaz/cmd/cloud-controller-manager/app"
	"kaz/internal/cloudprovider/service"
)

// Exit statuses of kaz explain besides 0.
const (
	failed  exitCode = 1
	pending exitCode = 2
)

func explainCommand() *cobra.Command {
	return group("explain", "Show what is in Azure for the cluster, what shall be, and what would be done", explainServiceCommand())
}

// explainOptions are the flags of kaz explain service.
type explainOptions struct {
	place   explainPlace
	classes []string
	nodes   string
	output  string
	all     bool
	within  time.Duration
}

func explainServiceCommand() *cobra.Command {
	var o explainOptions
	command := &cobra.Command{
		Use:   "service NAMESPACE/NAME",
		Short: "Show what is in Azure for a Service of type LoadBalancer, and what would be done",
		Long: `Looks at the cluster and at Azure as the cloud-controller-manager does, decides as it
does, and shows what it found, what shall be, each step with its reason, and problems.
Nothing is written.

One Service is explained as it would be served alone, --all as after a restart of the
cloud-controller-manager, which serves all of them together.

Exit status 0: there is nothing to do. 2: changes are pending. 1: a Service asks for
what cannot be, or it could not be found out.

Where it looks: at the cluster of --kubeconfig or the one that kaz local up runs in --dir,
where one of them is given; else of $KUBECONFIG, the one that kaz local up runs, or of
~/.kube/config. For a cluster of kaz local up nothing else has to be said;
for others, --cloud-config and --cluster-name as the cloud-controller-manager has them.`,
		Example: `  kaz explain service default/web
  kaz explain service --all -o json
  kaz explain service default/web --kubeconfig admin.conf --cloud-config azure.json --cluster-name prod`,
		Args: func(command *cobra.Command, args []string) error {
			return errors.Join(o.checkArguments(args), o.place.check(command.Flags()))
		},
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), o.within)
			defer cancel()
			err := runExplain(ctx, o, strings.Join(args, ""), command.OutOrStdout(), command.ErrOrStderr())
			if _, told := errors.AsType[exitCode](err); err != nil && !told && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("--timeout %v is over: %w", o.within, err)
			}
			return err
		},
	}
	f := command.Flags()
	o.place.flags(command)
	ccm.AddClassFlag(f, &o.classes)
	f.StringVar(&o.nodes, "node-filter-requirements", "", "label selector of the nodes that are looked after, as the cloud-controller-manager has it (default all)")
	f.BoolVar(&o.all, "all", false, "explain all Services of type LoadBalancer that are served")
	f.DurationVar(&o.within, "timeout", 2*time.Minute, "how long it may take")
	outputFlag(command, &o.output)
	return command
}

func (o explainOptions) checkArguments(args []string) error {
	switch {
	case o.all && len(args) > 0:
		return fmt.Errorf("--all and %s: want one of them", strings.Join(args, " "))
	case o.all:
	case len(args) == 0:
		return errors.New("no Service is named: want NAMESPACE/NAME, such as default/web, or --all")
	case len(args) > 1:
		return fmt.Errorf("%s: want one Service, or --all", strings.Join(args, " "))
	default:
		namespace, name, ok := strings.Cut(args[0], "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("%q: want NAMESPACE/NAME, such as default/web", args[0])
		}
	}
	if o.within <= 0 {
		return fmt.Errorf("--timeout %v: must be more than 0", o.within)
	}
	if !slices.Contains([]string{"text", "json", "yaml"}, o.output) {
		return fmt.Errorf("--output %s: want text, json or yaml", o.output)
	}
	return nil
}

// runExplain explains one Service, or all.
func runExplain(ctx context.Context, o explainOptions, key string, out, errs io.Writer) error {
	asked := ccm.Cluster{Name: o.place.clusterName, Classes: o.classes, Nodes: o.nodes}
	if !o.place.named {
		asked.Name = defaultClusterName
	}
	if err := asked.Validate(); err != nil {
		return err
	}
	cluster, err := o.place.find(ctx, os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if err != nil {
		return err
	}
	cluster.Classes, cluster.Nodes = o.classes, o.nodes
	look, err := ccm.Look(ctx, cluster, os.LookupEnv)
	if err != nil {
		return plainly(err, cluster.Kubernetes.Host)
	}
	var e service.Explanation
	if o.all {
		e, err = look.ExplainAll(ctx)
	} else {
		namespace, name, _ := strings.Cut(key, "/")
		e, err = look.Explain(ctx, namespace, name)
	}
	if err != nil {
		return err
	}
	text := func(w io.Writer) error {
		_, err := io.WriteString(w, e.String())
		return err
	}
	if err := printAs(out, o.output, e, text); err != nil {
		return err
	}
	switch {
	case len(e.Refused()) > 0:
		fmt.Fprintln(errs, "kaz: not as asked for:", strings.Join(e.Refused(), ", "))
		return failed
	case e.Pending():
		return pending
	}
	return nil
}
