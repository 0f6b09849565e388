// Package budget is the right to send requests to Azure: how many, and in which order. Layer L2.
package budget

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

// Budget is the right to send requests. Azure counts requests per subscription and resource provider, and counts
// reads, writes and deletes apart. A budget counts the same way. When Azure refuses a request with "too many
// requests", all callers of the same count wait, and no others. They go on in the order of their priorities, and then
// of their arrival. Within a priority, requests for documents that many share go first. One budget serves all ARM
// clients of a process.
//
// Compute also counts per machine and scale set, and its refusals do not say which count was full. So its first
// refusal stops only the same request for the same resource. When a second resource is refused meanwhile, all
// requests wait.
type Budget struct {
	limitOf func(fullType string) (Limit, bool)
	turns   turns

	mu       sync.Mutex
	gates    map[gateKey]*gate
	limiters map[string]*limiter // by name
}

// Config has the limits that users set in addition to Azure's. The zero value has none.
type Config struct {
	// LimitOf returns the limit for requests about a resource type, if there is one. The type is in lower case. The
	// same type always has the same limit. nil means no limits.
	LimitOf func(fullType string) (Limit, bool)
	// AtOnce is how many requests are sent at once for the resources of one parent. It applies to types marked InTurn
	// in the table of types. 0 and less mean 1.
	AtOnce int
}

// Limit is how often requests may be sent. Requests wait for their turn.
type Limit struct {
	// Name tells limits apart: types with limits of one name share its tokens.
	Name string
	// Read limits reads, Write all else.
	Read, Write Rate
}

// Rate is a token bucket; without PerSecond it is no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// New makes a budget.
func New(c Config) *Budget {
	return &Budget{limitOf: c.LimitOf, turns: turns{atOnce: max(c.AtOnce, 1)}, gates: map[gateKey]*gate{}, limiters: map[string]*limiter{}}
}

type limiter struct{ read, write *bucket }

// bucket is a limit of the user with the requests that wait for it.
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

// Subject describes a request, as far as that decides which gates and limits count it.
type Subject struct {
	Verb         string // "get", "list", "put", ..., "poll"
	FullType     string // as asked, lower case
	Subscription string
	Namespace    string // lower case
	Resource     string // its key
	// Shared and CountsEach are as in the table of types. Shared says that many callers wait for one write.
	// CountsEach says that Azure counts requests at each resource too.
	Shared, CountsEach bool
	// Parent is the key of the parent if Azure counts the requests to its children together, as those to the record sets of a DNS zone.
	// A refusal then stops only the requests to the children of that parent. "" means that it does not.
	Parent   string
	Priority azure.Priority
	// Turns is the key of the parent if its children are written one after another, "" if they need not be.
	Turns string
}

// class is what Azure counts apart.
type class string

const (
	reads   class = "reads"
	writes  class = "writes"
	deletes class = "deletes"
)

func (s Subject) class() class {
	switch s.Verb {
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

func (s Subject) wide() gateKey {
	return gateKey{subscription: s.Subscription, namespace: s.Namespace, class: s.class()}
}

func (s Subject) narrow() gateKey {
	key := s.wide()
	key.question = s.Verb + " " + s.Resource
	if s.Parent != "" {
		key.question = s.Parent
	}
	return key
}

// gatesOf are the gates that a request has to pass, the narrower one first.
func (b *Budget) gatesOf(s Subject) []*gate {
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
func (b *Budget) refused(s Subject, code string, now time.Time) []*gate {
	b.mu.Lock()
	defer b.mu.Unlock()
	wide := b.gate(s.wide())
	if s.Parent != "" && !strings.EqualFold(code, "SubscriptionRequestsThrottled") {
		return []*gate{b.gate(s.narrow())}
	}
	if !s.CountsEach || strings.EqualFold(code, "SubscriptionRequestsThrottled") {
		return []*gate{wide}
	}
	closed := []*gate{b.gate(s.narrow())}
	for key, g := range b.gates {
		switch {
		case key.question == "" || g == closed[0]:
		case !g.isClosed(now):
			delete(b.gates, key)
		case key.class == s.class() && key.subscription == s.Subscription:
			return append(closed, wide)
		}
	}
	return closed
}

// limit is the user's limit for a request, nil for none.
func (b *Budget) limit(s Subject) *bucket {
	if b.limitOf == nil {
		return nil
	}
	l, ok := b.limitOf(s.FullType)
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

// Turn is the right to send one request. Its holder must call Done or Unused.
type Turn struct {
	// Waited is how long the request waited. Limited reports whether a limit of the user was a reason.
	Waited  time.Duration
	Limited bool

	budget  *Budget
	subject Subject
	passed  []passage
}

// Enter waits for the right to send a request, at most as long as patience. If Azure wants a longer wait, the error is a
// [ClosedError].
func (b *Budget) Enter(ctx context.Context, s Subject, patience time.Duration) (Turn, error) {
	start := time.Now()
	rank := s.rank(start)
	t := Turn{budget: b, subject: s}
	gates := b.gatesOf(s)
	wide := gates[len(gates)-1]
	wide.waiting.Add(1)
	defer wide.waiting.Add(-1)
	if l := b.limit(s); l != nil {
		if err := l.enter(ctx, rank); err != nil {
			return t, fmt.Errorf("the configured rate limit lets no request through in time: %w", err)
		}
		t.Limited = time.Since(start) >= time.Millisecond
		gates = b.gatesOf(s)
	}
	for _, g := range gates {
		p, err := g.enter(ctx, rank, patience-time.Since(start))
		if err != nil {
			t.Unused()
			return t, err
		}
		t.passed = append(t.passed, p)
	}
	t.Waited = time.Since(start)
	return t, nil
}

// Unused gives back the turn of a request that was not sent.
func (t Turn) Unused() { t.leave(false, nil) }

// Done gives the turn back with the outcome: the status (0 for no answer), the headers, and the error of a failed
// request.
func (t Turn) Done(status int, h http.Header, failed *azure.Error) {
	if failed == nil || failed.Kind != azure.Throttled || failed.Status != http.StatusTooManyRequests {
		t.leave(status > 0, h)
		return
	}
	now := time.Now()
	for _, g := range t.budget.refused(t.subject, failed.Code, now) {
		g.close(now, failed.RetryAfter)
	}
	t.leave(false, nil)
}

func (t Turn) leave(answered bool, h http.Header) {
	for _, p := range t.passed {
		p.leave(answered, h)
	}
}
