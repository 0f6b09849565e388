package gatewayapi

import (
	"fmt"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"kaz/internal/azure/network"
	"kaz/internal/plan/gateway/route"
)

// reasonConflict is the reason of a route that gets no connections because an older one has them.
const reasonConflict gatewayv1.RouteConditionReason = "Conflict"

// Values for connections, in seconds. The timeout is long, because it may be that of connections without traffic.
const (
	streamTimeout   = 3600
	streamInterval  = 30
	streamThreshold = 3
)

// streamRules reads the rule of a TCPRoute or a TLSRoute: one backend for all connections. Without a backend that can be used, connections
// are closed.
func (r *reader) streamRules(h Route) ruleSet {
	var s ruleSet
	rules := BackendsOf(h)
	if len(rules) != 1 {
		s.refused = because(gatewayv1.RouteReasonUnsupportedValue, "spec.rules has %d rules; a listener has one rule for all connections",
			len(rules))
		return s
	}
	made := made{Route: route.Route{
		Object: objectOf(h), Path: route.Path{Match: route.All}, Target: route.Target{Status: route.InternalError},
	}}
	n := 0
	for _, ref := range rules[0] {
		b, p := r.streamBackend(h, ref, &s)
		if p.is() && !s.unresolved.is() {
			s.unresolved = p
		}
		if value(ref.Weight, 1) == 0 {
			continue
		}
		n++
		if b != nil {
			made.Target = route.Target{Backend: b}
		}
	}
	if n > 1 {
		s.refused = because(gatewayv1.RouteReasonUnsupportedValue, "spec.rules[0].backendRefs has %d backends with a weight; an "+
			"application gateway shares no connections of %s among pools: want one, and 0 as the weight of others", n,
			map[string]string{KindTCPRoute: "TCP", KindTLSRoute: "TLS"}[RouteKind(h)])
		return s
	}
	s.made = append(s.made, made)
	return s
}

// streamBackend returns the backend that a reference leads to, nil if it must get no connections.
func (r *reader) streamBackend(h Route, ref gatewayv1.BackendRef, s *ruleSet) (*route.Backend, problem) {
	port, p := r.service(h, ref)
	if p.is() {
		return nil, p
	}
	b := &route.Backend{
		Namespace: port.Namespace, Service: port.Service, Port: fmt.Sprint(port.Port), Pool: port.Pool,
		Settings: network.GatewaySettings{Port: port.Target, Protocol: network.GatewayTCP, RequestTimeout: streamTimeout},
		Probe: network.GatewayProbe{
			Protocol: network.GatewayTCP, Interval: streamInterval, Timeout: streamInterval, UnhealthyThreshold: streamThreshold,
		},
	}
	all := r.policiesOf(b.Namespace, b.Service, port.Name)
	s.policies = append(s.policies, all...)
	return secured(b, all, network.GatewayTLS), problem{}
}

// streamSites returns the site of a TCPRoute or a TLSRoute at a listener, for the hosts that no older route has there.
func (s *ruleSet) streamSites(h Route, g *gateway, l *listener, hosts []string) []route.Site {
	if len(s.made) == 0 {
		return nil
	}
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	site := route.Site{
		Object: objectOf(h), Port: l.Port, Private: g.private, TLS: l.tls, Stream: true, Routes: []route.Route{s.made[0].Route},
	}
	for _, host := range hosts {
		other, taken := l.streams[host]
		if taken && RouteKey(other) != RouteKey(h) {
			s.taken = because(reasonConflict, "%s, which is older, has the connections of listener %s for %s", RouteKey(other), l.Name,
				map[bool]string{true: "any host", false: host}[host == ""])
			continue
		}
		l.streams[host] = h
		site.Hosts = append(site.Hosts, host)
	}
	switch {
	case len(site.Hosts) == 0:
		return nil
	case site.Hosts[0] == "":
		site.Hosts = nil
	}
	return []route.Site{site}
}
