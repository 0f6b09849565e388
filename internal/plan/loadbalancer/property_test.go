package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

var names = []string{"a", "b", "c", "d", "e"}

func genService(t *rapid.T, name string) *v1.Service {
	var ports []v1.ServicePort
	for _, p := range rapid.SliceOfNDistinct(rapid.Int32Range(80, 84), 1, 3, rapid.ID).Draw(t, "ports") {
		if rapid.Bool().Draw(t, "tcp") {
			ports = append(ports, tcp(p, 30000+p))
		}
		if len(ports) == 0 || rapid.Bool().Draw(t, "udp") {
			ports = append(ports, udp(p, 31000+p))
		}
	}
	s := service(name, ports...)
	if rapid.Bool().Draw(t, "local") {
		s.Spec.ExternalTrafficPolicy = v1.ServiceExternalTrafficPolicyLocal
		s.Spec.HealthCheckNodePort = rapid.Int32Range(32000, 32002).Draw(t, "health check port")
	}
	s.Spec.LoadBalancerSourceRanges = rapid.SampledFrom([][]string{nil, {"10.0.0.0/8"}, {"0.0.0.0/0"}, {"10.0.0.1/8"}, {"10.0.0.0/9", "10.128.0.0/9"}}).Draw(t, "ranges")
	s.Annotations = rapid.SampledFrom([]map[string]string{
		nil,
		{"service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout": "10"},
		{"service.beta.kubernetes.io/azure-allowed-service-tags": "AzureCloud"},
		{"service.beta.kubernetes.io/port_80_no_probe_rule": "true"},
	}).Draw(t, "annotations")
	return s
}

func genCommit(t *rapid.T, w *world) loadbalancer.Input {
	in := loadbalancer.Input{Config: config(), Nodes: machines(3)}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, len(names), rapid.ID).Draw(t, "of") {
		in.Services = append(in.Services, loadbalancer.Service{Service: genService(t, name), Gone: rapid.Bool().Draw(t, "gone")})
	}
	return in
}

// addForeign puts into the world what others may have in the shared documents.
func addForeign(t *rapid.T, w *world) {
	const theirs = network + "publicIPAddresses/theirs"
	w.put(theirs, parse(`{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"9.9.9.9"}}`))
	fe := `{"id":"` + lbID + `/frontendIPConfigurations/theirs"}`
	lb := parse(`{"location":"westeurope","sku":{"name":"Standard"},"tags":{"x":"y"},"kind":"odd","properties":{
		"frontendIPConfigurations":[{"name":"theirs","zones":["1"],"properties":{"publicIPAddress":{"id":"` + theirs + `"},"gatewayLoadBalancer":{"id":"/subscriptions/s/g"}}}],
		"backendAddressPools":[{"name":"pool","properties":{"drainPeriodInSeconds":60.5}}],
		"loadBalancingRules":[{"name":"rule","properties":{"protocol":"Tcp","frontendPort":1.0,"backendPort":2,"odd":[{"x":null}],"frontendIPConfiguration":` + fe + `,"probe":{"id":"` + lbID + `/probes/probe"}}}],
		"probes":[{"name":"probe","properties":{"protocol":"Http","port":1,"requestPath":"/","odd":{}}}],
		"outboundRules":[{"name":"aksOutboundRule","properties":{"protocol":"All","frontendIPConfigurations":[` + fe + `]}}],
		"inboundNatRules":[{"name":"nat","properties":{"protocol":"Tcp","frontendPort":22,"frontendIPConfiguration":` + fe + `}}]}}`)
	for _, list := range []string{"loadBalancingRules", "probes", "inboundNatRules"} {
		if rapid.Bool().Draw(t, "no "+list) {
			delete(sub(lb, "properties"), list)
		}
	}
	w.put(lbID, lb)
	nsg := w.docs[azure.ID(nsgID).Key()]
	rules := sub(nsg, "properties")["securityRules"].([]any)
	for i, dst := range rapid.SliceOfN(rapid.SampledFrom([]string{`"destinationAddressPrefix":"20.1.0.2"`, `"destinationAddressPrefixes":["20.1.0.3","8.8.8.8"]`, `"destinationAddressPrefix":"*","odd":1`}), 0, 4).Draw(t, "rules") {
		prefix := rapid.SampledFrom([]string{"theirs", "k8s-azure-lb-like"}).Draw(t, "rule name")
		priority := rapid.SampledFrom([]int{100, 300}).Draw(t, "priority") + i
		rules = append(rules, parse(fmt.Sprintf(`{"name":"%s-%d","properties":{"priority":%d,"direction":"Inbound","access":"Deny","protocol":"*","sourceAddressPrefix":"*","sourcePortRange":"*","destinationPortRange":"1-9",%s}}`, prefix, i, priority, dst)))
	}
	sub(nsg, "properties")["securityRules"] = rules
	w.put(nsgID, nsg)
}

