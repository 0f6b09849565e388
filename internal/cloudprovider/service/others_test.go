package service_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	framework "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

type object = map[string]any

func ref(id azure.ID) object { return object{"id": string(id)} }

// byHand changes a document as another owner would, through a client of its own.
func (w *serviceCluster) byHand(id azure.ID, edit func(properties object)) {
	w.t.Helper()
	client := w.OtherClient()
	doc, err := client.Get(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	var tree object
	if err := json.Unmarshal(doc, &tree); err != nil {
		w.t.Fatal(err)
	}
	edit(tree["properties"].(object))
	body, err := json.Marshal(tree)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := client.Put(w.t.Context(), azure.Write{ID: id, Body: body, IfMatch: doc.Etag()}); err != nil {
		w.t.Fatal(err)
	}
	w.Forget()
}

// withPart adds a part to one of a document's lists.
func withPart(list, name string, properties object) func(object) {
	return func(p object) {
		parts, _ := p[list].([]any)
		p[list] = append(parts, object{"name": name, "properties": properties})
	}
}

// withoutPart removes a part from one of a document's lists.
func withoutPart(list, name string) func(object) {
	return func(p object) {
		p[list] = slices.DeleteFunc(p[list].([]any), func(x any) bool { return x.(object)["name"] == name })
	}
}

func part(segment, name string) azure.ID { return testkit.LoadBalancer.Child(segment, name) }

// The parts of the load balancer that another owner has.
const (
	theirIP   = testkit.Group + "/providers/" + network.PublicIPAddresses + "/theirs"
	theirPool = "theirPool"
	their     = "theirs"
)

// layTheirs makes the cluster's load balancer before kaz runs, with everything that a user can put into it. Here it
// is how the machines reach the Internet.
func (w *serviceCluster) layTheirs() {
	w.t.Helper()
	w.Put(theirIP,
		object{"location": testkit.Location, "sku": object{"name": "Standard"}, "properties": object{"publicIPAllocationMethod": "Static"}})
	frontend, pool := ref(part("frontendIPConfigurations", their)), ref(part("backendAddressPools", theirPool))
	w.Put(testkit.LoadBalancer, object{
		"location": testkit.Location, "sku": object{"name": "Standard"}, "tags": object{"owner": "them"},
		"properties": object{
			"frontendIPConfigurations": []object{{"name": their, "properties": object{"publicIPAddress": ref(theirIP)}}},
			"backendAddressPools":      []object{{"name": theirPool}, {"name": testkit.ClusterName}},
			"probes": []object{{"name": their,
				"properties": object{"protocol": "Tcp", "port": 8443, "intervalInSeconds": 15, "probeThreshold": 3}}},
			"loadBalancingRules": []object{{"name": their, "properties": object{
				"protocol": "Tcp", "frontendPort": 8443, "backendPort": 8443, "disableOutboundSnat": true,
				"frontendIPConfiguration": frontend, "backendAddressPool": pool, "probe": ref(part("probes", their)),
			}}},
			"inboundNatRules": []object{{"name": their, "properties": object{
				"protocol": "Tcp", "frontendPort": 2222, "backendPort": 22, "frontendIPConfiguration": frontend,
			}}},
			"outboundRules": []object{{"name": their, "properties": object{
				"protocol": "All", "allocatedOutboundPorts": 1024, "backendAddressPool": pool,
				"frontendIPConfigurations": []object{frontend},
			}}},
		},
	})
	w.Forget()
}

func (w *serviceCluster) balancer() network.LoadBalancer {
	w.t.Helper()
	return testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer).Properties
}

func (w *serviceCluster) base(name string) string {
	return framework.DefaultLoadBalancerName(w.get(name))
}

// reported waits until a Service gets an event.
func (w *serviceCluster) reported(name, reason, of string) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s gets %s %q", name, reason, of), func() bool {
		return slices.ContainsFunc(w.events.list(name),
			func(e string) bool { return strings.HasPrefix(e, reason+": ") && strings.Contains(e, of) })
	})
}

