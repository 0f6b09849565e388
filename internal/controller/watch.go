package controller

import "k8s.io/client-go/tools/cache"

// Watch is what a controller does when an informer reports objects of one type. What is nil is
// not done.
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
