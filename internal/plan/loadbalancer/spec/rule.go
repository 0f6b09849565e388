package spec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
)

// Rule is one port of a Service at the load balancer, or all of them.
type Rule struct {
	Name         string
	Protocol     string // as Azure writes it
	Port         int32  // 0 for all
	BackendPort  int32
	Probe        string // its name, "" for none
	Distribution string
	IdleMinutes  int32
	Reset        *bool // nil where the protocol knows none
}

const (
	healthPath    = "/healthz" // what kube-proxy answers at the health check node port, and at its own port
	kubeProxyPort = 10256
	// longestDetection is what Azure allows for interval times number, in seconds.
	longestDetection = 120
)

// SharedProbe is the name of the one probe of all Services that share it.
const SharedProbe = "cluster-service-shared-health-probe"

// rules are the rules of one address.
func (r *reader) rules(a Address, w *Spec) []Rule {
	idle, silent := read(r, key.IdleTimeout.Read), read(r, key.DisableTCPReset.Read)
	distribution := "Default"
	if r.Spec.SessionAffinity == v1.ServiceAffinityClientIP {
		distribution = "SourceIP"
	}
	if w.AllPorts() {
		first := r.Spec.Ports[0]
		rule := Rule{Name: a.Rule(ProtocolOf(first), first.Port), Protocol: "All", Distribution: distribution, IdleMinutes: idle,
			Reset: new(!silent)}
		if len(a.Probes) > 0 {
			rule.Probe = a.Probes[0].Name
		}
		return []Rule{rule}
	}
	var rules []Rule
	for _, p := range r.Spec.Ports {
		if readPort(r, key.NoRule, p.Port, false) || ProtocolOf(p) == v1.ProtocolSCTP {
			continue
		}
		rule := Rule{
			Name: a.Rule(ProtocolOf(p), p.Port), Protocol: Protocol(p), Port: p.Port, BackendPort: p.Port,
			Probe: r.probeOf(a, p), Distribution: distribution, IdleMinutes: idle,
		}
		if a.NodePort {
			if rule.BackendPort = p.NodePort; p.NodePort == 0 {
				r.refuse(problem.Spec,
					"port %d has no node port to send packets to without floating IP, allowed is spec.allocateLoadBalancerNodePorts",
					p.Port)
			}
		}
		if ProtocolOf(p) == v1.ProtocolTCP {
			rule.Reset = new(!silent)
		}
		rules = append(rules, rule)
	}
	return rules
}

// probeOf names the probe of a port's rule, "" for none.
func (r *reader) probeOf(a Address, p v1.ServicePort) string {
	name := ""
	switch {
	case readPort(r, key.NoProbe, p.Port, false):
	case r.sharesProbe():
		return SharedProbe
	case r.probesPort(p):
		name = a.Rule(ProtocolOf(p), p.Port)
	case r.asksNodes():
		name = a.Rule(v1.ProtocolTCP, r.Spec.HealthCheckNodePort)
	}
	if !slices.ContainsFunc(a.Probes, func(q azure.Child[network.Probe]) bool { return q.Name == name }) {
		return ""
	}
	return name
}

// probes lists the probes that the rules of one address refer to, each once.
func (r *reader) probes(n naming.Names, w *Spec) []azure.Child[network.Probe] {
	switch {
	case r.sharesProbe():
		return []azure.Child[network.Probe]{{Name: SharedProbe, Properties: network.Probe{
			Protocol: "Http", Port: r.config.SharedProbe.Port, RequestPath: r.config.SharedProbe.Path,
			IntervalInSeconds: key.ProbeInterval.Default, ProbeThreshold: key.ProbeCount.Default,
		}}}
	case w.AllPorts():
		return r.probeForAll(n)
	}
	var probes []azure.Child[network.Probe]
	add := func(p azure.Child[network.Probe]) {
		if !slices.ContainsFunc(probes, func(q azure.Child[network.Probe]) bool { return q.Name == p.Name }) {
			probes = append(probes, p)
		}
	}
	for _, p := range r.Spec.Ports {
		switch {
		case readPort(r, key.NoRule, p.Port, false):
		case readPort(r, key.NoProbe, p.Port, false):
		case r.probesPort(p):
			add(r.portProbe(n, p))
		case r.asksNodes():
			add(r.healthProbe(n))
		}
	}
	return probes
}

// probeForAll is the probe of a rule for all ports: the nodes' health, or that of the
// first TCP port which can be probed. It is named like the rule.
func (r *reader) probeForAll(n naming.Names) []azure.Child[network.Probe] {
	if r.asksNodes() {
		return []azure.Child[network.Probe]{r.healthProbe(n)}
	}
	for _, p := range r.Spec.Ports {
		if ProtocolOf(p) != v1.ProtocolTCP {
			continue
		}
		attempt := newReader(r.Service)
		if probe := attempt.portProbe(n, p); !attempt.found.Blocking() {
			probe.Name = n.Rule(ProtocolOf(r.Spec.Ports[0]), r.Spec.Ports[0].Port)
			return []azure.Child[network.Probe]{probe}
		}
	}
	return nil
}

func (r *reader) sharesProbe() bool { return r.config.SharedProbe != nil && !r.IsLocal() }