// touched queues a Service again, which must write nothing.
func (w *serviceCluster) touched(name string) {
	w.t.Helper()
	w.settle()
	w.Forget()
	w.turns++
	w.change(name, func(s *corev1.Service) { s.Labels = map[string]string{"turn": fmt.Sprint(w.turns)} })
	w.settle()
	if writes := w.Writes(); len(writes) > 0 {
		w.t.Errorf("%s served again wrote %v", name, writes)
	}
}

func (w *serviceCluster) removed(names ...string) {
	w.t.Helper()
	for _, n := range names {
		w.remove(n)
	}
	w.allGone(names)
}

// Row 79. Pools that another owner fills are left alone: no member joins or leaves. That holds only for the load
// balancer that is configured so.
func TestPreconfiguredPools(t *testing.T) {
	for _, members := range []string{"interfaces", "addresses"} {
		t.Run(members, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, _ := kindsCluster(t, 2)
				w.layTheirs()
				theirs := []string{"alone0", "member0"}
				w.fillByHand(members == "addresses", theirs)
				before := w.Surroundings()
				c := config()
				c.LoadBalancer.PoolByIP, c.LoadBalancer.PresetExternal = members == "addresses", true
				w.start(c)
				w.create(w.newService("web", 80))
				inside := w.newService("inside", 80)
				annotated("load-balancer-internal", "true")(inside)
				w.create(inside)
				w.allServed([]string{"web", "inside"})
				w.settle()
				w.backendsAre(theirs)
				if got, all := w.backendsOf(testkit.LoadBalancer+"-internal"),
					slices.Sorted(maps.Keys(w.nodesByName())); !slices.Equal(got, all) {
					t.Errorf("the internal load balancer has %v, want %v", got, all)
				}
				for _, r := range w.balancer().LoadBalancingRules {
					if strings.HasPrefix(r.Name, w.base("web")) &&
						!r.Properties.BackendAddressPool.ID.Equal(part("backendAddressPools", testkit.ClusterName)) {
						t.Errorf("the rule leads to %v", r.Properties.BackendAddressPool)
					}
				}
				w.exclude("alone0", "true")
				w.settle()
				w.backendsAre(theirs)
				w.touched("web")
				w.removed("web", "inside")
				w.restored(before, w.Surroundings)
			})
		})
	}
}

// fillByHand puts nodes into the cluster's pool as another owner would.
func (w *serviceCluster) fillByHand(addresses bool, nodes []string) {
	w.t.Helper()
	for _, name := range nodes {
		address := w.nodesByName()[name].Status.Addresses[0].Address
		if !addresses {
			w.byHand(testkit.Group.Resource(network.Interfaces, name+"-nic"), func(p object) {
				p["ipConfigurations"].([]any)[0].(object)["properties"].(object)["loadBalancerBackendAddressPools"] = []object{ref(part(
					"backendAddressPools", testkit.ClusterName))}
			})
			continue
		}
		w.byHand(testkit.LoadBalancer, func(p object) {
			for _, pool := range p["backendAddressPools"].([]any) {
				if pool.(object)["name"] == testkit.ClusterName {
					in := pool.(object)["properties"].(object)
					in["virtualNetwork"] = ref(testkit.VNet)
					withPart("loadBalancerBackendAddresses", name, object{"ipAddress": address})(in)
				}
			}
		})
	}
}

