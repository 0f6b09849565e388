package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/azure"
	"kaz/internal/pause"
	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/health"
	"kaz/internal/plan/gateway/readiness"
)

// While pods wait for the readiness gate, an application gateway is asked for the health of its backends at these intervals: the first one
// for a while, then the second one.
const (
	gateInterval = 2 * time.Second
	gateWhile    = 2 * time.Minute
	gateLater    = 20 * time.Second
)

// gates writes the readiness gates of pods.
type gates struct {
	*Controller
	woken chan struct{} // of one element: there may be pods that wait
}

func newGates(c *Controller) *gates { return &gates{c, make(chan struct{}, 1)} }

// run decides about pods with the readiness gate until ctx ends.
func (g *gates) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-g.woken:
		}
		began := time.Now()
		for asks := false; g.open(ctx, asks); asks = true { // a gateway does not have a new pod at once
			wait := gateInterval
			if time.Since(began) > gateWhile {
				wait = gateLater
			}
			if pause.For(ctx, wait) != nil {
				return
			}
		}
	}
}

// wake has the pods with the readiness gate looked at.
func (g *gates) wake() {
	select {
	case g.woken <- struct{}{}:
	default: // it is woken already
	}
}

// open decides about all pods that wait, and reports whether some still do. It asks application gateways only if it may.
func (g *gates) open(ctx context.Context, asks bool) (wait bool) {
	answers := map[azure.ID][]health.Backend{}
	for _, p := range g.kube.pods() {
		if !readiness.Waits(p) {
			continue
		}
		var of [][]health.Backend
		for _, w := range g.workers {
			if !w.servesPod(p) {
				continue
			}
			if _, asked := answers[w.id]; !asked && asks {
				answers[w.id] = w.health(ctx)
			}
			of = append(of, answers[w.id])
		}
		now := readiness.Decide(p, of)
		wait = wait || now.Status != corev1.ConditionTrue
		g.write(ctx, p, now)
	}
	return wait
}

// health asks the application gateway for the health of its backends. It is nil if that is not known, as during a write.
func (w *worker) health(ctx context.Context) []health.Backend {
	all, err := w.askHealth(ctx)
	if err != nil && ctx.Err() == nil {
		w.config.Log.Warn("cannot read the health of backends", "gateway", w.id, "error", err)
	}
	return all
}

func (w *worker) askHealth(ctx context.Context) ([]health.Backend, error) {
	w.state.Lock()
	writing := w.state.writing
	w.state.Unlock()
	if writing {
		return nil, nil
	}
	doc, err := azure.Do(ctx, w.config.Azure, azure.Request{Verb: azure.Post, ID: w.id, Action: health.Action})
	if err != nil {
		return nil, err
	}
	return health.Read(doc)
}

// servesPod reports whether the application gateway has an object that leads to a pod, unless it is known that it does not serve that
// object.
func (w *worker) servesPod(p *corev1.Pod) bool {
	services := w.kube.servicesOf(p)
	if len(services) == 0 {
		return false
	}
	objects, _ := w.current()
	for key, o := range objects {
		if leadsTo(o, p.Namespace, services) && w.mayServe(key) {
			return true
		}
	}
	return false
}

// leadsTo reports whether an object has one of the Services of a namespace as a backend.
func leadsTo(o object, namespace string, services []string) bool {
	switch o := o.(type) {
	case *networking.Ingress:
		return o.Namespace == namespace && slices.ContainsFunc(services, func(s string) bool { return usesService(o, s) })
	case *gatewayv1.HTTPRoute:
		return slices.ContainsFunc(gatewayapi.RouteUses(o).Services, func(key string) bool {
			in, name, _ := strings.Cut(key, "/")
			return in == namespace && slices.Contains(services, name)
		})
	}
	return false
}

// mayServe reports whether the application gateway serves an object, or has not decided about it.
func (w *worker) mayServe(key string) bool {
	w.state.Lock()
	refused := w.state.refused[key] != nil && w.state.accepted[key] == nil
	w.state.Unlock()
	if refused {
		return false
	}
	w.mu.Lock()
	v, decided := w.verdicts[key][w.id]
	w.mu.Unlock()
	return !decided || v.served || slices.ContainsFunc(v.parents, func(p gatewayv1.RouteParentStatus) bool {
		return slices.ContainsFunc(p.Conditions, func(c metav1.Condition) bool {
			return c.Type == string(gatewayv1.RouteConditionAccepted) && c.Status == metav1.ConditionTrue
		})
	})
}

// servicesOf returns the names of the Services that select a pod.
func (k *kube) servicesOf(p *corev1.Pod) (names []string) {
	for _, s := range k.scopes {
		for _, service := range listed(s.services.list) {
			if service.Namespace == p.Namespace && len(service.Spec.Selector) > 0 &&
				labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(p.Labels)) {
				names = append(names, service.Name)
			}
		}
	}
	return names
}

func (k *kube) pods() (all []*corev1.Pod) {
	for _, s := range k.scopes {
		all = append(all, listed(s.pods.list)...)
	}
	return all
}

// write writes the condition of a pod if it is another one. What could not be written is tried again with the next look.
func (g *gates) write(ctx context.Context, p *corev1.Pod, now corev1.PodCondition) {
	for _, was := range p.Status.Conditions {
		if was.Type == now.Type && was.Status == now.Status && was.Reason == now.Reason && was.Message == now.Message {
			return
		}
	}
	now.LastTransitionTime = metav1.Now()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.UID}, "status": map[string]any{"conditions": []corev1.PodCondition{now}},
	})
	if err == nil {
		pods := g.config.Kube.CoreV1().Pods(p.Namespace)
		_, err = pods.Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
		g.config.Log.Warn("cannot write the readiness gate of a pod", "pod", p.Namespace+"/"+p.Name, "error", err)
	}
}

// markUsersOfPod has the objects that lead to a pod with the readiness gate committed: nothing else tells that its containers are ready.
func (c *Controller) markUsersOfPod(p *corev1.Pod) {
	if !readiness.Belongs(p) {
		return // what leaves a pool is an endpoint
	}
	for _, name := range c.kube.servicesOf(p) {
		c.markUsersOfService(p.Namespace, name)
	}
	c.gates.wake()
}

// samePod reports whether a pod belongs into the pools as before.
func samePod(a, b *corev1.Pod) bool { return readiness.Belongs(a) == readiness.Belongs(b) }
