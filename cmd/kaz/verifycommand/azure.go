package verifycommand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/component/release"
	"kaz/internal/verify"
	"kaz/internal/verify/cassette"
	"kaz/internal/verify/probe"
)

// azureOptions are the flags of kaz verify azure.
type azureOptions struct {
	targetFlags

	location, output, report, cassette string
	only                               []string
	list, yes                          bool
	lifetime                           time.Duration
}

func azureCommand() *cobra.Command {
	var o azureOptions
	command := &cobra.Command{
		Use:   "azure",
		Short: "Run the probes of kaz's beliefs in a resource group of their own",
		Long: `Makes a resource group kaz-verify-RANDOM, runs probes in it one after the other, and removes
it with all that is in it, also after Ctrl-C. Each probe tries something that kaz believes
of Azure, and reports what was seen. Before anything is made, the command says which
rights, how much money and how many minutes the probes need, and asks.

A probe that cannot run, such as for missing rights or a used-up quota, is "not run" with
the reason; the others go on. If the command is killed, kaz verify clean removes the group.

Exit status 0: all probes agree. 1: a probe differs, or the command failed. 2: none
differs, but some were not run.`,
		Example: `  kaz verify azure --list
  kaz verify azure --local --location westeurope --yes
  kaz verify azure --subscription ID --location westeurope --only disks,network --report report.html --cassette run.yaml`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.Context(), command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	o.define(command)
	f := command.Flags()
	f.StringVar(&o.location, "location", "", "location of the resources, such as westeurope")
	f.StringSliceVar(&o.only, "only", nil, "areas and names of probes to run (default all)")
	f.BoolVar(&o.list, "list", false, "list the probes with what they need, and send nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	f.StringVarP(&o.output, "output", "o", "text", "text, json or html")
	f.StringVar(&o.report, "report", "", "file for the report, whose name ends with .txt, .json or .html")
	f.StringVar(&o.cassette, "cassette", "", "file for all requests and answers, without secrets (see kaz verify replay)")
	f.DurationVar(&o.lifetime, "lifetime", 6*time.Hour, "time after which kaz verify clean removes the resource group of a killed run")
	return command
}

func (o *azureOptions) run(ctx context.Context, in io.Reader, out, errs io.Writer) error {
	probes, err := probe.Select(o.only)
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	if o.list {
		return o.printList(out, probes)
	}
	o.location = strings.ToLower(strings.ReplaceAll(o.location, " ", ""))
	if o.location == "" {
		return errors.New("--location is missing: want the location of the resources, such as westeurope")
	}
	files, err := o.openFiles()
	if err != nil {
		return err
	}
	defer files.close()
	azure, err := o.open(ctx)
	if err != nil {
		return err
	}
	if err := o.confirm(in, errs, azure, probes); err != nil {
		return err
	}
	report, failure := verify.Run(ctx, verify.Options{
		Azure: azure.client, Recorder: azure.recorder, Subscription: azure.subscription, Location: o.location, Random: random(),
		Versions: versionOf, Probes: probes, Program: release.Version(), Lifetime: o.lifetime, Removing: removing(ctx, errs), Now: time.Now,
		Say: func(format string, args ...any) { fmt.Fprintf(errs, format+"\n", args...) },
	})
	if failure == nil {
		failure = print(out, o.output, report)
	}
	failure = errors.Join(failure, files.write(report, azure.recorder), left(report))
	switch {
	case failure != nil:
		return failure
	case report.Differ > 0:
		return cli.ExitCode(1)
	case report.NotRun > 0:
		return cli.ExitCode(2)
	}
	return nil
}

// left is the error of what could not be removed.
func left(r verify.Report) error {
	if len(r.Left) == 0 {
		return nil
	}
	return fmt.Errorf("still there: %s", strings.Join(r.Left, "; "))
}

var outputs = []string{"text", "json", "html"}

// check checks flags before anything is sent.
func (o *azureOptions) check() error {
	switch {
	case !slices.Contains(outputs, o.output):
		return fmt.Errorf("--output %s: want %s", o.output, strings.Join(outputs, ", "))
	case o.report != "" && formOf(o.report) == "":
		return fmt.Errorf("--report %s: want a name that ends with .txt, .json or .html", o.report)
	case o.lifetime < time.Hour:
		return fmt.Errorf("--lifetime %s: want at least 1h", o.lifetime)
	}
	return nil
}

// formOf is the form of a report by the name of its file, "" if the name has none.
func formOf(name string) string {
	for end, form := range map[string]string{".txt": "text", ".json": "json", ".html": "html"} {
		if strings.HasSuffix(name, end) {
			return form
		}
	}
	return ""
}

// print prints a report in a form.
func print(w io.Writer, form string, r verify.Report) error {
	if form == "html" {
		return r.HTML(w)
	}
	return cli.PrintAs(w, form, r, r.Text)
}

// files are those that a run writes. They are opened before it, so that a wrong name does not cost a run.
type files struct {
	form             string
	report, cassette *os.File // nil for none
}

func (o *azureOptions) openFiles() (f files, err error) {
	f.form = formOf(o.report)
	if o.report != "" {
		if f.report, err = os.Create(o.report); err != nil {
			return f, fmt.Errorf("--report: %w", err)
		}
	}
	if o.cassette != "" {
		if f.cassette, err = os.OpenFile(o.cassette, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			f.close()
			return f, fmt.Errorf("--cassette: %w", err)
		}
	}
	return f, nil
}

func (f files) close() {
	for _, file := range []*os.File{f.report, f.cassette} {
		if file != nil {
			_ = file.Close() // it was closed before if something was written
		}
	}
}

func (f files) write(r verify.Report, recorder *cassette.Recorder) error {
	var errs []error
	if f.report != nil {
		errs = append(errs, print(f.report, f.form, r), f.report.Close())
	}
	if f.cassette != nil {
		errs = append(errs, cassette.Write(f.cassette, recorder.From(0)), f.cassette.Close())
	}
	return errors.Join(errs...)
}

// errDeclined is the answer no.
var errDeclined = errors.New("not confirmed: nothing was changed; --yes confirms")

// confirm says what the probes need, and asks.
func (o *azureOptions) confirm(in io.Reader, out io.Writer, a target, probes []probe.Probe) error {
	if err := table(out, probes); err != nil {
		return err
	}
	c := probe.CostOf(probes)
	fmt.Fprintf(out, "\n%d probes make resources in a new resource group of subscription %s in %s.\n", len(probes), a.subscription,
		o.location)
	fmt.Fprintf(out, "They cost at most %s US dollars, take about %d minutes, and need the rights:\n  %s\n",
		dollars(c.Cents), c.Minutes, strings.Join(c.Rights, "\n  "))
	if o.yes {
		return nil
	}
	fmt.Fprint(out, "Go on? [y/N] ")
	return ask(in)
}

func dollars(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// table prints probes with what they need.
func table(w io.Writer, probes []probe.Probe) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "AREA\tPROBE\tDOLLARS\tMINUTES\tNEEDS\tTRIES")
	for _, f := range probe.FixturesOf(probes) {
		fmt.Fprintf(t, "\t%s\t%s\t%d\t\twhat several probes use\n", f.Name, dollars(f.Cents), f.Minutes)
	}
	for _, p := range probes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", p.Area, p.Name, dollars(p.Cents), p.Minutes, strings.Join(p.Needs, ","), p.Tries)
	}
	return t.Flush()
}

