package loadbalancer_test

import (
	"maps"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
)

const privateLinks = "Microsoft.Network/privateLinkServices"

// asksForLink is an internal Service that asks for a private link service, with more annotations.
func asksForLink(name string, port int32, pairs ...string) *v1.Service {
	s := service(name, tcp(port, 30000+port))
	s.Annotations = map[string]string{key.Internal.Name: "true", key.LinkCreate.Name: "true"}
	for i := 0; i < len(pairs); i += 2 {
		s.Annotations[pairs[i]] = pairs[i+1]
	}
	return s
}

// links are the private link services by name, with their owners.
func (w *world) links() map[string]string {
	owners := map[string]string{}
	for key, o := range w.docs {
		if id := azure.ID(key); id.Is(privateLinks) {
			owners[id.Group()+"/"+id.Name()] = at(o, "tags", "k8s-azure-owner-service")
		}
	}
	return owners
}

// Whether a Service asks for a private link service cannot be told where the value is none of
// a switch's: what it has stays with it, what another one leaves to it comes to it, and none is
// made.
func TestAPrivateLinkThatMayBeAskedFor(t *testing.T) {
	w := newWorld(2)
	web, api := asksForLink("web", 80, key.IPv4.Name, "10.0.9.9"), asksForLink("api", 81, key.IPv4.Name, "10.0.9.9", key.LinkCreate.Name, "ture")
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
	commit := func(what string, want map[string]string, services ...loadbalancer.Service) {
		t.Helper()
		in.Services = services
		if _, err := w.commit(in); err != nil {
			t.Fatal(what, err)
		}
		if got := w.links(); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	name := "rg/pls-" + baseOf(web)
	commit("alone it makes none", map[string]string{}, loadbalancer.Service{Service: api})
	commit("alone it makes none", map[string]string{}, loadbalancer.Service{Service: api, Gone: true})
	commit("asked for", map[string]string{name: "default/web"}, loadbalancer.Service{Service: web})
	web.Annotations[key.LinkCreate.Name] = "ture"
	commit("its owner may ask for it", map[string]string{name: "default/web"}, loadbalancer.Service{Service: web})
	commit("shared", map[string]string{name: "default/web"}, loadbalancer.Service{Service: web}, loadbalancer.Service{Service: api})
	in.Others = []*v1.Service{api}
	commit("left to another one", map[string]string{name: "default/api"}, loadbalancer.Service{Service: web, Gone: true})
	in.Others = nil
	api.Annotations[key.LinkCreate.Name] = "false"
	commit("not asked for", map[string]string{}, loadbalancer.Service{Service: api})
}
