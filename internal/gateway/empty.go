package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/plan/gateway/gatewayapi"
)

// emptiness guards an application gateway from an empty list of objects that is wrong: that of an API server that has lost its data, for
// example. No object at all is believed at once if each one was seen to leave. Else it must last, and a further list must be empty, too.
type emptiness struct {
	since   time.Time // when there was no object for the first time
	certain bool      // that there has been none since each one was seen to leave, or since a further list was empty

	mu   sync.Mutex // guards what follows
	gone map[string]bool
}

// emptyAfter is how long an empty list must last.
const emptyAfter = 30 * time.Second

// left notes whether an object was seen to leave the controller's class or the cluster.
func (e *emptiness) left(key string, gone bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone == nil {
		e.gone = map[string]bool{}
	}
	if gone {
		e.gone[key] = true
	} else {
		delete(e.gone, key)
	}
}

func (e *emptiness) allLeft(keys []string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(keys) > 0 && !slices.ContainsFunc(keys, func(key string) bool { return !e.gone[key] })
}

// left notes at the application gateways of a Gateway whether it was seen to leave the controller's class or the cluster.
func (c *Controller) left(g *gatewayv1.Gateway, gone bool) {
	at := c.assigned().at(g)
	for _, w := range c.workers {
		if !gone || w.id == at || w.hasAccepted(keyOf(g)) {
			w.empty.left(keyOf(g), gone)
		}
	}
}

// servedAlone returns the keys of the accepted objects that are served for themselves: of routes, their Gateways decide.
func (w *worker) servedAlone() (keys []string) {
	w.state.Lock()
	defer w.state.Unlock()
	for key := range w.state.accepted {
		if !isRoute(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// believesEmpty returns an error unless it is certain that the application gateway has no object.
func (w *worker) believesEmpty(ctx context.Context) error {
	w.empty.certain = w.empty.certain || w.empty.allLeft(w.servedAlone())
	if w.empty.certain {
		return nil
	}
	if w.empty.since.IsZero() {
		w.empty.since = time.Now()
	}
	if wait := emptyAfter - time.Since(w.empty.since); wait > 0 {
		w.queue.MarkAfter(everything, reasons{}, wait)
		return fmt.Errorf("there is no Ingress or Gateway, although the application gateway may serve some: "+
			"nothing is removed before that lasts %v", emptyAfter)
	}
	for _, namespace := range w.config.namespaces() {
		some, err := w.listsSome(ctx, namespace)
		if err != nil {
			return fmt.Errorf("there is no Ingress or Gateway, and nothing is removed before another list says so: %w", err)
		}
		if some {
			return errors.New("there is no Ingress or Gateway in one list and some in another; nothing is removed")
		}
	}
	w.empty.certain = true
	return nil
}

// listsSome asks the API server whether a namespace has an object that the application gateway may serve.
func (w *worker) listsSome(ctx context.Context, namespace string) (bool, error) {
	if w.ingresses {
		all, err := w.config.Kube.NetworkingV1().Ingresses(namespace).List(ctx, metav1.ListOptions{})
		if err != nil || slices.ContainsFunc(all.Items, func(i networking.Ingress) bool { return w.isOurs(&i) }) {
			return true, err
		}
	}
	if w.kube.api == nil {
		return false, nil
	}
	all, err := w.config.GatewayAPI.GatewayV1().Gateways(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return true, err
	}
	o, a := w.kube.api.objects(), w.assigned()
	o.Gateways = nil
	for i := range all.Items {
		o.Gateways = append(o.Gateways, &all.Items[i])
	}
	return slices.ContainsFunc(o.Ours(), func(g *gatewayv1.Gateway) bool {
		at, assigned := a.applications[gatewayapi.KeyOf(g)]
		return at == w.id || !assigned && w.kube.object(keyOf(g)) == nil
	}), nil
}
