package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/emulator"
	"kaz/internal/key"
	"kaz/internal/testkit"
)

// rewrite replaces a document behind the controller's back.
func rewrite[P any](w *world, id azure.ID, edit func(*azure.Resource[P])) {
	w.t.Helper()
	doc := testkit.Must[P](w.Azure, id)
	edit(&doc)
	w.Put(id, doc)
}

// What was changed in Azure, or asked for, while no controller was there is told when the next
// one puts it right, at those Services that it is about; and then that they are served.
func TestAStartTellsWhatItFinds(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(w *world)
		web, api  []string // reasons
		says      []string // of web
	}{
		"nothing":              {meanwhile: func(*world) {}},
		"a node that has gone": {meanwhile: func(w *world) { w.exclude("nodes0-000001", "true") }},
		"a security rule": {
			meanwhile: func(w *world) {
				rewrite(w, testkit.SecurityGroup, func(g *azure.Resource[network.SecurityGroup]) {
					g.Properties.SecurityRules = slices.DeleteFunc(g.Properties.SecurityRules, func(r azure.Child[network.SecurityRule]) bool {
						return slices.Contains(r.Properties.DestinationPortRanges, "80")
					})
				})
			},
			web: []string{"RepairedLoadBalancer", "EnsuredLoadBalancer"}, says: []string{"Found at the start, and put right in Azure: ", "securityRules"},
		},
		"a rule of the load balancer": {
			meanwhile: func(w *world) {
				rewrite(w, testkit.LoadBalancer, func(lb *azure.Resource[network.LoadBalancer]) {
					lb.Properties.LoadBalancingRules = slices.DeleteFunc(lb.Properties.LoadBalancingRules, func(r azure.Child[network.LoadBalancingRule]) bool {
						return r.Properties.FrontendPort == 80
					})
				})
			},
			web: []string{"RepairedLoadBalancer", "EnsuredLoadBalancer"}, says: []string{"loadBalancingRules"},
		},
		"a change of the Service": {
			meanwhile: func(w *world) { w.change("web", func(s *corev1.Service) { s.Spec.Ports[0].Port = 82 }) },
			web:       []string{"RepairedLoadBalancer", "EnsuredLoadBalancer"}, says: []string{"-TCP-82"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, emulator.Options{}, 2)
				stop := w.start(config())
				w.create(w.newService("web", 80))
				w.create(w.newService("api", 81))
				w.served("web")
				w.served("api")
				w.settle()
				stop()
				w.events.forget()
				c.meanwhile(w)
				w.start(config())
				w.settle()
				for service, want := range map[string][]string{"web": c.web, "api": c.api} {
					if got := w.events.reasons(service); !slices.Equal(got, want) {
						t.Errorf("%s is told %q, want %q", service, w.events.list(service), want)
					}
				}
				for _, words := range c.says {
					if got := w.events.list("web"); len(got) == 0 || !strings.Contains(got[0], words) {
						t.Errorf("web is told %q, want %q", got, words)
					}
				}
			})
		})
	}
}

// That a Service gets another address is told, whatever the cause.
func TestAnotherAddressIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 2)
		stop := w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		before := w.address("web")
		told := func() int {
			want := "UpdatedLoadBalancer: The address has changed: " + before + " -> " + w.address("web")
			return len(slices.DeleteFunc(w.events.list("web"), func(line string) bool { return line != want }))
		}
		w.change("web", func(s *corev1.Service) { inside(s) })
		w.settle()
		if n := told(); n != 1 {
			t.Errorf("told %d times: %q", n, w.events.list("web"))
		}
		before = w.address("web")
		stop()
		w.change("web", func(s *corev1.Service) { s.Annotations = nil })
		w.start(config())
		w.settle()
		if n := told(); n != 1 {
			t.Errorf("told %d times: %q", n, w.events.list("web"))
		}
	})
}

// Somebody's own public IP of the SKU that Azure has retired cannot stand at a load balancer:
// it becomes another one, once, and its Service says so.
func TestAPublicIPThatBecomesStandardIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 2)
		for name, sku := range map[string]string{"old": "Basic", "new": "Standard"} {
			w.Put(testkit.Group.Resource(network.PublicIPAddresses, name), map[string]any{
				"location": testkit.Location, "sku": map[string]any{"name": sku}, "properties": map[string]any{"publicIPAllocationMethod": "Static"},
			})
		}
		at := func(s *corev1.Service, ip string) *corev1.Service {
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, key.PublicIPName.Name, ip)
			return s
		}
		stop := w.start(config())
		w.create(at(w.newService("web", 80), "old"))
		w.create(at(w.newService("api", 81), "new"))
		w.served("web")
		w.served("api")
		w.settle()
		stop()
		w.start(config())
		w.settle()
		for name, want := range map[string][]string{
			"web": {"EnsuringLoadBalancer", "UpgradedPublicIP", "EnsuredLoadBalancer"},
			"api": {"EnsuringLoadBalancer", "EnsuredLoadBalancer"},
		} {
			if got := w.events.reasons(name); !slices.Equal(got, want) {
				t.Errorf("%s is told %q", name, w.events.list(name))
			}
		}
		ip := testkit.Must[network.PublicIPAddress](w.Azure, testkit.Group.Resource(network.PublicIPAddresses, "old"))
		if got := w.address("web"); got == "" || got != ip.Properties.IPAddress {
			t.Errorf("web has the address %q, its public IP %q", got, ip.Properties.IPAddress)
		}
		want := "UpgradedPublicIP: Public IP old had the SKU Basic, which Azure has retired: its SKU is Standard now, as that of the load balancer"
		if got := w.events.list("web"); !slices.Contains(got, want) {
			t.Errorf("web is told %q, want %q", got, want)
		}
	})
}

// Azure takes 256 characters in the tag that lists who is at a public IP. Who comes then is told
// so and delays nobody, and comes when another has gone.
func TestTheListOfServicesAtAnAddressIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{Latency: 1}, 2)
		w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		guest := func(i int) string { return fmt.Sprintf("guest-%05d", i) }
		for i := range 13 {
			s := w.newService(guest(i), int32(81+i))
			s.Spec.LoadBalancerIP = w.address("web")
			w.create(s)
		}
		w.settle()
		var out []string
		for i := range 13 {
			if w.address(guest(i)) == "" {
				out = append(out, guest(i))
			}
		}
		if len(out) != 1 {
			t.Fatalf("not served: %v", out)
		}
		told := w.events.list(out[0])
		if !slices.ContainsFunc(told, func(line string) bool {
			return strings.HasPrefix(line, "SyncLoadBalancerFailed: Error syncing load balancer: LimitExceeded: ") && strings.Contains(line, "allowed by Azure are 256")
		}) {
			t.Errorf("%s is told %q", out[0], told)
		}
		for i := range 13 {
			if told := w.events.reasons(guest(i)); guest(i) != out[0] && slices.Contains(told, "SyncLoadBalancerFailed") {
				t.Errorf("%s is told %q", guest(i), told)
			}
		}
		leaver := guest(0)
		if out[0] == leaver {
			leaver = guest(1)
		}
		w.remove(leaver)
		w.served(out[0])
	})
}
