package service_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

func TestProblemsReportedToUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		if !slices.Contains(w.get("web").Finalizers, helpers.LoadBalancerCleanupFinalizer) {
			t.Errorf("finalizers %v", w.get("web").Finalizers)
		}
		w.remove("web")
		w.until("web is gone", func() bool { return w.gone("web") })
		w.settle()
		want := []string{
			"EnsuringLoadBalancer: Ensuring load balancer", "EnsuredLoadBalancer: Ensured load balancer",
			"DeletingLoadBalancer: Deleting load balancer", "DeletedLoadBalancer: Deleted load balancer",
		}
		if d := cmp.Diff(want, w.events.list("web")); d != "" {
			t.Errorf("events (-want +got):\n%s", d)
		}
	})
}

func TestOnlyServicesOfOurClassesAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.start(config())
		for name, class := range map[string]*string{"plain": nil, "ours": new(service.Class), "theirs": new("example.com/lb")} {
			s := w.newService(name, 80)
			s.Spec.LoadBalancerClass = class
			w.create(s)
		}
		w.served("plain")
		w.served("ours")
		w.settle()
		if s := w.get("theirs"); len(s.Finalizers) > 0 || addressOf(s) != "" || len(w.events.list("theirs")) > 0 {
			t.Errorf("a Service of another class was touched: %+v %v", s, w.events.list("theirs"))
		}
		w.remove("theirs")
		w.settle()
		if !w.gone("theirs") {
			t.Error("a Service of another class is held")
		}
	})
}

func TestAServiceThatIsNoLoadBalancerAnyMoreLosesAll(t *testing.T) {
	for name, turn := range map[string]func(*corev1.Service){
		"held":                      noBalancer,
		"without finalizer as well": func(s *corev1.Service) { s.Spec.Type, s.Finalizers = corev1.ServiceTypeClusterIP, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 1)
				before := w.Snapshot()
				w.start(config())
				w.create(w.newService("web", 80))
				w.served("web")
				w.change("web", turn)
				w.until("web is let go", func() bool { return len(w.get("web").Finalizers) == 0 && w.address("web") == "" })
				if d := cmp.Diff(before, w.Snapshot()); d != "" {
					t.Errorf("Azure (-before +after):\n%s", d)
				}
				// And back.
				w.change("web", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer })
				w.served("web")
			})
		})
	}
}

// TestAServiceThatVanishedLosesAll checks a Service that lost its finalizer to a user, so that it went before its
// load balancer. A controller that was not watching then sees a later Service of the same name.
func TestAServiceThatVanishedLosesAll(t *testing.T) {
	for name, follow := range map[string]func(w *serviceCluster, successor *corev1.Service) error{
		"it is seen to go": func(w *serviceCluster, successor *corev1.Service) error {
			err := w.client.Tracker().Delete(servicesResource, successor.Namespace, successor.Name)
			w.create(successor)
			return err
		},
		"its deletion is missed": func(w *serviceCluster, successor *corev1.Service) error {
			return w.client.Tracker().Update(servicesResource, successor, successor.Namespace)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 1)
				before := w.Snapshot()
				w.start(config())
				w.create(w.newService("web", 80))
				w.served("web")
				if err := follow(w, w.newService("web", 80)); err != nil {
					t.Fatal(err)
				}
				w.served("web")
				w.remove("web")
				w.until("web is gone", func() bool { return w.gone("web") })
				w.settle()
				if d := cmp.Diff(before, w.Snapshot()); d != "" {
					t.Errorf("Azure (-before +after):\n%s", d)
				}
			})
		})
	}
}

func TestAFinalizerThatWasTakenOffIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.change("web", func(s *corev1.Service) { s.Finalizers = nil })
		w.until("the finalizer is back", func() bool { return len(w.get("web").Finalizers) == 1 })
	})
}

func TestAChangedLabelIsReconciled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		w.events.forget()
		w.change("web", func(s *corev1.Service) { s.Labels = map[string]string{"tier": "front"} })
		w.settle()
		if d := cmp.Diff([]string{"EnsuringLoadBalancer", "EnsuredLoadBalancer"}, w.events.reasons("web")); d != "" {
			t.Error(d)
		}
	})
}

func TestARestartFindsItsServicesInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 3)
		stop := w.start(config())
		for _, name := range []string{"a", "b", "c", "d"} {
			w.create(w.newService(name, 80))
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			w.served(name)
		}
		w.settle()
		stop()
		w.remove("d") // while no controller runs
		w.Forget()
		w.events.forget()
		w.client.ClearActions()
		w.start(config())
		w.until("d is gone", func() bool { return w.gone("d") })
		w.settle()
		if d := cmp.Diff(map[string]int{testkit.ClusterName: 1, "nsg": 1, "public IP": 1}, count(w.Writes())); d != "" {
			t.Errorf("writes for the deletion of one Service:\n%s", d)
		}
		for _, name := range []string{"a", "b", "c"} {
			if reported := w.events.list(name); len(reported) > 0 {
				t.Errorf("%s got %v", name, reported)
			}
		}
	})
}

func TestARestartOfAnUnchangedClusterWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 3)
		stop := w.start(config())
		for i := range 20 {
			w.create(w.newService("web-"+string(rune('a'+i)), 80))
		}
		w.served("web-t")
		w.settle()
		stop()
		w.Forget()
		w.events.forget()
		w.client.ClearActions()
		w.Reopen()
		w.start(config())
		w.settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("writes %v", writes)
		}
		if reported := w.events.list(""); len(reported) > 0 {
			t.Errorf("events %v", reported)
		}
		for _, a := range w.client.Actions() {
			if a.GetVerb() == "patch" {
				t.Errorf("Kubernetes was written to: %v", a)
			}
		}
		const most = 12
		if reads := w.Reads(); len(reads) > most {
			t.Errorf("%d reads, want at most %d: %v", len(reads), most, reads)
		}
	})
}

// Operations for Services are measured, under the names that dashboards use, with their results.
func TestWhatServicesAskForIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		c := config()
		c.LoadBalancer.PoolByIP = true
		var mu sync.Mutex
		ended := map[string]int{}
		w.startAs(c, func(d *service.Deps) {
			d.Measure = func(operation string) func(error) {
				return func(err error) {
					mu.Lock()
					defer mu.Unlock()
					ended[fmt.Sprint(operation, ", well: ", err == nil)]++
				}
			}
		})
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		w.exclude(w.firstNode(), "true")
		w.settle()
		refusal := core.Fault{Method: "PUT", Type: network.LoadBalancers, Times: 1, Fault: core.FaultError, Status: 400,
			Code: "InvalidRequestFormat"}
		if err := w.SetFaults([]core.Fault{refusal}); err != nil {
			t.Fatal(err)
		}
		w.change("web", func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
		w.settle()
		w.removed("web")
		want := map[string]int{
			"services_ensure_loadbalancer, well: true": 2, "services_ensure_loadbalancer, well: false": 1,
			"services_update_loadbalancer, well: true": 1, "services_ensure_loadbalancer_deleted, well: true": 1,
		}
		if d := cmp.Diff(want, ended); d != "" {
			t.Errorf("measured (-want +got):\n%s", d)
		}
	})
}

// A controller that is stopped while it works reports no failure.
func TestTheEndOfTheProgramIsNoFailure(t *testing.T) {
	for name, until := range map[string]func(*serviceCluster) bool{
		"public IPs are made": func(w *serviceCluster) bool { return w.UnderWay() },
		"machines come": func(w *serviceCluster) bool {
			return testkit.Must[compute.ScaleSet](w.Azure, testkit.Nodes).Properties.ProvisioningState == "Updating"
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1, Seed: 2}, 3)
				stop := w.start(config())
				names := w.createMany(3)
				w.until(name, func() bool { return until(w) })
				stop()
				for _, name := range names {
					if reported := w.reportedFailures(name); len(reported) > 0 {
						t.Errorf("%s got %q", name, reported)
					}
				}
			})
		})
	}
}
