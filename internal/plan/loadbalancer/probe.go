package loadbalancer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
)

const (
	healthPath = "/healthz" // what kube-proxy answers at the health check node port
	// longestDetection is what Azure allows for interval times number, in seconds.
	longestDetection = 120
)

// sharedProbeName is the one probe of all Services that share it.
const sharedProbeName = "cluster-service-shared-health-probe"

// sharedProbe asks the nodes themselves, for every Service of traffic policy Cluster.
func sharedProbe(c Config) azure.Child[network.Probe] {
	return azure.Child[network.Probe]{Name: sharedProbeName, Properties: network.Probe{
		Protocol: "Http", Port: c.SharedProbe.Port, RequestPath: c.SharedProbe.Path,
		IntervalInSeconds: key.ProbeInterval.Default, ProbeThreshold: key.ProbeCount.Default,
	}}
}

// readProbes lists the probes that the rules of one address refer to, each once.
func readProbes(s Service, n names, c Config, found *problems) []azure.Child[network.Probe] {
	internal, _ := key.Internal.Read(s.Annotations)
	switch {
	case sharesProbe(s, c):
		return []azure.Child[network.Probe]{sharedProbe(c)}
	case highlyAvailable(s, internal):
		return probeForAll(s, n, found)
	}
	var probes []azure.Child[network.Probe]
	add := func(p azure.Child[network.Probe]) {
		if !slices.ContainsFunc(probes, func(q azure.Child[network.Probe]) bool { return q.Name == p.Name }) {
			probes = append(probes, p)
		}
	}
	for _, p := range s.Spec.Ports {
		switch {
		case readPort(s, key.NoRule, p.Port, false, found):
		case readPort(s, key.NoProbe, p.Port, false, found):
		case ownProbe(s, p):
			add(portProbe(s, n, p, found))
		case asksNodes(s):
			add(healthProbe(s, n, found))
		}
	}
	return probes
}

// probeForAll is the probe of a rule for all ports: the nodes' health, or that of the
// first TCP port which can be probed. It is named like the rule.
func probeForAll(s Service, n names, found *problems) []azure.Child[network.Probe] {
	if asksNodes(s) {
		return []azure.Child[network.Probe]{healthProbe(s, n, found)}
	}
	for _, p := range s.Spec.Ports {
		if protocolOf(p) != v1.ProtocolTCP {
			continue
		}
		var wrong problems
		if probe := portProbe(s, n, p, &wrong); !wrong.blocking() {
			probe.Name = n.rule(protocolOf(s.Spec.Ports[0]), s.Spec.Ports[0].Port)
			return []azure.Child[network.Probe]{probe}
		}
	}
	return nil
}

// isLocal reports whether nodes without an endpoint must not get packets.
func isLocal(s Service) bool {
	return s.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal
}

// asksNodes reports whether the nodes say if they have endpoints of the Service.
// They do not understand PROXY protocol, which a private link's probes speak.
func asksNodes(s Service) bool {
	proxied, _ := key.LinkProxyProtocol.Read(s.Annotations)
	return isLocal(s) && s.Spec.HealthCheckNodePort > 0 && (!key.LinkStays(s.Annotations) || !proxied)
}

func sharesProbe(s Service, c Config) bool { return c.SharedProbe != nil && !isLocal(s) }

// ownProbe reports whether a port is probed itself. Only TCP can be; where the
// traffic policy is Local the nodes' health answers for all ports, unless a port
// names another one to be probed.
func ownProbe(s Service, p v1.ServicePort) bool {
	if protocolOf(p) != v1.ProtocolTCP {
		return false
	}
	_, named, _ := key.PortProbePort.Lookup(s.Annotations, p.Port)
	return named || !asksNodes(s)
}

func healthProbe(s Service, n names, found *problems) azure.Child[network.Probe] {
	port := s.Spec.HealthCheckNodePort
	interval, count := probeTiming(s, port, found)
	return azure.Child[network.Probe]{
		Name: n.rule(v1.ProtocolTCP, port),
		Properties: network.Probe{
			Protocol: "Http", Port: port, RequestPath: healthPath, IntervalInSeconds: interval, ProbeThreshold: count,
		},
	}
}

