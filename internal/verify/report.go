package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"kaz/internal/verify/bench"
	"kaz/internal/verify/probe"
)

// Verdict is what became of a probe.
type Verdict string

// The verdicts.
const (
	Agrees  Verdict = "agrees"
	Differs Verdict = "differs"
	NotRun  Verdict = "not run"
)

// Result is what a probe found.
type Result struct {
	Probe   string  `json:"probe"`
	Area    string  `json:"area"`
	Verdict Verdict `json:"verdict"`
	// Belief is what kaz believes, Tries what the probe does.
	Belief string `json:"belief"`
	Tries  string `json:"tries"`
	// Seen are sentences about Azure's answers.
	Seen []string `json:"seen"`
	// Reason is why a probe was not run.
	Reason string `json:"reason,omitempty"`
	// Requests are the request ids of answers that differ.
	Requests []string `json:"requestIDs,omitempty"`
	Sent     int      `json:"requests"`
	Took     string   `json:"took"`
}

// Report is that of a run.
type Report struct {
	Program      string    `json:"program"`
	Started      time.Time `json:"started"`
	Took         string    `json:"took"`
	Subscription string    `json:"subscription"`
	Location     string    `json:"location"`
	Group        string    `json:"group"`
	Agree        int       `json:"agree"`
	Differ       int       `json:"differ"`
	NotRun       int       `json:"notRun"`
	Results      []Result  `json:"results"`
	// Left is what the run could not remove.
	Left []string `json:"left,omitempty"`
}

func newReport(o Options, now time.Time) Report {
	return Report{
		Program: o.Program, Started: now.UTC().Truncate(time.Second), Subscription: o.Subscription, Location: o.Location,
		Group: prefix + o.Random, Results: []Result{},
	}
}

func (r *Report) add(x Result) {
	r.Results = append(r.Results, x)
	switch x.Verdict {
	case Agrees:
		r.Agree++
	case Differs:
		r.Differ++
	case NotRun:
		r.NotRun++
	}
}

func newResult(p probe.Probe, o bench.Outcome, took time.Duration, sent int) Result {
	r := Result{
		Probe: p.Name, Area: p.Area, Verdict: Agrees, Belief: probe.BeliefOf(p.Name), Tries: p.Tries, Seen: o.Seen,
		Requests: o.Requests, Sent: sent, Took: took.Round(100 * time.Millisecond).String(),
	}
	if r.Seen == nil {
		r.Seen = []string{}
	}
	switch {
	case o.Differs: // also if it could not go on then
		r.Verdict = Differs
		if o.Err != nil {
			r.Reason = reason(o.Err)
		}
	case o.Err != nil:
		r.Verdict, r.Reason = NotRun, reason(o.Err)
	case len(o.Seen) == 0:
		r.Verdict, r.Reason = NotRun, "it saw nothing"
	}
	return r
}

func reason(err error) string {
	if errors.Is(err, context.Canceled) {
		return "the run was interrupted"
	}
	return err.Error()
}

// Text prints a report for people.
func (r Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "kaz verify azure, %s: subscription %s, location %s, %s\n", r.Program, r.Subscription, r.Location, r.Took)
	area := ""
	for _, x := range r.Results {
		if x.Area != area {
			area = x.Area
			fmt.Fprintf(&b, "\n%s\n", area)
		}
		fmt.Fprintf(&b, "  %-8s %s (%s, requests: %d)\n", x.Verdict, x.Probe, x.Took, x.Sent)
		if x.Verdict != Agrees {
			fmt.Fprintf(&b, "           belief: %s\n", x.Belief)
		}
		for _, line := range x.Seen {
			fmt.Fprintf(&b, "           seen: %s\n", line)
		}
		if x.Reason != "" {
			fmt.Fprintf(&b, "           reason: %s\n", x.Reason)
		}
		if len(x.Requests) > 0 {
			fmt.Fprintf(&b, "           request IDs: %s\n", strings.Join(x.Requests, ", "))
		}
	}
	fmt.Fprintf(&b, "\nagree: %d, differ: %d, not run: %d\n", r.Agree, r.Differ, r.NotRun)
	for _, line := range r.Left {
		fmt.Fprintf(&b, "still there: %s\n", line)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
