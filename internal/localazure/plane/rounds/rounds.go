// Package rounds repeats a task that brings a plane of the local Azure up to date with its documents. Layer L2.
package rounds

import (
	"context"
	"errors"
	"sync"
	"time"
)

// again is the time after which a round that failed is repeated.
const again = time.Second

// ErrClosed says that there are no rounds any more.
var ErrClosed = errors.New("closed")

// Rounds are rounds of a task, one after the other. Requests during a round lead to one further round.
type Rounds struct {
	wake chan struct{}
	done chan struct{} // closed when there are no rounds any more

	mu      sync.Mutex
	waiting []chan error
}

// New returns rounds, which [Rounds.Run] executes.
func New() *Rounds { return &Rounds{wake: make(chan struct{}, 1), done: make(chan struct{})} }

// Request asks for a round and does not wait for it.
func (r *Rounds) Request() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run executes requested rounds until ctx ends. It repeats a round that failed, and passes its error to failed.
func (r *Rounds) Run(ctx context.Context, round func(context.Context) error, failed func(error)) {
	defer close(r.done)
	var retry <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-retry:
		}
		retry = nil
		r.mu.Lock()
		waiting := r.waiting
		r.waiting = nil
		r.mu.Unlock()
		err := round(ctx)
		if err != nil && ctx.Err() == nil {
			failed(err)
			retry = time.After(again)
		}
		for _, w := range waiting {
			w <- err
		}
	}
}

// Settle waits until a round that begins from now on has ended, and returns its error.
func (r *Rounds) Settle(ctx context.Context) error {
	done := make(chan error, 1)
	r.mu.Lock()
	r.waiting = append(r.waiting, done)
	r.mu.Unlock()
	r.Request()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-r.done:
		return ErrClosed
	}
}
