package emulator

import (
	"context"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// Change is one document that changed: Old is nil when it is new, New when it is
// gone. The documents are shared and not to be changed.
type Change struct {
	ID       azure.ID
	Old, New behaviour.Object
}

// watchers are those who want to know of changes.
type watchers struct {
	mu  sync.Mutex
	all map[*watcher]bool
}

// watcher collects what its subscriber has not taken yet.
type watcher struct {
	pending []Change
	signal  chan struct{} // holds one token when there is something to look at
}

func (w *watcher) poke() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// changed notes a change in the transaction.
func (t *transaction) changed(old, fresh *entry) {
	if !t.watchers.any() {
		return
	}
	c := Change{}
	if old != nil && !old.hidden {
		c.ID, c.Old = old.id, t.store.doc(old)
	}
	if fresh != nil && !fresh.hidden {
		c.ID, c.New = fresh.id, t.store.doc(fresh)
	}
	if c.ID != "" {
		t.events = append(t.events, c)
	}
}

func (w *watchers) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all) > 0
}

func (e *Emulator) publish(events []Change) {
	if len(events) == 0 {
		return
	}
	e.watchers.mu.Lock()
	defer e.watchers.mu.Unlock()
	for w := range e.watchers.all {
		w.pending = append(w.pending, events...)
		w.poke()
	}
}

// wake lets subscribers look when the next operation ends.
func (e *Emulator) wake() {
	e.watchers.mu.Lock()
	defer e.watchers.mu.Unlock()
	for w := range e.watchers.all {
		w.poke()
	}
}

// Changes calls f with every batch of changes from now on, in their order, until
// the context ends. Operations end in time while somebody listens, requests or not.
func (e *Emulator) Changes(ctx context.Context, f func([]Change)) { e.Subscribe()(ctx, f) }

// Subscribe collects changes from now on, and returns what hands them out as Changes
// does: nothing is missed between a look at the world that comes after it and the
// first batch. What it returns is to be called, once.
func (e *Emulator) Subscribe() func(ctx context.Context, f func([]Change)) {
	w := &watcher{signal: make(chan struct{}, 1)}
	e.watchers.mu.Lock()
	if e.watchers.all == nil {
		e.watchers.all = map[*watcher]bool{}
	}
	e.watchers.all[w] = true
	e.watchers.mu.Unlock()
	return func(ctx context.Context, f func([]Change)) { e.handOut(ctx, w, f) }
}

func (e *Emulator) handOut(ctx context.Context, w *watcher, f func([]Change)) {
	defer func() {
		e.watchers.mu.Lock()
		delete(e.watchers.all, w)
		e.watchers.mu.Unlock()
	}()
	for {
		e.endDue()
		e.watchers.mu.Lock()
		batch := w.pending
		w.pending = nil
		e.watchers.mu.Unlock()
		if len(batch) > 0 {
			f(batch)
			continue
		}
		if !w.wait(ctx, e.due.Load()) {
			return
		}
	}
}

// wait returns when there may be something, at the latest at the time due.
func (w *watcher) wait(ctx context.Context, due int64) bool {
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
