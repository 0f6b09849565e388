package service_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// vanish takes a Service out of Kubernetes as if it had never had a finalizer.
func (w *serviceCluster) vanish(name string) {
	w.t.Helper()
	if err := w.client.Tracker().Delete(servicesResource, corev1.NamespaceDefault, name); err != nil {
		w.t.Fatal(err)
	}
}

// TestAFailedDeletionIsReported checks the event reason of a failed deletion: one for Services that
// are held by their finalizer, another one for deleted Services.
func TestAFailedDeletionIsReported(t *testing.T) {
	for reason, goes := range map[string]func(*serviceCluster){
		"SyncLoadBalancerFailed":   func(w *serviceCluster) { w.remove("web") },
		"DeleteLoadBalancerFailed": func(w *serviceCluster) { w.vanish("web") },
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1}, 1)
				before := w.Snapshot()
				w.start(config())
				w.create(w.newService("web", 80))
				w.served("web")
				w.settle()
				if err := w.SetFaults([]core.Fault{{Method: "DELETE", Type: network.LoadBalancers, Fault: "error", Status: 403,
					Code: "AuthorizationFailed"}}); err != nil {
					t.Fatal(err)
				}
				w.events.forget()
				goes(w)
				w.reported("web", reason, "AuthorizationFailed")
				want := []string{"DeletingLoadBalancer", reason}
				if d := cmp.Diff(want, w.events.reasons("web")); d != "" {
					t.Errorf("reported (-want +got):\n%s", d)
				}
				if err := w.SetFaults(nil); err != nil {
					t.Fatal(err)
				}
				w.restored(before, w.Snapshot)
				w.until("it got that it is done", func() bool {
					reported := w.events.reasons("web")
					return reported[len(reported)-1] == "DeletedLoadBalancer"
				})
			})
		})
	}
}

func repairing() service.Config {
	c := config()
	c.RepairPeriod = 30 * time.Minute
	return c
}

// Services go while no controller runs. What they have in Azure is found and removed, whether other Services are left
// or not. The Services that are left keep what they have.
func TestWhatBelongsToNoServiceIsTakenAway(t *testing.T) {
	for _, stays := range []string{"", "plain"} {
		t.Run("stays "+stays, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := mixed(t, core.Options{})
				before := w.everything()
				if stays != "" {
					stop := w.start(config())
					w.addKind(stays)
					w.allHaveAddresses([]string{stays})
					w.settle()
					before = w.everything()
					stop()
				}
				stop := w.start(config())
				names := slices.DeleteFunc(slices.Sorted(maps.Keys(kinds)), func(n string) bool {
					return n == stays || stays != "" && n == "dual" // an empty pool stays with its load balancer
				})
				for _, name := range names {
					w.addKind(name)
				}
				w.allHaveAddresses(names)
				w.settle()
				stop()
				for _, name := range names {
					w.vanish(name)
				}
				w.start(repairing())
				<-time.After(31 * time.Minute)
				w.restored(before, w.everything)
			})
		})
	}
}

// A Service that asks for what a deleted Service has left does not wait until everything is compared with Azure.
func TestLeftoversInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{})
		stop := w.start(repairing())
		for _, name := range []string{"shared-one", "shared-two"} {
			w.addKind(name)
		}
		w.allHaveAddresses([]string{"shared-one", "shared-two"})
		stop()
		w.vanish("shared-two")
		w.start(repairing())
		w.settle()
		w.addKind("shared-two") // with another UID
		<-time.After(5 * time.Second)
		if w.address("shared-two") == "" {
			t.Errorf("no address yet:\n%s", strings.Join(w.events.list("shared-two"), "\n"))
		}
	})
}

// guestOf adds a Service at the public IP that was made for another Service.
func (w *serviceCluster) guestOf(host, name string, port int32) {
	s := w.newService(name, port)
	annotated("pip-name", testkit.ClusterName+"-"+w.base(host))(s)
	w.create(s)
}

// hosted is a service cluster where a Service went and its guest stayed at its frontend.
func hosted(t *testing.T) *serviceCluster {
	w := newServiceCluster(t, core.Options{Latency: 1}, 1)
	stop := w.start(repairing())
	w.create(w.newService("host", 80))
	w.served("host")
	w.guestOf("host", "guest", 81)
	w.served("guest")
	w.removed("host")
	w.settle()
	stop()
	return w
}

