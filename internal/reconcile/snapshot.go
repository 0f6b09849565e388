package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// Needs is what a snapshot must hold for a planner to decide.
type Needs struct {
	Resources []azure.ID
	Lists     []azure.Query
	// Optional is what the planner can decide without. If Azure refuses to show it, or the scope of a list does not
	// exist, the snapshot says so.
	Optional Optional
}

// Optional is the part of [Needs] that may be unreadable.
type Optional struct {
	Resources []azure.ID
	Lists     []azure.Query
}

// readsAtOnce bounds the reads of one snapshot that are under way together; the
// ARM client's budget decides how fast they may go.
const readsAtOnce = 16

// Take reads all that needs names. For a resource that does not exist, the snapshot has Azure's message. A list in a
// scope that does not exist is empty.
func Take(ctx context.Context, r azure.Reader, needs Needs) (plan.Snapshot, error) {
	docs := make([][]azure.Document, len(needs.Lists))
	resources := make([]plan.Snapshot, len(needs.Resources))
	optional := make([]plan.Snapshot, len(needs.Optional.Lists)+len(needs.Optional.Resources))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for i, q := range needs.Lists {
		group.Go(func() (err error) {
			if docs[i], err = list(ctx, r, q); azure.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	for i, id := range needs.Resources {
		group.Go(func() (err error) {
			resources[i], err = get(ctx, r, id)
			return err
		})
	}
	for i, q := range needs.Optional.Lists {
		group.Go(func() (err error) {
			found, err := list(ctx, r, q)
			optional[i], err = inSight(q.Scope, q.Type, plan.NewSnapshot(found...), err)
			return err
		})
	}
	for i, id := range needs.Optional.Resources {
		group.Go(func() (err error) {
			found, err := get(ctx, r, id)
			optional[len(needs.Optional.Lists)+i], err = inSight(id, id.Type(), found, err)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return plan.Snapshot{}, err
	}
	listed := plan.NewSnapshot(slices.Concat(docs...)...)
	return plan.Joined(slices.Concat([]plan.Snapshot{listed}, resources, optional)...), nil
}

func list(ctx context.Context, r azure.Reader, q azure.Query) ([]azure.Document, error) {
	docs, err := r.List(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list %s in %s: %w", q.Type, q.Scope, err)
	}
	return docs, nil
}

// get reads a resource. For a resource that does not exist, the snapshot has only Azure's message.
func get(ctx context.Context, r azure.Reader, id azure.ID) (plan.Snapshot, error) {
	doc, err := r.Get(ctx, id)
	if e, ok := errors.AsType[*azure.Error](err); ok && e.Kind == azure.NotFound {
		return plan.Snapshot{}.WithAbsent(id, e.Message), nil
	}
	if err != nil {
		return plan.Snapshot{}, fmt.Errorf("read %s: %w", id, err)
	}
	return plan.NewSnapshot(doc), nil
}

// inSight returns what an optional read has found, or a snapshot that says why it is unreadable.
func inSight(scope azure.ID, fullType string, found plan.Snapshot, err error) (plan.Snapshot, error) {
	if isHidden(err) {
		return plan.NewSnapshot().WithUnread(scope, fullType, azure.KindOf(err)), nil
	}
	return found, err
}

// isHidden reports whether Azure knew the caller and answered that something does not exist or may not be read.
func isHidden(err error) bool {
	const forbidden = 403
	e, ok := errors.AsType[*azure.Error](err)
	return ok && (e.Kind == azure.NotFound || e.Kind == azure.Denied && e.Status == forbidden)
}
