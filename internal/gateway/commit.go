package gateway

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	networking "k8s.io/api/networking/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/azure"
	"kaz/internal/controller"
	"kaz/internal/plan"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/reconcile"
)

// target is an application gateway with the objects of one commit.
type target struct {
	planner.Input
	decided *planner.Decision // the last decision
}

// Needs implements [reconcile.Target].
func (t target) Needs(plan.Snapshot) reconcile.Needs {
	return reconcile.Needs{Resources: []azure.ID{t.Gateway}}
}

// Decide implements [reconcile.Target].
func (t target) Decide(have plan.Snapshot) (reconcile.Decision, error) {
	in := t.Input
	in.Have = have
	d, err := planner.Desired(in)
	*t.decided = d
	if err != nil || d.Hold != nil {
		return reconcile.Decision{Ask: d.Hold}, err
	}
	return reconcile.Decision{Graph: d.Graph, Problems: d.Problems}, nil
}

// choice is the objects of a commit: those of the batch as they are, and the others as they were last written.
type choice struct {
	batch     []string
	current   map[string]object
	chosen    map[string]object
	kept      map[string]object // that were refused, and that this process has never written
	undecided bool              // there are further objects, about which no commit has decided
}

func (w *worker) choose(batch []string) choice {
	ch := choice{batch: batch, chosen: map[string]object{}, kept: map[string]object{}}
	ch.current, ch.undecided = w.current()
	w.state.Lock()
	defer w.state.Unlock()
	for key, o := range ch.current {
		was, accepted := w.state.accepted[key]
		switch {
		case slices.Contains(batch, key):
			ch.chosen[key] = o
		case accepted:
			ch.chosen[key] = was
		case w.state.refused[key] != nil:
			ch.kept[key] = o
		default:
			ch.undecided = true
		}
	}
	for key, was := range w.state.accepted { // what left is removed by its own request
		if _, still := ch.current[key]; !still && !slices.Contains(batch, key) {
			ch.chosen[key] = was
		}
	}
	return ch
}

// commit writes the application gateway once for all objects of a batch. The answer of each is empty: what became of it is in its events
// and its status.
func (w *worker) commit(ctx context.Context, _ string, batch []string) ([]struct{}, error) {
	objects := w.kube.objects().After(w.objects)
	w.objects = objects
	w.learnAddresses(ctx)
	for {
		ch := w.choose(batch)
		d, err := w.write(ctx, ch, objects)
		if err == nil {
			w.accept(ctx, ch, d)
			return make([]struct{}, len(batch)), nil
		}
		again, refusal := w.blame(err, ch, d)
		if !again {
			return nil, refusal
		}
	}
}

// input returns what a decision is made of, beside the application gateway.
func (w *worker) input(chosen map[string]object, objects *cluster.Objects) planner.Input {
	facts := planner.Facts{Ingresses: only[*networking.Ingress](chosen), Objects: objects}
	if w.config.Dynamic != nil {
		facts.Rewrites = w.kube.rewrites
		var err error
		if facts.Prohibited, err = w.kube.prohibited.targets(); err != nil {
			w.config.Log.Warn("an object that prohibits hosts and paths is left out", "error", err)
		}
	}
	if w.kube.api != nil {
		facts.API = w.kube.api.objects()
		facts.API.Gateways, facts.API.Routes = only[*gatewayv1.Gateway](chosen), routesOf(chosen)
		a := w.addresses()
		facts.Public, facts.Private = a.public, a.private
	}
	config := w.config.Config
	config.Gateway = w.id
	return facts.Input(config)
}

