package spec

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/problem"
)

const (
	healthPath    = "/healthz" // what kube-proxy answers at the health check node port, and at its own port
	kubeProxyPort = 10256
	// longestDetection is what Azure allows for interval times number, in seconds.
	longestDetection = 120
)

// SharedProbe is the name of the one probe of all Services that share it.
const SharedProbe = "cluster-service-shared-health-probe"

type probe = azure.Child[network.Probe]

// byFamily reads a key that has a sibling for IPv6, and notes which of the two it was.
// A Service with IPv6 only may use either.
func (r *reader) byFamily(a *Address, plain, six key.Annotation[string]) string {
	keys := []key.Annotation[string]{six, plain}
	if !a.IsIPv6() {
		keys = keys[1:]
	} else if len(r.Service.Families()) > 1 {
		keys = keys[:1]
	}
	for _, k := range keys {
		if text := read(r, k); text != "" {
			a.Asked = fmt.Sprintf("annotation %s: %q", k.Name, text)
			return text
		}
	}
	return ""
}

// pin is the address that a Service wants to have in a family, and where it says so. The spec does not say of which family its
// address is, so one that fits no family of the Service is ignored.
func (r *reader) pin(family v1.IPFamily, inSpec string) (pinned, asked string) {
	own := map[v1.IPFamily]key.Annotation[string]{v1.IPv4Protocol: key.IPv4, v1.IPv6Protocol: key.IPv6}[family]
	text, where := read(r, own), "annotation "+own.Name
	fromSpec := text == ""
	if fromSpec {
		text, where = strings.TrimSpace(inSpec), "spec.loadBalancerIP"
	}
	if text == "" {
		return "", ""
	}
	asked = fmt.Sprintf("%s: %q", where, text)
	ip, err := netip.ParseAddr(text)
	ip = ip.Unmap()
	fits := slices.Contains(r.Service.Families(), address.Family(ip)) // a text that is no address counts as one of IPv6
	var is, allowed string
	switch {
	case err != nil || ip.Zone() != "":
		is, allowed = "no IP address", "allowed is one of the family "+string(family)
	case fromSpec && fits && address.Family(ip) != family:
		return "", ""
	case address.Family(ip) != family:
		is, allowed = "not of the family "+string(family), "allowed is an address of that family"
	case !r.Internal && !address.IsPublic(ip):
		is, allowed = "a non-public address", "allowed for an external Service is the address of a public IP"
	default:
		return ip.String(), asked
	}
	if fromSpec && !fits {
		r.warn(problem.Address, "%s is %s and ignored, %s", asked, is, allowed)
		return "", ""
	}
	r.refuse(problem.Address, "%s is %s, %s", asked, is, allowed)
	return "", asked
}

// rules reads the rules of an address and their probes, each once.
func (r *reader) rules(a *Address) {
	idle, reset, distribution := read(r, key.IdleTimeout), new(!read(r, key.DisableTCPReset)), "Default"
	if r.Service.Spec.SessionAffinity == v1.ServiceAffinityClientIP {
		distribution = "SourceIP"
	}
	if r.sharesProbe() { // also without a rule that needs it: those of other Services may
		a.Probes = []probe{{Name: SharedProbe, Properties: network.Probe{
			Protocol: "Http", Port: r.config.SharedProbe.Port, RequestPath: r.config.SharedProbe.Path,
			IntervalInSeconds: key.ProbeInterval.Default, ProbeThreshold: key.ProbeCount.Default,
		}}}
	}
	for _, p := range r.Service.Spec.Ports {
		protocol := ProtocolOf(p)
		rule := Rule{Name: a.Rule(protocol, p.Port), Protocol: "All", Distribution: distribution, IdleMinutes: idle, Reset: reset}
		if r.AllPorts() {
			a.add(rule, r.probe(a, p))
			return
		}
		if protocol == v1.ProtocolSCTP { // Azure forwards it only together with everything else, and that only in a virtual network
			r.refuse(problem.Spec,
				"port %d: protocol SCTP is served by internal load balancers with all ports only, allowed is SCTP with the "+
					"annotations %s and %s",
				p.Port, key.Internal.Name, key.HAPorts.Name)
		}
		if read(r, key.NoRule.Of(p.Port, false)) {
			continue
		}
		probe := r.probe(a, p)
		rule.Protocol, rule.Port, rule.BackendPort = Protocol(p), p.Port, p.Port
		if protocol != v1.ProtocolTCP {
			rule.Reset = nil
		}
		if !a.Floating {
			rule.BackendPort = p.NodePort
		}
		if rule.BackendPort == 0 && protocol != v1.ProtocolSCTP {
			r.refuse(problem.Spec,
				"port %d has no node port to send packets to without floating IP, allowed is spec.allocateLoadBalancerNodePorts", p.Port)
		}
		a.add(rule, probe)
	}
}

// add adds a rule with its probe, which has no name for none.
func (a *Address) add(rule Rule, p probe) {
	if rule.Probe = p.Name; p.Name != "" && !slices.ContainsFunc(a.Probes, func(q probe) bool { return q.Name == p.Name }) {
		a.Probes = append(a.Probes, p)
	}
	a.Rules = append(a.Rules, rule)
}

func (r *reader) sharesProbe() bool { return r.config.SharedProbe != nil && !r.Service.IsLocal() }

