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
	// recently is how old an answer may be on which it is decided that a machine is
	// gone or off, and a failure that is passed on. It bounds the reads of a list
	// however many of its machines are asked about.
	recently = 4 * time.Second
	// glance and patience are how long questions wait for a list, all together: who asks
	// about one node after the other is not held up, those of new nodes can wait,
	// because trying again costs them more.
	glance   = time.Second
	patience = 10 * time.Second
	// hurry is how long questions wait while others wait in vain.
	hurry = 250 * time.Millisecond
	// awaited is how old an answer may be that somebody did not wait for: he asks again
	// for what he was promised.
	awaited = 10 * time.Second
	// alone is how many machines of a list are read one by one within [recently]. When
	// more are asked about, the list is read.
	alone = 4
	// forgotten is how long an answer is kept at most.
	forgotten = 10 * time.Minute
)

// sightings are what was seen of machines lately, by query. All who ask share them:
// there is one read of a query at a time, and its answer serves all who find it
// young enough.
type sightings struct {
	// ask asks Azure, until close is called: reads outlive the question that began them.
	ask func(azure.Query) ([]azure.Document, error)
	// impatient has questions be answered that a list is being read, instead of
	// waiting for it to its end: where the next question is about another one.
	impatient bool
	// always has every question read anew.
	always bool

	cancel context.CancelFunc
	reads  sync.WaitGroup

	mu     sync.Mutex // guards what follows; never held while waiting
	closed bool
	last   map[string]*sighting
	under  map[string]*sighting
	single map[string]map[azure.ID]time.Time // by list, when a machine of it was read alone
}

// sighting is one read of a query.
type sighting struct {
	began, ended time.Time
	awaited      bool // somebody could not wait; guarded by mu
	done         chan struct{}
	list         *nodes.Listing // after done
	err          error          // after done
}

func newSightings(door reconcile.Azure) *sightings {
	ctx, cancel := context.WithCancel(context.Background())
	return &sightings{
		ask: func(q azure.Query) ([]azure.Document, error) { return ask(ctx, door.Fresh(), q) }, cancel: cancel,
		last: map[string]*sighting{}, under: map[string]*sighting{}, single: map[string]map[azure.ID]time.Time{},
	}
}

// close gives up what is being read and waits until that has ended.
func (s *sightings) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.reads.Wait()
}

// young is what a question demands of an answer, and gives for it.
type young struct {
	age   time.Duration // since it was read
	after time.Time     // when its read must not have begun before
	wait  time.Duration // for it, since its read began
}

// serves reports whether a finished sighting is young enough. Failures are passed on
// for a moment, so that many questions are no burden to an Azure in trouble.
func (y young) serves(s *sighting, now time.Time) bool {
	age := y.age
	if s.err != nil {
		age = min(age, recently)
	}
	if s.awaited {
		age = max(age, awaited)
	}
	return now.Sub(s.ended) <= age && (s.err != nil || !s.began.Before(y.after))
}

// past is what was answered before, if it will do; the caller holds the lock.
func (s *sightings) past(q azure.Query, y young) (*sighting, bool) {
	e, ok := s.last[keyOf(q)]
	if !ok || !y.serves(e, time.Now()) || s.always && e.err == nil && !e.awaited {
		return nil, false
	}
	return e, true
}

// kept is the answer to a query if it is known already and young enough, else nil.
func (s *sightings) kept(q azure.Query, y young) *nodes.Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.past(q, y); ok && e.err == nil {
		return e.list
	}
	return nil
}

// see answers a query. While the answer takes long it is an error of kind Busy, and
// is there for who asks again.
func (s *sightings) see(ctx context.Context, q azure.Query, y young) (*nodes.Listing, error) {
	for {
		e, mine, wait := s.join(q, y)
		if !wait {
			return e.list, e.err
		}
		if err := s.await(ctx, q, e, y.wait); err != nil {
			return nil, err
		}
		// A read that somebody else began may be too old: then there is one more.
		if mine || e.err != nil || !e.began.Before(y.after) {
			return e.list, e.err
		}
	}
}

// join is the answer that is there, or the read that will bring one, which it begins
// if need be.
func (s *sightings) join(q azure.Query, y young) (e *sighting, mine, wait bool) {
	key := keyOf(q)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.past(q, y); ok {
		return e, false, false
	}
	if e, ok := s.under[key]; ok {
		return e, false, true
	}
	if s.closed {
		return &sighting{err: fmt.Errorf("read %s in %s: %w", q.Type, q.Scope, context.Canceled)}, false, false
	}
	e = &sighting{began: time.Now(), done: make(chan struct{})}
	s.under[key] = e
	s.reads.Go(func() {
		list, err := s.read(q)
		s.mu.Lock()
		e.list, e.err, e.ended = list, err, time.Now()
		delete(s.under, key)
		s.forget(e.ended)
		s.last[key] = e
		s.mu.Unlock()
		close(e.done)
	})
	return e, true, true
}

// forget drops what nobody would use any more.
func (s *sightings) forget(now time.Time) {
	for key, e := range s.last {
		if now.Sub(e.ended) > forgotten {
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

// await waits for a read, for as long as all may wait for it together. When another
// one takes long already, that is hardly at all.
func (s *sightings) await(ctx context.Context, q azure.Query, e *sighting, wait time.Duration) error {
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
			Message: fmt.Sprintf("it is being read since %s; ask again", e.began.UTC().Format(time.TimeOnly)),
		}
	}
}

// remains is how long a question may wait for a read.
func (s *sightings) remains(e *sighting, wait time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, other := range s.under {
		if other != e && now.Sub(other.began) >= wait {
			wait = hurry
			break
		}
	}
	return wait - now.Sub(e.began)
}

// read asks Azure. What does not exist has an empty answer; but where not even the
// subscription is found, something else is wrong.
func (s *sightings) read(q azure.Query) (*nodes.Listing, error) {
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

// mayReadAlone reports whether a machine may be read without its list: the first few
// may.
func (s *sightings) mayReadAlone(list azure.Query, machine azure.ID) bool {
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
	if others >= alone {
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
