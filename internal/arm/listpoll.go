package arm

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/pause"
)

// Operations are polled as often as Azure asks: most deletions every ten seconds, the creation of public IPs every
// two. If many resources of one collection are created or deleted at the same time, one list shows the state of them
// all. So the client reads the list between two polls:
//
// When the poll of a deletion is due, the deletion waits until the list no longer shows the resource. Then it is
// polled once, soon after the resource is gone. The poll, not the list, says how the deletion ended.
//
// A creation is polled when its poll is due, unless the list shows before then that it has succeeded.

const (
	// enough is how many writes of a collection make a list worth its cost.
	enough = 8
	// waitsAtMost is for how many waits between polls a deletion may stay in the list before it is polled
	// nevertheless.
	waitsAtMost = 3
	// listsInWait is how many lists are read in the time between two polls of deletions.
	listsInWait = 4
	// listWait is the shortest wait between polls in which lists are read, and the shortest time between two lists of
	// creations.
	listWait = time.Second
)

// listPolls are the collections with creations or deletions under way, by key.
type listPolls struct {
	mu sync.Mutex // guards what follows and each listPoll; never held while waiting
	of map[string]*listPoll
}

// listPoll is the creations, or the deletions, of one collection that are under way.
type listPoll struct {
	query    azure.Query
	caller   chan struct{} // has one token, held by the caller that reads the list
	underway int
	waiting  map[*entry]bool // for what the list says
	unlisted bool            // the list cannot be read
	last     time.Time       // its last reading began, or the first write was accepted
	listed   map[string]azure.Document
}

// entry is one creation or deletion.
type entry struct {
	listPoll *listPoll
	key      string
	leaves   bool
	joined   time.Time
	over     chan struct{}  // closed when the list shows that it has ended
	shown    azure.Document // as the list shows it then
}

// isOver reports whether a list shows that the write has ended. doc is the resource in the list, nil if it is not
// there.
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

// listPollOf is the key of the listPoll for a write, "" for none. Compute is left out, because it counts lists
// dearly. Updates are left out, because a list does not tell the new document from the one before.
func listPollOf(c call) string {
	creates := c.method == http.MethodPut && c.header.Get("If-None-Match") != ""
	if c.method != http.MethodDelete && !creates || c.subject.CountsEach {
		return ""
	}
	return c.method + " " + c.id.Parent().Key() + " " + strings.ToLower(c.id.Type())
}

// join notes a write as under way.
func (r *listPolls) join(c call) (*entry, func()) {
	key := listPollOf(c)
	if key == "" {
		return nil, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]*listPoll{}
	}
	one := r.of[key]
	if one == nil {
		one = &listPoll{query: azure.Query{Scope: c.id.Parent(), Type: c.id.Type()}, caller: make(chan struct{}, 1),
			waiting: map[*entry]bool{}, last: time.Now()}
		one.caller <- struct{}{}
		r.of[key] = one
	}
	one.underway++
	return &entry{listPoll: one, key: c.id.Key(), leaves: c.method == http.MethodDelete, joined: time.Now()}, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if one.underway--; one.underway == 0 {
			delete(r.of, key)
		}
	}
}

// waits notes that a write waits for the list, and reports whether it does. It does not if too few writes are under
// way, or if the list cannot be read.
func (r *listPolls) waits(e *entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	alone := e.listPoll.underway < enough && len(e.listPoll.waiting) == 0
	if alone || e.listPoll.unlisted {
		return false
	}
	e.over = make(chan struct{})
	e.listPoll.waiting[e] = true
	if e.joined.Before(e.listPoll.last) {
		e.listPoll.tell(e)
	}
	return true
}

// tell ends the wait of a write if the last list shows that it has ended, or if the list cannot be read.
func (r *listPoll) tell(e *entry) {
	if doc := r.listed[e.key]; r.unlisted || e.isOver(doc) {
		e.shown = doc
		delete(r.waiting, e)
		close(e.over)
	}
}

func (r *listPolls) leave(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(e.listPoll.waiting, e)
}

// awaitDeletion waits until a poll of a deletion is worth its cost. wait is the time that Azure wants between polls.
func (d *Client) awaitDeletion(ctx context.Context, e *entry, wait time.Duration) error {
	if err := pause.For(ctx, wait); err != nil || wait < listWait || !d.listPolls.waits(e) {
		return err
	}
	defer d.listPolls.leave(e)
	return d.awaitList(ctx, e, wait/listsInWait, time.Now().Add(waitsAtMost*wait))
}

// awaitCreation waits until the next poll of a creation is due. It reports whether a list has shown before then that
// the creation succeeded.
func (d *Client) awaitCreation(ctx context.Context, op *operation, wait time.Duration) (ended bool, err error) {
	due := time.Now().Add(wait)
	err = d.awaitList(ctx, op.entry, max(op.first, listWait), due)
	d.listPolls.leave(op.entry)
	if err != nil || op.entry.isThere() {
		return err == nil, err
	}
	return false, pause.For(ctx, time.Until(due))
}

// awaitList waits until a list shows that a write has ended, or until latest. One of the waiting callers reads the
// list for all.
func (d *Client) awaitList(ctx context.Context, e *entry, every time.Duration, latest time.Time) error {
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
		case <-e.listPoll.caller:
		}
		err := d.readList(ctx, e, every, latest)
		e.listPoll.caller <- struct{}{}
		if err != nil {
			return err
		}
	}
	return nil
}

// isThere reports whether a list has shown that a creation succeeded. If it failed, the poll says how.
func (e *entry) isThere() bool { return strings.EqualFold(provisioningState(e.shown), "Succeeded") }

// readList reads the list and ends the wait of the writes that have ended according to it. It first waits until the
// time every has passed since the last list. If that is not before latest, it waits until latest and reads nothing.
func (d *Client) readList(ctx context.Context, by *entry, every time.Duration, latest time.Time) error {
	r := by.listPoll
	begin, needed := d.listPolls.next(by, every)
	if !needed {
		return nil
	}
	if !begin.Before(latest) {
		return pause.For(ctx, time.Until(latest))
	}
	if err := pause.For(ctx, time.Until(begin)); err != nil {
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
	d.listPolls.mu.Lock()
	defer d.listPolls.mu.Unlock()
	r.last, r.listed, r.unlisted = began, listed, err != nil
	for e := range r.waiting {
		if r.unlisted || e.joined.Before(began) {
			r.tell(e)
		}
	}
	return nil
}

// next returns when the list may be read again, and whether a write still waits for it.
func (r *listPolls) next(e *entry, every time.Duration) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return e.listPoll.last.Add(every), e.listPoll.waiting[e]
}
