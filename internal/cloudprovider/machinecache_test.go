package cloudprovider_test

import (
	"context"
	"errors"
	"fmt"
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
	"kaz/internal/localazure/core"
	"kaz/internal/reconcile"
	"kaz/internal/testkit"
)

// slow is a client with slow reads below a scope.
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

// askedThrough returns the InstancesV2 of a cloud with informers that uses the given client.
func askedThrough(t *testing.T, client reconcile.Azure) (framework.InstancesV2, *cloudprovider.Cloud) {
	t.Helper()
	cloud := cloudprovider.New(cloudprovider.Config{Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup,
		Location: testkit.Location}, client)
	t.Cleanup(cloud.Close)
	cloud.SetInformers(informers.NewSharedInformerFactory(fake.NewClientset(), 0))
	machines, _ := cloud.InstancesV2()
	return machines, cloud
}

// TestReadsDoNotBlockEachOther checks that a slow read does not delay questions that need another
// read. A question about the slow list returns an error first, and the answer later.
func TestReadsDoNotBlockEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 30)
		other := w.AddScaleSet("other", testkit.Uniform, 2, "1")
		machines, _ := askedThrough(t, &slow{Azure: w.Client, below: testkit.Nodes, takes: time.Minute})
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
		if took := time.Since(began); took > 3*time.Second { // of the slow ones: the first machines are read one by one
			t.Errorf("questions about 32 nodes took %v", took)
		}
		if reads := w.Reads(); len(reads) > 2 { // those of the other set; the slow reads are not counted yet
			t.Errorf("reads: %v", reads)
		}
		// New nodes are described during the slow read.
		began = time.Now()
		describe(t, machines, node(instanceName("other", 0), ""))
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v to describe a node of the other scale set", took)
		}
		<-time.After(time.Minute)
		exists(t, machines, silent(node(instanceName(testkit.ScaleSet, 0), testkit.Nodes.Child("virtualMachines", "0"))), true)
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the answer that was requested a minute ago took %v", took)
		}
	})
}

// TestQuestionsShareARead (47) checks that questions about unknown nodes share one list read.
func TestQuestionsShareARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{Latency: 1}, 3)
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
		// 48: an immediate second question needs no read.
		ask()
		if again := w.Reads(); len(again) != len(first) {
			t.Errorf("reads: %v", again[len(first):])
		}
	})
}

// TestAVanishedMachineStaysAbsent (48) checks that a deleted machine stays absent, with two reads in
// each period: of the machine and of its list.
func TestAVanishedMachineStaysAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 2)
		machines := w.asked(t, nil)
		n := silent(node(instanceName(testkit.ScaleSet, 0), testkit.Nodes.Child("virtualMachines", "0")))
		if err := w.OtherClient().Delete(t.Context(), testkit.Nodes.Child("virtualMachines", "0")); err != nil {
			t.Fatal(err)
		}
		w.Forget()
		for range 10 {
			exists(t, machines, n, false)
		}
		if reads := w.Reads(); len(reads) != 2 {
			t.Errorf("reads: %v", reads)
		}
	})
}

// TestOneAnswerRemovesNoNode lets a replica of Azure's that lags behind answer once that a machine, or
// all of a list, is not there. The node's machine still exists, with and without a provider ID and
// however many machines are asked about.
func TestOneAnswerRemovesNoNode(t *testing.T) {
	for name, lies := range map[string]core.Fault{
		"one machine":  {Type: compute.ScaleSetInstances, Action: "instanceView"},
		"the list":     {Type: compute.ScaleSetInstances},
		"any one read": {},
	} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%v", name, known), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const count = 10
					w := newProvider(t, core.Options{}, count)
					machines := w.asked(t, nil)
					lies.Method, lies.Fault, lies.Times = "GET", core.FaultAbsent, 1
					for i := range count {
						if err := w.SetFaults([]core.Fault{lies}); err != nil {
							t.Fatal(err)
						}
						var id azure.ID
						if known {
							id = testkit.Nodes.Child("virtualMachines", strconv.Itoa(i))
						}
						exists(t, machines, silent(node(instanceName(testkit.ScaleSet, i), id)), true)
						<-time.After(time.Minute)
					}
				})
			})
		}
	}
}

