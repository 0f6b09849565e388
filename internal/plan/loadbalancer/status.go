package loadbalancer

import (
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
	b, _ := readBatch(f)
	rules := make(map[string]bool, len(f.lb.Properties.LoadBalancingRules))
	for _, r := range f.lb.Properties.LoadBalancingRules {
		rules[strings.ToLower(r.Name)] = true
	}
	status := make(map[string][]v1.LoadBalancerIngress, len(b.live))
	for _, w := range b.live {
		if address := f.addressInPlace(w, rules); address != "" {
			status[w.service.Key()] = []v1.LoadBalancerIngress{{IP: address}}
		}
	}
	return status, nil
}

func (f *facts) addressInPlace(w wish, rules map[string]bool) string {
	for _, r := range w.rules {
		if !rules[strings.ToLower(r.name)] {
			return ""
		}
	}
	for _, fe := range f.frontendsOf(w.base) {
		if ref := fe.Properties.PublicIPAddress; sameText(fe.Name, w.base) && ref != nil {
			return f.ips[ref.ID.Key()].Properties.IPAddress
		}
	}
	return ""
}

// InPlace names, by key, the Services of the input that have anything in Azure:
// a frontend, or a managed public IP.
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
		internal, err := f.internalFrontend(w)
		if err != nil {
			return nil, err
		}
		there[s.Key()] = internal != "" || len(f.frontendsOf(w.base))+len(f.managedIPsOf(w)) > 0
	}
	return there, nil
}
