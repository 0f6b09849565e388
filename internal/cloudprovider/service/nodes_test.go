package service_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/nodes"
	"kaz/internal/testkit"
)

// oneOfEach are nodes of kindsCluster, one for each kind of machine.
var oneOfEach = []string{"alone0", "flex", "member0", "nodes0-000000"}

// neighbourhood is a cluster with machines of every kind and a Service that they serve.
type neighbourhood struct {
	*serviceCluster
	config  service.Config
	before  map[string]string // of Azure; nil when the story itself changes it
	nodes   []string          // all of them
	picked  []string          // one of each kind
	stop    func()
	byCards bool // the pool has network interfaces, not addresses
}

// inBothPools plays a story with pools of interfaces and with pools of addresses. In the end the Service is removed,
// and Azure must be as it was.
func inBothPools(t *testing.T, story func(*testing.T, *neighbourhood)) {
	t.Helper()
	for _, members := range []string{"interfaces", "addresses"} {
		t.Run(members, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &neighbourhood{config: config(), byCards: members == "interfaces"}
				n.serviceCluster, _ = kindsCluster(t, 2)
				n.config.LoadBalancer.PoolByIP = !n.byCards
				n.config.LoadBalancer.ExcludeControlPlane = true
				n.nodes = slices.Sorted(maps.Keys(n.nodesByName()))
				for _, kind := range oneOfEach {
					i := slices.IndexFunc(n.nodes, func(name string) bool { return strings.HasPrefix(name, kind) })
					n.picked = append(n.picked, n.nodes[i])
				}
				n.before = n.Surroundings()
				story(t, n)
				n.remove("web")
				n.until("web is gone", func() bool { return n.gone("web") })
				if n.before != nil {
					n.restored(n.before, n.Surroundings)
				}
				n.nothingIsLeft()
			})
		})
	}
}

// serve starts a controller and waits until a Service has its address and its nodes.
func (n *neighbourhood) serve() {
	n.t.Helper()
	n.stop = n.start(n.config)
	n.create(n.newService("web", 80))
	n.served("web")
	n.settle()
	n.calm()
}

// calm checks that serving the Service again writes nothing, and forgets the requests and events so far.
func (n *neighbourhood) calm() {
	n.t.Helper()
	n.Forget()
	n.turns++
	n.change("web", func(s *corev1.Service) { s.Annotations = map[string]string{"turn": fmt.Sprint(n.turns)} })
	n.settle()
	if writes := n.Writes(); len(writes) > 0 {
		n.t.Errorf("serving again wrote %v", writes)
	}
	n.Forget()
	n.events.forget()
}

// wrote checks which machines were written since the last time. In a pool of network interfaces, each machine must be
// written once. In a pool of addresses, the load balancer must be written once.
func (n *neighbourhood) wrote(machines ...string) {
	n.t.Helper()
	want := map[string]int{}
	for _, m := range machines {
		want[n.written(m)]++
	}
	if !n.byCards && len(machines) > 0 {
		want = map[string]int{testkit.ClusterName: 1}
	}
	if d := cmp.Diff(want, count(n.Writes())); d != "" {
		n.t.Errorf("writes (-want +got):\n%s", d)
	}
}

// written is the document that says in which pools a node is.
func (n *neighbourhood) written(node string) string {
	n.t.Helper()
	id, _ := nodes.MachineID(n.nodesByName()[node].Spec.ProviderID)
	if id.Is(compute.ScaleSetInstances) {
		return id.Name()
	}
	return testkit.Must[compute.Instance](n.Azure, id).Properties.NetworkProfile.NetworkInterfaces[0].ID.Name()
}

// checkNoFailureEvents checks that no event reports a failure.
func (n *neighbourhood) checkNoFailureEvents() {
	n.t.Helper()
	for _, line := range n.events.list("") {
		if reason, _, _ := strings.Cut(line, ":"); strings.HasSuffix(reason, "Failed") {
			n.t.Errorf("got %q", line)
		}
	}
}

// nothingIsLeft checks that Azure has no load balancer, and nothing that kaz made for one.
func (w *serviceCluster) nothingIsLeft() {
	w.t.Helper()
	w.settle()
	for id, text := range w.Surroundings() {
		for _, ours := range []string{"/loadBalancers/", "/publicIPAddresses/" + testkit.ClusterName + "-", `"k8s-azure-`} {
			if strings.Contains(id+text, ours) {
				w.t.Errorf("%s still has %q", id, ours)
			}
		}
	}
}

// but is a list without some of its elements.
func but(all, without []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(without, s) })
}

func (w *serviceCluster) nodesByName() map[string]*corev1.Node {
	w.t.Helper()
	list, err := w.client.CoreV1().Nodes().List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]*corev1.Node{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all
}

func (w *serviceCluster) removeNode(name string) {
	w.t.Helper()
	if err := w.client.CoreV1().Nodes().Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *serviceCluster) label(node, name, value string) {
	w.t.Helper()
	w.editNode(node, func(n *corev1.Node) { n.Labels = map[string]string{name: value} })
}

