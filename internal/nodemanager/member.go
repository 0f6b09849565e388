package nodemanager

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
)

// Delays after failures. A new node is tried at least every half minute, because no pods run there
// before.
const (
	firstWait   = time.Second
	longestWait = 30 * time.Second
)

// member manages one node. Only its goroutine accesses the fields that change.
type member struct {
	*Group
	name   string
	source Source
	log    *slog.Logger
	news   chan struct{}
	stop   context.CancelFunc

	seen     types.UID // UID of the Node in the last round
	tainted  bool      // whether it was uninitialized then
	failures int       // consecutive failures
	said     string    // last Event
	left     string    // what was left out last
}

func newMember(g *Group, name string, source Source) *member {
	return &member{
		Group: g, name: name, source: source,
		log: g.config.Log.With("node", name), news: make(chan struct{}, 1),
	}
}

// run manages the node when it changes and once in each period.
func (m *member) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due := false
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			due = true
		case <-m.news:
			if m.failures > 0 && !m.another() {
				continue // a heartbeat of the kubelet does not shorten the delay after a failure
			}
		}
		next, err := m.reconcile(ctx, due)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			m.failures++
			next = m.backoff(err, next)
			m.report(err, next)
		} else if next > 0 {
			m.failures, m.said = 0, ""
		}
		if next > 0 {
			timer.Reset(next)
		}
	}
}

// reconcile initializes or updates the node and returns the delay until the next round; 0 keeps the
// current one. With an error it returns the longest delay.
func (m *member) reconcile(ctx context.Context, due bool) (time.Duration, error) {
	node, err := m.nodes.Get(m.name)
	if apierrors.IsNotFound(err) {
		m.seen = ""
		return m.again(due), nil
	}
	if err != nil {
		return longestWait, err
	}
	first := m.seen != node.UID
	m.seen, m.tainted = node.UID, isNew(node)
	switch {
	case m.tainted:
		return m.initialize(ctx, due)
	case !due && !first:
		return 0, nil
	}
	return m.update(ctx, node)
}

// another reports whether the node is not the one of the last round: it was replaced, or is
// uninitialized again.
func (m *member) another() bool {
	node, err := m.nodes.Get(m.name)
	if err != nil {
		return false
	}
	return node.UID != m.seen || isNew(node) && !m.tainted
}

func (m *member) again(due bool) time.Duration {
	if due {
		return m.config.Period
	}
	return 0
}

// next returns the delay until the next round of an initialized node. It is shorter if some facts are
// unknown.
func (m *member) next(f Facts) time.Duration {
	if f.OutsideUnknown != nil {
		return min(m.config.Period, longestWait)
	}
	return m.config.Period
}

// backoff doubles the delay with each failure, up to longest. Jitter keeps many nodes from retrying
// at the same time.
func (m *member) backoff(err error, longest time.Duration) time.Duration {
	wait := longest
	if m.failures < 10 {
		wait = min(longest, firstWait<<(m.failures-1))
	}
	if e, ok := errors.AsType[*azure.Error](err); ok {
		wait = max(wait, min(e.RetryAfter, m.config.Period))
	}
	return wait - time.Duration(rand.Int64N(int64(wait)/5+1))
}

// Event reasons.
const (
	reasonInitialize = "NodeInitializationFailed"
	reasonUpdate     = "NodeAddressUpdateFailed"
	reasonContradict = "MachineContradiction"
)

// failure is an error with an Event reason.
type failure struct {
	reason string
	node   *corev1.Node
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// patience is the number of consecutive failures after which a temporary problem causes an Event. A
// new machine may not be in Azure's lists yet.
const patience = 3

// report logs a failure and sends an Event, once.
func (m *member) report(err error, next time.Duration) {
	m.log.Warn("node is not up to date", "error", err, "failures", m.failures, "retry_in", next.Round(time.Millisecond))
	f, ok := errors.AsType[*failure](err)
	kind := azure.KindOf(err)
	if !ok || (kind.Retryable() || kind == azure.NotFound) && m.failures < patience {
		return
	}
	reason := f.reason
	if _, ok := errors.AsType[contradiction](err); ok {
		reason = reasonContradict
	}
	text := reason + err.Error()
	if kind.Retryable() {
		text = reason + kind.String() // the texts of network errors vary
	}
	if text != m.said && m.config.Events != nil {
		m.said = text
		m.config.Events.Event(f.node, corev1.EventTypeWarning, reason, err.Error())
	}
}
