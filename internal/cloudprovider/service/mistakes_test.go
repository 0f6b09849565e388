package service_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// notes are annotations without their common prefix.
type notes map[string]string

func (n notes) at(s *corev1.Service) *corev1.Service {
	if s.Annotations == nil {
		s.Annotations = map[string]string{}
	}
	for name, value := range n {
		s.Annotations["service.beta.kubernetes.io/"+name] = value
	}
	return s
}

// mistake is something impossible that a Service asks for.
type mistake struct {
	name string
	// good is what the Service asks for besides, and bad is the mistake.
	good, bad notes
	spec      func(*corev1.ServiceSpec) // or in these fields
	config    func(*service.Config)     // of a cluster where it is one
	// tells are the required parts of the message: what is wrong, its value, what is allowed or to do.
	tells []string
	// refusal is the error code of Azure's answer to the public IP of such a Service. If it is "", the local Azure
	// answers as usual.
	refusal string
	// asked says that only Azure can find the mistake. It is asked again, and seldom.
	asked bool
	// looked says that Azure is read again, seldom, without a write.
	looked bool
	// fresh says that only a new Service can make the mistake, and late that only a served Service can.
	fresh, late bool
}

var internal = notes{"azure-load-balancer-internal": "true"}

func mistakes() []mistake {
	noPrefix := string(testkit.Group.Resource(network.PublicIPPrefixes, "nope"))
	fullPrefix := string(testkit.Group.Resource(network.PublicIPPrefixes, "full"))
	linked := notes{"azure-load-balancer-internal": "true", "azure-pls-create": "true"}
	routed := notes{"azure-pip-ip-tags": "RoutingPreference=Internet"}
	ranges := func(spec *corev1.ServiceSpec) { spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"} }
	return []mistake{
		{name: "no number", bad: notes{"azure-load-balancer-tcp-idle-timeout": "soon"},
			tells: []string{"azure-load-balancer-tcp-idle-timeout", `"soon"`, "from 4 to 100"}},
		{name: "probes too long", bad: notes{"azure-load-balancer-health-probe-interval": "60"},
			tells: []string{"azure-load-balancer-health-probe-interval", `"60"`, "allowed is less than 120 s"}},
		{name: "too many tags", bad: notes{"azure-pip-tags": manyTags()},
			tells: []string{"azure-pip-tags", "with its 61 tags", "would have 63, allowed by Azure are 50"}},
		{name: "probe port", bad: notes{"port_80_health-probe_port": "nope"},
			tells: []string{"health-probe_port", `"nope"`, "name or number of a port"}},
		{name: "public IP missing", bad: notes{"azure-pip-name": "nope"},
			tells: []string{"azure-pip-name", `"nope"`, "allowed is the name of a public IP that is there"}},
		{name: "public IP in use", bad: notes{"azure-pip-name": "used"},
			tells: []string{"azure-pip-name", `"used"`, "natGateways/nat", "allowed is one that nothing else uses"}},
		{name: "prefix missing", bad: notes{"azure-pip-prefix-id": noPrefix}, asked: true,
			tells: []string{"azure-pip-prefix-id", `"` + noPrefix + `"`, "allowed is the id of a public IP prefix"}},
		{name: "prefix without a form", bad: notes{"azure-pip-prefix-id": "prefix"},
			tells: []string{"azure-pip-prefix-id", `"prefix"`, "allowed is the id of a public IP prefix"}},
		{name: "prefix that is full", asked: true, bad: notes{"azure-pip-prefix-id": fullPrefix},
			tells: []string{"azure-pip-prefix-id", `"` + fullPrefix + `"`, "has no free address left",
				"to do: delete what you do not need"}},
		{name: "group missing", bad: notes{"azure-load-balancer-resource-group": "nope"}, looked: true,
			tells: []string{"azure-load-balancer-resource-group", `"nope"`, "allowed is the name of a resource group"}},
		{name: "group without a form", bad: notes{"azure-load-balancer-resource-group": "no/group"},
			tells: []string{"azure-load-balancer-resource-group", `"no/group"`, "has up to 90 letters",
				"allowed is the name of a resource group"}},
		{name: "id of a group", bad: notes{"azure-load-balancer-resource-group": string(testkit.Group)},
			tells: []string{"azure-load-balancer-resource-group", `"` + string(testkit.Group) + `"`,
				"it is an id; want a name"}},
		{name: "id of a public IP", bad: notes{"azure-pip-name": string(testkit.Group.Resource(network.PublicIPAddresses, "used"))},
			tells: []string{"azure-pip-name", "it is an id; want a name", "allowed is the name of a public IP"}},
		{name: "address not public", bad: notes{"azure-load-balancer-ipv4": "10.9.9.9"},
			tells: []string{"azure-load-balancer-ipv4", `"10.9.9.9"`, "allowed for an external Service is the address of a public IP"}},
		{name: "address that does not exist", bad: notes{"azure-load-balancer-ipv4": "20.9.9.9"},
			tells: []string{"azure-load-balancer-ipv4", `"20.9.9.9"`, "allowed is the address of a public IP that is there"}},
		{name: "no address", bad: notes{"azure-load-balancer-ipv4": "nope"},
			tells: []string{"azure-load-balancer-ipv4", `"nope"`, "allowed is one of the family IPv4"}},
		{name: "label without a form", bad: notes{"azure-dns-label-name": "Not_a_label"},
			tells: []string{"azure-dns-label-name", `"Not_a_label"`, "allowed is 3 to 63 lower-case letters"}},
		{name: "label of others", bad: notes{"azure-dns-label-name": "taken"}, asked: true,
			tells: []string{"azure-dns-label-name", `"taken"`, "that no other public IP in the region has"}},
		{name: "routing that Azure does not know", late: true, good: routed,
			bad: notes{"azure-pip-ip-tags": "RoutingPreference=Internett"},
			tells: []string{"azure-pip-ip-tags", `"RoutingPreference=Internett"`, "known is Internet", "allowed is Type=Value pairs",
				"take the annotation away"}},
		{name: "no pair of IP tags", late: true, good: routed, bad: notes{"azure-pip-ip-tags": "RoutingPreference:Internet"},
			tells: []string{"azure-pip-ip-tags", `"RoutingPreference:Internet"`, "is no Type=Value pair", "allowed is Type=Value pairs",
				"take the annotation away"}},
		{name: "subnet missing", good: internal, bad: notes{"azure-load-balancer-internal-subnet": "nope"},
			tells: []string{"azure-load-balancer-internal-subnet", `"nope"`, "allowed is the name of one of its subnets"}},
		{name: "id of a subnet", good: internal,
			bad: notes{"azure-load-balancer-internal-subnet": string(testkit.VNet.Child("subnets", "nodes"))},
			tells: []string{"azure-load-balancer-internal-subnet", "it is an id; want a name",
				"allowed is the name of a subnet"}},
		{name: "subnet without IPv6", good: internal, spec: dual,
			tells: []string{"subnetName of the cloud configuration", `"nodes"`, "no range of the family IPv6", "it has 10.240.0.0/16",
				"allowed is a subnet that has one"}},
		{name: "other subnet without IPv6", good: internal, spec: dual, bad: notes{"azure-load-balancer-internal-subnet": "nodes"},
			tells: []string{"azure-load-balancer-internal-subnet", `"nodes"`, "no range of the family IPv6"}},
		{name: "address not in the subnet", good: internal, bad: notes{"azure-load-balancer-ipv4": "192.168.7.7"},
			tells: []string{"azure-load-balancer-ipv4", `"192.168.7.7"`, "allowed is another address of 10.240.0.0/16"}},
		{name: "address of a node", good: internal, bad: notes{"azure-load-balancer-ipv4": "10.240.0.4"},
			tells: []string{"azure-load-balancer-ipv4", `"10.240.0.4"`, "allowed is an address of the subnet"}},
		{name: "address of others", good: internal, bad: notes{"azure-load-balancer-ipv4": "10.240.9.9"}, asked: true,
			tells: []string{"azure-load-balancer-ipv4", `"10.240.9.9"`, "allowed is an IPv4 address"}},
		{name: "ranges in two places", spec: ranges, bad: notes{"azure-allowed-ip-ranges": "192.168.0.0/16"},
			tells: []string{"azure-allowed-ip-ranges", "spec.loadBalancerSourceRanges", "192.168.0.0/16", "allowed is one of them"}},
		{name: "service tag without a form", bad: notes{"azure-allowed-service-tags": "AzureCloud, not a tag"}, asked: true,
			tells: []string{"azure-allowed-service-tags", `"not a tag"`, "allowed is service tags, separated by commas"}},
		{name: "load balancer unknown", config: func(c *service.Config) { *c = several() },
			bad:   notes{"azure-load-balancer-configurations": "nope"},
			tells: []string{"azure-load-balancer-configurations", `"nope"`, "kubernetes", "lb2", "allowed is"}},
		{name: "security group missing", fresh: true, config: func(c *service.Config) { c.LoadBalancer.SecurityGroupName = "nope" },
			tells: []string{"SecurityGroupNotFound", "networkSecurityGroups/nope", "allowed is"}},
		{name: "security group's resource group missing", fresh: true,
			config: func(c *service.Config) { c.LoadBalancer.SecurityGroupResourceGroup = "nope" },
			tells: []string{"SecurityGroupNotFound", "networkSecurityGroups/", "allowed is",
				"Azure says: Resource group 'nope' could not be found"}},
		{name: "virtual network missing", fresh: true, good: internal,
			config: func(c *service.Config) { c.LoadBalancer.VirtualNetwork = "nope" },
			tells:  []string{"SubnetNotFound", "subnetName", "Azure says: ", "Microsoft.Network/virtualNetworks/nope"}},
		{name: "virtual network's resource group missing", fresh: true, good: internal,
			config: func(c *service.Config) { c.LoadBalancer.VirtualNetworkResourceGroup = "nope" },
			tells:  []string{"SubnetNotFound", "subnetName", "Azure says: Resource group 'nope' could not be found"}},
		{name: "link at an address not in the subnet", good: internal,
			bad:   notes{"azure-pls-create": "true", "azure-pls-ip-configuration-ip-address": "192.168.7.7"},
			tells: []string{"azure-pls-ip-configuration-ip-address", `"192.168.7.7"`, "allowed is another address of 10.240.0.0/16"}},
		{name: "link at an address of a node", good: internal,
			bad:   notes{"azure-pls-create": "true", "azure-pls-ip-configuration-ip-address": "10.240.0.4"},
			tells: []string{"azure-pls-ip-configuration-ip-address", `"10.240.0.4"`, "allowed is an address of the subnet"}},
		{name: "link at an address of others", good: internal,
			bad: notes{"azure-pls-create": "true", "azure-pls-ip-configuration-ip-address": "10.240.9.9"}, asked: true,
			tells: []string{"azure-pls-ip-configuration-ip-address", `"10.240.9.9"`, "allowed is IPv4 addresses"}},
		{name: "too many rules", fresh: true, spec: manyPorts,
			tells: []string{"LimitExceeded", "with 302 more rules", "allowed by Azure are 300: take ports or Services away"}},
		{name: "too many ranges", fresh: true, spec: manyRanges,
			tells: []string{"LimitExceeded", "too many source prefixes, allowed by Azure are 4000: take ranges or ports away"}},
		{name: "link without a name", good: internal, bad: notes{"azure-pls-create": "true", "azure-pls-name": "a name!"},
			tells: []string{"azure-pls-name", `"a name!"`, "has up to 80", "allowed is"}},
		{name: "link in a group without a form", good: internal,
			bad:   notes{"azure-pls-create": "true", "azure-pls-resource-group": "no/group"},
			tells: []string{"azure-pls-resource-group", `"no/group"`, "allowed is the name of a resource group"}},
		{name: "link in a subnet without a form", good: internal,
			bad:   notes{"azure-pls-create": "true", "azure-pls-ip-configuration-subnet": "a%b"},
			tells: []string{"azure-pls-ip-configuration-subnet", `"a%b"`, "has up to 80 letters", "allowed is the name of a subnet"}},
		{name: "link's name changed", late: true, good: linked, bad: notes{"azure-pls-name": "other"},
			tells: []string{"azure-pls-name", `"other"`, "allowed is its name"}},
		{name: "limit of the subscription", fresh: true, refusal: "PublicIPCountLimitReached", asked: true,
			tells: []string{"PublicIPCountLimitReached", "to do: delete what you do not need, or have Azure raise the limit"}},
		{name: "forbidden by a policy", fresh: true, refusal: "RequestDisallowedByPolicy", asked: true,
			tells: []string{"RequestDisallowedByPolicy", "to do: give the cluster's identity the right, or take the policy or lock away"}},
	}
}

func dual(spec *corev1.ServiceSpec) {
	spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
}

func manyTags() string {
	var tags []string
	for i := range 61 {
		tags = append(tags, fmt.Sprintf("tag-%d=x", i))
	}
	return strings.Join(tags, ",")
}

func manyPorts(spec *corev1.ServiceSpec) {
	for i := range int32(301) {
		spec.Ports = append(spec.Ports,
			corev1.ServicePort{Name: fmt.Sprint("more-", i), Protocol: corev1.ProtocolTCP, Port: 1000 + i, NodePort: 20000 + i})
	}
}

func manyRanges(spec *corev1.ServiceSpec) {
	for i := range 4001 {
		spec.LoadBalancerSourceRanges = append(spec.LoadBalancerSourceRanges, fmt.Sprintf("10.%d.%d.0/32", i/256, i%256))
	}
}

// serviceCluster is a cluster where mistakes can be made.
func (m mistake) serviceCluster(t *testing.T) *serviceCluster {
	t.Helper()
	o := core.Options{Latency: 1}
	if m.refusal != "" {
		o.Faults = []core.Fault{{Method: "PUT", Type: network.PublicIPAddresses, Name: "kubernetes-a*2", Times: 1000, Fault: "error",
			Status: 400, Code: m.refusal}}
	}
	w := newServiceCluster(t, o, 1)
	standard := map[string]any{"name": "Standard"}
	address := func(name string, properties map[string]any) {
		properties["publicIPAllocationMethod"] = "Static"
		w.Put(testkit.Group.Resource(network.PublicIPAddresses, name),
			map[string]any{"location": testkit.Location, "sku": standard, "properties": properties})
	}
	full := testkit.Group.Resource(network.PublicIPPrefixes, "full")
	w.Put(full, map[string]any{"location": testkit.Location, "sku": standard, "properties": map[string]any{"prefixLength": 31}})
	for i := range 2 {
		address(fmt.Sprint("full", i), map[string]any{"publicIPPrefix": map[string]any{"id": full}})
	}
	address("used", map[string]any{})
	address("named", map[string]any{"dnsSettings": map[string]any{"domainNameLabel": "taken"}})
	w.Put(testkit.Group.Resource("Microsoft.Network/natGateways", "nat"),
		map[string]any{"location": testkit.Location, "sku": standard, "properties": map[string]any{
			"publicIpAddresses": []any{map[string]any{"id": testkit.Group.Resource(network.PublicIPAddresses, "used")}},
		}})
	w.Put(testkit.Group.Resource(network.Interfaces, "somebodys"),
		map[string]any{"location": testkit.Location, "properties": map[string]any{"ipConfigurations": []any{
			map[string]any{"name": "c",
				"properties": map[string]any{"privateIPAllocationMethod": "Static", "privateIPAddress": "10.240.9.9",
					"subnet": map[string]any{"id": testkit.VNet.Child("subnets", "nodes")}}},
		}}})
	// One change of a subnet in ten takes half a minute and more, whatever is wrong.
	w.byHand(testkit.VNet.Child("subnets", "nodes"), func(p object) { p["privateLinkServiceNetworkPolicies"] = "Disabled" })
	c := config()
	if m.config != nil {
		m.config(&c)
	}
	w.start(c)
	return w
}

func (m mistake) service(w *serviceCluster, name string, port int32) *corev1.Service {
	s := m.good.at(w.newService(name, port))
	if m.config != nil && !m.fresh {
		notes{"azure-load-balancer-configurations": testkit.ClusterName}.at(s)
	}
	return s
}

func (m mistake) make(s *corev1.Service) {
	m.bad.at(s)
	if m.spec != nil {
		m.spec(&s.Spec)
	}
}

// checkReported checks that the mistake was reported once, and Azure was not written afterwards.
func (m mistake) checkReported(t *testing.T, w *serviceCluster, name string) {
	t.Helper()
	w.Forget()
	const hours = 4
	<-time.After(hours * time.Hour)
	var reported []string
	for _, e := range w.events.list(name) {
		if strings.HasPrefix(e, "SyncLoadBalancerFailed") {
			reported = append(reported, e)
		}
	}
	if len(reported) != 1 {
		t.Fatalf("reported %d times: %q", len(reported), w.events.list(name))
	}
	for _, want := range m.tells {
		if !strings.Contains(reported[0], want) {
			t.Errorf("got %q, and not %q", reported[0], want)
		}
	}
	const perHour, sooner = 4, 4 // the first times come sooner
	const perLook = 8
	reads, writes := len(w.Reads()), len(w.Writes())
	switch {
	case m.asked && (writes == 0 || writes > hours*perHour+sooner):
		t.Errorf("Azure was asked with %d writes in %d hours, want some and at most %d an hour", writes, hours, perHour)
	case m.looked && (reads == 0 || writes > 0 || reads > hours*perHour*perLook+sooner*perLook):
		t.Errorf("Azure was asked with %d reads and %d writes in %d hours, want some reads and at most %d an hour", reads, writes, hours,
			perHour*perLook)
	case !m.asked && !m.looked && reads+writes > 0:
		t.Errorf("Azure was asked with %d reads and %d writes", reads, writes)
	}
}

// TestMistakes checks that a Service with settings that cannot work from the start gets a problem at
// once and delays no other Service. When it goes, the state is as before.
func TestMistakes(t *testing.T) {
	for _, m := range mistakes() {
		if m.late {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := m.serviceCluster(t)
				before := w.Snapshot()
				names := []string{"first"}
				w.create(w.newService("first", 80)) // fills the pool; it is not refused
				alone := m.fresh && m.config != nil
				if !alone {
					w.served("first")
					w.settle()
				}
				if m.good != nil && !m.fresh { // its pool is filled, too: a scale set's write can take minutes
					names = append(names, "sound")
					w.create(m.service(w, "sound", 82))
					w.served("sound")
					w.settle()
				}
				bad := m.service(w, "bad", 80)
				m.make(bad)
				w.create(bad)
				began := time.Now()
				for i := range 5 {
					good := fmt.Sprint("good", i)
					names = append(names, good)
					w.create(w.newService(good, 80))
				}
				for i := range 5 {
					if !alone {
						w.served(fmt.Sprint("good", i))
					}
				}
				w.until("it got", func() bool { return slices.Contains(w.events.reasons("bad"), "SyncLoadBalancerFailed") })
				if took := time.Since(began); took > 90*time.Second {
					t.Errorf("its neighbours waited, or it was not reported, for %v", took)
				}
				w.settle()
				m.checkReported(t, w, "bad")
				if w.address("bad") != "" {
					t.Error("it has an address")
				}
				names = append(names, "bad")
				for _, name := range names {
					w.remove(name)
				}
				w.until("all are gone", func() bool {
					return !slices.ContainsFunc(names, func(n string) bool { return !w.gone(n) })
				})
				w.settle()
				after := w.Snapshot()
				if !maps.Equal(before, after) {
					t.Errorf("Azure is not as before:\n%v\n%v", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
				}
			})
		})
	}
}