// TestPreconfiguredPoolsKeepTheirLoadBalancer checks row 79 again: a load balancer with pre-configured
// pools that kaz created is not deleted with its last Service. Azure has none without a frontend, so
// the last one stays, and an event says so.
func TestPreconfiguredPoolsKeepTheirLoadBalancer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		before := w.Surroundings()
		c := config()
		c.LoadBalancer.PresetExternal = true
		w.start(c)
		w.create(w.newService("web", 80))
		w.served("web")
		frontend := w.base("web")
		w.touched("web")
		w.remove("web")
		w.reported("web", "DeletingFrontendIPConfiguration", frontend)
		w.allGone([]string{"web"})
		w.settle()
		lb := w.balancer()
		if len(lb.FrontendIPConfigurations) != 1 || lb.FrontendIPConfigurations[0].Name != frontend ||
			len(lb.LoadBalancingRules)+len(lb.Probes) > 0 {
			t.Errorf("what is left of it: %+v", lb)
		}
		after := w.Surroundings()
		ip := string(lb.FrontendIPConfigurations[0].Properties.PublicIPAddress.ID)
		if _, there := after[ip]; !there {
			t.Errorf("%s is not there", ip)
		}
		delete(after, ip)
		delete(after, string(testkit.LoadBalancer))
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("beside it (-before +after):\n%s", d)
		}
	})
}

// TestAFrontendThatIsInUseStays checks row 80: a frontend that a user's outbound rule uses stays when
// its Service goes, with its address, and an event says so. When no rule uses it any more it goes,
// too.
func TestAFrontendThatIsInUseStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		before := w.Surroundings()
		c := repairing()
		goesOutByRules(&c.LoadBalancer)
		w.start(c)
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		base, ip := w.base("web"),
			testkit.Must[network.LoadBalancer](w.Azure,
				testkit.LoadBalancer).Properties.FrontendIPConfigurations[0].Properties.PublicIPAddress.ID
		w.byHand(testkit.LoadBalancer, withPart("backendAddressPools", theirPool, object{}))
		w.byHand(testkit.LoadBalancer, withPart("outboundRules", their, object{
			"protocol": "All", "backendAddressPool": ref(part("backendAddressPools", theirPool)),
			"frontendIPConfigurations": []object{ref(part("frontendIPConfigurations", base))},
		}))
		w.touched("web")
		w.remove("web")
		w.reported("web", "DeletingFrontendIPConfiguration", their)
		w.allGone([]string{"web"})
		w.settle()
		lb := w.balancer()
		if len(lb.FrontendIPConfigurations) != 1 || len(lb.OutboundRules) != 1 || len(lb.LoadBalancingRules)+len(lb.Probes) > 0 {
			t.Errorf("what is left of it: %+v", lb)
		}
		if _, there := testkit.Read[network.PublicIPAddress](w.Azure, ip); !there {
			t.Errorf("%s is not there", ip)
		}
		if got := w.Surroundings()[string(testkit.SecurityGroup)]; got != before[string(testkit.SecurityGroup)] {
			t.Errorf("the security group has %s", got)
		}
		<-time.After(time.Hour) // however often it is looked at
		if got := w.balancer(); len(got.FrontendIPConfigurations) != 1 || len(got.OutboundRules) != 1 {
			t.Errorf("after an hour: %+v", got)
		}
		w.byHand(testkit.LoadBalancer, withoutPart("outboundRules", their))
		<-time.After(31 * time.Minute)
		w.restored(before, w.Surroundings)
	})
}

