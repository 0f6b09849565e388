package fabric_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/fabric"
	"kaz/internal/localazure/plane/fabric/netns"
)

func TestMachinesReachEachOther(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, b := w.machine("a", nodes, nil, nil), w.machine("b", nodes, nil, nil)
	b.serve(":80")
	b.servePackets(":53")
	for _, to := range []netip.Addr{b.v4, b.v6} {
		from := a.v4
		if to.Is6() {
			from = a.v6
		}
		want := greeting{"b", from.String(), to.String()}
		if g := a.reaches(at(to, 80)); g != want {
			t.Errorf("tcp: %+v, want %+v", g, want)
		}
		if g, err := a.send(at(to, 53), generous); err != nil || g.client != from.String() {
			t.Errorf("udp: %+v %v, want client %s", g, err, from)
		}
	}
}

// A packet with a foreign source address is dropped, unless the interface has IP forwarding.
func TestSpoofedSourcesAreDropped(t *testing.T) {
	t.Parallel()
	w := start(t)
	honest, b := w.machine("honest", nodes, nil, nil), w.machine("b", nodes, nil, nil)
	forwarder := w.machine("forwarder", nodes, object{"enableIPForwarding": true}, nil)
	b.serve(":80")
	from := func(m *machine, source string) error {
		m.ip("addr replace " + source + "/32 dev lo")
		return netns.Do(m.path, func() error {
			d := net.Dialer{Timeout: refused, LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
			c, err := d.DialContext(t.Context(), "tcp", at(b.v4, 80))
			if err == nil {
				c.Close()
			}
			return err
		})
	}
	if err := from(honest, "10.1.0.200"); err == nil {
		t.Error("a spoofed address of the subnet got an answer")
	}
	if err := from(honest, "168.63.129.16"); err == nil {
		t.Error("the platform's address got an answer")
	}
	// The forwarder's packet arrives. Its reply needs a route.
	w.put(provider+"/routeTables/routes", object{"location": "eastus", "properties": object{"routes": list{
		route("pods", "10.244.0.0/24", forwarder.v4)}}})
	w.subnet(object{"routeTable": ref(provider + "/routeTables/routes")})
	forwarder.ip("addr replace 10.244.0.9/32 dev lo")
	if err := netns.Do(forwarder.path, func() error {
		d := net.Dialer{Timeout: generous, LocalAddr: &net.TCPAddr{IP: net.ParseIP("10.244.0.9")}}
		c, err := d.DialContext(t.Context(), "tcp", at(b.v4, 80))
		if err == nil {
			c.Close()
		}
		return err
	}); err != nil {
		t.Errorf("an interface that may forward: %v", err)
	}
}

func route(name, prefix string, hop netip.Addr) object {
	return object{"name": name,
		"properties": object{"addressPrefix": prefix, "nextHopType": "VirtualAppliance", "nextHopIpAddress": hop.String()}}
}

// A range of pods is reachable through its node while there is a route and the node's interface has IP forwarding.
func TestRoutesToPods(t *testing.T) {
	t.Parallel()
	w := start(t)
	const table = provider + "/routeTables/routes"
	w.put(table, object{"location": "eastus", "properties": object{"routes": list{}}})
	w.subnet(object{"routeTable": ref(table)})
	forwards := object{"enableIPForwarding": true}
	a, b := w.machine("a", nodes, forwards, nil), w.machine("b", nodes, forwards, nil)
	pods := map[string]netip.Addr{"v4": netip.MustParseAddr("10.244.1.5"), "v6": netip.MustParseAddr("fd44:0:0:1::5")}
	b.ip("addr add 10.244.1.5/32 dev lo", "addr add fd44:0:0:1::5/128 dev lo nodad")
	b.serve(":80")
	for _, pod := range pods {
		a.misses(at(pod, 80))
	}
	routes := list{route("four", "10.244.1.0/24", b.v4), route("six", "fd44:0:0:1::/64", b.v6)}
	w.put(table, object{"location": "eastus", "properties": object{"routes": routes}})
	for _, pod := range pods {
		if g := a.reaches(at(pod, 80)); g.at != pod.String() {
			t.Errorf("%+v, want at %s", g, pod)
		}
	}
	b.write(nodes, object{"enableIPForwarding": false}, nil)
	for _, pod := range pods {
		a.misses(at(pod, 80))
	}
	b.write(nodes, forwards, nil)
	a.reaches(at(pods["v4"], 80))
	w.put(table, object{"location": "eastus", "properties": object{"routes": list{}}})
	for _, pod := range pods {
		a.misses(at(pod, 80))
	}
}

// An appliance between two subnets sees the packets between them.
func TestRoutesThroughAppliances(t *testing.T) {
	t.Parallel()
	w := start(t)
	const table = provider + "/routeTables/through"
	other := vnet + "/subnets/other"
	w.put(other, object{"properties": object{"addressPrefixes": list{"10.1.1.0/24", "fd01:0:0:1::/64"}}})
	a, b := w.machine("a", nodes, nil, nil), w.machine("b", other, nil, nil)
	appliance := w.machine("appliance", other, object{"enableIPForwarding": true}, nil)
	b.serve(":80")
	a.reaches(at(b.v4, 80))
	w.put(table, object{"location": "eastus", "properties": object{"routes": list{route("other", "10.1.1.0/24", appliance.v4)}}})
	w.subnet(object{"routeTable": ref(table)})
	a.misses(at(b.v4, 80)) // the appliance has no IP forwarding yet
	forward(t, appliance)
	if g := a.reaches(at(b.v4, 80)); g.client != a.v4.String() {
		t.Errorf("%+v, want client %s", g, a.v4)
	}
}

func forward(t *testing.T, m *machine) {
	t.Helper()
	m.do(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644) })
}

