package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/leftover"
)

// linkedSubscription is Azure after Services have come.
func linkedSubscription(t *testing.T, in loadbalancer.Input, services ...*v1.Service) *subscription {
	t.Helper()
	w := newSubscription(2)
	for _, s := range services {
		in.Services = append(in.Services, loadbalancer.Service{Service: s})
	}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	return w
}

// saidTo is what the rounds of a commit say to a Service.
func saidTo(rounds []round, service string) string {
	var texts []string
	for _, r := range rounds {
		for _, p := range r.problems {
			if p.Object == service {
				texts = append(texts, p.Message)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// TestAnotherClustersPrivateLinkOfTheSameName checks another cluster with a Service of the same name. In the same
// resource group, that Service has a private link service of the name that ours asks for. This does not make it ours.
func TestAnotherClustersPrivateLinkOfTheSameName(t *testing.T) {
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
	there := in
	there.Config.ClusterName, there.Config.LoadBalancerName = "other", "other"
	w := linkedSubscription(t, there, asksForLink("web", 80, key.LinkName.Name, "mine"))
	before := w.clone()
	web := asksForLink("web", 80, key.LinkName.Name, "mine")
	web.UID = "ffffffff-1111-2222-3333-444455556666"
	in.Services = []loadbalancer.Service{{Service: web}}
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := saidTo(rounds, "default/web"); !strings.Contains(got, `private link service "mine" is already at another frontend`) {
		t.Errorf("got %q", got)
	}
	id := azure.ID(network + "privateLinkServices/mine").Key()
	if w.docs[id]["etag"] != before.docs[id]["etag"] {
		t.Error("theirs is written")
	}
}

// TestAPrivateLinkThatAGuestLeft checks a private link service of a deleted Service at the frontend of
// another Service that asks for none. It goes like other leftovers, with its connections, and keeps no
// frontend.
func TestAPrivateLinkThatAGuestLeft(t *testing.T) {
	api := service("api", tcp(81, 30081))
	api.Annotations = map[string]string{key.Internal.Name: "true", key.IPv4.Name: "10.0.9.9"}
	web := asksForLink("web", 80, key.IPv4.Name, "10.0.9.9")
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
	w := newSubscription(2)
	for _, s := range []*v1.Service{api, web} {
		in.Services = []loadbalancer.Service{{Service: s}}
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
		in.Others = append(in.Others, s)
	}
	name := "rg/pls-" + baseOf(api)
	if got := w.links(); !maps.Equal(got, map[string]string{name: "default/web"}) {
		t.Fatal(got)
	}
	// Another implementation takes the rules of web away and leaves its private link service.
	lb := sub(w.docs[azure.ID(innerID).Key()], "properties")
	for _, kind := range []string{"loadBalancingRules", "probes"} {
		list, _ := lb[kind].([]any)
		lb[kind] = slices.DeleteFunc(list, func(x any) bool { return strings.HasPrefix(x.(object)["name"].(string), baseOf(web)) })
	}
	left, err := leftover.Find(in.Config, w.snapshot(), []*v1.Service{api})
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0].Key() != "default/web" {
		t.Fatalf("left are %v, want default/web", left)
	}
	in.Services, in.Others = left, []*v1.Service{api}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	if got := w.links(); len(got) > 0 {
		t.Errorf("there are %v", got)
	}
	in.Services, in.Others = []loadbalancer.Service{{Service: api, Gone: true}}, nil
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
}

// TestAGuestsPrivateLinkIsLookedFor checks a Service that shares an internal address and has the private link service
// there. When the Service becomes external or is deleted, Needs names the lists of private link services.
func TestAGuestsPrivateLinkIsLookedFor(t *testing.T) {
	web := service("web", tcp(80, 30080))
	web.Annotations = map[string]string{key.Internal.Name: "true", key.IPv4.Name: "10.0.9.9"}
	api := asksForLink("api", 81, key.IPv4.Name, "10.0.9.9")
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
	w := newSubscription(2)
	for _, s := range []*v1.Service{web, api} {
		in.Services = []loadbalancer.Service{{Service: s}}
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
	}
	api.Annotations = nil
	for _, gone := range []bool{false, true} {
		in.Services, in.Others, in.Have = []loadbalancer.Service{{Service: api, Gone: gone}}, []*v1.Service{web}, w.snapshot()
		_, lists := loadbalancer.Needs(in)
		if !slices.ContainsFunc(lists, func(q azure.Query) bool { return q.Type == privateLinks }) {
			t.Errorf("gone=%v: private link services are not looked at", gone)
		}
	}
}

// TestAPrivateLinkIsLeftToARefusedService checks that a Service leaves its private link service also
// to a refused Service, which keeps its last good state.
func TestAPrivateLinkIsLeftToARefusedService(t *testing.T) {
	web, api := asksForLink("web", 80, key.IPv4.Name, "10.0.9.9"), asksForLink("api", 81, key.IPv4.Name, "10.0.9.9")
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
	w := linkedSubscription(t, in, web)
	in.Services, in.Others = []loadbalancer.Service{{Service: api}}, []*v1.Service{web}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	in.Others = nil
	api.Annotations[key.IdleTimeout.Name] = "never"
	in.Services = []loadbalancer.Service{{Service: web, Gone: true}, {Service: api}}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	if got, want := w.links(), map[string]string{"rg/pls-" + baseOf(web): "default/api"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestTheLastPrivateLinkMayMove checks that a load balancer has eight private link services at most. If a Service takes
// its private link service to another frontend there, it counts once.
func TestTheLastPrivateLinkMayMove(t *testing.T) {
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
	var all []*v1.Service
	for i := range 8 {
		all = append(all, asksForLink(fmt.Sprint("s", i), 80+int32(i)))
	}
	w := linkedSubscription(t, in, all...)
	if n := len(w.links()); n != 8 {
		t.Fatal(n)
	}
	all[3].Annotations[key.InternalSubnet.Name] = "apps"
	for i, s := range all {
		if i == 3 {
			in.Services = []loadbalancer.Service{{Service: s}}
		} else {
			in.Others = append(in.Others, s)
		}
	}
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := saidTo(rounds, all[3].Namespace+"/"+all[3].Name); got != "" {
		t.Errorf("got %s", got)
	}
	if n := len(w.links()); n != 8 {
		t.Errorf("there are %d", n)
	}
}

// TestNoPrivateLinkBeforePoolsOfAddresses checks a Service that asks for a private link service in front of pools of
// addresses. Azure has no such private link service. The Service gets a problem and delays no other Service.
func TestNoPrivateLinkBeforePoolsOfAddresses(t *testing.T) {
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true}
	in.Config.PoolByIP = true
	web, api := asksForLink("web", 80), asksForLink("api", 81)
	delete(api.Annotations, key.LinkCreate.Name)
	w := newSubscription(2)
	in.Services = []loadbalancer.Service{{Service: web}, {Service: api}}
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := saidTo(rounds, web.Namespace+"/"+web.Name); !strings.Contains(got, "loadBalancerBackendPoolConfigurationType") {
		t.Errorf("got %q", got)
	}
	if got := saidTo(rounds, api.Namespace+"/"+api.Name); got != "" {
		t.Errorf("api got %q", got)
	}
	if text := w.lower(azure.ID(innerID).Key()); !strings.Contains(text, baseOf(api)) || strings.Contains(text, baseOf(web)) {
		t.Errorf("there is %s", text)
	}
}

// TestPoolsBehindPrivateLinksStayPoolsOfInterfaces checks that pools behind an existing private link service stay pools
// of network interfaces, however the cluster is configured from now on. If the interfaces left, nothing could replace
// them. The pools get addresses when the last private link service is gone.
func TestPoolsBehindPrivateLinksStayPoolsOfInterfaces(t *testing.T) {
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true}
	web, api := asksForLink("web", 80), service("api", tcp(81, 30081))
	w := linkedSubscription(t, in, web, api)
	in.Config.PoolByIP = true
	pool := azure.ID(innerID).Child("backendAddressPools", "kubernetes")
	interfaces := func() int { return strings.Count(w.everyone(), `"`+pool.Key()+`"`) }
	inner, were := w.docs[azure.ID(innerID).Key()]["etag"], interfaces()
	in.Services = []loadbalancer.Service{{Service: web}, {Service: api}}
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := saidTo(rounds, "default/web"); !strings.Contains(got, "network interfaces") {
		t.Errorf("got %q", got)
	}
	if interfaces() != were || w.docs[azure.ID(innerID).Key()]["etag"] != inner {
		t.Errorf("%d refer to the internal pool, were %d", interfaces(), were)
	}
	if !strings.Contains(w.lower(azure.ID(lbID).Key()), "loadbalancerbackendaddresses") {
		t.Error("the external pool has no addresses")
	}
	// Private link services are listed whichever Services are served.
	in.Services, in.Others, in.Have = []loadbalancer.Service{{Service: api}}, []*v1.Service{web}, w.snapshot()
	if _, lists := loadbalancer.Needs(in); !slices.ContainsFunc(lists, func(q azure.Query) bool { return q.Type == privateLinks }) {
		t.Error("private link services are not looked at")
	}
	delete(web.Annotations, key.LinkCreate.Name)
	in.Services, in.Others = []loadbalancer.Service{{Service: web}}, []*v1.Service{api}
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	if interfaces() > 0 || !strings.Contains(w.lower(azure.ID(innerID).Key()), "loadbalancerbackendaddresses") {
		t.Errorf("%d refer to the internal pool, and it is %s", interfaces(), w.lower(azure.ID(innerID).Key()))
	}
}

// TestPoolsBehindForeignPrivateLinksStayPoolsOfInterfaces checks the same for a commit of another
// Service, with a private link service in a resource group that only its own Service names.
func TestPoolsBehindForeignPrivateLinksStayPoolsOfInterfaces(t *testing.T) {
	in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true}
	web, api := asksForLink("web", 80, key.LinkGroup.Name, "far"), service("api", tcp(81, 30081))
	w := linkedSubscription(t, in, web, api)
	in.Config.PoolByIP = true
	inner := w.lower(azure.ID(innerID).Key())
	in.Services, in.Others = []loadbalancer.Service{{Service: api}}, []*v1.Service{web}
	if _, err := w.commit(in); err != nil {
		t.Error(err)
	}
	if got := w.lower(azure.ID(innerID).Key()); got != inner {
		t.Errorf("the load balancer is %s, was %s", got, inner)
	}
}

// TestNoPoolsOfAddressesBehindPrivateLinksWithSeveral checks several load balancers, where nodes are
// spread by their addresses and Services of policy Local have their own pools. That does not apply
// behind a private link service, because no packet would arrive.
func TestNoPoolsOfAddressesBehindPrivateLinksWithSeveral(t *testing.T) {
	for what, change := range map[string]func(*v1.Service){
		"policy Local": func(s *v1.Service) {
			s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 31000
		},
		"another family": func(s *v1.Service) { s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} },
	} {
		in := loadbalancer.Input{Config: config(), Nodes: addressed(machines(2)), Complete: true}
		web, api := asksForLink("web", 80), service("api", tcp(81, 30081))
		api.Annotations = map[string]string{key.Internal.Name: "true"}
		w := linkedSubscription(t, in, web, api)
		in.Config.PoolByIP = true
		in.Config.Balancers = []loadbalancer.Balancer{{Name: "kubernetes", AllowPlacement: true, PrimaryVMSet: "np"},
			{Name: "lb2", AllowPlacement: true, PrimaryVMSet: "np2"}}
		in.Endpoints = map[string][]string{"default/api": {in.Nodes[0].Name}}
		change(api)
		in.Services = []loadbalancer.Service{{Service: web}, {Service: api}}
		if _, err := w.commit(in); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		delete(web.Annotations, key.LinkCreate.Name)
		if _, err := w.commit(in); err != nil {
			t.Errorf("%s, and the private link service goes: %v", what, err)
		}
		if got := w.lower(azure.ID(innerID).Key()); !strings.Contains(got, `"ipaddress":"10.0.0.4"`) {
			t.Errorf("%s, and the private link service is gone: there is %s", what, got)
		}
	}
}

// everyone is the text of all machines and scale sets.
func (w *subscription) everyone() string {
	var all strings.Builder
	for _, id := range slices.Sorted(maps.Keys(w.docs)) {
		if strings.Contains(id, "/virtualmachine") {
			all.WriteString(w.lower(id))
		}
	}
	return all.String()
}

// TestOneFrontendHasOnePrivateLink checks that a frontend has one private link service. Of several new
// Services the first decides its name and its resource group, and the others share it. A Service that
// names another one gets a problem that names the owner.
func TestOneFrontendHasOnePrivateLink(t *testing.T) {
	pls := "pls-" + baseOf(service("a"))
	for what, turn := range map[string]struct {
		first, second  []string
		want, reported string
	}{
		"the first names it":    {first: []string{key.LinkName.Name, "mine"}, want: "rg/mine"},
		"the first says where":  {first: []string{key.LinkGroup.Name, "far"}, want: "far/" + pls},
		"the second says where": {second: []string{key.LinkGroup.Name, "far"}, want: "rg/" + pls},
		"the second names another": {second: []string{key.LinkName.Name, "mine"}, want: "rg/" + pls,
			reported: "belongs to Service default/a"},
		"each has another name": {first: []string{key.LinkName.Name, "one"}, second: []string{key.LinkName.Name, "two"},
			want: "rg/one", reported: "belongs to Service default/a"},
		"each says where, elsewhere": {first: []string{key.LinkGroup.Name, "far"}, second: []string{key.LinkGroup.Name, "away"},
			want: "far/" + pls},
	} {
		address := []string{key.IPv4.Name, "10.0.9.9"}
		a, b := asksForLink("a", 80, slices.Concat(address, turn.first)...), asksForLink("b", 81, slices.Concat(address, turn.second)...)
		in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
			Services: []loadbalancer.Service{{Service: a}, {Service: b}}}
		w := newSubscription(2)
		for range 2 {
			rounds, err := w.commit(in)
			if err != nil {
				t.Fatal(what, err)
			}
			if got, want := w.links(), map[string]string{turn.want: "default/a"}; !maps.Equal(got, want) {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
			if got := saidTo(rounds, "default/a"); got != "" {
				t.Errorf("%s: a got %s", what, got)
			}
			if got := saidTo(rounds, "default/b"); !strings.Contains(got, turn.reported) || turn.reported == "" && got != "" {
				t.Errorf("%s: b got %q, want %q", what, got, turn.reported)
			}
		}
	}
}

// TestAPrivateLinkIsAsItsOwnerSays checks that the owner of a private link service decides its settings. This also holds
// in a commit with Services that share it, and when the owner no longer asks for a setting.
func TestAPrivateLinkIsAsItsOwnerSays(t *testing.T) {
	address := []string{key.IPv4.Name, "10.0.9.9"}
	guest, owner := asksForLink("a", 81, address...), asksForLink("b", 80, append(address, key.LinkFQDNs.Name, "b.example")...)
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
	w := newSubscription(2)
	for _, s := range []*v1.Service{owner, guest} {
		in.Services = append(in.Services, loadbalancer.Service{Service: s})
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
	}
	name := "rg/pls-" + baseOf(owner)
	for _, fqdns := range []string{"b.example", "", "other.example", ""} {
		owner.Annotations[key.LinkFQDNs.Name] = fqdns
		if fqdns == "" {
			delete(owner.Annotations, key.LinkFQDNs.Name)
		}
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
		if got := w.links(); !maps.Equal(got, map[string]string{name: "default/b"}) {
			t.Errorf("%q: %v", fqdns, got)
		}
		link := azure.ID(network + "privateLinkServices/pls-" + baseOf(owner))
		if all, _ := sub(w.docs[link.Key()], "properties")["fqdns"].([]any); strings.Trim(fmt.Sprint(all), "[]") != fqdns {
			t.Errorf("it has the names %v, want %q", all, fqdns)
		}
	}
}