// TestAPortInUse checks row 81: a foreign rule has a port of a frontend. The Service that wants the port gets a
// problem that names the rule, and stays as it was. When the port is free, the Service gets it.
func TestAPortInUse(t *testing.T) {
	frontend := func(base string) object { return ref(part("frontendIPConfigurations", base)) }
	for list, properties := range map[string]func(base string) object{
		"inboundNatRules": func(base string) object {
			return object{"protocol": "Tcp", "frontendPort": 80, "backendPort": 22, "frontendIPConfiguration": frontend(base)}
		},
		"inboundNatPools": func(base string) object {
			return object{"protocol": "Tcp", "frontendPortRangeStart": 70, "frontendPortRangeEnd": 90, "backendPort": 22,
				"frontendIPConfiguration": frontend(base)}
		},
		"loadBalancingRules": func(base string) object {
			return object{"protocol": "Tcp", "frontendPort": 80, "backendPort": 8080, "frontendIPConfiguration": frontend(base),
				"backendAddressPool": ref(part("backendAddressPools", theirPool)), "disableOutboundSnat": true}
		},
	} {
		t.Run(list, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 1)
				before := w.Surroundings()
				w.start(repairing())
				w.create(w.newService("web", 443))
				w.served("web")
				w.settle()
				w.byHand(testkit.LoadBalancer, withPart("backendAddressPools", theirPool, object{}))
				w.byHand(testkit.LoadBalancer, withPart(list, their, properties(w.base("web"))))
				w.touched("web")
				with := w.Surroundings()
				w.change("web", func(s *corev1.Service) { addPort(s, 80, corev1.ProtocolTCP) })
				w.reported("web", "SyncLoadBalancerFailed", "FrontendConflict")
				w.reported("web", "SyncLoadBalancerFailed", `"`+their+`"`)
				w.settle()
				if d := cmp.Diff(with, w.Surroundings()); d != "" {
					t.Errorf("what was refused changed (-before +after):\n%s", d)
				}
				w.byHand(testkit.LoadBalancer, withoutPart(list, their))
				w.byHand(testkit.LoadBalancer, withoutPart("backendAddressPools", theirPool))
				<-time.After(31 * time.Minute) // what is done by hand is seen when it is time to compare
				w.until("web has its port", func() bool { return len(w.balancer().LoadBalancingRules) == 2 })
				w.touched("web")
				w.removed("web")
				w.restored(before, w.Surroundings)
			})
		})
	}
}

// Row 82. What another owner has in the load balancer and the security group stays the same. Services and nodes come,
// change and go meanwhile.
func TestForeignResourcesStay(t *testing.T) {
	for _, members := range []string{"interfaces", "addresses"} {
		t.Run(members, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 3)
				w.layTheirs()
				w.byHand(testkit.SecurityGroup, withPart("securityRules", their, object{
					"priority": 500, "direction": "Inbound", "access": "Allow", "protocol": "Tcp", "sourceAddressPrefix": "10.0.0.0/8",
					"sourcePortRange":          "*",
					"destinationAddressPrefix": "*", "destinationPortRange": "22", "description": "how we get in",
				}))
				theirs := w.othersParts()
				c := config()
				c.LoadBalancer.PoolByIP = members == "addresses"
				w.start(c)
				w.create(w.newService("first", 80))
				w.served("first")
				w.removed("first")
				w.settle()
				before := w.Surroundings() // a load balancer that stays keeps its pool full
				w.allServed(w.createMany(2))
				unchanged := func(after string) {
					t.Helper()
					w.settle()
					if d := cmp.Diff(theirs, w.othersParts()); d != "" {
						t.Errorf("foreign parts after %s (-before +after):\n%s", after, d)
					}
				}
				unchanged("two Services came")
				for turn := range 4 {
					w.change("web-0", func(s *corev1.Service) { s.Spec.Ports[0].Port = int32(81 + turn) })
					w.exclude("nodes0-000002", fmt.Sprint(turn%2 == 0))
					unchanged("a port changed and a node")
				}
				w.touched("web-0")
				w.removed("web-0")
				unchanged("one of two went")
				w.removed("web-1")
				w.restored(before, w.Surroundings)
			})
		})
	}
}

// othersParts are the parts of load balancer and security group that are called theirs, and
// the load balancer's tags, without what changes with every write.
func (w *serviceCluster) othersParts() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, id := range []azure.ID{testkit.LoadBalancer, testkit.SecurityGroup} {
		var tree object
		if err := json.Unmarshal([]byte(w.Surroundings()[string(id)]), &tree); err != nil {
			w.t.Fatal(err)
		}
		all[string(id)+" tags"] = fmt.Sprint(tree["tags"])
		for list, parts := range tree["properties"].(object) {
			parts, _ := parts.([]any)
			for _, p := range parts {
				p, _ := p.(object)
				if name := fmt.Sprint(p["name"]); strings.HasPrefix(name, their) || name == theirPool {
					all[list+" "+name] = fmt.Sprint(p)
				}
			}
		}
	}
	return all
}

