package arm

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
)

// A deletion is polled as often as Azure asks, which for most is every ten seconds.
// Where many resources of one collection go at the same time, one list of the
// collection tells of all which are still there. So their roll is called some times
// between two polls, and polled are those that do not answer: each about once, and soon
// after it is gone. The poll, not the list, says how the deletion ended.

const (
	// company is how many deletions of a collection are worth a list.
	company = 8
	// rollsAtMost bounds how often a deletion is found in the list before it is polled
	// all the same.
	rollsAtMost = 12
	// rollsInWait is how many lists are read in the time between two polls.
	rollsInWait = 4
	// rollWait is the shortest wait between polls that lists are called in.
	rollWait = time.Second
)

// rolls are the collections of which something is being deleted, by key.
type rolls struct {
	mu sync.Mutex // guards what follows and all rolls; never held while waiting
	of map[string]*roll
}

// roll is the deletions of one collection that are under way.
type roll struct {
	query    azure.Query
	caller   chan struct{} // has one token, held by the deletion that calls the roll
	underway int
	due      map[*departure]bool // those that could be polled, and wait for what the list says
	mute     bool                // the list cannot be read
	last     time.Time           // its last reading began
	leaving  map[string]bool     // by key, what was being deleted then
}

// departure is one deletion.
type departure struct {
	roll   *roll
	key    string
	joined time.Time
	polls  chan struct{} // closed when it is to be polled
}

// join notes a deletion as under way. Compute is left out, which counts lists dearly.
func (r *rolls) join(c call) (*departure, func()) {
	if c.method != http.MethodDelete || c.subject.namespace == compute {
		return nil, func() {}
	}
	q := azure.Query{Scope: c.id.Parent(), Type: c.id.Type()}
	key := q.Scope.Key() + " " + strings.ToLower(q.Type)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]*roll{}
	}
	one := r.of[key]
	if one == nil {
		one = &roll{query: q, caller: make(chan struct{}, 1), due: map[*departure]bool{}}
		one.caller <- struct{}{}
		r.of[key] = one
	}
	one.underway++
	return &departure{roll: one, key: c.id.Key(), joined: time.Now()}, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if one.underway--; one.underway == 0 {
			delete(r.of, key)
		}
	}
}

// waits notes a deletion as one whose poll is due, and reports whether it is to wait for
// what the next list says.
func (r *rolls) waits(d *departure) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	alone := d.roll.underway < company && len(d.roll.due) == 0
	gone := d.joined.Before(d.roll.last) && !d.roll.leaving[d.key]
	if alone || gone || d.roll.mute {
		return false
	}
	d.polls = make(chan struct{})
	d.roll.due[d] = true
	return true
}

func (r *rolls) leave(d *departure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(d.roll.due, d)
}

// depart waits until a deletion is worth a poll, which Azure wants no sooner than after
// a time.
func (d *Door) depart(ctx context.Context, one *departure, wait time.Duration) error {
	if err := pause(ctx, wait); err != nil || wait < rollWait || !d.rolls.waits(one) {
		return err
	}
	defer d.rolls.leave(one)
	for range rollsAtMost {
		select {
		case <-one.polls:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-one.roll.caller:
		}
		err := d.callRoll(ctx, one, wait/rollsInWait)
		one.roll.caller <- struct{}{}
		if err != nil {
			return err
		}
	}
	return nil
}

// callRoll reads the list, no sooner than so long after the last time, and has those
// polled that are not in it as what is being deleted.
func (d *Door) callRoll(ctx context.Context, by *departure, every time.Duration) error {
	r := by.roll
	begin, needed := d.rolls.next(by, every)
	if !needed {
		return nil
	}
	if err := pause(ctx, time.Until(begin)); err != nil {
		return err
	}
	began := time.Now()
	docs, err := d.List(ctx, r.query)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	leaving := make(map[string]bool, len(docs))
	for _, doc := range docs {
		if strings.EqualFold(provisioningState(doc), "Deleting") {
			leaving[doc.ID().Key()] = true
		}
	}
	d.rolls.mu.Lock()
	defer d.rolls.mu.Unlock()
	r.last, r.leaving, r.mute = began, leaving, err != nil
	for one := range r.due {
		if r.mute || !leaving[one.key] {
			delete(r.due, one)
			close(one.polls)
		}
	}
	return nil
}

// next is when the list may be read again, and whether a deletion still waits for that.
func (r *rolls) next(d *departure, every time.Duration) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return d.roll.last.Add(every), d.roll.due[d]
}
