package service_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// With pools of network interfaces, kaz reads Azure in four requests, and one more for each scale set that a node
// joins or leaves. A node that comes or goes takes five reads, however many Services and scale sets there are. A
// restart and a comparison take four.
func TestOneReadOfSeveralScaleSets(t *testing.T) {
	const repairPeriod = 30 * time.Minute
	for _, sets := range []int{1, 4, 11} {
		t.Run(fmt.Sprint(sets), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 0.1, Seed: 2}, 2)
				for i := range sets - 1 {
					id := w.AddScaleSet(fmt.Sprint("more", i), testkit.Uniform, 2, "1")
					for _, vm := range testkit.List[compute.Instance](w.Azure, id, compute.ScaleSetInstances) {
						w.addNode(vm)
					}
				}
				c := config()
				c.RepairPeriod = repairPeriod
				stop := w.start(c)
				w.allServed(w.createMany(5))
				w.until("all are in", func() bool { return w.members() == 2*sets })
				<-time.After(5 * time.Minute) // the first comparison is over
				const node = "nodes0-000001"
				for _, event := range []struct {
					what          string
					do            func()
					reads, writes int
				}{
					{"a node goes", func() { w.exclude(node, "true") }, 5, 1},
					{"it comes again", func() { w.editNode(node, func(n *corev1.Node) { n.Labels = nil }) }, 5, 1},
					{"a restart", func() { stop(); w.Reopen(); w.start(c) }, 4, 0},
					{"the first comparison after it", func() { <-time.After(time.Minute) }, 4, 0},
					{"a comparison", func() { <-time.After(repairPeriod) }, 4, 0},
				} {
					w.Forget()
					event.do()
					w.settle()
					if reads, writes := len(w.Reads()), len(w.Writes()); reads != event.reads || writes != event.writes {
						t.Errorf("%s: %d reads and %d writes, want %d and %d", event.what, reads, writes, event.reads, event.writes)
					}
				}
			})
		})
	}
}

// The first comparison of a leader may come while the pools are filled. It may be the first to see that a node is
// excluded, because earlier work had to wait. A pool write uses the nodes as they were when it began, and the next
// pool write corrects what it writes last.
func TestANodeIsExcludedBeforeAComparison(t *testing.T) {
	for i := range 24 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1, Seed: uint64(i)}, 3)
				w.start(config())
				<-time.After(65 * time.Second)
				w.create(w.newService("web", 80))
				w.until("the scale set is being written", func() bool {
					return testkit.Must[compute.ScaleSet](w.Azure, testkit.Nodes).Properties.ProvisioningState == "Updating"
				})
				w.remove("web")
				w.create(w.newService("api", 81))
				w.exclude("nodes0-000000", "true")
				w.served("api")
				<-time.After(10 * time.Minute)
				if in := w.inPool(); !slices.Equal(in, []string{"1", "2"}) {
					t.Errorf("in the pool are %v", in)
				}
			})
		})
	}
}

// TestAFailedPoolWriteIsNotReportedAsDone checks a Service with an event that a machine cannot join. It gets an event
// of success when the machine has joined, and none at the tries before.
func TestAFailedPoolWriteIsNotReportedAsDone(t *testing.T) {
	for name, fault := range map[string]core.Fault{
		"refused": {Fault: core.FaultError, Status: 400, Code: "InvalidRequestFormat"},
		"busy":    {Fault: core.FaultError, Status: 409, Code: "AnotherOperationInProgress"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1}, 2)
				w.exclude("nodes0-000000", "true")
				w.start(config())
				w.create(w.newService("web", 80))
				w.served("web")
				w.settle()
				w.events.forget()

				fault.Method, fault.Type = "PUT", compute.ScaleSetInstances
				if err := w.SetFaults([]core.Fault{fault}); err != nil {
					t.Fatal(err)
				}
				w.exclude("nodes0-000000", "false")
				w.until("an event says that the machine cannot join", func() bool { return len(w.reportedFailures("web")) > 0 })
				w.events.forget()
				<-time.After(30 * time.Minute)
				if reported := w.events.reasons("web"); slices.Contains(reported, "UpdatedLoadBalancer") {
					t.Errorf("got %v", reported)
				}
				if err := w.SetFaults(nil); err != nil {
					t.Fatal(err)
				}
				w.until("all are in", func() bool { return w.members() == 2 })
				w.settle()
				reported := w.events.reasons("web")
				if len(reported) == 0 || reported[len(reported)-1] != "UpdatedLoadBalancer" {
					t.Errorf("got %v", reported)
				}
			})
		})
	}
}

// A new Service has its address when a machine is in the pool, not before: no machine would answer.
func TestAnAddressIsShownWhenAMachineIsThere(t *testing.T) {
	for name, busy := range map[string]time.Duration{"soon": 0, "when Azure lets one in": 5 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1, Seed: 2}, 3)
				done := func() {}
				if busy > 0 {
					done = w.keepBusy(compute.ScaleSetInstances, "*")
				}
				w.start(config())
				names := w.createMany(3)
				shown := func() bool { return slices.ContainsFunc(names, func(n string) bool { return w.address(n) != "" }) }
				<-time.After(busy)
				if busy > 0 && shown() {
					t.Error("an address is shown, and no machine has come")
				}
				done()
				w.until("an address is shown", shown)
				if w.members() == 0 {
					t.Error("an address is shown, and the pool is empty")
				}
				w.allServed(names)
			})
		})
	}
}

// Once machines have joined or left after failures, the failures do not count. The next failure is tried again as
// soon as a first one.
func TestFailuresOfMachinesThatAreOverAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		const node = "nodes0-000000"
		takes := func(failures int, excluded string, members int) time.Duration {
			t.Helper()
			refusal := core.Fault{Method: "PUT", Type: compute.ScaleSetInstances, Times: failures, Fault: core.FaultError,
				Status: 400, Code: "InvalidRequestFormat"}
			if err := w.SetFaults([]core.Fault{refusal}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			w.exclude(node, excluded)
			w.until("the machine has gone or come", func() bool { return w.members() == members })
			return time.Since(began)
		}
		if took := takes(4, "true", 1); took < 5*time.Minute {
			t.Errorf("it left after %v, and was to be refused four times", took)
		}
		w.settle()
		if took := takes(1, "false", 2); took > time.Minute {
			t.Errorf("tried again after %v, as if it had failed before", took)
		}
	})
}

// TestAFailedPoolWriteIsFollowedByAnEvent checks a Service with an event that machines could not join or leave. It
// gets a further event when they did after all.
func TestAFailedPoolWriteIsFollowedByAnEvent(t *testing.T) {
	for name, change := range map[string]func(w *serviceCluster){
		"one does not come":  func(w *serviceCluster) { w.create(w.newService("web", 80)) },
		"one does not leave": func(w *serviceCluster) { w.exclude("nodes0-000000", "true") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1}, 2)
				w.start(config())
				if name == "one does not leave" {
					w.create(w.newService("web", 80))
					w.served("web")
					w.until("all are in", func() bool { return w.members() == 2 })
					w.settle()
				}
				err := w.SetFaults([]core.Fault{{Method: "PUT", Type: compute.ScaleSetInstances, Times: 1,
					Fault: core.FaultOperation, Code: "InternalServerError"}})
				if err != nil {
					t.Fatal(err)
				}
				w.events.forget()
				change(w)
				<-time.After(10 * time.Minute)
				reported := w.events.reasons("web")
				if !slices.Contains(reported, "UpdateLoadBalancerFailed") || reported[len(reported)-1] != "UpdatedLoadBalancer" {
					t.Errorf("got %v", reported)
				}
			})
		})
	}
}
