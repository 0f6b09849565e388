package reconcile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/pause"
	"kaz/internal/plan"
)

// Decision is what a planner makes of a snapshot. It is data only: it names the problems, and the caller deals with
// them.
type Decision struct {
	// Graph is the wanted state of Azure.
	Graph    plan.Graph
	Problems []plan.Problem
	// Ask is what must be asked or recorded outside Azure before the graph may be applied, nil for nothing. If there
	// is an Ask, [Converge] applies nothing.
	Ask Ask
	// Deferred is wanted too. The caller applies it when the rest is done.
	Deferred plan.Graph
}

// Ask is one thing that must be asked or recorded outside Azure. Its types are those of the component that decides.
type Ask any

// Target is a decision that [Converge] applies. Both methods are pure: the same arguments
// give the same result, and neither changes the target.
type Target interface {
	// Needs names what a snapshot must hold, given what is known so far. It is called again with each resulting
	// snapshot, until it names nothing new.
	Needs(have plan.Snapshot) Needs
	// Decide is called once for each snapshot.
	Decide(have plan.Snapshot) (Decision, error)
}

// Azure is what a reconciler needs of the ARM client.
type Azure interface {
	azure.Reader
	azure.Writer
	// Fresh reads past any cache.
	Fresh() azure.Reader
}

// Outcome is how a [Converge] ended.
type Outcome struct {
	// Have is Azure as it is now, as far as the target needs it and the writes show it. Azure may fill in values at a
	// resource that existed before, such as the address of a further frontend. The next [Gather] reads these.
	Have    plan.Snapshot
	Reports []Report // one for each plan that was applied
	// Decision is the last decision. If it has an Ask, answer that and converge again.
	Decision Decision
}

// Attempted yields the results of all attempted steps of all plans.
func (o Outcome) Attempted() iter.Seq[Result] {
	return func(yield func(Result) bool) {
		for _, report := range o.Reports {
			for _, res := range report.Results {
				if !errors.Is(res.Err, ErrNotAttempted) && !yield(res) {
					return
				}
			}
		}
	}
}

// Failed are the steps of the last plan that failed themselves.
func (o Outcome) Failed() []Result {
	if len(o.Reports) == 0 {
		return nil
	}
	return o.Reports[len(o.Reports)-1].Failed()
}

const (
	// conflictsAtMost bounds how often a plan is made anew because Azure's state has changed meanwhile.
	conflictsAtMost = 3
	// roundsAtMost bounds how often a target may wait for facts that applying brings. A planner that needs more
	// rounds does not come to rest.
	roundsAtMost = 5
)

// pauses says how long to wait before planning anew, after each failure in a row that a fresh read may resolve. A
// time that Azure names takes precedence. A changed document can be read at once. A busy resource takes a moment or
// minutes. After the moment, the caller decides about waiting, because it knows what else it keeps waiting.
var pauses = map[azure.Kind][]time.Duration{
	azure.Changed: {0, time.Second, 2 * time.Second},
	azure.Exists:  {0, time.Second, 2 * time.Second},
	azure.Busy:    {2 * time.Second},
	// For an update only: the resource was read, and has disappeared since.
	azure.NotFound: {0, time.Second, 2 * time.Second},
}

// Converge takes a snapshot, plans and applies. It repeats this while the plan waits for facts that applying brings,
// such as the address of a new public IP. If Azure answers that a document has changed meanwhile, Converge reads past
// the cache and plans anew, at most three times. If Azure is busy with another operation, it does so once. A decision
// with an Ask ends it: see [Outcome].
func Converge(ctx context.Context, client Azure, target Target) (Outcome, error) {
	out, known, err := converge(ctx, client, target)
	if err == nil && !known && out.Decision.Ask == nil {
		out.Have, err = Gather(ctx, client, target.Needs)
	}
	return out, err
}

// Achieve is [Converge] without the last read of Azure. It is for callers that do not need that read, with a target
// that asks for nothing.
func Achieve(ctx context.Context, client Azure, target Target) error {
	out, _, err := converge(ctx, client, target)
	if err == nil && out.Decision.Ask != nil {
		return fmt.Errorf("nothing is written before an answer: %v", out.Decision.Ask)
	}
	return err
}

