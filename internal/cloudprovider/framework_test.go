package cloudprovider_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/cloud-provider/api"
	cloudnode "k8s.io/cloud-provider/controllers/node"
	"k8s.io/cloud-provider/controllers/nodelifecycle"
	"k8s.io/component-base/metrics/prometheus/controllers"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/cloudprovider"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/nodes"
	"kaz/internal/testkit"
)

// run is a cluster with the framework's node controllers as in the cloud-controller-manager: eight
// workers and a period of five seconds.
type run struct {
	*provider
	t      *testing.T
	client *fake.Clientset
	cloud  *cloudprovider.Cloud
}

// newRun starts the controllers on a local Azure. They stop with the test.
func newRun(t *testing.T, w *provider, known ...*corev1.Node) *run {
	t.Helper()
	r := &run{provider: w, t: t, client: fake.NewClientset()}
	for _, n := range known {
		r.add(n)
	}
	cloud := cloudprovider.New(cloudprovider.Config{
		Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location,
	}, w.Client)
	r.cloud = cloud
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	factory := informers.NewSharedInformerFactory(r.client, 0)
	cloud.Initialize(clients{client: r.client}, ctx.Done())
	cloud.SetInformers(factory)
	const workers = 8
	initializing, err := cloudnode.NewCloudNodeController(factory.Core().V1().Nodes(), r.client, cloud, 5*time.Minute, workers, workers)
	if err != nil {
		t.Fatal(err)
	}
	lifecycle, err := nodelifecycle.NewCloudNodeLifecycleController(factory.Core().V1().Nodes(), r.client, cloud, period)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	var running sync.WaitGroup
	metrics := controllers.NewControllerManagerMetrics("test")
	running.Go(func() { initializing.RunWithContext(ctx, metrics) })
	running.Go(func() { lifecycle.Run(ctx, metrics) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		cloud.Close()
		factory.Shutdown()
	})
	w.Forget()
	return r
}

func (r *run) add(n *corev1.Node) {
	r.t.Helper()
	if err := r.client.Tracker().Add(n); err != nil {
		r.t.Fatal(err)
	}
}

func (r *run) get(name string) (*corev1.Node, bool) {
	r.t.Helper()
	n, err := r.client.CoreV1().Nodes().Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		r.t.Fatal(err)
	}
	return n, err == nil
}

func (r *run) edit(name string, edit func(*corev1.Node)) {
	r.t.Helper()
	n, ok := r.get(name)
	if !ok {
		r.t.Fatalf("node %s is gone", name)
	}
	edit(n)
	if err := r.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""); err != nil {
		r.t.Fatal(err)
	}
}

// within waits for a condition in simulated time and returns how long it took.
func (r *run) within(limit time.Duration, what string, is func() bool) time.Duration {
	r.t.Helper()
	const step = 100 * time.Millisecond
	for waited := time.Duration(0); ; waited += step {
		if is() {
			return waited
		}
		if waited >= limit {
			r.t.Fatalf("still not after %v: %s", limit, what)
		}
		<-time.After(step)
	}
}

// fresh is a node as its kubelet registers it.
func fresh(name string) *corev1.Node {
	n := node(name, "")
	n.Spec.Taints = []corev1.Taint{{Key: api.TaintExternalCloudProvider, Effect: corev1.TaintEffectNoSchedule}}
	return n
}

// atWork is an initialized, ready node.
func atWork(name string, machine azure.ID) *corev1.Node {
	n := node(name, machine)
	n.Labels = map[string]string{
		corev1.LabelInstanceTypeStable: "Standard_D2s_v5", corev1.LabelInstanceType: "Standard_D2s_v5",
		corev1.LabelTopologyZone: "westeurope-1", corev1.LabelFailureDomainBetaZone: "westeurope-1",
		corev1.LabelTopologyRegion: "westeurope", corev1.LabelFailureDomainBetaRegion: "westeurope",
	}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.240.0.4"},
		{Type: corev1.NodeHostName, Address: name}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	return n
}

func initialized(n *corev1.Node) bool {
	return len(n.Spec.Taints) == 0 && n.Spec.ProviderID != "" && n.Labels[corev1.LabelTopologyZone] != "" && len(n.Status.Addresses) > 0
}

func instanceName(set string, i int) string {
	digits := strconv.FormatInt(int64(i), 36)
	return set + "-" + strings.Repeat("0", 6-len(digits)) + digits
}

// lists counts list reads.
func lists(reads []string) int {
	count := 0
	for _, r := range reads {
		if !strings.Contains(r, "instanceView") {
			count++
		}
	}
	return count
}

