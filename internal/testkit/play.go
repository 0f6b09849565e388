package testkit

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// Play runs a scenario on a local Azure.
func (s Scenario) Play(t *testing.T, e Env, a *Azure) {
	t.Helper()
	s.prepare(t, e, a)
	before := Snapshot(t, e.Azure, e.Group, e.ScaleSets...)
	present := map[string]*corev1.Service{}
	for i, turn := range s.Turns {
		played{turn, fmt.Sprintf("turn %d", i+1), e, a, present}.play(t)
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
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

// prepare creates in Azure what the scenario requires.
func (s Scenario) prepare(t *testing.T, e Env, a *Azure) {
	t.Helper()
	group := view[network.SecurityGroup](t, e, e.SecurityGroup)
	for _, g := range s.Given {
		priority, isRule := strings.CutPrefix(g, "security rule ")
		switch {
		case isRule:
			group.Properties.SecurityRules = append(group.Properties.SecurityRules, foreignRule(t, priority))
			a.Put(e.SecurityGroup, group)
		case g == "dual stack":
			a.DualStack()
		case strings.HasPrefix(g, "tag "):
			name, value, _ := strings.Cut(strings.TrimPrefix(g, "tag "), "=")
			group.Tags = azure.Tags{name: value}
			a.Put(e.SecurityGroup, group)
		default:
			if err := Prepare(t.Context(), a.Client, e.Group, VNet, []string{g}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// foreignRule returns a security rule of another owner, from a text such as "500 Inbound".
func foreignRule(t *testing.T, text string) azure.Child[network.SecurityRule] {
	t.Helper()
	rule := azure.Child[network.SecurityRule]{Properties: network.SecurityRule{
		Access: "Allow", Protocol: "Tcp", SourceAddressPrefix: new("*"), SourcePortRange: new("*"),
		DestinationAddressPrefix: new("*"), DestinationPortRange: new("22"),
	}}
	if _, err := fmt.Sscan(text, &rule.Properties.Priority, &rule.Properties.Direction); err != nil {
		t.Fatalf("security rule %q: %v", text, err)
	}
	rule.Name = "somebodys-" + strings.ReplaceAll(text, " ", "-")
	return rule
}

// played is a turn within its scenario.
type played struct {
	Turn
	where   string
	env     Env
	azure   *Azure
	present map[string]*corev1.Service
}

func (p played) play(t *testing.T) {
	t.Helper()
	name := p.Service.Name
	if p.Gone {
		if err := p.env.Remove(t.Context(), p.present[name]); err != nil {
			t.Fatalf("%s: remove %s: %v", p.where, name, err)
		}
		delete(p.present, name)
	} else if served := p.serve(t); served != nil {
		p.present[name] = served
	}
	if s := p.present[name]; s != nil && (p.Has != nil || p.Refused == "") {
		p.checkFacts(t, s)
	}
	if p.Guard != nil {
		p.same(t, "the security group", p.Guard, p.env.Guard(t, p.present))
	}
	if p.Placed != nil {
		p.same(t, "the load balancers", p.Placed, p.env.placed(t, p.present))
	}
	if p.Probes != nil {
		p.same(t, "all probes", p.Probes, p.env.probes(t, p.present))
	}
}

// serve applies the Service and returns it as served, nil if it is refused.
func (p played) serve(t *testing.T) *corev1.Service {
	t.Helper()
	s := p.completed(t)
	p.retag(t, s)
	was := s.Status.DeepCopy()
	served, err := p.env.Serve(t.Context(), s)
	if p.Refused != "" {
		if err == nil || !strings.Contains(err.Error(), p.Refused) {
			t.Fatalf("%s: the error is %v, want one with %q", p.where, err, p.Refused)
		}
		return nil
	}
	if err != nil {
		t.Fatalf("%s: serve %s: %v", p.where, s.Name, err)
	}
	p.checkAddresses(t, was.LoadBalancer.Ingress, served.Status.LoadBalancer.Ingress)
	p.azure.Forget()
	again, err := p.env.Serve(t.Context(), served)
	if err != nil || !slices.EqualFunc(again.Status.LoadBalancer.Ingress, served.Status.LoadBalancer.Ingress, sameAddress) {
		t.Errorf("%s: %s served again: %+v, %v", p.where, s.Name, again, err)
	}
	if writes := p.azure.Writes(); len(writes) > 0 {
		t.Errorf("%s: %s served again wrote %v", p.where, s.Name, writes)
	}
	return served
}

// completed returns the turn's Service with its status and with placeholders for addresses and the
// resource group replaced.
func (p played) completed(t *testing.T) *corev1.Service {
	t.Helper()
	s := p.Service.DeepCopy()
	if was := p.present[s.Name]; was != nil {
		s.Status = *was.Status.DeepCopy()
	}
	known := func(name string) string {
		switch other := p.present[name]; {
		case name == "group":
			return string(p.env.Group)
		case other != nil:
			return other.Status.LoadBalancer.Ingress[0].IP
		}
		return view[network.PublicIPAddress](t, p.env, p.env.Group.Resource(network.PublicIPAddresses, name)).Properties.IPAddress
	}
	for name, value := range s.Annotations {
		s.Annotations[name] = os.Expand(value, known)
	}
	s.Spec.LoadBalancerIP = os.Expand(s.Spec.LoadBalancerIP, known)
	return s
}

// retag replaces the tags of the Service's public IP.
func (p played) retag(t *testing.T, s *corev1.Service) {
	t.Helper()
	if p.Tagged == nil {
		return
	}
	for _, ip := range listOf[network.PublicIPAddress](t, p.env, network.PublicIPAddresses) {
		if len(s.Status.LoadBalancer.Ingress) > 0 && ip.Properties.IPAddress == s.Status.LoadBalancer.Ingress[0].IP {
			ip.Tags = p.Tagged
			p.azure.Put(ip.ID, ip)
			return
		}
	}
	t.Fatalf("%s: %s has no public IP to be tagged", p.where, s.Name)
}

func (p played) checkAddresses(t *testing.T, was, is []corev1.LoadBalancerIngress) {
	t.Helper()
	var got []string
	for n, in := range is {
		got = append(got, in.IP)
		if n >= len(p.Addresses) {
			continue
		}
		kept := n < len(was) && was[n].IP == in.IP
		if want := p.Addresses[n]; kindOf(in.IP) == want || kept && want == "kept" {
			got[n] = want
		}
	}
	if d := cmp.Diff(p.Addresses, got); d != "" {
		t.Errorf("%s: addresses of %s (-want +got):\n%s", p.where, p.Service.Name, d)
	}
}

func (p played) checkFacts(t *testing.T, served *corev1.Service) {
	t.Helper()
	has, got := p.Has, p.env.Facts(t, served)
	if p.env.SharedProbe {
		has, got = unprobed(has), unprobed(got)
	}
	p.same(t, "what is there for "+served.Name, has, got)
	if p.Names == nil {
		return
	}
	names, got := p.Names, p.env.Names(t, served)
	if p.env.SharedProbe {
		names, got = unprobed(names), unprobed(got)
	}
	p.same(t, "names of "+served.Name, names, got)
}

// same compares lists without regard to order, except for lines that begin with a priority.
func (p played) same(t *testing.T, what string, want, got []string) {
	t.Helper()
	sorted := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	if d := cmp.Diff(sorted(want), sorted(got)); d != "" {
		t.Errorf("%s: %s (-want +got):\n%s", p.where, what, d)
	}
}

// unprobed returns facts or names without probes, which differ if all Services share one probe.
func unprobed(facts []string) []string {
	var all []string
	for _, f := range facts {
		f, _, _ = strings.Cut(f, ", probe ")
		f = strings.TrimSuffix(f, ", no probe")
		if !strings.HasPrefix(f, "probe ") && !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all
}

// without removes the lines that contain a word.
func without(text, word string) string {
	if word == "" {
		return text
	}
	lines := strings.Split(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, word) }), "\n")
}

func sameAddress(a, b corev1.LoadBalancerIngress) bool { return a.IP == b.IP }

// kindOf returns the kind of an address.
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