// probesPort reports whether a port is probed itself. Only TCP can be. Where the
// traffic policy is Local the nodes' health answers for all ports, unless a port
// names another one to be probed.
func (r *reader) probesPort(p v1.ServicePort) bool {
	if ProtocolOf(p) != v1.ProtocolTCP {
		return false
	}
	_, named, _ := key.PortProbePort.Lookup(r.Annotations, p.Port)
	return named || !r.asksNodes()
}

func (r *reader) healthProbe(n naming.Names) azure.Child[network.Probe] {
	port := r.Spec.HealthCheckNodePort
	interval, count := r.probeTiming(port)
	return azure.Child[network.Probe]{Name: n.Rule(v1.ProtocolTCP, port), Properties: network.Probe{
		Protocol: "Http", Port: port, RequestPath: healthPath, IntervalInSeconds: interval, ProbeThreshold: count,
	}}
}

// portProbe is the probe of a port: of its node port, or of kube-proxy if Kubernetes allocates no node port.
func (r *reader) portProbe(n naming.Names, p v1.ServicePort) azure.Child[network.Probe] {
	interval, count := r.probeTiming(p.Port)
	if _, named, _ := key.PortProbePort.Lookup(r.Annotations, p.Port); !named && p.NodePort == 0 {
		return azure.Child[network.Probe]{Name: n.Rule(ProtocolOf(p), p.Port), Properties: network.Probe{
			Protocol: "Http", Port: kubeProxyPort, RequestPath: healthPath, IntervalInSeconds: interval, ProbeThreshold: count,
		}}
	}
	probe := network.Probe{Protocol: r.probeProtocol(p), Port: r.probePort(p), IntervalInSeconds: interval, ProbeThreshold: count}
	if probe.Protocol != "Tcp" {
		probe.RequestPath = firstOf(readPort(r, key.PortProbePath, p.Port, ""), read(r, key.ProbePath.Read), key.ProbePath.Default)
	}
	return azure.Child[network.Probe]{Name: n.Rule(ProtocolOf(p), p.Port), Properties: probe}
}

func (r *reader) probeProtocol(p v1.ServicePort) string {
	appProtocol := ""
	if p.AppProtocol != nil {
		appProtocol = *p.AppProtocol
	}
	word, own, _ := key.PortProbeProtocol.Lookup(r.Annotations, p.Port)
	if !own { // an empty value is one, and counts as tcp in cloud-provider-azure
		word = firstOf(appProtocol, read(r, key.ProbeProtocol.Read))
	}
	return cmp.Or(map[string]string{"http": "Http", "https": "Https"}[strings.ToLower(word)], "Tcp")
}

// firstOf is the first text that is not blank.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			return t
		}
	}
	return ""
}

// probeTiming is seconds between probes and their number.
func (r *reader) probeTiming(port int32) (interval, count int32) {
	interval = readPort(r, key.PortProbeInterval, port, read(r, key.ProbeInterval.Read))
	count = readPort(r, key.PortProbeCount, port, read(r, key.ProbeCount.Read))
	if interval*count >= longestDetection {
		asked := joined(r.firstAsked(key.PortProbeInterval.For(port), key.ProbeInterval.Name),
			r.firstAsked(key.PortProbeCount.For(port), key.ProbeCount.Name))
		r.refuse(problem.Annotation,
			"%s: %d probes of port %d every %d s take %d s to see a node fail, allowed is less than %d s",
			asked, count, port, interval, interval*count, longestDetection)
	}
	return interval, count
}

// firstAsked is the first of some annotations that a Service has, "" for none.
func (r *reader) firstAsked(names ...string) string {
	for _, name := range names {
		if text, ok := r.Annotations[name]; ok {
			return fmt.Sprintf("annotation %s: %q", name, text)
		}
	}
	return ""
}

// probePort is the port that is probed for p: its node port unless an annotation
// names another one.
func (r *reader) probePort(p v1.ServicePort) int32 {
	name, asked, _ := key.PortProbePort.Lookup(r.Annotations, p.Port)
	if !asked {
		return r.nodePort(p)
	}
	named := func(other v1.ServicePort) bool {
		return strings.EqualFold(other.Name, name) || strconv.Itoa(int(other.Port)) == name
	}
	// A node port for UDP may have the same number, and answers no probe.
	probed := func(other v1.ServicePort) bool { return named(other) && ProtocolOf(other) == v1.ProtocolTCP }
	for _, is := range []func(v1.ServicePort) bool{probed, named} {
		if i := slices.IndexFunc(r.Spec.Ports, is); i >= 0 {
			return r.nodePort(r.Spec.Ports[i])
		}
	}
	number, err := strconv.ParseUint(name, 10, 16)
	if err != nil || number == 0 {
		r.refuse(problem.Annotation, "annotation %s: %q is no port of the Service, allowed is %s",
			key.PortProbePort.For(p.Port), name, key.PortProbePort.Allowed)
	}
	return int32(number)
}

func (r *reader) nodePort(p v1.ServicePort) int32 {
	if p.NodePort == 0 {
		r.refuse(problem.Spec,
			"port %d has no node port to probe; allow allocateLoadBalancerNodePorts, or name another port with the annotation %s",
			p.Port, key.PortProbePort.For(p.Port))
	}
	return p.NodePort
}
