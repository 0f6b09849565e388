package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// Result is what became of one step.
type Result struct {
	Step plan.Step
	// Err is Azure's answer, or [ErrNotAttempted] wrapped with what stood in the way.
	Err error
}

// Report is what became of a plan's steps, in their order.
type Report struct{ Results []Result }

// ErrNotAttempted is the error of a step that was left out because a step before
// it failed.
var ErrNotAttempted = errors.New("not attempted")

// Err joins the errors of the steps that failed themselves.
func (r Report) Err() error {
	var errs []error
	for _, res := range r.Results {
		if res.Err != nil && !errors.Is(res.Err, ErrNotAttempted) {
			errs = append(errs, fmt.Errorf("%s: %w", res.Step.Why, res.Err))
		}
	}
	return errors.Join(errs...)
}

// Kind is the kind of the first step that failed itself; call it only when Err is
// not nil.
func (r Report) Kind() azure.Kind {
	for _, res := range r.Results {
		if res.Err != nil && !errors.Is(res.Err, ErrNotAttempted) {
			return azure.KindOf(res.Err)
		}
	}
	return azure.Internal
}

// Apply does the plan's steps: independent ones side by side, dependent ones in
// order. A step that fails keeps those that depend on it from being tried; the
// others go on. Cancelling ctx starts no further step.
func Apply(ctx context.Context, w azure.Writer, p plan.Plan) Report {
	results := make([]Result, len(p.Steps))
	done := make([]chan struct{}, len(p.Steps))
	for i := range done {
		done[i] = make(chan struct{})
	}
	var running sync.WaitGroup
	for i, step := range p.Steps {
		running.Go(func() {
			defer close(done[i])
			results[i] = Result{Step: step}
			for _, before := range step.After {
				<-done[before]
				if failed := results[before]; failed.Err != nil {
					results[i].Err = fmt.Errorf("%w: %s %s failed", ErrNotAttempted, failed.Step.Op, failed.Step.ID)
					return
				}
			}
			if err := ctx.Err(); err != nil {
				results[i].Err = fmt.Errorf("%w: %w", ErrNotAttempted, err)
				return
			}
			results[i].Err = write(ctx, w, step)
			if results[i].Err == nil {
				slog.InfoContext(ctx, "azure changed", "step", step.String())
			}
		})
	}
	running.Wait()
	return Report{Results: results}
}

// write does a step. Nobody looks at what Azure answers: what a decision needs of it
// is read for the next one.
func write(ctx context.Context, w azure.Writer, s plan.Step) error {
	var err error
	switch {
	case s.Op == plan.Delete:
		err = w.Delete(ctx, s.ID)
	case s.Op == plan.Act:
		_, err = w.Post(ctx, s.ID, s.Action, s.Body)
	case s.Patch:
		_, err = w.Patch(ctx, azure.Write{ID: s.ID, Body: s.Body, IfMatch: s.IfMatch, Unseen: true})
	default:
		_, err = w.Put(ctx, azure.Write{ID: s.ID, Body: s.Body, IfMatch: s.IfMatch, Create: s.Op == plan.Create, Unseen: true})
	}
	return err
}
