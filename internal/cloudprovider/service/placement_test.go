package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/testkit"
)

// spread is a cluster with two load balancers, each with a scale set of its own.
type spread struct {
	*serviceCluster
	config service.Config
	stop   func()
}

const secondSet = testkit.Group + "/providers/" + compute.ScaleSets + "/nodes1"

// spreadCluster plays a story with two load balancers. In the end Azure must be as it was.
func spreadCluster(t *testing.T, story func(t *testing.T, w *spread)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &spread{serviceCluster: newServiceCluster(t, core.Options{}, 2), config: several()}
		w.AddScaleSet(secondSet.Name(), testkit.Uniform, 2, "1")
		for _, vm := range testkit.List[compute.Instance](w.Azure, secondSet, compute.ScaleSetInstances) {
			w.addNode(vm)
		}
		w.config.LoadBalancer.Balancers[1].PrimaryVMSet = secondSet.Name()
		if err := w.client.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceDefault}}); err != nil {
			t.Fatal(err)
		}
		before := w.Surroundings()
		story(t, w)
		w.restored(before, w.Surroundings)
	})
}

// again starts a controller anew, with a changed configuration.
func (w *spread) again(change func(c *loadbalancer.Config)) {
	w.t.Helper()
	if w.stop != nil {
		w.stop()
	}
	w.config.LoadBalancer.Balancers = slices.Clone(w.config.LoadBalancer.Balancers)
	change(&w.config.LoadBalancer)
	w.Reopen()
	w.stop = w.start(w.config)
	w.settle()
	w.Forget()
}

func asItIs(*loadbalancer.Config) {}

// goesOutByRules is for outbound rules: Azure allows none at a frontend with load balancing rules that also lead
// outward.
func goesOutByRules(c *loadbalancer.Config) { c.DisableOutboundSNAT = true }

func (w *spread) add(name string, port int32, edit func(*corev1.Service)) {
	w.t.Helper()
	s := w.newService(name, port)
	edit(s)
	w.create(s)
	w.served(name)
	w.settle()
}

// labelled gives a Service a label.
func labelled(name, value string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Labels = map[string]string{name: value} }
}

func plain(*corev1.Service) {}

// are checks which load balancers there are, which Services have rules at each, and which
// nodes are in its pool.
func (w *spread) are(want map[string]place) {
	w.t.Helper()
	w.settle()
	got := map[string]place{}
	list, err := w.client.CoreV1().Services(corev1.NamespaceAll).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, lb := range testkit.List[network.LoadBalancer](w.Azure, testkit.Group, network.LoadBalancers) {
		var p place
		for _, s := range list.Items {
			base := w.base(s.Name)
			if slices.ContainsFunc(lb.Properties.LoadBalancingRules,
				func(r azure.Child[network.LoadBalancingRule]) bool { return strings.HasPrefix(r.Name, base) }) {
				p.services = append(p.services, s.Name)
			}
		}
		p.nodes = w.backendsOf(lb.ID)
		slices.Sort(p.services)
		got[lb.Name] = p
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(place{})); d != "" {
		w.t.Errorf("load balancers (-want +got):\n%s", d)
	}
}

// place is the Services and nodes of a load balancer.
type place struct{ services, nodes []string }

var (
	firstNodes  = []string{"nodes0-000000", "nodes0-000001"}
	secondNodes = []string{"nodes1-000000", "nodes1-000001"}
	allNodes    = slices.Concat(firstNodes, secondNodes)
)

