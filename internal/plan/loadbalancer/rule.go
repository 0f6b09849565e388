package loadbalancer

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
)

// rule is one port of a Service at the load balancer, or all of them.
type rule struct {
	name         string
	protocol     string // as Azure writes it
	port         int32  // 0 for all
	backendPort  int32
	probe        string // its name, "" for none
	distribution string
	idleMinutes  int32
	reset        *bool // nil where the protocol knows none
}

func readRules(s Service, a address, c Config, internal bool, found *problems) []rule {
	idle := read(s, key.IdleTimeout.Read, found)
	silent := read(s, key.DisableTCPReset.Read, found)
	distribution := "Default"
	if s.Spec.SessionAffinity == v1.ServiceAffinityClientIP {
		distribution = "SourceIP"
	}
	if highlyAvailable(s, internal) {
		first := s.Spec.Ports[0]
		r := rule{name: a.rule(protocolOf(first), first.Port), protocol: "All", distribution: distribution, idleMinutes: idle, reset: new(!silent)}
		if len(a.probes) > 0 {
			r.probe = a.probes[0].Name
		}
		return []rule{r}
	}
	var rules []rule
	for _, p := range s.Spec.Ports {
		if readPort(s, key.NoRule, p.Port, false, found) || protocolOf(p) == v1.ProtocolSCTP {
			continue
		}
		r := rule{
			name: a.rule(protocolOf(p), p.Port), protocol: protocols[protocolOf(p)], port: p.Port, backendPort: p.Port,
			probe: probeOf(s, a, p, c, found), distribution: distribution, idleMinutes: idle,
		}
		if a.nodePort {
			r.backendPort = p.NodePort
			refuseWithoutNodePort(s, p, found)
		}
		if protocolOf(p) == v1.ProtocolTCP {
			r.reset = new(!silent)
		}
		rules = append(rules, r)
	}
	return rules
}

func refuseWithoutNodePort(s Service, p v1.ServicePort, found *problems) {
	if p.NodePort == 0 {
		found.refuse(s.Key(), ReasonSpec, "port %d has no node port to send packets to without floating IP, allowed is spec.allocateLoadBalancerNodePorts", p.Port)
	}
}

// view is the rule as the load balancer has it.
func (r rule) view(c Config, p place) azure.Child[network.LoadBalancingRule] {
	view := network.LoadBalancingRule{
		Protocol: r.protocol, FrontendPort: r.port, BackendPort: r.backendPort,
		EnableFloatingIP: new(p.floating), EnableTCPReset: r.reset, LoadDistribution: r.distribution,
		DisableOutboundSNAT: new(c.DisableOutboundSNAT), IdleTimeoutInMinutes: new(r.idleMinutes),
		FrontendIPConfiguration: azure.Ref(p.frontendID()),
		BackendAddressPool:      azure.Ref(p.pool(c)),
	}
	if r.probe != "" {
		view.Probe = azure.Ref(p.side.id.Child(network.Probes, r.probe))
	}
	return azure.Child[network.LoadBalancingRule]{Name: r.name, Properties: view}
}

// probeOf names the probe of a port's rule, "" for none.
func probeOf(s Service, a address, p v1.ServicePort, c Config, found *problems) string {
	name := ""
	switch {
	case readPort(s, key.NoProbe, p.Port, false, found):
	case sharesProbe(s, c):
		return sharedProbeName
	case ownProbe(s, p):
		name = a.rule(protocolOf(p), p.Port)
	case asksNodes(s):
		name = a.rule(v1.ProtocolTCP, s.Spec.HealthCheckNodePort)
	}
	if !slices.ContainsFunc(a.probes, func(q azure.Child[network.Probe]) bool { return q.Name == name }) {
		return ""
	}
	return name
}
