package service

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/controller"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/cluster"
)

// triggers mark Services when something changes that they depend on.
type triggers struct {
	config  Config
	queue   *queue
	objects objects
}

// watched is an informer that triggers listen to.
type watched struct {
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandler
}

// ofServices marks a Service when what it asks for changes.
func (t triggers) ofServices() cache.ResourceEventHandler {
	mark := func(s *corev1.Service) { t.queue.Mark(itemOf(s), reasons{}) }
	return controller.Watch[*corev1.Service]{
		Added: func(s *corev1.Service, _ bool) { mark(s) },
		Changed: func(old, s *corev1.Service) {
			if old.UID != s.UID {
				mark(old)
			}
			if !sameSpec(old, s) || helpers.HasLBFinalizer(old) && !helpers.HasLBFinalizer(s) {
				mark(s)
			}
		},
		Deleted: mark,
	}.Handler()
}

// nodesTogether is how long the first change of nodes waits for others: a scale set's new
// machines come within seconds of each other, and a look at Azure is due after each
// change. Probes take longer to find out that a node serves.
const nodesTogether = time.Second

// ofNodes marks all Services when the nodes change in what load balancers see
// of them, and notes which are deleted. Nodes that existed from the start are no change.
func (t triggers) ofNodes(deleted *decision.DeletedNodes) cache.ResourceEventHandler {
	changed := func() { t.queue.MarkAfter(everything, reasons{nodes: true, since: time.Now()}, nodesTogether) }
	return controller.Watch[*corev1.Node]{
		Added: func(_ *corev1.Node, atStart bool) {
			if !atStart {
				changed()
			}
		},
		Changed: func(old, n *corev1.Node) {
			if !sameNode(t.config.LoadBalancer, old, n) {
				changed()
			}
		},
		Deleted: func(n *corev1.Node) {
			deleted.Add(n)
			changed()
		},
	}.Handler()
}

// sameSpec reports whether two states of a Service ask for the same. Labels count:
// they can decide which load balancer it is served by. The status does not.
func sameSpec(a, b *corev1.Service) bool {
	return a.UID == b.UID && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// sameNode reports whether two states of a node are the same to load balancers:
// its role, its machine, its addresses, and the labels by which nodes are placed.
// Whether it is ready is the probes' business.
func sameNode(c loadbalancer.Config, a, b *corev1.Node) bool {
	return cluster.RoleOf(c, a) == cluster.RoleOf(c, b) &&
		a.Spec.ProviderID == b.Spec.ProviderID &&
		slices.Equal(a.Status.Addresses, b.Status.Addresses) &&
		maps.Equal(a.Labels, b.Labels)
}

// surroundings makes what a cluster with several load balancers looks at known.
func (t triggers) surroundings(factory informers.SharedInformerFactory) (decision.Surroundings, []watched) {
	if len(t.config.LoadBalancer.Balancers) == 0 {
		return decision.Surroundings{}, nil
	}
	namespaces, endpoints := factory.Core().V1().Namespaces(), factory.Discovery().V1().EndpointSlices()
	return decision.Surroundings{Namespaces: listed(namespaces.Lister().List), Endpoints: listed(endpoints.Lister().List)},
		[]watched{{namespaces.Informer(), t.ofNamespaces()}, {endpoints.Informer(), t.ofEndpoints()}}
}

// ofNamespaces marks the Services of a namespace when its labels change, or when it becomes known
// after them. Namespaces that existed from the start are no change.
func (t triggers) ofNamespaces() cache.ResourceEventHandler {
	changed := func(n *corev1.Namespace) {
		for _, s := range listed(t.objects.services.Services(n.Name).List)() {
			if t.config.Classes.Wants(s) {
				t.queue.Mark(itemOf(s), reasons{})
			}
		}
	}
	return controller.Watch[*corev1.Namespace]{
		Added: func(n *corev1.Namespace, atStart bool) {
			if !atStart {
				changed(n)
			}
		},
		Changed: func(old, n *corev1.Namespace) {
			if !maps.Equal(old.Labels, n.Labels) {
				changed(n)
			}
		},
	}.Handler()
}

// ofEndpoints marks a Service when its endpoints are on other nodes.
func (t triggers) ofEndpoints() cache.ResourceEventHandler {
	return controller.Watch[*discovery.EndpointSlice]{
		Added: func(e *discovery.EndpointSlice, _ bool) { t.markEndpoints(e) },
		Changed: func(old, e *discovery.EndpointSlice) {
			if !slices.Equal(decision.NodesOf(old), decision.NodesOf(e)) {
				t.markEndpoints(e)
			}
		},
		Deleted: t.markEndpoints,
	}.Handler()
}

func (t triggers) markEndpoints(e *discovery.EndpointSlice) {
	s, err := t.objects.services.Services(e.Namespace).Get(e.Labels[discovery.LabelServiceName])
	if err == nil && (loadbalancer.Service{Service: s}).IsLocal() && t.config.Classes.Wants(s) {
		t.queue.Mark(itemOf(s), reasons{nodes: true, since: time.Now()})
	}
}
