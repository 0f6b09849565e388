package service

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/reconcile"
)

// quietly is for how long Azure may be busy before somebody is told of it: most of what it
// is busy with is over by then, and nobody has to do anything.
const quietly = time.Minute

// hush keeps to itself that Azure is busy, unless it is for long: then it is said once. It is
// of one thing that is tried again and again.
type hush struct {
	since time.Time // the first time in a row that Azure was busy, zero for never
	said  bool
}

// breaks reports whether a failure is to be said.
func (h *hush) breaks(err error) bool {
	if azure.KindOf(err) != azure.Busy {
		*h = hush{}
		return true
	}
	if h.since.IsZero() {
		h.since = time.Now()
	}
	if h.said || time.Since(h.since) < quietly {
		return false
	}
	h.said = true
	return true
}

// holds reports whether nothing was said of the failures so far.
func (h *hush) holds() bool { return !h.since.IsZero() && !h.said }

// shut are the load balancers that Azure does not let be written now, because kaz writes a
// scale set that has machines in their pools, or shall have.
type shut struct {
	mu   sync.Mutex     // never held while waiting
	by   map[string]int // how many such writes are under way, by id key of the load balancer
	then []func()       // what waits until none is shut
}

// during has the load balancers of a scale set shut while it is written.
func (s *shut) during(scaleSet azure.Document, write func() (azure.Document, error)) (azure.Document, error) {
	balancers := poolOwners(scaleSet)
	s.count(balancers, 1)
	defer s.open(balancers)
	return write()
}

func (s *shut) open(balancers []string) {
	for _, do := range s.count(balancers, -1) {
		do()
	}
}

// count counts writes, and returns what waits no more.
func (s *shut) count(balancers []string, more int) (then []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]int{}
	}
	for _, lb := range balancers {
		if s.by[lb] += more; s.by[lb] == 0 {
			delete(s.by, lb)
		}
	}
	if len(s.by) == 0 {
		then, s.then = s.then, nil
	}
	return then
}

func (s *shut) has(lb azure.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[lb.Key()] > 0
}

// after has something done as soon as no load balancer is shut, and reports whether one is.
func (s *shut) after(do func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.by) == 0 {
		return false
	}
	s.then = append(s.then, do)
	return true
}

// besideDoor is the way to Azure of commits. It says itself what Azure would say of a load
// balancer that is shut.
type besideDoor struct {
	reconcile.Azure
	shut *shut
}

func (d besideDoor) Put(ctx context.Context, w azure.Write) (azure.Document, error) {
	if d.shut.has(w.ID) {
		return nil, &azure.Error{Kind: azure.Busy, Op: "PUT", ID: w.ID, Message: "a scale set in its backend pools is being written"}
	}
	return d.Azure.Put(ctx, w)
}

// poolOwners are the load balancers in whose pools a scale set's model is, by id key.
func poolOwners(scaleSet azure.Document) []string {
	r, err := azure.Decode[compute.ScaleSet](scaleSet)
	if err != nil {
		return nil // it was written by the planner
	}
	var keys []string
	for _, id := range azure.References(r.Properties) {
		if lb := id.Parent(); sameType(lb, network.LoadBalancers) && !slices.Contains(keys, lb.Key()) {
			keys = append(keys, lb.Key())
		}
	}
	return keys
}

// tryAgain has a Service tried again that failed so often in a row. Those for which Azure was
// too busy come together, as soon as kaz itself is not what keeps it busy, else at beats
// that get rarer: one write answers them all.
func (c *Controller) tryAgain(it item, err error, failures int) (wait time.Duration) {
	wait = delay(err, failures)
	if azure.KindOf(err) == azure.Busy {
		if c.fills.shut.after(func() { c.queue.Add(it) }) {
			return 0
		}
		wait = beat(time.Since(c.began), wait, err)
	}
	c.queue.AddAfter(it, wait)
	return wait
}

// beat is how long it is, so long after the beginning, until a multiple of a wait, and not
// before the time that Azure asked for.
func beat(since, wait time.Duration, err error) time.Duration {
	var asked time.Duration
	if e, ok := errors.AsType[*azure.Error](err); ok {
		asked = e.RetryAfter
	}
	return asked + wait - (since+asked)%wait
}
