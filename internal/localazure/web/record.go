package web

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
)

// The bounds of what is kept.
const (
	mostPerResource  = 30       // versions of a resource
	mostVersions     = 20_000   // of all resources
	mostVersionBytes = 32 << 20 // of the documents of all versions
	mostRequests     = 2000
	mostRequestBytes = 2 << 20
)

// Recorder keeps the last writes and the last requests of a local Azure. It is safe for use by several goroutines.
type Recorder struct {
	mu       sync.Mutex
	versions map[string][]*version // by the keys of ids, oldest first
	written  fifo[*version]
	requests fifo[[]byte] // lines of the request log
	watchers map[chan struct{}]bool
}

// version is a resource after a write.
type version struct {
	core.Written
	seen    time.Time // when it was recorded; the time of the end of an operation may be earlier
	verb    string    // created, changed, deleted
	dropped bool      // the resource has too many later ones
}

// fifo is a bounded list of which the oldest elements leave first.
type fifo[T any] struct {
	all  []T
	size int // in bytes
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder {
	return &Recorder{versions: map[string][]*version{}, watchers: map[chan struct{}]bool{}}
}

// Written records what a transaction has written. It never waits for a viewer.
func (r *Recorder) Written(all []core.Written) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	changed := false
	for _, w := range all {
		changed = r.add(&version{Written: w, seen: now}) || changed
	}
	if changed {
		r.wake()
	}
}

// add records a version if it differs from the last one of its resource.
func (r *Recorder) add(v *version) bool {
	key := v.ID.Key()
	before := r.versions[key]
	var last []byte // nil if the resource was not there
	if n := len(before); n > 0 {
		last = before[n-1].Text
	}
	if (v.Text == nil) == (last == nil) && bytes.Equal(v.Text, last) {
		return false
	}
	v.verb = verbOf(before, v)
	if len(before) >= mostPerResource {
		before[0].dropped = true
		r.written.size -= len(before[0].Text)
		before[0].Text = nil
		before = slices.Delete(before, 0, 1)
	}
	r.versions[key] = append(before, v)
	r.written.all = append(r.written.all, v)
	r.written.size += len(v.Text)
	for len(r.written.all) > mostVersions || r.written.size > mostVersionBytes && len(r.written.all) > 1 {
		r.forgetOldest()
	}
	return true
}

func (r *Recorder) forgetOldest() {
	v := r.written.all[0]
	r.written.all[0] = nil
	r.written.all = r.written.all[1:]
	if v.dropped {
		return
	}
	r.written.size -= len(v.Text)
	key := v.ID.Key()
	if rest := slices.Delete(r.versions[key], 0, 1); len(rest) > 0 {
		r.versions[key] = rest
	} else {
		delete(r.versions, key)
	}
}

// Write implements io.Writer for the request log: a call is a line.
func (r *Recorder) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := &r.requests
	q.all = append(q.all, bytes.Clone(line))
	q.size += len(line)
	for len(q.all) > mostRequests || q.size > mostRequestBytes && len(q.all) > 1 {
		q.size -= len(q.all[0])
		q.all[0] = nil
		q.all = q.all[1:]
	}
	r.wake()
	return len(line), nil
}

// tell tells viewers that there is something new.
func (r *Recorder) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake()
}

// wake tells viewers that there is something new. The caller holds the mutex.
func (r *Recorder) wake() {
	for watcher := range r.watchers {
		select {
		case watcher <- struct{}{}:
		default:
		}
	}
}

// watch returns a channel that has an element when there may be something new, and the end of that.
func (r *Recorder) watch() (news <-chan struct{}, end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	watcher := make(chan struct{}, 1)
	r.watchers[watcher] = true
	return watcher, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, watcher)
	}
}

// history returns the versions of a resource, the newest first.
func (r *Recorder) history(id azure.ID) []version {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []version
	for _, v := range slices.Backward(r.versions[id.Key()]) {
		all = append(all, *v)
	}
	return all
}

// change is the last write of a resource.
type change struct {
	ID   azure.ID
	Verb string // created, changed, deleted
	At   time.Time
	By   string
}

// latest returns the last writes since a time, the newest first, one for each resource and at most a number of them.
func (r *Recorder) latest(since time.Time, most int, by func(core.Written) string) []change {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []change
	seen := map[string]bool{}
	for _, v := range slices.Backward(r.written.all) {
		if v.seen.Before(since) || len(found) == most {
			break
		}
		key := v.ID.Key()
		if v.dropped || seen[key] {
			continue
		}
		seen[key] = true
		found = append(found, change{ID: v.ID, Verb: v.verb, At: v.At, By: by(v.Written)})
	}
	return found
}

// verbOf says what a version does after earlier ones.
func verbOf(before []*version, v *version) string {
	switch {
	case v.Text == nil:
		return "deleted"
	case len(before) == 0 || before[len(before)-1].Text == nil:
		return "created"
	}
	return "changed"
}

// lines returns the last requests, the newest first.
func (r *Recorder) lines() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.requests.all)
	slices.Reverse(all)
	return all
}
