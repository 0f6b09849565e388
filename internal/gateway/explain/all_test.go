package explain_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"kaz/internal/gateway/explain"
)

// TestExplainAll compares what the controller would write for all objects: nothing for what it has served, and without the values of
// certificates.
func TestExplainAll(t *testing.T) {
	good := secret(t, "tls", epoch.AddDate(9, 0, 0))
	objects := func(more ...runtime.Object) []runtime.Object {
		return slices.Concat(service("web", "10.240.0.10"), service("api", "10.240.0.20"), []runtime.Object{class(), good}, more)
	}
	other := shop("other", "", []string{"/ web"}, func(i *networking.Ingress) { i.Spec.IngressClassName = new("nginx") })
	web := "Ingress/shop/web"
	for name, c := range map[string]struct {
		azure   func(*cluster)
		objects []runtime.Object
		want    map[string][]string // beginnings of writes
	}{
		"served": {func(w *cluster) { w.serve() }, objects(secured(), other), map[string][]string{web: nil}},
		"new": {nil, objects(shop("web", "", []string{"/ web"})), map[string][]string{
			web: {"status.loadBalancer.ingress: ", "create backendAddressPools/", "create backendHttpSettingsCollection/", "create httpListeners/",
				"create probes/", "create requestRoutingRules/", "create frontendPorts/"},
			"application gateway gate": {"change tags["},
		}},
		"scaled": {func(w *cluster) {
			w.serve()
			w.addEndpoint("api", "10.240.0.21")
		}, objects(shop("web", "", []string{"/ api"})), map[string][]string{web: {"change backendAddressPools/"}}},
		"stopped": {func(w *cluster) { w.serve(); w.stopGateway() }, objects(secured()), map[string][]string{
			web: nil, "application gateway gate": {"refused: nothing is written: the application gateway "},
		}},
		"gone": {(*cluster).deleteGateway, objects(shop("web", "", []string{"/ web"})), map[string][]string{
			web: nil, "application gateway gate": {"refused: nothing is written: the application gateway "},
		}},
		"missing certificate": {nil, objects(shop("web", "a.example.com", []string{"/ web"}, withTLS("none"))), map[string][]string{
			web: {"refused: "},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newCluster(t, c.objects...)
				if c.azure != nil {
					c.azure(w)
				}
				w.compareAll(c.want)
			})
		})
	}
	t.Run("Gateway API", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, objects()...)
			w.serveAPI(gatewayClass(), gate(), routed([]string{"/ web", "/api api"}))
			w.serve()
			w.compareAll(map[string][]string{"Gateway/shop/gate": nil, "HTTPRoute/shop/web": nil})
		})
	})
}

// compareAll compares what would be written with what is wanted, by object.
func (w *cluster) compareAll(want map[string][]string) {
	w.t.Helper()
	w.Forget()
	facts, err := explain.GatherAll(w.t.Context(), w.clients, w.Client.Fresh(), w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := facts.ExplainAll(epoch)
	if err != nil {
		w.t.Fatal(err)
	}
	got := map[string][]string{}
	for _, o := range all {
		got[o.Key] = nil
		if o.Refused != "" {
			o.Writes = append(o.Writes, "refused: "+o.Refused)
		}
		for _, write := range o.Writes {
			begins := func(begin string) bool { return strings.HasPrefix(write, begin) }
			if i := slices.IndexFunc(want[o.Key], begins); i >= 0 {
				write = want[o.Key][i]
			}
			if !slices.Contains(got[o.Key], write) {
				got[o.Key] = append(got[o.Key], write)
			}
		}
		slices.Sort(got[o.Key])
	}
	for key := range want {
		slices.Sort(want[key])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Error(diff)
	}
	if writes := w.Writes(); len(writes) > 0 {
		w.t.Errorf("written: %q", writes)
	}
}
