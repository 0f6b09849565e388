package service_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// readdress gives nodes other addresses, one after the other.
func (w *serviceCluster) readdress(addresses ...string) {
	w.t.Helper()
	nodes := slices.Sorted(maps.Keys(w.nodesByName()))
	for i, address := range addresses {
		w.editNode(nodes[i], func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		})
	}
}

// listed are the addresses in the pool.
func (w *serviceCluster) listed() (addresses []string) {
	w.t.Helper()
	for _, p := range testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer).Properties.BackendAddressPools {
		for _, m := range p.Properties.LoadBalancerBackendAddresses {
			addresses = append(addresses, m.Properties.IPAddress)
		}
	}
	slices.Sort(addresses)
	return addresses
}

// A node has an address of another network, which Azure takes into no pool. A load balancer is written as a whole,
// but the other nodes serve the Services all the same. When the node gets another address, or the network becomes
// larger, the node serves, too.
func TestNodesOfAnotherNetwork(t *testing.T) {
	for name, repair := range map[string]func(w *serviceCluster){
		"gets an address": func(w *serviceCluster) { w.readdress("10.240.0.200") },
		"network grows": func(w *serviceCluster) {
			w.byHand(testkit.VNet, func(p object) {
				p["addressSpace"] = object{"addressPrefixes": []any{"10.0.0.0/8", "192.168.0.0/16", "fd00::/48"}}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1}, 4)
				c := repairing()
				c.LoadBalancer.PoolByIP = true
				w.start(c)
				w.create(w.newService("web", 80))
				w.served("web")
				good := w.listed()
				w.events.forget()

				w.readdress("192.168.77.7", "192.168.77.8")
				w.create(w.newService("other", 81))
				w.served("other")
				w.settle()
				if len(good) != 4 || !slices.Equal(w.listed(), good[2:]) {
					t.Errorf("in the pool are %q, want %q", w.listed(), good[2:])
				}
				for _, address := range []string{"192.168.77.7", "192.168.77.8"} {
					reported := slices.DeleteFunc(w.events.list(""), func(e string) bool {
						return !strings.HasPrefix(e, "NodeNotJoined: its address "+address+" stays out")
					})
					if len(reported) != 1 {
						t.Errorf("of %s got %q", address, reported)
					}
				}
				for _, line := range w.events.list("") {
					if strings.Contains(line, "Failed") {
						t.Errorf("got %q", line)
					}
				}
				w.Forget()
				w.change("web", func(s *corev1.Service) { s.Annotations = map[string]string{"turn": "1"} })
				w.settle()
				if writes := w.Writes(); len(writes) > 0 {
					t.Errorf("to look again tried %q", writes)
				}

				repair(w)
				<-time.After(c.RepairPeriod + time.Minute)
				w.settle()
				if got := len(w.listed()); got < 3 || name == "network grows" && got != 4 {
					t.Errorf("in the pool are %q", w.listed())
				}
			})
		})
	}
}

// TestAllNodesOfAnotherNetwork checks that the Services get a problem if Azure rejects the addresses of all nodes.
// Then no single node is at fault. The members stay as they are.
func TestAllNodesOfAnotherNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 2)
		c := config()
		c.LoadBalancer.PoolByIP = true
		w.readdress("192.168.77.7", "192.168.77.8")
		w.start(c)
		w.create(w.newService("web", 80))
		w.until("the problem is reported", func() bool {
			return slices.ContainsFunc(w.events.list("web"), func(e string) bool {
				return strings.HasPrefix(e, "SyncLoadBalancerFailed") && strings.Contains(e, "192.168.77.")
			})
		})
		if w.address("web") != "" {
			t.Error("no node serves it, and it says that it is served")
		}
		w.readdress("10.240.0.200", "10.240.0.201")
		w.served("web")
		if got := w.listed(); !slices.Equal(got, []string{"10.240.0.200", "10.240.0.201"}) {
			t.Errorf("in the pool are %q", got)
		}
	})
}
