package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// Target is a decision that [Converge] brings about. Both methods are pure.
type Target interface {
	// Needs names what a snapshot must hold, given what is known so far: asked
	// again with each snapshot that it led to, until it names nothing new.
	Needs(have plan.Snapshot) Needs
	// Desired is what shall be.
	Desired(have plan.Snapshot) (plan.Graph, error)
}

// Azure is what a reconciler needs of the door.
type Azure interface {
	azure.Reader
	azure.Writer
	// Fresh reads past any cache.
	Fresh() azure.Reader
}

// Outcome is how a [Converge] ended.
type Outcome struct {
	// Have is Azure as it is now, as far as the target needs it and as what was written
	// tells; what Azure fills in at something that was there, such as the address of a
	// further frontend, is read by the next [Gather].
	Have    plan.Snapshot
	Reports []Report // one for each plan that was applied
}

const (
	// conflictsAtMost is how often a plan that Azure's state outran is made anew at most.
	conflictsAtMost = 3
	// roundsAtMost bounds how often a target may wait for facts that applying
	// brings. A planner that needs more does not come to rest.
	roundsAtMost = 5
)

// pauses are how long to wait before planning anew, where Azure says no time, after each
// failure in a row of a kind that may be gone after a fresh look. A document that changed
// is there at once. What Azure is busy with takes a moment or minutes: after the moment it
// is for the caller to wait, who knows whom else he keeps waiting.
var pauses = map[azure.Kind][]time.Duration{
	azure.Changed: {0, time.Second, 2 * time.Second},
	azure.Exists:  {0, time.Second, 2 * time.Second},
	azure.Busy:    {2 * time.Second},
}

// Converge takes a snapshot, plans and applies, and does so again while the plan
// waits for facts that applying brings (the address of a new public IP). When
// Azure answers that a document changed underneath, it reads past the cache and plans
// anew, at most three times, and once where Azure is busy with somebody else's operation.
func Converge(ctx context.Context, door Azure, target Target) (Outcome, error) {
	out, known, err := converge(ctx, door, target)
	if err == nil && !known {
		out.Have, err = Gather(ctx, door, target.Needs)
	}
	return out, err
}

// Achieve is [Converge] for who does not ask how Azure is then, and saves the look at it.
func Achieve(ctx context.Context, door Azure, target Target) error {
	_, _, err := converge(ctx, door, target)
	return err
}

// converge also reports whether how Azure is now follows from what was written.
func converge(ctx context.Context, door Azure, target Target) (out Outcome, known bool, err error) {
	var reader azure.Reader = door
	conflicts := 0
	for range roundsAtMost + conflictsAtMost {
		have, err := Gather(ctx, reader, target.Needs)
		if err != nil {
			return out, false, err
		}
		out.Have = have
		p, err := decide(target, have)
		if err != nil || p.Empty() {
			return out, true, err
		}
		report := Apply(ctx, door, p)
		out.Reports = append(out.Reports, report)
		reader = door
		if err := report.Err(); err != nil {
			waits := pauses[report.Kind()]
			if !outrun(report) || conflicts >= len(waits) {
				return out, false, err
			}
			if err := pause(ctx, err, waits[conflicts]); err != nil {
				return out, false, err
			}
			conflicts++
			reader = door.Fresh()
		} else if len(p.Pending) == 0 {
			out.Have, known = after(have, report)
			return out, known, nil
		}
	}
	return out, false, errors.New("the plan does not come to rest: each round wants another one")
}

func decide(target Target, have plan.Snapshot) (plan.Plan, error) {
	graph, err := target.Desired(have)
	if err != nil {
		return plan.Plan{}, err
	}
	return plan.Diff(have, graph)
}

// after is a snapshot after a report, if it follows from what was written: only Azure
// knows what it makes of something new.
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

// outrun reports whether every failure of a report may be gone after a fresh look.
func outrun(r Report) bool {
	for _, res := range r.Results {
		if res.Err == nil || errors.Is(res.Err, ErrNotAttempted) {
			continue
		}
		if len(pauses[azure.KindOf(res.Err)]) == 0 {
			return false
		}
	}
	return true
}

// pause waits as long as Azure asked for, or so long where it asked for nothing.
func pause(ctx context.Context, cause error, wait time.Duration) error {
	if e, ok := errors.AsType[*azure.Error](cause); ok && e.RetryAfter > 0 {
		wait = e.RetryAfter
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w while waiting to plan anew after: %w", ctx.Err(), cause)
	}
}

// Gather reads what needs names, and what it names on seeing that, and so on until
// it names nothing new.
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

// unasked is the part of needs that was not asked before, which it notes as asked.
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
