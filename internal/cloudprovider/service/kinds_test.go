package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/nodes"
	"kaz/internal/testkit"
)

// addMachineNode registers the node of a machine with a resource of its own.
func (w *serviceCluster) addMachineNode(vm azure.Resource[compute.Instance]) string {
	w.t.Helper()
	id, err := nodes.ProviderID(vm.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodes.NodeName(vm)}, Spec: corev1.NodeSpec{ProviderID: id}}
	for _, ref := range vm.Properties.NetworkProfile.NetworkInterfaces {
		for _, c := range testkit.Must[network.Interface](w.Azure, ref.ID).Properties.IPConfigurations {
			n.Status.Addresses = append(n.Status.Addresses,
				corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: c.Properties.PrivateIPAddress})
		}
	}
	if err := w.client.Tracker().Add(n); err != nil {
		w.t.Fatal(err)
	}
	return n.Name
}

// kindsCluster is a cluster with count instances of a Uniform scale set, and with two machines of each other kind.
func kindsCluster(t *testing.T, count int) (w *serviceCluster, names []string) {
	t.Helper()
	w = newServiceCluster(t, core.Options{}, count)
	w.AddScaleSet("flex", testkit.Flexible, 2, "1", "2")
	set := w.AddAvailabilitySet("as")
	w.AddMachine(testkit.VirtualMachine{Name: "member0", AvailabilitySet: set})
	w.AddMachine(testkit.VirtualMachine{Name: "member1", AvailabilitySet: set})
	w.AddMachine(testkit.VirtualMachine{Name: "alone0", Zone: "1"})
	w.AddMachine(testkit.VirtualMachine{Name: "alone1", Zone: "2"})
	for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Group, compute.VirtualMachines) {
		names = append(names, w.addMachineNode(vm))
	}
	w.Forget()
	return w, names
}

// inPool lists the members of the cluster's pool, by the interface's or instance's name.
func (w *serviceCluster) inPool() []string {
	w.t.Helper()
	var all []string
	lb, ok := testkit.Read[network.LoadBalancer](w.Azure, testkit.LoadBalancer)
	if !ok {
		return nil
	}
	for _, pool := range lb.Properties.BackendAddressPools {
		for _, c := range pool.Properties.BackendIPConfigurations {
			holder := c.ID.Parent()
			if !holder.Is(network.Interfaces) {
				holder = holder.Parent()
			}
			all = append(all, holder.Name())
		}
	}
	slices.Sort(all)
	return all
}

// modelsIn counts the scale sets that create new machines in a pool.
func (w *serviceCluster) modelsIn() (count int) {
	w.t.Helper()
	for _, set := range testkit.List[compute.ScaleSet](w.Azure, testkit.Group, compute.ScaleSets) {
		for _, card := range set.Properties.VirtualMachineProfile.NetworkProfile.NetworkInterfaceConfigurations {
			for _, c := range card.Properties.IPConfigurations {
				count += len(c.Properties.LoadBalancerBackendAddressPools)
			}
		}
	}
	return count
}

