package cloudprovider_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/cloudprovider"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/nodes"
	"kaz/internal/testkit"
)

// asked returns the InstancesV2 of a cloud with informers, like in the framework.
func (w *provider) asked(t *testing.T, edit func(*cloudprovider.Config)) framework.InstancesV2 {
	t.Helper()
	c := cloudprovider.Config{Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location}
	if edit != nil {
		edit(&c)
	}
	cloud := cloudprovider.New(c, w.Client)
	t.Cleanup(cloud.Close)
	cloud.SetInformers(informers.NewSharedInformerFactory(fake.NewClientset(), 0))
	machines, _ := cloud.InstancesV2()
	w.Forget()
	return machines
}

// node returns a Node, with the id of its machine unless that is "".
func node(name string, machine azure.ID) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Now()}}
	if machine != "" {
		id, err := nodes.ProviderID(machine)
		if err != nil {
			panic(err) // the id is from the test
		}
		n.Spec.ProviderID = id
	}
	return n
}

// silent makes a node an hour old and not ready.
func silent(n *corev1.Node) *corev1.Node {
	return quiet(aged(n))
}

// aged makes a node an hour old.
func aged(n *corev1.Node) *corev1.Node {
	n.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	return n
}

// quiet makes a node not ready.
func quiet(n *corev1.Node) *corev1.Node {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown,
		LastTransitionTime: metav1.Now()}}
	return n
}

// period is how often the framework asks about nodes that are not ready.
const period = 5 * time.Second

func exists(t *testing.T, machines framework.InstancesV2, n *corev1.Node, want bool) {
	t.Helper()
	if got, err := machines.InstanceExists(t.Context(), n); err != nil || got != want {
		t.Errorf("%s %s exists: %v, %v", n.Name, n.Spec.ProviderID, got, err)
	}
}

func shutDown(t *testing.T, machines framework.InstancesV2, n *corev1.Node, want bool) {
	t.Helper()
	if got, err := machines.InstanceShutdown(t.Context(), n); err != nil || got != want {
		t.Errorf("%s %s is off: %v, %v", n.Name, n.Spec.ProviderID, got, err)
	}
}

func describe(t *testing.T, machines framework.InstancesV2, n *corev1.Node) framework.InstanceMetadata {
	t.Helper()
	m, err := machines.InstanceMetadata(t.Context(), n)
	if err != nil {
		t.Errorf("%s: %v", n.Name, err)
		return framework.InstanceMetadata{}
	}
	return *m
}

// mixed creates machines of every kind and returns them by node name.
func mixed(w *provider) map[string]azure.ID {
	all := map[string]azure.ID{}
	for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Nodes, compute.ScaleSetInstances) {
		all[nodes.NodeName(vm)] = vm.ID
	}
	w.AddScaleSet("flexz", testkit.Flexible, 2, "1", "2")
	w.AddScaleSet("flexd", testkit.Flexible, 2)
	set := w.AddAvailabilitySet("as")
	w.AddMachine(testkit.VirtualMachine{Name: "member0", AvailabilitySet: set})
	w.AddMachine(testkit.VirtualMachine{Name: "member1", AvailabilitySet: set})
	w.AddMachine(testkit.VirtualMachine{Name: "single", Zone: "2", Public: true})
	for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Group, compute.VirtualMachines) {
		all[nodes.NodeName(vm)] = vm.ID
	}
	return all
}

// TestEveryKindOfMachine (27, 50) finds each kind of machine at the first question, by name and by
// id.
func TestEveryKindOfMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 2)
		all := mixed(w)
		machines := w.asked(t, nil)
		var wait sync.WaitGroup
		for name, machine := range all {
			wait.Go(func() {
				m := describe(t, machines, node(name, ""))
				if id, _ := nodes.ProviderID(machine); m.ProviderID != id || m.InstanceType != "Standard_D2s_v5" ||
					m.Region != testkit.Location {
					t.Errorf("%s: %+v", name, m)
				}
				if again := describe(t, machines, node(name, machine)); !cmp.Equal(m, again) {
					t.Errorf("%s: by its id %+v, by its name %+v", name, again, m)
				}
				wantKinds := []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeHostName}
				if name == "single" {
					wantKinds = append(wantKinds, corev1.NodeExternalIP)
				}
				var kinds []corev1.NodeAddressType
				for _, a := range m.NodeAddresses {
					kinds = append(kinds, a.Type)
				}
				if !slices.Equal(kinds, wantKinds) {
					t.Errorf("%s: %v", name, m.NodeAddresses)
				}
				if zone := map[string]string{"single": "westeurope-2", "member0": "0", "member1": "1"}[name]; zone != "" &&
					m.Zone != zone || m.Zone == "" {
					t.Errorf("%s is in zone %q", name, m.Zone)
				}
			})
		}
		wait.Wait()
		reads := countOf(w.Reads())
		if reads["virtualMachines"] > 3 || reads["networkInterfaces"] > 2 || reads["virtualMachineScaleSets"] > 1 ||
			reads["publicIPAddresses"] > 1 {
			t.Errorf("reads: %v", reads) // the group's machines, those of nodes0, those of flexd
		}
		if _, err := machines.InstanceMetadata(t.Context(), aged(node("unknown", ""))); !errors.Is(err, framework.InstanceNotFound) {
			t.Errorf("a node without a machine: %v", err)
		}
	})
}

