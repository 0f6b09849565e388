package testkit

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/plan/loadbalancer"
)

const (
	allPorts    = "azure-load-balancer-enable-high-availability-ports"
	noFloat     = "azure-disable-load-balancer-floating-ip"
	idleTimeout = "azure-load-balancer-tcp-idle-timeout"
	noReset     = "azure-load-balancer-disable-tcp-reset"
	probeProto  = "azure-load-balancer-health-probe-protocol"
	probeEvery  = "azure-load-balancer-health-probe-interval"
	probeCount  = "azure-load-balancer-health-probe-num-of-probe"
)

// forwards6 is like [forwards] for port 80 over IPv6.
const forwards6 = "rule Tcp 80 to 80 over IPv6, floating IP, probe Tcp node port of 80 every 5 s"

// local sets external traffic policy Local.
func local(s *corev1.Service) *corev1.Service {
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	s.Spec.HealthCheckNodePort = 32000
	return s
}

// ruleScenarios are about load balancing rules.
func ruleScenarios() []Scenario {
	sctp := corev1.ServicePort{Protocol: corev1.ProtocolSCTP, Port: 90, NodePort: 30090}
	two := func() *corev1.Service { return NewService("web", dns(), tcp(80, 30080)) }
	has := func(rule string) []string { return []string{own, rule, admits("Internet", 80)} }
	udp53 := "security rule: allow Udp 53 from Internet"
	return []Scenario{
		{Name: "003 two ports", Turns: []Turn{
			{
				Service: NewService("web", tcp(80, 30080), tcp(443, 30443)), Addresses: public,
				Has:   []string{own, forwards(80), forwards(443), admits("Internet", 80, 443)},
				Guard: []string{"500 allow Tcp 80 443 from Internet to web"},
				Names: append(ownNames("c-BASE"), "rule BASE-TCP-443", "probe BASE-TCP-443"),
			},
			{Service: NewService("web", tcp(81, 30081)), Addresses: []string{"kept"},
				Has: []string{own, forwards(81), admits("Internet", 81)}, Names: []string{
					"frontend BASE", "rule BASE-TCP-81", "probe BASE-TCP-81", publicIPName("c-BASE"),
				}},
		}},
		{Name: "006 TCP and UDP at one port", Turns: []Turn{
			{
				Service: NewService("web", tcp(53, 30054), dns()), Addresses: public, Has: []string{
					own, forwards(53), "rule Udp 53 to 53, floating IP, no probe", admits("Internet", 53), udp53,
				}, Names: []string{"frontend BASE", "rule BASE-TCP-53", "probe BASE-TCP-53", "rule BASE-UDP-53", publicIPName("c-BASE")},
			},
		}},
		{Name: "021 all ports", Turns: []Turn{
			{
				Service: with(two(), internal, "true", allPorts, "true"), Addresses: private,
				Has:   []string{inside, "rule for all ports, floating IP, probe Tcp node port of 80 every 5 s"},
				Names: []string{"frontend BASE in zones 1 2 3", "rule BASE-UDP-53", "probe BASE-UDP-53"},
			},
			{Service: with(web(), internal, "true"), Addresses: []string{"kept"}, Has: []string{inside, forwards(80)}},
		}},
		{Name: "022 SCTP", Turns: []Turn{
			{Service: with(NewService("web", sctp), internal, "true", allPorts, "true"), Addresses: private,
				Has: []string{inside, "rule for all ports, floating IP, no probe"}, Guard: []string{}},
			{Service: NewService("api", sctp), Refused: "SCTP"},
		}},
		{Name: "024 all ports of an external Service", Turns: []Turn{
			{Service: with(two(), allPorts, "true"), Addresses: public,
				Has: append(has(forwards(80)), "rule Udp 53 to 53, floating IP, no probe", udp53)},
		}},
	}
}

// ruleOptionScenarios are about the properties of load balancing rules.
func ruleOptionScenarios() []Scenario {
	byClient := web()
	byClient.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	has := func(rule string) []string { return []string{own, rule, admits("Internet", 80)} }
	set := strings.Replace(forwards(80), ", probe", "%s, probe", 1)
	return []Scenario{
		{Name: "065 idle timeout", Turns: []Turn{
			{Service: with(web(), idleTimeout, "20"), Addresses: public, Has: has(fmt.Sprintf(set, ", idle timeout 20 min"))},
			{Service: with(web(), idleTimeout, "3"), Refused: `"3"`, Has: has(fmt.Sprintf(set, ", idle timeout 20 min"))},
			{Service: with(web(), idleTimeout, "101"), Refused: `"101"`},
			{Service: with(web(), idleTimeout, "x"), Refused: `"x"`},
			{Service: web(), Addresses: []string{"kept"}, Has: has(forwards(80))},
		}},
		{Name: "066 no TCP reset", Turns: []Turn{
			{Service: with(web(), noReset, "True"), Addresses: public, Has: has(fmt.Sprintf(set, ", no TCP reset"))},
			{Service: web(), Addresses: []string{"kept"}, Has: has(forwards(80))},
		}},
		{Name: "067 session affinity", Turns: []Turn{
			{Service: byClient, Addresses: public, Has: has(fmt.Sprintf(set, ", by client"))},
			{Service: web(), Addresses: []string{"kept"}, Has: has(forwards(80))},
		}},
	}
}

