package autoscale

import "sync"

// guarded is state with its lock. It is the only lock of this package, and is not held while anything waits.
type guarded[T any] struct {
	mu    sync.Mutex
	state T
}

// change lets an event change the state.
func (g *guarded[T]) change(event func(*T)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	event(&g.state)
}

// ask returns the answer to a question about the state, which may be an event too. The answer shares nothing with the state that
// later events change.
func ask[T, A any](g *guarded[T], question func(*T) A) (answer A) {
	g.change(func(state *T) { answer = question(state) })
	return answer
}