// TestManyInstancesAppear creates 200 instances of two scale sets at once: each set costs two list
// reads.
func TestManyInstancesAppear(t *testing.T) {
	each := 30
	if !testing.Short() {
		each = 100
	}
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{Latency: 1}, each)
		w.AddScaleSet("second", testkit.Uniform, each, "1", "2", "3")
		r := newRun(t, w)
		synctest.Wait() // the first round finds no nodes
		for i := range each {
			r.add(fresh(instanceName(testkit.ScaleSet, i)))
			r.add(fresh(instanceName("second", i)))
		}
		took := r.within(20*time.Second, "all are initialized", func() bool {
			for i := range each {
				for _, set := range []string{testkit.ScaleSet, "second"} {
					if n, _ := r.get(instanceName(set, i)); !initialized(n) {
						return false
					}
				}
			}
			return true
		})
		reads := countOf(w.Reads())
		if reads["virtualMachineScaleSets"] > 1 || reads["virtualMachines"] > 2 || reads["networkInterfaces"] > 2 || len(w.Reads()) > 5 {
			t.Errorf("reads: %v", reads)
		}
		t.Logf("%d instances in 2 scale sets: initialized after %v with %d reads", 2*each, took, len(w.Reads()))
	})
}

// TestManyMachinesAppear is the same with machines of a Flexible scale set and standalone machines.
func TestManyMachinesAppear(t *testing.T) {
	members, others := 15, 5
	if !testing.Short() {
		members, others = 50, 20
	}
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{Latency: 1}, 0)
		w.AddScaleSet("flex", testkit.Flexible, members, "1", "2", "3")
		var names []string
		for i := range others {
			names = append(names, fmt.Sprintf("alone%d", i))
			w.AddMachine(testkit.VirtualMachine{Name: names[i], Zone: "1"})
		}
		for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Group, compute.VirtualMachines) {
			if strings.HasPrefix(vm.Name, "flex") {
				names = append(names, nodes.NodeName(vm))
			}
		}
		r := newRun(t, w)
		synctest.Wait() // the first round finds no nodes: it would ask about machines that are not ready
		for _, name := range names {
			r.add(fresh(name))
		}
		took := r.within(20*time.Second, "all are initialized", func() bool {
			for _, name := range names {
				if n, _ := r.get(name); !initialized(n) {
					return false
				}
			}
			return true
		})
		if reads := w.Reads(); len(reads) > 3 {
			t.Errorf("reads: %v", reads) // scale sets, machines, interfaces
		}
		t.Logf("%d machines: initialized after %v with %d reads", len(names), took, len(w.Reads()))
	})
}

// TestColdStart starts a large cluster without initialized nodes: one list of the scale sets and two
// lists for each set, plus their further pages.
func TestColdStart(t *testing.T) {
	sets, each := 4, 15
	if !testing.Short() {
		sets, each = 50, 100
	}
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{Latency: 1}, 0)
		var known []*corev1.Node
		for s := range sets {
			name := fmt.Sprintf("np%d", s)
			w.AddScaleSet(name, testkit.Uniform, each, "1")
			for i := range each {
				known = append(known, fresh(instanceName(name, i)))
			}
		}
		r := newRun(t, w, known...)
		took := r.within(10*time.Minute, "all are initialized", func() bool {
			for _, n := range known {
				if is, _ := r.get(n.Name); !initialized(is) {
					return false
				}
			}
			return true
		})
		if reads := w.Reads(); len(reads) > 6+2*sets {
			t.Errorf("%d reads for %d sets: %v", len(reads), sets, countOf(reads))
		}
		t.Logf("%d nodes in %d scale sets: initialized after %v with %d reads", len(known), sets, took, len(w.Reads()))
	})
}

// TestReadyNodesCostNothing checks that ready nodes cost no reads, neither at the start nor later.
func TestReadyNodesCostNothing(t *testing.T) {
	count, hour := 500, 10*time.Minute
	if !testing.Short() {
		count, hour = 5000, time.Hour
	}
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 0)
		var known []*corev1.Node
		for i := range count {
			known = append(known, atWork(instanceName(testkit.ScaleSet, i), testkit.Nodes.Child("virtualMachines", strconv.Itoa(i))))
		}
		r := newRun(t, w, known...)
		<-time.After(hour)
		if reads := w.Reads(); len(reads) > 0 {
			t.Errorf("reads in %v: %v", hour, countOf(reads))
		}
		if n, ok := r.get(known[0].Name); !ok || len(n.Status.Addresses) != 2 {
			t.Errorf("%+v", n)
		}
	})
}