// backendsAre checks which nodes are in the cluster's pool, as Azure shows it.
func (w *serviceCluster) backendsAre(want []string) {
	w.t.Helper()
	if d := cmp.Diff(want, w.backends()); d != "" {
		w.t.Errorf("nodes in the pool (-want +got):\n%s", d)
	}
}

// backends are the nodes in the cluster's pool, whether it has interfaces or addresses. A member that is no node is
// listed by its own id or address.
func (w *serviceCluster) backends() []string {
	w.t.Helper()
	return w.backendsOf(testkit.LoadBalancer)
}

// backendsOf are the nodes in the pools of a load balancer.
func (w *serviceCluster) backendsOf(lb azure.ID) []string {
	w.t.Helper()
	nodeOf := map[string]string{}
	for name, n := range w.nodesByName() {
		id, _ := nodes.MachineID(n.Spec.ProviderID)
		nodeOf[id.Key()] = name
		for _, a := range n.Status.Addresses {
			nodeOf[a.Address] = name
		}
	}
	named := func(key, otherwise string) string {
		if name := nodeOf[key]; name != "" {
			return name
		}
		return otherwise
	}
	all := []string{}
	for _, pool := range testkit.Must[network.LoadBalancer](w.Azure, lb).Properties.BackendAddressPools {
		for _, c := range pool.Properties.BackendIPConfigurations {
			all = append(all, named(w.machineAt(c.ID).Key(), string(c.ID)))
		}
		for _, a := range pool.Properties.LoadBalancerBackendAddresses {
			if a.Properties.NetworkInterfaceIPConfiguration == nil {
				all = append(all, named(a.Properties.IPAddress, a.Properties.IPAddress))
			}
		}
	}
	slices.Sort(all)
	return all
}

// machineAt is the machine that has an IP configuration.
func (w *serviceCluster) machineAt(configuration azure.ID) azure.ID {
	w.t.Helper()
	holder := configuration.Parent()
	if !holder.Is(network.Interfaces) {
		return holder.Parent()
	}
	if vm := testkit.Must[network.Interface](w.Azure, holder).Properties.VirtualMachine; vm != nil {
		return vm.ID
	}
	return ""
}

// Rows 72 and 73. Nodes that are excluded leave the pool, whatever their machines are, and
// come back when the label says false (D5). A pool is not emptied: the last ones stay.
func TestExcludedNodes(t *testing.T) {
	inBothPools(t, func(t *testing.T, n *neighbourhood) {
		n.serve()
		n.backendsAre(n.nodes)
		for _, name := range n.picked {
			n.exclude(name, "true")
		}
		n.settle()
		n.backendsAre(but(n.nodes, n.picked))
		if reported := n.events.reasons("web"); !slices.Contains(reported, "UpdatedLoadBalancer") ||
			slices.Contains(reported, "EnsuredLoadBalancer") {
			t.Errorf("got %v", reported)
		}
		n.calm()

		n.stop() // so that they are all seen at once
		for _, name := range but(n.nodes, n.picked) {
			n.exclude(name, "true")
		}
		n.stop = n.start(n.config)
		n.settle()
		n.backendsAre(but(n.nodes, n.picked))
		n.wrote()
		if reported := n.events.reasons("web"); !slices.Contains(reported, "UnAvailableLoadBalancer") {
			t.Errorf("got %v", reported)
		}
		n.calm()

		n.exclude(n.picked[0], "false")
		n.settle()
		n.backendsAre(n.picked[:1])
		n.exclude(n.picked[0], "true")
		n.settle()
		n.backendsAre(n.picked[:1])
		n.calm()

		for _, name := range n.nodes {
			n.exclude(name, "false")
		}
		n.settle()
		n.backendsAre(n.nodes)
		n.checkNoFailureEvents()
	})
}

// Row 73. The last members of a pool wait until another machine has joined, whatever keeps Azure
// from letting it in.
func TestTheLastMemberWaitsForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 3)
		all := slices.Sorted(maps.Keys(w.nodesByName()))
		w.exclude(all[2], "true")
		stop := w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		w.backendsAre(all[:2])

		stop() // so that it is all seen at once
		w.exclude(all[0], "true")
		w.exclude(all[1], "true")
		w.exclude(all[2], "false")
		vm, _ := nodes.MachineID(w.nodesByName()[all[2]].Spec.ProviderID)
		done := w.keepBusy(compute.ScaleSetInstances, vm.Name())
		w.start(config())
		w.until("the machine is refused", func() bool { return len(w.reportedFailures("web")) > 0 })
		w.backendsAre(all[:2])
		done()
		w.until("they have changed places", func() bool { return slices.Equal(w.backends(), all[2:]) })
	})
}

