package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/plan/nodes"
	"kaz/internal/reconcile"
)

const (
	// recently is the maximum age of an answer that a machine is gone or off, and of a failure. It
	// bounds the list reads, however many machines the framework asks about.
	recently = 4 * time.Second
	// shortWait and longWait are how long questions wait for a list, measured from the start of its
	// read. The framework asks about known nodes in turn, so those questions must be short. For new
	// nodes a retry costs more than waiting.
	shortWait = time.Second
	longWait  = 10 * time.Second
	// busyWait is the wait while another read takes too long already.
	busyWait = 250 * time.Millisecond
	// awaitedAge is the maximum age of an answer for a question that did not wait: the next question
	// must find it.
	awaitedAge = 10 * time.Second
	// singleReads is how many machines of a list are read one by one within [recently]. For more
	// machines, the list is read.
	singleReads = 4
	// evictAfter is the maximum age of a cached answer.
	evictAfter = 10 * time.Minute
)

// machineCache caches reads of machines by query. At most one read of a query is in flight, and all
// questions share its answer if it is new enough.
type machineCache struct {
	// ask reads Azure until close is called. A read outlives the question that started it.
	ask func(azure.Query) ([]azure.Document, error)
	// impatient limits the wait of each question. It is set if the next question is about another
	// machine.
	impatient bool
	// always disables the use of earlier answers.
	always bool

	cancel context.CancelFunc
	reads  sync.WaitGroup

	mu     sync.Mutex // guards the fields below; never held while waiting
	closed bool
	last   map[string]*machineRead
	under  map[string]*machineRead
	single map[string]map[azure.ID]time.Time // by list: when its machines were read one by one
}

// machineRead is one read of a query.
type machineRead struct {
	began, ended time.Time
	before       *machineRead // the read before it that succeeded, nil for none; guarded by mu
	awaited      bool         // a question did not wait for it; guarded by mu
	done         chan struct{}
	list         *nodes.Listing // valid after done
	err          error          // valid after done
}

func newMachineCache(client reconcile.Azure) *machineCache {
	ctx, cancel := context.WithCancel(context.Background())
	return &machineCache{
		ask: func(q azure.Query) ([]azure.Document, error) { return ask(ctx, client.Fresh(), q) }, cancel: cancel,
		last: map[string]*machineRead{}, under: map[string]*machineRead{}, single: map[string]map[azure.ID]time.Time{},
	}
}

// close cancels the reads in flight and waits for them.
func (s *machineCache) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.reads.Wait()
}

// freshness is how new an answer must be and how long the question may wait.
type freshness struct {
	age   time.Duration // maximum time since the end of the read
	after time.Time     // earliest start of the read
	wait  time.Duration // maximum time since the start of the read
	// lacks reports whether an answer lacks the machine that the question is about. Such an answer
	// counts only if the read before lacked the machine, too: a replica of Azure's that lags behind
	// lists too little. Nil for questions that any answer serves.
	lacks func(*nodes.Listing) bool
}

// serves reports whether a finished read is new enough. A failure is reused for a moment, to spare
// Azure while it has problems.
func (y freshness) serves(s *machineRead, now time.Time) bool {
	age := y.age
	if s.err != nil {
		age = min(age, recently)
	}
	if s.awaited {
		age = max(age, awaitedAge)
	}
	return now.Sub(s.ended) <= age && y.trusts(s)
}

// trusts reports whether a finished read answers the question, whatever its age.
func (y freshness) trusts(s *machineRead) bool {
	switch {
	case s.err != nil:
		return true
	case s.began.Before(y.after):
		return false
	case y.lacks == nil || !y.lacks(s.list):
		return true
	}
	return s.before != nil && !s.before.began.Before(y.after) && y.lacks(s.before.list)
}

// finished returns the last read of a query if it is new enough. The caller holds the lock.
func (s *machineCache) finished(q azure.Query, y freshness) (*machineRead, bool) {
	e, ok := s.last[keyOf(q)]
	if !ok || !y.serves(e, time.Now()) || s.always && e.err == nil && !e.awaited {
		return nil, false
	}
	return e, true
}

// cached returns the answer to a query if it is cached and new enough, else nil.
func (s *machineCache) cached(q azure.Query, y freshness) *nodes.Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.finished(q, y); ok && e.err == nil {
		return e.list
	}
	return nil
}

