package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

const privateEndpoints = "Microsoft.Network/privateEndpoints"

// linkedCluster plays a story of private link services. In the end Azure must be as it was.
func linkedCluster(t *testing.T, story func(t *testing.T, w *serviceCluster)) {
	t.Helper()
	linkedWorldOf(t, func(t *testing.T, w *serviceCluster, _ func()) { story(t, w) })
}

// linkedWorldOf is linkedCluster for a story that stops the controller.
func linkedWorldOf(t *testing.T, story func(t *testing.T, w *serviceCluster, stop func())) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 1)
		before := opened(w.Surroundings())
		story(t, w, w.start(config()))
		w.restored(before, func() map[string]string { return opened(w.Surroundings()) })
	})
}

// inside makes a Service that has a private address, with more annotations.
func (w *serviceCluster) inside(name string, port int32, pairs ...string) {
	w.t.Helper()
	s := w.newService(name, port)
	annotated("load-balancer-internal", "true")(s)
	annotated(pairs...)(s)
	w.create(s)
}

func (w *serviceCluster) links() []azure.Resource[network.PrivateLinkService] {
	w.t.Helper()
	return testkit.List[network.PrivateLinkService](w.Azure, testkit.Group, network.PrivateLinkServices)
}

// linkOf waits until there is one private link service, and it is a Service's.
func (w *serviceCluster) linkOf(owner string) azure.Resource[network.PrivateLinkService] {
	w.t.Helper()
	var link azure.Resource[network.PrivateLinkService]
	w.until("the private link service belongs to "+owner, func() bool {
		all := w.links()
		if len(all) != 1 {
			return false
		}
		link = all[0]
		return link.Tags["k8s-azure-owner-service"] == corev1.NamespaceDefault+"/"+owner
	})
	return link
}

// Row 93. Services at one address share its private link service, and its owner alone sets its options. When the
// owner goes, another Service that asks for it becomes the owner (D28).
func TestASharedPrivateLink(t *testing.T) {
	options := map[string]string{
		"pls-name": "another", "pls-ip-configuration-subnet": "nodes", "pls-ip-configuration-ip-address-count": "2",
		"pls-ip-configuration-ip-address": "10.240.8.8", "pls-fqdns": "web.example", "pls-proxy-protocol": "true",
		"pls-visibility": "*", "pls-auto-approval": testkit.Subscription,
	}
	linkedCluster(t, func(t *testing.T, w *serviceCluster) {
		address := []string{"load-balancer-ipv4", "10.240.9.9", "pls-create", "true"}
		w.inside("web", 80, slices.Concat(address, []string{"pls-fqdns", "ours.example"})...)
		w.served("web")
		w.inside("api", 81, address...)
		w.served("api")
		link := w.linkOf("web")
		frontend := azure.ID(testkit.LoadBalancer+"-internal").Child(network.FrontendIPConfigurations, w.base("web"))
		if refs := link.Properties.LoadBalancerFrontendIPConfigurations; len(refs) != 1 || !refs[0].ID.Equal(frontend) {
			t.Errorf("it stands at %v, want %s", refs, frontend)
		}
		w.touched("api")
		before := w.Surroundings()
		for option, value := range options {
			w.events.forget()
			w.change("api", annotated(option, value))
			w.reported("api", "SyncLoadBalancerFailed", "PrivateLinkConflict: annotation "+prefix+option)
			w.change("api", func(s *corev1.Service) { delete(s.Annotations, prefix+option) })
			w.settle()
		}
		w.change("api", annotated("pls-resource-group", testkit.ResourceGroup)) // where it is may be said
		w.touched("api")
		if d := cmp.Diff(before, w.Surroundings()); d != "" {
			t.Errorf("what was refused changed (-before +after):\n%s", d)
		}
		w.removed("web")
		if link = w.linkOf("api"); !link.Properties.LoadBalancerFrontendIPConfigurations[0].ID.Equal(frontend) {
			t.Errorf("it stands at %v, want %s", link.Properties.LoadBalancerFrontendIPConfigurations, frontend)
		}
		w.change("api", annotated("pls-fqdns", "api.example")) // now it may
		w.until("api says what it is like", func() bool { return slices.Equal(w.linkOf("api").Properties.FQDNs, []string{"api.example"}) })
		w.touched("api")
		w.removed("api")
	})
}

