package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// emptiness guards the gateway from an empty list of Ingresses that is wrong: that of an API server that has lost its data, for example.
// No Ingress at all is believed at once if each one was seen to leave. Else it must last, and a further list must be empty, too.
type emptiness struct {
	since time.Time // when there was no Ingress for the first time

	mu   sync.Mutex // guards what follows
	gone map[string]bool
}

// emptyAfter is how long an empty list must last.
const emptyAfter = 30 * time.Second

// left notes whether an Ingress was seen to leave the controller's class or the cluster.
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

// believes returns an error unless it is certain that the controller has no Ingress.
func (c *Controller) believesEmpty(ctx context.Context) error {
	if c.empty.allLeft(slices.Collect(maps.Keys(c.accepted))) {
		return nil
	}
	if c.empty.since.IsZero() {
		c.empty.since = time.Now()
	}
	if wait := emptyAfter - time.Since(c.empty.since); wait > 0 {
		c.queue.MarkAfter(everything, reasons{}, wait)
		return fmt.Errorf("there is no Ingress, although the application gateway may serve some: nothing is removed before that lasts %v",
			emptyAfter)
	}
	namespaces := c.config.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		all, err := c.config.Kube.NetworkingV1().Ingresses(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("there is no Ingress, and nothing is removed before another list says so: %w", err)
		}
		if slices.ContainsFunc(all.Items, func(i networking.Ingress) bool { return c.isOurs(&i) }) {
			return fmt.Errorf("there is no Ingress in one list and some in another; nothing is removed")
		}
	}
	return nil
}
