// Package operation has the long-running operations of the local Azure. It keeps running operations in the order in which
// they end, and ended operations that clients can still poll. It also has what happens when an operation ends. Layer L2:
// azure, behaviour, document, kind, store.
package operation

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/template"
)

// Operation is a request that ends later. Nothing waits for it: the next call that
// touches the store ends what is due.
type Operation struct {
	behaviour.Operation
	Kind    *kind.Kind
	Version string           // API version of the request, in which its output is shown
	Caller  behaviour.Caller // that began it
	Due     time.Time        // when it ends
	Body    behaviour.Object // of the request
	Notes   behaviour.Object // of the behaviour, from its start to its end
	Old     behaviour.Object // the document before it
	Fault   *behaviour.Error // with which it is to fail, nil for none
	Work    *template.Work   // of its request, nil for none. A saved state does not have it.

	seq   uint64
	index int      // in the heap, -1 when it does not run
	paths []string // at which it can be polled
}

// New returns an operation that does not run yet.
func New(o behaviour.Operation, k *kind.Kind, due time.Time) *Operation {
	return &Operation{Operation: o, Kind: k, Due: due, index: -1}
}

// Held is the id of the document that the operation works on.
func (o *Operation) Held() azure.ID { return o.Kind.HolderOf(o.Resource) }

// dueHeap orders running operations by their end.
type dueHeap []*Operation

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	if !h[i].Due.Equal(h[j].Due) {
		return h[i].Due.Before(h[j].Due)
	}
	return h[i].seq < h[j].seq
}
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *dueHeap) Push(x any) {
	o := x.(*Operation)
	o.index = len(*h)
	*h = append(*h, o)
}
func (h *dueHeap) Pop() any {
	old := *h
	o := old[len(old)-1]
	*h = old[:len(old)-1]
	o.index = -1
	return o
}

// Queue has all operations that can still be polled. Its methods are called in a
// transaction of the store, NextDue at any time.
type Queue struct {
	// DueChanged, when not nil, is called when NextDue has another value.
	DueChanged func()

	running dueHeap
	byKey   map[string][]*Operation // running ones by the document they work on
	byPath  map[string]*Operation   // lower-cased path of a poll URL
	results map[string]bool         // the paths that are Location URLs
	ended   []*Operation            // oldest first
	output  int                     // size of the outputs of ended, in bytes
	touched map[*Operation]bool     // changed since TakeTouched
	lastSeq uint64
	due     atomic.Int64
}

// NewQueue returns an empty queue.
func NewQueue() *Queue {
	return &Queue{byKey: map[string][]*Operation{}, byPath: map[string]*Operation{}, results: map[string]bool{},
		touched: map[*Operation]bool{}}
}

// TakeTouched returns the operations that may have changed since the last call, in the order in which they began.
func (q *Queue) TakeTouched() []*Operation {
	all := slices.SortedFunc(maps.Keys(q.touched), func(a, b *Operation) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), strings.Compare(a.ID, b.ID))
	})
	clear(q.touched)
	return all
}

// Has reports whether an operation runs, or has ended and can still be polled.
func (q *Queue) Has(o *Operation) bool { return o.index >= 0 || slices.Contains(q.ended, o) }

// Latest are the last of some ended operations, as many as are kept.
func Latest[O any](ended []O) []O { return ended[max(0, len(ended)-keepEnded):] }

// keepEnded is how many ended operations can still be polled, and keepOutput is how many bytes of outputs they have together.
const (
	keepEnded  = 10000
	keepOutput = 32 << 20
)

// NextDue is when the next operation ends, in Unix nanoseconds, 0 for none. It needs no
// transaction.
func (q *Queue) NextDue() int64 { return q.due.Load() }

// First returns the running operation that ends next, nil for none.
func (q *Queue) First() *Operation {
	if len(q.running) == 0 {
		return nil
	}
	return q.running[0]
}

// On returns the operations that run on the document of an id.
func (q *Queue) On(id azure.ID) []*Operation { return slices.Clone(q.byKey[id.Key()]) }

// Polled returns the operation of a poll URL, nil for none, and whether the URL is that
// of its result.
func (q *Queue) Polled(url string) (o *Operation, result bool) {
	path := pollKey(url)
	return q.byPath[path], q.results[path]
}