// foreign is what nobody but its owner may change, as text.
func foreign(w *world) map[string]string {
	w.settle()
	out := map[string]string{}
	for _, id := range []string{lbID, nsgID, network + "publicIPAddresses/theirs"} {
		o := parse(string(text(w.docs[azure.ID(id).Key()])))
		for kind, list := range sub(o, "properties") {
			children, _ := list.([]any)
			for _, c := range children {
				name := c.(object)["name"].(string)
				if !ours(name) {
					out[id+"/"+kind+"/"+name] = string(text(c))
				}
			}
			if _, isList := list.([]any); !isList {
				out[id+"/"+kind] = string(text(list))
			}
		}
		delete(o, "properties")
		delete(o, "etag")
		out[id] = string(text(o))
	}
	return out
}

// ours reports whether a sub-resource belongs to one of the Services, to the cluster
// or to the managed rules.
func ours(name string) bool {
	if name == "kubernetes" || strings.HasPrefix(name, "k8s-azure-lb_") {
		return true
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return strings.HasPrefix(name, "a"+strings.ReplaceAll(string(service(n).UID), "-", "")[:31])
	})
}

// state is all of Azure without etags and without empty lists, which mean the same
// as no list.
func state(w *world) map[string]any {
	w.settle()
	out := map[string]any{}
	for k, o := range w.docs {
		c := parse(string(text(o)))
		delete(c, "etag")
		out[k] = withoutEmpty(c)
	}
	return out
}

func withoutEmpty(x any) any {
	switch x := x.(type) {
	case object:
		for k, v := range x {
			if list, ok := v.([]any); ok && len(list) == 0 {
				delete(x, k)
				continue
			}
			x[k] = withoutEmpty(v)
		}
	case []any:
		for i := range x {
			x[i] = withoutEmpty(x[i])
		}
	}
	return x
}

// Whatever Services come, change and go: each commit is at rest when it is done,
// what is others' is byte for byte as it was, and when the last Service is gone Azure
// is as it was before the first; also when steps fail on the way.
func TestCommits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(3)
		shared := rapid.Bool().Draw(t, "shared with others")
		if shared {
			addForeign(t, w)
		}
		before, theirs := state(w), map[string]string{}
		if shared {
			theirs = foreign(w)
		}
		last := map[string]*v1.Service{}
		for range rapid.IntRange(1, 4).Draw(t, "commits") {
			in := genCommit(t, w)
			for _, s := range in.Services {
				last[s.Name] = s.Service
			}
			for range rapid.IntRange(0, 2).Draw(t, "failures") {
				interrupt(t, w, in)
			}
			settle(t, w, in)
			if shared {
				if d := cmp.Diff(theirs, foreign(w)); d != "" {
					t.Fatal("what is others' changed:\n" + d)
				}
			}
			checkServed(t, w, in)
		}
		gone := loadbalancer.Input{Config: config(), Nodes: machines(3)}
		for _, name := range slices.Sorted(maps.Keys(last)) {
			gone.Services = append(gone.Services, loadbalancer.Service{Service: last[name], Gone: true})
		}
		settle(t, w, gone)
		after := state(w)
		if shared { // the pool may stay, and the nodes in it
			dropPool(before)
			dropPool(after)
		}
		if d := cmp.Diff(before, after); d != "" {
			t.Fatal("something is left behind (-before +after):\n" + d)
		}
	})
}

