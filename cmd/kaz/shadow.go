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
	"github.com/spf13/pflag"

	gateway "kaz/cmd/application-gateway-controller/app"
	ccm "kaz/cmd/cloud-controller-manager/app"
	plan "kaz/internal/plan/shadow"
	"kaz/internal/shadow"
)

// shadowOptions are the flags of kaz shadow.
type shadowOptions struct {
	explanation
	every, summaryEvery time.Duration
	markdown            bool
	skip                []string
	// named and discovery select node groups, groups the zones of owner, and gateway the application gateway.
	named, discovery, groups []string
	owner                    string
	gateway                  gateway.Flags
	flags                    *pflag.FlagSet
}

// change is a report as a text for a change request.
type change struct{ *plan.Report }

func (c change) String() string { return c.Markdown() }

func shadowCommand() *cobra.Command {
	o := shadowOptions{explanation: explanation{onlyText: true}}
	command := o.define(&cobra.Command{
		Use:   "shadow",
		Short: "Decide beside the controllers in charge, for a while, and report what a switch to kaz would write",
		Long: `Reads the cluster and its Azure again and again while other controllers are in charge, decides
about each Service of type LoadBalancer, each Node and each route as kaz's
cloud-controller-manager does, and about each volume as its CSI drivers do, and compares that
with what is there. It writes nothing.

With the flags of the components that you would run, it compares further kinds: node groups
with --nodes or --node-group-auto-discovery, Ingresses and Gateways with --gateway or
--gateway-id, and names in Azure DNS with --zone-resource-group.

The summary is for a change request: what agrees, what differs and since when, and what a
switch would write. A difference in the last round counts; others passed while a controller
was at work. Ctrl-C ends it early, with the summary.

Exit status 0: a switch would write nothing. 2: it would, or not everything could be read.
1: the command failed.

The cluster and its azure.json are selected as by kaz explain service. In a pod it is the
cluster of the pod.`,
		Example: `  kaz shadow
  kaz shadow --for 4h --every 5m -o json > shadow.json
  kaz shadow --for 4h --every 5m --markdown > change.md
  kaz shadow --kubeconfig admin.conf --cloud-config azure.json --cluster-name prod
  kaz shadow --node-group-auto-discovery label:cluster-autoscaler-enabled=true --zone-resource-group dns`,
	}, o.checkArguments, o.run)
	o.cluster.defineSecret(command)
	o.flags = command.Flags()
	o.defineFlags()
	return command
}

func (o *shadowOptions) defineFlags() {
	f := o.flags
	f.DurationVar(&o.more, "for", 0, "how long to go on, such as 4h (default one round)")
	f.BoolVar(&o.markdown, "markdown", false, "print the summary as Markdown, for a change request")
	f.DurationVar(&o.every, "every", time.Minute, "time between the beginnings of rounds")
	f.DurationVar(&o.summaryEvery, "summary-every", 0,
		"print the summary so far after the first round, and then as often (default at the end)")
	f.StringSliceVar(&o.skip, "skip", nil, "kinds that are not compared: "+strings.Join(shadowKinds(), ", "))
	f.StringArrayVar(&o.named, "nodes", nil, "node group MIN:MAX:SCALESET, as of cluster-autoscaler; may be repeated")
	f.StringArrayVar(&o.discovery, "node-group-auto-discovery", nil,
		"selector of node groups label:KEY=VALUE,..., as of cluster-autoscaler; may be repeated")
	f.StringSliceVar(&o.groups, "zone-resource-group", nil, "resource groups with zones of ExternalDNS: names in the subscription of "+
		"azure.json, or /subscriptions/ID/resourceGroups/NAME")
	f.StringVar(&o.owner, "txt-owner-id", "", "owner of the names, as of ExternalDNS (default any)")
	o.gateway.AddFlags(f)
}

// shadowKinds are the names of the kinds that are compared without further flags.
func shadowKinds() []string { return []string{"services", "nodes", "routes", "disks", "file-shares"} }

// kindName is the name of a kind in --skip.
func kindName(kind string) string { return strings.ReplaceAll(strings.ToLower(kind), " ", "-") }

// shortestRound is the least time between rounds, because each reads all machines and load balancers.
const shortestRound = 10 * time.Second

func (o *shadowOptions) checkArguments(args []string) error {
	var problems []error
	if len(args) > 0 {
		problems = append(problems, fmt.Errorf("%s: want no argument", strings.Join(args, " ")))
	}
	if o.more < 0 {
		problems = append(problems, fmt.Errorf("--for %v: want a duration that is not negative", o.more))
	}
	if o.summaryEvery < 0 {
		problems = append(problems, fmt.Errorf("--summary-every %v: want a duration that is not negative", o.summaryEvery))
	}
	if o.markdown && (o.output == "json" || o.output == "yaml") {
		problems = append(problems, fmt.Errorf("--markdown and --output %s: want one of them", o.output))
	}
	if o.every < shortestRound {
		problems = append(problems, fmt.Errorf("--every %v: want %v or more", o.every, shortestRound))
	}
	for _, kind := range o.skip {
		if !slices.Contains(shadowKinds(), kind) {
			problems = append(problems, fmt.Errorf("--skip %s: want %s", kind, strings.Join(shadowKinds(), ", ")))
		}
	}
	return errors.Join(append(problems, o.checkKinds()...)...)
}

func (o *shadowOptions) run(ctx context.Context, _ []string, out, errs io.Writer) error {
	cluster, err := o.find(ctx)
	if err != nil {
		return err
	}
	beside, err := ccm.OpenBeside(ctx, cluster, os.LookupEnv)
	if err != nil {
		return explainError(err, cluster.Kubernetes.Host)
	}
	defer beside.Close()
	watches, end := context.WithCancel(ctx)
	defer end()
	more, err := o.further(watches, beside)
	if err != nil {
		return err
	}
	sources := slices.DeleteFunc(slices.Concat(beside.Sources, more), func(s shadow.Source) bool {
		return slices.Contains(o.skip, kindName(s.Kind))
	})
	if len(sources) == 0 {
		return fmt.Errorf("--skip %s: nothing is left to compare", strings.Join(o.skip, ","))
	}
	report := shadow.Run(ctx, sources, shadow.Options{
		For: o.more, Every: o.every, ShowEvery: o.summaryEvery,
		Say: func(line string) { fmt.Fprintf(errs, "%s %s\n", time.Now().UTC().Format(time.RFC3339), line) },
		Show: func(r *plan.Report) {
			if err := o.write(out, o.summary(r)); err != nil {
				fmt.Fprintln(errs, "kaz: print the summary:", err)
			}
		},
	})
	if report.Rounds == 0 {
		return errors.New("it was ended before the first round")
	}
	return o.print(out, o.summary(report), false, report.Differs() || report.Unknown())
}

// summary is a report in the chosen form.
func (o *shadowOptions) summary(r *plan.Report) fmt.Stringer {
	if o.markdown {
		return change{r}
	}
	return r
}
