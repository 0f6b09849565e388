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
	"kaz/internal/key"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// rewrite replaces a document behind the controller's back.
func rewrite[P any](w *serviceCluster, id azure.ID, edit func(*azure.Resource[P])) {
	w.t.Helper()
	doc := testkit.Must[P](w.Azure, id)
	edit(&doc)
	w.Put(id, doc)
}

// TestAStartTellsWhatItFinds checks changes in Azure, or of Services, from before the start of a controller. The
// controller reports them at the Services that they concern when it corrects them. Then it reports these Services as
// served.
func TestAStartTellsWhatItFinds(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(w *serviceCluster)
		web, api  []string // reasons
		says      []string // of web
	}{
		"nothing":              {meanwhile: func(*serviceCluster) {}},
		"a node that has gone": {meanwhile: func(w *serviceCluster) { w.exclude("nodes0-000001", "true") }},
		"a security rule": {
			meanwhile: func(w *serviceCluster) {
				rewrite(w, testkit.SecurityGroup, func(g *azure.Resource[network.SecurityGroup]) {
					g.Properties.SecurityRules = slices.DeleteFunc(g.Properties.SecurityRules,
						func(r azure.Child[network.SecurityRule]) bool {
							return slices.Contains(r.Properties.DestinationPortRanges, "80")
						})
				})
			},
			web:  []string{"RepairedLoadBalancer", "EnsuredLoadBalancer"},
			says: []string{"Found at the start, and put right in Azure: ", "securityRules"},
		},
		"a rule of the load balancer": {
			meanwhile: func(w *serviceCluster) {
				rewrite(w, testkit.LoadBalancer, func(lb *azure.Resource[network.LoadBalancer]) {
					lb.Properties.LoadBalancingRules = slices.DeleteFunc(lb.Properties.LoadBalancingRules,
						func(r azure.Child[network.LoadBalancingRule]) bool {
							return r.Properties.FrontendPort == 80
						})
				})
			},
			web: []string{"RepairedLoadBalancer", "EnsuredLoadBalancer"}, says: []string{"loadBalancingRules"},
		},
		"a change of the Service": {
			meanwhile: func(w *serviceCluster) { w.change("web", func(s *corev1.Service) { s.Spec.Ports[0].Port = 82 }) },
			web:       []string{"RepairedLoadBalancer", "EnsuredLoadBalancer"}, says: []string{"-TCP-82"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 2)
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
						t.Errorf("%s got %q, want %q", service, w.events.list(service), want)
					}
				}
				for _, words := range c.says {
					if got := w.events.list("web"); len(got) == 0 || !strings.Contains(got[0], words) {
						t.Errorf("web got %q, want %q", got, words)
					}
				}
			})
		})
	}
}

// TestAnotherAddressIsReported checks that another address of a Service is reported, whatever the
// cause.
func TestAnotherAddressIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		stop := w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		before := w.address("web")
		reported := func() int {
			want := "UpdatedLoadBalancer: The address has changed: " + before + " -> " + w.address("web")
			return len(slices.DeleteFunc(w.events.list("web"), func(line string) bool { return line != want }))
		}
		w.change("web", func(s *corev1.Service) { inside(s) })
		w.settle()
		if n := reported(); n != 1 {
			t.Errorf("reported %d times: %q", n, w.events.list("web"))
		}
		before = w.address("web")
		stop()
		w.change("web", func(s *corev1.Service) { s.Annotations = nil })
		w.start(config())
		w.settle()
		if n := reported(); n != 1 {
			t.Errorf("reported %d times: %q", n, w.events.list("web"))
		}
	})
}

// A user's own public IP of the SKU that Azure has retired cannot be at a load balancer. It gets the SKU Standard,
// once, and its Service gets an event about that.
func TestAPublicIPThatBecomesStandardIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		for name, sku := range map[string]string{"old": "Basic", "new": "Standard"} {
			w.Put(testkit.Group.Resource(network.PublicIPAddresses, name), map[string]any{
				"location": testkit.Location, "sku": map[string]any{"name": sku},
				"properties": map[string]any{"publicIPAllocationMethod": "Static"},
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
				t.Errorf("%s got %q", name, w.events.list(name))
			}
		}
		ip := testkit.Must[network.PublicIPAddress](w.Azure, testkit.Group.Resource(network.PublicIPAddresses, "old"))
		if got := w.address("web"); got == "" || got != ip.Properties.IPAddress {
			t.Errorf("web has the address %q, its public IP %q", got, ip.Properties.IPAddress)
		}
		want := "UpgradedPublicIP: Public IP old had the SKU Basic, which Azure has retired: its SKU is Standard now, as that of " +
			"the load balancer"
		if got := w.events.list("web"); !slices.Contains(got, want) {
			t.Errorf("web got %q, want %q", got, want)
		}
	})
}

// TestTheListOfServicesAtAnAddressIsFull checks Azure's limit of 256 characters in the tag that lists
// the Services of a public IP. One more Service gets a problem and delays no other, and is served when
// another has gone.
func TestTheListOfServicesAtAnAddressIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 2)
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
		reported := w.events.list(out[0])
		if !slices.ContainsFunc(reported, func(line string) bool {
			return strings.HasPrefix(line, "SyncLoadBalancerFailed: Error syncing load balancer: LimitExceeded: ") &&
				strings.Contains(line, "allowed by Azure are 256")
		}) {
			t.Errorf("%s got %q", out[0], reported)
		}
		for i := range 13 {
			if reported := w.events.reasons(guest(i)); guest(i) != out[0] && slices.Contains(reported, "SyncLoadBalancerFailed") {
				t.Errorf("%s got %q", guest(i), reported)
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
