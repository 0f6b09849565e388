package arm

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

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
	return fmt.Sprintf("too many requests: azure accepts no %s of %s for %s", e.key.class, e.key.namespace, e.wait.Round(time.Second))
}

// enter waits until a request may be sent, and tells whether it is the one that
// tries for all.
func (g *gate) enter(ctx context.Context, patience time.Duration) (probe bool, err error) {
	deadline := time.Now().Add(patience)
	select {
	case <-g.turn:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { g.turn <- struct{}{} }()
	for {
		free, probe, wait, changed := g.try(time.Now())
		if free {
			return probe, nil
		}
		if wait > 0 && time.Now().Add(wait).After(deadline) {
			return false, &closedError{g.key, wait}
		}
		if err := await(ctx, wait, changed); err != nil {
			return false, err
		}
	}
}

// try takes the right to send if it is free, else says for how long it is not (0
// for unknown) and gives the channel that tells of a change.
func (g *gate) try(now time.Time) (free, probe bool, wait time.Duration, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := g.opens.Sub(now); wait > 0 {
		return false, false, wait, g.changed
	}
	if g.probing {
		return false, false, 0, g.changed
	}
	g.probing = g.tripped
	if g.spacing > 0 {
		g.opens = now.Add(g.spacing)
	}
	return true, g.probing, 0, nil
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

func (g *gate) isClosed(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.tripped && g.opens.After(now)
}

// close closes the gate for the time that Azure named, else a growing one.
func (g *gate) close(now time.Time, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused++
	if wait <= 0 {
		wait = min(time.Second<<min(g.refused-1, 6), time.Minute)
	}
	if opens := now.Add(wait); opens.After(g.opens) {
		g.opens = opens
	}
	g.tripped = true
	g.tell()
}

// leave ends a request that had passed. An answer other than a refusal opens the
// gate to all.
func (g *gate) leave(probe, answered bool, h http.Header) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if probe {
		g.probing = false
	}
	if answered {
		g.tripped, g.refused = false, 0
		g.spacing = spacing(h, g.key)
	}
	g.tell()
}

// tell wakes who waits for a change. The caller holds the lock.
func (g *gate) tell() {
	close(g.changed)
	g.changed = make(chan struct{})
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