// TestDeletedInstances (42, 44) deletes four instances and a virtual machine: their nodes are deleted
// within three periods. Each costs one read, and all together a list of each kind of machine.
func TestDeletedInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const instances = 20
		w := newProvider(t, core.Options{Latency: 1}, instances)
		w.AddMachine(testkit.VirtualMachine{Name: "alone", Zone: "1"})
		known := []*corev1.Node{atWork("alone", testkit.Group.Resource(compute.VirtualMachines, "alone"))}
		for i := range instances {
			known = append(known, atWork(instanceName(testkit.ScaleSet, i), testkit.Nodes.Child("virtualMachines", strconv.Itoa(i))))
		}
		cellar := atWork("cellar", "")
		cellar.Labels["kubernetes.azure.com/managed"] = "false"
		r := newRun(t, w, append(known, cellar)...)
		other := w.OtherClient()
		gone := []string{"alone"}
		if err := other.Delete(t.Context(), testkit.Group.Resource(compute.VirtualMachines, "alone")); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			gone = append(gone, instanceName(testkit.ScaleSet, i))
			if err := other.Delete(t.Context(), testkit.Nodes.Child("virtualMachines", strconv.Itoa(i))); err != nil {
				t.Fatal(err)
			}
		}
		w.Forget()
		for _, name := range append(gone, "cellar") {
			r.edit(name, func(n *corev1.Node) { silent(n) })
		}
		took := r.within(3*period, "the nodes are gone", func() bool {
			for _, name := range gone {
				if _, there := r.get(name); there {
					return false
				}
			}
			return true
		})
		const lists = 2 // that lack the machines as well
		if reads := w.Reads(); len(reads) > len(gone)+lists {
			t.Errorf("reads: %v", reads)
		}
		<-time.After(time.Minute)
		for _, name := range []string{"cellar", instanceName(testkit.ScaleSet, 4)} {
			if _, there := r.get(name); !there {
				t.Errorf("%s is gone", name)
			}
		}
		t.Logf("5 deleted machines: their nodes went after %v, with %d reads", took, len(w.Reads()))
	})
}

// TestManyDeletedInstances deletes half of a large scale set: its list is read once per round.
func TestManyDeletedInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const instances = 40
		w := newProvider(t, core.Options{Latency: 1}, instances)
		var known []*corev1.Node
		for i := range instances {
			known = append(known, atWork(instanceName(testkit.ScaleSet, i), testkit.Nodes.Child("virtualMachines", strconv.Itoa(i))))
		}
		r := newRun(t, w, known...)
		other := w.OtherClient()
		var deleting sync.WaitGroup
		for i := range instances / 2 {
			deleting.Go(func() {
				if err := other.Delete(t.Context(), testkit.Nodes.Child("virtualMachines", strconv.Itoa(i))); err != nil {
					t.Error(err)
				}
			})
		}
		deleting.Wait()
		w.Forget()
		for _, n := range known[:instances/2] {
			r.edit(n.Name, func(n *corev1.Node) { silent(n) })
		}
		took := r.within(2*period, "the nodes are gone", func() bool {
			for _, n := range known[:instances/2] {
				if _, there := r.get(n.Name); there {
					return false
				}
			}
			return true
		})
		const alone, twice = 4, 2 // the first machines are read one by one, in at most two rounds
		if reads := w.Reads(); len(reads) > twice*(alone+1) || lists(reads) > twice {
			t.Errorf("reads: %v", reads)
		}
		t.Logf("%d deleted instances: their nodes went after %v, with %d reads", instances/2, took, len(w.Reads()))
	})
}

// TestMachineIsStoppedAndStarted (41, 43, D3) stops a standalone machine: its node gets the taints,
// and loses them after the start.
func TestMachineIsStoppedAndStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{Latency: 1}, 1)
		alone := w.AddMachine(testkit.VirtualMachine{Name: "alone", Zone: "1"})
		machines := map[string]azure.ID{"alone": alone, instanceName(testkit.ScaleSet, 0): testkit.Nodes.Child("virtualMachines", "0")}
		var known []*corev1.Node
		for name, id := range machines {
			known = append(known, atWork(name, id))
		}
		r := newRun(t, w, known...)
		taints := func(name string) (keys []string) {
			n, _ := r.get(name)
			for _, taint := range n.Spec.Taints {
				keys = append(keys, taint.Key)
			}
			return keys
		}
		for name, id := range machines {
			if _, err := w.Client.Post(t.Context(), id, "deallocate", nil); err != nil {
				t.Fatal(err)
			}
			r.edit(name, func(n *corev1.Node) { silent(n) })
			r.within(2*period, "it bears both taints", func() bool { return len(taints(name)) == 2 })
			if _, err := w.Client.Post(t.Context(), id, "start", nil); err != nil {
				t.Fatal(err)
			}
			r.edit(name, func(n *corev1.Node) { n.Status.Conditions = atWork("", "").Status.Conditions })
			r.within(2*period, "it bears none", func() bool { return len(taints(name)) == 0 })
		}
	})
}
