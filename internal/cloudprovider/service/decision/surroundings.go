package decision

import (
	"slices"

	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	listers "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

// Surroundings are what decides among several load balancers besides Services and
// nodes: the labels of namespaces, and where the endpoints of Services of policy
// Local are. A cluster with one load balancer has none, and watches none.
type Surroundings struct {
	Namespaces listers.NamespaceLister
	Endpoints  discoverylisters.EndpointSliceLister
}

// NodesOf are the nodes that have endpoints in a slice, ready or not: whether they
// are is the probes' business.
func NodesOf(e *discovery.EndpointSlice) []string {
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
func (s Surroundings) labelsOf() (map[string]map[string]string, error) {
	if s.Namespaces == nil {
		return nil, nil
	}
	all, err := s.Namespaces.List(labels.Everything())
	byName := make(map[string]map[string]string, len(all))
	for _, n := range all {
		byName[n.Name] = n.Labels
	}
	return byName, err
}

// nodesWith are the nodes that have endpoints of Services of policy Local, by the Service's key. A
// Service has no entry while its slices are not known.
func (s Surroundings) nodesWith() (map[string][]string, error) {
	if s.Endpoints == nil {
		return nil, nil
	}
	all, err := s.Endpoints.List(labels.Everything())
	nodes := map[string][]string{}
	for _, e := range all {
		if name := e.Labels[discovery.LabelServiceName]; name != "" {
			key := e.Namespace + "/" + name
			nodes[key] = append(nodes[key], NodesOf(e)...)
		}
	}
	for key, names := range nodes {
		slices.Sort(names)
		nodes[key] = slices.Compact(names)
	}
	return nodes, err
}
