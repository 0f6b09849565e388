package loadbalancer

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// use is something in a load balancer that stands at a frontend.
type use struct {
	what        string // in a person's words
	name        string
	protocol    string
	first, last int32  // its ports, 0 for all
	owner       string // base name, "" for what is no rule of a Service
}

// usesOf lists what stands at each frontend.
func usesOf(lb network.LoadBalancer) map[string][]use {
	uses := make(map[string][]use, len(lb.FrontendIPConfigurations))
	add := func(frontend *azure.Reference, u use) {
		if frontend != nil {
			name := strings.ToLower(frontend.ID.Name())
			uses[name] = append(uses[name], u)
		}
	}
	for _, r := range lb.LoadBalancingRules {
		p := r.Properties
		add(p.FrontendIPConfiguration, use{"rule", r.Name, p.Protocol, p.FrontendPort, p.FrontendPort, ownerBase(r.Name)})
	}
	for _, r := range lb.InboundNATRules {
		p := r.Properties
		add(p.FrontendIPConfiguration, use{"inbound NAT rule", r.Name, p.Protocol, p.FrontendPort, p.FrontendPort, ""})
	}
	for _, r := range lb.InboundNATPools {
		p := r.Properties
		add(p.FrontendIPConfiguration, use{"inbound NAT pool", r.Name, p.Protocol, p.FrontendPortRangeStart, p.FrontendPortRangeEnd, ""})
	}
	for _, r := range lb.OutboundRules {
		for i := range r.Properties.FrontendIPConfigurations {
			add(&r.Properties.FrontendIPConfigurations[i], use{what: "outbound rule", name: r.Name, protocol: "none"})
		}
	}
	return uses
}

// takes reports whether the use leaves no room for a rule at a port.
func (u use) takes(protocol string, port int32) bool {
	if !sameText(u.protocol, protocol) && !sameText(u.protocol, "All") {
		return false
	}
	return u.first == 0 || u.first <= port && port <= u.last
}

// refuseConflicts finds what others have put at the Service's own frontend.
func (f *facts) refuseConflicts(w wish, found *problems) {
	for _, u := range f.uses[strings.ToLower(w.base)] {
		if sameText(u.owner, w.base) {
			continue
		}
		for _, r := range w.rules {
			if u.takes(r.protocol, r.port) {
				found.refuse(w.service.Key(), ReasonConflict, "port %d/%s: the %s %q stands at this port of frontend %s already",
					r.port, r.protocol, u.what, u.name, w.base)
			}
		}
	}
}

// remaining is what stands at a frontend once the batch's Services took theirs away.
func (f *facts) remaining(b batch, frontend string) []use {
	var rest []use
	for _, u := range f.uses[strings.ToLower(frontend)] {
		if u.owner == "" || !b.base[u.owner] {
			rest = append(rest, u)
		}
	}
	return rest
}

// frontendsOf lists the frontends that carry a Service's base name.
func (f *facts) frontendsOf(base string) []azure.Child[network.FrontendIPConfiguration] {
	return f.frontendsBy[strings.ToLower(base)]
}

func frontendsByOwner(lb network.LoadBalancer) map[string][]azure.Child[network.FrontendIPConfiguration] {
	by := make(map[string][]azure.Child[network.FrontendIPConfiguration], len(lb.FrontendIPConfigurations))
	for _, fe := range lb.FrontendIPConfigurations {
		owner := ownerBase(fe.Name)
		by[owner] = append(by[owner], fe)
	}
	return by
}