// A served Service that asks for something impossible keeps all it has.
func TestMistakesLeaveTheLastGoodState(t *testing.T) {
	for _, m := range mistakes() {
		if m.fresh {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := m.serviceCluster(t)
				w.create(m.service(w, "web", 80))
				w.served("web")
				w.settle()
				before, address := w.Snapshot(), w.address("web")
				w.change("web", m.make)
				w.settle()
				m.checkReported(t, w, "web")
				after := w.Snapshot()
				for id, was := range before {
					if after[id] != was {
						t.Errorf("%s is not as it was:\n%s\n%s", id, was, after[id])
					}
				}
				if got := w.address("web"); got != address {
					t.Errorf("the address is %q and was %q", got, address)
				}
			})
		})
	}
}

// What was missing in Azure is found when the Service is new or changed, however new the resource is. Otherwise it is
// found with the next comparison of everything.
func TestWhatWasMissingIsFound(t *testing.T) {
	for name, inTurn := range map[string]func(w *serviceCluster, makeService, makeAddress func()){
		"address, then Service": func(_ *serviceCluster, makeService, makeAddress func()) {
			makeAddress()
			makeService()
		},
		"Service, address, a change": func(w *serviceCluster, makeService, makeAddress func()) {
			makeService()
			<-time.After(5 * time.Second)
			makeAddress()
			w.change("web", func(s *corev1.Service) { s.Annotations["again"] = "please" })
		},
		"Service, address, a comparison": func(w *serviceCluster, makeService, makeAddress func()) {
			makeService()
			w.settle()
			makeAddress()
			<-time.After(30 * time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{Latency: 1}, 1)
				c := config()
				c.RepairPeriod = 30 * time.Minute
				w.start(c)
				w.create(w.newService("first", 80)) // fills the pool, and public IPs are known from then on
				w.served("first")
				w.settle()
				inTurn(w, func() {
					w.create(notes{"azure-pip-name": "late"}.at(w.newService("web", 80)))
				}, func() {
					if _, err := w.OtherClient().Put(t.Context(),
						azure.Write{ID: testkit.Group.Resource(network.PublicIPAddresses, "late"), Body: azure.Document(`{
						"location":"` + testkit.Location +
							`","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`)}); err != nil {
						t.Fatal(err)
					}
				})
				w.settle()
				if w.address("web") == "" {
					t.Errorf("it has no address; reported %q", w.events.list("web"))
				}
			})
		})
	}
}

