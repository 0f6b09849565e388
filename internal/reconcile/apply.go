package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// Result is what became of one step.
type Result struct {
	// Step is the step as it was done, with the values of its outputs.
	Step plan.Step
	// Answer is the resource as Azure answered, or an action's answer. It may be empty
	// where no other step needs it.
	Answer azure.Document
	// Err is Azure's error, or wraps [ErrNotAttempted] with the reason.
	Err error
}

// Report is what became of a plan's steps, in their order.
type Report struct{ Results []Result }

// ErrNotAttempted is the error of a step that was left out because a step before
// it failed.
var ErrNotAttempted = errors.New("not attempted")

// Failed are the steps that failed themselves.
func (r Report) Failed() []Result {
	return slices.DeleteFunc(slices.Clone(r.Results), func(res Result) bool {
		return res.Err == nil || errors.Is(res.Err, ErrNotAttempted)
	})
}

// Err joins the errors of the steps that failed themselves.
func (r Report) Err() error {
	var errs []error
	for _, res := range r.Failed() {
		errs = append(errs, fmt.Errorf("%s: %w", res.Step.Why, res.Err))
	}
	return errors.Join(errs...)
}

// Kind is the kind of the first step that failed itself; call it only when Err is
// not nil.
func (r Report) Kind() azure.Kind {
	if failed := r.Failed(); len(failed) > 0 {
		return azure.KindOf(failed[0].Err)
	}
	return azure.Internal
}

// Apply does the plan's steps: independent steps side by side, dependent steps in order. If a step fails, the steps
// that depend on it are not attempted; the others go on. A step with outputs takes them from Azure's answers to the
// steps that make them. After ctx is cancelled, no further step starts.
func Apply(ctx context.Context, w azure.Writer, p plan.Plan) Report {
	results := make([]Result, len(p.Steps))
	done := make([]chan struct{}, len(p.Steps))
	used := make([]bool, len(p.Steps)) // steps with an answer that another step uses
	for i, step := range p.Steps {
		done[i] = make(chan struct{})
		for _, late := range step.Late {
			used[late.Step] = true
		}
	}
	var running sync.WaitGroup
	for i, step := range p.Steps {
		running.Go(func() {
			defer close(done[i])
			for _, before := range step.After {
				<-done[before]
			}
			results[i] = attempt(ctx, w, step, results, used[i])
		})
	}
	running.Wait()
	return Report{Results: results}
}

// attempt does one step, unless a step before it failed.
func attempt(ctx context.Context, w azure.Writer, step plan.Step, results []Result, used bool) Result {
	for _, before := range step.After {
		if failed := results[before]; failed.Err != nil {
			return Result{Step: step, Err: fmt.Errorf("%w: %s %s failed", ErrNotAttempted, failed.Step.Op, failed.Step.ID)}
		}
	}
	if err := ctx.Err(); err != nil {
		return Result{Step: step, Err: fmt.Errorf("%w: %w", ErrNotAttempted, err)}
	}
	step, err := step.Bind(func(i int) azure.Document { return results[i].Answer })
	if err != nil {
		return Result{Step: step, Err: err}
	}
	answer, err := azure.Do(ctx, w, request(step, !used))
	if err == nil {
		slog.InfoContext(ctx, "azure changed", "step", step.String())
	}
	return Result{Step: step, Answer: answer, Err: err}
}

// request is the request for a step. unseen says that no other step needs Azure's answer. The next decision reads for
// itself what it needs.
func request(s plan.Step, unseen bool) azure.Request {
	r := azure.Request{Verb: azure.Put, ID: s.ID, Body: s.Body, IfMatch: s.IfMatch, Unseen: unseen}
	switch {
	case s.Op == plan.Delete:
		return azure.Request{Verb: azure.Delete, ID: s.ID}
	case s.Op == plan.Act:
		return azure.Request{Verb: azure.Post, ID: s.ID, Action: s.Action, Body: s.Body}
	case s.Patch:
		r.Verb = azure.Patch
	default:
		r.Create = s.Op == plan.Create
	}
	return r
}
