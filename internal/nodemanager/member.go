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

// Waits after failures. A new node is worth a try every half minute at least: until
// it succeeds nothing runs there.
const (
	firstWait   = time.Second
	longestWait = 30 * time.Second
)

// member is one node that is looked after. Only its goroutine touches what is not
// set at its making.
type member struct {
	*Group
	name   string
	source Source
	log    *slog.Logger
	news   chan struct{}
	stop   context.CancelFunc

	seen     types.UID // of the Node that was last looked at
	tainted  bool      // whether it was new then
	failures int       // in a row
	said     string    // the last Event
	left     string    // what was last left out
}

func newMember(g *Group, name string, source Source) *member {
	return &member{
		Group: g, name: name, source: source,
		log: g.config.Log.With("node", name), news: make(chan struct{}, 1),
	}
}

// run looks at the node when there are news of it and once in each period.
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
				continue // a kubelet's heartbeat does not shorten the wait after a failure
			}
		}
		next, err := m.look(ctx, due)
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

// look does for the node what is to be done now, and returns when it is to be done
// again: 0 leaves that as it was. With an error it is the longest wait.
func (m *member) look(ctx context.Context, due bool) (time.Duration, error) {
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

// another reports whether this is not what was looked at before: another node of the
// name, or one that has become new again.
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

// next is when to look at an initialized node again: sooner when not all was
// learnt.
func (m *member) next(f Facts) time.Duration {
	if f.OutsideUnknown != nil {
		return min(m.config.Period, longestWait)
	}
	return m.config.Period
}

// backoff doubles the wait with each failure, up to longest, and spreads it so that
// many nodes do not come back at once.
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

// Reasons of Events.
const (
	reasonInitialize = "NodeInitializationFailed"
	reasonUpdate     = "NodeAddressUpdateFailed"
	reasonContradict = "MachineContradiction"
)

// failure is an error with the reason that an Event about it has.
type failure struct {
	reason string
	node   *corev1.Node
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// patience is the failure in a row at which what may pass by itself becomes a reason
// for an Event. A machine that was just made may not be in Azure's lists yet.
const patience = 3

// report logs a failure and tells people about it, once.
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
		text = reason + kind.String() // the words of a broken connection are never the same
	}
	if text != m.said && m.config.Events != nil {
		m.said = text
		m.config.Events.Event(f.node, corev1.EventTypeWarning, reason, err.Error())
	}
}