// TestANodeWithoutALoadBalancerIsReported checks that a node that no load balancer selects is reported
// once, where there are several.
func TestANodeWithoutALoadBalancerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		c := several()
		for i := range c.LoadBalancer.Balancers {
			c.LoadBalancer.Balancers[i].PrimaryVMSet = fmt.Sprint("set", i)
			c.LoadBalancer.Balancers[i].NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"balancer": "mine"}}
		}
		w.start(c)
		for _, name := range []string{"web", "api"} {
			w.create(w.newService(name, 80))
			w.served(name)
			w.settle()
		}
		reported := slices.DeleteFunc(w.events.list(""),
			func(e string) bool { return !strings.HasPrefix(e, "FailedToFindLoadBalancerForNode") })
		if len(reported) != 1 || !strings.Contains(reported[0], "allowed are nodes of a primaryVMSet") {
			t.Errorf("got %q", reported)
		}
	})
}

// TestTwoLabelsAtOnePublicIP checks two Services at a foreign public IP that ask for different DNS labels. The
// Service that was served first keeps its label, also after a restart. The other gets a problem, and is served when
// the first one goes.
func TestTwoLabelsAtOnePublicIP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{Latency: 1})
		add := func(name string, port int32) {
			s := w.newService(name, port)
			annotated("pip-name", "shared", "dns-label-name", "kaz-"+name)(s)
			w.create(s)
		}
		label := func() string {
			for _, ip := range testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses) {
				if set := ip.Properties.DNSSettings; set != nil {
					return set.DomainNameLabel
				}
			}
			return ""
		}
		stop := w.start(repairing())
		add("first", 80)
		w.served("first")
		add("another", 81)
		w.settle()
		w.reported("another", "SyncLoadBalancerFailed",
			`DNSLabelInUse: annotation service.beta.kubernetes.io/azure-dns-label-name: "kaz-another" cannot be set, Service default/first asks for "kaz-first"`)
		stop()
		w.start(repairing())
		<-time.After(31 * time.Minute)
		if got := label(); got != "kaz-first" || w.address("another") != "" {
			t.Errorf("the label is %q, and the other has the address %q", got, w.address("another"))
		}
		if e := w.explain("another"); e.Services[0].State != explain.Refused || len(e.Steps) > 0 {
			t.Errorf("explained:\n%s", e)
		}
		w.removed("first")
		w.served("another")
		if got := label(); got != "kaz-another" {
			t.Errorf("the label is %q when the first is gone", got)
		}
	})
}