// All returns the ended operations, oldest first, then the running operations in the order in
// which they began.
func (q *Queue) All() []*Operation {
	return slices.Concat(q.ended, q.Running())
}

// Running returns the operations that run, in the order in which they began.
func (q *Queue) Running() []*Operation {
	running := slices.Clone(q.running)
	slices.SortFunc(running, func(a, b *Operation) int { return cmp.Compare(a.seq, b.seq) })
	return running
}

// start queues and registers an operation. It returns how to undo that.
func (q *Queue) start(o *Operation) (undo func()) {
	q.lastSeq++
	o.seq = q.lastSeq
	q.queue(o)
	q.register(o)
	return func() { q.drop(o) }
}

// queue adds an operation to the running operations.
func (q *Queue) queue(o *Operation) {
	q.touched[o] = true
	heap.Push(&q.running, o)
	key := o.Held().Key()
	q.byKey[key] = append(q.byKey[key], o)
	q.nextDue()
}

// unqueue removes a running operation from the indexes of running operations.
func (q *Queue) unqueue(o *Operation) {
	heap.Remove(&q.running, o.index)
	key := o.Held().Key()
	q.byKey[key] = slices.DeleteFunc(q.byKey[key], func(x *Operation) bool { return x == o })
	if len(q.byKey[key]) == 0 {
		delete(q.byKey, key)
	}
	q.nextDue()
}

// move changes when a running operation ends.
func (q *Queue) move(o *Operation, due time.Time) {
	if o.index < 0 {
		return
	}
	q.touched[o] = true
	o.Due = due
	heap.Fix(&q.running, o.index)
	q.nextDue()
}

func (q *Queue) nextDue() {
	at := int64(0)
	if first := q.First(); first != nil {
		at = first.Due.UnixNano()
	}
	if q.due.Swap(at) != at && q.DueChanged != nil {
		q.DueChanged()
	}
}

// register lets an operation be polled.
func (q *Queue) register(o *Operation) {
	p := o.Kind.Style.Protocol
	add := func(url func(behaviour.Operation) string, result bool) {
		if url == nil {
			return
		}
		path := pollKey(url(o.Operation))
		if q.byPath[path] == o {
			return // both URLs have this path and differ in their query
		}
		o.paths = append(o.paths, path)
		q.byPath[path] = o
		if result {
			q.results[path] = true
		}
	}
	add(p.Status, false)
	add(p.Result, true)
}

// forget ends polling of an operation.
func (q *Queue) forget(o *Operation) {
	for _, path := range o.paths {
		if q.byPath[path] == o {
			delete(q.byPath, path)
			delete(q.results, path)
		}
	}
}

// drop takes an operation out, whether it has ended or runs.
func (q *Queue) drop(o *Operation) {
	q.touched[o] = true
	if o.index >= 0 {
		q.unqueue(o)
	}
	if i := slices.Index(q.ended, o); i >= 0 {
		q.ended = slices.Delete(q.ended, i, i+1)
		q.output -= o.outputSize()
	}
	q.forget(o)
}

// retire keeps an operation that has ended as long as it can be polled.
func (q *Queue) retire(o *Operation) {
	q.touched[o] = true
	o.Old, o.Body, o.Notes, o.Caller, o.Work = nil, nil, nil, behaviour.Caller{}, nil
	q.keep(o)
}

// keep adds an ended operation, and forgets the oldest ones beyond the bounds.
func (q *Queue) keep(o *Operation) {
	q.ended = append(q.ended, o)
	q.output += o.outputSize()
	for len(q.ended) > 1 && (len(q.ended) > keepEnded || q.output > keepOutput) {
		q.output -= q.ended[0].outputSize()
		q.forget(q.ended[0])
		q.ended = q.ended[1:]
	}
}

// outputSize is the size of what the polls of an ended operation return.
func (o *Operation) outputSize() int {
	text, _ := o.Output.(json.RawMessage)
	return len(text)
}

// Restore takes an operation of a saved state into the queue.
func (q *Queue) Restore(o *Operation) {
	if o.End.IsZero() {
		q.start(o)
		return
	}
	q.register(o)
	q.keep(o)
}

// pollKey is the path of a poll URL as the index has it.
func pollKey(url string) string {
	path, _, _ := strings.Cut(url, "?")
	return strings.ToLower(strings.TrimSuffix(path, "/"))
}
