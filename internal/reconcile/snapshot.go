package reconcile

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/plan"
)

// Needs is what a snapshot must hold for a planner to decide.
type Needs struct {
	Resources []azure.ID
	Lists     []azure.Query
	// Optional are lists that may be in what may not be read, or does not exist. The
	// snapshot says so, and the planner decides without them.
	Optional []azure.Query
}

// readsAtOnce bounds the reads of one snapshot that are under way together; the
// door's budget decides how fast they may go.
const readsAtOnce = 16

// Take reads all that needs names. A resource that does not exist is absent from
// the snapshot, and a list in something that does not exist is empty.
func Take(ctx context.Context, r azure.Reader, needs Needs) (plan.Snapshot, error) {
	lists := make([][]azure.Document, len(needs.Lists))
	optional := make([]plan.Snapshot, len(needs.Optional))
	docs := make([]azure.Document, len(needs.Resources))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	for i, q := range needs.Lists {
		group.Go(func() (err error) {
			if lists[i], err = r.List(ctx, q); err != nil && !azure.IsNotFound(err) {
				return fmt.Errorf("list %s in %s: %w", q.Type, q.Scope, err)
			}
			return nil
		})
	}
	for i, q := range needs.Optional {
		group.Go(func() (err error) {
			optional[i], err = takeOptional(ctx, r, q)
			return err
		})
	}
	for i, id := range needs.Resources {
		group.Go(func() (err error) {
			if docs[i], err = r.Get(ctx, id); err != nil && !azure.IsNotFound(err) {
				return fmt.Errorf("read %s: %w", id, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return plan.Snapshot{}, err
	}
	var all []azure.Document
	for _, list := range lists {
		all = append(all, list...)
	}
	for _, d := range docs {
		if len(d) > 0 {
			all = append(all, d)
		}
	}
	have := plan.NewSnapshot(all...)
	for _, one := range optional {
		have = have.Merge(one)
	}
	return have, nil
}

func takeOptional(ctx context.Context, r azure.Reader, q azure.Query) (plan.Snapshot, error) {
	docs, err := r.List(ctx, q)
	switch {
	case err == nil:
		return plan.NewSnapshot(docs...), nil
	case isHidden(err):
		return plan.NewSnapshot().WithoutList(q.Scope, q.Type, azure.KindOf(err)), nil
	}
	return plan.Snapshot{}, fmt.Errorf("list %s in %s: %w", q.Type, q.Scope, err)
}

// isHidden reports whether Azure has answered, and to somebody it knows, that something
// does not exist or may not be read.
func isHidden(err error) bool {
	const forbidden = 403
	e, ok := errors.AsType[*azure.Error](err)
	return ok && (e.Kind == azure.NotFound || e.Kind == azure.Denied && e.Status == forbidden)
}
