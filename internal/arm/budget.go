package arm

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"kaz/internal/azure"
)

// Budget is the right to send requests. Azure counts them per subscription and
// resource provider, reads, writes and deletes apart, and so does a budget: what
// Azure refuses with "too many requests" makes all callers of the same count wait
// in the order in which they came, and nobody else. One budget serves all doors of
// a process.
type Budget struct {
	limits []limiter
	mu     sync.Mutex
	gates  map[gateKey]*gate
}

// BudgetConfig are limits that users set in addition to Azure's. The zero value
// has none.
type BudgetConfig struct {
	Limits []Limit
}

// Limit is how often requests of a type may be sent. Requests wait for their turn.
type Limit struct {
	// Type is a resource type or the start of one ("Microsoft.Network/loadBalancers",
	// "Microsoft.Network"); "" is every type. The longest one that fits counts.
	Type string
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
	b := &Budget{gates: map[gateKey]*gate{}}
	for _, l := range c.Limits {
		b.limits = append(b.limits, limiter{strings.ToLower(l.Type), l.Read.limiter(), l.Write.limiter()})
	}
	return b
}

type limiter struct {
	fullType    string
	read, write *rate.Limiter
}

func (r Rate) limiter() *rate.Limiter {
	if r.PerSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(r.PerSecond), max(r.Burst, 1))
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
}

func (b *Budget) gate(s subject) *gate {
	key := gateKey{s.subscription, s.namespace, s.class()}
	b.mu.Lock()
	defer b.mu.Unlock()
	g, ok := b.gates[key]
	if !ok {
		g = newGate(key)
		b.gates[key] = g
	}
	return g
}

// limit is the user's limit for a request, nil for none.
func (b *Budget) limit(s subject) *rate.Limiter {
	best, found := -1, (*rate.Limiter)(nil)
	for _, l := range b.limits {
		fits := l.fullType == "" || l.fullType == s.fullType || strings.HasPrefix(s.fullType, l.fullType+"/")
		if !fits || len(l.fullType) <= best {
			continue
		}
		best, found = len(l.fullType), l.write
		if s.class() == reads {
			found = l.read
		}
	}
	return found
}

// turn is the right to send one request. Its holder must call done.
type turn struct {
	gate   *gate
	probe  bool
	waited time.Duration
}

// enter waits for the right to send a request, at most as long as patience.
func (b *Budget) enter(ctx context.Context, s subject, patience time.Duration) (turn, error) {
	start := time.Now()
	if l := b.limit(s); l != nil {
		if err := l.Wait(ctx); err != nil {
			return turn{}, fmt.Errorf("the configured rate limit lets no request through in time: %w", err)
		}
	}
	t, err := b.gate(s).enter(ctx, patience)
	t.waited = time.Since(start)
	return t, err
}

// gate is one count of Azure's. It is open until Azure refuses a request; then it
// is closed for the time that Azure names, and opens to one request at a time until
// one succeeds.
type gate struct {
	key gateKey
	// turn has one token, held by whoever is next: Go's channels serve their
	// waiters in the order in which they came.
	turn chan struct{}

	mu      sync.Mutex
	opens   time.Time     // no request before
	spacing time.Duration // between requests while Azure's count is low
	tripped bool          // refused, and nothing has succeeded since
	probing bool          // the one request of a tripped gate is on its way
	refused int           // in a row
	changed chan struct{} // closed when any of the above changes
}

func newGate(key gateKey) *gate {
	g := &gate{key: key, turn: make(chan struct{}, 1), changed: make(chan struct{})}
	g.turn <- struct{}{}
	return g
}

// closedError says that a gate stays closed for longer than the caller may wait.
type closedError struct {
	key  gateKey
	wait time.Duration
}

func (e *closedError) Error() string {
	return fmt.Sprintf("too many requests: Azure accepts no %s of %s for %s", e.key.class, e.key.namespace, e.wait.Round(time.Second))
}

