package arm

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"kaz/internal/azure"
)

// Budget is the right to send requests. Azure counts them per subscription and
// resource provider, reads, writes and deletes apart, and so does a budget: what
// Azure refuses with "too many requests" makes all callers of the same count wait
// in the order of their priorities and then of their arrival, and no others. Of one
// priority, documents that many share go first. One budget serves all ARM clients of
// a process.
//
// Compute also counts per machine and scale set, and its refusals do not say which
// count was full. So its first one stops only what asks the same of the same
// resource; when a second resource is refused meanwhile, all wait.
type Budget struct {
	limitOf func(fullType string) (Limit, bool)
	turns   turns

	mu       sync.Mutex
	gates    map[gateKey]*gate
	limiters map[string]*limiter // by name
}

// BudgetConfig are limits that users set in addition to Azure's. The zero value
// has none.
type BudgetConfig struct {
	// LimitOf gives the limit for requests about a resource type, which is in lower
	// case, if there is one; nil is for none. The same type always has the same.
	LimitOf func(fullType string) (Limit, bool)
	// AtOnce is how many requests are sent at once where the table of types says that
	// requests are sent in turn; 0 and less mean 1.
	AtOnce int
}

// Limit is how often requests may be sent. Requests wait for their turn.
type Limit struct {
	// Name tells limits apart: types whose limits have one name share its tokens.
	Name string
	// Read limits reads, Write all else.
	Read, Write Rate
}

// Rate is a token bucket; without PerSecond it is no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// NewBudget makes a budget.
func NewBudget(c BudgetConfig) *Budget {
	return &Budget{limitOf: c.LimitOf, turns: turns{atOnce: max(c.AtOnce, 1)}, gates: map[gateKey]*gate{}, limiters: map[string]*limiter{}}
}

type limiter struct{ read, write *bucket }

// bucket is a limit of the user's with the requests that wait for it.
type bucket struct {
	line   line
	tokens *rate.Limiter
}

func (r Rate) bucket() *bucket {
	if r.PerSecond <= 0 {
		return &bucket{tokens: rate.NewLimiter(rate.Inf, 0)}
	}
	return &bucket{tokens: rate.NewLimiter(rate.Limit(r.PerSecond), max(r.Burst, 1))}
}

// enter waits until the limit lets a request through.
func (b *bucket) enter(ctx context.Context, rank time.Time) error {
	_, err := b.line.enter(ctx, rank)
	if err == nil {
		err = b.tokens.Wait(ctx)
		b.line.leave()
	}
	return err
}

// class is what Azure counts apart.
type class string

const (
	reads   class = "reads"
	writes  class = "writes"
	deletes class = "deletes"
)

func (s subject) class() class {
	switch s.verb {
	case "get", "list", "poll":
		return reads
	case "delete":
		return deletes
	}
	return writes
}

type gateKey struct {
	subscription, namespace string
	class                   class
	question                string // "" for all, else verb and resource
}

func (s subject) wide() gateKey {
	return gateKey{subscription: s.subscription, namespace: s.namespace, class: s.class()}
}

func (s subject) narrow() gateKey {
	key := s.wide()
	key.question = s.verb + " " + s.resource
	return key
}

// gatesOf are the gates that a request has to pass, the narrower one first.
func (b *Budget) gatesOf(s subject) []*gate {
	b.mu.Lock()
	defer b.mu.Unlock()
	wide := b.gate(s.wide())
	if narrow, ok := b.gates[s.narrow()]; ok {
		return []*gate{narrow, wide}
	}
	return []*gate{wide}
}

// gate is the gate of a count. The caller holds the lock.
func (b *Budget) gate(key gateKey) *gate {
	g, ok := b.gates[key]
	if !ok {
		g = newGate(key, time.Now())
		b.gates[key] = g
	}
	return g
}

// refused are the gates to close after a refusal.
func (b *Budget) refused(s subject, code string, now time.Time) []*gate {
	b.mu.Lock()
	defer b.mu.Unlock()
	wide := b.gate(s.wide())
	if !s.countsEach || strings.EqualFold(code, "SubscriptionRequestsThrottled") {
		return []*gate{wide}
	}
	closed := []*gate{b.gate(s.narrow())}
	for key, g := range b.gates {
		switch {
		case key.question == "" || g == closed[0]:
		case !g.isClosed(now):
			delete(b.gates, key)
		case key.class == s.class() && key.subscription == s.subscription:
			return append(closed, wide)
		}
	}
	return closed
}

// limit is the user's limit for a request, nil for none.
func (b *Budget) limit(s subject) *bucket {
	if b.limitOf == nil {
		return nil
	}
	l, ok := b.limitOf(s.fullType)
	if !ok {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	shared, ok := b.limiters[l.Name]
	if !ok {
		shared = &limiter{l.Read.bucket(), l.Write.bucket()}
		b.limiters[l.Name] = shared
	}
	if s.class() == reads {
		return shared.read
	}
	return shared.write
}

// turn is the right to send one request. Its holder must call done.
type turn struct {
	budget  *Budget
	subject subject
	passed  []passage
	waited  time.Duration
	limited bool // by a limit of the user's
}

// enter waits for the right to send a request, at most as long as patience.
func (b *Budget) enter(ctx context.Context, s subject, patience time.Duration) (turn, error) {
	start := time.Now()
	rank := s.rank(start)
	t := turn{budget: b, subject: s}
	gates := b.gatesOf(s)
	wide := gates[len(gates)-1]
	wide.waiting.Add(1)
	defer wide.waiting.Add(-1)
	if l := b.limit(s); l != nil {
		if err := l.enter(ctx, rank); err != nil {
			return t, fmt.Errorf("the configured rate limit lets no request through in time: %w", err)
		}
		t.limited = time.Since(start) >= time.Millisecond
		gates = b.gatesOf(s)
	}
	for _, g := range gates {
		p, err := g.enter(ctx, rank, patience-time.Since(start))
		if err != nil {
			t.leave(false, nil)
			return t, err
		}
		t.passed = append(t.passed, p)
	}
	t.waited = time.Since(start)
	return t, nil
}

// done gives the turn back with what came of it.
func (t turn) done(r reply, f *failure) {
	if f == nil || f.Kind != azure.Throttled || f.Status != http.StatusTooManyRequests {
		t.leave(r.status > 0, r.header)
		return
	}
	now := time.Now()
	for _, g := range t.budget.refused(t.subject, f.Code, now) {
		g.close(now, f.RetryAfter)
	}
	t.leave(false, nil)
}

func (t turn) leave(answered bool, h http.Header) {
	for _, p := range t.passed {
		p.leave(answered, h)
	}
}