// A frontend with the name of a deleted Service is no leftover while it serves another Service.
func TestWhereAGuestStaysNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := hosted(t)
		if e := w.explainAll(); e.Pending() || len(e.Leftovers) > 0 {
			t.Errorf("explained:\n%s", e)
		}
		before := w.Snapshot()
		w.start(repairing())
		w.Forget()
		<-time.After(31 * time.Minute)
		if got := w.Writes(); len(got) > 0 {
			t.Errorf("drift repair did %v", got)
		}
		if d := cmp.Diff(before, w.Snapshot()); d != "" {
			t.Errorf("Azure (-before +after):\n%s", d)
		}
		w.removed("guest")
		<-time.After(31 * time.Minute)
		if ips := testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses); len(ips) > 0 {
			t.Errorf("public IPs that are left: %v", ips)
		}
	})
}

// The tag of a public IP names the Services that it serves, while some wait for others to go.
func TestThePublicIPOfGuestsNamesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 1)
		w.start(config())
		tag := func() string {
			w.settle()
			ips := testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses)
			if len(ips) != 1 {
				t.Fatalf("%d public IPs", len(ips))
			}
			text, _ := ips[0].Tags.Get("k8s-azure-service")
			return text
		}
		w.create(w.newService("a", 80))
		w.served("a")
		w.guestOf("a", "b", 81)
		w.served("b")
		w.guestOf("a", "c", 80)
		w.settle()
		got := []string{tag()}
		for _, name := range []string{"a", "c"} {
			w.removed(name)
			w.until("c is served or gone", func() bool { return w.gone("c") || w.address("c") != "" })
			got = append(got, tag())
		}
		if d := cmp.Diff([]string{"default/a,default/b", "default/b,default/c", "default/b"}, got); d != "" {
			t.Errorf("tags (-want +got):\n%s", d)
		}
		if e := w.explain("b"); e.Pending() {
			t.Errorf("explained:\n%s", e)
		}
	})
}

// TestNoLeftoversInTheWay checks that a search for an existing Service's resource runs only once.
func TestNoLeftoversInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{})
		w.start(config())
		w.addKind("shared-one")
		w.allHaveAddresses([]string{"shared-one"})
		w.settle()
		w.client.ClearActions()
		s := w.newService("second", 80)
		kinds["shared-one"](s)
		w.create(s)
		<-time.After(4 * time.Hour)
		lists := 0
		for _, a := range w.client.Actions() {
			if a.Matches("list", "services") {
				lists++
			}
		}
		const most = 2 // one asks for the Service itself
		if w.address("second") != "" || lists > most {
			t.Errorf("address %q; %d lists of Services, want none and at most %d", w.address("second"), lists, most)
		}
	})
}

// A Service goes before a load balancer has it. Its security rules go, too, even those to an address that other
// Services also have.
func TestAFailedCreationLeavesNoSecurityRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{})
		w.start(config())
		w.addKind("shared-two")
		w.allHaveAddresses([]string{"shared-two"})
		w.settle()
		rules := func() map[string]network.SecurityRule {
			all := map[string]network.SecurityRule{}
			for _, r := range testkit.Must[network.SecurityGroup](w.Azure, testkit.SecurityGroup).Properties.SecurityRules {
				all[r.Name] = r.Properties
			}
			return all
		}
		before := rules()
		refusal := core.Fault{Method: "PUT", Type: network.LoadBalancers, Fault: core.FaultError, Status: 400,
			Code: "InvalidRequestFormat"}
		if err := w.SetFaults([]core.Fault{refusal}); err != nil {
			t.Fatal(err)
		}
		w.addKind("shared-one")
		w.until("its rule is there", func() bool { return len(rules()) > len(before) })
		w.remove("shared-one")
		w.allGone([]string{"shared-one"})
		w.settle()
		if d := cmp.Diff(before, rules()); d != "" {
			t.Errorf("security rules (-before +after):\n%s", d)
		}
	})
}

// freezeNews keeps events from the next watches of Services.
func (w *serviceCluster) freezeNews() {
	w.client.PrependWatchReactor(services, func(kubetesting.Action) (bool, watch.Interface, error) {
		return true, watch.NewFake(), nil
	})
}

func (w *serviceCluster) firstNode() string {
	w.t.Helper()
	nodes, err := w.client.Tracker().List(corev1.SchemeGroupVersion.WithResource("nodes"), corev1.SchemeGroupVersion.WithKind("Node"), "")
	if err != nil {
		w.t.Fatal(err)
	}
	return nodes.(*corev1.NodeList).Items[0].Name
}