func TestNetworksAreSeparate(t *testing.T) {
	t.Parallel()
	w := start(t)
	const other = provider + "/virtualNetworks/other"
	w.network("other", "10.1.0.0/16", "fd01::/48",
		object{"name": "nodes", "properties": object{"addressPrefixes": list{"10.1.0.0/24", "fd01::/64"}}})
	a, b := w.machine("a", nodes, nil, nil), w.machine("b", nodes, nil, nil)
	foreign := w.machine("foreign", other+"/subnets/nodes", nil, nil)
	b.serve(":80")
	foreign.misses(at(b.v4, 80))
	w.outside.misses(at(b.v4, 80))
	// Two machines in two networks can have the same address.
	if foreign.v4 != a.v4 {
		t.Fatalf("addresses %s and %s: want the same", foreign.v4, a.v4)
	}
	a.reaches(at(b.v4, 80))
}

// Machines leave with a public address: their own, their load balancer's, or the address of default outbound access. Machines
// of a load balancer without outbound SNAT and in an internal one do not.
func TestOutboundConnections(t *testing.T) {
	t.Parallel()
	w := start(t)
	host, _ := outsideAddresses()
	w.outside.serve(":80")
	id, own := w.publicIP("own", "IPv4")
	plain := w.machine("plain", nodes, nil, nil)
	public := w.machine("public", nodes, nil, object{"publicIPAddress": ref(id)})
	if g := public.reaches(at(host, 80)); g.client != own.String() {
		t.Errorf("with a public address: %+v, want client %s", g, own)
	}
	fallback := plain.reaches(at(host, 80)).client
	if a := netip.MustParseAddr(fallback); !netip.MustParsePrefix("198.18.0.0/15").Contains(a) || a == own {
		t.Errorf("without a public address: client %s, want the address of default outbound access", fallback)
	}
	address, front := w.publicIP("front", "IPv4")
	w.balancer(balancing{public: address, rules: list{rule("web", "Tcp", 80, 80, object{"disableOutboundSnat": true})}})
	member := w.machine("member", nodes, nil, object{"loadBalancerBackendAddressPools": pool})
	member.misses(at(host, 80))
	w.balancer(balancing{public: address, rules: list{rule("web", "Tcp", 80, 80, nil)}})
	if g := member.reaches(at(host, 80)); g.client != front.String() {
		t.Errorf("behind a load balancer: %+v, want client %s", g, front)
	}
	w.subnet(object{"defaultOutboundAccess": false})
	plain.misses(at(host, 80))
	// A NAT gateway has precedence over everything else.
	address, nat := w.publicIP("nat", "IPv4")
	w.put(provider+"/natGateways/nat",
		object{"location": "eastus", "sku": object{"name": "Standard"}, "properties": object{"publicIpAddresses": list{ref(address)}}})
	w.subnet(object{"natGateway": ref(provider + "/natGateways/nat")})
	for _, m := range []*machine{plain, public, member} {
		if g := m.reaches(at(host, 80)); g.client != nat.String() {
			t.Errorf("behind a NAT gateway: %+v, want client %s", g, nat)
		}
	}
	w.subnet(nil)
	// A machine with a public address is reachable from outside once a group allows it.
	public.serve(":80")
	w.outside.misses(at(own, 80))
	w.group("open", allow("all", 100, "Inbound", object{}))
	w.subnet(object{"networkSecurityGroup": ref(provider + "/networkSecurityGroups/open")})
	if g := w.outside.reaches(at(own, 80)); g.server != "public" || g.client != host.String() || g.at != public.v4.String() {
		t.Errorf("inbound: %+v", g)
	}
	// Machines see the outside address as the source.
	if g := member.reaches(at(own, 80)); g.client != front.String() {
		t.Errorf("hairpin: %+v, want client %s", g, front)
	}
}

