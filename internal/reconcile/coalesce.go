package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/observe/trace"
)

// Commit applies all requests of one batch at a single key and returns an answer for each, in their order. An error
// answers the whole batch, with three exceptions. A [*Refusal] names the culprits. A [*Postponed] names the requests
// for a later commit. The third is an error of a kind that says that Azure refused something in the batch (see
// [refused]). The coalescer then finds the culprit by committing halves, within bounds (see [commitsAtMost]).
type Commit[Req, Res any] func(ctx context.Context, key string, batch []Req) ([]Res, error)

// Refusal is the error of a commit that knows which requests could not be applied, and why. The coalescer commits the
// other requests again without them.
type Refusal struct{ Culprits map[int]error } // by index in the batch

func (r *Refusal) Error() string {
	errs := make([]error, 0, len(r.Culprits))
	for i, err := range r.Culprits {
		errs = append(errs, fmt.Errorf("request %d: %w", i, err))
	}
	return errors.Join(errs...).Error()
}

// Postponed is the error of a commit that has answers for all requests but the named ones. The coalescer answers the
// others first and then commits the named ones.
type Postponed struct{ Requests map[int]bool } // by index in the batch

func (p *Postponed) Error() string { return fmt.Sprintf("%d requests are postponed", len(p.Requests)) }

// ErrClosed answers requests that a closed coalescer did not begin.
var ErrClosed = errors.New("the coalescer is closed")

// Coalescer serves concurrent requests at shared documents by group commit. It serves a lone caller at once, unless
// [Coalescer.Gather] says otherwise. Callers that arrive while a commit of their key is in flight are served together
// by the next one. Commits of one key never overlap, commits of different keys do.
type Coalescer[Req, Res any] struct {
	// commit runs under a context that lives as long as the coalescer: a commit
	// serves many callers and outlives each of them.
	commit  func(key string, batch []Req) ([]Res, error)
	stopped func() bool
	stop    context.CancelFunc
	ended   <-chan struct{} // closed when it stops
	work    sync.WaitGroup
	// The first caller of a key waits until no other caller has come for the time calm, but no longer than most.
	calm, most time.Duration
	begun      func(waits []time.Duration) // nil for no observer
	compare    func(a, b Req) int          // the order within a batch, nil for that of arrival
	rank       func(req Req) int           // nil for no sifting, see Sift

	mu     sync.Mutex // guards what follows; never held while waiting
	queues map[string]*queue[Req, Res]
	closed bool
}

// queue is one key's waiting callers. It exists while a worker serves it.
type queue[Req, Res any] struct {
	waiting []*ticket[Req, Res]
	last    time.Time // of the newest caller
}

type ticket[Req, Res any] struct {
	req  Req
	from time.Time     // when it was submitted
	done chan struct{} // closed once res and err are set
	res  Res
	err  error
}

// NewCoalescer is a coalescer that commits with commit. Close it when done.
func NewCoalescer[Req, Res any](commit Commit[Req, Res]) *Coalescer[Req, Res] {
	ctx, stop := context.WithCancel(context.Background())
	return &Coalescer[Req, Res]{
		commit: func(key string, batch []Req) ([]Res, error) {
			ctx, span := trace.Start(ctx, "commit", slog.String("key", key), slog.Int("requests", len(batch)))
			answers, err := commit(ctx, key, batch)
			span.End(err)
			return answers, err
		},
		stopped: func() bool { return ctx.Err() != nil },
		stop:    stop,
		ended:   ctx.Done(),
		queues:  map[string]*queue[Req, Res]{},
	}
}

// Gather makes the first caller of a key wait until no other caller has come for the time calm, but no longer than
// most. Without Gather, the first caller of a burst is committed alone, and all others wait for that commit. Call it
// before the first request.
func (c *Coalescer[Req, Res]) Gather(calm, most time.Duration) { c.calm, c.most = calm, most }