// TestWhatChangesUnderneathStays checks row 84: a change between kaz's read and write is read again
// and stays. The write is repeated on top of it at once, without an event.
func TestWhatChangesUnderneathStays(t *testing.T) {
	type theirs struct {
		list       string
		properties object
	}
	for id, c := range map[azure.ID]theirs{
		testkit.LoadBalancer: {"probes", object{"protocol": "Tcp", "port": 8443, "intervalInSeconds": 15, "probeThreshold": 3}},
		testkit.SecurityGroup: {"securityRules", object{
			"priority": 500, "direction": "Outbound", "access": "Allow", "protocol": "Tcp", "sourceAddressPrefix": "*",
			"sourcePortRange":          "*",
			"destinationAddressPrefix": "*", "destinationPortRange": "443",
		}},
	} {
		t.Run(id.Name(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 1)
				before := w.Surroundings()
				w.start(config())
				w.create(w.newService("web", 80))
				w.served("web")
				w.settle()
				w.change("web", func(s *corev1.Service) { s.Labels = map[string]string{"look": "now"} })
				<-time.After(time.Second) // what was read is remembered
				w.byHand(id, withPart(c.list, their, c.properties))
				parts := w.othersParts()
				w.change("web", func(s *corev1.Service) { addPort(s, 443, corev1.ProtocolTCP) })
				<-time.After(time.Second)
				if n := len(w.balancer().LoadBalancingRules); n != 2 {
					t.Errorf("after a second there are %d rules, want 2", n)
				}
				refused := func(r testkit.Request) bool {
					return r.Status == http.StatusPreconditionFailed && r.Name() == id.Name()
				}
				if !slices.ContainsFunc(w.Requests(), refused) {
					t.Error("no write was refused because of a change underneath")
				}
				if d := cmp.Diff(parts, w.othersParts()); d != "" {
					t.Errorf("foreign parts (-before +after):\n%s", d)
				}
				if reported := w.events.reasons("web"); slices.Contains(reported, "SyncLoadBalancerFailed") {
					t.Errorf("got %v", reported)
				}
				w.touched("web")
				w.byHand(id, withoutPart(c.list, their))
				w.removed("web")
				w.restored(before, w.Surroundings)
			})
		})
	}
}

// TestABasicLoadBalancerIsReplaced checks row 85: a load balancer of the retired SKU Basic is deleted when all
// members have left its pool. Then it is created again; the address stays.
func TestABasicLoadBalancerIsReplaced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		before := w.Surroundings()
		s := w.newService("web", 80)
		address := w.layBasic(s)
		w.create(s)
		w.start(config())
		w.until("its load balancer is Standard", func() bool {
			lb, there := testkit.Read[network.LoadBalancer](w.Azure, testkit.LoadBalancer)
			return there && lb.SKU.Name == "Standard"
		})
		w.settle()
		w.backendsAre(slices.Sorted(maps.Keys(w.nodesByName())))
		lb := w.balancer()
		if len(lb.LoadBalancingRules) != 1 || len(lb.Probes) != 1 || len(lb.FrontendIPConfigurations) != 1 {
			t.Fatalf("the load balancer has %+v", lb)
		}
		ip := testkit.Must[network.PublicIPAddress](w.Azure, lb.FrontendIPConfigurations[0].Properties.PublicIPAddress.ID)
		if ip.SKU.Name != "Standard" || ip.Properties.IPAddress != address || w.address("web") != address {
			t.Errorf("the public IP is %+v with %s, the Service has %s, had %s", ip.SKU, ip.Properties.IPAddress, w.address("web"), address)
		}
		w.touched("web")
		w.removed("web")
		w.restored(before, w.Surroundings)
	})
}