// Machines of every kind are in the backend pool: Uniform instances by their own
// model, all others by their network interface, and a Flexible scale set's model too.
func TestBackendsOfEveryKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const uniform = 2
		w, names := kindsCluster(t, uniform)
		w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		if got := w.inPool(); len(got) != uniform+len(names) {
			t.Errorf("in the pool: %v", got)
		}
		if got := w.modelsIn(); got != 2 {
			t.Errorf("%d models are in the pool", got)
		}
		writes := count(w.Writes())
		interfaces := 0
		for name, n := range writes {
			if strings.Contains(name, "nic") {
				interfaces += n
			}
		}
		if interfaces != len(names) {
			t.Errorf("writes: %v", writes)
		}

		// 72, D9: an excluded node leaves, whatever its kind.
		w.Forget()
		w.exclude("alone0", "true")
		w.exclude("member1", "true")
		w.settle()
		if got := w.inPool(); len(got) != uniform+len(names)-2 ||
			slices.ContainsFunc(got, func(n string) bool { return strings.HasPrefix(n, "alone0") || strings.HasPrefix(n, "member1") }) {
			t.Errorf("in the pool: %v", got)
		}
		if writes := count(w.Writes()); len(writes) != 2 {
			t.Errorf("writes: %v", writes)
		}
		w.exclude("alone0", "false")
		w.settle()
		if got := w.inPool(); len(got) != uniform+len(names)-1 {
			t.Errorf("in the pool: %v", got)
		}

		// 74: a new machine costs its interface's write, and no write of the load balancer.
		w.Forget()
		id := w.AddMachine(testkit.VirtualMachine{Name: "alone2", Zone: "3"})
		w.Forget()
		w.addMachineNode(testkit.Must[compute.Instance](w.Azure, id))
		w.settle()
		if writes := count(w.Writes()); len(writes) != 1 || writes["alone2-nic"] != 1 {
			t.Errorf("writes for a new machine: %v", writes)
		}

		// 75: a machine that another client deletes can leave its interface in the pool.
		other := w.OtherClient()
		if err := other.Delete(t.Context(), testkit.Group.Resource(compute.VirtualMachines, "alone2")); err != nil {
			t.Fatal(err)
		}
		if err := w.client.CoreV1().Nodes().Delete(t.Context(), "alone2", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if got := w.inPool(); slices.ContainsFunc(got, func(n string) bool { return strings.HasPrefix(n, "alone2") }) {
			t.Errorf("in the pool: %v", got)
		}

		// 2: all members leave with the last Service, and Azure is as it was.
		w.remove("web")
		w.until("web is gone", func() bool { return w.gone("web") })
		w.settle()
		if got := w.inPool(); len(got) > 0 || w.modelsIn() > 0 {
			t.Errorf("in the pool: %v, and %d models", got, w.modelsIn())
		}
		for _, nic := range testkit.List[network.Interface](w.Azure, testkit.Group, network.Interfaces) {
			for _, c := range nic.Properties.IPConfigurations {
				if len(c.Properties.LoadBalancerBackendAddressPools) > 0 {
					t.Errorf("%s is still in %v", nic.Name, c.Properties.LoadBalancerBackendAddressPools)
				}
			}
		}
		if _, there := testkit.Read[network.LoadBalancer](w.Azure, testkit.LoadBalancer); there {
			t.Error("the load balancer is still there")
		}
	})
}

// Each cluster has machines of one kind only. Both kinds of pool are tested.
func TestBackendsOfOneKind(t *testing.T) {
	for _, kind := range []string{"flex", "member", "alone"} {
		for _, byAddress := range []bool{false, true} {
			name := kind + " by interface"
			if byAddress {
				name = kind + " by address"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, names := kindsCluster(t, 0)
					mine := slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, kind) })
					nodes, err := w.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
					if err != nil {
						t.Fatal(err)
					}
					for _, n := range nodes.Items {
						if !slices.Contains(mine, n.Name) {
							if err := w.client.CoreV1().Nodes().Delete(t.Context(), n.Name, metav1.DeleteOptions{}); err != nil {
								t.Fatal(err)
							}
						}
					}
					c := config()
					c.LoadBalancer.PoolByIP = byAddress
					w.start(c)
					w.create(w.newService("web", 80))
					w.served("web")
					w.settle()
					members := len(w.inPool())
					if byAddress {
						for _, pool := range testkit.Must[network.LoadBalancer](w.Azure,
							testkit.LoadBalancer).Properties.BackendAddressPools {
							members = max(members, len(pool.Properties.LoadBalancerBackendAddresses))
						}
					}
					if members != len(mine) {
						t.Errorf("%d members for the nodes %v: %v", members, mine, w.inPool())
					}
					w.Forget()
					w.change("web", func(s *corev1.Service) { s.Annotations = map[string]string{"x": "y"} })
					w.settle()
					if writes := w.Writes(); len(writes) > 0 {
						t.Errorf("writes when nothing changed: %v", writes)
					}
					w.remove("web")
					w.until("web is gone", func() bool { return w.gone("web") })
				})
			})
		}
	}
}

