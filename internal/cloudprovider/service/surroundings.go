package service

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/controller"
)

// surroundings makes what a cluster with several load balancers looks at known.
func (t triggers) surroundings(factory informers.SharedInformerFactory) (decision.Surroundings, []watched) {
	if len(t.config.LoadBalancer.Balancers) == 0 {
		return decision.Surroundings{}, nil
	}
	namespaces, endpoints := factory.Core().V1().Namespaces(), factory.Discovery().V1().EndpointSlices()
	return decision.Surroundings{Namespaces: namespaces.Lister(), Endpoints: endpoints.Lister()},
		[]watched{{namespaces.Informer(), t.ofNamespaces()}, {endpoints.Informer(), t.ofEndpoints()}}
}

// ofNamespaces marks the Services of a namespace whose labels change, or that becomes known after
// them. Namespaces that existed from the start are no change.
func (t triggers) ofNamespaces() cache.ResourceEventHandler {
	changed := func(n *corev1.Namespace) {
		all, _ := t.objects.services.Services(n.Name).List(labels.Everything()) // a lister knows no error
		for _, s := range all {
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
	if err == nil && keepsPackets(s) && t.config.Classes.Wants(s) {
		t.queue.Mark(itemOf(s), reasons{nodes: true, since: time.Now()})
	}
}

// keepsPackets reports whether packets stay at the node where they arrive.
func keepsPackets(s *corev1.Service) bool {
	return s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
