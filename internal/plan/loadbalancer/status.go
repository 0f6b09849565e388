package loadbalancer

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Status is the addresses of the live Services by their keys. A Service that is not
// in place yet, because a frontend, a rule or an address is missing, has no entry,
// and neither has one with a problem that keeps it from being served.
func Status(in Input) (map[string][]v1.LoadBalancerIngress, error) {
	f, err := readFacts(in)
	if err != nil {
		return nil, err
	}
	b, _ := readBatch(f, nil)
	status := make(map[string][]v1.LoadBalancerIngress, len(b.live))
	for _, w := range b.live {
		if in := f.inPlace(w); in != nil {
			status[w.service.Key()] = in
		}
	}
	return status, nil
}

// inPlace is the addresses of a Service, nil while anything is missing.
func (f *facts) inPlace(w wish) []v1.LoadBalancerIngress {
	if len(w.places) < len(w.addresses) {
		return nil
	}
	var ingress []v1.LoadBalancerIngress
	for _, p := range w.inOrder() {
		fe, exists := p.spot().frontend()
		address := f.addressAt(p.spot())
		if !exists || address == "" || p.ip != "" && (fe.Properties.PublicIPAddress == nil || !fe.Properties.PublicIPAddress.ID.Equal(p.ip)) {
			return nil
		}
		for _, r := range p.rules {
			if !p.side.rules[strings.ToLower(r.name)] {
				return nil
			}
		}
		ingress = append(ingress, v1.LoadBalancerIngress{IP: address})
	}
	for _, ip := range w.further {
		ingress = append(ingress, v1.LoadBalancerIngress{IP: ip.String()})
	}
	return ingress
}

// inOrder is the places in the order of the load balancer's frontends, in which users
// know the addresses.
func (w wish) inOrder() []place {
	return slices.SortedStableFunc(slices.Values(w.places), func(a, b place) int {
		return a.side.order[strings.ToLower(a.frontend)] - b.side.order[strings.ToLower(b.frontend)]
	})
}

// InPlace names, by key, the Services of the input that have anything in Azure:
// a frontend, a rule, or a managed public IP.
//
// It looks at what [Needs] names first, before anything is known.
func InPlace(in Input) (map[string]bool, error) {
	f, err := readFacts(in)
	if err != nil {
		return nil, err
	}
	there := make(map[string]bool, len(in.Services))
	for _, s := range in.Services {
		w := wish{service: s, base: baseName(s.Service)}
		ruled := slices.ContainsFunc(f.sides, func(one *side) bool { return len(one.ruled[strings.ToLower(w.base)]) > 0 })
		there[s.Key()] = ruled || len(f.ofOwner(w.base))+len(f.managedIPsOf(w)) > 0
	}
	return there, nil
}
