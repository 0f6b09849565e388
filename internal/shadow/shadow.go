// Package shadow decides again and again what kaz's controllers would write, while another controller is in charge, and writes nothing.
// Layer L3.
package shadow

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kaz/internal/pause"
	plan "kaz/internal/plan/shadow"
)

// Source decides about all objects of a kind.
type Source struct {
	Kind   string
	Decide func(context.Context) ([]plan.Verdict, error)
}

// Options say how long and how often to decide.
type Options struct {
	// For is how long it goes on, 0 for one round. Every is the time between the beginnings of rounds.
	For, Every time.Duration
	// Say gets a line for each round.
	Say func(string)
	// Show gets the report so far after the first round and each ShowEvery, 0 for never.
	Show      func(*plan.Report)
	ShowEvery time.Duration
}

// Run decides until the time is over or ctx is done, and at least once. It returns what was found in all rounds. A round that was
// interrupted does not count.
func Run(ctx context.Context, sources []Source, o Options) *plan.Report {
	report := &plan.Report{}
	end := time.Now().Add(o.For)
	show := time.Now()
	for {
		began := time.Now()
		round := decide(ctx, sources)
		if ctx.Err() != nil {
			return report
		}
		report.Add(began.UTC().Truncate(time.Second), round)
		o.Say(line(round))
		next := began.Add(o.Every)
		if o.ShowEvery > 0 && !began.Before(show) && !next.After(end) { // the caller has the last one
			o.Show(report)
			show = began.Add(o.ShowEvery)
		}
		if next.After(end) || pause.For(ctx, time.Until(next)) != nil {
			return report
		}
	}
}

func decide(ctx context.Context, sources []Source) []plan.Seen {
	var round []plan.Seen
	for _, s := range sources {
		seen := plan.Seen{Kind: s.Kind}
		verdicts, err := s.Decide(ctx)
		if err != nil {
			seen.Fault = err.Error()
		} else {
			seen.Verdicts = verdicts
		}
		round = append(round, seen)
	}
	return round
}

// line sums up a round.
func line(round []plan.Seen) string {
	var parts []string
	for _, s := range round {
		if s.Fault != "" {
			parts = append(parts, s.Kind+" not read")
			continue
		}
		agree := 0
		for _, v := range s.Verdicts {
			if v.Agrees() {
				agree++
			}
		}
		parts = append(parts, fmt.Sprintf("%s %d of %d agree", s.Kind, agree, len(s.Verdicts)))
	}
	return strings.Join(parts, ", ")
}
