package service_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// interfacesCluster is a cluster with two machines that have their network interfaces in another resource group. If
// near is set, a third machine has its network interface in its own resource group.
func interfacesCluster(t *testing.T, near bool) *serviceCluster {
	t.Helper()
	w := newServiceCluster(t, core.Options{Latency: 1}, 0)
	if near {
		w.AddMachine(testkit.VirtualMachine{Name: "near"})
	}
	w.AddMachine(testkit.VirtualMachine{Name: "far0", InterfaceGroup: far})
	w.AddMachine(testkit.VirtualMachine{Name: "far1", InterfaceGroup: far})
	// A machine in another group is not part of the cluster.
	w.AddMachine(testkit.VirtualMachine{Name: "foreign", Group: far})
	for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Group, compute.VirtualMachines) {
		w.addMachineNode(vm)
	}
	w.Forget()
	return w
}

func (w *serviceCluster) checkInPool(when string, want ...string) {
	w.t.Helper()
	if got := w.inPool(); !slices.Equal(got, want) {
		w.t.Errorf("%s: in the pool are %v, want %v", when, got, want)
	}
}

// A machine's network interface may be in another resource group than the machine. It joins the pool and leaves it
// like all others.
func TestInterfacesOfAnotherGroup(t *testing.T) {
	for name, near := range map[string]bool{"some": true, "all": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := interfacesCluster(t, near)
				w.start(config())
				w.create(w.newService("web", 80))
				w.served("web")
				w.settle()
				all := []string{"far0-nic", "far1-nic"}
				if near {
					all = append(all, "near-nic")
				}
				w.checkInPool("served", all...)

				w.exclude("far0", "true")
				w.settle()
				w.checkInPool("far0 is excluded", all[1:]...)

				// A machine that is deleted can leave its interface in the pool.
				if err := w.OtherClient().Delete(t.Context(), testkit.Group.Resource(compute.VirtualMachines, "far1")); err != nil {
					t.Fatal(err)
				}
				if err := w.client.CoreV1().Nodes().Delete(t.Context(), "far1", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				w.exclude("far0", "false")
				w.settle()
				w.checkInPool("far1 is gone", append([]string{"far0-nic"}, all[2:]...)...)

				w.remove("web")
				w.until("web is gone", func() bool { return w.gone("web") })
				w.settle()
				if _, there := testkit.Read[network.LoadBalancer](w.Azure, testkit.LoadBalancer); there {
					t.Error("the load balancer is still there")
				}
				for _, group := range []azure.ID{testkit.Group, far} {
					for _, nic := range testkit.List[network.Interface](w.Azure, group, network.Interfaces) {
						for _, c := range nic.Properties.IPConfigurations {
							if len(c.Properties.LoadBalancerBackendAddressPools) > 0 {
								t.Errorf("%s is still in %v", nic.Name, c.Properties.LoadBalancerBackendAddressPools)
							}
						}
					}
				}
			})
		})
	}
}

// TestInterfacesThatMayNotBeRead checks a group that may not be read: its machines stay out and are
// reported; all others are served.
func TestInterfacesThatMayNotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := interfacesCluster(t, true)
		x := &secrecy{}
		x.status.Store(http.StatusForbidden)
		w.Client = w.ClientOver(x.over)
		w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		w.checkInPool("served", "near-nic")
		for _, name := range []string{"far0", "far1"} {
			reported := w.events.list("")
			if !slices.ContainsFunc(reported, func(e string) bool {
				return strings.Contains(e, "NodeNotJoined") && strings.Contains(e, name+"-nic may not be read") &&
					strings.Contains(e, "networkInterfaces/read")
			}) {
				t.Errorf("of %s got %q", name, reported)
			}
		}
		x.status.Store(0)
		w.exclude("near", "true") // any change
		w.settle()
		w.checkInPool("it may be read", "far0-nic", "far1-nic")
	})
}
