package operation

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/store"
)

// provisioningState values of operations that did not end well.
const (
	failed   = "Failed"
	canceled = "Canceled"
)

// Runner starts and ends operations in a transaction.
type Runner struct {
	Queue *Queue
	Docs  *store.Transaction
	World behaviour.World
	// Guard runs a behaviour when there is no request to answer, and returns an error or
	// a panic as a refusal.
	Guard func(f func() error) *behaviour.Error
}

// Start lets an operation run until it is due.
func (r *Runner) Start(o *Operation) { r.Docs.OnUndo(r.Queue.start(o)) }

// Finish ends an operation within its request. An error fails the request.
func (r *Runner) Finish(o *Operation) error {
	r.Queue.register(o)
	r.Docs.OnUndo(func() { r.Queue.drop(o) })
	o.End = r.Docs.At
	if o.Fault != nil {
		return o.Fault
	}
	if err := r.settle(o); err != nil {
		return err
	}
	r.Queue.retire(o)
	return nil
}

// FinishRunning ends the operations that run on a resource. An error fails the request.
func (r *Runner) FinishRunning(k *kind.Kind, id azure.ID) error {
	for _, o := range r.Queue.On(k.HolderOf(id)) {
		if !o.Resource.Equal(id) {
			continue
		}
		r.undoEnd(o)
		r.Queue.unqueue(o)
		o.End = r.Docs.At
		err := r.settle(o)
		if behaviour.GoesOn(err) {
			r.postpone(o)
			return err
		}
		if kept, ok := errors.AsType[*behaviour.Error](err); ok && kept.Keep {
			o.Error = kept
			r.fail(o)
		} else if err != nil {
			return err
		}
		r.Queue.retire(o)
		if err != nil {
			return err
		}
	}
	return nil
}

// Reject makes an operation that has failed already, for providers that check
// preconditions after they have accepted the request.
func (r *Runner) Reject(o *Operation, fault *behaviour.Error) {
	r.Queue.register(o)
	o.End, o.Error = r.Docs.At, fault
	r.Queue.retire(o)
}

// End ends a running operation, well or not.
func (r *Runner) End(o *Operation) {
	r.undoEnd(o)
	r.Queue.unqueue(o)
	o.End = r.Docs.At
	mark := r.Docs.Mark()
	err := o.Fault
	if err == nil {
		err = r.Guard(func() error { return r.settle(o) })
	}
	if err != nil && err.Later {
		r.postpone(o)
		return
	}
	if err != nil {
		if !err.Keep {
			r.Docs.UndoTo(mark)
		}
		o.Error = err
		r.fail(o)
	}
	r.Queue.retire(o)
}

// again is the time until an operation that goes on is asked for its end again.
const again = 500 * time.Millisecond

// postpone lets an operation that was to end run on.
func (r *Runner) postpone(o *Operation) {
	o.End = time.Time{}
	o.Due = time.Now().Add(again)
	r.Queue.queue(o)
}

// fail leaves the resource as a failed operation leaves it: what was asked for is
// stored, what was hidden never came to be. The type may clean up behind it.
func (r *Runner) fail(o *Operation) {
	e := r.Docs.Entry(o.Held())
	switch {
	case e == nil:
		return
	case e.Hidden:
		r.Docs.Delete(e.ID)
		return
	}
	r.Docs.SetState(e.ID, failed)
	if o.Kind.Failed == nil || o.Verb == behaviour.Delete {
		return
	}
	e = r.Docs.Entry(o.Held())
	mark := r.Docs.Mark()
	c := &behaviour.Call{World: r.World, Verb: o.Verb, ID: e.ID, Type: o.Kind.Type, Old: r.Docs.Doc(e), Doc: e.Fresh(), Body: o.Body,
		Notes: o.Notes, Caller: o.Caller}
	if err := r.Guard(func() error { o.Kind.Failed(c); return nil }); err != nil {
		r.Docs.UndoTo(mark)
		return
	}
	r.Docs.Save(e.Kind, e.ID, c.Doc, store.Saving{State: failed, Hidden: e.Hidden})
}