// layBasic makes what an old cluster has for a Service, with all machines in the pool, and returns the address.
func (w *serviceCluster) layBasic(s *corev1.Service) string {
	w.t.Helper()
	base := framework.DefaultLoadBalancerName(s)
	id := testkit.Group.Resource(network.PublicIPAddresses, testkit.ClusterName+"-"+base)
	w.Put(id, object{
		"location": testkit.Location, "sku": object{"name": "Basic"}, "properties": object{"publicIPAllocationMethod": "Static"},
		"tags": object{"k8s-azure-service": "default/" + s.Name, "k8s-azure-cluster-name": testkit.ClusterName},
	})
	pool, rule := part("backendAddressPools", testkit.ClusterName), base+"-TCP-80"
	w.Put(testkit.LoadBalancer, object{"location": testkit.Location, "sku": object{"name": "Basic"}, "properties": object{
		"frontendIPConfigurations": []object{{"name": base, "properties": object{"publicIPAddress": ref(id)}}},
		"backendAddressPools":      []object{{"name": testkit.ClusterName}},
		"probes": []object{{"name": rule,
			"properties": object{"protocol": "Tcp", "port": 30080, "intervalInSeconds": 5, "numberOfProbes": 2}}},
		"loadBalancingRules": []object{{"name": rule, "properties": object{
			"protocol": "Tcp", "frontendPort": 80, "backendPort": 80, "enableFloatingIP": true,
			"frontendIPConfiguration": ref(part("frontendIPConfigurations", base)),
			"backendAddressPool":      ref(pool), "probe": ref(part("probes", rule)),
		}}},
	}})
	w.byHand(testkit.Nodes, func(p object) { joins(p["virtualMachineProfile"].(object)["networkProfile"], pool) })
	for _, vm := range testkit.List[compute.Instance](w.Azure, testkit.Nodes, compute.ScaleSetInstances) {
		w.byHand(vm.ID, func(p object) { joins(p["networkProfileConfiguration"], pool) })
	}
	address := testkit.Must[network.PublicIPAddress](w.Azure, id).Properties.IPAddress
	s.Finalizers = []string{helpers.LoadBalancerCleanupFinalizer}
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	return address
}

// joins puts all interfaces of a network profile into pools.
func joins(profile any, pools ...azure.ID) {
	refs := []object{}
	for _, pool := range pools {
		refs = append(refs, ref(pool))
	}
	for _, card := range profile.(object)["networkInterfaceConfigurations"].([]any) {
		for _, c := range card.(object)["properties"].(object)["ipConfigurations"].([]any) {
			c.(object)["properties"].(object)["loadBalancerBackendAddressPools"] = refs
		}
	}
}

// Row 86. In an edge zone load balancers, public IPs and private link services say so, and
// have no zones.
func TestEdgeZone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		before := w.Surroundings()
		c := config()
		c.LoadBalancer.EdgeZone = &azure.ExtendedLocation{Name: "microsoftlosangeles1", Type: "EdgeZone"}
		w.start(c)
		w.create(w.newService("web", 80))
		inside := w.newService("inside", 80)
		annotated("load-balancer-internal", "true", "pls-create", "true")(inside)
		w.create(inside)
		names := []string{"web", "inside"}
		w.allServed(names)
		w.settle()
		seen := 0
		for id, text := range w.Surroundings() {
			if _, old := before[id]; old || azure.ID(id).Is(network.Interfaces) {
				continue
			}
			seen++
			var doc struct {
				ExtendedLocation azure.ExtendedLocation
				Zones            []string
				Properties       network.LoadBalancer
			}
			if err := json.Unmarshal([]byte(text), &doc); err != nil {
				t.Fatal(err)
			}
			for _, f := range doc.Properties.FrontendIPConfigurations {
				doc.Zones = append(doc.Zones, f.Zones...)
			}
			if doc.ExtendedLocation != *c.LoadBalancer.EdgeZone || len(doc.Zones) > 0 {
				t.Errorf("%s is at %+v with zones %v", id, doc.ExtendedLocation, doc.Zones)
			}
		}
		if want := 4; seen != want {
			t.Errorf("%d documents are there for the Services, want %d", seen, want)
		}
		w.touched("web")
		w.touched("inside")
		w.removed(names...)
		w.restored(opened(before), func() map[string]string { return opened(w.Surroundings()) })
	})
}