// write converges on the application gateway with the chosen objects. One that must not be written is no error.
func (w *worker) write(ctx context.Context, ch choice, objects *cluster.Objects) (planner.Decision, error) {
	var d planner.Decision
	in := w.input(ch.chosen, objects)
	in.Now = time.Now()
	in.Undecided = ch.undecided
	in.Kept = planner.Kept{
		Ingresses: only[*networking.Ingress](ch.kept), Gateways: only[*gatewayv1.Gateway](ch.kept),
		Routes: routesOf(ch.kept),
	}
	if len(ch.current) > 0 {
		w.empty.since, w.empty.certain = time.Time{}, false
	} else if err := w.believesEmpty(ctx); !ch.undecided {
		in.Doubt = err
	}
	began := time.Now()
	writing := fresh{w.config.Azure, sync.OnceFunc(func() {
		w.isWriting(true)
		w.publishPending(ch, d)
	})}
	out, err := reconcile.Converge(ctx, writing, target{in, &d})
	w.isWriting(false)
	wrote := 0
	for range out.Attempted() {
		wrote++
	}
	w.config.Metrics.Wrote(wrote, time.Since(began), err)
	if wrote > 0 && err == nil {
		w.diagnosis.note(d.Objects)
	}
	if d.Hold != nil && d.API.Gateways == nil {
		d.API = w.judge(in, d.Live)
	}
	w.state.Lock()
	w.state.live = d.Live
	w.state.Unlock()
	return d, err
}

func (w *worker) isWriting(now bool) {
	w.state.Lock()
	defer w.state.Unlock()
	w.state.writing = now
	w.config.Metrics.Writing(w.id, now)
}

// fresh is Azure without a cache: each write is planned on what is there. It calls a function before a write.
type fresh struct {
	reconcile.Azure
	before func()
}

func (f fresh) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return f.Fresh().Get(ctx, id)
}

func (f fresh) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return f.Fresh().List(ctx, q)
}

// Begin implements [azure.Writer].
func (f fresh) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	f.before()
	return f.Azure.Begin(ctx, r)
}

// accept notes what a commit has written.
func (w *worker) accept(ctx context.Context, ch choice, d planner.Decision) {
	w.hold(d.Hold)
	if d.Hold != nil {
		for _, key := range ch.batch { // the comparison with Azure comes again by itself
			if key != everything {
				w.queue.MarkAfter(key, reasons{}, w.config.Drift)
			}
		}
		w.publishHeld(ch, d)
		return
	}
	w.state.Lock()
	for _, key := range ch.batch {
		if o, ok := ch.chosen[key]; ok {
			w.state.accepted[key] = o
		} else {
			delete(w.state.accepted, key)
			w.empty.left(key, false) // that is settled
		}
		delete(w.state.refused, key)
	}
	w.state.Unlock()
	w.publish(ctx, ch, d)
}

// blame finds the objects that Azure refuses. If it names children of objects in the batch, these are the culprits. If it names only
// children of others, these are refused, and the commit is made again without them. Else the coalescer finds the culprit by halves.
func (w *worker) blame(err error, ch choice, d planner.Decision) (again bool, refusal error) {
	named := culprits(err, d)
	if len(named) == 0 {
		return false, err
	}
	found := map[int]error{}
	for i, key := range ch.batch {
		if slices.Contains(named, key) {
			found[i] = err
		}
	}
	if len(found) > 0 {
		return false, &reconcile.Refusal{Culprits: found}
	}
	for _, key := range named {
		if w.hasAccepted(key) {
			w.state.Lock()
			delete(w.state.accepted, key)
			w.state.Unlock()
			w.refuse(key, err)
			w.queue.MarkAfter(key, reasons{}, controller.Delay(err, 1))
			again = true
		}
	}
	return again, err
}

// culprits returns the keys of the objects with the children that a refusal names: of several children, those that the fewest need.
func culprits(err error, d planner.Decision) []string {
	e, ok := errors.AsType[*azure.Error](err)
	if !ok || !controller.IsLasting(err) {
		return nil
	}
	text := strings.ToLower(e.Target + " " + e.Message)
	var fewest []string
	for _, name := range slices.Sorted(maps.Keys(d.Objects)) {
		objects := d.Objects[name]
		if (fewest == nil || len(objects) < len(fewest)) && (controller.Mentions(text, name) || controller.Mentions(text, "/"+name)) {
			fewest = objects
		}
	}
	return fewest
}