// Order sets the order in which the requests of a batch are committed, instead of that of their arrival. A search for a culprit commits
// the first half of a batch without the second: a request that another one needs comes before it. Call it before the first request.
func (c *Coalescer[Req, Res]) Order(compare func(a, b Req) int) { c.compare = compare }

// Sift has the search for culprits go on where there are more than two: parts of the batch are committed by themselves, the larger ones
// first, so that many culprits do not keep all others from being served. All requests of a rank are settled before those of a higher rank,
// which may need them. Call it before the first request.
func (c *Coalescer[Req, Res]) Sift(rank func(req Req) int) { c.rank = rank }

// Observe sets a function that is called when a batch begins, with the time that each of its requests has waited.
// Call Observe before the first request.
func (c *Coalescer[Req, Res]) Observe(begun func(waits []time.Duration)) { c.begun = begun }

// Close refuses new requests, cancels the commits in flight and waits for them.
func (c *Coalescer[Req, Res]) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.work.Wait()
}

// Submit asks for req at key and waits for its own answer. Cancelling ctx ends the wait. A request that no commit has
// taken yet is withdrawn. A request in flight goes on, because its commit serves other callers too.
func (c *Coalescer[Req, Res]) Submit(ctx context.Context, key string, req Req) (Res, error) {
	t := &ticket[Req, Res]{req: req, from: time.Now(), done: make(chan struct{})}
	var none Res
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if err := c.enqueue(key, t); err != nil {
		return none, err
	}
	select {
	case <-t.done:
		return t.res, t.err
	case <-ctx.Done():
		c.withdraw(key, t)
		return none, ctx.Err()
	}
}

func (c *Coalescer[Req, Res]) enqueue(key string, t *ticket[Req, Res]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	q, served := c.queues[key]
	if !served {
		q = &queue[Req, Res]{}
		c.queues[key] = q
		c.work.Go(func() { c.serve(key, q) })
	}
	q.waiting, q.last = append(q.waiting, t), time.Now()
	return nil
}

func (c *Coalescer[Req, Res]) withdraw(key string, t *ticket[Req, Res]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q, ok := c.queues[key]; ok {
		for i, other := range q.waiting {
			if other == t {
				q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...)
				return
			}
		}
	}
}

// gather waits until a burst of callers ends: calm without a new one, at most most.
func (c *Coalescer[Req, Res]) gather(q *queue[Req, Res]) {
	for enough := time.Now().Add(c.most); ; {
		c.mu.Lock()
		wait := min(time.Until(q.last.Add(c.calm)), time.Until(enough))
		c.mu.Unlock()
		if wait <= 0 {
			return
		}
		select {
		case <-time.After(wait):
		case <-c.ended:
			return
		}
	}
}

