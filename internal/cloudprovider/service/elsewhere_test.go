package service_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// elsewhere asks for a public IP in another resource group.
var elsewhere = annotated("load-balancer-resource-group", "far")

// asked are what a Service can have in another resource group, and what its user does with
// it while no controller runs.
var asked = map[string]struct {
	first, ask func(s *corev1.Service) // how it is before, and how it asks for it
	turns      map[string]func(s *corev1.Service)
}{
	"public IP": {first: annotated(), ask: elsewhere, turns: map[string]func(s *corev1.Service){
		"back to the cluster's group": without("load-balancer-resource-group"),
		"internal":                    both(without("load-balancer-resource-group"), annotated("load-balancer-internal", "true")),
		"changed and deleted":         both(without("load-balancer-resource-group"), deleted),
		"stripped and deleted":        both(stripped, deleted),
		"no load balancer any more":   both(without("load-balancer-resource-group"), noBalancer),
	}},
	"private link": {first: annotated("load-balancer-internal", "true"),
		ask: annotated("pls-create", "true", "pls-resource-group", "far"), turns: map[string]func(s *corev1.Service){
			"back to the cluster's group": without("pls-resource-group"),
			"asked for no more":           without("pls-resource-group", "pls-create"),
			"external":                    without("pls-resource-group", "pls-create", "load-balancer-internal"),
			"changed and deleted":         both(without("pls-resource-group", "pls-create"), deleted),
			"stripped and deleted":        both(stripped, deleted),
			"no load balancer any more":   both(without("pls-resource-group"), noBalancer),
		}},
}

func deleted(s *corev1.Service) { s.DeletionTimestamp = new(metav1.Now()) }

// stripped removes all annotations.
func stripped(s *corev1.Service) { s.Annotations = nil }

func noBalancer(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }

// without removes annotations.
func without(names ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		for _, name := range names {
			delete(s.Annotations, prefix+name)
		}
	}
}

func both(one, other func(*corev1.Service)) func(*corev1.Service) {
	return func(s *corev1.Service) {
		one(s)
		other(s)
	}
}

// TestWhatIsElsewhereOutlivesAController checks that resources in another resource group are found after a restart.
// Their Service asks for nothing there any more, and no load balancer shows them.
func TestWhatIsElsewhereOutlivesAController(t *testing.T) {
	first, stride := 1, 1
	for _, what := range slices.Sorted(maps.Keys(asked)) {
		its := asked[what]
		for _, before := range []string{"new", "held", "served"} {
			for _, name := range slices.Sorted(maps.Keys(its.turns)) {
				if testing.Short() { // each case has other writes; the long run has them all
					first, stride = first%3+1, 3
				}
				nth := first
				t.Run(what+"/"+before+"/"+name, func(t *testing.T) {
					t.Parallel()
					for ; turnedElsewhere(t, before, its.first, its.ask, its.turns[name], nth); nth += stride {
					}
				})
			}
		}
	}
}

// turnedElsewhere stops the controller after the nth PUT from when a Service asks for something in another resource
// group. It changes the Service meanwhile, and reports whether there was such a write.
func turnedElsewhere(t *testing.T, was string, first, ask, turn func(*corev1.Service), nth int) (happened bool) {
	t.Helper()
	t.Run(fmt.Sprint("write ", nth), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			crashes := make(crashes, 1)
			w := mixed(t, core.Options{Latency: 1, Seed: 5, Crash: crashes.note})
			before := w.everything()
			end := w.startAgain(crashes, func() {
				happened = true
				w.change("web", turn)
			})
			s := w.newService("web", 80)
			first(s)
			if was == "served" {
				w.create(s)
				w.served("web")
				w.settle()
			}
			if was == "held" { // but has no address yet
				s.Finalizers = []string{helpers.LoadBalancerCleanupFinalizer}
			}
			if err := w.SetFaults([]core.Fault{{Method: "PUT", Nth: nth, Times: 1, Fault: core.FaultCrash}}); err != nil {
				t.Fatal(err)
			}
			if was == "served" {
				w.change("web", ask)
			} else {
				ask(s)
				w.create(s)
			}
			w.settle()
			end()
			w.settle()
			if !w.gone("web") {
				w.remove("web")
			}
			w.until("the Service is gone", func() bool { return w.gone("web") })
			w.restored(before, w.everything)
		})
	})
	return happened
}

// kaz notes resource groups in a Service only as long as it needs the notes.
func TestNothingIsRememberedOfAServedService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{Latency: 1})
		stop := w.start(config())
		s := w.newService("web", 80)
		elsewhere(s)
		w.create(s)
		w.served("web")
		w.settle()
		w.remembers("web", 0)
		w.change("web", stripped)
		w.settle()
		w.change("web", elsewhere)
		w.settle()
		w.remembers("web", 0)
		stop()
		w.client.ClearActions()
		w.start(config())
		w.settle()
		for _, a := range w.client.Actions() {
			if a.GetVerb() == "patch" {
				t.Errorf("a Service that is up to date is written: %+v", a)
			}
		}
	})
}