func TestInstanceMetadataOfTheCaller(t *testing.T) {
	t.Parallel()
	w := start(t)
	ask := func(m *machine, source string) string {
		t.Helper()
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
				err = netns.Do(m.path, func() error {
					d := net.Dialer{Timeout: generous, LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
					c, err = d.DialContext(ctx, network, address)
					return err
				})
				return c, err
			}}}
		r, err := client.Get("http://169.254.169.254/metadata")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	a := w.machine("a", nodes, nil, nil)
	node := w.machine("node", nodes, object{"enableIPForwarding": true}, nil)
	node.ip("addr add 10.244.0.9/32 dev lo", "addr add "+a.v4.String()+"/32 dev lo")
	for _, c := range []struct {
		m            *machine
		source, want string
	}{
		{a, a.v4.String(), "a"},
		{node, node.v4.String(), "node"},
		{node, "10.244.0.9", "node"},  // a pod
		{node, a.v4.String(), "node"}, // a spoofed header
	} {
		if got := ask(c.m, c.source); got != c.want {
			t.Errorf("%s with address %s is taken for %s, want %s", c.m.name, c.source, got, c.want)
		}
	}
	w.outside.misses("169.254.169.254:80")
}

// Programs of the platform listen in a network, and connect into it.
func TestPlatformAddress(t *testing.T) {
	t.Parallel()
	w := start(t)
	m := w.machine("m", nodes, nil, nil)
	c, err := w.fabric.ListenPacket(t.Context(), vnet, "udp", "168.63.129.16:53")
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		buffer := make([]byte, 100)
		for {
			_, from, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			nic, _ := w.fabric.Sender(vnet, netip.MustParseAddrPort(from.String()).Addr())
			_, _ = c.WriteTo([]byte("resolver "+nic.Name()+" -"), from)
		}
	}()
	if g, err := m.send("168.63.129.16:53", generous); err != nil || g.client != "m" {
		t.Errorf("%+v %v", g, err)
	}
	c.Close()
	<-answered
	m.serve(":10250")
	m.write(nodes, object{"enableIPForwarding": true}, nil)
	w.put(provider+"/routeTables/routes",
		object{"location": "eastus", "properties": object{"routes": list{route("pods", "10.244.0.0/24", m.v4)}}})
	w.subnet(object{"routeTable": ref(provider + "/routeTables/routes")})
	m.ip("addr add 10.244.0.9/32 dev lo")
	for _, to := range []netip.Addr{m.v4, m.v6, netip.MustParseAddr("10.244.0.9")} {
		conn, err := w.fabric.Dial(t.Context(), vnet, "tcp", at(to, 10250))
		if err != nil {
			t.Fatalf("dial %s: %v", to, err)
		}
		conn.Close()
	}
}

// A deleted namespace takes the interface along. Another machine can get it.
func TestReattachedInterface(t *testing.T) {
	t.Parallel()
	w := start(t)
	a := w.machine("a", nodes, nil, nil)
	b := w.machine("b", nodes, nil, nil)
	b.serve(":80")
	a.reaches(at(b.v4, 80))
	again := w.namespace("again")
	again.nic, again.name = b.nic, "again"
	again.attach()
	again.serve(":80")
	if g := a.reaches(at(b.v4, 80)); g.server != "again" {
		t.Errorf("%+v", g)
	}
	if err := w.fabric.Detach(t.Context(), b.nic); err != nil {
		t.Fatal(err)
	}
	a.misses(at(b.v4, 80))
	if _, err := w.fabric.Attach(t.Context(), provider+"/networkInterfaces/none",
		fabric.Machine{Namespace: a.path, Device: "eth1"}); err == nil || !strings.Contains(err.Error(), "networkInterfaces/none") {
		t.Errorf("an interface that is not there: %v", err)
	}
	if _, err := w.fabric.Attach(t.Context(), b.nic, fabric.Machine{Namespace: "/run/netns/none", Device: "eth0"}); err == nil {
		t.Error("a namespace that is not there: no error")
	}
	again.attach()
	a.reaches(at(b.v4, 80))
}

