package file

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// memo keeps what was read for a time, by key. Callers that need the same key at the same time share one read.
type memo[T any] struct {
	ttl    time.Duration
	mu     sync.Mutex
	values map[string]kept[T]
	flight singleflight.Group
}

type kept[T any] struct {
	value T
	read  time.Time
}

func newMemo[T any](ttl time.Duration) *memo[T] {
	return &memo[T]{ttl: ttl, values: map[string]kept[T]{}}
}

// readAtMost bounds a shared read, which does not end with the caller that began it.
const readAtMost = 2 * time.Minute

// get returns what is kept, or reads it. A caller that gives up leaves the read to the others.
func (m *memo[T]) get(ctx context.Context, key string, read func(context.Context) (T, error)) (T, error) {
	if v, ok := m.peek(key); ok {
		return v, nil
	}
	answer := m.flight.DoChan(key, func() (any, error) {
		if v, ok := m.peek(key); ok { // it was read while this caller came here
			return v, nil
		}
		lasting, end := context.WithTimeout(context.WithoutCancel(ctx), readAtMost)
		defer end()
		v, err := read(lasting)
		if err == nil {
			m.keep(key, v)
		}
		return v, err
	})
	var none T
	select {
	case r := <-answer:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(T), nil
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

func (m *memo[T]) peek(key string) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.values[key]
	if !ok || time.Since(k.read) > m.ttl {
		delete(m.values, key)
		var none T
		return none, false
	}
	return k.value, true
}

func (m *memo[T]) keep(key string, value T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = kept[T]{value, time.Now()}
}

func (m *memo[T]) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
}