// TestWithoutCache (52) checks that every question reads Azure if the cache is disabled.
func TestWithoutCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 1)
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

// TestSlowAnswersArrive checks that the answer to a timed-out question is available later, even
// without the cache. So is its error.
func TestSlowAnswersArrive(t *testing.T) {
	for _, uncached := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newProvider(t, core.Options{Faults: []core.Fault{
				{Method: "GET", Type: compute.VirtualMachines, Name: "refused", Fault: core.FaultError, Status: 403},
			}}, 1)
			cloud := cloudprovider.New(cloudprovider.Config{
				Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location, Uncached: uncached,
			}, &slow{Azure: w.Client, below: testkit.Group, takes: 3 * time.Second})
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

// TestLongSilence checks that a node that stays not ready is read less and less often.
func TestLongSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 1)
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
		// Later changes are still detected.
		if _, err := w.OtherClient().Post(t.Context(), testkit.Nodes.Child("virtualMachines", "0"), "deallocate", nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * time.Minute)
		shutDown(t, machines, n, true)
	})
}

// TestANodeIsYoungerThanWhatIsKnown recreates an instance under the same name: answers from before
// the node's creation do not count.
func TestANodeIsYoungerThanWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 0)
		machines := w.asked(t, nil)
		exists(t, machines, quiet(node("late", "")), false)
		<-time.After(time.Second)
		w.AddMachine(testkit.VirtualMachine{Name: "late", Zone: "1"})
		exists(t, machines, quiet(node("late", "")), true)
		describe(t, machines, node("late", ""))
		if err := w.OtherClient().Delete(t.Context(), testkit.Group.Resource(compute.VirtualMachines, "late")); err != nil {
			t.Fatal(err)
		}
		<-time.After(period)
		exists(t, machines, silent(node("late", "")), false)
	})
}

// TestCloseWhileReading checks that nothing runs after close.
func TestCloseWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 1)
		machines, cloud := askedThrough(t, &slow{Azure: w.Client, below: testkit.Nodes, takes: time.Hour})
		_, err := machines.InstanceExists(t.Context(),
			silent(node(instanceName(testkit.ScaleSet, 0), testkit.Nodes.Child("virtualMachines", "0"))))
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

// TestTroubleIsReported checks that an unusable machine causes one Event, and none while it is new.
func TestTroubleIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 1)
		r := newRun(t, w)
		n := node("unknown", "")
		ask := func(want string) {
			t.Helper()
			machines, _ := r.cloud.InstancesV2()
			for range 3 {
				if _, err := machines.InstanceMetadata(t.Context(), n); !errors.Is(err, framework.InstanceNotFound) {
					t.Errorf("the error is %v", err)
				}
			}
			<-time.After(time.Minute) // the recorder sends asynchronously
			if got := strings.Join(r.troubles(), ", "); got != want {
				t.Errorf("reported: %q, want %q", got, want)
			}
		}
		ask("") // the machine may be incomplete
		ask("unknown: machine of node unknown: instance not found")
		ask("unknown: machine of node unknown: instance not found")
	})
}

// troubles returns the Events about machines.
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

// TestInformersDoNotWait (D22) checks that a node that becomes not ready starts a read of its machine
// without blocking the informer.
func TestInformersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 2)
		other := w.AddScaleSet("other", testkit.Uniform, 1, "1")
		slowOne := atWork(instanceName(testkit.ScaleSet, 0), testkit.Nodes.Child("virtualMachines", "0"))
		fastOne := atWork(instanceName("other", 0), other.Child("virtualMachines", "0"))
		client := fake.NewClientset(slowOne, fastOne)
		factory := informers.NewSharedInformerFactory(client, 0)
		cloud := cloudprovider.New(cloudprovider.Config{
			Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location,
		}, &slow{Azure: w.Client, below: testkit.Nodes, takes: time.Minute})
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
			t.Errorf("after %v Azure was asked %v, want only about the second node, as the first one's answer takes a minute",
				time.Since(began), reads)
		}
		<-time.After(2 * time.Minute)
		if reads := w.Reads(); len(reads) != 2 {
			t.Errorf("Azure was asked %v, want about both", reads)
		}
	})
}
