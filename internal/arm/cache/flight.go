package cache

import (
	"context"
	"time"

	"kaz/internal/azure"
)

// flight is a read of Azure that is under way. Callers with the same question
// share one.
type flight struct {
	read    read
	began   uint64
	stale   bool // a write has ended since it began
	waiting int
	cancel  context.CancelFunc
	done    chan struct{}
	docs    []azure.Document // after done
	err     error            // after done
}

// through answers from what is kept, from a read under way, or from Azure.
func (c *Cache) through(ctx context.Context, r read) ([]azure.Document, error) {
	if c.lifetime(r.typ) == 0 {
		c.reads.WithLabelValues("azure").Inc()
		return r.fetch(ctx)
	}
	c.mu.Lock()
	if docs, ok := c.kept.use(r.key, time.Now()); ok {
		c.mu.Unlock()
		c.reads.WithLabelValues("kept").Inc()
		return docs, nil
	}
	source := "shared"
	f, ok := c.joined[r.key]
	if !ok {
		source = "azure"
		f = c.launch(ctx, r)
		c.joined[r.key] = f
	}
	f.waiting++
	c.mu.Unlock()
	c.reads.WithLabelValues(source).Inc()
	return c.land(ctx, f)
}

// past starts a new read, also while another read of the same resources goes on.
func (c *Cache) past(ctx context.Context, r read) ([]azure.Document, error) {
	c.reads.WithLabelValues("azure").Inc()
	if c.lifetime(r.typ) == 0 {
		return r.fetch(ctx)
	}
	c.mu.Lock()
	f := c.launch(ctx, r)
	f.waiting++
	c.mu.Unlock()
	return c.land(ctx, f)
}

// launch starts a read that goes on as long as any caller waits for it, also when the first one has
// given up. The caller holds the lock.
func (c *Cache) launch(ctx context.Context, r read) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.clock++
	f := &flight{read: r, began: c.clock, cancel: cancel, done: make(chan struct{})}
	c.flights[f] = struct{}{}
	go func() {
		defer cancel()
		f.docs, f.err = r.fetch(ctx)
		c.mu.Lock()
		delete(c.flights, f)
		c.unjoin(f)
		if f.err == nil && !f.stale {
			c.keep(r, f.docs, f.began)
		}
		c.mu.Unlock()
		close(f.done)
	}()
	return f
}

// land waits for a read.
func (c *Cache) land(ctx context.Context, f *flight) ([]azure.Document, error) {
	select {
	case <-f.done:
		return f.docs, f.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		c.unjoin(f)
		f.cancel()
	}
	return nil, &azure.Error{Kind: azure.KindOf(ctx.Err()), Op: "GET", ID: f.read.scope, Cause: context.Cause(ctx)}
}

// unjoin keeps further callers from sharing a read. The caller holds the lock.
func (c *Cache) unjoin(f *flight) {
	if c.joined[f.read.key] == f {
		delete(c.joined, f.read.key)
	}
}

// keep remembers an answer, unless what is kept was read later. The caller holds
// the lock.
func (c *Cache) keep(r read, docs []azure.Document, began uint64) {
	if ttl := c.lifetime(r.typ); ttl > 0 {
		c.kept.put(r, docs, began, time.Now().Add(ttl))
	}
}