// countOf counts reads by the last path segment.
func countOf(reads []string) map[string]int {
	all := map[string]int{}
	for _, r := range reads {
		name, _, _ := strings.Cut(strings.TrimPrefix(r, "GET "), "?")
		all[name]++
	}
	return all
}

// TestDualStackMachine (38) checks that the internal addresses of both families are present, IPv4
// first.
func TestDualStackMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 0)
		w.DualStack()
		w.AddMachine(testkit.VirtualMachine{Name: "dual", Zone: "1", Dual: true, Public: true})
		m := describe(t, w.asked(t, nil), node("dual", ""))
		var got []string
		for _, a := range m.NodeAddresses {
			form := "name"
			if strings.Contains(a.Address, ":") {
				form = "IPv6"
			} else if strings.Contains(a.Address, ".") {
				form = "IPv4"
			}
			got = append(got, string(a.Type)+" "+form)
		}
		if diff := cmp.Diff([]string{"InternalIP IPv4", "InternalIP IPv6", "Hostname name", "ExternalIP IPv4"}, got); diff != "" {
			t.Error(diff, m.NodeAddresses)
		}
	})
}

// TestMachinesOfEveryKindGoAndStop (33, 42, 43, 46) stops and deletes machines of every kind.
func TestMachinesOfEveryKindGoAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 3)
		all := mixed(w)
		machines := w.asked(t, nil)
		off := []string{"nodes0-000001", "member1"}
		gone := []string{"nodes0-000002", "single"}
		for name, machine := range all {
			// Any machine of each Flexible scale set.
			if strings.HasPrefix(name, "flexz") &&
				!slices.ContainsFunc(gone, func(g string) bool { return strings.HasPrefix(g, "flexz") }) {
				gone = append(gone, name)
			}
			if strings.HasPrefix(name, "flexd") && !slices.ContainsFunc(off, func(o string) bool { return strings.HasPrefix(o, "flexd") }) {
				off = append(off, name)
			}
			exists(t, machines, silent(node(name, machine)), true)
			shutDown(t, machines, silent(node(name, machine)), false)
		}
		other := w.OtherClient()
		for _, name := range off {
			if _, err := other.Post(t.Context(), all[name], "deallocate", nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range gone {
			if err := other.Delete(t.Context(), all[name]); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(period)
		for name, machine := range all {
			for _, n := range []*corev1.Node{silent(node(name, machine)), silent(node(name, ""))} {
				exists(t, machines, n, !slices.Contains(gone, name))
				shutDown(t, machines, n, slices.Contains(off, name))
			}
		}
		// D3, 46: the scale set is deleted with its instances.
		if err := other.Delete(t.Context(), testkit.Nodes); err != nil {
			t.Fatal(err)
		}
		<-time.After(period)
		exists(t, machines, silent(node("nodes0-000000", all["nodes0-000000"])), false)
		exists(t, machines, silent(node("nodes0-000000", "")), false)
	})
}

// TestUnmanagedNodes (29, 30, 117) checks that unmanaged nodes cost no reads and are never deleted.
func TestUnmanagedNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 1)
		machines := w.asked(t, nil)
		unmanaged := node("cellar", "")
		unmanaged.Labels = map[string]string{"kubernetes.azure.com/managed": "FALSE"}
		foreign, garbage := node("aws", ""), node("garbage", "")
		foreign.Spec.ProviderID, garbage.Spec.ProviderID = "aws:///eu-west-1a/i-1", "/subscriptions/s/resourcegroups/g/x"
		for _, n := range []*corev1.Node{unmanaged, foreign, garbage} {
			exists(t, machines, silent(n), true)
			shutDown(t, machines, silent(n), false)
			if m := describe(t, machines, n); m.Zone != "" || m.InstanceType != "" || len(m.NodeAddresses) > 0 {
				t.Errorf("%s: %+v", n.Name, m)
			}
		}
		if reads := w.Reads(); len(reads) > 0 {
			t.Errorf("reads: %v", reads)
		}
		other := node("odd", "")
		other.Spec.ProviderID = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d"
		if _, err := machines.InstanceShutdown(t.Context(), other); err == nil ||
			!strings.Contains(err.Error(), "error splitting providerID") {
			t.Errorf("33: a provider id that is no machine's: %v", err)
		}
	})
}

