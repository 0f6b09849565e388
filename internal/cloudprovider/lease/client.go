package lease

import (
	"context"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/reconcile"
)

// Client wraps an ARM client so that it holds the lock during each write. Writes to route tables need
// no lock, because no other controller writes them.
func (l *Lock) Client(to reconcile.Azure) reconcile.Azure {
	return locked{to, azure.Around(to, l.hold)}
}

type locked struct {
	reconcile.Azure
	writes azure.Writer
}

// Begin implements [azure.Writer].
func (d locked) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	return d.writes.Begin(ctx, r)
}

// hold holds the lock until a request has ended.
func (l *Lock) hold(ctx context.Context, r azure.Request) (release func(azure.Document, error), err error) {
	if r.ID.Is(network.RouteTables) {
		return func(azure.Document, error) {}, nil
	}
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	return func(azure.Document, error) { l.leave(ctx) }, nil
}