// opened has subnets as they are after a private link service was there. They stay that way, because nothing tells
// what else needs it.
func opened(all map[string]string) map[string]string {
	all = maps.Clone(all)
	for id, text := range all {
		all[id] = strings.ReplaceAll(text, `"privateLinkServiceNetworkPolicies": "Enabled"`,
			`"privateLinkServiceNetworkPolicies": "Disabled"`)
	}
	return all
}

// Row 87. Only the public IP of a Service exists. The Service still has something in Azure, so it does not go before
// the public IP has gone.
func TestOnlyThePublicIPIsThere(t *testing.T) {
	for _, by := range []string{"the controller", "the one before"} {
		t.Run("deleted under "+by, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 1)
				before := w.Surroundings()
				c := config()
				c.LoadBalancer.PoolByIP = true // nothing else holds the load balancer
				stop := w.start(c)
				w.create(w.newService("web", 80))
				w.served("web")
				w.settle()
				if by == "the one before" {
					stop()
					w.Reopen()
				}
				other := w.OtherClient()
				if err := other.Delete(t.Context(), testkit.LoadBalancer); err != nil {
					t.Fatal(err)
				}
				w.byHand(testkit.SecurityGroup, func(p object) { p["securityRules"] = []any{} })
				if n := len(testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses)); n != 1 {
					t.Fatalf("%d public IPs are there", n)
				}
				w.Forget()
				w.remove("web")
				if by == "the one before" {
					w.start(c)
				}
				w.allGone([]string{"web"})
				if d := cmp.Diff(map[string]int{"public IP": 1}, count(w.Writes())); d != "" {
					t.Errorf("writes (-want +got):\n%s", d)
				}
				w.restored(before, w.Surroundings)
			})
		})
	}
}

// Row 88. A public IP that Azure failed to make or change is written once more. Until then nothing that refers to it
// can be written.
func TestAPublicIPThatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fails := []core.Fault{{Method: "PUT", Type: network.PublicIPAddresses, Times: 1, Fault: core.FaultOperation,
			Code: "InternalServerError"}}
		w := newServiceCluster(t, core.Options{Latency: 1, Faults: fails}, 1)
		before := w.Surroundings()
		w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		address := w.address("web")
		ips := testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses)
		if len(ips) != 1 || ips[0].Properties.IPAddress != address || ips[0].Properties.ProvisioningState != "Succeeded" {
			t.Fatalf("public IPs %+v, the Service has %s", ips, address)
		}
		if n := count(w.Writes())["public IP"]; n != 2 {
			t.Errorf("the public IP was written %d times, want 2", n)
		}
		w.touched("web")

		if err := w.SetFaults(fails); err != nil {
			t.Fatal(err)
		}
		client := w.OtherClient()
		doc, err := client.Get(t.Context(), ips[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Put(t.Context(), azure.Write{ID: ips[0].ID, Body: doc}); err == nil {
			t.Fatal("the write did not fail")
		}
		w.change("web", func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
		w.until("port 81 is served", func() bool {
			lb := w.balancer()
			return len(lb.LoadBalancingRules) == 1 && lb.LoadBalancingRules[0].Properties.FrontendPort == 81
		})
		w.settle()
		ip := testkit.Must[network.PublicIPAddress](w.Azure, ips[0].ID)
		if ip.Properties.ProvisioningState != "Succeeded" || ip.Properties.IPAddress != address {
			t.Errorf("the public IP is %+v, had the address %s", ip.Properties, address)
		}
		w.touched("web")
		w.removed("web")
		w.restored(before, w.Surroundings)
	})
}