// Instances of scale sets have interfaces, public addresses and pool memberships like virtual machines. A deleted one serves
// until it is off, and loses them then.
func TestScaleSetInstances(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.open()
	address, front := w.publicIP("front", "IPv4")
	w.balancer(balancing{public: address, rules: list{rule("web", "Tcp", 80, 80, floats)}})
	const set = group + "/providers/Microsoft.Compute/virtualMachineScaleSets/set"
	model := func(capacity int) object {
		return object{"location": "eastus", "sku": object{"name": "Standard_D2s_v5", "tier": "Standard", "capacity": capacity},
			"properties": object{
				"orchestrationMode": "Uniform", "upgradePolicy": object{"mode": "Manual"},
				"virtualMachineProfile": object{
					"osProfile": object{"computerNamePrefix": "set-", "adminUsername": "kaz",
						"linuxConfiguration": object{"disablePasswordAuthentication": true}},
					"storageProfile": object{"osDisk": object{"createOption": "FromImage"},
						"imageReference": object{"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server",
							"version": "latest"}},
					"networkProfile": object{"networkInterfaceConfigurations": list{object{"name": "nic",
						"properties": object{"primary": true,
							"ipConfigurations": list{object{"name": "ip",
								"properties": object{"primary": true, "subnet": ref(nodes), "loadBalancerBackendAddressPools": pool,
									"publicIPAddressConfiguration": object{"name": "pub", "sku": object{"name": "Standard"}}}}}}}}},
				}}}
	}
	w.put(set, model(2))
	instances := w.list("Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces")
	publics := w.list("Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces/ipConfigurations/publicIPAddresses")
	if len(instances) != 2 || len(publics) != 2 {
		t.Fatalf("interfaces %v, public addresses %v: want two of each", instances, publics)
	}
	for i, nic := range instances {
		m := w.namespace("i" + string(rune('0'+i)))
		m.nic = nic
		m.attach()
		m.ip("addr add " + front.String() + "/32 dev lo")
		m.serve(":80")
		own := netip.MustParseAddr(behaviour.Text(w.document(publics[i]), "properties.ipAddress"))
		if g := w.outside.reaches(at(own, 80)); g.server != m.name {
			t.Errorf("%s at its public address: %+v", m.name, g)
		}
	}
	w.outside.meets(at(front, 80), 2)
	w.put(set, model(1))
	gone := "i1"
	if len(w.list("Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces")) != 1 {
		t.Fatal("the scale set did not shrink")
	}
	w.settle()
	w.outside.meets(at(front, 80), 2)
	if err := w.fabric.Detach(t.Context(), instances[1]); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if g := w.outside.reaches(at(front, 80)); g.server == gone {
			t.Fatalf("an instance that is gone answers: %+v", g)
		}
	}
}

// list returns the ids of all resources of a type.
func (w *lab) list(fullType string) (ids []azure.ID) {
	w.azure.Look(func(x behaviour.World) {
		for id := range x.List(azure.SubscriptionID(x.Subscription()), fullType) {
			ids = append(ids, id)
		}
	})
	return ids
}

