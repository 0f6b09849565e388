// Package readiness watches which Services of a cluster have a ready endpoint, so that a cluster without one leaves the names that it
// shares with others.
//
// Layer L3.
package readiness

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Watcher watches the EndpointSlices of a cluster. It is safe for concurrent use.
type Watcher struct {
	factory informers.SharedInformerFactory
	slices  cache.SharedIndexInformer
	lister  listers.EndpointSliceLister
	changed chan struct{}
	queue   workqueue.TypedRateLimitingInterface[service]

	mu     sync.Mutex // never held while waiting
	judges map[service]*judge
	last   map[string]bool // the last answer
	after  time.Duration
}

// service names a Service.
type service struct{ namespace, name string }

// resource is how ExternalDNS names the object of a record.
func (s service) resource() string { return "service/" + s.namespace + "/" + s.name }

// New returns a watcher. A Service is not ready if it had no ready endpoint for the time after, and ready again if it had one for half of
// that time.
func New(client kubernetes.Interface, after time.Duration) (*Watcher, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slim))
	slices := factory.Discovery().V1().EndpointSlices()
	w := &Watcher{
		factory: factory, slices: slices.Informer(), lister: slices.Lister(), changed: make(chan struct{}, 1),
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[service]()),
		judges: map[service]*judge{}, last: map[string]bool{}, after: after,
	}
	_, err := w.slices.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: w.enqueue, UpdateFunc: func(_, o any) { w.enqueue(o) }, DeleteFunc: w.enqueue,
	})
	return w, err
}

// slim drops what no answer needs.
func slim(o any) (any, error) {
	s, ok := o.(*discovery.EndpointSlice)
	if !ok {
		return o, nil
	}
	s.ManagedFields, s.Annotations, s.Ports = nil, nil, nil
	for i := range s.Endpoints {
		s.Endpoints[i] = discovery.Endpoint{Conditions: s.Endpoints[i].Conditions}
	}
	return s, nil
}

func (w *Watcher) enqueue(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if s, ok := o.(*discovery.EndpointSlice); ok && s.Labels[discovery.LabelServiceName] != "" {
		w.queue.Add(service{s.Namespace, s.Labels[discovery.LabelServiceName]})
	}
}

// Changed has a value after the answer of Ready changed.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Ready says of Services, as service/NAMESPACE/NAME, whether an endpoint is ready. A Service without EndpointSlices is not in it.
func (w *Watcher) Ready() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.last)
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	w.factory.Start(ctx.Done())
	defer w.factory.Shutdown()
	stop := context.AfterFunc(ctx, w.queue.ShutDown)
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), w.slices.HasSynced) {
		return nil
	}
	for {
		s, down := w.queue.Get()
		if down {
			return nil
		}
		if err := w.look(s); err != nil {
			w.queue.AddRateLimited(s)
		} else {
			w.queue.Forget(s)
		}
		w.queue.Done(s)
	}
}

// look judges a Service anew.
func (w *Watcher) look(s service) error {
	all, err := w.lister.EndpointSlices(s.namespace).List(labels.SelectorFromSet(labels.Set{discovery.LabelServiceName: s.name}))
	if err != nil {
		return fmt.Errorf("endpoints of %s: %w", s.resource(), err)
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(all) == 0 {
		delete(w.judges, s)
		w.answer(s, false, false)
		return nil
	}
	j := w.judges[s]
	if j == nil {
		j = &judge{answer: true, seen: true, since: now}
		w.judges[s] = j
	}
	if wait := j.observe(anyReady(all), now, w.after); wait > 0 {
		w.queue.AddAfter(s, wait)
	}
	w.answer(s, j.answer, true)
	return nil
}

// answer notes the answer for a Service, and that it changed. The caller holds the lock.
func (w *Watcher) answer(s service, ready, known bool) {
	before, was := w.last[s.resource()]
	if known {
		w.last[s.resource()] = ready
	} else {
		delete(w.last, s.resource())
	}
	if was == known && before == ready {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func anyReady(all []*discovery.EndpointSlice) bool {
	for _, s := range all {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				return true
			}
		}
	}
	return false
}

// judge turns what is seen of a Service into an answer that short changes do not change.
type judge struct {
	answer, seen bool
	since        time.Time // when seen became what it is
}

// observe notes what is seen, and returns after which time to look again, 0 for never.
func (j *judge) observe(ready bool, now time.Time, after time.Duration) time.Duration {
	if ready != j.seen {
		j.seen, j.since = ready, now
	}
	if j.seen == j.answer {
		return 0
	}
	wait := after
	if ready {
		wait = after / 2
	}
	if left := j.since.Add(wait).Sub(now); left > 0 {
		return left
	}
	j.answer = j.seen
	return 0
}
