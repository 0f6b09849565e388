package loadbalancer_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/problem"
)

// TestAServiceWithoutMembers checks that a Service is warned with the cause when no node can join its backend pool, and is
// not while one node can.
func TestAServiceWithoutMembers(t *testing.T) {
	const other = network + "loadBalancers/dev-out-lb/backendAddressPools/nodes"
	for name, c := range map[string]struct {
		taken []string // network interfaces in the other load balancer
		edit  func(*loadbalancer.Input)
		want  string
	}{
		"all nodes are in another load balancer": {taken: []string{"first", "second"},
			want: "no node is in backend pool kubernetes of load balancer kubernetes, so no node answers: node m0, first of 2: it is in pool " +
				"nodes of load balancer dev-out-lb already, so it stays out of kubernetes"},
		"one node is": {taken: []string{"first"}},
		"the machines have no IPv6": {
			edit: func(in *loadbalancer.Input) {
				in.Services[0].Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol}
			},
			want: "no node is in backend pool kubernetes-IPv6 of load balancer kubernetes, so no node answers: node m0, first of 2: it has no " +
				"primary network interface with an IPv6 configuration, so it stays out of the backend pool kubernetes-IPv6"},
		"the machines are elsewhere": {edit: func(in *loadbalancer.Input) {
			for _, n := range in.Nodes {
				n.Spec.ProviderID = strings.Replace(n.Spec.ProviderID, "/resourceGroups/rg/", "/resourceGroups/far/", 1)
			}
		}, want: "no node is in backend pool kubernetes of load balancer kubernetes, so no node answers: node m0, first of 2: its machine " +
			strings.Replace(compute, "/rg/", "/far/", 1) + "virtualMachines/m0 is not in resource group rg"},
	} {
		t.Run(name, func(t *testing.T) {
			w, s := newSubscription(0), service("web", tcp(80, 30080))
			in := loadbalancer.Input{Config: config(), Complete: true, Services: []loadbalancer.Service{{Service: s}}}
			in.Nodes = []*v1.Node{w.addAlone("m0", "10.0.7.1", "rg/first"), w.addAlone("m1", "10.0.7.2", "rg/second")}
			for _, nic := range c.taken {
				doc := w.docs[azure.ID(network+"networkInterfaces/"+nic).Key()]
				ip := children(sub(doc, "properties"), "ipConfigurations")[0]
				sub(ip, "properties")["loadBalancerBackendAddressPools"] = []any{map[string]any{"id": other}}
			}
			if c.edit != nil {
				c.edit(&in)
			}
			in.Have = gather(in, w.snapshot())
			r, err := decided(in)
			if err != nil {
				t.Fatal(err)
			}
			var want []plan.Problem
			if c.want != "" {
				want = []plan.Problem{{Object: "default/web", Reason: problem.NoNodes, Message: c.want, Warning: true}}
			}
			got := slices.DeleteFunc(slices.Clone(r.problems), func(p plan.Problem) bool { return p.Object != "default/web" })
			if !slices.Equal(got, want) {
				t.Errorf("problems are\n%+v, want\n%+v", got, want)
			}
		})
	}
}