// get answers a query. If the read takes too long, it returns an error of kind Busy; the answer is
// cached for the next question.
func (s *machineCache) get(ctx context.Context, q azure.Query, y freshness) (*nodes.Listing, error) {
	for own := 0; ; {
		e, mine, wait := s.join(q, y)
		if !wait {
			return e.list, e.err
		}
		if err := s.await(ctx, q, e, y.wait); err != nil {
			return nil, err
		}
		if mine {
			own++
		}
		// A read that another question started may be too old, and one that lacks the machine is
		// the first to do so: read once more.
		if enough := own > 0 && y.lacks == nil || own > 1; enough || s.isTrusted(e, y) {
			return e.list, e.err
		}
	}
}

func (s *machineCache) isTrusted(e *machineRead, y freshness) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return y.trusts(e)
}

// join returns a finished read, or the read in flight, which it starts if necessary.
func (s *machineCache) join(q azure.Query, y freshness) (e *machineRead, mine, wait bool) {
	key := keyOf(q)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.finished(q, y); ok {
		return e, false, false
	}
	if e, ok := s.under[key]; ok {
		return e, false, true
	}
	if s.closed {
		return &machineRead{err: fmt.Errorf("read %s in %s: %w", q.Type, q.Scope, context.Canceled)}, false, false
	}
	e = &machineRead{began: time.Now(), done: make(chan struct{})}
	s.under[key] = e
	s.reads.Go(func() {
		list, err := s.read(q)
		s.mu.Lock()
		e.list, e.err, e.ended = list, err, time.Now()
		delete(s.under, key)
		s.evict(e.ended)
		s.keep(key, e)
		s.mu.Unlock()
		close(e.done)
	})
	return e, true, true
}

// keep caches a read, and the one before it.
func (s *machineCache) keep(key string, e *machineRead) {
	if before := s.last[key]; before != nil && before.err == nil {
		before.before, e.before = nil, before
	} else if before != nil {
		e.before = before.before
	}
	s.last[key] = e
}

// evict drops answers that are too old.
func (s *machineCache) evict(now time.Time) {
	for key, e := range s.last {
		if now.Sub(e.ended) > evictAfter {
			delete(s.last, key)
		}
	}
	for key, times := range s.single {
		for id, at := range times {
			if now.Sub(at) > recently {
				delete(times, id)
			}
		}
		if len(times) == 0 {
			delete(s.single, key)
		}
	}
}

// await waits for a read. It waits only briefly if another read takes long already.
func (s *machineCache) await(ctx context.Context, q azure.Query, e *machineRead, wait time.Duration) error {
	var enough <-chan time.Time
	if s.impatient {
		timer := time.NewTimer(s.remains(e, wait))
		defer timer.Stop()
		enough = timer.C
	}
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-enough:
		s.mu.Lock()
		e.awaited = true
		s.mu.Unlock()
		return &azure.Error{
			Kind: azure.Busy, Op: "LIST " + q.Type, ID: q.Scope,
			Message: fmt.Sprintf("read in progress since %s; try again", e.began.UTC().Format(time.TimeOnly)),
		}
	}
}

// remains returns how long a question may still wait for a read.
func (s *machineCache) remains(e *machineRead, wait time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, other := range s.under {
		if other != e && now.Sub(other.began) >= wait {
			wait = busyWait
			break
		}
	}
	return wait - now.Sub(e.began)
}

// read reads Azure. A resource that does not exist has an empty answer. An unknown subscription is an
// error.
func (s *machineCache) read(q azure.Query) (*nodes.Listing, error) {
	docs, err := s.ask(q)
	if e, ok := errors.AsType[*azure.Error](err); ok && e.Kind == azure.NotFound && !strings.EqualFold(e.Code, "SubscriptionNotFound") {
		docs, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s in %s: %w", q.Type, q.Scope, err)
	}
	return nodes.Read(q, docs)
}

func ask(ctx context.Context, r azure.Reader, q azure.Query) ([]azure.Document, error) {
	if !nodes.IsView(q) {
		return r.List(ctx, q)
	}
	doc, err := r.Get(ctx, q.Scope+"/instanceView")
	return []azure.Document{doc}, err
}

// mayReadAlone reports whether a machine may be read without its list. The first few machines may.
func (s *machineCache) mayReadAlone(list azure.Query, machine azure.ID) bool {
	key, now := keyOf(list), time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	times := s.single[key]
	others := 0
	for id, at := range times {
		if !id.Equal(machine) && now.Sub(at) <= recently {
			others++
		}
	}
	if others >= singleReads {
		return false
	}
	if times == nil {
		times = map[azure.ID]time.Time{}
		s.single[key] = times
	}
	times[machine] = now
	return true
}

func keyOf(q azure.Query) string {
	return strings.ToLower(strings.Join([]string{string(q.Scope), q.Type, q.Expand, q.Filter}, "\n"))
}
