package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// refusedWrites are the writes that Azure refused because it was busy, of resources of a type.
func (w *serviceCluster) refusedWrites(fullType string) (all []testkit.Request) {
	w.t.Helper()
	_, segment, _ := strings.Cut(fullType, "/")
	for _, r := range w.Requests() {
		if r.Status == 409 && strings.Contains(r.Path, "/"+segment+"/") {
			all = append(all, r)
		}
	}
	return all
}

// reportedFailures are the events of failures that a Service got.
func (w *serviceCluster) reportedFailures(name string) []string {
	return slices.DeleteFunc(w.events.list(name), func(line string) bool {
		reason, _, _ := strings.Cut(line, ":")
		return !strings.HasSuffix(reason, "Failed")
	})
}

// keepBusy makes Azure refuse writes, as it does while it is busy with a scale set, until the returned
// function is called.
func (w *serviceCluster) keepBusy(fullType, name string) (done func()) {
	w.t.Helper()
	set := func(faults ...core.Fault) {
		if err := w.SetFaults(faults); err != nil {
			w.t.Fatal(err)
		}
	}
	set(core.Fault{Method: "PUT", Type: fullType, Name: name, Fault: core.FaultError, Status: 409,
		Code: "AnotherOperationInProgress"})
	return func() { set() }
}

// TestServicesStandBackWhileTheScaleSetIsWritten checks many Services that come while machines join an empty pool.
// The load balancer is written before and after the scale set, not meanwhile, and no event reports that. A Service
// that comes meanwhile is served with the others.
func TestServicesStandBackWhileTheScaleSetIsWritten(t *testing.T) {
	refused := 0
	// Several seeds' worth of chance, and an Azure that is so slow that the write takes minutes.
	for i, latency := range []float64{1, 1, 1, 4} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: latency, Seed: uint64(i)}, 3)
				w.start(config())
				names := w.createMany(20)
				w.until("the scale set is being written", func() bool {
					return testkit.Must[compute.ScaleSet](w.Azure, testkit.Nodes).Properties.ProvisioningState == "Updating"
				})
				<-time.After(time.Second)
				w.create(w.newService("late", 80))
				names = append(names, "late")
				w.until("the scale set is written", func() bool {
					return testkit.Must[compute.ScaleSet](w.Azure, testkit.Nodes).Properties.ProvisioningState == "Succeeded"
				})
				began := time.Now()
				w.allServed(names)
				const polled, writes = 10 * time.Second, 50 * time.Second // of the write; of public IP, load balancer and the first machine
				if took := time.Since(began); took > time.Duration(latency)*(polled+writes) {
					t.Errorf("all were served %v after the scale set was written", took)
				}
				refused += len(w.refusedWrites(network.LoadBalancers))
				for _, name := range names {
					if d := cmp.Diff([]string{"EnsuringLoadBalancer", "EnsuredLoadBalancer"}, w.events.reasons(name)); d != "" {
						t.Errorf("%s got (-want +got):\n%s", name, d)
					}
				}
			})
		})
	}
	if refused > 2 { // what was on its way when the other write began, and tried once more
		t.Errorf("Azure refused %d writes", refused)
	}
}

// TestScaleSetUpgradedByHand checks a user's upgrade of the machines: a Service that comes meanwhile
// waits, and is served soon after. A wait of less than a minute causes no event.
func TestScaleSetUpgradedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 0.4, Seed: 2}, 3)
		w.start(config())
		w.create(w.newService("old", 80))
		w.create(w.newService("leaver", 80))
		w.allServed([]string{"old", "leaver"})
		w.settle()
		w.Forget()
		w.events.forget()
		upgraded := make(chan time.Time)
		go func() {
			_, err := w.OtherClient().Post(t.Context(), testkit.Nodes, "manualupgrade", azure.Document(`{"instanceIds":["*"]}`))
			if err != nil {
				t.Error(err)
			}
			upgraded <- time.Now()
		}()
		<-time.After(2 * time.Second)
		w.create(w.newService("new", 80))
		w.change("old", func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
		w.remove("leaver")
		done := <-upgraded
		w.served("new")
		w.until("leaver is gone", func() bool { return w.gone("leaver") })
		if took := time.Since(done); took > time.Minute {
			t.Errorf("served %v after the upgrade", took)
		}
		w.settle()
		if refused := len(w.refusedWrites(network.LoadBalancers)); refused == 0 || refused > 16 {
			t.Errorf("Azure refused %d writes, want some, and few", refused)
		}
		for name, want := range map[string][]string{
			"old": {"EnsuringLoadBalancer", "EnsuredLoadBalancer"}, "new": {"EnsuringLoadBalancer", "EnsuredLoadBalancer"},
			"leaver": {"DeletingLoadBalancer", "DeletedLoadBalancer"},
		} {
			if d := cmp.Diff(want, w.events.reasons(name)); d != "" {
				t.Errorf("%s got (-want +got):\n%s", name, d)
			}
		}
	})
}

