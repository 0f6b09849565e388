package service_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

const idleTimeout = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout"

func TestAMistakeIsReportedOnceAndNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.start(config())
		bad := w.newService("bad", 80)
		bad.Annotations = map[string]string{idleTimeout: "1000"}
		w.create(bad)
		w.settle()
		w.Forget()
		<-time.After(24 * time.Hour)
		if reads := w.Reads(); len(reads) > 0 {
			t.Errorf("it was looked at again: %v", reads)
		}
		reported := w.events.list("bad")
		if len(reported) != 2 || !strings.HasPrefix(reported[1], "SyncLoadBalancerFailed: ") ||
			!strings.Contains(reported[1], idleTimeout) ||
			!strings.Contains(reported[1], "1000") {
			t.Errorf("got %q, want once what is wrong with %s=1000", reported, idleTimeout)
		}

		w.create(w.newService("good", 80))
		w.served("good")
		w.settle()
		if n := len(w.events.list("bad")); n != 2 {
			t.Errorf("reported again because of a neighbour: %q", w.events.list("bad"))
		}

		w.events.forget()
		w.change("bad", func(s *corev1.Service) { s.Annotations[idleTimeout] = "10" })
		w.served("bad")
		w.settle()
		if reported := w.events.reasons("bad"); !slices.Contains(reported, "EnsuredLoadBalancer") {
			t.Errorf("after it was put right: %v", reported)
		}
	})
}

// The last good state stays while a Service is wrong.
func TestAMistakeLeavesWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		before, address := w.Snapshot(), w.address("web")
		w.change("web", func(s *corev1.Service) { s.Annotations = map[string]string{idleTimeout: "x"} })
		w.settle()
		after := w.Snapshot()
		for id := range before {
			if before[id] != after[id] {
				t.Errorf("%s changed", id)
			}
		}
		if got := w.address("web"); got != address {
			t.Errorf("the address became %q from %q", got, address)
		}
		w.remove("web")
		w.until("web is gone", func() bool { return w.gone("web") })
	})
}

// When Azure gives no address to one Service, the others of the same commit get theirs.
func TestAServiceWithoutAnAddressLeavesItsNeighboursAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1, Faults: []core.Fault{{
			Method: "PUT", Type: network.PublicIPAddresses, Name: "kubernetes-a*6",
			Times: 3, Fault: "error", Status: 400, Code: "PublicIPCountLimitReached",
		}}}, 1)
		w.start(config())
		w.create(w.newService("first", 80)) // fills the pool
		w.served("first")
		w.settle()
		names := w.createMany(8)
		began := time.Now()
		unlucky := names[4]
		w.allServed(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == unlucky }))
		if took := time.Since(began); took > time.Minute {
			t.Errorf("its neighbours waited for %v", took)
		}
		if w.address(unlucky) != "" {
			t.Error("the unlucky one has an address, the fault did not happen")
		}
		w.served(unlucky)
		if reported := w.events.list(unlucky); !slices.ContainsFunc(reported,
			func(e string) bool { return strings.Contains(e, "PublicIPCountLimitReached") }) {
			t.Errorf("it got %v", reported)
		}
	})
}