// dropPool takes the cluster's pool and who is in it out of a state.
func dropPool(state map[string]any) {
	for key, o := range state {
		if strings.Contains(key, "/virtualmachinescalesets/") {
			delete(state, key)
		}
		if key == azure.ID(lbID).Key() {
			p := sub(o.(object), "properties")
			p["backendAddressPools"] = slices.DeleteFunc(p["backendAddressPools"].([]any), func(x any) bool { return x.(object)["name"] == "kubernetes" })
		}
	}
}

// interrupt begins a commit of which some steps fail, and with them those that wait
// for them.
func interrupt(t *rapid.T, w *world, in loadbalancer.Input) {
	in.Have = w.snapshot()
	g, _, err := loadbalancer.Desired(in)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Diff(in.Have, g)
	if err != nil {
		t.Fatal(err)
	}
	failed := map[int]bool{}
	for i, s := range p.Steps {
		failed[i] = rapid.Bool().Draw(t, "step fails") || slices.ContainsFunc(s.After, func(j int) bool { return failed[j] })
		if failed[i] {
			continue
		}
		if err := w.step(s); err != nil {
			t.Fatalf("%s: %v\n%v", s, err, p)
		}
	}
}

func settle(t *rapid.T, w *world, in loadbalancer.Input) {
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatalf("%v\n%v", err, rounds[len(rounds)-1].plan)
	}
	again, err := w.commit(in)
	if err != nil || writes(again) > 0 {
		t.Fatalf("not at rest: %v\n%v", err, again[len(again)-1].plan)
	}
}

// checkServed sees that each live Service has an address of its own, a rule for each
// port and a security rule that lets its packets in, and that gone ones have nothing.
func checkServed(t *rapid.T, w *world, in loadbalancer.Input) {
	in.Have = w.snapshot()
	status, err := loadbalancer.Status(in)
	if err != nil {
		t.Fatal(err)
	}
	there, err := loadbalancer.InPlace(in)
	if err != nil {
		t.Fatal(err)
	}
	taken := map[string]bool{}
	for _, s := range in.Services {
		if there[s.Key()] == s.Gone {
			t.Fatalf("%s: gone is %v, in place is %v", s.Key(), s.Gone, there[s.Key()])
		}
		if s.Gone {
			continue
		}
		if len(status[s.Key()]) != 1 || taken[status[s.Key()][0].IP] {
			t.Fatalf("%s has the status %v", s.Key(), status[s.Key()])
		}
		address := status[s.Key()][0].IP
		taken[address] = true
		for _, p := range s.Spec.Ports {
			broken := slices.Equal(s.Spec.LoadBalancerSourceRanges, []string{"10.0.0.1/8"}) && s.Annotations["service.beta.kubernetes.io/azure-allowed-service-tags"] == ""
			if admits(w, address, p) == broken {
				t.Fatalf("%s/%d into %s at %s: admitted is %v", p.Protocol, p.Port, s.Key(), address, !broken)
			}
		}
	}
}

func admits(w *world, address string, port v1.ServicePort) bool {
	for _, r := range children(sub(w.docs[azure.ID(nsgID).Key()], "properties"), "securityRules") {
		p := sub(r, "properties")
		to := fmt.Sprint(p["destinationAddressPrefix"], p["destinationAddressPrefixes"])
		if p["access"] == "Allow" && strings.EqualFold(p["protocol"].(string), string(port.Protocol)) &&
			slices.Contains(strings.FieldsFunc(to, func(r rune) bool { return r == '[' || r == ']' || r == ' ' }), address) &&
			slices.Contains(p["destinationPortRanges"].([]any), any(fmt.Sprint(port.Port))) {
			return true
		}
	}
	return false
}

// Desired does not depend on the order in which Services are given, nor change what
// it is given.
func TestDesiredIsAFunctionOfItsInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(3)
		settle(t, w, genCommit(t, w))
		in := genCommit(t, w)
		in.Have = w.snapshot()
		before := state(w)
		var plans []string
		for range 2 {
			g, _, err := loadbalancer.Desired(in)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Diff(in.Have, g)
			if err != nil {
				t.Fatal(err)
			}
			plans = append(plans, p.String())
			slices.Reverse(in.Services)
		}
		if plans[0] != plans[1] {
			t.Fatal("two plans for one input:\n" + cmp.Diff(plans[0], plans[1]))
		}
		if d := cmp.Diff(before, state(w)); d != "" {
			t.Fatal("the snapshot was changed:\n" + d)
		}
	})
}
