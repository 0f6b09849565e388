package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	ccm "kaz/cmd/cloud-controller-manager/app"
	"kaz/cmd/kaz/cli"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/picture"
	"kaz/internal/plan/gateway/gatewayapi"
)

// Exit statuses of kaz explain besides 0.
const (
	failed  cli.ExitCode = 1
	pending cli.ExitCode = 2
)

func explainCommand() *cobra.Command {
	return cli.Group("explain",
		"Show what would change in Azure for a Service, what serves an Ingress, Gateway or route, where a volume is, what a node "+
			"group waits for, and what DNS answers for a name",
		explainServiceCommand(), explainIngressCommand(), explainGatewayCommand(), explainRouteCommand(),
		explainStreamCommand(gatewayapi.KindTCPRoute, "postgres"), explainStreamCommand(gatewayapi.KindTLSRoute, "mqtt"),
		explainVolumeCommand(), explainNodeGroupCommand(), explainNameCommand())
}

// explanation is what all commands of kaz explain have: flags, checks of them, and the end.
type explanation struct {
	cluster   clusterFlags
	namespace string
	output    string
	timeout   time.Duration
	more      time.Duration // that the command lasts by its own flags
	onlyText  bool          // what is found has no picture
}

// define completes a command. check validates its arguments, and run explains.
func (e *explanation) define(command *cobra.Command, check func(args []string) error,
	run func(ctx context.Context, args []string, out, errs io.Writer) error,
) *cobra.Command {
	command.Args = func(command *cobra.Command, args []string) error {
		err := check(args)
		if err == nil {
			err = e.check()
		}
		return errors.Join(err, e.cluster.check(command.Flags()))
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(command.Context(), e.timeout+e.more)
		defer cancel()
		err := run(ctx, args, command.OutOrStdout(), command.ErrOrStderr())
		if _, printed := errors.AsType[cli.ExitCode](err); err != nil && !printed && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("not finished within --timeout %v: %w", e.timeout, err)
		}
		return err
	}
	e.cluster.define(command)
	command.Flags().DurationVar(&e.timeout, "timeout", 2*time.Minute, "time limit of the command")
	usage := "text, wide (text with whole ids), json or yaml"
	if !e.onlyText {
		usage = "text, wide (text with whole ids), json, yaml, svg (a picture) or picture (its boxes as JSON)"
	}
	command.Flags().StringVarP(&e.output, "output", "o", "text", usage)
	return command
}

func (e *explanation) check() error {
	if e.timeout <= 0 {
		return fmt.Errorf("--timeout %v: want more than 0", e.timeout)
	}
	isText := slices.Contains([]string{"text", wide, "json", "yaml"}, e.output)
	switch {
	case e.onlyText && !isText:
		return fmt.Errorf("--output %s: want text, wide, json or yaml", e.output)
	case !isText && e.output != asSVG && e.output != asPicture:
		return fmt.Errorf("--output %s: want text, wide, json, yaml, svg or picture", e.output)
	}
	return nil
}

