// Package controller is the kit for controllers of Kubernetes objects that share documents in Azure. Services share load
// balancers, gateways share their routing, and DNS names share their zones. Layer L3: it is generic, and knows no kind of
// object. Batches come from [reconcile.Coalescer].
package controller

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Reasons say why a key is queued. The reasons of several additions are combined.
type Reasons[R any] interface{ And(other R) R }

// Queue is a work queue that keeps the reasons for which a key was added until they are taken. It hands out a key to
// one worker at a time. The reasons say why, never what: the worker reads the object as it is then.
type Queue[K comparable, R Reasons[R]] struct {
	workqueue.TypedDelayingInterface[K]

	mu      sync.Mutex // guards what follows
	reasons map[K]R
}

// NewQueue is an empty queue; the name is that of its metrics.
func NewQueue[K comparable, R Reasons[R]](name string) *Queue[K, R] {
	return &Queue[K, R]{
		TypedDelayingInterface: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{Name: name}),
		reasons:                map[K]R{},
	}
}

// Mark adds a key for reasons.
func (q *Queue[K, R]) Mark(k K, r R) {
	q.Note(k, r)
	q.Add(k)
}

// MarkAfter adds a key for reasons when it is time.
func (q *Queue[K, R]) MarkAfter(k K, r R, wait time.Duration) {
	q.Note(k, r)
	q.AddAfter(k, wait)
}

// Note adds reasons to a key, without queueing the key.
func (q *Queue[K, R]) Note(k K, r R) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reasons[k] = q.reasons[k].And(r)
}

// Take takes the reasons of a key.
func (q *Queue[K, R]) Take(k K) R {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := q.reasons[k]
	delete(q.reasons, k)
	return r
}

// Watch is what a controller does when an informer reports objects of one type. A nil function is not called.
type Watch[T any] struct {
	Added   func(o T, atStart bool) // atStart for what was there before the informer
	Changed func(old, now T)
	Deleted func(o T) // as it was last known
}

// Handler is the event handler of an informer.
func (w Watch[T]) Handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, atStart bool) {
			if o, ok := object.(T); ok && w.Added != nil {
				w.Added(o, atStart)
			}
		},
		UpdateFunc: func(was, is any) {
			old, ok1 := was.(T)
			now, ok2 := is.(T)
			if ok1 && ok2 && w.Changed != nil {
				w.Changed(old, now)
			}
		},
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			if o, ok := object.(T); ok && w.Deleted != nil {
				w.Deleted(o)
			}
		},
	}
}