// What another owner did to a public IP just when it was made is found, and not reported.
func TestAPublicIPThatChangesMeanwhile(t *testing.T) {
	for _, code := range []string{"", "AnotherOperationInProgress"} {
		synctest.Test(t, func(t *testing.T) {
			w := newServiceCluster(t, core.Options{}, 1)
			w.start(config())
			w.create(w.newService("first", 80)) // fills the pool
			w.served("first")
			fault := core.Fault{Method: "PUT", Type: network.PublicIPAddresses, Times: 1, Fault: core.FaultError, Status: 412,
				Code: code}
			if code != "" {
				fault.Status = 409
			}
			if err := w.SetFaults([]core.Fault{fault}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			w.create(w.newService("web", 81))
			w.served("web")
			if took, reported := time.Since(began), w.reportedFailures("web"); took > 3*time.Second || len(reported) > 0 {
				t.Errorf("%q: served after %v and reported %q", code, took, reported)
			}
		})
	}
}

// D15. Everything is compared with Azure from time to time, and put back.
func TestWhatWasChangedByHandIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		c := config()
		c.RepairPeriod = 30 * time.Minute
		w.start(c)
		names := w.createMany(10)
		w.allServed(names)
		w.settle()
		good := w.Snapshot()

		w.Forget()
		w.events.forget()
		<-time.After(c.RepairPeriod)
		w.settle()
		const most = 12
		if reads, writes := w.Reads(), w.Writes(); len(writes) > 0 || len(reads) == 0 || len(reads) > most {
			t.Errorf("comparing took %d reads %v and %d writes, want at most %d and none", len(reads), reads, len(writes), most)
		}
		if reported := w.events.list(""); len(reported) > 0 {
			t.Errorf("nothing was wrong, and got %v", reported)
		}

		doc, err := w.Client.Fresh().Get(t.Context(), testkit.LoadBalancer)
		if err != nil {
			t.Fatal(err)
		}
		edited := strings.Replace(string(doc), `"idleTimeoutInMinutes":4`, `"idleTimeoutInMinutes":30`, 1)
		if edited == string(doc) {
			t.Fatal("nothing to edit")
		}
		other := w.OtherClient()
		if _, err := other.Put(t.Context(), azure.Write{ID: testkit.LoadBalancer, Body: azure.Document(edited)}); err != nil {
			t.Fatal(err)
		}
		<-time.After(c.RepairPeriod + time.Minute)
		after := w.Snapshot()
		for id := range good {
			if good[id] != after[id] {
				t.Errorf("%s is not as it was", id)
			}
		}
		reported := w.events.list("")
		if len(reported) != 1 || !strings.Contains(reported[0], "RepairedLoadBalancer") ||
			!strings.Contains(reported[0], "idleTimeoutInMinutes: 30 -> 4") {
			t.Errorf("got %q, want one report of the idle timeout", reported)
		}
	})
}