func (g *gate) enter(ctx context.Context, patience time.Duration) (turn, error) {
	deadline := time.Now().Add(patience)
	select {
	case <-g.turn:
	case <-ctx.Done():
		return turn{}, ctx.Err()
	}
	defer func() { g.turn <- struct{}{} }()
	for {
		t, wait, changed := g.try(time.Now())
		if t.gate != nil {
			return t, nil
		}
		if wait > 0 && time.Now().Add(wait).After(deadline) {
			return turn{}, &closedError{g.key, wait}
		}
		if err := await(ctx, wait, changed); err != nil {
			return turn{}, err
		}
	}
}

// try takes the right to send if it is free, else says for how long it is not (0
// for unknown) and gives the channel that tells of a change.
func (g *gate) try(now time.Time) (turn, time.Duration, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := g.opens.Sub(now); wait > 0 {
		return turn{}, wait, g.changed
	}
	if g.probing {
		return turn{}, 0, g.changed
	}
	g.probing = g.tripped
	if g.spacing > 0 {
		g.opens = now.Add(g.spacing)
	}
	return turn{gate: g, probe: g.probing}, 0, nil
}

// await waits for a time (0 for ever) or a change.
func await(ctx context.Context, wait time.Duration, changed <-chan struct{}) error {
	var expired <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-expired:
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// done gives the turn back with what came of it.
func (t turn) done(r reply, f *failure) {
	g, now := t.gate, time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.probe {
		g.probing = false
	}
	switch {
	case f != nil && f.Kind == azure.Throttled && f.Status == http.StatusTooManyRequests:
		g.close(now, f.RetryAfter)
	case r.status > 0:
		g.tripped, g.refused = false, 0
		g.spacing = spacing(r.header, g.key)
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

// close closes the gate for the time that Azure named, else a growing one.
func (g *gate) close(now time.Time, wait time.Duration) {
	g.refused++
	if wait <= 0 {
		wait = min(time.Second<<min(g.refused-1, 6), time.Minute)
	}
	if opens := now.Add(wait); opens.After(g.opens) {
		g.opens = opens
	}
	g.tripped = true
}

// spacing slows requests down while Azure says that few are left, to the rate at
// which it grants new ones (25 reads and 10 writes a second, compute's counts by
// the minute), so that the count is not run into with many requests in flight.
func spacing(h http.Header, key gateKey) time.Duration {
	const low, lowest = 20, 3
	step := 100 * time.Millisecond
	if key.class == reads {
		step = 40 * time.Millisecond
	}
	switch left := remaining(h, key); {
	case left < 0 || left > low:
		if resourceExhausted(h) {
			return step
		}
		return 0
	case left > lowest:
		return step
	default:
		return 5 * step
	}
}

// remaining is the smallest number of requests that Azure says are left, -1 if it
// does not say.
func remaining(h http.Header, key gateKey) int {
	least := -1
	note := func(s string) {
		if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil && n >= 0 && (least < 0 || n < least) {
			least = n
		}
	}
	for _, scope := range []string{"Subscription", "Tenant", "Subscription-Global"} {
		note(h.Get("X-Ms-Ratelimit-Remaining-" + scope + "-" + string(key.class)))
	}
	note(h.Get("X-Ms-Ratelimit-Remaining-Subscription-Resource-Requests"))
	note(h.Get("X-Ms-Ratelimit-Remaining-Subscription-Resource-Entities-Read"))
	return least
}

// resourceExhausted reports whether one of compute's own counts, which it tells as
// "Microsoft.Compute/PutVM;239,...", is used up. Some are of one machine, so they
// slow others down only a little.
func resourceExhausted(h http.Header) bool {
	for _, value := range h.Values("X-Ms-Ratelimit-Remaining-Resource") {
		for count := range strings.SplitSeq(value, ",") {
			_, left, _ := strings.Cut(count, ";")
			if n, err := strconv.Atoi(strings.TrimSpace(left)); err == nil && n <= 1 {
				return true
			}
		}
	}
	return false
}