// Outcome is the error with which the last operation on a resource ended, the error of [behaviour.Later] while an operation runs, or nil.
func (r *Runner) Outcome(id azure.ID) error {
	for _, o := range r.Queue.On(id) {
		if o.Resource.Equal(id) {
			return behaviour.Later()
		}
	}
	for _, o := range slices.Backward(r.Queue.ended) {
		if !o.Resource.Equal(id) {
			continue
		}
		if o.Error != nil {
			return o.Error
		}
		return nil
	}
	return nil
}

// Cancel implements [behaviour.World]: the running operations end as canceled.
func (r *Runner) Cancel(id azure.ID) bool {
	r.Docs.MustWrite()
	found := false
	for _, o := range r.Queue.On(id) {
		if o.Verb == behaviour.Delete {
			continue
		}
		found = true
		r.Queue.unqueue(o)
		o.End, o.Canceled = r.Docs.At, true
		o.Error = behaviour.Refusal(200, "Canceled", "Operation was canceled.")
		r.Queue.retire(o)
	}
	if found {
		r.Docs.SetState(id, canceled)
	}
	return found
}

// Drop cancels the operations on a resource that is gone. Deletions have reached their end.
func (r *Runner) Drop(id azure.ID) {
	for _, o := range r.Queue.On(id) {
		if o.Verb != behaviour.Delete {
			r.cancel(o, behaviour.Refusal(200, "OperationPreempted", "The operation was preempted: resource %s was deleted.", o.Resource))
			continue
		}
		due := o.Due
		r.Queue.move(o, r.Docs.At)
		r.Docs.OnUndo(func() { r.Queue.move(o, due) })
	}
}

// Supersede cancels a running operation because of a newer one.
func (r *Runner) Supersede(o, by *Operation) {
	r.cancel(o, behaviour.Refusal(200, "Canceled", "Operation was canceled.").
		With("CanceledAndSupersededDueToAnotherOperation", "Operation %s was canceled and superseded by operation %s.", o.ID, by.ID))
}

func (r *Runner) cancel(o *Operation, why *behaviour.Error) {
	r.undoEnd(o)
	r.Queue.unqueue(o)
	o.End, o.Canceled, o.Error = r.Docs.At, true, why
	r.Queue.retire(o)
}

// undoEnd lets the running operation run again if the transaction takes its end back.
func (r *Runner) undoEnd(o *Operation) {
	before := *o
	r.Docs.OnUndo(func() {
		r.Queue.drop(o)
		*o = before
		o.paths = nil
		r.Queue.queue(o)
		r.Queue.register(o)
	})
}

// FirstDue is the operation that is due first, nil for none.
func (r *Runner) FirstDue() *Operation {
	if o := r.Queue.First(); o != nil && !o.Due.After(r.Docs.At) {
		return o
	}
	return nil
}

// EndDue ends the operation that was due first, in a transaction at that time. It
// reports whether there was such an operation.
func (r *Runner) EndDue() bool {
	o := r.FirstDue()
	if o == nil {
		return false
	}
	r.Docs.At = o.Due
	r.End(o)
	return true
}

// Due reports whether an operation is to be ended now. It needs no transaction.
func (q *Queue) Due(now time.Time) bool {
	at := q.due.Load()
	return at != 0 && at <= now.UnixNano()
}

// plain returns a value as JSON text, which takes less room than its tree.
func plain(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic("a behaviour's output is not JSON: " + err.Error())
	}
	return json.RawMessage(text)
}

// output is the resource as the last poll of its operation shows it, in the API version of the request that began it.
func (r *Runner) output(o *Operation, saved *store.Entry) any {
	p := o.Kind.Style.Protocol
	if p.Poll == nil || p.NoOutput || o.Kind.Inline != "" {
		return nil
	}
	text := json.RawMessage(saved.Text)
	if o.Kind.Shows() {
		c := behaviour.Call{World: r.World, Verb: behaviour.Get, ID: saved.ID, Type: o.Kind.Type,
			Query: url.Values{"api-version": {o.Version}}}
		text = plain(document.View(c, o.Kind, r.Docs.Doc(saved)))
	}
	return json.RawMessage(o.Kind.Model.Answer(o.Kind.Name, o.Version).Resource(text))
}
