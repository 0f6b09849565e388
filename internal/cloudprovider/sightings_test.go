package cloudprovider_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/cloudprovider"
	"kaz/internal/emulator"
	"kaz/internal/reconcile"
	"kaz/internal/testkit"
)

// slow is a door at which reads below a scope take a time of their own.
type slow struct {
	reconcile.Azure
	below azure.ID
	takes time.Duration
}

type slowReader struct {
	azure.Reader
	slow *slow
}

func (s *slow) Fresh() azure.Reader { return slowReader{s.Azure.Fresh(), s} }

func (r slowReader) wait(ctx context.Context, id azure.ID) {
	if id.Under(r.slow.below) {
		select {
		case <-time.After(r.slow.takes):
		case <-ctx.Done():
		}
	}
}

func (r slowReader) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	r.wait(ctx, id)
	return r.Reader.Get(ctx, id)
}

func (r slowReader) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	r.wait(ctx, q.Scope)
	return r.Reader.List(ctx, q)
}

// askedThrough is a cloud that asks about all nodes, through a door.
func askedThrough(t *testing.T, door reconcile.Azure) (framework.InstancesV2, *cloudprovider.Cloud) {
	t.Helper()
	cloud := cloudprovider.New(cloudprovider.Config{Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location}, door)
	t.Cleanup(cloud.Close)
	cloud.SetInformers(informers.NewSharedInformerFactory(fake.NewClientset(), 0))
	machines, _ := cloud.InstancesV2()
	return machines, cloud
}

// A question about one node does not wait for what another one needs; while its own
// answer takes long it gets an error that says so, and later the answer.
func TestNobodyWaitsForAnothersList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 30)
		other := w.AddScaleSet("other", testkit.Uniform, 2, "1")
		machines, _ := askedThrough(t, &slow{Azure: w.Door, below: testkit.Nodes, takes: time.Minute})
		w.Forget()
		began := time.Now()
		for i := range 30 {
			n := silent(node(instanceName(testkit.ScaleSet, i), testkit.Nodes.Child("virtualMachines", strconv.Itoa(i))))
			if _, err := machines.InstanceExists(t.Context(), n); !azure.KindOf(err).Retryable() {
				t.Fatalf("the error is %v", err)
			}
		}
		for i := range 2 {
			exists(t, machines, silent(node(instanceName("other", i), other.Child("virtualMachines", strconv.Itoa(i)))), true)
		}
		if took := time.Since(began); took > 3*time.Second { // for the slow ones: the first few are read one by one
			t.Errorf("questions about 32 nodes took %v", took)
		}
		if reads := w.Reads(); len(reads) > 2 { // those of the other set; the slow ones have not arrived
			t.Errorf("reads: %v", reads)
		}
		// Nodes that start are described, while the slow list is read.
		began = time.Now()
		describe(t, machines, node(instanceName("other", 0), ""))
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v to describe a node of the other scale set", took)
		}
		<-time.After(time.Minute)
		exists(t, machines, silent(node(instanceName(testkit.ScaleSet, 0), testkit.Nodes.Child("virtualMachines", "0"))), true)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the answer that somebody asked for a minute ago took %v", took)
		}
	})
}

// 47: questions about nodes that nobody knows share one list.
func TestQuestionsShareALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{Latency: 1}, 3)
		machines := w.asked(t, nil)
		ask := func() {
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					_, err := machines.InstanceMetadata(t.Context(), aged(node(instanceName(testkit.ScaleSet, 100+i), "")))
					if !errors.Is(err, framework.InstanceNotFound) {
						t.Errorf("the error is %v", err)
					}
				})
			}
			all.Wait()
		}
		ask()
		first := w.Reads()
		if reads := countOf(first); reads["virtualMachineScaleSets"] > 1 || reads["virtualMachines"] > 2 || len(first) > 4 {
			t.Errorf("reads: %v", reads)
		}
		// 48: asked again at once, it is known that they are not there.
		ask()
		if again := w.Reads(); len(again) != len(first) {
			t.Errorf("reads: %v", again[len(first):])
		}
	})
}