func portProbe(s Service, n names, p v1.ServicePort, found *problems) azure.Child[network.Probe] {
	interval, count := probeTiming(s, p.Port, found)
	probe := network.Probe{
		Protocol: probeProtocol(s, p, found), Port: probePort(s, p, found),
		IntervalInSeconds: interval, ProbeThreshold: count,
	}
	if probe.Protocol != "Tcp" {
		probe.RequestPath = firstOf(
			readPort(s, key.PortProbePath, p.Port, "", found), read(s, key.ProbePath.Read, found), key.ProbePath.Default)
	}
	return azure.Child[network.Probe]{Name: n.rule(protocolOf(p), p.Port), Properties: probe}
}

func probeProtocol(s Service, p v1.ServicePort, found *problems) string {
	appProtocol := ""
	if p.AppProtocol != nil {
		appProtocol = *p.AppProtocol
	}
	word := firstOf(readPort(s, key.PortProbeProtocol, p.Port, "", found), appProtocol, read(s, key.ProbeProtocol.Read, found))
	switch strings.ToLower(word) {
	case "http":
		return "Http"
	case "https":
		return "Https"
	}
	return "Tcp"
}

// probeTiming is seconds between probes and their number.
func probeTiming(s Service, port int32, found *problems) (interval, count int32) {
	interval = readPort(s, key.PortProbeInterval, port, read(s, key.ProbeInterval.Read, found), found)
	count = readPort(s, key.PortProbeCount, port, read(s, key.ProbeCount.Read, found), found)
	if interval*count >= longestDetection {
		asked := joined(askedBy(s, key.PortProbeInterval.For(port), key.ProbeInterval.Name), askedBy(s, key.PortProbeCount.For(port), key.ProbeCount.Name))
		found.refuse(s.Key(), ReasonAnnotation, "%s: %d probes of port %d every %d s take %d s to see a node fail, allowed is less than %d s",
			asked, count, port, interval, interval*count, longestDetection)
	}
	return interval, count
}

// askedBy is the first of some annotations that a Service has, "" for none.
func askedBy(s Service, names ...string) string {
	for _, name := range names {
		if text, ok := s.Annotations[name]; ok {
			return fmt.Sprintf("annotation %s: %q", name, text)
		}
	}
	return ""
}

// probePort is the port that is probed for p: its node port unless an annotation
// names another one.
func probePort(s Service, p v1.ServicePort, found *problems) int32 {
	name, asked, _ := key.PortProbePort.Lookup(s.Annotations, p.Port)
	if !asked {
		return nodePort(s, p, found)
	}
	named := func(other v1.ServicePort) bool {
		return strings.EqualFold(other.Name, name) || strconv.Itoa(int(other.Port)) == name
	}
	// Nobody answers a probe at a node port for UDP, which has the number, too.
	probed := func(other v1.ServicePort) bool { return named(other) && protocolOf(other) == v1.ProtocolTCP }
	for _, is := range []func(v1.ServicePort) bool{probed, named} {
		if i := slices.IndexFunc(s.Spec.Ports, is); i >= 0 {
			return nodePort(s, s.Spec.Ports[i], found)
		}
	}
	number, err := strconv.ParseUint(name, 10, 16)
	if err != nil || number == 0 {
		found.refuse(s.Key(), ReasonAnnotation, "annotation %s: %q is no port of the Service, allowed is %s",
			key.PortProbePort.For(p.Port), name, key.PortProbePort.Allowed)
	}
	return int32(number)
}

func nodePort(s Service, p v1.ServicePort, found *problems) int32 {
	if p.NodePort == 0 {
		found.refuse(s.Key(), ReasonSpec,
			"port %d has no node port to probe; allow allocateLoadBalancerNodePorts, set externalTrafficPolicy to Local, or name a port with the annotation %s",
			p.Port, key.PortProbePort.For(p.Port))
	}
	return p.NodePort
}