// probeScenarios are about health probes.
func probeScenarios() []Scenario {
	app := func(protocol string) *corev1.Service {
		s := web()
		s.Spec.Ports[0].AppProtocol = &protocol
		return s
	}
	alone := func(probe string) []string { return []string{own, forwardsProbed(80, probe), admits("Internet", 80)} }
	const node = "probe Http health check node port/healthz every 5 s"
	udp53 := "security rule: allow Udp 53 from Internet"
	return []Scenario{
		{Name: "008 local", Turns: []Turn{
			{Service: web(), Addresses: public, Has: alone("probe Tcp node port of 80 every 5 s"), Names: ownNames("c-BASE")},
			{
				Service: local(NewService("web", tcp(80, 30080), dns())), Addresses: []string{"kept"},
				Has:   append(alone(node), "rule Udp 53 to 53, floating IP, "+node, udp53),
				Names: []string{"frontend BASE", "rule BASE-TCP-80", "rule BASE-UDP-53", "probe BASE-TCP-32000", publicIPName("c-BASE")},
			},
			{Service: web(), Addresses: []string{"kept"}, Has: alone("probe Tcp node port of 80 every 5 s"), Names: ownNames("c-BASE")},
		}},
		{Name: "010 local with UDP alone", Turns: []Turn{
			{Service: local(NewService("web", dns())), Addresses: public,
				Has: []string{own, "rule Udp 53 to 53, floating IP, " + node, udp53}},
			{Service: NewService("web", dns()), Addresses: []string{"kept"},
				Has: []string{own, "rule Udp 53 to 53, floating IP, no probe", udp53}},
		}},
		{Name: "058 appProtocol without a path", Turns: []Turn{
			{Service: app("HTTP"), Addresses: public, Has: alone("probe Http node port of 80/ every 5 s")},
			{Service: app("grpc"), Addresses: []string{"kept"}, Has: alone("probe Tcp node port of 80 every 5 s")},
		}},
	}
}

// forwardsProbed is the fact of a rule for a TCP port with the given probe.
func forwardsProbed(port int, probe string) string {
	return fmt.Sprintf("rule Tcp %d to %[1]d, floating IP, %s", port, probe)
}

// probeKeyScenarios are about the annotations of health probes.
func probeKeyScenarios() []Scenario {
	two := func(pairs ...string) *corev1.Service {
		return with(NewService("web", tcp(80, 30080), tcp(81, 30081)), pairs...)
	}
	has := func(rules ...string) []string { return append([]string{own, admits("Internet", 80, 81)}, rules...) }
	to := forwardsProbed
	return []Scenario{
		{Name: "053 probes", Turns: []Turn{
			{
				Service: two("port_80_health-probe_port", "tcp-81", "port_81_health-probe_protocol", "http",
					"port_81_health-probe_interval", "10"),
				Addresses: public,
				Has:       has(to(80, "probe Tcp node port of 81 every 5 s"), to(81, "probe Http node port of 81/ every 10 s")),
			},
			{
				Service: two("port_80_health-probe_port", "81", "port_81_health-probe_port", "8080",
					"port_81_health-probe_num-of-probe", "3"),
				Addresses: public, Has: has(to(80, "probe Tcp node port of 81 every 5 s"), to(81, "probe Tcp 8080 every 5 s, 3 in a row")),
			},
			{
				Service: two(probeProto, "https", "azure-load-balancer-health-probe-request-path", "/x",
					"port_81_health-probe_protocol", "tcp"),
				Addresses: public,
				Has:       has(to(80, "probe Https node port of 80/x every 5 s"), to(81, "probe Tcp node port of 81 every 5 s")),
			},
			{Service: two("port_80_no_probe_rule", "true", "port_81_no_lb_rule", "true"), Addresses: public, Has: has(to(80, "no probe"))},
		}},
		{Name: "055 probes that cannot be", OwnProbes: true, Turns: []Turn{
			{Service: two("port_80_health-probe_port", "nope"), Refused: `"nope"`},
			{Service: two(probeEvery, "60", probeCount, "2"), Refused: "120 s"},
			{Service: two(probeEvery, "4"), Refused: probeEvery},
			{Service: two(probeCount, "1"), Refused: probeCount},
			{Service: two(probeEvery, "59", probeCount, "2"), Addresses: public, Has: has(
				to(80, "probe Tcp node port of 80 every 59 s"), to(81, "probe Tcp node port of 81 every 59 s"),
			)},
			{Service: two("port_80_health-probe_port", "70000"), Refused: `"70000"`, Has: has(
				to(80, "probe Tcp node port of 80 every 59 s"), to(81, "probe Tcp node port of 81 every 59 s"),
			)},
		}},
	}
}

// sharedProbeScenarios are about one probe for all Services.
func sharedProbeScenarios() []Scenario {
	const shared = "cluster-service-shared-health-probe"
	has := func(port int, probe string) []string {
		return []string{own, fmt.Sprintf("rule Tcp %d to %[1]d, floating IP, %s", port, probe), admits("Internet", port)}
	}
	const all, node = "probe Http 10256/healthz every 5 s", "probe Http health check node port/healthz every 5 s"
	return []Scenario{
		{Name: "063 shared probe", Config: func(c *loadbalancer.Config) {
			c.SharedProbe = &loadbalancer.SharedProbe{Port: 10256, Path: "/healthz"}
		}, Turns: []Turn{
			{Service: web(), Addresses: public, Has: has(80, all), Probes: []string{shared}},
			{Service: with(api(), probeProto, "https"), Addresses: public, Has: has(81, all), Probes: []string{shared}},
			{Service: local(web()), Addresses: []string{"kept"}, Has: has(80, node), Probes: []string{shared, "web-TCP-32000"}},
			{Service: api(), Gone: true, Probes: []string{"web-TCP-32000"}},
			{Service: web(), Addresses: []string{"kept"}, Has: has(80, all), Probes: []string{shared}},
		}},
	}
}
