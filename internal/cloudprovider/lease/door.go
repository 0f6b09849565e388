package lease

import (
	"context"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/reconcile"
)

// Door is a door whose writes are made while the lock is held. Route tables are nobody
// else's and need none.
func (l *Lock) Door(door reconcile.Azure) reconcile.Azure { return locked{door, l} }

type locked struct {
	reconcile.Azure
	lock *Lock
}

func holding[T any](ctx context.Context, l *Lock, id azure.ID, do func() (T, error)) (T, error) {
	if id.Is(network.RouteTables) {
		return do()
	}
	if err := l.enter(ctx); err != nil {
		var nothing T
		return nothing, err
	}
	defer l.leave(ctx)
	return do()
}

// Put implements [azure.Writer].
func (d locked) Put(ctx context.Context, w azure.Write) (azure.Document, error) {
	return holding(ctx, d.lock, w.ID, func() (azure.Document, error) { return d.Azure.Put(ctx, w) })
}

// Patch implements [azure.Writer].
func (d locked) Patch(ctx context.Context, w azure.Write) (azure.Document, error) {
	return holding(ctx, d.lock, w.ID, func() (azure.Document, error) { return d.Azure.Patch(ctx, w) })
}

// Delete implements [azure.Writer].
func (d locked) Delete(ctx context.Context, id azure.ID) error {
	_, err := holding(ctx, d.lock, id, func() (struct{}, error) { return struct{}{}, d.Azure.Delete(ctx, id) })
	return err
}

// Post implements [azure.Writer].
func (d locked) Post(ctx context.Context, id azure.ID, action string, body azure.Document) (azure.Document, error) {
	return holding(ctx, d.lock, id, func() (azure.Document, error) { return d.Azure.Post(ctx, id, action, body) })
}
