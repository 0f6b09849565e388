package service_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/testkit"
)

// env lets the scenarios drive the controller through the API server.
func (w *serviceCluster) env() testkit.Env {
	return testkit.Env{
		Azure: w.Client.Fresh(), Group: testkit.Group, SecurityGroup: testkit.SecurityGroup,
		ScaleSets: []azure.ID{testkit.Nodes}, ClusterName: testkit.ClusterName,
		Serve: func(_ context.Context, s *corev1.Service) (*corev1.Service, error) {
			if w.gone(s.Name) {
				w.create(w.newService(s.Name))
				w.settle() // without ports it is refused
			}
			before := w.get(s.Name)
			err := w.apply(s)
			if err == nil {
				return w.get(s.Name), nil
			}
			// What is refused must not be tried again behind the scenario's back.
			if len(before.Spec.Ports) == 0 {
				w.remove(s.Name)
			} else if back := w.apply(before); back != nil {
				w.t.Errorf("%s is not as it was before it was refused: %v", s.Name, back)
			}
			w.settle()
			return nil, err
		},
		Remove: func(_ context.Context, s *corev1.Service) error {
			w.remove(s.Name)
			w.until(s.Name+" is gone", func() bool { return w.gone(s.Name) })
			return nil
		},
	}
}

// apply writes a Service and returns after the event of the outcome. A label that differs between turns causes a pass
// even for an unchanged Service.
func (w *serviceCluster) apply(s *corev1.Service) (refused error) {
	w.t.Helper()
	w.turns++
	seen := len(w.events.list(s.Name))
	w.change(s.Name, func(now *corev1.Service) {
		now.Spec, now.Annotations = s.Spec, s.Annotations
		now.Labels = map[string]string{"turn": fmt.Sprint(w.turns)}
	})
	reported := func() bool {
		for _, e := range w.events.list(s.Name)[seen:] {
			reason, message, _ := strings.Cut(e, ": ")
			switch reason {
			case "EnsuredLoadBalancer":
				return true
			case "SyncLoadBalancerFailed":
				refused = errors.New(message)
				return true
			}
		}
		return false
	}
	w.until(s.Name+" is served or refused", reported)
	return refused
}

func TestExternalService(t *testing.T) {
	for name, o := range map[string]core.Options{
		"at once":                   {},
		"with the latency of Azure": {Latency: 1, Seed: 7},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, o, 3)
				w.start(config())
				testkit.ExternalService(t, w.env())
			})
		})
	}
}

// The local Azure judges what annotations ask for. When everything is as asked for, serving again writes nothing. The
// short run plays each scenario with pools of interfaces, and two of three also with addresses or a shared probe.
func TestServiceScenarios(t *testing.T) {
	shared := &loadbalancer.SharedProbe{Port: 10256, Path: "/healthz"}
	for name, change := range map[string]func(*loadbalancer.Config){
		"interfaces":   func(*loadbalancer.Config) {},
		"addresses":    func(c *loadbalancer.Config) { c.PoolByIP = true },
		"shared probe": func(c *loadbalancer.Config) { c.PoolByIP, c.SharedProbe = true, shared },
	} {
		for i, scenario := range testkit.ServiceScenarios() {
			if scenario.Config != nil && name != "interfaces" || scenario.OwnProbes && name == "shared probe" {
				continue // it says what it needs
			}
			if testing.Short() && (name == "addresses" && i%3 != 0 || name == "shared probe" && i%3 != 1) {
				continue
			}
			t.Run(name+"/"+scenario.Name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newServiceCluster(t, core.Options{}, 2)
					c := config()
					change(&c.LoadBalancer)
					if scenario.Config != nil {
						scenario.Config(&c.LoadBalancer)
					}
					w.start(c)
					env := w.env()
					env.SharedProbe = scenario.Config == nil && c.LoadBalancer.SharedProbe != nil
					scenario.Play(t, env, w.Azure)
				})
			})
		}
	}
}

