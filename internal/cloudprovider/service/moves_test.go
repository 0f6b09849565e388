package service_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// moves take Services of many kinds from one load balancer to another one, all at once.
var moves = map[string]struct {
	first, then func() service.Config
	label       string // that Services have from then on
	at          string // where they are then
}{
	"labelled otherwise":        {selective, selective, "two", "lb2"},
	"several are given up":      {func() service.Config { return renamed("lb2") }, ofAddresses, "two", testkit.ClusterName},
	"given up with other pools": {func() service.Config { return renamed("lb2") }, config, "two", testkit.ClusterName},
	"several come":              {ofAddresses, selective, "two", "lb2"},
	"several come, other pools": {config, selective, "two", "lb2"},
	"another name": {func() service.Config { return renamed("lb2") }, func() service.Config { return renamed("lb3") },
		"two", "lb3"},
	"several, and they stay here": {config, selective, "one", testkit.ClusterName},
}

// selective is several load balancers, each of which has Services of one label.
func selective() service.Config {
	c := several()
	for i, label := range []string{"one", "two"} {
		c.LoadBalancer.Balancers[i].ServiceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"lb": label}}
	}
	c.LoadBalancer.Balancers[1].PrimaryVMSet = secondSet.Name()
	return c
}

// renamed is selective with another name of the second load balancer, which has all Services.
func renamed(name string) service.Config {
	c := selective()
	c.LoadBalancer.Balancers[0].AllowPlacement, c.LoadBalancer.Balancers[1].Name,
		c.LoadBalancer.Balancers[1].ServiceSelector = false, name, nil
	return c
}

func ofAddresses() service.Config {
	c := config()
	c.LoadBalancer.PoolByIP = true
	return c
}

// Services move to another load balancer, and the controller ends after any one write of the move. The next
// controller completes the move. No Service loses an address, and nothing is left behind.
func TestMovesOutliveAController(t *testing.T) {
	for name, move := range moves {
		for _, method := range []string{"PUT", "DELETE"} {
			if testing.Short() && method == "DELETE" {
				continue // what is deleted comes last
			}
			t.Run(name+"/"+method, func(t *testing.T) {
				t.Parallel()
				stride := 1
				if testing.Short() {
					stride = 2
				}
				for nth := 1; ; nth += stride {
					happened := false
					t.Run(fmt.Sprint("write ", nth), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							happened = moved(t, move.first(), move.then(), move.label, move.at,
								core.Fault{Method: method, Nth: nth, Times: 1, Fault: core.FaultCrash})
						})
					})
					if !happened {
						return
					}
				}
			})
		}
	}
}

func moved(t *testing.T, first, then service.Config, label, at string, fault core.Fault) (happened bool) {
	crashes := make(crashes, 1)
	w := newServiceCluster(t, core.Options{Latency: 1, Crash: crashes.note}, 2)
	w.AddScaleSet(secondSet.Name(), testkit.Uniform, 2, "1")
	for _, vm := range testkit.List[compute.Instance](w.Azure, secondSet, compute.ScaleSetInstances) {
		w.addNode(vm)
	}
	if err := w.client.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceDefault}}); err != nil {
		t.Fatal(err)
	}
	before := w.Snapshot()
	stop := w.start(first)
	add := func(name string, port int32, edit func(*corev1.Service)) {
		s := w.newService(name, port)
		edit(s)
		s.Labels = map[string]string{"lb": "one"}
		w.create(s)
		w.served(name)
	}
	add("web", 80, plain)
	add("guest", 81, func(s *corev1.Service) { s.Spec.LoadBalancerIP = w.address("web") })
	add("local", 82, func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 32000
	})
	w.endpoints("local", firstNodes[0], secondNodes[0])
	add("inside", 83, annotated("load-balancer-internal", "true"))
	w.settle()
	names := []string{"web", "guest", "local", "inside"}
	addresses := map[string]string{}
	for _, n := range names {
		addresses[n] = w.address(n)
	}
	stop()
	w.Reopen()
	if err := w.SetFaults([]core.Fault{fault}); err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		w.change(n, labelled("lb", label))
	}
	end := w.startAgainWith(then, crashes, func() { happened = true })
	w.settle()
	end()
	w.settle()
	now := map[string]string{}
	for _, n := range names {
		now[n] = w.address(n)
	}
	if !maps.Equal(now, addresses) {
		t.Errorf("addresses are %v, and were %v", now, addresses)
	}
	w.movedTo(at, names)
	for _, n := range names {
		w.remove(n)
	}
	w.allGone(names)
	w.restored(before, w.Snapshot)
	return happened
}

// movedTo checks that the rules of all Services are at one load balancer, or its internal sibling. No other load
// balancer and no pool without a rule may exist.
func (w *serviceCluster) movedTo(at string, names []string) {
	w.t.Helper()
	rules := 0
	for _, lb := range testkit.List[network.LoadBalancer](w.Azure, testkit.Group, network.LoadBalancers) {
		if strings.TrimSuffix(lb.Name, "-internal") != at {
			w.t.Errorf("there is load balancer %s", lb.Name)
		}
		rules += len(lb.Properties.LoadBalancingRules)
		led := map[string]bool{}
		for _, r := range lb.Properties.LoadBalancingRules {
			led[r.Properties.BackendAddressPool.ID.Name()] = true
		}
		for _, p := range lb.Properties.BackendAddressPools {
			if !led[p.Name] {
				w.t.Errorf("no rule uses pool %s of %s", p.Name, lb.Name)
			}
		}
	}
	if rules != len(names) {
		w.t.Errorf("there are %d rules", rules)
	}
}

// The nodes have as many rules as Azure allows. A Service can still move to the other kind of load balancer, because
// it leaves the old one first.
func TestAServiceMovesWhereNodesAreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 2)
		w.start(config())
		for i, name := range []string{"a", "b"} {
			s := w.newService(name, 1)
			s.Spec.Ports = nil
			for p := range int32(150) {
				addPort(s, p+1+int32(i)*200, corev1.ProtocolTCP)
			}
			if i == 1 {
				annotated("load-balancer-internal", "true")(s)
			}
			w.create(s)
		}
		w.allServed([]string{"a", "b"})
		for _, internal := range []string{"false", "true"} {
			was := w.address("b")
			w.change("b", annotated("load-balancer-internal", internal))
			w.until("b moved", func() bool { return w.address("b") != was && w.address("b") != "" })
		}
	})
}
