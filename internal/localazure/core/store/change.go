package store

import (
	"context"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// Change is a changed document: Old is nil when it is new, New when it is
// gone. The documents are shared and not to be changed.
type Change struct {
	ID       azure.ID
	Old, New behaviour.Object
}

// Watchers receive the changes of every transaction that is kept.
type Watchers struct {
	mu  sync.Mutex
	all map[*Watcher]bool
}

// Watcher collects changes that its subscriber has not taken yet.
type Watcher struct {
	of      *Watchers
	pending []Change
	signal  chan struct{} // holds a token when there may be changes to take
}

// Add subscribes to all changes from now on. Close ends the subscription.
func (w *Watchers) Add() *Watcher {
	fresh := &Watcher{of: w, signal: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[*Watcher]bool{}
	}
	w.all[fresh] = true
	return fresh
}

// Wake lets subscribers look again when the next operation ends.
func (w *Watchers) Wake() { w.publish(nil) }

func (w *Watchers) publish(changes []Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		one.pending = append(one.pending, changes...)
		select {
		case one.signal <- struct{}{}:
		default:
		}
	}
}

func (w *Watchers) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all) > 0
}

// Close ends the subscription.
func (w *Watcher) Close() {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	delete(w.of.all, w)
}

// Take returns the changes since the last call, in their order.
func (w *Watcher) Take() []Change {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	batch := w.pending
	w.pending = nil
	return batch
}

// Wait returns when there may be something to take, at the latest at the time due: Unix
// nanoseconds, 0 for no such time. It reports false when the context has ended.
func (w *Watcher) Wait(ctx context.Context, due int64) bool {
	var timer <-chan time.Time
	if due != 0 {
		t := time.NewTimer(time.Until(time.Unix(0, due)))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.signal:
	case <-timer:
	}
	return true
}