// Services are spread over two load balancers, move between them with their addresses, and leave nothing. The short
// run plays half of the scenarios that one load balancer can serve, too.
func TestSeveralLoadBalancers(t *testing.T) {
	for i, scenario := range slices.Concat(testkit.SeveralScenarios(), testkit.ServiceScenarios()) {
		alone := func(turn testkit.Turn) bool {
			return slices.Equal(turn.Service.Spec.IPFamilies, []corev1.IPFamily{corev1.IPv6Protocol})
		}
		if scenario.Config != nil || slices.ContainsFunc(scenario.Turns, alone) {
			continue // it says what it needs, or its families are at one load balancer
		}
		if testing.Short() && i > len(testkit.SeveralScenarios()) && i%2 == 0 {
			continue
		}
		t.Run(scenario.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 2)
				w.start(several())
				env := w.env()
				env.OwnPools = true
				scenario.Play(t, env, w.Azure)
			})
		})
	}
}

func several() service.Config {
	c := config()
	c.LoadBalancer.PoolByIP = true
	c.LoadBalancer.Balancers = []loadbalancer.Balancer{
		{Name: testkit.ClusterName, AllowPlacement: true, PrimaryVMSet: testkit.ScaleSet},
		{Name: "lb2", AllowPlacement: true, PrimaryVMSet: "other"},
	}
	return c
}

// With several load balancers, a Service of policy Local has the nodes that have its
// endpoints, however they move.
func TestEndpointsOfServicesOfPolicyLocal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 3)
		w.start(several())
		web := w.newService("web", 80)
		web.Spec.ExternalTrafficPolicy, web.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 32000
		w.create(web)
		w.served("web")
		for _, nodes := range [][]string{{"nodes0-000000"}, {"nodes0-000001", "nodes0-000002"}, {"nodes0-000000", "nodes0-000001"}} {
			w.endpoints("web", nodes...)
			w.settle()
			if got := w.addressesIn("default-web"); got != len(nodes) {
				t.Errorf("its pool has %d addresses, its endpoints are on %v", got, nodes)
			}
			w.Forget()
		}
		w.endpoints("web", "nodes0-000001", "nodes0-000000")
		w.settle()
		if got := w.Writes(); len(got) > 0 {
			t.Errorf("nothing moved, and written was %v", got)
		}
	})
}

// The only Service asks for something impossible. What it has keeps serving: its backends follow the nodes, and for
// policy Local the endpoints.
func TestTheBackendsOfAServiceThatIsRefused(t *testing.T) {
	for _, pool := range []string{testkit.ClusterName, "default-web"} {
		t.Run(pool, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 3)
				c := several()
				c.RepairPeriod = 0
				w.start(c)
				web := w.newService("web", 80)
				if pool != testkit.ClusterName {
					web.Spec.ExternalTrafficPolicy, web.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 32000
				}
				w.create(web)
				w.endpoints("web", "nodes0-000000", "nodes0-000001", "nodes0-000002")
				w.served("web")
				w.settle()
				if got := w.addressesIn(pool); got != 3 {
					t.Fatalf("%d nodes serve it", got)
				}
				w.change("web", annotated("load-balancer-tcp-idle-timeout", "soon"))
				w.reported("web", "SyncLoadBalancerFailed", "idle-timeout")
				if pool == testkit.ClusterName {
					w.removeNode("nodes0-000002")
				} else {
					w.endpoints("web", "nodes0-000000", "nodes0-000001")
				}
				w.settle()
				if got := w.addressesIn(pool); got != 2 {
					t.Errorf("%d nodes serve it, want 2", got)
				}
				w.Forget()
				<-time.After(time.Hour)
				if got := w.Writes(); len(got) > 0 {
					t.Errorf("written was %v for nothing", got)
				}
			})
		})
	}
}

// endpoints tells where a Service's endpoints are.
func (w *serviceCluster) endpoints(name string, nodes ...string) {
	w.t.Helper()
	slice := &discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: corev1.NamespaceDefault, Name: name + "-1", Labels: map[string]string{discovery.LabelServiceName: name},
	}}
	for _, n := range nodes {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{NodeName: &n})
	}
	resource := discovery.SchemeGroupVersion.WithResource("endpointslices")
	if _, err := w.client.Tracker().Get(resource, slice.Namespace, slice.Name); err != nil {
		err = w.client.Tracker().Create(resource, slice, slice.Namespace)
		if err != nil {
			w.t.Fatal(err)
		}
		return
	}
	if err := w.client.Tracker().Update(resource, slice, slice.Namespace); err != nil {
		w.t.Fatal(err)
	}
}

