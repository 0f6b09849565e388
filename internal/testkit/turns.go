package testkit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer"
)

// Scenario is a story of Services on a local Azure, which judges every write. When
// its turns are over all Services go, and Azure must be as it was.
type Scenario struct {
	Name string
	// Given is put into Azure before: what [Prepare] understands, security rules of
	// somebody else ("security rule 500 Inbound") or a tag ("tag env=prod") of the security
	// group, and "dual stack" for a network that has IPv6 addresses too.
	Given []string
	// Config changes the configuration of load balancers; a scenario without it has to
	// come true with any kind of pool and of probe.
	Config func(*loadbalancer.Config)
	// OwnProbes says that it is about probes of the Services' own: it does not come true
	// where all share one.
	OwnProbes bool
	Turns     []Turn
	// Leaves is a property of the subnet that is not as it was before; nobody can tell
	// who needs it.
	Leaves string
}

// Turn is a Service that is served, and what must be there then.
type Turn struct {
	// Service may name in its annotations and as its address what is known only when it is
	// played: "${web}" is the address of the Service or public IP of the name, "${group}"
	// the cluster's resource group.
	Service *corev1.Service
	// Tagged are tags that somebody writes on its public IP before, instead of all others.
	Tagged azure.Tags
	// Addresses are the kinds of its addresses in the status: "public", "private",
	// "public6", "private6", "kept" for the one that it had, or an address itself.
	Addresses []string
	// Has is all that is in Azure for it then, as [Env.Facts] says it.
	Has []string
	// Names are the names of that, as [Env.Names] has them; nil where they do not matter.
	Names []string
	// Probes are the names of all probes of all load balancers, the base of a Service's by
	// the Service; nil where they do not matter.
	Probes []string
	// Placed are all load balancers, each with its Services: "lb2: api web"; nil where they do
	// not matter.
	Placed []string
	// Refused is part of the error that the Service gets instead.
	Refused string
	// Gone has the Service deleted instead.
	Gone bool
	// Guard is the whole security group then, as [Env.Guard] says it; nil where the
	// Service's own rules say enough.
	Guard []string
}

const annotation = "service.beta.kubernetes.io/"

// with is a Service with annotations, given as name, value, name, value.
func with(s *corev1.Service, pairs ...string) *corev1.Service {
	s.Annotations = map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		s.Annotations[annotation+pair[0]] = pair[1]
	}
	return s
}

// families gives a Service IP families.
func families(s *corev1.Service, families ...corev1.IPFamily) *corev1.Service {
	s.Spec.IPFamilies = families
	return s
}

// allow restricts who may connect.
func allow(s *corev1.Service, ranges ...string) *corev1.Service {
	s.Spec.LoadBalancerSourceRanges = ranges
	return s
}

// Services of most scenarios, and the kinds of addresses that they get.
func web() *corev1.Service { return NewService("web", tcp(80, 30080)) }
func api() *corev1.Service { return NewService("api", tcp(81, 30081)) }

var public, private = []string{"public"}, []string{"private"}

// What most Services have.
const (
	own    = "public IP of its own (IPv4)"
	own6   = "public IP of its own (IPv6)"
	inside = "internal load balancer: an address in the subnet nodes"
)

// forwards is the rule of a TCP port as it is when nobody asks for anything.
func forwards(port int) string {
	return fmt.Sprintf("rule Tcp %d to %[1]d, floating IP, probe Tcp node port of %[1]d every 5 s", port)
}

// admits is a security rule that lets packets to TCP ports in.
func admits(from string, ports ...int) string {
	return fmt.Sprintf("security rule: allow Tcp %s from %s", strings.Trim(fmt.Sprint(ports), "[]"), from)
}

// ServiceScenarios are the lives of Services with everything that annotations ask
// for. The first is the row of the scenario map that a scenario stands for.
func ServiceScenarios() []Scenario {
	return slices.Concat(
		internalScenarios(), subnetScenarios(), publicScenarios(), prefixScenarios(), tagScenarios(), sharingScenarios(), familyScenarios(),
		accessScenarios(), guardScenarios(), ruleScenarios(), probeScenarios(), sharedProbeScenarios(), linkScenarios(),
	)
}

// SeveralScenarios are the lives of Services where there are two load balancers, the
// cluster's and "lb2".
func SeveralScenarios() []Scenario {
	on := func(name, lb string, port int32) *corev1.Service {
		return with(NewService(name, tcp(port, 30000+port)), "azure-load-balancer-configurations", lb)
	}
	has := func(port int) []string { return []string{own, forwards(port), admits("Internet", port)} }
	return []Scenario{
		{Name: "097 moves", Turns: []Turn{
			{Service: on("web", ClusterName, 80), Addresses: public, Has: has(80), Placed: []string{"kubernetes: web"}},
			{Service: on("api", "lb2", 81), Addresses: public, Has: has(81), Placed: []string{"kubernetes: web", "lb2: api"}},
			{Service: on("web", "lb2", 80), Addresses: []string{"kept"}, Has: has(80), Placed: []string{"lb2: api web"}},
			{Service: on("api", ClusterName, 81), Addresses: []string{"kept"}, Has: has(81), Placed: []string{"kubernetes: api", "lb2: web"}},
			{Service: on("web", ClusterName, 80), Addresses: []string{"kept"}, Has: has(80), Placed: []string{"kubernetes: api web"}},
		}},
		{Name: "101 local", Turns: []Turn{
			{Service: local(on("web", "lb2", 80)), Addresses: public, Has: []string{
				own, "rule Tcp 80 to 80, floating IP, probe Http health check node port/healthz every 5 s", admits("Internet", 80),
			}, Placed: []string{"lb2: web"}},
			{Service: on("web", "lb2", 80), Addresses: []string{"kept"}, Has: has(80), Placed: []string{"lb2: web"}},
		}},
		{Name: "102 not eligible", Turns: []Turn{{Service: on("web", "nope", 80), Refused: "no load balancer may serve it"}}},
	}
}