// D8: machines with an interface of their own join and leave the pools of both IP
// versions.
func TestDualStackBackends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 0)
		w.DualStack()
		for _, name := range []string{"dual0", "dual1"} {
			id := w.AddMachine(testkit.VirtualMachine{Name: name, Zone: "1", Dual: true})
			w.addMachineNode(testkit.Must[compute.Instance](w.Azure, id))
		}
		w.start(config())
		s := w.newService("web", 80)
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		w.create(s)
		w.until("web has two addresses", func() bool { return len(w.get("web").Status.LoadBalancer.Ingress) == 2 })
		w.settle()
		if got := w.inPool(); !slices.Equal(got, []string{"dual0-nic", "dual0-nic", "dual1-nic", "dual1-nic"}) {
			t.Errorf("in the pools: %v", got)
		}
		w.remove("web")
		w.until("web is gone", func() bool { return w.gone("web") })
		w.settle()
		for _, nic := range testkit.List[network.Interface](w.Azure, testkit.Group, network.Interfaces) {
			for _, c := range nic.Properties.IPConfigurations {
				if len(c.Properties.LoadBalancerBackendAddressPools) > 0 {
					t.Errorf("%s is still in %v", nic.Name, c.Properties.LoadBalancerBackendAddressPools)
				}
			}
		}
	})
}

// A new controller reads lists once and writes nothing, whatever the machines are.
func TestRestartWithEveryKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := kindsCluster(t, 2)
		stop := w.start(config())
		for i := range 5 {
			name := fmt.Sprintf("web%d", i)
			w.create(w.newService(name, int32(80+i)))
			w.served(name)
		}
		w.settle()
		stop()
		w.Reopen()
		w.Forget()
		w.start(config())
		w.settle()
		const most = 12
		if reads := w.Reads(); len(reads) > most || len(w.Writes()) > 0 {
			t.Errorf("%d reads %v, writes %v", len(reads), reads, w.Writes())
		}
	})
}

// 77, 78: three nodes stay out: a node with its machine in another resource group, an unmanaged node, and a node of
// the control plane. A node with a label that names the cluster's group is let in (118 of the scenarios of nodes).
func TestBackendsThatStayOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, names := kindsCluster(t, 1)
		const other = azure.ID("/subscriptions/" + testkit.Subscription + "/resourceGroups/other")
		id := w.AddMachine(testkit.VirtualMachine{Name: "far", Group: other, Zone: "1"})
		far := w.addMachineNode(testkit.Must[compute.Instance](w.Azure, id))
		w.editNode(far, func(n *corev1.Node) { n.Labels = map[string]string{"kubernetes.azure.com/resource-group": "other"} })
		w.editNode("alone0", func(n *corev1.Node) { n.Labels = map[string]string{"kubernetes.azure.com/managed": "false"} })
		w.editNode("alone1", func(n *corev1.Node) {
			n.Labels = map[string]string{"kubernetes.azure.com/resource-group": strings.ToUpper(testkit.ResourceGroup)}
		})
		w.editNode("member0", func(n *corev1.Node) { n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""} })
		c := config()
		c.LoadBalancer.ExcludeControlPlane = true
		w.start(c)
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		out := func(n string) bool {
			return strings.HasPrefix(n, "far") || strings.HasPrefix(n, "alone0") || strings.HasPrefix(n, "member0")
		}
		if got := w.inPool(); len(got) != 1+len(names)-2 || slices.ContainsFunc(got, out) {
			t.Errorf("in the pool: %v", got)
		}
	})
}
