package testkit

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure/network"
)

// Scenario is a story of Services on a local Azure, which judges every write. When
// its turns are over all Services go, and Azure must be as it was.
type Scenario struct {
	Name string
	// Given is put into Azure before, by name of a public IP in the cluster's group
	// with the version that it has.
	Given map[string]string
	Turns []Turn
	// Leaves is a property of the subnet that is not as it was before; nobody can tell
	// who needs it.
	Leaves string
}

// Turn is a Service that is served, and what must be there then.
type Turn struct {
	Service *corev1.Service
	// Addresses are the kinds of its addresses in the status: "public", "private",
	// "public6", "private6", or an address itself.
	Addresses []string
	// Refused is part of the error that the Service gets instead.
	Refused string
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

// local makes a Service keep packets at the node where they arrive.
func local(s *corev1.Service) *corev1.Service {
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	s.Spec.HealthCheckNodePort = 32000
	return s
}

// allow restricts who may connect.
func allow(s *corev1.Service, ranges ...string) *corev1.Service {
	s.Spec.LoadBalancerSourceRanges = ranges
	return s
}

const (
	internal = "azure-load-balancer-internal"
	allPorts = "azure-load-balancer-enable-high-availability-ports"
	noFloat  = "azure-disable-load-balancer-floating-ip"
)

// ServiceScenarios are the lives of Services with everything that annotations ask
// for. Rows of the scenario map are named where a scenario stands for one.
func ServiceScenarios() []Scenario {
	v4, v6 := corev1.IPv4Protocol, corev1.IPv6Protocol
	web := func() *corev1.Service { return NewService("web", tcp(80, 30080)) }
	api := func() *corev1.Service { return NewService("api", tcp(81, 30081)) }
	public, private := []string{"public"}, []string{"private"}
	return []Scenario{
		{Name: "011 internal", Turns: []Turn{{Service: with(web(), internal, "true"), Addresses: private}, {Service: with(api(), internal, "true"), Addresses: private}}},
		{Name: "012 internal with ranges", Turns: []Turn{{Service: allow(with(web(), internal, "true"), "10.9.0.0/16"), Addresses: private}, {Service: with(web(), internal, "true"), Addresses: private}}},
		{Name: "018 external and internal by turns", Turns: []Turn{
			{Service: web(), Addresses: public}, {Service: with(web(), internal, "true"), Addresses: private},
			{Service: api(), Addresses: public}, {Service: web(), Addresses: public}, {Service: with(api(), internal, "true"), Addresses: private},
		}},
		{Name: "020 static private address", Turns: []Turn{
			{Service: with(web(), internal, "true", "azure-load-balancer-ipv4", "10.240.9.9"), Addresses: []string{"10.240.9.9"}},
			{Service: with(api(), internal, "true", "azure-load-balancer-ipv4", "10.240.9.9"), Addresses: []string{"10.240.9.9"}},
			{Service: with(api(), internal, "true", "azure-load-balancer-ipv4", "10.240.9.10"), Addresses: []string{"10.240.9.10"}},
			{Service: with(web(), internal, "true", "azure-load-balancer-ipv4", "10.240.9.11"), Addresses: []string{"10.240.9.11"}},
		}},
		{Name: "016 missing subnet", Turns: []Turn{{Service: with(web(), internal, "true", "azure-load-balancer-internal-subnet", "nope"), Refused: `subnet "nope" is not found`}}},
		{Name: "021 all ports", Turns: []Turn{{Service: with(NewService("web", udp(53, 30053), tcp(80, 30080)), internal, "true", allPorts, "true"), Addresses: private}, {Service: with(web(), internal, "true"), Addresses: private}}},
		{Name: "022 SCTP", Turns: []Turn{
			{Service: with(NewService("web", corev1.ServicePort{Protocol: corev1.ProtocolSCTP, Port: 90, NodePort: 30090}), internal, "true", allPorts, "true"), Addresses: private},
			{Service: NewService("api", corev1.ServicePort{Protocol: corev1.ProtocolSCTP, Port: 90, NodePort: 30090}), Refused: "SCTP"},
		}},
		{Name: "026 own public IP", Given: map[string]string{"mine": "IPv4"}, Turns: []Turn{
			{Service: with(web(), "azure-pip-name", "mine"), Addresses: public}, {Service: with(api(), "azure-pip-name", "mine"), Addresses: public},
			{Service: with(NewService("third", tcp(80, 30082)), "azure-pip-name", "mine"), Refused: "port 80"}, {Service: api(), Addresses: public},
		}},
		{Name: "027 missing public IP", Turns: []Turn{{Service: with(web(), "azure-pip-name", "nope"), Refused: `"nope" is not found`}}},
		{Name: "035 IP tags", Turns: []Turn{{Service: with(web(), "azure-pip-ip-tags", "RoutingPreference=Internet"), Addresses: public}, {Service: with(web(), "azure-pip-ip-tags", ""), Addresses: public}}},
		{Name: "037 DNS label", Turns: []Turn{
			{Service: with(web(), "azure-dns-label-name", "kaz-web"), Addresses: public}, {Service: with(web(), "azure-dns-label-name", "kaz-www"), Addresses: public},
			{Service: with(web(), "azure-dns-label-name", ""), Addresses: public},
		}},
		{Name: "041 access", Turns: []Turn{
			{Service: with(allow(web(), "10.0.0.0/8"), "azure-deny-all-except-load-balancer-source-ranges", "true", "azure-allowed-service-tags", "AzureCloud"), Addresses: public},
			{Service: allow(web(), "10.0.0.1/8"), Addresses: public}, {Service: web(), Addresses: public},
		}},
		{Name: "050 further addresses", Turns: []Turn{{Service: with(web(), "azure-additional-public-ips", "8.1.1.1, 8.1.1.2"), Addresses: []string{"public", "8.1.1.1", "8.1.1.2"}}, {Service: web(), Addresses: public}}},
		{Name: "052 no floating IP", Turns: []Turn{{Service: with(web(), noFloat, "true"), Addresses: public}, {Service: with(api(), noFloat, "true"), Addresses: public}, {Service: web(), Addresses: public}}},
		{Name: "068 dual stack", Turns: []Turn{
			{Service: families(web(), v4, v6), Addresses: []string{"public", "public6"}}, {Service: families(web(), v4), Addresses: public}, {Service: families(web(), v4, v6), Addresses: []string{"public", "public6"}},
		}},
		{Name: "070 IPv6", Turns: []Turn{
			{Service: families(web(), v6), Refused: "IPv6 frontends alone"}, {Service: api(), Addresses: public}, {Service: families(web(), v6), Addresses: []string{"public6"}},
			{Service: families(web(), v4, v6), Addresses: []string{"public6", "public"}},
		}},
		{Name: "089 private link", Turns: []Turn{
			{Service: with(web(), internal, "true", "azure-pls-create", "true"), Addresses: private},
			{Service: with(web(), internal, "true", "azure-pls-create", "true", "azure-pls-ip-configuration-ip-address-count", "3", "azure-pls-ip-configuration-ip-address", "10.240.7.7", "azure-pls-visibility", "*"), Addresses: private},
			{Service: with(web(), internal, "true", "azure-pls-create", "true", "azure-pls-name", "another"), Refused: "another"},
			{Service: with(web(), internal, "true"), Addresses: private},
			{Service: with(api(), noFloat, "true", "azure-pls-create", "true", "azure-pls-proxy-protocol", "true"), Addresses: public},
		}, Leaves: "privateLinkServiceNetworkPolicies"},
		{Name: "008 local", Turns: []Turn{{Service: local(NewService("web", tcp(80, 30080), udp(53, 30053))), Addresses: public}, {Service: web(), Addresses: public}}},
		{Name: "053 probes", Turns: []Turn{
			{Service: with(NewService("web", tcp(80, 30080), tcp(81, 30081)), "port_80_health-probe_port", "81", "port_81_health-probe_protocol", "http", "port_81_health-probe_interval", "10"), Addresses: public},
			{Service: with(NewService("web", tcp(80, 30080), tcp(81, 30081)), "port_80_no_probe_rule", "true", "port_81_no_lb_rule", "true"), Addresses: public},
		}},
	}
}

// SeveralScenarios are the lives of Services where there are two load balancers, the
// cluster's and "lb2".
func SeveralScenarios() []Scenario {
	at := func(name, lb string, port int32) *corev1.Service {
		return with(NewService(name, tcp(port, 30000+port)), "azure-load-balancer-configurations", lb)
	}
	public := []string{"public"}
	return []Scenario{
		{Name: "097 moves", Turns: []Turn{
			{Service: at("web", ClusterName, 80), Addresses: public}, {Service: at("api", "lb2", 81), Addresses: public},
			{Service: at("web", "lb2", 80), Addresses: public}, {Service: at("api", ClusterName, 81), Addresses: public},
			{Service: at("web", ClusterName, 80), Addresses: public},
		}},
		{Name: "101 local", Turns: []Turn{{Service: local(at("web", "lb2", 80)), Addresses: public}, {Service: at("web", "lb2", 80), Addresses: public}}},
		{Name: "102 not eligible", Turns: []Turn{{Service: at("web", "nope", 80), Refused: "no load balancer may serve it"}}},
	}
}

// Play runs a scenario on a local Azure.
func (s Scenario) Play(t *testing.T, e Env, a *Azure) {
	t.Helper()
	for name, version := range s.Given {
		a.Put(e.Group.Resource(network.PublicIPAddresses, name), map[string]any{
			"location": Location, "sku": map[string]any{"name": "Standard"},
			"properties": map[string]any{"publicIPAllocationMethod": "Static", "publicIPAddressVersion": version},
		})
	}
	before := Snapshot(t, e.Azure, e.Group, e.ScaleSets...)
	present := map[string]*corev1.Service{}
	for i, turn := range s.Turns {
		if served := turn.play(t, e, a, present[turn.Service.Name], i); served != nil {
			present[turn.Service.Name] = served
		}
	}
	var order []string
	for name := range present {
		order = append(order, name)
	}
	slices.Sort(order)
	for _, name := range order {
		if err := e.Remove(t.Context(), present[name]); err != nil {
			t.Fatalf("remove %s: %v", name, err)
		}
	}
	after := Snapshot(t, e.Azure, e.Group, e.ScaleSets...)
	for _, state := range []map[string]string{before, after} {
		for id, text := range state {
			state[id] = without(text, s.Leaves)
		}
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("Azure is not as it was before (-before +after):\n%s", d)
	}
}

func (turn Turn) play(t *testing.T, e Env, a *Azure, was *corev1.Service, i int) *corev1.Service {
	t.Helper()
	s := turn.Service.DeepCopy()
	if was != nil {
		s.Status = *was.Status.DeepCopy()
	}
	served, err := e.Serve(t.Context(), s)
	if turn.Refused != "" {
		if err == nil || !strings.Contains(err.Error(), turn.Refused) {
			t.Fatalf("turn %d: the error is %v, want one with %q", i+1, err, turn.Refused)
		}
		return was
	}
	if err != nil {
		t.Fatalf("turn %d: serve %s: %v", i+1, s.Name, err)
	}
	var got []string
	for n, in := range served.Status.LoadBalancer.Ingress {
		got = append(got, in.IP)
		if n < len(turn.Addresses) && kindOf(in.IP) == turn.Addresses[n] {
			got[n] = turn.Addresses[n]
		}
	}
	if d := cmp.Diff(turn.Addresses, got); d != "" {
		t.Errorf("turn %d: addresses of %s (-want +got):\n%s", i+1, s.Name, d)
	}
	a.Forget()
	again, err := e.Serve(t.Context(), served)
	if err != nil || !slices.EqualFunc(again.Status.LoadBalancer.Ingress, served.Status.LoadBalancer.Ingress, sameAddress) {
		t.Errorf("turn %d: %s served again: %+v, %v", i+1, s.Name, again, err)
	}
	if writes := a.Writes(); len(writes) > 0 {
		t.Errorf("turn %d: %s served again wrote %v", i+1, s.Name, writes)
	}
	return served
}

// without is a text without the lines that have a word in them.
func without(text, word string) string {
	if word == "" {
		return text
	}
	lines := strings.Split(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, word) }), "\n")
}

func sameAddress(a, b corev1.LoadBalancerIngress) bool { return a.IP == b.IP }

// kindOf is what kind of address a text is.
func kindOf(text string) string {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return fmt.Sprintf("%q", text)
	}
	kind := "public"
	if ip.IsPrivate() {
		kind = "private"
	}
	if ip.Is6() {
		kind += "6"
	}
	return kind
}
