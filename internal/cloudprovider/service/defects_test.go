package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// TestAllowedSourcesAreReported checks D3: unusual allowed sources of a Service are reported when it
// is created, and when it changes.
func TestAllowedSourcesAreReported(t *testing.T) {
	odd := map[string]func(*corev1.Service){
		"InvalidSourceRanges": func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8", "10.0.0.1/8"}
		},
		"InvalidAllowedIPRanges": func(s *corev1.Service) { notes{"azure-allowed-ip-ranges": "10.0.0.0/8, 10.0.0.1/8"}.at(s) },
		"ConflictConfiguration": func(s *corev1.Service) {
			s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
			notes{"azure-allowed-service-tags": "AzureCloud"}.at(s)
		},
	}
	for reason, make := range odd {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 1)
				w.start(config())
				fresh := w.newService("fresh", 80)
				make(fresh)
				w.create(fresh)
				w.create(w.newService("changed", 81))
				w.allServed([]string{"fresh", "changed"})
				w.change("changed", make)
				w.settle()
				for _, name := range []string{"fresh", "changed"} {
					reported := w.events.reasons(name)
					if n := len(reported) - len(slices.DeleteFunc(slices.Clone(reported),
						func(r string) bool { return r == reason })); n != 1 {
						t.Errorf("%s got %q, want %s once", name, reported, reason)
					}
				}
			})
		})
	}
}

// D6 and D18. Nodes change while Services come and go and machines are written side by side. The race detector finds
// what they share without a lock.
func TestNodesChangeWhileServicesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 6
		w := newServiceCluster(t, core.Options{Latency: 1}, nodes)
		w.start(config())
		var names []string
		for i := range 3 * nodes {
			name := fmt.Sprint("web-", i)
			names = append(names, name)
			w.create(w.newService(name, 80))
			w.exclude(fmt.Sprintf("nodes0-%06d", i%nodes), fmt.Sprint(i < 2*nodes && i%2 == 0))
		}
		w.allServed(names)
		w.settle()
		if w.members() != nodes {
			t.Errorf("%d nodes are in the pool, want %d", w.members(), nodes)
		}
		for i, name := range names {
			w.remove(name)
			w.exclude(fmt.Sprintf("nodes0-%06d", i%nodes), "true")
		}
		w.allGone(names)
	})
}

// D19. A node that was excluded and deleted, and comes back under its name, is a node like others.
func TestANodeComesBackUnderItsName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 3)
		w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		const name = "nodes0-000001"
		resource := corev1.SchemeGroupVersion.WithResource("nodes")
		o, err := w.client.Tracker().Get(resource, "", name)
		if err != nil {
			t.Fatal(err)
		}
		w.exclude(name, "true")
		w.settle()
		if w.members() != 2 {
			t.Fatalf("%d nodes are in the pool, want 2: it is excluded", w.members())
		}
		if err := w.client.Tracker().Delete(resource, "", name); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if err := w.client.Tracker().Add(o.DeepCopyObject()); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if w.members() != 3 {
			t.Errorf("%d nodes are in the pool, want 3", w.members())
		}
	})
}

// D23. With several load balancers, the nodes stay where they are if the first work of a controller
// after a restart is a deletion.
func TestADeletionAfterARestartLeavesTheNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 4)
		c := several()
		for i := range c.LoadBalancer.Balancers {
			c.LoadBalancer.Balancers[i].PrimaryVMSet = fmt.Sprint("set", i) // nodes are spread by number
		}
		stop := w.start(c)
		for i, lb := range []string{"kubernetes", "lb2", "kubernetes", "lb2"} {
			name := fmt.Sprint("web-", i)
			w.create(notes{"azure-load-balancer-configurations": lb}.at(w.newService(name, int32(80+i))))
			w.served(name)
		}
		w.settle()
		before := w.poolsByNode()
		if len(before) != 4 {
			t.Fatalf("nodes are at %v", before)
		}
		stop()
		w.remove("web-1")
		w.Reopen()
		w.start(c)
		w.allGone([]string{"web-1"})
		w.settle()
		if after := w.poolsByNode(); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("nodes are at %v, and were at %v", after, before)
		}
	})
}

// D14. All slices of a Service count, also slices that come later. A node that one slice gives up and another slice
// has stays. An endpoint without a node does not count. A write that fails is repeated.
func TestEndpointsInSeveralSlices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 3)
		w.start(several())
		web := w.newService("web", 80)
		web.Spec.ExternalTrafficPolicy, web.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 32000
		w.create(web)
		w.served("web")
		resource := discovery.SchemeGroupVersion.WithResource("endpointslices")
		slice := func(name string, nodes ...string) *discovery.EndpointSlice {
			one := &discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
				Namespace: corev1.NamespaceDefault, Name: name, Labels: map[string]string{discovery.LabelServiceName: "web"},
			}}
			for _, n := range nodes {
				one.Endpoints = append(one.Endpoints, discovery.Endpoint{NodeName: &n})
			}
			return one
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			w.settle()
		}
		check := func(what string, want ...string) {
			t.Helper()
			var got []string
			for _, lb := range testkit.List[network.LoadBalancer](w.Azure, testkit.Group, network.LoadBalancers) {
				for _, p := range lb.Properties.BackendAddressPools {
					for _, m := range p.Properties.LoadBalancerBackendAddresses {
						if p.Name == "default-web" {
							got = append(got, m.Name)
						}
					}
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s: in the pool are %q, want %q", what, got, want)
			}
		}
		const first, second, third = "nodes0-000000", "nodes0-000001", "nodes0-000002"
		must(w.client.Tracker().Create(resource, slice("web-1", first, second, ""), corev1.NamespaceDefault))
		check("one slice", first, second)
		must(w.client.Tracker().Create(resource, slice("web-2", second, third), corev1.NamespaceDefault))
		check("another comes", first, second, third)
		must(w.SetFaults([]core.Fault{{Method: "PUT", Type: network.LoadBalancers, Times: 1, Fault: "error", Status: 500,
			Code: "InternalServerError"}}))
		must(w.client.Tracker().Update(resource, slice("web-1", first), corev1.NamespaceDefault))
		check("one gives up what the other has", first, second, third)
		must(w.client.Tracker().Delete(resource, corev1.NamespaceDefault, "web-2"))
		check("the other goes", first)
	})
}

// poolsByNode says at which load balancer each node's address is.
func (w *serviceCluster) poolsByNode() map[string]string {
	w.t.Helper()
	at := map[string]string{}
	for _, lb := range testkit.List[network.LoadBalancer](w.Azure, testkit.Group, network.LoadBalancers) {
		for _, p := range lb.Properties.BackendAddressPools {
			for _, m := range p.Properties.LoadBalancerBackendAddresses {
				at[m.Properties.IPAddress] = strings.TrimSpace(at[m.Properties.IPAddress] + " " + lb.Name)
			}
		}
	}
	return at
}

// Azure has no security rule from one address family to the other. A Service with both families has a range among its
// service tags. The range applies to its address of the same family, and the security group can still be written for
// all Services.
func TestARangeAmongServiceTagsIsOfOneFamily(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{Latency: 1})
		w.start(config())
		both := w.newService("both", 80)
		kinds["dual"](both)
		notes{"azure-allowed-service-tags": "AzureCloud,198.51.100.0/24"}.at(both)
		w.create(both)
		w.create(w.newService("web", 81))
		w.served("web")
		w.until("both has its addresses", func() bool { return len(w.get("both").Status.LoadBalancer.Ingress) == 2 })
	})
}