// listed is a probe as data.
type listed struct {
	Name    string   `json:"name"`
	Area    string   `json:"area"`
	Belief  string   `json:"belief"`
	Tries   string   `json:"tries"`
	Rights  []string `json:"rights"`
	Cents   int      `json:"cents"`
	Minutes int      `json:"minutes"`
	Needs   []string `json:"needs,omitempty"`
}

func (o *azureOptions) printList(w io.Writer, probes []probe.Probe) error {
	all := []listed{}
	for _, p := range probes {
		all = append(all, listed{p.Name, p.Area, probe.BeliefOf(p.Name), p.Tries, p.Rights, p.Cents, p.Minutes, p.Needs})
	}
	if o.output == "html" {
		return errors.New("--output html: a list has text and json")
	}
	return cli.PrintAs(w, o.output, all, func(w io.Writer) error {
		if err := table(w, probes); err != nil {
			return err
		}
		c := probe.CostOf(probes)
		_, err := fmt.Fprintf(w, "\n%d probes, at most %s US dollars, about %d minutes\n", len(probes), dollars(c.Cents), c.Minutes)
		return err
	})
}

// removing returns the context of the removal. It outlives the end of the run, and ends with a second interrupt.
func removing(ctx context.Context, errs io.Writer) func() (context.Context, context.CancelFunc) {
	return func() (context.Context, context.CancelFunc) {
		const most = time.Hour
		later, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
		if ctx.Err() != nil {
			fmt.Fprintln(errs,
				"interrupted: what was made is being removed; a second interrupt leaves that to Azure or to kaz verify clean")
		}
		limited, cancel := context.WithTimeout(later, most)
		return limited, func() {
			cancel()
			stop()
		}
	}
}