// Row 74. A node that comes costs one write of its machine and none of the load balancer. If the pool has addresses,
// it costs one write of the load balancer. An instance of a model that is in the pool costs nothing.
func TestNodesThatCome(t *testing.T) {
	inBothPools(t, func(t *testing.T, n *neighbourhood) {
		late := n.nodesByName()
		for _, name := range n.picked {
			n.removeNode(name)
		}
		n.serve()
		n.backendsAre(but(n.nodes, n.picked))
		for _, name := range n.picked {
			if err := n.client.Tracker().Add(late[name]); err != nil {
				t.Fatal(err)
			}
			n.settle()
			n.wrote(name)
			n.calm()
		}
		n.backendsAre(n.nodes)

		n.scale(3)
		n.Forget()
		n.settle()
		n.backendsAre(slices.Sorted(maps.Keys(n.nodesByName())))
		if n.byCards {
			n.wrote()
		} else {
			n.wrote("nodes0-000002")
		}
		n.calm()
		n.scale(2)
		n.removeNode("nodes0-000002")
		n.settle()
		n.backendsAre(n.nodes)
		n.checkNoFailureEvents()
	})
}

// Row 75. Another client deletes machines. While their nodes are still registered, nothing fails. When the nodes go,
// the last trace of the machines leaves the pool.
func TestMachinesThatAreDeleted(t *testing.T) {
	inBothPools(t, func(t *testing.T, n *neighbourhood) {
		n.serve()
		n.before = nil
		other := n.OtherClient()
		for _, name := range n.picked {
			id, _ := nodes.MachineID(n.nodesByName()[name].Spec.ProviderID)
			if err := other.Delete(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			n.exclude(name, "true") // and now it is to leave
		}
		n.settle()
		n.calm()
		for _, name := range n.picked {
			n.removeNode(name)
		}
		n.settle()
		n.backendsAre(but(n.nodes, n.picked))
		n.calm()
		n.checkNoFailureEvents()
	})
}

// Row 76. Machines that are switched off before they are in the pool stay out of it, and come in when they run. That
// holds only for instances of Uniform scale sets. Of other machines the network interface joins, and pools of
// addresses have the node's address. There the probe keeps packets away. A member stays while its node does, as in
// cloud-provider-azure; a node that is deleted leaves nothing behind, also of a machine that is off.
func TestMachinesThatAreDeallocated(t *testing.T) {
	inBothPools(t, func(t *testing.T, n *neighbourhood) {
		off := []string{"nodes0-000000"}
		n.power("deallocate", n.picked)
		n.serve()
		if n.byCards {
			n.backendsAre(but(n.nodes, off))
		} else {
			n.backendsAre(n.nodes)
		}
		n.power("start", n.picked)
		n.change("web", func(s *corev1.Service) { s.Annotations = nil })
		n.settle()
		n.backendsAre(n.nodes)
		if n.byCards {
			n.wrote(off...)
		}
		n.calm()
		n.power("deallocate", n.picked) // a member stays
		n.calm()
		n.backendsAre(n.nodes)
		for _, name := range n.picked { // and leaves with its node, though it is off
			n.removeNode(name)
		}
		n.settle()
		n.backendsAre(but(n.nodes, n.picked))
		n.calm()
		n.checkNoFailureEvents()
	})
}

// power switches machines on or off, as a user does.
func (n *neighbourhood) power(action string, machines []string) {
	n.t.Helper()
	other := n.OtherClient()
	for _, name := range machines {
		id, _ := nodes.MachineID(n.nodesByName()[name].Spec.ProviderID)
		if _, err := other.Post(n.t.Context(), id, action, nil); err != nil {
			n.t.Fatal(err)
		}
	}
	n.settle()
	n.Forget()
}

// Row 77. Nodes of the control plane are not let in, by whichever label they are known,
// unless the configuration says so.
func TestControlPlaneStaysOut(t *testing.T) {
	inBothPools(t, func(t *testing.T, n *neighbourhood) {
		known := map[string]string{"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/master": "",
			"kubernetes.io/role": "master"}
		labels := slices.Sorted(maps.Keys(known))
		masters := n.picked[:len(labels)]
		for i, name := range masters {
			n.label(name, labels[i], known[labels[i]])
		}
		n.serve()
		n.backendsAre(but(n.nodes, masters))
		n.stop()
		n.config.LoadBalancer.ExcludeControlPlane = false
		n.start(n.config)
		n.settle()
		n.change("web", func(s *corev1.Service) { s.Annotations = nil })
		n.settle()
		n.backendsAre(n.nodes)
		n.wrote(masters...)
		n.checkNoFailureEvents()
	})
}

// Row 78. Machines of another resource group, which their nodes' label names, are not let in. A label may name the
// cluster's own group, in upper or lower case.
func TestNodesOfAnotherGroup(t *testing.T) {
	inBothPools(t, func(t *testing.T, n *neighbourhood) {
		const label = "kubernetes.azure.com/resource-group"
		id := n.AddMachine(testkit.VirtualMachine{Name: "far", Group: far, Zone: "1"})
		n.label(n.addMachineNode(testkit.Must[compute.Instance](n.Azure, id)), label, far.Name())
		n.before = n.Surroundings()
		for _, name := range n.picked {
			n.label(name, label, strings.ToUpper(testkit.ResourceGroup))
		}
		n.serve()
		n.backendsAre(n.nodes)
		n.checkNoFailureEvents()
	})
}
