package service

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/plan/loadbalancer"
)

// watchServices marks a Service when what it asks for changes.
func (c *Controller) watchServices() cache.ResourceEventHandler {
	mark := func(object any) {
		if s, ok := subject[*corev1.Service](object); ok {
			c.mark(itemOf(s), why{})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: mark,
		UpdateFunc: func(was, is any) {
			old, ok1 := was.(*corev1.Service)
			s, ok2 := is.(*corev1.Service)
			if !ok1 || !ok2 {
				return
			}
			if old.UID != s.UID {
				c.mark(itemOf(old), why{})
			}
			if !sameWish(old, s) || helpers.HasLBFinalizer(old) && !helpers.HasLBFinalizer(s) {
				c.mark(itemOf(s), why{})
			}
		},
		DeleteFunc: mark,
	}
}

// nodesTogether is how long the first change of nodes waits for others: a scale set's new
// machines come within seconds of each other, and a look at Azure is due after each
// change. Probes take longer to find out whether a node serves.
const nodesTogether = time.Second

// watchNodes marks all Services when the nodes change in what load balancers see
// of them, and notes whose are deleted. Nodes that were there from the start are no change.
func (c *Controller) watchNodes(deleted *nodeless) cache.ResourceEventHandler {
	changed := func() {
		c.dirt.add(everything, why{nodes: true, since: time.Now()})
		c.queue.AddAfter(everything, nodesTogether)
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(_ any, atStart bool) {
			if !atStart {
				changed()
			}
		},
		UpdateFunc: func(was, is any) {
			old, ok1 := was.(*corev1.Node)
			n, ok2 := is.(*corev1.Node)
			if ok1 && ok2 && !sameNode(c.config.LoadBalancer, old, n) {
				changed()
			}
		},
		DeleteFunc: func(object any) {
			deleted.lost(object)
			changed()
		},
	}
}

// sameWish reports whether two states of a Service ask for the same. Labels count:
// they can decide which load balancer it is served by. The status does not.
func sameWish(a, b *corev1.Service) bool {
	return a.UID == b.UID && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// sameNode reports whether two states of a node are the same to load balancers:
// its role, its machine, its addresses, and the labels by which nodes are placed.
// Whether it is ready is the probes' business.
func sameNode(c loadbalancer.Config, a, b *corev1.Node) bool {
	return loadbalancer.RoleOf(c, a) == loadbalancer.RoleOf(c, b) &&
		a.Spec.ProviderID == b.Spec.ProviderID &&
		slices.Equal(a.Status.Addresses, b.Status.Addresses) &&
		maps.Equal(a.Labels, b.Labels)
}

// subject is the object of an event, also when nobody saw it go.
func subject[T any](object any) (T, bool) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	o, ok := object.(T)
	return o, ok
}

func itemOf(s *corev1.Service) item { return item{s.Namespace, s.Name, s.UID} }
