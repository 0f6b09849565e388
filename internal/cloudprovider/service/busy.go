package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
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
	then []func()       // what waits for the end of all of them
}

// during has the load balancers of a scale set shut while it is written.
func (s *shut) during(scaleSet azure.Document, write func() (azure.Document, error)) (azure.Document, error) {
	balancers := poolOwners(scaleSet)
	s.count(balancers, 1)
	defer s.open(balancers)
	return write()
}

func (s *shut) count(balancers []string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]int{}
	}
	for _, lb := range balancers {
		if s.by[lb] += by; s.by[lb] == 0 {
			delete(s.by, lb)
		}
	}
}

func (s *shut) open(balancers []string) {
	s.count(balancers, -1)
	for _, do := range s.released() {
		do()
	}
}

// released is what waits no more.
func (s *shut) released() []func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.by) > 0 {
		return nil
	}
	then := s.then
	s.then = nil
	return then
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

func (s *shut) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.by) > 0
}

func (s *shut) has(lb azure.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[lb.Key()] > 0
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

// standBack refuses the requests for which a load balancer would be written that is shut: Azure
// would refuse them. They come again when it is open, and the others of the commit do not
// wait for that.
func (b *balancers) standBack(ctx context.Context, t *shared, batch []request) error {
	if !b.fills.shut.any() {
		return nil
	}
	have, err := reconcile.Gather(ctx, b.azure, t.Needs)
	if err != nil {
		return err
	}
	graph, err := t.target.Desired(have)
	if err != nil {
		return nil // the commit finds that, too, and knows whose it is
	}
	p, err := plan.Diff(have, graph)
	if err != nil {
		return err
	}
	culprits := map[int]error{}
	for _, step := range p.Steps {
		if step.Op == plan.Delete || !b.fills.shut.has(step.ID) {
			continue
		}
		for i, r := range batch {
			if !r.sweeps && slices.Contains(step.For, r.service.Key()) {
				culprits[i] = &azure.Error{Kind: azure.Busy, Op: "PUT", ID: step.ID, Message: "a scale set in its backend pools is being written"}
			}
		}
	}
	if len(culprits) == 0 {
		return nil
	}
	return &reconcile.Refusal{Culprits: culprits}
}