// addressesIn counts the addresses in all pools of a name.
func (w *serviceCluster) addressesIn(pool string) (total int) {
	w.t.Helper()
	for _, lb := range testkit.List[network.LoadBalancer](w.Azure, testkit.Group, network.LoadBalancers) {
		for _, p := range lb.Properties.BackendAddressPools {
			if p.Name == pool {
				total += len(p.Properties.LoadBalancerBackendAddresses)
			}
		}
	}
	return total
}

// A namespace that gets other labels takes its Services to another load balancer, with their addresses, and back.
func TestNamespacesThatAreRelabelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 2)
		c := several()
		c.LoadBalancer.Balancers[1].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceDefault, Labels: map[string]string{"team": "a"}}}
		if err := w.client.Tracker().Add(namespace); err != nil {
			t.Fatal(err)
		}
		before := w.Snapshot()
		w.start(c)
		names := w.createMany(3)
		w.allServed(names)
		addresses := map[string]string{}
		for _, n := range names {
			addresses[n] = w.address(n)
		}
		for _, turn := range []struct{ team, at string }{{"a", testkit.ClusterName}, {"b", "lb2"}, {"c", testkit.ClusterName},
			{"b", "lb2"}} {
			namespace = namespace.DeepCopy()
			namespace.Labels["team"] = turn.team
			if err := w.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("namespaces"), namespace, ""); err != nil {
				t.Fatal(err)
			}
			w.until("team "+turn.team+" is at "+turn.at+" alone", func() bool {
				all := testkit.List[network.LoadBalancer](w.Azure, testkit.Group, network.LoadBalancers)
				return len(all) == 1 && all[0].Name == turn.at && len(all[0].Properties.FrontendIPConfigurations) == len(names)
			})
			w.settle()
			for _, n := range names {
				if got := w.address(n); got != addresses[n] {
					t.Errorf("team %s: %s has the address %q, had %q", turn.team, n, got, addresses[n])
				}
			}
		}
		for _, n := range names {
			w.remove(n)
		}
		w.allGone(names)
		w.restored(before, w.Snapshot)
	})
}

// Informers may show a namespace after its Services. The Services still go to the load balancer of
// the namespace.
func TestANamespaceThatIsKnownLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 2)
		c := several()
		c.RepairPeriod = 0
		c.LoadBalancer.Balancers[1].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}
		w.start(c)
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		address := w.address("web")
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceDefault, Labels: map[string]string{"team": "b"}}}
		if err := w.client.Tracker().Create(corev1.SchemeGroupVersion.WithResource("namespaces"), namespace, ""); err != nil {
			t.Fatal(err)
		}
		w.settle()
		all := testkit.List[network.LoadBalancer](w.Azure, testkit.Group, network.LoadBalancers)
		if len(all) != 1 || all[0].Name != "lb2" || w.address("web") != address {
			t.Errorf("load balancers are %v, the address is %s and was %s", all, w.address("web"), address)
		}
	})
}

// Azure turns pools of interfaces into pools of addresses on request. No machine is written, and no member leaves.
func TestPoolsAreMigratedByAzure(t *testing.T) {
	for _, byAPI := range []bool{true, false} {
		t.Run(fmt.Sprintf("by Azure: %v", byAPI), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1}, 3)
				before := w.Snapshot()
				stop := w.start(config())
				names := w.createMany(3)
				inside := w.newService("inside", 80)
				annotated("load-balancer-internal", "true")(inside)
				w.create(inside)
				names = append(names, "inside")
				w.allServed(names)
				w.settle()
				w.until("all machines are in the pool", func() bool { return w.members() == 3 })
				w.rest(config(), names)
				stop()
				c := config()
				c.LoadBalancer.PoolByIP, c.LoadBalancer.MigrateByAPI = true, byAPI
				w.Reopen()
				w.Forget()
				w.start(c)
				w.until("the pools have addresses", func() bool {
					return w.members() == 0 && w.addressesIn(testkit.ClusterName) == 6
				})
				w.rest(c, names)
				writes := count(w.Writes())
				if byAPI && (len(writes) != 1 || writes["migrateToIpBased"] != 2) {
					t.Errorf("written was %v, want Azure to be asked for both load balancers", writes)
				}
				if !byAPI && writes["migrateToIpBased"] > 0 {
					t.Errorf("written was %v, which no Service asked for", writes)
				}
				for _, n := range names {
					w.remove(n)
				}
				w.allGone(names)
				w.restored(before, w.Snapshot)
			})
		})
	}
}
