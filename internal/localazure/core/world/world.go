// Package world has what the local Azure knows: documents, operations, subscriptions. It changes in transactions, and a file with a
// journal keeps it. Layer L2.
package world

import (
	"cmp"
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/fault"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/latency"
	"kaz/internal/localazure/core/operation"
	"kaz/internal/localazure/core/random"
	"kaz/internal/localazure/core/store"
)

// World is the way to the documents and operations of this Azure.
type World struct {
	Parts
	store       *store.Store
	persistence persistence
	paused      atomic.Int64 // until when no operation ends, Unix nanoseconds, because the last end was not saved
}

// Parts are what every transaction needs in addition to the documents.
type Parts struct {
	Tenancy       Tenancy
	AccessControl bool
	Kinds         kind.Table
	Groups        *kind.Kind // resource groups
	Queue         *operation.Queue
	Random        *random.Source
	Faults        *fault.Rules
	Latency       latency.Model
	Log           *slog.Logger
	MostStored    int // bytes of all documents; 0 is 1 GiB
	// Written, when not nil, receives the resources that a transaction has written, after it was kept. It is called under the store's
	// lock, so it must not wait.
	Written func([]Written)
	// Behaviours makes what behaviours see of a transaction.
	Behaviours func(t *Transaction) behaviour.World
}

// Written is a resource after a write.
type Written struct {
	ID azure.ID
	At time.Time
	By store.Author
	// Text is the stored document, nil when the resource is gone. It is shared and not to be changed. It may have fields that no client
	// sees.
	Text []byte
}

// New makes an empty world.
func New(p Parts) *World {
	p.MostStored = cmp.Or(p.MostStored, mostStored)
	p.Queue = operation.NewQueue()
	w := &World{Parts: p}
	w.store = store.New(store.Options{Kinds: p.Kinds, Random: p.Random, Log: p.Log, KeepBefore: p.Faults.Stale, Commit: w.commit})
	w.Queue.DueChanged = w.store.Watchers.Wake
	return w
}

// commit keeps what a transaction has changed, and tells of it.
func (w *World) commit(tx *store.Transaction) error {
	if err := w.record(tx); err != nil || w.Written == nil {
		return err
	}
	all := make([]Written, 0, len(tx.Touched))
	for _, id := range tx.Touched {
		fresh := Written{ID: id, At: tx.At, By: tx.By}
		if e := tx.Entry(id); e != nil && !e.Hidden {
			fresh.Text = e.Text
		}
		all = append(all, fresh)
	}
	if len(all) > 0 {
		w.Written(all)
	}
	return nil
}

// Do lets in-process callers, such as a data plane, change the world as a
// behaviour does. An error takes the changes back.
func (w *World) Do(f func(w behaviour.World) error) error {
	w.EndDue()
	return w.Write(func(t *Transaction) error {
		if err := f(t.World); err != nil {
			return err
		}
		return t.CheckSizes()
	})
}

// Look lets in-process callers read the world.
func (w *World) Look(f func(w behaviour.World)) {
	w.EndDue()
	w.Read(func(t *Transaction) { f(t.World) })
}

// Read gives f a transaction that cannot change anything.
func (w *World) Read(f func(t *Transaction)) {
	w.store.Read(func(tx *store.Transaction) { f(newTransaction(tx, &w.Parts)) })
}

// Write gives f a transaction. Its error, or panic, takes all changes back.
func (w *World) Write(f func(t *Transaction) error) error {
	return w.store.Write(func(tx *store.Transaction) error { return f(newTransaction(tx, &w.Parts)) })
}

// endPause is the time between attempts to end operations while their end cannot be saved, such as on a full disk.
const endPause = time.Second

// EndDue ends all operations that are due, each in a transaction of its own. If the end of an operation cannot be saved, it runs on,
// and so do later ones until the pause ends.
func (w *World) EndDue() {
	now := time.Now()
	if !w.Queue.Due(now) || now.UnixNano() < w.paused.Load() {
		return
	}
	for more := true; more; {
		err := w.Write(func(t *Transaction) error { // an operation keeps its own error
			if o := t.Runner.FirstDue(); o != nil {
				t.goOn(o)
				t.By.Act = "end of " + string(o.Verb)
			}
			more = t.Runner.EndDue()
			return nil
		})
		if err != nil {
			w.paused.Store(now.Add(endPause).UnixNano())
			w.Log.Error("operations of the local Azure run on because their end cannot be saved", "error", err)
			return
		}
	}
}

// nextDue is the time of the next call of EndDue, Unix nanoseconds, 0 for none.
func (w *World) nextDue() int64 {
	if due := w.Queue.NextDue(); due != 0 {
		return max(due, w.paused.Load())
	}
	return 0
}

// Changes calls f with every batch of changes from now on, in their order, until
// the context ends. Meanwhile operations end in time, requests or not.
func (w *World) Changes(ctx context.Context, f func([]store.Change)) { w.Subscribe()(ctx, f) }

// Subscribe collects changes from now on. The function that it returns passes them on as Changes does. No change is missed
// between a Look after Subscribe and the first batch. The caller must call the function, once.
func (w *World) Subscribe() func(ctx context.Context, f func([]store.Change)) {
	watcher := w.store.Watchers.Add()
	return func(ctx context.Context, f func([]store.Change)) {
		defer watcher.Close()
		for {
			w.EndDue()
			if batch := watcher.Take(); len(batch) > 0 {
				f(batch)
			} else if !watcher.Wait(ctx, w.nextDue()) {
				return
			}
		}
	}
}
