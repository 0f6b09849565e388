package service

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// surroundings are what decides among several load balancers besides Services and
// nodes: the labels of namespaces, and where the endpoints of Services of policy
// Local are. A cluster with one load balancer has none, and watches none.
type surroundings struct {
	namespaces listers.NamespaceLister
	endpoints  discoverylisters.EndpointSliceLister
}

// watchSurroundings makes what a cluster with several load balancers looks at known.
func (c *Controller) watchSurroundings(factory informers.SharedInformerFactory) (surroundings, []watched) {
	if len(c.config.LoadBalancer.Balancers) == 0 {
		return surroundings{}, nil
	}
	namespaces, endpoints := factory.Core().V1().Namespaces(), factory.Discovery().V1().EndpointSlices()
	return surroundings{namespaces: namespaces.Lister(), endpoints: endpoints.Lister()},
		[]watched{{namespaces.Informer(), c.watchNamespaces()}, {endpoints.Informer(), c.watchEndpoints()}}
}

// watchNamespaces marks the Services of a namespace that is labelled otherwise, or that is
// heard of after them. Those that were there from the start are no change.
func (c *Controller) watchNamespaces() cache.ResourceEventHandler {
	changed := func(n *corev1.Namespace) {
		all, _ := c.services.Services(n.Name).List(labels.Everything()) // a lister knows no error
		for _, s := range all {
			if c.config.Classes.wants(s) {
				c.mark(itemOf(s), why{})
			}
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, atStart bool) {
			if n, ok := object.(*corev1.Namespace); ok && !atStart {
				changed(n)
			}
		},
		UpdateFunc: func(was, is any) {
			old, ok1 := was.(*corev1.Namespace)
			n, ok2 := is.(*corev1.Namespace)
			if ok1 && ok2 && !maps.Equal(old.Labels, n.Labels) {
				changed(n)
			}
		},
	}
}

// watchEndpoints marks a Service when its endpoints are on other nodes.
func (c *Controller) watchEndpoints() cache.ResourceEventHandler {
	mark := func(object any) {
		if e, ok := subject[*discovery.EndpointSlice](object); ok {
			c.markEndpoints(e)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: mark, DeleteFunc: mark,
		UpdateFunc: func(was, is any) {
			old, ok1 := was.(*discovery.EndpointSlice)
			e, ok2 := is.(*discovery.EndpointSlice)
			if ok1 && ok2 && !slices.Equal(nodesOf(old), nodesOf(e)) {
				c.markEndpoints(e)
			}
		},
	}
}

func (c *Controller) markEndpoints(e *discovery.EndpointSlice) {
	s, err := c.services.Services(e.Namespace).Get(e.Labels[discovery.LabelServiceName])
	if err == nil && keepsPackets(s) && c.config.Classes.wants(s) {
		c.mark(itemOf(s), why{nodes: true, since: time.Now()})
	}
}

// keepsPackets reports whether packets stay at the node where they arrive.
func keepsPackets(s *corev1.Service) bool {
	return s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// nodesOf are the nodes that have endpoints in a slice, ready or not: whether they
// are is the probes' business.
func nodesOf(e *discovery.EndpointSlice) []string {
	var names []string
	for _, end := range e.Endpoints {
		if end.NodeName != nil && *end.NodeName != "" {
			names = append(names, *end.NodeName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// labelsOf are the labels of all namespaces, by name.
func (s surroundings) labelsOf() (map[string]map[string]string, error) {
	if s.namespaces == nil {
		return nil, nil
	}
	all, err := s.namespaces.List(labels.Everything())
	byName := make(map[string]map[string]string, len(all))
	for _, n := range all {
		byName[n.Name] = n.Labels
	}
	return byName, err
}

// nodesWith are the nodes that have endpoints of Services of policy Local, by the
// Service's key. A Service of which Kubernetes has told no slice yet is not there.
func (s surroundings) nodesWith() (map[string][]string, error) {
	if s.endpoints == nil {
		return nil, nil
	}
	all, err := s.endpoints.List(labels.Everything())
	nodes := map[string][]string{}
	for _, e := range all {
		if name := e.Labels[discovery.LabelServiceName]; name != "" {
			key := e.Namespace + "/" + name
			nodes[key] = append(nodes[key], nodesOf(e)...)
		}
	}
	for key, names := range nodes {
		slices.Sort(names)
		nodes[key] = slices.Compact(names)
	}
	return nodes, err
}