// TestForeignPrivateLink checks row 94: an address with a foreign private link service cannot have a managed one. The
// Service gets a problem, and the foreign private link service stays. Azure deletes no frontend that it uses, so the
// Service goes after it. No other Service waits.
func TestForeignPrivateLink(t *testing.T) {
	linkedCluster(t, func(t *testing.T, w *serviceCluster) {
		w.inside("web", 80)
		w.served("web")
		w.byHand(testkit.VNet.Child("subnets", "nodes"), func(p object) { p["privateLinkServiceNetworkPolicies"] = "Disabled" })
		theirs := testkit.Group.Resource(network.PrivateLinkServices, their)
		w.Put(theirs, object{"location": testkit.Location, "tags": object{"owner": "them"}, "properties": object{
			"loadBalancerFrontendIpConfigurations": []object{ref(azure.ID(testkit.LoadBalancer+
				"-internal").Child(network.FrontendIPConfigurations, w.base("web")))},
			"ipConfigurations": []object{{"name": "one",
				"properties": object{"primary": true, "subnet": ref(testkit.VNet.Child("subnets", "nodes"))}}},
		}})
		w.settle()
		with := w.Surroundings()
		w.change("web", annotated("pls-create", "true"))
		w.reported("web", "SyncLoadBalancerFailed", "private link service theirs at frontend "+w.base("web")+
			" is not managed by this cluster")
		w.settle()
		w.change("web", annotated("pls-create", "false"))
		w.touched("web")
		if d := cmp.Diff(with, w.Surroundings()); d != "" {
			t.Errorf("Azure changed (-before +after):\n%s", d)
		}
		w.remove("web")
		w.reported("web", "SyncLoadBalancerFailed", "CannotDeleteLoadBalancerWithPrivateLinkService")
		w.inside("api", 81)
		w.served("api")
		w.removed("api")
		if got := w.Surroundings()[string(theirs)]; got != with[string(theirs)] {
			t.Errorf("theirs changed:\n%s", cmp.Diff(with[string(theirs)], got))
		}
		if err := w.OtherClient().Delete(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		w.allGone([]string{"web"})
	})
}

// Row 95. The connections of a private link service go first, approved or not. Then the private link service goes,
// and then its frontend. The endpoints belong to other owners and stay, disconnected.
func TestAPrivateLinkGoesWithItsConnections(t *testing.T) {
	linkedCluster(t, func(t *testing.T, w *serviceCluster) {
		w.inside("web", 80, "pls-create", "true")
		w.served("web")
		link := w.linkOf("web")
		var endpoints []azure.ID
		for i, list := range []string{"privateLinkServiceConnections", "manualPrivateLinkServiceConnections"} {
			id := testkit.Group.Resource(privateEndpoints, fmt.Sprint("endpoint", i))
			w.Put(id, object{"location": testkit.Location, "properties": object{
				"subnet": ref(testkit.VNet.Child("subnets", "nodes")),
				list:     []object{{"name": "link", "properties": object{"privateLinkServiceId": string(link.ID)}}},
			}})
			endpoints = append(endpoints, id)
		}
		w.touched("web")
		w.removed("web")
		var order []string
		for _, r := range w.Requests() {
			if kind := azure.ID(r.Path).Type(); r.Method == "DELETE" {
				order = append(order, kind[strings.LastIndexByte(kind, '/')+1:])
			}
		}
		if d := cmp.Diff([]string{"privateEndpointConnections", "privateEndpointConnections", "privateLinkServices", "loadBalancers"},
			order); d != "" {
			t.Errorf("deleted was (-want +got):\n%s", d)
		}
		for _, id := range endpoints {
			if text := w.Surroundings()[string(id)]; !strings.Contains(text, `"status": "Disconnected"`) {
				t.Errorf("%s: %s", id, text)
			}
			if err := w.OtherClient().Delete(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Row 96. A node's health server answers the probes of a Service of policy Local. It does not understand probes
// through a private link service that speaks PROXY protocol, so the ports of the Service are probed. Without PROXY
// protocol the health server is probed again.
func TestAPrivateLinkWithProxyProtocol(t *testing.T) {
	linkedCluster(t, func(t *testing.T, w *serviceCluster) {
		s := w.newService("web", 80, 81)
		local(s)
		annotated("load-balancer-internal", "true", "pls-create", "true", "pls-proxy-protocol", "true")(s)
		w.create(s)
		w.served("web")
		for _, turn := range []struct {
			proxy  bool
			probes []string
		}{
			{true, []string{"TCP-80 Tcp 30080 ", "TCP-81 Tcp 30081 "}},
			{false, []string{"TCP-32000 Http 32000 /healthz"}},
			{true, []string{"TCP-80 Tcp 30080 ", "TCP-81 Tcp 30081 "}},
		} {
			w.change("web", annotated("pls-proxy-protocol", fmt.Sprint(turn.proxy)))
			w.settle()
			if got := w.probesOf("web"); !slices.Equal(got, turn.probes) {
				t.Errorf("PROXY protocol %v: probes %q, want %q", turn.proxy, got, turn.probes)
			}
			if got := w.linkOf("web").Properties.EnableProxyProtocol; got == nil || *got != turn.proxy {
				t.Errorf("the private link service has PROXY protocol %v, want %v", got, turn.proxy)
			}
			w.touched("web")
		}
		w.removed("web")
	})
}

// probesOf are the probes of an internal Service that its rules name.
func (w *serviceCluster) probesOf(name string) []string {
	w.t.Helper()
	lb := testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer+"-internal")
	named := map[string]bool{}
	for _, r := range lb.Properties.LoadBalancingRules {
		named[r.Properties.Probe.ID.Name()] = true
	}
	var all []string
	for _, p := range lb.Properties.Probes {
		if !named[p.Name] {
			w.t.Errorf("no rule has the probe %s", p.Name)
		}
		all = append(all,
			fmt.Sprintf("%s %s %d %s", strings.TrimPrefix(p.Name, w.base(name)+"-"), p.Properties.Protocol, p.Properties.Port,
				p.Properties.RequestPath))
	}
	slices.Sort(all)
	return all
}

// linksIn are the private link services of a resource group.
func (w *serviceCluster) linksIn(group azure.ID) []azure.Resource[network.PrivateLinkService] {
	w.t.Helper()
	return testkit.List[network.PrivateLinkService](w.Azure, group, network.PrivateLinkServices)
}

// linkedElsewhere plays a story of private link services in another resource group.
func linkedElsewhere(t *testing.T, story func(t *testing.T, w *serviceCluster)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{Latency: 1})
		before := w.everything()
		w.start(config())
		story(t, w)
		w.restored(before, w.everything)
	})
}

// TestAPrivateLinkElsewhereKeepsItsPlace checks D28: a private link service stays in a resource group that its
// Service does not name any more. It also keeps its name, because a move would end its users' connections. An event
// says where it is. It is deleted when the Service asks for none, and then no note is left.
func TestAPrivateLinkElsewhereKeepsItsPlace(t *testing.T) {
	for name, turn := range map[string]func(*corev1.Service){
		"no group": without("pls-resource-group"), "another group": annotated("pls-resource-group", testkit.ResourceGroup),
		"no annotation at all but what it needs": func(s *corev1.Service) {
			s.Annotations = nil
			annotated("load-balancer-internal", "true", "pls-create", "true")(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			linkedElsewhere(t, func(t *testing.T, w *serviceCluster) {
				w.inside("web", 80, "pls-create", "true", "pls-resource-group", "far")
				w.served("web")
				w.settle()
				w.remembers("web", 1)
				with := w.everything()
				w.change("web", turn)
				w.reported("web", "PrivateLinkConflict", `stays in the resource group "far"`)
				w.touched("web")
				w.remembers("web", 1)
				if d := cmp.Diff(with, w.everything()); d != "" {
					t.Errorf("Azure changed (-before +after):\n%s", d)
				}
				w.change("web", without("pls-create"))
				w.settle()
				if left := w.linksIn(far); len(left) > 0 {
					t.Errorf("left are %v", left)
				}
				w.remembers("web", 0)
				w.removed("web")
			})
		})
	}
}

// A private link service in another resource group goes with its Service, and when its Service no longer asks for it.
func TestAPrivateLinkElsewhereGoes(t *testing.T) {
	for name, turn := range map[string]func(*corev1.Service){
		"asked for no more": without("pls-resource-group", "pls-create"),
		"external":          without("pls-resource-group", "pls-create", "load-balancer-internal"),
		"nothing is said":   func(s *corev1.Service) { s.Annotations = nil },
	} {
		t.Run(name, func(t *testing.T) {
			linkedElsewhere(t, func(t *testing.T, w *serviceCluster) {
				w.inside("web", 80, "pls-create", "true", "pls-resource-group", "far")
				w.served("web")
				w.settle()
				w.change("web", turn)
				w.until("it is gone", func() bool { return len(w.linksIn(far)) == 0 })
				w.until("nothing is remembered", func() bool { return len(key.Notes(w.get("web").Status.Conditions)) == 0 })
				w.removed("web")
			})
		})
	}
}

// A Service that shares an address shares its private link service, whatever the resource group. When the owner goes,
// the Service becomes the owner.
func TestAPrivateLinkElsewhereIsHandedOver(t *testing.T) {
	for name, leave := range map[string]func(*serviceCluster){
		"its owner is deleted":            func(w *serviceCluster) { w.removed("web") },
		"its owner no longer asks for it": func(w *serviceCluster) { w.change("web", without("pls-create", "pls-resource-group")) },
	} {
		t.Run(name, func(t *testing.T) {
			linkedElsewhere(t, func(t *testing.T, w *serviceCluster) {
				address := []string{"load-balancer-ipv4", "10.240.9.9", "pls-create", "true"}
				w.inside("web", 80, append(address, "pls-resource-group", "far")...)
				w.served("web")
				w.inside("api", 81, address...)
				w.served("api")
				w.settle()
				link := w.linksIn(far)
				if all := w.links(); len(all) > 0 || len(link) != 1 {
					t.Fatalf("%d private link services stand in one group and %d in the other, want one", len(link), len(all))
				}
				leave(w)
				w.until("it is handed over", func() bool {
					now := w.linksIn(far)
					return len(now) == 1 && now[0].Tags["k8s-azure-owner-service"] == corev1.NamespaceDefault+"/api"
				})
				w.remembers("api", 1)
				w.touched("api")
				w.removed("api")
				if !w.gone("web") {
					w.removed("web")
				}
			})
		})
	}
}

// TestAPrivateLinkThatMayBeAskedForStays checks a value that is neither true nor false. It leaves open whether a
// Service asks for a private link service, so the existing one stays, with its connections.
func TestAPrivateLinkThatMayBeAskedForStays(t *testing.T) {
	linkedCluster(t, func(t *testing.T, w *serviceCluster) {
		w.inside("web", 80, "pls-create", "true", "pls-proxy-protocol", "true")
		w.served("web")
		w.settle()
		with := w.Surroundings()
		w.change("web", annotated("pls-create", "ture"))
		w.touched("web")
		if d := cmp.Diff(with, w.Surroundings()); d != "" {
			t.Errorf("Azure changed (-before +after):\n%s", d)
		}
		w.change("web", annotated("pls-create", " FALSE "))
		w.settle()
		if left := w.links(); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
		w.change("web", annotated("pls-create", "ture"))
		w.settle()
		if left := w.links(); len(left) > 0 {
			t.Errorf("made were %v", left)
		}
		w.removed("web")
	})
}

// Row 90. The options of a private link service change one by one, and in the end it is as it was.
func TestAPrivateLinkChanges(t *testing.T) {
	shape := func(w *serviceCluster) string {
		p := w.linkOf("web").Properties
		var addresses []string
		for _, c := range p.IPConfigurations {
			text := c.Properties.PrivateIPAddress
			if text == "" {
				text = "any"
			}
			text += " in " + c.Properties.Subnet.ID.Name()
			if *c.Properties.Primary {
				text += " first"
			}
			addresses = append(addresses, text)
		}
		slices.Sort(addresses)
		return fmt.Sprint(addresses, p.FQDNs, p.Visibility.Subscriptions, p.AutoApproval.Subscriptions, *p.EnableProxyProtocol)
	}
	linkedElsewhere(t, func(t *testing.T, w *serviceCluster) {
		w.byHand(testkit.VNet.Child("subnets", "nodes"), func(p object) { p["privateLinkServiceNetworkPolicies"] = "Disabled" })
		w.inside("web", 80, "pls-create", "true")
		w.served("web")
		first := shape(w)
		const count, static, subnet = "pls-ip-configuration-ip-address-count", "pls-ip-configuration-ip-address",
			"pls-ip-configuration-subnet"
		for _, turn := range []struct{ option, value, want string }{
			{count, "3", "[any in nodes any in nodes any in nodes first] [] [] [] false"},
			{static, "10.240.8.8", "[10.240.8.8 in nodes first any in nodes any in nodes] [] [] [] false"},
			{static, "10.240.8.9 10.240.8.8", "[10.240.8.8 in nodes 10.240.8.9 in nodes first any in nodes] [] [] [] false"},
			{count, "2", "[10.240.8.8 in nodes 10.240.8.9 in nodes first] [] [] [] false"},
			{static, "10.240.8.8  10.240.8.9", "[10.240.8.8 in nodes first 10.240.8.9 in nodes] [] [] [] false"},
			{static, "10.240.8.9", "[10.240.8.9 in nodes first any in nodes] [] [] [] false"},
			{"pls-fqdns", "b.example  a.example", "[10.240.8.9 in nodes first any in nodes] [b.example a.example] [] [] false"},
			{"pls-fqdns", "A.example b.example", "[10.240.8.9 in nodes first any in nodes] [b.example a.example] [] [] false"}, // the same
			{static, "", "[any in nodes any in nodes first] [b.example a.example] [] [] false"},
			{subnet, "apps", "[any in apps any in apps first] [b.example a.example] [] [] false"},
			{"pls-visibility", "s *", "[any in apps any in apps first] [b.example a.example] [*] [] false"},
			{"pls-auto-approval", "s", "[any in apps any in apps first] [b.example a.example] [*] [s] false"},
			{"pls-proxy-protocol", "true", "[any in apps any in apps first] [b.example a.example] [*] [s] true"},
			{subnet, "", "[any in nodes any in nodes first] [b.example a.example] [*] [s] true"},
			{count, "", "[any in nodes first] [b.example a.example] [*] [s] true"},
			{"pls-fqdns", "", "[any in nodes first] [] [*] [s] true"},
			{"pls-visibility", "", "[any in nodes first] [] [] [s] true"},
			{"pls-auto-approval", "", "[any in nodes first] [] [] [] true"},
			{"pls-proxy-protocol", "", first},
		} {
			w.change("web", annotated(turn.option, turn.value))
			if turn.value == "" {
				w.change("web", without(turn.option))
			}
			w.settle()
			if got := shape(w); got != turn.want {
				t.Errorf("with %s %q it is %s, want %s", turn.option, turn.value, got, turn.want)
			}
			w.touched("web")
		}
		w.removed("web")
	})
}

// Azure allows no private link service with pools of addresses. If one exists when the cluster is configured for
// addresses, the nodes stay in the pools. When it goes, they join by their addresses.
func TestPoolsBehindAPrivateLink(t *testing.T) {
	linkedWorldOf(t, func(t *testing.T, w *serviceCluster, stop func()) {
		inner := azure.ID(testkit.LoadBalancer + "-internal")
		members := func() (interfaces, addresses int) {
			for _, p := range testkit.Must[network.LoadBalancer](w.Azure, inner).Properties.BackendAddressPools {
				interfaces += len(p.Properties.BackendIPConfigurations)
				for _, a := range p.Properties.LoadBalancerBackendAddresses {
					if a.Properties.IPAddress != "" {
						addresses++
					}
				}
			}
			return interfaces, addresses
		}
		w.inside("web", 80, "pls-create", "true")
		w.served("web")
		w.settle()
		stop()
		w.Reopen()
		c := config()
		c.LoadBalancer.PoolByIP = true
		w.start(c)
		w.reported("web", "PrivateLinkConflict", "network interfaces")
		w.inside("api", 81)
		w.served("api")
		w.touched("api")
		if interfaces, addresses := members(); interfaces != 1 || addresses > 0 {
			t.Errorf("%d interfaces and %d addresses are in the pool, want the node's", interfaces, addresses)
		}
		w.change("web", without("pls-create"))
		w.until("the node is in the pool by its address", func() bool {
			interfaces, addresses := members()
			return interfaces == 0 && addresses == 1
		})
		w.change("web", annotated("pls-create", "true"))
		w.reported("web", "SyncLoadBalancerFailed", "loadBalancerBackendPoolConfigurationType")
		w.removed("web", "api")
	})
}
