package loadbalancer

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
)

// wish is what one Service asks for, read from its object alone.
type wish struct {
	service Service
	base    string
	rules   []rule
	probes  []azure.Child[network.Probe]
	access  access
	ipTags  azure.Tags
}

// rule is one port of a Service at the load balancer.
type rule struct {
	name         string
	protocol     string // as Azure writes it
	port         int32
	probe        string // its name, "" for none
	distribution string
	idleMinutes  int32
	reset        *bool // nil where the protocol knows none
}

var protocols = map[v1.Protocol]string{v1.ProtocolTCP: "Tcp", v1.ProtocolUDP: "Udp"}

// readWish reads what a Service asks for and what is wrong with it.
func readWish(s Service) (wish, problems) {
	w := wish{service: s, base: baseName(s.Service)}
	var found problems
	unserved(s, &found)
	if found.blocking() {
		return w, found
	}
	w.probes = readProbes(s, w.base, &found)
	w.rules = readRules(s, w.base, w.probes, &found)
	w.access = readAccess(s, &found)
	tags := read(s, key.PublicIPTags.Read, &found)
	w.ipTags = tags.Values
	for _, skipped := range tags.Skipped {
		found.warn(s.Key(), ReasonTags, "%s: %q is left out, allowed is %s", key.PublicIPTags.Name, skipped, key.PublicIPTags.Allowed)
	}
	return w, found
}

// unserved finds what the Service asks for and does not get yet.
func unserved(s Service, found *problems) {
	const not = "is not supported yet"
	if name, value, asked := key.FirstUnsupported(s.Annotations); asked {
		found.refuse(s.Key(), ReasonUnsupported, "annotation %s: %q %s", name, value, not)
	}
	if s.Spec.LoadBalancerIP != "" {
		found.refuse(s.Key(), ReasonUnsupported, "spec.loadBalancerIP: %q %s, allowed is an address of Azure's choice", s.Spec.LoadBalancerIP, not)
	}
	for _, family := range s.Spec.IPFamilies {
		if family != v1.IPv4Protocol {
			found.refuse(s.Key(), ReasonUnsupported, "spec.ipFamilies: %q %s, allowed is IPv4", family, not)
		}
	}
	for _, p := range s.Spec.Ports {
		if _, ok := protocols[protocolOf(p)]; !ok {
			found.refuse(s.Key(), ReasonUnsupported, "port %d: protocol %q %s at a public address, allowed are TCP and UDP", p.Port, p.Protocol, not)
		}
	}
	if len(s.Spec.Ports) == 0 {
		found.refuse(s.Key(), ReasonSpec, "spec.ports is empty, at least one port is needed")
	}
}

// protocolOf is the port's protocol; an object that did not come through an API
// server may leave it out.
func protocolOf(p v1.ServicePort) v1.Protocol {
	if p.Protocol == "" {
		return v1.ProtocolTCP
	}
	return p.Protocol
}

func readRules(s Service, base string, probes []azure.Child[network.Probe], found *problems) []rule {
	idle := read(s, key.IdleTimeout.Read, found)
	silent := read(s, key.DisableTCPReset.Read, found)
	distribution := "Default"
	if s.Spec.SessionAffinity == v1.ServiceAffinityClientIP {
		distribution = "SourceIP"
	}
	var rules []rule
	for _, p := range s.Spec.Ports {
		if readPort(s, key.NoRule, p.Port, false, found) {
			continue
		}
		r := rule{
			name: ruleName(base, protocolOf(p), p.Port), protocol: protocols[protocolOf(p)], port: p.Port,
			probe: probeOf(s, base, p, probes, found), distribution: distribution, idleMinutes: idle,
		}
		if protocolOf(p) == v1.ProtocolTCP {
			r.reset = new(!silent)
		}
		rules = append(rules, r)
	}
	return rules
}

// read reads an annotation of a Service; a value that is not allowed is a problem.
func read[T any](s Service, from func(map[string]string) (T, error), found *problems) T {
	v, err := from(s.Annotations)
	if err != nil {
		found.refuse(s.Key(), ReasonAnnotation, "annotation %v", err)
	}
	return v
}

// readPort reads the annotation of a port; without one it is otherwise.
func readPort[T any](s Service, a key.PortAnnotation[T], port int32, otherwise T, found *problems) T {
	v, ok, err := a.Lookup(s.Annotations, port)
	switch {
	case err != nil:
		found.refuse(s.Key(), ReasonAnnotation, "annotation %v", err)
		return otherwise
	case !ok:
		return otherwise
	}
	return v
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			return t
		}
	}
	return ""
}