// Row 98. A load balancer that takes no further Services keeps its Services, which may change. New Services go to
// another load balancer. A full load balancer takes none either (D16).
func TestALoadBalancerThatTakesNoMore(t *testing.T) {
	spreadCluster(t, func(t *testing.T, w *spread) {
		w.again(asItIs)
		w.add("web", 80, plain)
		w.are(map[string]place{"kubernetes": {[]string{"web"}, allNodes}})
		address := w.address("web")

		w.again(func(c *loadbalancer.Config) { c.Balancers[0].AllowPlacement = false })
		w.are(map[string]place{"kubernetes": {[]string{"web"}, allNodes}})
		w.change("web", func(s *corev1.Service) { addPort(s, 443, corev1.ProtocolTCP) })
		w.add("api", 81, plain)
		w.are(map[string]place{"kubernetes": {[]string{"web"}, firstNodes}, "lb2": {[]string{"api"}, secondNodes}})
		if got := w.address("web"); got != address {
			t.Errorf("the address became %s from %s", got, address)
		}
		w.touched("web")
		w.touched("api")

		w.again(func(c *loadbalancer.Config) { c.Balancers[0].AllowPlacement, c.MaximumRules = true, 1 })
		w.create(w.newService("late", 82))
		w.reported("late", "SyncLoadBalancerFailed", "LimitExceeded: load balancers kubernetes, lb2")
		w.touched("web")
		w.removed("api", "late")
		w.add("new", 83, plain)
		w.are(map[string]place{"kubernetes": {[]string{"web"}, firstNodes}, "lb2": {[]string{"new"}, secondNodes}})
		w.removed("web", "new")
	})
}

// Row 99. A load balancer that selects a Service comes before load balancers that select nothing. If it selects by
// Service and by namespace, both must match (D45). A Service that gets other labels moves, with its address (D21).
func TestSelectorsOfLoadBalancers(t *testing.T) {
	selects := func(name, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{name: value}}
	}
	spreadCluster(t, func(t *testing.T, w *spread) {
		w.again(func(c *loadbalancer.Config) { c.Balancers[1].ServiceSelector = selects("lb", "two") })
		w.add("web", 80, labelled("lb", "two"))
		w.add("api", 81, plain)
		address := w.address("web")
		apart := map[string]place{"kubernetes": {[]string{"api"}, firstNodes}, "lb2": {[]string{"web"}, secondNodes}}
		w.are(apart)
		w.change("web", labelled("lb", "one"))
		w.are(map[string]place{"kubernetes": {[]string{"api", "web"}, allNodes}})
		w.change("web", labelled("lb", "two"))
		w.are(apart)
		if got := w.address("web"); got != address {
			t.Errorf("the address became %s from %s", got, address)
		}

		w.again(func(c *loadbalancer.Config) { c.Balancers[1].NamespaceSelector = selects("team", "b") })
		w.change("web", func(s *corev1.Service) { s.Annotations = map[string]string{"x": "y"} })
		w.are(map[string]place{"kubernetes": {[]string{"api", "web"}, allNodes}})
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceDefault, Labels: map[string]string{"team": "b"}}}
		if err := w.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("namespaces"), namespace, ""); err != nil {
			t.Fatal(err)
		}
		w.are(apart)
		if got := w.address("web"); got != address {
			t.Errorf("the address became %s from %s", got, address)
		}
		w.removed("web", "api")
	})
}