// find returns the selected cluster.
func (e *explanation) find(ctx context.Context) (ccm.Cluster, error) {
	return e.cluster.find(ctx, os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
}

// pictured is what can be drawn.
type pictured interface{ Picture() picture.Picture }

// print prints what was found, and returns the exit status.
func (e *explanation) print(out io.Writer, found fmt.Stringer, problems, waits bool) error {
	if err := e.write(out, found); err != nil {
		return err
	}
	switch {
	case problems:
		return failed
	case waits:
		return pending
	}
	return nil
}

// write writes what was found in the chosen format.
func (e *explanation) write(out io.Writer, found fmt.Stringer) error {
	text := found.String()
	if e.output != wide {
		text = shortIDs(text)
	}
	output, shown := e.output, any(found)
	switch output {
	case wide:
		output = "text"
	case asSVG, asPicture:
		drawn, ok := found.(pictured)
		if !ok {
			return fmt.Errorf("--output %s: this has no picture", output)
		}
		p := drawn.Picture().Reword(shortIDs)
		p.Text = text
		if output == asSVG {
			output, text = "text", p.SVG()
		} else {
			output, shown = "json", p
		}
	}
	return cli.PrintAs(out, output, shown, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// Output formats besides those of [cli.PrintAs].
const (
	wide      = "wide" // a text with whole ids
	asSVG     = "svg"
	asPicture = "picture" // what an SVG draws, as JSON
)

// resourceID matches ids of Azure in a text.
var resourceID = regexp.MustCompile(`/subscriptions/[^\s"',;:|<>]+`)

// shortIDs replaces each id of a resource in a text by its types and names: kaz local azure show takes that of a resource that is no
// child of another one.
func shortIDs(text string) string {
	return resourceID.ReplaceAllStringFunc(text, func(whole string) string {
		id := strings.TrimRight(whole, ".)")
		rest := whole[len(id):]
		if at := strings.LastIndex(strings.ToLower(id), "/providers/"); at >= 0 {
			_, short, _ := strings.Cut(id[at+len("/providers/"):], "/")
			return cmp.Or(short, id) + rest
		}
		if at := strings.Index(strings.ToLower(id), "/resourcegroups/"); at >= 0 {
			return id[at+1:] + rest
		}
		return whole
	})
}

// namespaceFlag defines the flag for the namespace of the object of a command.
func (e *explanation) namespaceFlag(command *cobra.Command) {
	command.Flags().StringVarP(&e.namespace, "namespace", "n", "", "namespace of the object, if it is given as NAME")
}

// key returns the namespace and the name of an object that is given as NAMESPACE/NAME, or as NAME with --namespace. example is the NAME
// of the error text.
func (e *explanation) key(text, example string) (namespace, name string, err error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok && e.namespace != "" {
		namespace, name, ok = e.namespace, text, true
	}
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q: want NAMESPACE/NAME, such as default/%s", text, example)
	}
	if e.namespace != "" && e.namespace != namespace {
		return "", "", fmt.Errorf("--namespace %s and %s: want one namespace", e.namespace, text)
	}
	return namespace, name, nil
}

// explainOptions are the flags of kaz explain service.
type explainOptions struct {
	explanation
	classes []string
	nodes   string
	all     bool
}

func explainServiceCommand() *cobra.Command {
	var o explainOptions
	command := o.define(&cobra.Command{
		Use:   "service NAMESPACE/NAME",
		Short: "Show what would change in Azure for a Service of type LoadBalancer, and why",
		Long: `Reads the cluster and Azure, and decides as the cloud-controller-manager does. Shows the
actual state, the desired state, each step with its reason, and problems. It writes nothing.

One Service is explained as if it were the only one with changes. --all explains all
Services together, as the cloud-controller-manager serves them after a restart.

Exit status 0: nothing would change. 2: changes are pending. 1: a Service cannot be
served as specified, or the command failed.

The cluster is that of --kubeconfig or the one of kaz local up in --dir, if one of the
flags is given. Otherwise it is that of $KUBECONFIG, the one of kaz local up, or that of
~/.kube/config. A cluster of kaz local up needs no other flags. Other clusters need
--cloud-config and --cluster-name with the values of the cloud-controller-manager.`,
		Example: `  kaz explain service default/web
  kaz explain service --all -o json
  kaz explain service default/web --kubeconfig admin.conf --cloud-config azure.json --cluster-name prod`,
	}, o.checkArguments, o.run)
	o.namespaceFlag(command)
	o.cluster.defineSecret(command)
	f := command.Flags()
	ccm.AddClassFlag(f, &o.classes)
	f.StringVar(&o.nodes, "node-filter-requirements", "",
		"label selector of the nodes that are managed, as of the cloud-controller-manager (default all)")
	f.BoolVar(&o.all, "all", false, "explain all Services of type LoadBalancer that the cloud-controller-manager serves")
	return command
}

// checkArguments validates the arguments and the flags that depend on them.
func (o *explainOptions) checkArguments(args []string) error {
	switch {
	case o.all && len(args) > 0:
		return fmt.Errorf("--all and %s: want one of them", strings.Join(args, " "))
	case o.all && o.namespace != "":
		return fmt.Errorf("--all and --namespace %s: want one of them", o.namespace)
	case o.all:
	case len(args) == 0:
		return errors.New("no Service given: want NAMESPACE/NAME, such as default/web, or --all")
	case len(args) > 1:
		return fmt.Errorf("%s: want one Service, or --all", strings.Join(args, " "))
	default:
		_, _, err := o.key(args[0], "web")
		return err
	}
	return nil
}

// run explains one Service, or all.
func (o *explainOptions) run(ctx context.Context, args []string, out, errs io.Writer) error {
	given := ccm.Cluster{Name: o.cluster.clusterName, Classes: o.classes, Nodes: o.nodes}
	if !o.cluster.nameGiven {
		given.Name = defaultClusterName
	}
	if err := given.Validate(); err != nil {
		return err
	}
	cluster, err := o.find(ctx)
	if err != nil {
		return err
	}
	cluster.Classes, cluster.Nodes = o.classes, o.nodes
	inspector, err := ccm.NewInspector(ctx, cluster, os.LookupEnv)
	if err != nil {
		return explainError(err, cluster.Kubernetes.Host)
	}
	var e explain.Explanation
	if o.all {
		e, err = inspector.ExplainAll(ctx)
	} else {
		var namespace, name string
		if namespace, name, err = o.key(args[0], "web"); err == nil {
			e, err = inspector.Explain(ctx, namespace, name)
		}
	}
	if err != nil {
		return err
	}
	refused := e.Refused()
	if len(refused) > 0 {
		fmt.Fprintln(errs, "kaz: not as asked for:", strings.Join(refused, ", "))
	}
	return o.print(out, e, len(refused) > 0, e.Pending())
}
