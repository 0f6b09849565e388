package arm

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
)

// Operations are polled as often as Azure asks: most deletions every ten seconds, the
// making of public IPs every two. Where many resources of one collection are made, or go,
// at the same time, one list of the collection tells of all of them how they are doing.
// So their roll is called between two polls:
//
// A deletion whose poll is due waits until the list shows it no more, and is polled then:
// once, and soon after it is gone. The poll, not the list, says how it ended.
//
// What is made is polled when that is due, but has ended before if the list shows so.

const (
	// company is how many writes of a collection are worth a list.
	company = 8
	// waitsAtMost is for how many waits between polls a deletion is found in the list before
	// it is polled all the same.
	waitsAtMost = 3
	// rollsInWait is how many lists are read in the time between two polls of deletions.
	rollsInWait = 4
	// rollWait is the shortest wait between polls that lists are called in, and between
	// lists of what is made.
	rollWait = time.Second
)

// rolls are the collections of which something is being made, or deleted, by key.
type rolls struct {
	mu sync.Mutex // guards what follows and all rolls; never held while waiting
	of map[string]*roll
}

// roll is the creations, or the deletions, of one collection that are under way.
type roll struct {
	query    azure.Query
	caller   chan struct{} // has one token, held by the one that calls the roll
	underway int
	waiting  map[*entry]bool // for what the list says
	mute     bool            // the list cannot be read
	last     time.Time       // its last reading began, or the first write was accepted
	listed   map[string]azure.Document
}

// entry is one creation or deletion.
type entry struct {
	roll   *roll
	key    string
	leaves bool
	joined time.Time
	over   chan struct{}  // closed when the list shows that it has ended
	shown  azure.Document // as the list shows it then
}

// isOver reports whether a list that has the document, or none, shows that it has ended.
func (e *entry) isOver(doc azure.Document) bool {
	state := provisioningState(doc)
	if e.leaves {
		return !strings.EqualFold(state, "Deleting")
	}
	return isFinal(state)
}

func isFinal(state string) bool {
	switch strings.ToLower(state) {
	case "succeeded", "failed", "canceled":
		return true
	}
	return false
}

// rollOf is the key of the roll that tells of a write, "" where none does: compute counts
// lists dearly, and of what was there before the list does not tell what it shows.
func rollOf(c call) string {
	creates := c.method == http.MethodPut && c.header.Get("If-None-Match") != ""
	if c.method != http.MethodDelete && !creates || c.subject.namespace == compute {
		return ""
	}
	return c.method + " " + c.id.Parent().Key() + " " + strings.ToLower(c.id.Type())
}

// join notes a write as under way.
func (r *rolls) join(c call) (*entry, func()) {
	key := rollOf(c)
	if key == "" {
		return nil, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]*roll{}
	}
	one := r.of[key]
	if one == nil {
		one = &roll{query: azure.Query{Scope: c.id.Parent(), Type: c.id.Type()}, caller: make(chan struct{}, 1), waiting: map[*entry]bool{}, last: time.Now()}
		one.caller <- struct{}{}
		r.of[key] = one
	}
	one.underway++
	return &entry{roll: one, key: c.id.Key(), leaves: c.method == http.MethodDelete, joined: time.Now()}, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if one.underway--; one.underway == 0 {
			delete(r.of, key)
		}
	}
}

// waits notes a write as one that waits for what the list says, and reports whether it
// is to: not where it has no company.
func (r *rolls) waits(e *entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	alone := e.roll.underway < company && len(e.roll.waiting) == 0
	if alone || e.roll.mute {
		return false
	}
	e.over = make(chan struct{})
	e.roll.waiting[e] = true
	if e.joined.Before(e.roll.last) {
		e.roll.tell(e)
	}
	return true
}

// tell ends the wait of a write that the last list shows to have ended, or of any, if
// there is no list.
func (r *roll) tell(e *entry) {
	if doc := r.listed[e.key]; r.mute || e.isOver(doc) {
		e.shown = doc
		delete(r.waiting, e)
		close(e.over)
	}
}

func (r *rolls) leave(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(e.roll.waiting, e)
}

// depart waits until a deletion is worth a poll, which Azure wants no sooner than after
// a time.
func (d *Door) depart(ctx context.Context, e *entry, wait time.Duration) error {
	if err := pause(ctx, wait); err != nil || wait < rollWait || !d.rolls.waits(e) {
		return err
	}
	defer d.rolls.leave(e)
	return d.hear(ctx, e, wait/rollsInWait, time.Now().Add(waitsAtMost*wait))
}

// appear waits until the next poll of what is made, and reports whether a list has shown
// by then that it is there.
func (d *Door) appear(ctx context.Context, op *operation, wait time.Duration) (ended bool, err error) {
	due := time.Now().Add(wait)
	err = d.hear(ctx, op.entry, max(op.first, rollWait), due)
	d.rolls.leave(op.entry)
	if err != nil || op.entry.isThere() {
		return err == nil, err
	}
	return false, pause(ctx, time.Until(due))
}

// hear waits until a list shows that a write has ended, but no longer than until the
// latest. One of those who wait calls the roll for all.
func (d *Door) hear(ctx context.Context, e *entry, every time.Duration, latest time.Time) error {
	late := time.NewTimer(time.Until(latest))
	defer late.Stop()
	for time.Now().Before(latest) {
		select {
		case <-e.over:
			return nil
		case <-late.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-e.roll.caller:
		}
		err := d.callRoll(ctx, e, every, latest)
		e.roll.caller <- struct{}{}
		if err != nil {
			return err
		}
	}
	return nil
}

// isThere reports whether a list has shown that a creation went well. How one failed, the
// poll says.
func (e *entry) isThere() bool { return strings.EqualFold(provisioningState(e.shown), "Succeeded") }

// callRoll reads the list, no sooner than so long after the last time and only if that is
// before the latest, and ends the wait of those that it shows to have ended.
func (d *Door) callRoll(ctx context.Context, by *entry, every time.Duration, latest time.Time) error {
	r := by.roll
	begin, needed := d.rolls.next(by, every)
	if !needed {
		return nil
	}
	if !begin.Before(latest) {
		return pause(ctx, time.Until(latest))
	}
	if err := pause(ctx, time.Until(begin)); err != nil {
		return err
	}
	began := time.Now()
	docs, err := d.List(ctx, r.query)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	listed := make(map[string]azure.Document, len(docs))
	for _, doc := range docs {
		listed[doc.ID().Key()] = doc
	}
	d.rolls.mu.Lock()
	defer d.rolls.mu.Unlock()
	r.last, r.listed, r.mute = began, listed, err != nil
	for e := range r.waiting {
		if r.mute || e.joined.Before(began) {
			r.tell(e)
		}
	}
	return nil
}

// next is when the list may be read again, and whether a write still waits for that.
func (r *rolls) next(e *entry, every time.Duration) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return e.roll.last.Add(every), e.roll.waiting[e]
}