// Whatever kaz has made, what a user changes of it by hand is put back, and reported.
func TestWhateverWasChangedByHandIsPutBack(t *testing.T) {
	machine := testkit.Nodes.Child("virtualMachines", "0")
	publicIP := func(w *serviceCluster) azure.ID {
		return testkit.Group.Resource(network.PublicIPAddresses, testkit.ClusterName+"-"+w.base("web"))
	}
	both := []bool{false, true}
	for name, test := range map[string]struct {
		byAddress []bool // in clusters of which kinds of pools
		does      func(w *serviceCluster)
		says      string
	}{
		"a rule is taken away": {both, func(w *serviceCluster) {
			w.byHand(testkit.LoadBalancer, func(p object) { p["loadBalancingRules"] = []any{} })
		}, "loadBalancingRules"},
		"a probe is another": {both, func(w *serviceCluster) {
			w.byHand(testkit.LoadBalancer, func(p object) { p["probes"].([]any)[0].(object)["properties"].(object)["port"] = 31999 })
		}, "port: 31999 -> 30080"},
		"a frontend has another address": {both, func(w *serviceCluster) {
			other := testkit.Group.Resource(network.PublicIPAddresses, "mine")
			w.byHand(testkit.LoadBalancer, func(p object) {
				p["frontendIPConfigurations"].([]any)[0].(object)["properties"].(object)["publicIPAddress"] = ref(other)
			})
		}, "publicIPAddress"},
		"the load balancer is deleted": {[]bool{true}, func(w *serviceCluster) {
			if err := w.OtherClient().Delete(w.t.Context(), testkit.LoadBalancer); err != nil {
				w.t.Fatal(err)
			}
		}, "create " + testkit.ClusterName},
		"the pool is emptied": {[]bool{true}, func(w *serviceCluster) {
			w.byHand(testkit.LoadBalancer, func(p object) {
				delete(p["backendAddressPools"].([]any)[0].(object)["properties"].(object), "loadBalancerBackendAddresses")
			})
		}, "loadBalancerBackendAddresses"},
		"a machine leaves the pool": {[]bool{false}, func(w *serviceCluster) {
			w.byHand(machine, func(p object) { joins(p["networkProfileConfiguration"]) })
		}, "loadBalancerBackendAddressPools"},
		"new machines stay out of the pool": {[]bool{false}, func(w *serviceCluster) {
			w.byHand(testkit.Nodes, func(p object) { joins(p["virtualMachineProfile"].(object)["networkProfile"]) })
		}, "loadBalancerBackendAddressPools"},
		"security rules are taken away": {both, func(w *serviceCluster) {
			w.byHand(testkit.SecurityGroup, func(p object) { p["securityRules"] = []any{} })
		}, "securityRules"},
		"a security rule lets in others": {both, func(w *serviceCluster) {
			w.byHand(testkit.SecurityGroup, func(p object) {
				p["securityRules"].([]any)[0].(object)["properties"].(object)["sourceAddressPrefix"] = "10.0.0.0/8"
			})
		}, "sourceAddressPrefix"},
		"a DNS label is taken away": {both, func(w *serviceCluster) {
			w.byHand(publicIP(w), func(p object) { delete(p, "dnsSettings") })
		}, "dnsSettings"},
	} {
		for _, addresses := range test.byAddress {
			t.Run(fmt.Sprintf("%s, pool of addresses %v", name, addresses), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := mixed(t, core.Options{})
					c := repairing()
					c.LoadBalancer.PoolByIP = addresses
					w.start(c)
					web := w.newService("web", 80)
					annotated("dns-label-name", "kaz-web")(web)
					w.create(web)
					w.served("web")
					<-time.After(2 * time.Minute) // the look that follows a start is over
					guid := regexp.MustCompile(`"resourceGuid": "[^"]*"`)
					all := func() map[string]string { // but for identities of what is made anew
						now := w.Surroundings()
						for id, text := range now {
							now[id] = guid.ReplaceAllString(text, "")
						}
						return now
					}
					good := all()
					w.events.forget()
					test.does(w)
					<-time.After(c.RepairPeriod + time.Minute)
					if d := cmp.Diff(good, all()); d != "" {
						t.Errorf("it is not as it was (-before +after):\n%s", d)
					}
					if reported := w.events.list("web"); len(reported) != 1 ||
						!strings.HasPrefix(reported[0], "RepairedLoadBalancer: Put back") ||
						!strings.Contains(reported[0], test.says) {
						t.Errorf("got %q, want what was put back: %q", reported, test.says)
					}
				})
			})
		}
	}
}

// Row 104 and D2. A controller that may not list load balancers cannot delete. The Service gets an event, keeps its
// finalizer, and goes when the controller has the right.
func TestListingDeniedOnDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 1)
		before := w.Snapshot()
		stop := w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		stop()
		if err := w.SetFaults([]core.Fault{{Method: "GET", Type: network.LoadBalancers, Fault: "error", Status: 403,
			Code: "AuthorizationFailed"}}); err != nil {
			t.Fatal(err)
		}
		w.Reopen()
		w.remove("web")
		w.events.forget()
		w.start(config())
		w.until("the problem is reported", func() bool {
			return slices.ContainsFunc(w.events.list("web"), func(e string) bool {
				return strings.HasPrefix(e, "SyncLoadBalancerFailed") && strings.Contains(e, "AuthorizationFailed")
			})
		})
		if w.gone("web") {
			t.Error("it is gone, and its load balancer is there")
		}
		if err := w.SetFaults(nil); err != nil {
			t.Fatal(err)
		}
		w.allGone([]string{"web"})
		w.restored(before, w.Snapshot)
	})
}

