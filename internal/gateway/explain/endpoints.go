package explain

import (
	"cmp"
	"slices"

	discovery "k8s.io/api/discovery/v1"
)

// endpointsOf lists the endpoints of a Service, in the order of their addresses.
func endpointsOf(all []*discovery.EndpointSlice, namespace, service string) []Endpoint {
	var found []Endpoint
	for _, s := range all {
		if s.Namespace != namespace || s.Labels[discovery.LabelServiceName] != service {
			continue
		}
		for _, e := range s.Endpoints {
			if len(e.Addresses) == 0 {
				continue
			}
			one := Endpoint{Address: e.Addresses[0], Ready: e.Conditions.Ready == nil || *e.Conditions.Ready,
				Terminating: e.Conditions.Terminating != nil && *e.Conditions.Terminating}
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				one.Pod = e.TargetRef.Name
			}
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b Endpoint) int { return cmp.Compare(a.Address, b.Address) })
	return slices.Compact(found)
}
