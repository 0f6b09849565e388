package budget

import (
	"context"
	"sync"
)

// turns limits how many requests for the resources of one parent are sent at once. A request counts until its first
// answer. Requests are sent in the order in which they came.
type turns struct {
	atOnce int

	mu sync.Mutex // never held while waiting
	of map[string]*turnsOf
}

// turnsOf has the turns of one parent.
type turnsOf struct {
	free  chan struct{} // has a token for each request that may be sent
	users int
}

// Await waits for a turn among the requests for the resources of one parent. Without a parent ("") it does not wait.
// The caller must call end to give the turn back.
func (b *Budget) Await(ctx context.Context, parent string) (end func(), err error) {
	return b.turns.await(ctx, parent)
}

// await waits for a turn, which end gives back.
func (t *turns) await(ctx context.Context, parent string) (end func(), err error) {
	if parent == "" {
		return func() {}, nil
	}
	one := t.join(parent)
	select {
	case <-one.free:
		return func() {
			one.free <- struct{}{}
			t.leave(parent, one)
		}, nil
	case <-ctx.Done():
		t.leave(parent, one)
		return nil, ctx.Err()
	}
}

func (t *turns) join(parent string) *turnsOf {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.of[parent]
	if one == nil {
		one = &turnsOf{free: make(chan struct{}, t.atOnce)}
		for range t.atOnce {
			one.free <- struct{}{}
		}
		if t.of == nil {
			t.of = map[string]*turnsOf{}
		}
		t.of[parent] = one
	}
	one.users++
	return one
}

func (t *turns) leave(parent string, one *turnsOf) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one.users--; one.users == 0 {
		delete(t.of, parent)
	}
}