// A Service is deleted, or asks for nothing any more, and another leader removes it from Azure. A
// leader with stale informers does not create it again.
func TestALeaderWithoutNewsMakesNothingAnew(t *testing.T) {
	for name, goes := range map[string]func(*serviceCluster){
		"gone":                      func(w *serviceCluster) { w.remove("web") },
		"no load balancer any more": func(w *serviceCluster) { w.change("web", noBalancer) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 2)
				before := w.Snapshot()
				w.start(config())
				w.create(w.newService("web", 80))
				w.served("web")
				w.freezeNews()
				w.startWith(config(), w.OtherClient())
				w.settle()
				goes(w)
				w.until("web is let go", func() bool { return w.gone("web") || len(w.get("web").Finalizers) == 0 })
				w.exclude(w.firstNode(), "true")
				w.settle()
				if d := cmp.Diff(before, w.Snapshot()); d != "" {
					t.Errorf("Azure (-before +after):\n%s", d)
				}
			})
		})
	}
}

// A leader with stale informers takes nothing from a Service that they do not show yet. Access to the Service and its
// private link service stay, for example. That also holds for a Service of another controller.
func TestALeaderWithoutNewsTakesNothingAway(t *testing.T) {
	all := maps.Clone(kinds)
	all["further"] = annotated("additional-public-ips", "203.0.113.9")
	const theirs = "example.com/lb"
	all["theirs"] = func(s *corev1.Service) { s.Spec.LoadBalancerClass = new(theirs) }
	for name, kind := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := mixed(t, core.Options{})
				first := config()
				first.Classes = append(first.Classes, theirs)
				stop := w.start(first)
				w.create(w.newService("web", 80))
				w.served("web")
				w.freezeNews()
				w.startWith(config(), w.OtherClient())
				w.settle()
				s := w.newService(name, 8080)
				s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
				kind(s)
				w.create(s)
				w.allHaveAddresses([]string{name})
				w.settle()
				good := w.facts([]string{name})
				stop()
				node := w.firstNode() // the other leader's informers show it
				w.exclude(node, "true")
				w.settle()
				w.exclude(node, "false")
				w.settle()
				if d := cmp.Diff(good, w.facts([]string{name})); d != "" {
					t.Errorf("what it had (-before +after):\n%s", d)
				}
			})
		})
	}
}

// What the earlier leader wrote with its older view until it was stopped is corrected soon, with an event.
func TestANewLeaderReadsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{})
		stop := w.start(repairing())
		w.addKind("probed")
		w.allHaveAddresses([]string{"probed"})
		w.settle()
		old, err := w.OtherClient().Fresh().Get(t.Context(), testkit.LoadBalancer)
		if err != nil {
			t.Fatal(err)
		}
		w.change("probed", changes["probed"])
		w.settle()
		stop()
		w.start(repairing())
		<-time.After(20 * time.Second)
		w.put(testkit.LoadBalancer, string(old)) // the one before, late
		<-time.After(2 * time.Minute)
		if probes := testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer).Properties.Probes; len(probes) != 1 ||
			probes[0].Properties.Port != 32000 {
			t.Errorf("probes %+v", probes)
		}
	})
}

// What was made for a Service that was deleted meanwhile is removed, though the informers still
// show the Service.
func TestWhatWasMadeForAServiceThatWentIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1, Seed: 3}, 1)
		before := w.Snapshot()
		held := w.newService("late", 80)
		held.Finalizers = []string{helpers.LoadBalancerCleanupFinalizer}
		w.create(held)
		w.create(w.newService("early", 80))
		w.freezeNews()
		w.start(config())
		w.until("a public IP is there", func() bool { return len(w.Writes()) > 0 })
		w.vanish("early")
		wrote := func() bool {
			return slices.ContainsFunc(w.Writes(), func(l string) bool { return strings.HasSuffix(l, " "+testkit.ClusterName) })
		}
		w.until("the load balancer is written", wrote)
		if w.address("late") != "" {
			t.Fatal("late has its address already")
		}
		w.vanish("late")
		successor := w.newService("late", 80) // another leader's informers show it
		successor.Finalizers = []string{helpers.LoadBalancerCleanupFinalizer}
		successor.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.9"}}
		w.create(successor)
		<-time.After(10 * time.Minute)
		if d := cmp.Diff(before, w.Snapshot()); d != "" {
			t.Errorf("Azure (-before +after):\n%s\n%s", d, strings.Join(w.Writes(), "\n"))
		}
		if got := w.get("late"); len(got.Finalizers) != 1 || addressOf(got) != "203.0.113.9" {
			t.Errorf("its successor has finalizers %v and the address %q", got.Finalizers, addressOf(got))
		}
		for _, name := range []string{"early", "late"} {
			if reported := w.reportedFailures(name); len(reported) > 0 {
				t.Errorf("%s got %q", name, reported)
			}
		}
	})
}