// TestGrace (31, 32) checks that a new node without a machine is kept for the configured time.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 1)
		after := func(d time.Duration) *corev1.Node {
			n := silent(node("unknown", ""))
			n.CreationTimestamp = metav1.NewTime(time.Now().Add(-d))
			return n
		}
		exists(t, w.asked(t, nil), after(20*time.Second), false)
		patient := w.asked(t, func(c *cloudprovider.Config) { c.NotFoundGrace = time.Minute })
		exists(t, patient, after(20*time.Second), true)
		exists(t, patient, after(61*time.Second), false)
		timeless := after(0)
		timeless.CreationTimestamp = metav1.Time{}
		exists(t, patient, timeless, false)
	})
}

// TestScaleSetsOfOneName (53) has scale sets of the same name in two resource groups.
func TestScaleSetsOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 2)
		const group = azure.ID("/subscriptions/" + testkit.Subscription + "/resourceGroups/other")
		far := group.Resource(compute.ScaleSets, testkit.ScaleSet)
		w.PutScaleSet(far, "far-", testkit.Uniform, 2, "3")
		machines := w.asked(t, nil)
		n := node("far-000001", "")
		n.Labels = map[string]string{"kubernetes.azure.com/resource-group": "other"}
		there, here := describe(t, machines, n), describe(t, machines, node("nodes0-000001", ""))
		if want, _ := nodes.ProviderID(far.Child("virtualMachines", "1")); there.ProviderID != want || there.Zone != "westeurope-3" {
			t.Errorf("%+v", there)
		}
		if want, _ := nodes.ProviderID(testkit.Nodes.Child("virtualMachines", "1")); here.ProviderID != want {
			t.Errorf("%+v", here)
		}
		if err := w.OtherClient().Delete(t.Context(), testkit.Nodes.Child("virtualMachines", "1")); err != nil {
			t.Fatal(err)
		}
		<-time.After(period)
		exists(t, machines, silent(node("nodes0-000001", testkit.Nodes.Child("virtualMachines", "1"))), false)
		exists(t, machines, silent(node("far-000001", far.Child("virtualMachines", "1"))), true)
	})
}

// TestMachinesInOtherGroups (40, 51) checks that a label names the resource group of a node's
// machine.
func TestMachinesInOtherGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 1)
		const other = azure.ID("/subscriptions/" + testkit.Subscription + "/resourceGroups/Other")
		far := w.AddMachine(testkit.VirtualMachine{Name: "far", Group: other, Zone: "1", Public: true})
		machines := w.asked(t, nil)
		labelled := func(name, group string) *corev1.Node {
			n := node(name, "")
			n.Labels = map[string]string{"kubernetes.azure.com/resource-group": group}
			return n
		}
		m := describe(t, machines, labelled("far", "OTHER"))
		if id, _ := nodes.ProviderID(far); !strings.EqualFold(m.ProviderID, id) || len(m.NodeAddresses) != 3 {
			t.Errorf("%+v", m)
		}
		exists(t, machines, silent(labelled("far", "other")), true)
		exists(t, machines, silent(node("far", "")), false)
		// A missing resource group does not affect other nodes.
		exists(t, machines, silent(labelled("far", "nowhere")), false)
		exists(t, machines, silent(labelled("nodes0-000000", strings.ToUpper(testkit.ResourceGroup))), true)
		describe(t, machines, node("nodes0-000000", ""))
	})
}

// TestAzureInTrouble (45) checks that no node is deleted while Azure fails.
func TestAzureInTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{Faults: []core.Fault{
			{Method: "GET", Type: compute.ScaleSetInstances, Fault: core.FaultError, Status: 500},
		}}, 2)
		machines := w.asked(t, nil)
		n := silent(node("nodes0-000007", testkit.Nodes.Child("virtualMachines", "7")))
		for range 20 {
			if there, err := machines.InstanceExists(t.Context(), n); err == nil {
				t.Fatalf("exists: %v", there)
			}
			<-time.After(period)
		}
	})
}

// TestOneNameForTwoMachines checks that an ambiguous name selects no machine and does not affect
// other nodes.
func TestOneNameForTwoMachines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 1)
		w.AddScaleSet("twin", testkit.Uniform, 1, "1")
		w.PutScaleSet(testkit.Group.Resource(compute.ScaleSets, "twin2"), "twin-", testkit.Uniform, 1, "1")
		machines := w.asked(t, nil)
		_, err := machines.InstanceMetadata(t.Context(), node("twin-000000", ""))
		var several *nodes.SeveralError
		if !errors.As(err, &several) || len(several.Machines) != 2 {
			t.Errorf("the error is %v", err)
		}
		if _, err := machines.InstanceExists(t.Context(), silent(node("twin-000000", ""))); err == nil {
			t.Error("it is not known which machine is meant, but one was judged")
		}
		describe(t, machines, node("nodes0-000000", ""))
	})
}
