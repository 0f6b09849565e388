package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/controller"
	"kaz/internal/plan"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/plan/gateway/live"
	"kaz/internal/reconcile"
)

// worker writes one application gateway.
type worker struct {
	*Controller
	id        azure.ID
	ingresses bool // it serves the Ingresses
	queue     *controller.Queue[string, reasons]
	commits   *reconcile.Coalescer[string, struct{}]
	diagnosis *diagnosis

	// What follows belongs to the commit, of which there is one at a time.
	objects *cluster.Objects // of the last commit
	empty   emptiness

	state struct {
		sync.Mutex                   // guards what follows
		accepted   map[string]object // as they were last written
		refused    map[string]error
		failures   map[string]int
		events     map[string]*controller.Deduplicator[plan.Problem]
		address    addresses
		live       live.Gateway // as it was last read
		held       string       // why nothing is written
		compared   bool         // a commit has ended well
		writing    bool         // a commit has begun to write
	}
}

// QueueName names the work queues of the application gateways in metrics.
const QueueName = "ingresses"

func newWorker(c *Controller, id azure.ID, ingresses bool) *worker {
	w := &worker{Controller: c, id: id, ingresses: ingresses, queue: controller.NewQueue[string, reasons](QueueName)}
	w.state.accepted, w.state.refused, w.state.failures = map[string]object{}, map[string]error{}, map[string]int{}
	w.state.events = map[string]*controller.Deduplicator[plan.Problem]{}
	w.commits = reconcile.NewCoalescer(w.commit)
	w.commits.Gather(c.config.Calm, c.config.Most)
	w.commits.Order(byNeed)
	w.commits.Sift(rank)
	w.diagnosis = newDiagnosis(w)
	return w
}

func (w *worker) hasCompared() bool {
	w.state.Lock()
	defer w.state.Unlock()
	return w.state.compared
}

// hasAccepted reports whether the application gateway has an object.
func (w *worker) hasAccepted(key string) bool {
	w.state.Lock()
	defer w.state.Unlock()
	return w.state.accepted[key] != nil
}

// mark has an object committed.
func (w *worker) mark(key string) { w.queue.Mark(key, reasons{}) }

// dispatch hands the keys of the queue to commits. Each waits for its commit; a key that is marked meanwhile is handed over again.
func (w *worker) dispatch(ctx context.Context, work *sync.WaitGroup) {
	for {
		key, down := w.queue.Get()
		if down {
			return
		}
		work.Go(func() {
			defer w.queue.Done(key)
			w.queue.Take(key)
			w.serve(ctx, key)
		})
	}
}

// serve commits one object with all others that wait, and deals with the answer.
func (w *worker) serve(ctx context.Context, key string) {
	_, err := w.commits.Submit(ctx, w.id.Key(), key)
	if key == everything {
		defer w.queue.MarkAfter(everything, reasons{}, w.config.Drift)
	}
	if ctx.Err() != nil || errors.Is(err, reconcile.ErrClosed) {
		return
	}
	w.state.Lock()
	if err == nil {
		delete(w.state.failures, key)
		w.state.Unlock()
		return
	}
	w.state.failures[key]++
	wait := controller.Delay(err, w.state.failures[key])
	w.state.Unlock()
	if key != everything {
		w.refuse(key, err)
		w.queue.MarkAfter(key, reasons{}, wait)
	}
	w.config.Log.Warn("cannot write the application gateway", "gateway", w.id, "object", key, "error", err, "again_in", wait.String())
}

// refuse notes that Azure has refused an object, and tells its owner.
func (w *worker) refuse(key string, err error) {
	if refusal, ok := errors.AsType[*azure.Error](err); !ok || !controller.IsLasting(refusal) {
		return
	}
	w.state.Lock()
	w.state.refused[key] = err
	w.state.Unlock()
	kind, _, _ := split(key)
	w.report(key, []plan.Problem{{
		Object: key, Reason: reasonRefused,
		Message: fmt.Sprintf("Azure refuses the application gateway with this %s: %v; others are served, and it is tried again", kind, err),
	}})
	if kind != ingress.Kind {
		w.publishRefusal(key, err)
	}
}

// reasonRefused is AGIC's reason of the event.
const reasonRefused = "FailedApplyingAppGwConfig"

// report writes Events about the problems of an object that it has not had before.
func (w *worker) report(key string, problems []plan.Problem) {
	w.state.Lock()
	known, ok := w.state.events[key]
	if !ok {
		known = &controller.Deduplicator[plan.Problem]{}
		w.state.events[key] = known
	}
	fresh := known.New(problems)
	w.state.Unlock()
	o := w.kube.object(key)
	if o == nil {
		return
	}
	for _, p := range fresh {
		w.config.Events.Event(o, corev1.EventTypeWarning, p.Reason, p.Message)
	}
}

// hold notes why nothing is written, nil if it is.
func (w *worker) hold(why error) {
	text := ""
	if why != nil {
		text = why.Error()
	}
	w.state.Lock()
	was := w.state.held
	w.state.held, w.state.compared = text, true
	w.state.Unlock()
	if text != "" && was != text {
		w.config.Log.Warn("nothing is written", "gateway", w.id, "reason", text)
	}
}

// current returns the objects of the application gateway by key. waits says that there are further ones for which it is not known yet
// whether they belong to it.
func (w *worker) current() (all map[string]object, waits bool) {
	all = map[string]object{}
	if w.ingresses {
		for _, i := range w.kube.ingresses() {
			if w.isOurs(i) {
				all[keyOf(i)] = i
			}
		}
	}
	if w.kube.api == nil {
		return all, false
	}
	a := w.assigned()
	for _, g := range w.kube.api.objects().Ours() {
		if a.at(g) == w.id {
			all[keyOf(g)] = g
		}
	}
	for _, r := range w.kube.routes() {
		if r.GetDeletionTimestamp() == nil && a.concerns(w.kube.api.gatewaysOf(r), w.id) {
			all[keyOf(r)] = r
		}
	}
	return all, len(a.waiting) > 0
}