// serve commits a key's requests until none are waiting.
func (c *Coalescer[Req, Res]) serve(key string, q *queue[Req, Res]) {
	c.gather(q)
	for {
		c.mu.Lock()
		batch := q.waiting
		q.waiting = nil
		if len(batch) == 0 {
			delete(c.queues, key)
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		c.observe(batch)
		c.settle(key, batch)
	}
}

func (c *Coalescer[Req, Res]) observe(batch []*ticket[Req, Res]) {
	if c.begun == nil {
		return
	}
	waits := make([]time.Duration, len(batch))
	for i, t := range batch {
		waits[i] = time.Since(t.from)
	}
	c.begun(waits)
}

// suspects are requests of which at least one is at fault, and the error of their commit.
type suspects[Req, Res any] struct {
	batch []*ticket[Req, Res]
	err   error
}

// commitsAtMost bounds the search for culprits in a batch. It suffices for two culprits among any number of requests.
// If there are more, or no request is at fault alone, the search ends, unless the coalescer sifts. The remaining callers get
// the error that Azure gave for all of them.
func commitsAtMost(batch int) int {
	const culprits, more = 2, 4
	return 2*culprits*bits.Len(uint(batch)) + more
}

// search is the search for culprits in one batch.
type search[Req, Res any] struct {
	*Coalescer[Req, Res]
	key  string
	left int // commits
	err  error
}

// settle commits a batch and answers every ticket in it. If the batch is refused, halves of halves lead to one culprit.
// All others are then committed together, so that one culprit costs few commits.
func (c *Coalescer[Req, Res]) settle(key string, batch []*ticket[Req, Res]) {
	s := search[Req, Res]{Coalescer: c, key: key, left: commitsAtMost(len(batch))}
	for len(batch) > 0 && s.left > 0 {
		c.sort(batch)
		rest, guilty := s.commitOne(batch)
		if guilty {
			rest = s.narrow(rest)
		}
		batch = rest
	}
	if c.rank != nil && len(batch) > 1 {
		batch = s.siftByRank(batch)
	}
	answerAll(batch, s.err)
}

// siftByRank sifts the requests of each rank by themselves. It returns the requests that are not answered. If these are of a rank, no
// request of a higher rank is committed: without those that it needs, a culprit could pass.
func (s *search[Req, Res]) siftByRank(batch []*ticket[Req, Res]) (left []*ticket[Req, Res]) {
	byRank := map[int][]*ticket[Req, Res]{}
	s.sort(batch)
	for _, t := range batch {
		rank := s.rank(t.req)
		byRank[rank] = append(byRank[rank], t)
	}
	for _, rank := range slices.Sorted(maps.Keys(byRank)) {
		if len(left) > 0 {
			left = append(left, byRank[rank]...)
			continue
		}
		parts := [][]*ticket[Req, Res]{byRank[rank]}
		if len(byRank) == 1 { // refused already
			parts = halves(batch)
		}
		left = s.sift(parts)
	}
	return left
}

// sift commits parts of a batch, and parts of those that are refused. It ends when too many parts in a row were refused: then all requests
// may be at fault, or none. It returns the requests that are not answered.
func (s *search[Req, Res]) sift(parts [][]*ticket[Req, Res]) (left []*ticket[Req, Res]) {
	const share, more = 2, 8
	most, inVain := len(slices.Concat(parts...))/share+more, 0
	for len(parts) > 0 && inVain < most {
		rest, guilty := s.commitOne(parts[0])
		parts = parts[1:]
		switch {
		case guilty:
			inVain++
			parts = append(parts, halves(rest)...)
		case len(rest) > 0: // the culprits among them are answered
			parts = append(parts, rest)
		default:
			inVain = 0
		}
	}
	return slices.Concat(parts...)
}

func halves[T any](all []T) [][]T {
	return [][]T{all[:len(all)/2], all[len(all)/2:]}
}

func (c *Coalescer[Req, Res]) sort(batch []*ticket[Req, Res]) {
	if c.compare != nil {
		slices.SortStableFunc(batch, func(a, b *ticket[Req, Res]) int { return c.compare(a.req, b.req) })
	}
}

// commitOne commits a group. It returns the requests that are not answered, and whether one of these is at fault.
func (s *search[Req, Res]) commitOne(batch []*ticket[Req, Res]) (rest []*ticket[Req, Res], guilty bool) {
	s.left--
	left, guilty := s.try(s.key, batch)
	if left.err != nil {
		s.err = left.err
	}
	return left.batch, guilty
}

// narrow finds one culprit in a refused group and answers it. It returns the requests that are not answered. If one half of a group
// is committed, the other half is at fault.
func (s *search[Req, Res]) narrow(group []*ticket[Req, Res]) (others []*ticket[Req, Res]) {
	for len(group) > 1 {
		if s.left <= 0 {
			return append(others, group...)
		}
		half, other := group[:len(group)/2], group[len(group)/2:]
		rest, guilty := s.commitOne(half)
		switch {
		case guilty:
			group, others = rest, append(others, other...)
		case len(rest) > 0 || half[0].err != nil: // the culprits are answered, or they are named
			return append(append(others, rest...), other...)
		default:
			group = other
		}
	}
	if azure.KindOf(s.err) == azure.Invalid || s.left <= 0 {
		answerAll(group, s.err)
		return others
	}
	rest, _ := s.commitOne(group) // what was missing or in use may be there or free by now
	return append(others, rest...)
}

// try commits a group, answers the requests with a known outcome, and returns the others, and whether one of these is
// at fault.
func (c *Coalescer[Req, Res]) try(key string, batch []*ticket[Req, Res]) (rest suspects[Req, Res], guilty bool) {
	if c.stopped() {
		answerAll(batch, ErrClosed)
		return rest, false
	}
	reqs := make([]Req, len(batch))
	for i, t := range batch {
		reqs[i] = t.req
	}
	answers, err := c.commit(key, reqs)
	if later := answerOthers(batch, answers, err); len(later) > 0 {
		return suspects[Req, Res]{later, err}, false
	}
	refusal, blamed := errors.AsType[*Refusal](err)
	switch {
	case err == nil && len(answers) == len(batch):
		for i, t := range batch {
			t.answer(answers[i], nil)
		}
	case err == nil:
		answerAll(batch, fmt.Errorf("commit of %s: %d answers for %d requests", key, len(answers), len(batch)))
	case blamed && len(refusal.Culprits) > 0:
		return suspects[Req, Res]{split(batch, refusal), err}, false
	case len(batch) > 1 && refused(err):
		return suspects[Req, Res]{batch, err}, true
	default:
		answerAll(batch, err)
	}
	return rest, false
}

// answerOthers answers the requests that are not postponed, and returns the postponed ones.
func answerOthers[Req, Res any](batch []*ticket[Req, Res], answers []Res, err error) []*ticket[Req, Res] {
	later, ok := errors.AsType[*Postponed](err)
	if !ok || len(later.Requests) >= len(batch) || len(answers) != len(batch) {
		return nil
	}
	var rest []*ticket[Req, Res]
	for i, t := range batch {
		if later.Requests[i] {
			rest = append(rest, t)
		} else {
			t.answer(answers[i], nil)
		}
	}
	return rest
}

// split answers the culprits and returns the others.
func split[Req, Res any](batch []*ticket[Req, Res], refusal *Refusal) []*ticket[Req, Res] {
	var innocent []*ticket[Req, Res]
	var none Res
	for i, t := range batch {
		if err, guilty := refusal.Culprits[i]; guilty {
			t.answer(none, err)
		} else {
			innocent = append(innocent, t)
		}
	}
	return innocent
}

// concernsAll reports whether an error's code cannot be the fault of one request. Such a code is about the right to
// write the document at all, or about its subscription.
func concernsAll(err error) bool {
	e, ok := errors.AsType[*azure.Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case "AuthorizationFailed", "AuthenticationFailed", "InvalidAuthenticationToken", "ExpiredAuthenticationToken", "ScopeLocked",
		"MissingSubscriptionRegistration", "SubscriptionNotRegistered", "ReadOnlyDisabledSubscription", "SubscriptionNotFound":
		return true
	}
	return false
}

// refused reports whether err can be the fault of one request among many. Other errors concern the document, the
// connection to Azure or the moment.
func refused(err error) bool {
	if concernsAll(err) {
		return false
	}
	switch azure.KindOf(err) {
	case azure.Invalid, azure.Quota, azure.InUse, azure.NotFound, azure.Exists, azure.Denied:
		return true
	default:
		return false
	}
}

func answerAll[Req, Res any](batch []*ticket[Req, Res], err error) {
	var none Res
	for _, t := range batch {
		t.answer(none, err)
	}
}

func (t *ticket[Req, Res]) answer(res Res, err error) {
	t.res, t.err = res, err
	close(t.done)
}