// TestWhatIsRememberedIsPutBack checks that a user that removes all annotations does not remove the
// notes with them. Removed notes are put back in the next pass, as long as they are needed.
func TestWhatIsRememberedIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{Latency: 1})
		before := w.everything()
		if err := w.SetFaults([]core.Fault{{Method: "PUT", Type: network.LoadBalancers, Fault: core.FaultError,
			Status: 503}}); err != nil {
			t.Fatal(err)
		}
		stop := w.start(config())
		s := w.newService("web", 80)
		elsewhere(s)
		w.create(s)
		w.settle()
		w.remembers("web", 1)
		w.change("web", stripped)
		w.remembers("web", 1)
		w.change("web", func(s *corev1.Service) { s.Status.Conditions = nil })
		<-time.After(10 * time.Minute) // it is tried again less and less often
		w.remembers("web", 1)
		stop()
		if err := w.SetFaults(nil); err != nil {
			t.Fatal(err)
		}
		w.start(config())
		w.served("web")
		w.settle()
		w.remembers("web", 0)
		w.remove("web")
		w.until("the Service is gone", func() bool { return w.gone("web") })
		w.restored(before, w.everything)
	})
}

// remembers checks how much kaz has noted in a Service.
func (w *serviceCluster) remembers(name string, want int) {
	w.t.Helper()
	if got := w.get(name).Status.Conditions; len(got) != want {
		w.t.Errorf("noted in %s: %v, want %d notes", name, got, want)
	}
}

// The security group tells where a public IP is left. Azure reports a write of the security group that it did not do,
// and the public IP cannot be deleted at once. The public IP is deleted all the same.
func TestWhatIsLeftElsewhereIsNotForgotten(t *testing.T) {
	for _, busy := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(busy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1}, 2)
				err := testkit.Prepare(t.Context(), w.Client, testkit.Group, testkit.VNet,
					[]string{"public IP far in the resource group far"})
				if err != nil {
					t.Fatal(err)
				}
				c := config()
				c.LoadBalancer.PoolByIP, c.RepairPeriod = true, 0
				stop := w.start(c)
				web := w.newService("web", 80)
				elsewhere(web)
				w.create(web)
				w.served("web")
				w.settle()
				ours := func() bool {
					return strings.Contains(fmt.Sprint(w.everything()),
						"/resourceGroups/far/providers/Microsoft.Network/publicIPAddresses/kubernetes-")
				}
				if !ours() {
					t.Fatal("the public IP is not in the other group")
				}
				err = w.SetFaults([]core.Fault{{Method: "DELETE", Type: network.PublicIPAddresses, Fault: core.FaultError,
					Status: 409, Code: "AnotherOperationInProgress", Times: busy}})
				if err != nil {
					t.Fatal(err)
				}
				stop() // the next controller does not know the other group
				address, lies := w.address("web"), &liar{}
				w.change("web", without("load-balancer-resource-group"))
				lies.tellOne()
				defer w.startWith(c, w.ClientOver(lies.over))()
				w.until("it has its new address", func() bool { return w.address("web") != address })
				w.until("the old one is gone", func() bool { return !ours() })
			})
		})
	}
}

// A leader that ends may just have asked for a public IP in another resource group. The next leader removes the
// Service of that public IP. No controller looks in the group when the Service is gone. So the Service stays until
// nothing is under way any more, and then the public IP is looked for. It is found even if the group was read for
// another Service meanwhile.
func TestAnAddressThatAnotherLeaderStillMakes(t *testing.T) {
	for _, neighbours := range []bool{false, true} {
		t.Run(fmt.Sprint("neighbours ", neighbours), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { anotherLeaderMakesOne(t, neighbours) })
		})
	}
}

func anotherLeaderMakesOne(t *testing.T, neighbours bool) {
	w := newServiceCluster(t, core.Options{Latency: 1}, 2)
	err := testkit.Prepare(t.Context(), w.Client, testkit.Group, testkit.VNet, []string{"public IP far in the resource group far"})
	if err != nil {
		t.Fatal(err)
	}
	if neighbours {
		stop := w.start(config())
		api := w.newService("api", 81)
		elsewhere(api)
		w.create(api)
		w.served("api")
		w.settle()
		stop()
		w.Reopen()
	}
	before := w.everything()
	w.Forget()
	answered := func(status int) func() bool {
		return func() bool {
			return slices.ContainsFunc(w.Requests(),
				func(r testkit.Request) bool { return r.Method == http.MethodPut && r.Status == status })
		}
	}
	err = w.SetFaults([]core.Fault{{Method: "PUT", Type: network.PublicIPAddresses, Fault: core.FaultError, Status: 429,
		RetryAfter: 12, Times: 1}})
	if err != nil {
		t.Fatal(err)
	}
	stop := w.start(config())
	web := w.newService("web", 80)
	elsewhere(web)
	w.create(web)
	w.until("Azure has too much to do", answered(http.StatusTooManyRequests))
	w.remove("web")
	w.startWith(config(), w.OtherClient())
	w.until("the public IP is made", answered(http.StatusCreated))
	stop()
	w.until("the Service is gone", func() bool { return w.gone("web") })
	w.restored(before, w.everything)
}
