// Package verify runs the probes of `kaz verify azure` in a resource group of their own, removes it, and reports what was found.
// Layer L3.
package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
	"kaz/internal/verify/cassette"
	"kaz/internal/verify/probe"
)

// Azure reads and writes Azure.
type Azure interface {
	azure.Reader
	azure.Writer
}

// Options are those of a run.
type Options struct {
	Azure    Azure
	Recorder *cassette.Recorder
	// Subscription and Location are where the resource group is made.
	Subscription, Location string
	// Random ends the name of the group: eight lower-case letters or digits.
	Random string
	// Versions gives the api-version that kaz uses for a type.
	Versions func(fullType string) string
	Probes   []probe.Probe
	// Program is the version of kaz, for the report.
	Program string
	// Lifetime is how long the group is left alone by other runs of `kaz verify clean`.
	Lifetime time.Duration
	// Removing returns the context of the removal, which goes on after the end of the run's context.
	Removing func() (context.Context, context.CancelFunc)
	// Say prints a line about the progress.
	Say func(format string, args ...any)
	Now func() time.Time
}

// prefix begins the names of all resource groups of runs.
const prefix = "kaz-verify-"

// Tags of the resource groups of runs.
const (
	ownerTag  = "kaz-verify"
	ownerMark = "temporary"
	expiryTag = "kaz-verify-expires"
)

// resourceGroups is the type of resource groups.
const resourceGroups = "Microsoft.Resources/resourceGroups"

// errForeign is why a group is not touched.
var errForeign = errors.New("it is there already, and is not of this run")

// Run makes the resource group, runs the probes, removes the group and reports. The error says why no probe could run. The report is
// complete in any case.
func Run(ctx context.Context, o Options) (report Report, err error) {
	start := o.Now()
	report = newReport(o, start)
	defer func() { report.Took = o.Now().Sub(start).Round(time.Second).String() }()
	if err := check(ctx, o); err != nil {
		return report, err
	}
	group := azure.GroupID(o.Subscription, report.Group)
	o.Say("making resource group %s", report.Group)
	made, err := makeGroup(ctx, o, group, start)
	if made {
		defer func() { report.Left = remove(o, group) }()
	}
	if err != nil {
		return report, err
	}
	r := runner{Options: o, group: report.Group, fixtures: map[string]error{}}
	for _, p := range o.Probes {
		report.add(r.run(ctx, p))
	}
	return report, nil
}

// check looks whether the subscription and the location exist.
func check(ctx context.Context, o Options) error {
	o.Recorder.Label("")
	id := azure.SubscriptionID(o.Subscription)
	if _, err := o.Azure.Get(ctx, id); err != nil {
		return fmt.Errorf("subscription %s: %w", o.Subscription, err)
	}
	docs, err := o.Azure.List(ctx, azure.Query{Scope: id, Type: "Microsoft.Resources/subscriptions/locations"})
	if err != nil {
		return fmt.Errorf("locations of subscription %s: %w", o.Subscription, err)
	}
	var names []string
	for _, d := range docs {
		names = append(names, bench.Text(d, "name"))
	}
	if !slices.Contains(names, o.Location) {
		slices.Sort(names)
		return fmt.Errorf("--location %s: the subscription has no such location; want one of %s", o.Location, strings.Join(names, ", "))
	}
	return nil
}

// makeGroup creates the group. It reports whether the group may be there now and is of this run.
func makeGroup(ctx context.Context, o Options, id azure.ID, now time.Time) (made bool, err error) {
	switch _, err := o.Azure.Get(ctx, id); {
	case err == nil:
		return false, fmt.Errorf("resource group %s: %w", id.Name(), errForeign)
	case !azure.IsNotFound(err):
		return false, fmt.Errorf("resource group %s: %w", id.Name(), err)
	}
	expires := now.Add(o.Lifetime).UTC().Format(time.RFC3339)
	body := fmt.Sprintf(`{"location":%q,"tags":{%q:%q,%q:%q}}`, o.Location, ownerTag, ownerMark, expiryTag, expires)
	if _, err := azure.Do(ctx, o.Azure, azure.Request{Verb: azure.Put, ID: id, Body: azure.Document(body)}); err != nil {
		return azure.KindOf(err) != azure.Denied, fmt.Errorf("resource group %s: %w", id.Name(), err)
	}
	return true, nil
}

// runner runs probes one after the other.
type runner struct {
	Options

	group    string
	fixtures map[string]error // those that were made, and why others were not
}

func (r *runner) place() bench.Place {
	return bench.Place{
		Subscription: r.Subscription, Location: r.Location, Group: r.group, Random: r.Random, Versions: r.Versions,
	}
}

func (r *runner) run(ctx context.Context, p probe.Probe) Result {
	start, mark := r.Now(), r.Recorder.Len()
	outcome := bench.Outcome{Err: ctx.Err()}
	if outcome.Err == nil {
		r.Say("%s", p.Name)
		outcome = r.try(ctx, p)
	}
	return newResult(p, outcome, r.Now().Sub(start), r.Recorder.Len()-mark)
}

// try makes the fixtures of a probe and runs it, within some times its usual duration.
func (r *runner) try(ctx context.Context, p probe.Probe) bench.Outcome {
	for _, f := range probe.FixturesOf([]probe.Probe{p}) {
		if err := r.fixture(ctx, f); err != nil {
			return bench.Outcome{Err: err}
		}
	}
	limited, cancel := context.WithTimeout(ctx, limit(p.Minutes))
	defer cancel()
	r.Recorder.Label(p.Name)
	b := bench.New(r.place(), r.Azure, r.Recorder, p.Name)
	p.Run(limited, b)
	outcome := b.Outcome()
	if limited.Err() != nil && ctx.Err() == nil {
		outcome.Err = fmt.Errorf("it took longer than %s: %w", limit(p.Minutes), outcome.Err)
	}
	return outcome
}

// limit is how long something may take that usually takes some minutes.
func limit(minutes int) time.Duration { return time.Duration(10+4*minutes) * time.Minute }

func (r *runner) fixture(ctx context.Context, f probe.Fixture) error {
	if err, made := r.fixtures[f.Name]; made {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit(f.Minutes))
	defer cancel()
	r.Say("making %s", f.Name)
	r.Recorder.Label(f.Name)
	b := bench.New(r.place(), r.Azure, r.Recorder, f.Name)
	f.Make(ctx, b)
	if err := b.Outcome().Err; err != nil {
		r.fixtures[f.Name] = fmt.Errorf("%s, which it needs: %w", f.Name, err)
		return r.fixtures[f.Name]
	}
	r.fixtures[f.Name] = nil
	return nil
}