// TestAnAddressLeadsToItsLoadBalancer checks row 100: a Service that names an address goes to the load balancer of
// that address. It names the address itself or its public IP. A Service that is also sent to another load balancer,
// or that may not be at this one, gets a problem.
func TestAnAddressLeadsToItsLoadBalancer(t *testing.T) {
	spreadCluster(t, func(t *testing.T, w *spread) {
		w.again(asItIs)
		w.add("web", 80, annotated("load-balancer-configurations", "lb2"))
		w.add("other", 79, annotated("load-balancer-configurations", "kubernetes"))
		address := w.address("web")
		w.add("by-address", 81, func(s *corev1.Service) { s.Spec.LoadBalancerIP = address })
		w.add("by-name", 82, annotated("pip-name", testkit.ClusterName+"-"+w.base("web")))
		both := map[string]place{"kubernetes": {[]string{"other"}, firstNodes},
			"lb2": {[]string{"by-address", "by-name", "web"}, secondNodes}}
		w.are(both)
		ip := testkit.Must[network.PublicIPAddress](w.Azure,
			testkit.Group.Resource(network.PublicIPAddresses, testkit.ClusterName+"-"+w.base("web")))
		if got := ip.Tags["k8s-azure-service"]; got != "default/web,default/by-address,default/by-name" {
			t.Errorf("the public IP is of %q", got)
		}
		w.touched("by-address")
		w.touched("by-name")

		torn := w.newService("torn", 83)
		annotated("load-balancer-configurations", "kubernetes")(torn)
		torn.Spec.LoadBalancerIP = address
		w.create(torn)
		w.reported("torn", "SyncLoadBalancerFailed", "LoadBalancerNotEligible: annotation "+prefix+"load-balancer-configurations")
		w.again(func(c *loadbalancer.Config) {
			c.Balancers[1].ServiceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"lb": "two"}}
		})
		lost := w.newService("lost", 84)
		lost.Spec.LoadBalancerIP = address
		w.create(lost)
		w.reported("lost", "SyncLoadBalancerFailed", "LoadBalancerNotEligible: its address is at load balancer lb2, which may not serve it")
		w.removed("lost", "torn")
		w.again(func(c *loadbalancer.Config) { c.Balancers[1].ServiceSelector = nil })
		w.are(both)

		w.removed("web") // the address is still there for the Services that came after
		w.are(map[string]place{"kubernetes": {[]string{"other"}, firstNodes}, "lb2": {[]string{"by-address", "by-name"}, secondNodes}})
		for _, name := range []string{"by-address", "by-name"} {
			if got := w.address(name); got != address {
				t.Errorf("%s has %q, want %s", name, got, address)
			}
		}
		w.removed("by-address", "by-name", "other")
	})
}

// TestASharedFrontendStays checks that a Service at a shared frontend cannot go to another load balancer: Azure
// deletes no frontend that a rule refers to, and the address is at one load balancer only. The Service gets a problem
// and keeps what it has. Once nothing keeps it there, it moves with its address.
func TestASharedFrontendStays(t *testing.T) {
	outbound := func(w *spread) object {
		return object{"protocol": "All", "backendAddressPool": ref(part("backendAddressPools", testkit.ClusterName)),
			"frontendIPConfigurations": []object{ref(part("frontendIPConfigurations", w.base("web")))}}
	}
	pinned := func(pairs ...string) func(w *spread) {
		return func(w *spread) {
			address := w.address("web")
			w.add("guest", 81, func(s *corev1.Service) { annotated(pairs...)(s); s.Spec.LoadBalancerIP = address })
		}
	}
	leaves := func(w *spread) { w.removed("guest") }
	for name, c := range map[string]struct {
		web        []string // annotations
		come, goes func(w *spread)
		by, guests string
	}{
		"public IP": {nil, pinned(), leaves, "of Service default/guest", "guest"},
		"address": {[]string{"load-balancer-internal", "true"}, pinned("load-balancer-internal", "true"), leaves,
			"of Service default/guest", "guest"},
		"outbound rule": {nil, func(w *spread) { w.byHand(testkit.LoadBalancer, withPart("outboundRules", their, outbound(w))) },
			func(w *spread) { w.byHand(testkit.LoadBalancer, withoutPart("outboundRules", their)) }, "of an unknown owner", ""},
	} {
		t.Run(name, func(t *testing.T) {
			spreadCluster(t, func(t *testing.T, w *spread) {
				w.config.RepairPeriod = 30 * time.Minute
				w.again(goesOutByRules)
				kind := ""
				if name == "address" {
					kind = "-internal"
				}
				w.add("web", 80, annotated(append(c.web, "load-balancer-configurations", "kubernetes")...))
				c.come(w)
				address, before := w.address("web"), w.Snapshot()
				w.change("web", annotated("load-balancer-configurations", "lb2"))
				w.reported("web", "SyncLoadBalancerFailed", `FrontendConflict: annotation `+prefix+`load-balancer-configurations: "lb2"`)
				w.reported("web", "SyncLoadBalancerFailed", c.by)
				<-time.After(2 * time.Hour)
				if d := cmp.Diff(before, w.Snapshot()); d != "" {
					t.Errorf("web is refused, and Azure is not as it was (-before +after):\n%s", d)
				}
				w.add("near", 82, annotated(append(c.web, "load-balancer-configurations", "lb2")...))
				first := []string{"web"}
				if c.guests != "" {
					first = []string{c.guests, "web"}
				}
				w.are(map[string]place{"kubernetes" + kind: {first, firstNodes}, "lb2" + kind: {[]string{"near"}, secondNodes}})

				c.goes(w)
				<-time.After(time.Hour)
				w.are(map[string]place{"lb2" + kind: {[]string{"near", "web"}, allNodes}})
				if got := w.address("web"); got != address {
					t.Errorf("the address became %s from %s", got, address)
				}
				w.removed("web", "near")
			})
		})
	}
}