// rulesToNowhere is a security rule as kaz makes them, to an address that no Service has.
const rulesToNowhere = `{"name":"k8s-azure-lb_allow_IPv4_0123456789abcdef0123456789abcdef","properties":{"priority":500,"direction":"Inbound","access":"Allow","protocol":"Tcp",` +
	`"sourceAddressPrefix":"Internet","sourcePortRange":"*","destinationAddressPrefix":"20.9.9.9","destinationPortRanges":["80"]}}`

// Security rules that lead nowhere are removed when there is no Service. If other controllers also serve Services,
// the rules may be theirs and stay.
func TestSecurityRulesThatLeadNowhere(t *testing.T) {
	for _, others := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newServiceCluster(t, core.Options{}, 1)
			before := w.Snapshot()
			if others {
				s := w.newService("theirs", 80)
				s.Spec.LoadBalancerClass = new("example.com/lb")
				w.create(s)
			}
			w.start(repairing())
			w.addRule(rulesToNowhere)
			with := w.Snapshot()
			w.create(w.newService("web", 80))
			w.served("web")
			w.remove("web")
			w.until("web is gone", func() bool { return w.gone("web") })
			if !others {
				w.addRule(rulesToNowhere)
			}
			<-time.After(31 * time.Minute)
			want := before
			if others {
				want = with
			}
			if d := cmp.Diff(want, w.Snapshot()); d != "" {
				t.Errorf("others %v: Azure (-want +got):\n%s", others, d)
			}
		})
	}
}

func (w *serviceCluster) addRule(rule string) {
	w.t.Helper()
	client := w.OtherClient()
	doc, err := client.Fresh().Get(w.t.Context(), testkit.SecurityGroup)
	if err != nil {
		w.t.Fatal(err)
	}
	body := strings.Replace(string(doc), `"securityRules":[`, `"securityRules":[`+rule+`,`, 1)
	if !strings.Contains(string(doc), `"name":"`) || strings.Contains(body, `,]`) {
		body = strings.Replace(body, rule+`,`, rule, 1)
	}
	if _, err := client.Put(w.t.Context(),
		azure.Write{ID: testkit.SecurityGroup, Body: azure.Document(body), IfMatch: doc.Etag()}); err != nil {
		w.t.Fatal(err)
	}
}

// A failed search for leftovers is repeated soon, before the next comparison of everything. The repeated search
// removes all that is left.
func TestAFailedSearchForLeftoversIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		stop := w.start(repairing())
		w.create(w.newService("stays", 80))
		w.served("stays")
		w.settle()
		before := w.Snapshot()
		w.create(w.newService("leaves", 81))
		w.served("leaves")
		w.settle()
		stop()
		w.vanish("leaves")
		w.Reopen()
		refusal := core.Fault{Method: "PUT", Type: network.LoadBalancers, Times: 2, Fault: core.FaultError, Status: 400,
			Code: "InvalidRequestFormat"}
		if err := w.SetFaults([]core.Fault{refusal}); err != nil {
			t.Fatal(err)
		}
		w.start(repairing())
		<-time.After(5 * time.Minute)
		if d := cmp.Diff(before, w.Snapshot()); d != "" {
			t.Errorf("Azure (-before +after):\n%s", d)
		}
	})
}

// A Service that is no load balancer any more, and that lost its finalizer to a user, leaves orphans.
// They are removed though the Service exists.
func TestAServiceThatIsThereCanHaveLeftSomething(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		before := w.Snapshot()
		stop := w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		stop()
		w.change("web", func(s *corev1.Service) { s.Spec.Type, s.Finalizers = corev1.ServiceTypeClusterIP, nil })
		w.start(repairing())
		<-time.After(3 * time.Minute)
		if d := cmp.Diff(before, w.Snapshot()); d != "" {
			t.Errorf("Azure (-before +after):\n%s", d)
		}
	})
}
