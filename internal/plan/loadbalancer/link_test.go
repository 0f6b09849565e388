package loadbalancer_test

import (
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
	notes "kaz/internal/plan/loadbalancer/note"
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
func (w *subscription) links() map[string]string {
	owners := map[string]string{}
	for key, o := range w.docs {
		if id := azure.ID(key); id.Is(privateLinks) {
			owners[id.Group()+"/"+id.Name()] = at(o, "tags", "k8s-azure-owner-service")
		}
	}
	return owners
}

// TestAPrivateLinkThatMayBeAskedFor checks a value that is neither true nor false. With it, kaz does not know whether the
// Service asks for a private link service. An existing one stays, the Service gets one that another Service leaves, and
// none is created.
func TestAPrivateLinkThatMayBeAskedFor(t *testing.T) {
	w := newSubscription(2)
	web, api := asksForLink("web", 80, key.IPv4.Name, "10.0.9.9"),
		asksForLink("api", 81, key.IPv4.Name, "10.0.9.9", key.LinkCreate.Name, "ture")
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

// TestServicesTellWhereTheirPrivateLinksAre checks D28: only its Service says where a private link
// service is. The Service records it before one is made, for one of another implementation, and for
// one that it is given, as long as it exists. So it is found, whatever the Service asks for.
func TestServicesTellWhereTheirPrivateLinksAre(t *testing.T) {
	w := newSubscription(2)
	far := key.Note{Of: key.PrivateLinks, Group: "far"}
	web, api := asksForLink("web", 80, key.IPv4.Name, "10.0.9.9", key.LinkGroup.Name, "far"),
		asksForLink("api", 81, key.IPv4.Name, "10.0.9.9")
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
	name := "far/pls-" + baseOf(web)
	// commit does what a commit does: Services record their notes first.
	commit := func(what string, links map[string]string, reported map[*v1.Service][]key.Note, services ...loadbalancer.Service) {
		t.Helper()
		in.Services, in.Have = services, w.snapshot()
		graph, _, err := loadbalancer.Desired(in)
		if err != nil {
			t.Fatal(what, err)
		}
		unnoted := notes.Missing(in, graph)
		for _, s := range []*v1.Service{web, api} {
			if got := unnoted[s.UID]; !slices.Equal(got, reported[s]) {
				t.Errorf("%s: %s is to tell of %v, want %v", what, s.Name, got, reported[s])
			}
			for _, n := range unnoted[s.UID] {
				s.Status.Conditions = append(s.Status.Conditions, n.Condition())
			}
		}
		if again := notes.Missing(in, graph); len(again) > 0 {
			t.Errorf("%s: still to be recorded is %v", what, again)
		}
		if _, err := w.commit(in); err != nil {
			t.Fatal(what, err)
		}
		if got := w.links(); !maps.Equal(got, links) {
			t.Errorf("%s: %v, want %v", what, got, links)
		}
		in.Have = w.snapshot()
		still := notes.Kept(in)
		for _, s := range services {
			if has := links[name] == s.Key(); !s.Gone && has != slices.Contains(still[s.UID], far) {
				t.Errorf("%s: %s still tells of %v", what, s.Name, still[s.UID])
			}
		}
	}
	tells := func(s *v1.Service) map[*v1.Service][]key.Note { return map[*v1.Service][]key.Note{s: {far}} }
	commit("before it is made", map[string]string{name: "default/web"}, tells(web), loadbalancer.Service{Service: web})
	web.Status.Conditions = nil
	commit("adopted", map[string]string{name: "default/web"}, tells(web), loadbalancer.Service{Service: web})
	web.Annotations[key.LinkGroup.Name] = "rg"
	commit("another group", map[string]string{name: "default/web"}, nil, loadbalancer.Service{Service: web})
	in.Others = []*v1.Service{web}
	commit("shared", map[string]string{name: "default/web"}, nil, loadbalancer.Service{Service: api})
	in.Others = []*v1.Service{api}
	commit("given to another one", map[string]string{name: "default/api"}, tells(api), loadbalancer.Service{Service: web, Gone: true})
	in.Others = nil
	delete(api.Annotations, key.LinkCreate.Name)
	commit("asked for no more", map[string]string{}, nil, loadbalancer.Service{Service: api, Groups: []key.Note{far}})
}