// TestNodesThatChangePlacesAreLetIn checks nodes that move because the last Service of a load balancer goes, or the
// first one comes. A Service receives packets at the nodes' own addresses. They are let in at the nodes that its load
// balancer has now, and at no others. That needs no change of the Service.
func TestNodesThatChangePlacesAreLetIn(t *testing.T) {
	spreadCluster(t, func(t *testing.T, w *spread) {
		w.again(asItIs)
		w.add("web", 80, annotated("load-balancer-configurations", "lb2"))
		w.add("near", 79, annotated("load-balancer-configurations", "kubernetes", "disable-load-balancer-floating-ip", "true"))
		letIn := func(names []string) {
			t.Helper()
			w.settle()
			var want, got []string
			for _, name := range names {
				want = append(want, w.nodesByName()[name].Status.Addresses[0].Address)
			}
			for _, r := range testkit.Must[network.SecurityGroup](w.Azure, testkit.SecurityGroup).Properties.SecurityRules {
				if slices.Contains(r.Properties.DestinationPortRanges, "30079") {
					got = append(got, r.Properties.DestinationAddressPrefixes...)
				}
			}
			slices.Sort(want)
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("let in is %v, want %v", got, want)
			}
		}
		letIn(firstNodes)
		w.removed("web")
		w.are(map[string]place{"kubernetes": {[]string{"near"}, allNodes}})
		letIn(allNodes)
		w.add("web", 80, annotated("load-balancer-configurations", "lb2"))
		w.are(map[string]place{"kubernetes": {[]string{"near"}, firstNodes}, "lb2": {[]string{"web"}, secondNodes}})
		letIn(firstNodes)
		w.removed("near", "web")
	})
}

// Row 103. Azure deletes no load balancer that a scale set is in. A scale set without nodes is taken out first,
// whether kaz knew of it or not. But kaz does not write a scale set in another resource group. The Service gets an event
// about such a scale set, and waits until it has left.
func TestALoadBalancerThatAScaleSetNeeds(t *testing.T) {
	for _, group := range []azure.ID{testkit.Group, far} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("in %s, late %v", group.Name(), late), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newServiceCluster(t, core.Options{Latency: 1}, 1)
					set := group.Resource(compute.ScaleSets, "extra")
					w.PutScaleSet(set, "extra-", testkit.Uniform, 1)
					before := w.Surroundings()
					w.start(config())
					w.create(w.newService("web", 80))
					w.served("web")
					w.settle()
					if late {
						w.touched("web") // so that all is remembered from just now
					}
					join := func(pools ...azure.ID) {
						w.byHand(set, func(p object) { joins(p["virtualMachineProfile"].(object)["networkProfile"], pools...) })
						for _, vm := range testkit.List[compute.Instance](w.Azure, set, compute.ScaleSetInstances) {
							w.byHand(vm.ID, func(p object) { joins(p["networkProfileConfiguration"], pools...) })
						}
					}
					join(part("backendAddressPools", testkit.ClusterName))
					if !late {
						w.settle()
					}
					w.remove("web")
					if group != testkit.Group {
						w.reported("web", "SyncLoadBalancerFailed", "LoadBalancerInUseByVirtualMachineScaleSet")
						join()
					}
					w.allGone([]string{"web"})
					w.restored(before, w.Surroundings)
				})
			})
		}
	}
}