// converge also reports whether the state of Azure now follows from what was written.
func converge(ctx context.Context, client Azure, target Target) (out Outcome, known bool, err error) {
	var reader azure.Reader = client
	conflicts := 0
	for range roundsAtMost + conflictsAtMost {
		if out.Have, err = Gather(ctx, reader, target.Needs); err != nil {
			return out, false, err
		}
		if out.Decision, err = target.Decide(out.Have); err != nil || out.Decision.Ask != nil {
			return out, true, err
		}
		p, err := plan.Diff(out.Have, out.Decision.Graph)
		if err != nil || p.Empty() {
			return out, true, err
		}
		report := Apply(ctx, client, p)
		out.Reports = append(out.Reports, report)
		reader = client
		if err := report.Err(); err != nil {
			waits := pauses[report.Kind()]
			if !helpedByFreshRead(report) || conflicts >= len(waits) {
				return out, false, err
			}
			if err := pauseAfter(ctx, err, waits[conflicts]); err != nil {
				return out, false, err
			}
			conflicts++
			reader = client.Fresh()
		} else if len(p.Pending) == 0 {
			out.Have, known = after(out.Have, report)
			return out, known, nil
		}
	}
	return out, false, errors.New("the plan does not come to rest: each round wants another one")
}

// after returns the snapshot after a report, and whether it follows from what was written. For a new resource it does
// not: only Azure knows what it makes of one.
func after(have plan.Snapshot, r Report) (plan.Snapshot, bool) {
	for _, res := range r.Results {
		switch {
		case res.Step.Op == plan.Delete:
			have = have.Without(res.Step.ID)
		case res.Step.Op == plan.Act, !res.Step.Body.ID().Equal(res.Step.ID):
			return have, false
		default:
			have = have.With(res.Step.Body)
		}
	}
	return have, true
}

// helpedByFreshRead reports whether a fresh read may resolve every failure of a report.
func helpedByFreshRead(r Report) bool {
	for _, res := range r.Results {
		if res.Err == nil || errors.Is(res.Err, ErrNotAttempted) {
			continue
		}
		kind := azure.KindOf(res.Err)
		if len(pauses[kind]) == 0 || kind == azure.NotFound && res.Step.Op != plan.Update {
			return false
		}
	}
	return true
}

// pauseAfter waits as long as Azure asked for, or for the time wait if Azure asked for nothing.
func pauseAfter(ctx context.Context, cause error, wait time.Duration) error {
	if e, ok := errors.AsType[*azure.Error](cause); ok && e.RetryAfter > 0 {
		wait = e.RetryAfter
	}
	if err := pause.For(ctx, wait); err != nil {
		return fmt.Errorf("%w while waiting to plan anew after: %w", err, cause)
	}
	return nil
}

// Gather reads what needs names. It calls needs again with the result, until needs names nothing new.
func Gather(ctx context.Context, r azure.Reader, needs func(have plan.Snapshot) Needs) (plan.Snapshot, error) {
	var have plan.Snapshot
	asked := map[string]bool{}
	for {
		fresh := unasked(needs(have), asked)
		if len(fresh.Resources)+len(fresh.Lists)+len(fresh.Optional.Resources)+len(fresh.Optional.Lists) == 0 {
			return have, nil
		}
		more, err := Take(ctx, r, fresh)
		if err != nil {
			return have, err
		}
		have = have.Merge(more)
	}
}

// unasked returns the part of needs that was not asked before, and marks it as asked.
func unasked(needs Needs, asked map[string]bool) Needs {
	resources := func(all []azure.ID) (some []azure.ID) {
		for _, id := range all {
			if key := id.Key(); !asked[key] {
				asked[key] = true
				some = append(some, id)
			}
		}
		return some
	}
	lists := func(all []azure.Query) (some []azure.Query) {
		for _, q := range all {
			key := strings.ToLower(fmt.Sprintf("%s %s %s %s", q.Scope, q.Type, q.Expand, q.Filter))
			if !asked[key] {
				asked[key] = true
				some = append(some, q)
			}
		}
		return some
	}
	return Needs{
		Resources: resources(needs.Resources), Lists: lists(needs.Lists),
		Optional: Optional{Resources: resources(needs.Optional.Resources), Lists: lists(needs.Optional.Lists)},
	}
}