// A deleted virtual network leaves nothing behind, and other networks stay.
func TestDeletedNetwork(t *testing.T) {
	t.Parallel()
	w := start(t)
	before := w.everything()
	w.network("other", "10.1.0.0/16", "fd01::/48",
		object{"name": "nodes", "properties": object{"addressPrefixes": list{"10.1.0.0/24", "fd01::/64"}}})
	if during := w.everything(); during == before {
		t.Errorf("a new network changed nothing:\n%s", during)
	}
	w.send(http.MethodDelete, provider+"/virtualNetworks/other", nil)
	if after := w.everything(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// A virtual network that is deleted and made again has another namespace, in which programs of the platform listen anew.
func TestNetworkMadeAgain(t *testing.T) {
	t.Parallel()
	w := start(t)
	other := azure.ID(strings.TrimSuffix(string(vnet), vnet.Name()) + "other")
	var namespaces []string
	for range 2 {
		w.network("other", "10.1.0.0/16", "fd01::/48",
			object{"name": "nodes", "properties": object{"addressPrefixes": list{"10.1.0.0/24", "fd01::/64"}}})
		namespace, err := w.fabric.Namespace(other)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := w.fabric.Namespace(other); err != nil || again != namespace {
			t.Errorf("the namespace is %s and %s: %v", namespace, again, err)
		}
		namespaces = append(namespaces, namespace)
		l, err := w.fabric.Listen(t.Context(), other, "tcp", "168.63.129.16:53")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // what listens does not know that its network is gone
		w.send(http.MethodDelete, provider+"/virtualNetworks/other", nil)
		if gone, err := w.fabric.Namespace(other); err == nil {
			t.Errorf("the deleted network has the namespace %s", gone)
		}
	}
	if namespaces[0] == namespaces[1] {
		t.Errorf("both networks have the namespace %s", namespaces[0])
	}
}

// The state before and after is the same, also after a crash.
func TestCloseAndCrashLeaveNothing(t *testing.T) {
	t.Parallel()
	w := start(t)
	before := w.everything()
	a := w.machine("a", nodes, nil, nil)
	b := w.machine("b", nodes, nil, nil)
	b.serve(":80")
	a.reaches(at(b.v4, 80))
	if err := w.fabric.Close(); err != nil {
		t.Fatal(err)
	}
	if left := w.everything(); strings.Contains(left, "kaz-"+w.instance) || !strings.Contains(before, "kaz-"+w.instance) {
		t.Errorf("before:\n%s\nleft:\n%s", before, left)
	}
	// After a crash, the next fabric of the same name removes what is left.
	w.start()
	full := w.everything()
	w.start()
	if now := w.everything(); now != full {
		t.Errorf("after a crash:\n%s\nwant\n%s", now, full)
	}
	if err := netns.Sweep(t.Context(), w.instance, w.outside.path); err != nil {
		t.Fatal(err)
	}
	if left := w.everything(); strings.Contains(left, "kaz-"+w.instance) {
		t.Errorf("left:\n%s", left)
	}
}

// everything returns what a fabric could leave behind: namespaces, and changes outside.
func (w *lab) everything() string {
	w.Helper()
	var b strings.Builder
	entries, err := os.ReadDir(netns.Dir)
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "kaz-"+w.instance) {
			b.WriteString(e.Name() + "\n")
		}
	}
	for _, args := range [][]string{{"ip", "-o", "-4", "address"}, {"ip", "-o", "-6", "address", "show", "scope", "global"},
		{"ip", "route"}, {"ip", "-6", "route", "show", "root", "2000::/3"}, {"nft", "list", "ruleset"}} {
		text, err := netns.Run(w.Context(), w.outside.path, "", args[0], args[1:]...)
		if err != nil {
			w.Fatal(err)
		}
		for line := range strings.Lines(text) {
			// Indexes of interfaces grow.
			_, line, _ = strings.Cut(line, ": ")
			b.WriteString(line)
		}
	}
	return b.String()
}

// A change is in force within a second of Azure's answer.
func TestChangesAreInForceSoon(t *testing.T) {
	t.Parallel()
	w := start(t)
	a, b := w.machine("a", nodes, nil, nil), w.machine("b", nodes, nil, nil)
	b.serve(":80")
	a.reaches(at(b.v4, 80))
	const group = provider + "/networkSecurityGroups/nsg"
	w.group("nsg")
	w.subnet(object{"networkSecurityGroup": ref(group)})
	var slowest time.Duration
	for i := range 10 {
		begin := time.Now()
		if i%2 == 0 {
			w.group("nsg", deny("web", 100, "Inbound", object{"destinationPortRange": "80"}))
			slowest = max(slowest, time.Since(begin))
			a.misses(at(b.v4, 80))
			continue
		}
		w.group("nsg")
		a.reaches(at(b.v4, 80))
		slowest = max(slowest, time.Since(begin))
	}
	t.Logf("a rule is in force after %s at most", slowest)
}
