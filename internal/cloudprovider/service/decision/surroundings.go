package decision

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
)

// Surroundings are what decides among several load balancers besides Services and
// nodes: the labels of namespaces, and where the endpoints of Services of policy
// Local are. A cluster with one load balancer has none, and watches none.
type Surroundings struct {
	Namespaces func() []*corev1.Namespace
	Endpoints  func() []*discovery.EndpointSlice
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
func (s Surroundings) labelsOf() map[string]map[string]string {
	if s.Namespaces == nil {
		return nil
	}
	byName := map[string]map[string]string{}
	for _, n := range s.Namespaces() {
		byName[n.Name] = n.Labels
	}
	return byName
}

// nodesWith are the nodes that have endpoints of Services of policy Local, by the Service's key. A
// Service has no entry while its slices are not known.
func (s Surroundings) nodesWith() map[string][]string {
	if s.Endpoints == nil {
		return nil
	}
	nodes := map[string][]string{}
	for _, e := range s.Endpoints() {
		if name := e.Labels[discovery.LabelServiceName]; name != "" {
			key := e.Namespace + "/" + name
			nodes[key] = append(nodes[key], NodesOf(e)...)
		}
	}
	for key, names := range nodes {
		slices.Sort(names)
		nodes[key] = slices.Compact(names)
	}
	return nodes
}