// TestAzureIsBusyForLong checks that each Service that waits for a busy Azure gets one event after a
// while, and others none. It is tried less and less often, and all are served within about a minute of
// its end.
func TestAzureIsBusyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const long, many = 20 * time.Minute, 10
		w := newServiceCluster(t, core.Options{Latency: 1, Seed: 2}, 3)
		w.start(config())
		w.create(w.newService("old", 80))
		w.served("old")
		w.settle()
		w.Forget()
		w.events.forget()
		done := w.keepBusy(network.LoadBalancers, "*")
		names := w.createMany(many)
		<-time.After(time.Minute)
		for _, name := range names {
			if reported := w.reportedFailures(name); len(reported) > 0 {
				t.Errorf("%s got in the first minute: %v", name, reported)
			}
		}
		<-time.After(90 * time.Second)
		for _, name := range names {
			if reported := w.reportedFailures(name); len(reported) != 1 || !strings.Contains(reported[0], "busy") {
				t.Errorf("%s got after two and a half minutes: %v", name, reported)
			}
		}
		<-time.After(long - 150*time.Second)
		refused, reads := len(w.refusedWrites(network.LoadBalancers)), len(w.Reads())
		t.Logf("%d writes refused and %d reads in %v", refused, reads, long)
		// Azure refuses at most two writes at each beat. The beats are those of 5, 10, 20 and 40 seconds, then every
		// minute. Public IPs come one after the other, and the first Service to have one begins.
		if most := 2 * (20 + 10); refused > most || reads > 4*most {
			t.Errorf("%d writes refused and %d reads in %v, want at most %d and %d", refused, reads, long, most, 4*most)
		}
		done()
		began := time.Now()
		w.allServed(names)
		if took := time.Since(began); took > 75*time.Second {
			t.Errorf("all were served %v after Azure was busy", took)
		}
		for _, name := range names {
			if reported := w.reportedFailures(name); len(reported) != 1 {
				t.Errorf("%s got %v", name, reported)
			}
		}
		if reported := w.events.list("old"); len(reported) > 0 {
			t.Errorf("a Service that waits for nothing got %v", reported)
		}
	})
}

// The Services of one load balancer do not wait for the Services of another, though they come together.
func TestABusyLoadBalancerDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1, Seed: 2}, 3)
		w.start(config())
		w.create(w.newService("outside", 80))
		w.create(w.newService("neighbour", 80))
		s := w.newService("inside", 80)
		s.Annotations = map[string]string{prefix + "load-balancer-internal": "true"}
		w.create(s)
		names := []string{"outside", "neighbour", "inside"}
		w.allServed(names)
		w.settle()
		w.events.forget()
		done := w.keepBusy(network.LoadBalancers, testkit.ClusterName)
		for _, name := range names {
			w.change(name, func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
		}
		<-time.After(30 * time.Second)
		begun, served := []string{"EnsuringLoadBalancer"}, []string{"EnsuringLoadBalancer", "EnsuredLoadBalancer"}
		for name, want := range map[string][]string{"outside": begun, "neighbour": begun, "inside": served} {
			if d := cmp.Diff(want, w.events.reasons(name)); d != "" {
				t.Errorf("%s got (-want +got):\n%s", name, d)
			}
		}
		done()
		w.settle()
		if d := cmp.Diff(served, w.events.reasons("outside")); d != "" {
			t.Errorf("outside got (-want +got):\n%s", d)
		}
	})
}

// TestMachinesWaitToComeIn checks machines that are to join the pool while Azure is busy with them. They join when
// Azure is done. Served Services get one event if that takes long.
func TestMachinesWaitToComeIn(t *testing.T) {
	for name, c := range map[string]struct {
		busy     time.Duration
		reported int
	}{
		"not for long": {busy: 30 * time.Second}, "for long": {busy: 10 * time.Minute, reported: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1, Seed: 2}, 3)
				w.start(config())
				names := w.createMany(3)
				w.allServed(names)
				w.settle()
				const node = "nodes0-000001"
				w.exclude(node, "true")
				w.until("one is out", func() bool { return w.members() == 2 })
				w.events.forget()
				done := w.keepBusy(compute.ScaleSetInstances, "*")
				w.editNode(node, func(n *corev1.Node) { n.Labels = nil })
				<-time.After(c.busy)
				done()
				w.until("it is in again", func() bool { return w.members() == 3 })
				w.settle()
				for _, name := range names {
					if reported := w.reportedFailures(name); len(reported) != c.reported {
						t.Errorf("%s got %v", name, reported)
					}
				}
			})
		})
	}
}

// TestARepairWaitsForAzure checks that a user's change by hand is undone though Azure was busy at
// first, and that this is the only event.
func TestARepairWaitsForAzure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1, Seed: 2}, 3)
		c := config()
		c.RepairPeriod = 30 * time.Minute
		w.start(c)
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		w.editRule("-TCP-80")
		w.Forget()
		w.events.forget()
		done := w.keepBusy(network.LoadBalancers, "*")
		<-time.After(c.RepairPeriod - 5*time.Minute)
		w.until("it is tried", func() bool { return len(w.refusedWrites(network.LoadBalancers)) > 0 })
		<-time.After(20 * time.Second)
		done()
		w.until("something is reported", func() bool { return len(w.events.list("web")) > 0 })
		w.settle()
		if d := cmp.Diff([]string{"RepairedLoadBalancer"}, w.events.reasons("web")); d != "" {
			t.Errorf("it got (-want +got):\n%s", d)
		}
	})
}