// TestFailuresThatAreOverAreForgotten checks that a Service that is served after failures is like any other. The next
// failure is tried again as soon as a first one, and there are no further events.
func TestFailuresThatAreOverAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		c := config()
		c.LoadBalancer.PoolByIP = true
		w.start(c)
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		toPort := func(port int32, failures int) time.Duration {
			t.Helper()
			w.events.forget()
			refusal := core.Fault{Method: "PUT", Type: network.LoadBalancers, Times: failures, Fault: core.FaultError,
				Status: 400, Code: "InvalidRequestFormat"}
			if err := w.SetFaults([]core.Fault{refusal}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			w.change("web", func(s *corev1.Service) { s.Spec.Ports[0].Port = port })
			w.until("it is served", func() bool { return slices.Contains(w.events.reasons("web"), "EnsuredLoadBalancer") })
			if d := cmp.Diff([]string{"EnsuringLoadBalancer", "SyncLoadBalancerFailed", "EnsuredLoadBalancer"},
				w.events.reasons("web")); d != "" {
				t.Errorf("events of %d failures (-want +got):\n%s", failures, d)
			}
			return time.Since(began)
		}
		if took := toPort(81, 4); took < 5*time.Minute {
			t.Errorf("served after %v, and it was to be refused four times", took)
		}
		if took := toPort(82, 1); took > time.Minute {
			t.Errorf("tried again after %v, as if it had failed before", took)
		}
		w.events.forget()
		w.exclude(w.firstNode(), "true")
		w.settle()
		w.removed("web")
		want := []string{"UpdatedLoadBalancer", "DeletingLoadBalancer", "DeletedLoadBalancer"}
		if d := cmp.Diff(want, w.events.reasons("web")); d != "" {
			t.Errorf("reported then (-want +got):\n%s", d)
		}
	})
}

// TestAChangeByTheUserResetsTheBackoff checks that a Service's failures from before a change do not count. The
// Service is tried at once, and again as soon as after a first failure.
func TestAChangeByTheUserResetsTheBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		w.start(config())
		refuse := func(times int) {
			t.Helper()
			if err := w.SetFaults([]core.Fault{{Method: "PUT", Type: network.LoadBalancers, Times: times, Fault: core.FaultError,
				Status: 400, Code: "InvalidRequestFormat"}}); err != nil {
				t.Fatal(err)
			}
		}
		refuse(0)
		w.create(w.newService("web", 80))
		<-time.After(time.Hour)
		refuse(1)
		began := time.Now()
		w.change("web", func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
		w.served("web")
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the changed Service is served after %v", took)
		}
	})
}

// TestAFailedComparisonIsFollowedByAnEvent checks that a comparison that failed is reported, and so is
// its success later, though all was up to date.
func TestAFailedComparisonIsFollowedByAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.start(repairing())
		w.create(w.newService("web", 80))
		w.served("web")
		<-time.After(2 * time.Minute) // the look that follows a start is over
		w.events.forget()
		if err := w.SetFaults([]core.Fault{{Method: "GET", Type: network.LoadBalancers, Fault: core.FaultError, Status: 403,
			Code: "AuthorizationFailed"}}); err != nil {
			t.Fatal(err)
		}
		w.reported("web", "SyncLoadBalancerFailed", "AuthorizationFailed")
		if err := w.SetFaults(nil); err != nil {
			t.Fatal(err)
		}
		w.reported("web", "EnsuredLoadBalancer", "")
	})
}

// TestAComparisonReadsAzure checks that a comparison reads Azure, however recent the last read was.
func TestAComparisonReadsAzure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		before := w.Snapshot()
		c := config()
		c.RepairPeriod = 20 * time.Second // less than anything is remembered for
		w.start(c)
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		good := w.Snapshot()
		repaired := func(what string, want map[string]string) {
			t.Helper()
			<-time.After(c.RepairPeriod + 5*time.Second)
			if d := cmp.Diff(want, w.Snapshot()); d != "" {
				t.Errorf("%s was changed by hand and is not as it was (-before +after):\n%s", what, d)
			}
		}
		w.editRule("-TCP-80")
		repaired("a rule", good)
		w.removed("web")
		w.settle()
		w.addRule(rulesToNowhere)
		repaired("the security group", before)
	})
}