// 48: a machine that vanished is absent however often one asks, and costs one look
// for each moment.
func TestAVanishedMachineStaysAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 2)
		machines := w.asked(t, nil)
		n := silent(node(instanceName(testkit.ScaleSet, 0), testkit.Nodes.Child("virtualMachines", "0")))
		if err := w.OtherDoor().Delete(t.Context(), testkit.Nodes.Child("virtualMachines", "0")); err != nil {
			t.Fatal(err)
		}
		w.Forget()
		for range 10 {
			exists(t, machines, n, false)
		}
		if reads := w.Reads(); len(reads) != 1 {
			t.Errorf("reads: %v", reads)
		}
	})
}

// 52: where the configuration wants no cache, every question is asked of Azure.
func TestWithoutCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 1)
		machines := w.asked(t, func(c *cloudprovider.Config) { c.Uncached = true })
		n := silent(node(instanceName(testkit.ScaleSet, 0), testkit.Nodes.Child("virtualMachines", "0")))
		for range 3 {
			exists(t, machines, n, true)
		}
		if reads := w.Reads(); len(reads) != 3 {
			t.Errorf("reads: %v", reads)
		}
	})
}

// Who was told that the answer takes long gets it all the same, cache or none, and
// learns what went wrong if there is none.
func TestSlowAnswersArrive(t *testing.T) {
	for _, uncached := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, emulator.Options{Faults: []emulator.Fault{
				{Method: "GET", Type: compute.VirtualMachines, Name: "refused", Fault: emulator.FaultError, Status: 403},
			}}, 1)
			cloud := cloudprovider.New(cloudprovider.Config{
				Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location, Uncached: uncached,
			}, &slow{Azure: w.Door, below: testkit.Group, takes: 3 * time.Second})
			t.Cleanup(cloud.Close)
			cloud.SetInformers(informers.NewSharedInformerFactory(fake.NewClientset(), 0))
			machines, _ := cloud.InstancesV2()
			well := silent(node(instanceName(testkit.ScaleSet, 0), testkit.Nodes.Child("virtualMachines", "0")))
			refused := silent(node("refused", testkit.Group.Resource(compute.VirtualMachines, "refused")))
			for _, n := range []*corev1.Node{well, refused} {
				if _, err := machines.InstanceExists(t.Context(), n); azure.KindOf(err) != azure.Busy {
					t.Errorf("uncached %v: at first %v", uncached, err)
				}
			}
			<-time.After(period)
			exists(t, machines, well, true)
			if _, err := machines.InstanceExists(t.Context(), refused); azure.KindOf(err) != azure.Denied {
				t.Errorf("uncached %v: then %v", uncached, err)
			}
		})
	}
}

// A node that is silent for long is asked about less and less often.
func TestLongSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 1)
		machines := w.asked(t, nil)
		n := silent(node(instanceName(testkit.ScaleSet, 0), testkit.Nodes.Child("virtualMachines", "0")))
		walk := func(d time.Duration) int {
			w.Forget()
			for range int(d / period) {
				exists(t, machines, n, true)
				shutDown(t, machines, n, false)
				<-time.After(period)
			}
			return len(w.Reads())
		}
		const most, later = 13, 60
		if reads := walk(time.Minute); reads > most {
			t.Errorf("%d reads in the first minute", reads)
		}
		walk(14 * time.Minute)
		if reads := walk(time.Hour); reads > later {
			t.Errorf("%d reads in an hour of a node that is silent for long", reads)
		}
		// What happens to it then is seen all the same.
		if _, err := w.OtherDoor().Post(t.Context(), testkit.Nodes.Child("virtualMachines", "0"), "deallocate", nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Minute)
		shutDown(t, machines, n, true)
	})
}