// probe is the probe of a port's rule. Only TCP can be probed. Where the traffic policy is Local the nodes' health answers for
// all ports, unless a port names another one to be probed. A rule for all ports has the probe of the first TCP port which can
// be probed.
func (r *reader) probe(a *Address, p v1.ServicePort) probe {
	_, named, _ := key.PortProbePort.Lookup(r.Service.Annotations, p.Port)
	isTCP, forAll := ProtocolOf(p) == v1.ProtocolTCP, r.AllPorts()
	switch {
	case !forAll && read(r, key.NoProbe.Of(p.Port, false)):
		return probe{}
	case r.sharesProbe():
		return a.Probes[0]
	case r.Service.asksNodes() && (forAll || !named || !isTCP):
		return r.healthProbe(a, r.Service.Spec.HealthCheckNodePort, r.Service.Spec.HealthCheckNodePort)
	case forAll:
		for _, other := range r.Service.Spec.Ports {
			attempt := reader{Spec: r.Spec}
			if probe := attempt.portProbe(a, other); ProtocolOf(other) == v1.ProtocolTCP && !attempt.found.Blocking() {
				probe.Name = a.Rule(ProtocolOf(p), p.Port) // that of the rule
				return probe
			}
		}
	case isTCP:
		return r.portProbe(a, p)
	}
	return probe{}
}

// healthProbe returns a probe with the timing and the name of one port, at another port where kube-proxy reports the
// node's health.
func (r *reader) healthProbe(a *Address, port, at int32) probe {
	interval := read(r, key.PortProbeInterval.Of(port, read(r, key.ProbeInterval)))
	count := read(r, key.PortProbeCount.Of(port, read(r, key.ProbeCount)))
	if interval*count >= longestDetection {
		var asked []string
		for _, names := range [][]string{
			{key.PortProbeInterval.For(port), key.ProbeInterval.Name}, {key.PortProbeCount.For(port), key.ProbeCount.Name},
		} {
			if i := slices.IndexFunc(names, func(name string) bool { _, ok := r.Service.Annotations[name]; return ok }); i >= 0 {
				asked = append(asked, fmt.Sprintf("annotation %s: %q", names[i], r.Service.Annotations[names[i]]))
			}
		}
		r.refuse(problem.Annotation, "%s: %d probes of port %d every %d s take %d s to see a node fail, allowed is less than %d s",
			strings.Join(asked, " and "), count, port, interval, interval*count, longestDetection)
	}
	return probe{Name: a.Rule(v1.ProtocolTCP, port), Properties: network.Probe{
		Protocol: "Http", Port: at, RequestPath: healthPath, IntervalInSeconds: interval, ProbeThreshold: count,
	}}
}

// portProbe is the probe of a port: of its node port, or of kube-proxy if Kubernetes allocates no node port.
func (r *reader) portProbe(a *Address, p v1.ServicePort) probe {
	probe, port := r.healthProbe(a, p.Port, kubeProxyPort), r.probePort(p)
	if port == 0 {
		return probe
	}
	word, own, _ := key.PortProbeProtocol.Lookup(r.Service.Annotations, p.Port)
	if !own && p.AppProtocol != nil {
		word = strings.TrimSpace(*p.AppProtocol)
	}
	if !own { // an empty annotation of the port is one, and counts as tcp in cloud-provider-azure
		word = cmp.Or(word, read(r, key.ProbeProtocol))
	}
	view := &probe.Properties
	view.Protocol = cmp.Or(map[string]string{"http": "Http", "https": "Https"}[strings.ToLower(word)], "Tcp")
	view.Port, view.RequestPath = port, ""
	if view.Protocol != "Tcp" {
		view.RequestPath = cmp.Or(read(r, key.PortProbePath.Of(p.Port, "")), read(r, key.ProbePath), key.ProbePath.Default)
	}
	return probe
}

// probePort is the port that is probed for p: its node port unless an annotation names another one.
func (r *reader) probePort(p v1.ServicePort) int32 {
	name, asked, _ := key.PortProbePort.Lookup(r.Service.Annotations, p.Port)
	if !asked {
		return p.NodePort
	}
	named := func(other v1.ServicePort) bool {
		return strings.EqualFold(other.Name, name) || strconv.Itoa(int(other.Port)) == name
	}
	// A node port for UDP may have the same number, and answers no probe.
	probed := func(other v1.ServicePort) bool { return named(other) && ProtocolOf(other) == v1.ProtocolTCP }
	i := slices.IndexFunc(r.Service.Spec.Ports, probed)
	if i < 0 {
		i = slices.IndexFunc(r.Service.Spec.Ports, named)
	}
	if i < 0 {
		number, err := strconv.ParseUint(name, 10, 16)
		if err != nil || number == 0 {
			r.refuse(problem.Annotation, "annotation %s: %q is no port of the Service, allowed is %s",
				key.PortProbePort.For(p.Port), name, key.PortProbePort.Allowed)
		}
		return int32(number)
	}
	at := r.Service.Spec.Ports[i]
	if at.NodePort == 0 {
		r.refuse(problem.Spec,
			"port %d has no node port to probe; allow allocateLoadBalancerNodePorts, or name another port with the annotation %s",
			at.Port, key.PortProbePort.For(at.Port))
	}
	return at.NodePort
}