// TestProblemsBesideARefusalOfAzureAreReported checks that other problems are reported although Azure refuses a
// write. Each is reported once, however often the Service is tried, and whatever else is in the commit.
func TestProblemsBesideARefusalOfAzureAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Latency: 1}, 1)
		w.start(repairing())
		for i, name := range []string{"first", "web", "api"} {
			s := w.newService(name, int32(80+i))
			if name == "web" {
				annotated("allowed-service-tags", "AzureCloud, not a tag", "allowed-ip-ranges", "10.0.0.1/8,10.9.0.0/16")(s)
			}
			w.create(s)
		}
		w.served("first")
		w.served("api")
		reported := func() {
			t.Helper()
			<-time.After(4 * time.Hour)
			w.reportedOnce("web", prefix+"allowed-service-tags", `"not a tag"`)
			w.warnedOnce("web", "InvalidAllowedIPRanges", prefix+"allowed-ip-ranges", `"10.0.0.1/8" left out`)
		}
		reported()
		w.events.forget()
		w.change("web", annotated("load-balancer-tcp-idle-timeout", "5"))
		reported()
		w.events.forget()
		w.change("web", annotated("allowed-service-tags", "AzureCloud"))
		w.served("web")
		<-time.After(4 * time.Hour)
		w.warnedOnce("web", "InvalidAllowedIPRanges", prefix+"allowed-ip-ranges", `"10.0.0.1/8" left out`)
	})
}