// An instance that is deleted and comes back under the same name is the new one's
// node: what was seen before the node was made does not count against it.
func TestANodeIsYoungerThanWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 0)
		machines := w.asked(t, nil)
		exists(t, machines, quiet(node("late", "")), false)
		<-time.After(time.Second)
		w.AddMachine(testkit.Alone{Name: "late", Zone: "1"})
		exists(t, machines, quiet(node("late", "")), true)
		describe(t, machines, node("late", ""))
		if err := w.OtherDoor().Delete(t.Context(), testkit.Group.Resource(compute.VirtualMachines, "late")); err != nil {
			t.Fatal(err)
		}
		<-time.After(period)
		exists(t, machines, silent(node("late", "")), false)
	})
}

// Nothing goes on when a cloud is closed.
func TestCloseWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 1)
		machines, cloud := askedThrough(t, &slow{Azure: w.Door, below: testkit.Nodes, takes: time.Hour})
		_, err := machines.InstanceExists(t.Context(), silent(node(instanceName(testkit.ScaleSet, 0), testkit.Nodes.Child("virtualMachines", "0"))))
		if err == nil {
			t.Error("an answer without a read")
		}
		began := time.Now()
		cloud.Close()
		if took := time.Since(began); took > 0 {
			t.Errorf("closing took %v", took)
		}
	})
}

// A machine that cannot be used is told of on its node, once, and only when it is
// not just arriving.
func TestTroubleIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 1)
		r := newRun(t, w)
		n := node("nobody", "")
		ask := func(want string) {
			t.Helper()
			machines, _ := r.cloud.InstancesV2()
			for range 3 {
				if _, err := machines.InstanceMetadata(t.Context(), n); !errors.Is(err, framework.InstanceNotFound) {
					t.Errorf("the error is %v", err)
				}
			}
			<-time.After(time.Minute) // events are sent by others
			if got := strings.Join(r.troubles(), ", "); got != want {
				t.Errorf("told: %q, want %q", got, want)
			}
		}
		ask("") // it may be arriving
		ask("nobody: machine of node nobody: instance not found")
		ask("nobody: machine of node nobody: instance not found")
	})
}

// troubles are the Events about machines.
func (r *run) troubles() (all []string) {
	r.t.Helper()
	events, err := r.client.CoreV1().Events("").List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range events.Items {
		if e.Reason == "MachineUnclear" {
			all = append(all, e.InvolvedObject.Name+": "+e.Message)
		}
	}
	return all
}

// D22: who hears of nodes that fall silent begins to look at their machines, and waits
// for no answer: the next one is heard of at once.
func TestNewsOfNodesWaitForNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 2)
		other := w.AddScaleSet("other", testkit.Uniform, 1, "1")
		slowOne := atWork(instanceName(testkit.ScaleSet, 0), testkit.Nodes.Child("virtualMachines", "0"))
		fastOne := atWork(instanceName("other", 0), other.Child("virtualMachines", "0"))
		client := fake.NewClientset(slowOne, fastOne)
		factory := informers.NewSharedInformerFactory(client, 0)
		cloud := cloudprovider.New(cloudprovider.Config{
			Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location,
		}, &slow{Azure: w.Door, below: testkit.Nodes, takes: time.Minute})
		cloud.SetInformers(factory)
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		t.Cleanup(func() { cancel(); factory.Shutdown(); cloud.Close() })
		w.Forget()
		began := time.Now()
		for _, n := range []*corev1.Node{slowOne, fastOne} {
			if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), silent(n), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if reads := w.Reads(); len(reads) != 1 || time.Since(began) > 0 {
			t.Errorf("after %v Azure was asked %v, want only about the second node, as the first one's answer takes a minute", time.Since(began), reads)
		}
		<-time.After(2 * time.Minute)
		if reads := w.Reads(); len(reads) != 2 {
			t.Errorf("Azure was asked %v, want about both", reads)
		}
	})
}
