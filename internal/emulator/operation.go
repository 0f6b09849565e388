package emulator

import (
	"container/heap"
	"slices"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// provisioningState values that the core itself writes.
const (
	succeeded = "Succeeded"
	failed    = "Failed"
	canceled  = "Canceled"
)

// operation is a request that ends later. Nothing waits for it: whoever touches
// the store first ends what is due.
type operation struct {
	behaviour.Operation
	kind  *kind
	due   time.Time
	body  behaviour.Object
	notes behaviour.Object
	old   behaviour.Object
	fault *behaviour.Error
	seq   uint64
	index int // in the heap, -1 when it has ended
	paths []string
}

// held is the id of the document that the operation works on.
func (o *operation) held() azure.ID { return holderOf(o.kind, o.Resource) }

func holderOf(k *kind, id azure.ID) azure.ID {
	for k.Inline != "" {
		k, id = k.parent, id.Parent()
	}
	return id
}

// dueHeap orders running operations by their end.
type dueHeap []*operation

func (h dueHeap) Len() int { return len(h) }
func (h dueHeap) Less(i, j int) bool {
	if !h[i].due.Equal(h[j].due) {
		return h[i].due.Before(h[j].due)
	}
	return h[i].seq < h[j].seq
}
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *dueHeap) Push(x any) {
	o := x.(*operation)
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

// operations are all operations that can still be polled.
type operations struct {
	running dueHeap
	byKey   map[string][]*operation // running ones by the document they work on
	byPath  map[string]*operation   // lower-cased path of a poll URL
	results map[string]bool         // the paths that are Location URLs
	ended   []*operation            // oldest first
	lastSeq uint64
}

func newOperations() *operations {
	return &operations{byKey: map[string][]*operation{}, byPath: map[string]*operation{}, results: map[string]bool{}}
}

// keepEnded is how many ended operations can still be polled.
const keepEnded = 10000

func (t *transaction) start(o *operation) {
	ops := t.operations
	ops.lastSeq++
	o.seq = ops.lastSeq
	t.queue(o)
	t.register(o)
	t.undone = append(t.undone, func() {
		if o.index >= 0 {
			t.unqueue(o)
		}
		for _, path := range o.paths {
			if ops.byPath[path] == o {
				delete(ops.byPath, path)
				delete(ops.results, path)
			}
		}
	})
}

// queue makes an operation a running one.
func (t *transaction) queue(o *operation) {
	heap.Push(&t.operations.running, o)
	key := o.held().Key()
	t.operations.byKey[key] = append(t.operations.byKey[key], o)
	t.nextDue()
}

func (t *transaction) register(o *operation) {
	p := o.kind.Style.Protocol
	add := func(url func(behaviour.Operation) string, result bool) {
		if url == nil {
			return
		}
		path := pollKey(url(o.Operation))
		if t.operations.byPath[path] == o {
			return // both URLs have this path and differ in their query
		}
		o.paths = append(o.paths, path)
		t.operations.byPath[path] = o
		if result {
			t.operations.results[path] = true
		}
	}
	add(p.Status, false)
	add(p.Result, true)
}

// unqueue takes a running operation out of the indexes of running ones.
func (t *transaction) unqueue(o *operation) {
	ops := t.operations
	heap.Remove(&ops.running, o.index)
	key := o.held().Key()
	ops.byKey[key] = slices.DeleteFunc(ops.byKey[key], func(x *operation) bool { return x == o })
	if len(ops.byKey[key]) == 0 {
		delete(ops.byKey, key)
	}
	t.nextDue()
}

// nextDue publishes when the next operation ends, for checks without the lock.
func (t *transaction) nextDue() {
	at := int64(0)
	if len(t.operations.running) > 0 {
		at = t.operations.running[0].due.UnixNano()
	}
	if t.due.Swap(at) != at {
		t.wake()
	}
}

// endDue ends all operations whose time has come.
func (e *Emulator) endDue() {
	if at := e.due.Load(); at == 0 || at > time.Now().UnixNano() {
		return
	}
	for {
		more := false
		_ = e.write(func(t *transaction) error { // end reports through the operation
			running := t.operations.running
			if len(running) == 0 || running[0].due.After(t.now) {
				return nil
			}
			t.now = running[0].due
			t.end(running[0])
			more = true
			return nil
		})
		if !more {
			return
		}
	}
}

// end finishes one operation, well or not.
func (t *transaction) end(o *operation) {
	t.unqueue(o)
	o.End = t.now
	mark, events := len(t.undone), len(t.events)
	err := o.fault
	if err == nil {
		err = t.guarded(func() error { return t.settle(o) })
	}
	if err != nil {
		if !err.Keep {
			t.undoTo(mark)
			t.events = t.events[:events]
		}
		o.Error = err
		t.fail(o, failed)
	}
	t.retire(o)
}

// guarded runs a behaviour at a time when there is no request to answer.
func (t *transaction) guarded(f func() error) (refusal *behaviour.Error) {
	defer func() {
		if p := recover(); p != nil {
			t.logPanic("operation", p)
			refusal = internalError()
		}
	}()
	if err := f(); err != nil {
		return t.asError(err)
	}
	return nil
}

func (t *transaction) retire(o *operation) {
	ops := t.operations
	ops.ended = append(ops.ended, o)
	o.old, o.body, o.notes = nil, nil, nil
	if len(ops.ended) <= keepEnded {
		return
	}
	for _, path := range ops.ended[0].paths {
		if ops.byPath[path] == ops.ended[0] {
			delete(ops.byPath, path)
			delete(ops.results, path)
		}
	}
	ops.ended = ops.ended[1:]
}

// settle does what an operation does when it ends well.
func (t *transaction) settle(o *operation) error {
	if o.Verb == behaviour.Delete {
		return t.settleDelete(o)
	}
	e := t.store.entries[o.held().Key()]
	if e == nil {
		return nil // deleted meanwhile
	}
	doc := e.fresh()
	if isWrite(o.Verb) {
		if err := t.settleDocument(o, e.kind, e.id, doc); err != nil {
			return err
		}
		saved := t.save(e.kind, e.id, doc, saving{state: succeeded})
		o.Output = t.output(o, saved)
		return nil
	}
	return t.settleAction(o, e, doc)
}

func (t *transaction) settleDelete(o *operation) error {
	if o.kind.Inline == "" {
		t.Delete(o.Resource)
		return nil
	}
	e := t.store.entries[o.held().Key()]
	if e == nil {
		return nil
	}
	doc := e.fresh()
	if parent := elementHolder(o.kind, o.Resource, e.kind, doc); parent != nil {
		removeNamed(parent, o.kind.Inline, o.Resource.Name())
	}
	t.save(e.kind, e.id, doc, saving{state: succeeded})
	return nil
}

// elementHolder is the object inside of doc that has the inline child's array.
func elementHolder(k *kind, id azure.ID, stored *kind, doc behaviour.Object) behaviour.Object {
	if k.parent == stored {
		return doc
	}
	outer := elementHolder(k.parent, id.Parent(), stored, doc)
	if outer == nil {
		return nil
	}
	return behaviour.Named(outer, k.parent.Inline, id.Parent().Name())
}

// settleDocument runs Settle of a kind and of the children inside its document.
func (t *transaction) settleDocument(o *operation, k *kind, id azure.ID, doc behaviour.Object) error {
	return t.eachInside(k, id, doc, nil, func(c *behaviour.Call) error {
		if c.Type.Settle == nil {
			return nil
		}
		c.Verb, c.Body, c.Notes = o.Verb, o.body, o.notes
		if c.Type == k.Type {
			c.Old = o.old
		}
		return c.Type.Settle(c)
	})
}

// eachInside calls f for a document and then for each child inside of it.
func (t *transaction) eachInside(k *kind, id azure.ID, doc, parent behaviour.Object, f func(c *behaviour.Call) error) error {
	if err := f(&behaviour.Call{World: t, ID: id, Type: k.Type, Doc: doc, Parent: parent}); err != nil {
		return err
	}
	for _, child := range k.inline {
		for _, element := range behaviour.Objects(doc, child.Inline) {
			childID := id.Child(child.segment(), behaviour.Text(element, "name"))
			if err := t.eachInside(child, childID, element, doc, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *transaction) settleAction(o *operation, e *entry, doc behaviour.Object) error {
	action, _ := findAction(o.kind, string(o.Verb))
	if action.Settle != nil {
		c := &behaviour.Call{World: t, Verb: o.Verb, Action: string(o.Verb), ID: e.id, Type: o.kind.Type,
			Old: t.store.doc(e), Doc: doc, Body: o.body, Notes: o.notes}
		output, err := action.Settle(c)
		if err != nil {
			return err
		}
		o.Output = plain(output)
		if t.store.entries[e.id.Key()] != e {
			if action.Busy != "-" {
				t.setState(e.id, succeeded)
			}
			return nil // it wrote itself through the world
		}
	}
	state := succeeded
	if action.Busy == "-" {
		state = behaviour.Text(t.store.doc(e), "properties.provisioningState")
	}
	t.save(e.kind, e.id, doc, saving{state: state, hidden: e.hidden})
	return nil
}

func (t *transaction) setState(id azure.ID, state string) {
	if e := t.store.entries[id.Key()]; e != nil {
		t.save(e.kind, e.id, e.fresh(), saving{state: state, hidden: e.hidden})
	}
}

// fail leaves the resource as a failed operation leaves it: what was asked for is
// stored, what was hidden never came to be.
func (t *transaction) fail(o *operation, state string) {
	e := t.store.entries[o.held().Key()]
	switch {
	case e == nil:
	case e.hidden:
		t.Delete(e.id)
	default:
		t.setState(e.id, state)
		t.failed(o, state)
	}
}

// failed lets the type clean up behind an operation that ended badly.
func (t *transaction) failed(o *operation, state string) {
	if o.kind.Failed == nil || o.Verb == behaviour.Delete {
		return
	}
	e := t.store.entries[o.held().Key()]
	mark, events := len(t.undone), len(t.events)
	c := &behaviour.Call{World: t, Verb: o.Verb, ID: e.id, Type: o.kind.Type, Old: t.store.doc(e), Doc: e.fresh(), Body: o.body, Notes: o.notes}
	if err := t.guarded(func() error { o.kind.Failed(c); return nil }); err != nil {
		t.undoTo(mark)
		t.events = t.events[:events]
		return
	}
	t.save(e.kind, e.id, c.Doc, saving{state: state, hidden: e.hidden})
}

// supersede cancels a running operation because of a newer one.
func (t *transaction) supersede(o, by *operation) {
	t.cancel(o, behaviour.Refusal(200, "Canceled", "Operation was canceled.").
		With("CanceledAndSupersededDueToAnotherOperation", "Operation %s was canceled and superseded by operation %s.", o.ID, by.ID))
}

// Cancel implements [behaviour.World].
func (t *transaction) Cancel(id azure.ID) bool {
	t.mustWrite()
	found := false
	for _, o := range slices.Clone(t.operations.byKey[id.Key()]) {
		if o.Verb == behaviour.Delete {
			continue
		}
		found = true
		t.unqueue(o)
		o.End, o.Canceled = t.now, true
		o.Error = behaviour.Refusal(200, "Canceled", "Operation was canceled.")
		t.retire(o)
	}
	if found {
		t.setState(id, canceled)
	}
	return found
}

// dropOperations cancels what runs on a resource that is gone; deletions have
// reached their end.
func (t *transaction) dropOperations(id azure.ID) {
	for _, o := range slices.Clone(t.operations.byKey[id.Key()]) {
		if o.Verb != behaviour.Delete {
			t.cancel(o, behaviour.Refusal(200, "OperationPreempted", "The operation was preempted: resource %s was deleted.", o.Resource))
			continue
		}
		due := o.due
		t.move(o, t.now)
		t.undone = append(t.undone, func() { t.move(o, due) })
	}
}

// move changes when a running operation ends.
func (t *transaction) move(o *operation, due time.Time) {
	if o.index < 0 {
		return
	}
	o.due = due
	heap.Fix(&t.operations.running, o.index)
	t.nextDue()
}

func (t *transaction) cancel(o *operation, why *behaviour.Error) {
	before := *o
	t.unqueue(o)
	o.End, o.Canceled, o.Error = t.now, true, why
	t.retire(o)
	t.undone = append(t.undone, func() {
		t.operations.ended = slices.DeleteFunc(t.operations.ended, func(x *operation) bool { return x == o })
		*o = before
		t.queue(o)
	})
}

func isWrite(v behaviour.Verb) bool {
	return v == behaviour.Create || v == behaviour.Update || v == behaviour.Patch
}
