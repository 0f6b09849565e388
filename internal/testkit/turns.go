package testkit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer"
)

// Scenario is a sequence of turns with Services on a local Azure. After the turns all Services are
// deleted, and Azure must be as before.
type Scenario struct {
	Name string
	// Given is created in Azure before the first turn. Its lines are what [Prepare] accepts, foreign security rules
	// ("security rule 500 Inbound"), and a tag of the security group ("tag env=prod"). The line "dual stack" makes a
	// network with IPv6.
	Given []string
	// Config changes the configuration of load balancers. A scenario without it must pass with every
	// kind of pool and probe.
	Config func(*loadbalancer.Config)
	// OwnProbes says that the scenario needs a probe for each Service, and is skipped with a shared
	// probe.
	OwnProbes bool
	Turns     []Turn
	// Leaves is a property of the subnet that stays changed, because other resources may need it.
	Leaves string
}

// Turn applies a Service and says what must exist afterwards.
type Turn struct {
	// Service may contain placeholders in its annotations and address. The address of the Service or public IP "web" is
	// "${web}". The resource group of the cluster is "${group}".
	Service *corev1.Service
	// Tagged replaces all tags of its public IP before the turn.
	Tagged azure.Tags
	// Addresses are the kinds of the addresses in the status: "public", "private", "public6",
	// "private6", "kept" for the previous address, or an address.
	Addresses []string
	// Has is everything in Azure for the Service, as [Env.Facts] returns it.
	Has []string
	// Names are the names of these resources, as [Env.Names] returns them. Nil skips the check.
	Names []string
	// Probes are the names of all probes of all load balancers, with the Service's name for the
	// common part. Nil skips the check.
	Probes []string
	// Placed are all load balancers with their Services: "lb2: api web". Nil skips the check.
	Placed []string
	// Refused is part of the error of a refused Service.
	Refused string
	// Gone deletes the Service.
	Gone bool
	// Guard is the whole security group, as [Env.Guard] returns it. Nil skips the check.
	Guard []string
}

const annotation = "service.beta.kubernetes.io/"

// with adds annotations, given as name, value, name, value.
func with(s *corev1.Service, pairs ...string) *corev1.Service {
	s.Annotations = map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		s.Annotations[annotation+pair[0]] = pair[1]
	}
	return s
}

// families sets the IP families.
func families(s *corev1.Service, families ...corev1.IPFamily) *corev1.Service {
	s.Spec.IPFamilies = families
	return s
}

// allow sets the allowed source ranges.
func allow(s *corev1.Service, ranges ...string) *corev1.Service {
	s.Spec.LoadBalancerSourceRanges = ranges
	return s
}

// Services of most scenarios, and the kinds of their addresses.
func web() *corev1.Service { return NewService("web", tcp(80, 30080)) }
func api() *corev1.Service { return NewService("api", tcp(81, 30081)) }

var public, private = []string{"public"}, []string{"private"}

// The facts of most Services.
const (
	own    = "public IP of its own (IPv4)"
	own6   = "public IP of its own (IPv6)"
	inside = "internal load balancer: an address in the subnet nodes"
)

// forwards is the fact of a default rule for a TCP port.
func forwards(port int) string {
	return fmt.Sprintf("rule Tcp %d to %[1]d, floating IP, probe Tcp node port of %[1]d every 5 s", port)
}

// admits is the fact of a security rule that allows TCP ports.
func admits(from string, ports ...int) string {
	return fmt.Sprintf("security rule: allow Tcp %s from %s", strings.Trim(fmt.Sprint(ports), "[]"), from)
}

// ServiceScenarios returns scenarios for all annotations of Services. The number in a name is the row
// of the scenario list.
func ServiceScenarios() []Scenario {
	return slices.Concat(
		internalScenarios(), subnetScenarios(), publicScenarios(), prefixScenarios(), tagScenarios(), sharingScenarios(), familyScenarios(),
		accessScenarios(), denyScenarios(), guardScenarios(), ruleScenarios(), ruleOptionScenarios(), probeScenarios(), probeKeyScenarios(),
		sharedProbeScenarios(), linkScenarios(),
	)
}

// SeveralScenarios returns scenarios with two load balancers, the cluster's and "lb2".
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
			{Service: on("api", ClusterName, 81), Addresses: []string{"kept"}, Has: has(81),
				Placed: []string{"kubernetes: api", "lb2: web"}},
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
