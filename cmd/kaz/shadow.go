package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	ccm "kaz/cmd/cloud-controller-manager/app"
	plan "kaz/internal/plan/shadow"
	"kaz/internal/shadow"
)

// shadowOptions are the flags of kaz shadow.
type shadowOptions struct {
	explanation
	every    time.Duration
	markdown bool
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
cloud-controller-manager does, and compares that with what is there. It writes nothing.

The summary is for a change request: what agrees, what differs and since when, and what a
switch would write. A difference in the last round counts; others passed while a controller
was at work. Ctrl-C ends it early, with the summary.

Exit status 0: a switch would write nothing. 2: it would, or not everything could be read.
1: the command failed.

The cluster and its azure.json are selected as by kaz explain service. Volumes, node groups,
Ingresses and names are not compared.`,
		Example: `  kaz shadow
  kaz shadow --for 4h --every 5m -o json > shadow.json
  kaz shadow --for 4h --every 5m --markdown > change.md
  kaz shadow --kubeconfig admin.conf --cloud-config azure.json --cluster-name prod`,
	}, o.checkArguments, o.run)
	o.cluster.defineSecret(command)
	command.Flags().DurationVar(&o.more, "for", 0, "how long to go on, such as 4h (default one round)")
	command.Flags().BoolVar(&o.markdown, "markdown", false, "print the summary as Markdown, for a change request")
	command.Flags().DurationVar(&o.every, "every", time.Minute, "time between the beginnings of rounds")
	return command
}

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
	if o.markdown && (o.output == "json" || o.output == "yaml") {
		problems = append(problems, fmt.Errorf("--markdown and --output %s: want one of them", o.output))
	}
	if o.every < shortestRound {
		problems = append(problems, fmt.Errorf("--every %v: want %v or more", o.every, shortestRound))
	}
	return errors.Join(problems...)
}

func (o *shadowOptions) run(ctx context.Context, _ []string, out, errs io.Writer) error {
	cluster, err := o.find(ctx)
	if err != nil {
		return err
	}
	report, err := ccm.Shadow(ctx, cluster, shadow.Options{For: o.more, Every: o.every, Say: func(line string) {
		fmt.Fprintf(errs, "%s %s\n", time.Now().UTC().Format(time.RFC3339), line)
	}}, os.LookupEnv)
	if err != nil {
		return err
	}
	if report.Rounds == 0 {
		return errors.New("it was ended before the first round")
	}
	var summary fmt.Stringer = report
	if o.markdown {
		summary = change{report}
	}
	return o.print(out, summary, false, report.Differs() || report.Unknown())
}
