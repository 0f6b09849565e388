package service_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/key"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// named is a controller with this name of its cluster.
func named(name string) service.Config {
	c := config()
	c.LoadBalancer.ClusterName, c.LoadBalancer.LoadBalancerName = name, name
	return c
}

func inside(s *corev1.Service) *corev1.Service {
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, key.Internal.Name, "true")
	return s
}

// movedTo serves Services under the name prod, and then under another one. Their addresses
// before and after are returned.
func movedTo(t *testing.T, w *serviceCluster, name string, meanwhile func(), all ...*corev1.Service) (before, after []string) {
	t.Helper()
	addresses := func() (list []string) {
		for _, s := range all {
			list = append(list, w.address(s.Name))
		}
		return list
	}
	stop := w.start(named("prod"))
	for _, s := range all {
		w.create(s)
		w.served(s.Name)
	}
	w.settle()
	stop()
	before = addresses()
	w.events.forget()
	meanwhile()
	w.Forget()
	w.start(named(name))
	w.settle()
	return before, addresses()
}

// A forgotten --cluster-name would move every Service to another load balancer and another
// address: nothing is done, and each Service says why, once.
func TestAForgottenClusterNameChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		before, after := movedTo(t, w, "kubernetes", func() { w.create(w.newService("new", 82)) },
			w.newService("web", 80), w.newService("api", 81), inside(w.newService("db", 82)))
		if !slices.Equal(before, after) {
			t.Errorf("addresses were %q and are %q", before, after)
		}
		w.change("web", func(s *corev1.Service) { s.Spec.Ports[0].Port = 8080 })
		w.change("db", func(s *corev1.Service) { s.Spec.Ports[0].Port = 8082 })
		w.remove("api")
		w.settle()
		if w.gone("api") {
			t.Error("a Service is gone that was not taken out of Azure")
		}
		if got := w.Writes(); len(got) > 0 {
			t.Errorf("written was %q", got)
		}
		look, err := explain.NewInspector(t.Context(), inspectorOf(named("kubernetes")), w.Client, w.client)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := look.ExplainAll(t.Context()); err == nil || !strings.Contains(err.Error(), "set --cluster-name=prod") {
			t.Errorf("an explanation says %v", err)
		}
		for name, times := range map[string]int{"web": 2, "api": 2, "db": 2, "new": 1} { // again when it is changed
			said := slices.DeleteFunc(w.events.list(name), func(line string) bool {
				return !strings.HasPrefix(line, "SyncLoadBalancerFailed") || !strings.Contains(line, "set --cluster-name=prod") ||
					!strings.Contains(line, " of default/web and 1 other were made under the name \"prod\"")
			})
			if len(said) != times {
				t.Errorf("%s says %q, want %d times what to do", name, w.events.list(name), times)
			}
		}
	})
}

// TestAnotherClusterNameThatIsMeant checks that another name comes from the tags of the public IPs, or
// from naming the addresses, which stay then.
func TestAnotherClusterNameThatIsMeant(t *testing.T) {
	for name, c := range map[string]struct {
		meant func(*serviceCluster)
		stays bool
	}{
		"with a tag": {func(w *serviceCluster) {
			for _, ip := range testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses) {
				body := azure.Document(`{"tags":{"k8s-azure-cluster-name":"kubernetes","k8s-azure-service":"default/web"}}`)
				if _, err := w.Client.Patch(w.t.Context(), azure.Write{ID: ip.ID, Body: body}); err != nil {
					w.t.Fatal(err)
				}
			}
		}, false},
		"with the addresses": {func(w *serviceCluster) {
			w.change("web", func(s *corev1.Service) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, key.PublicIPName.Name, "prod-"+framework.DefaultLoadBalancerName(s))
			})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 2)
				before, after := movedTo(t, w, "kubernetes", func() { c.meant(w) }, w.newService("web", 80))
				if slices.Equal(before, after) != c.stays || after[0] == "" {
					t.Errorf("addresses were %q and are %q", before, after)
				}
				ips := testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses)
				if len(ips) != 1 {
					t.Errorf("%d public IPs are there", len(ips))
				}
				frontends := testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer).Properties.FrontendIPConfigurations
				if len(frontends) != 1 {
					t.Errorf("the load balancer of the new name has %d frontends", len(frontends))
				}
			})
		})
	}
}

// Names differ without regard to case, as in Azure, and what was made under the right
// name stays right.
func TestTheRightClusterName(t *testing.T) {
	for _, name := range []string{"prod", "PROD"} {
		synctest.Test(t, func(t *testing.T) {
			w := newServiceCluster(t, core.Options{}, 2)
			before, after := movedTo(t, w, name, func() {}, w.newService("web", 80))
			if got := w.Writes(); !slices.Equal(before, after) || len(got) > 0 {
				t.Errorf("addresses were %q and are %q; written was %q", before, after, got)
			}
		})
	}
}
