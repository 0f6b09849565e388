package budget

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// gate is one count of Azure. It lets requests pass as long as Azure's last answers say that Azure accepts them. If
// Azure refuses a request nevertheless, the gate closes for the time that Azure names. Then it lets one request pass
// at a time, until one succeeds.
type gate struct {
	key  gateKey
	line line
	// waiting is how many requests wait in line here, or at the user's limit before it.
	waiting atomic.Int64

	mu      sync.Mutex
	left    allowance
	passed  int       // requests so far
	flying  int       // requests not answered yet
	opens   time.Time // no request passes before
	tripped bool      // refused, and nothing has succeeded since
	probing bool      // the one request of a tripped gate is on its way
	refused int       // refusals in a row
	changed chan struct{}
}

func newGate(key gateKey, now time.Time) *gate {
	return &gate{key: key, changed: make(chan struct{}), left: newAllowance(key, now)}
}

// ClosedError says that a gate stays closed for longer than the caller may wait.
type ClosedError struct {
	Wait time.Duration
	key  gateKey
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("too many requests: azure accepts no %s of %s for %s", e.key.class, e.key.namespace, e.Wait.Round(time.Second))
}

// passage is a request that a gate let pass.
type passage struct {
	gate  *gate
	probe bool // the one request that a tripped gate lets pass
	at    time.Time
	// known is how many requests Azure had surely counted before this one, because
	// they were answered.
	known int
}

// enter waits until a request may be sent.
func (g *gate) enter(ctx context.Context, rank time.Time, patience time.Duration) (passage, error) {
	deadline := time.Now().Add(patience)
	w, err := g.line.enter(ctx, rank)
	if err != nil {
		return passage{}, err
	}
	for {
		p, wait, changed := g.try(time.Now())
		switch {
		case p.gate != nil:
		case wait > 0 && time.Now().Add(wait).After(deadline):
			err = &ClosedError{wait, g.key}
		default:
			err = await(ctx, wait, changed)
		}
		if p.gate != nil || err != nil {
			g.line.leave()
			return p, err
		}
		if err = g.line.giveWay(ctx, w); err != nil {
			return passage{}, err
		}
	}
}

// try lets a request pass if the gate is open. Otherwise it returns how long the gate stays closed, 0 if unknown, and
// a channel that reports a change.
func (g *gate) try(now time.Time) (passage, time.Duration, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if wait := max(g.opens.Sub(now), g.left.wait(now)); wait > 0 {
		return passage{}, wait, g.changed
	}
	if g.probing {
		return passage{}, 0, g.changed
	}
	g.probing = g.tripped
	p := passage{gate: g, probe: g.probing, at: now, known: g.passed - g.flying}
	g.passed++
	g.flying++
	g.left.take()
	return p, 0, nil
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

// close closes the gate for the time that Azure named, or else for a growing time.
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

// leave ends a passage. An answer other than a refusal opens the gate to all requests, and its headers correct the
// allowance.
func (p passage) leave(answered bool, h http.Header) {
	g, now := p.gate, time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying--
	if p.probe {
		g.probing = false
	}
	if answered {
		g.tripped, g.refused = false, 0
		g.left.learn(remaining(h, g.key), g.passed-p.known-1, now, now.Sub(p.at))
	}
	g.tell()
}

// tell wakes the callers that wait for a change. The caller holds the lock.
func (g *gate) tell() {
	close(g.changed)
	g.changed = make(chan struct{})
}
