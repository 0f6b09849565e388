package fabric_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/fabric/wiring"
)

var pool = list{ref(balancer + "/backendAddressPools/pool")}

// balancing is a load balancer with one pool and up to two frontends.
type balancing struct {
	public, public6 azure.ID
	private         string // address in the subnet
	rules, probes   list
	addresses       list // members by address
}

func (w *lab) balancer(b balancing) {
	w.Helper()
	var frontends list
	add := func(name string, p object) { frontends = append(frontends, object{"name": name, "properties": p}) }
	if b.public != "" {
		add("front", object{"publicIPAddress": ref(b.public)})
	}
	if b.private != "" {
		add("front", object{"subnet": ref(nodes), "privateIPAllocationMethod": "Static", "privateIPAddress": b.private})
	}
	if b.public6 != "" {
		add("front6", object{"publicIPAddress": ref(b.public6)})
	}
	p := object{}
	if b.addresses != nil {
		p["loadBalancerBackendAddresses"] = b.addresses
	}
	w.put(balancer, object{"location": "eastus", "sku": object{"name": "Standard"}, "properties": object{
		"frontendIPConfigurations": frontends, "backendAddressPools": list{object{"name": "pool", "properties": p}},
		"loadBalancingRules": b.rules, "probes": b.probes}})
}

func rule(name, protocol string, port, to int, more object) object {
	p := object{"protocol": protocol, "frontendPort": port, "backendPort": to,
		"frontendIPConfiguration": ref(balancer + "/frontendIPConfigurations/front"),
		"backendAddressPool":      ref(balancer + "/backendAddressPools/pool")}
	maps.Copy(p, more)
	return object{"name": name, "properties": p}
}

func probe(name, protocol string, port int, path string) object {
	p := object{"protocol": protocol, "port": port, "intervalInSeconds": 5, "probeThreshold": 1}
	if path != "" {
		p["requestPath"] = path
	}
	return object{"name": name, "properties": p}
}

func with(objects ...object) object {
	all := object{}
	for _, o := range objects {
		maps.Copy(all, o)
	}
	return all
}

var (
	floats = object{"enableFloatingIP": true}
	front6 = object{"frontendIPConfiguration": ref(balancer + "/frontendIPConfigurations/front6")}
	probed = object{"probe": ref(balancer + "/probes/probe")}
)

// open allows all traffic into the subnet.
func (w *lab) open() {
	w.subnet(object{"networkSecurityGroup": ref(w.group("open", allow("all", 100, "Inbound", object{})))})
}

func dialPlatform(w *lab, address string, patient bool) error {
	patience := refused
	if patient {
		patience = generous
	}
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	c, err := w.fabric.Dial(ctx, vnet, "tcp", address)
	if err == nil {
		c.Close()
	}
	return err
}

// members starts machines behind the load balancer. They serve at a port and, as nodes do, at the frontends' addresses.
func (w *lab) members(n int, frontends ...netip.Addr) []*machine {
	w.Helper()
	var all []*machine
	for i := range n {
		m := w.machine(fmt.Sprintf("m%d", i), nodes, nil,
			object{"loadBalancerBackendAddressPools": pool, "loadBalancerBackendAddressPools6": pool})
		for _, a := range frontends {
			m.ip("addr add " + netip.PrefixFrom(a, a.BitLen()).String() + " dev lo")
		}
		all = append(all, m)
	}
	return all
}

// meets connects until a number of different machines have answered, and returns their greetings.
func (m *machine) meets(address string, n int) map[string]greeting {
	m.w.Helper()
	met := map[string]greeting{}
	for end := time.Now().Add(generous); time.Now().Before(end); {
		g := m.reaches(address)
		met[g.server] = g
		if len(met) == n {
			return met
		}
	}
	m.w.Fatalf("%s met %v, want %d", m.name, met, n)
	return nil
}

func TestLoadBalancersForward(t *testing.T) {
	t.Parallel()
	w := start(t)
	host, host6 := outsideAddresses()
	w.open()
	id, front := w.publicIP("front", "IPv4")
	id6, frontSix := w.publicIP("front6", "IPv6")
	w.balancer(balancing{public: id, public6: id6, rules: list{
		rule("floating", "Tcp", 80, 80, floats), rule("translated", "Tcp", 81, 8081, nil),
		rule("floating-udp", "Udp", 53, 53, floats), rule("translated-udp", "Udp", 54, 5454, nil),
		rule("floating6", "Tcp", 80, 80, with(floats, front6)), rule("translated6", "Tcp", 81, 8086, front6),
	}})
	for _, m := range w.members(3, front, frontSix) {
		m.serve(":80")
		m.serve(":8081")
		m.serve(":8086")
		m.servePackets(at(front, 53))
		m.servePackets(at(m.v4, 5454))
	}
	for _, c := range []struct {
		name            string
		frontend, seen  netip.Addr
		port            int
		addressReplaced bool
	}{
		{"floating", front, host, 80, false}, {"translated", front, host, 81, true},
		{"floating, IPv6", frontSix, host6, 80, false}, {"translated, IPv6", frontSix, host6, 81, true},
	} {
		for name, g := range w.outside.meets(at(c.frontend, c.port), 3) {
			if g.client != c.seen.String() || (g.at != c.frontend.String()) != c.addressReplaced {
				t.Errorf("%s: %s says %+v, want client %s", c.name, name, g, c.seen)
			}
		}
	}
	for _, port := range []int{53, 54} {
		met := map[string]bool{}
		for len(met) < 3 {
			g, err := w.outside.send(at(front, port), generous)
			if err != nil {
				t.Fatalf("udp %d: %v", port, err)
			}
			if g.client != host.String() {
				t.Errorf("udp %d: %+v, want client %s", port, g, host)
			}
			met[g.server] = true
		}
	}
	w.outside.misses(at(front, 82))
	// A machine outside of the pool reaches the frontend too, with its public source address.
	other := w.machine("other", nodes, nil, nil)
	if g := other.meets(at(front, 80), 3)["m0"]; !wiring.PublicRanges()[0].Contains(netip.MustParseAddr(g.client)) ||
		g.client == host.String() {
		t.Errorf("from inside: %+v, want a public client", g)
	}
}

// A member reaches its own load balancer, with the frontend's address as its source.
func TestHairpin(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.open()
	id, front := w.publicIP("front", "IPv4")
	w.balancer(balancing{public: id, rules: list{rule("translated", "Tcp", 81, 8081, nil)}})
	members := w.members(2)
	for _, m := range members {
		m.serve(":8081")
	}
	for _, g := range members[0].meets(at(front, 81), 2) {
		if g.client != front.String() {
			t.Errorf("%+v, want client %s", g, front)
		}
	}
}

func TestSessionAffinity(t *testing.T) {
	t.Parallel()
	for how, float := range map[string]bool{"SourceIP": true, "SourceIPProtocol": false} {
		t.Run(fmt.Sprint(how, " floating ", float), func(t *testing.T) {
			t.Parallel()
			w := start(t)
			w.open()
			more := object{"loadDistribution": how, "enableFloatingIP": float}
			w.balancer(balancing{private: "10.1.0.100", rules: list{rule("web", "Tcp", 80, 80, more), rule("more", "Tcp", 81, 81, more)}})
			front := netip.MustParseAddr("10.1.0.100")
			for _, m := range w.members(3, front) {
				m.serve(":80")
				m.serve(":81")
			}
			met := map[string]bool{}
			for i := range 6 {
				c := w.machine(fmt.Sprintf("c%d", i), nodes, nil, nil)
				first := c.reaches(at(front, 80)).server
				met[first] = true
				for i := range 10 {
					if g := c.reaches(at(front, 80+i%2)); g.server != first {
						t.Fatalf("%s meets %s and then %s", c.name, first, g.server)
					}
				}
			}
			t.Logf("6 clients meet %d of 3", len(met))
		})
	}
}

// An internal load balancer with a rule for all ports is reachable in the network, and not from outside.
func TestInternalLoadBalancer(t *testing.T) {
	t.Parallel()
	for _, float := range []bool{true, false} {
		t.Run(fmt.Sprint("floating ", float), func(t *testing.T) {
			t.Parallel()
			w := start(t)
			w.open()
			front := netip.MustParseAddr("10.1.0.100")
			w.balancer(balancing{private: front.String(), rules: list{rule("all", "All", 0, 0, object{"enableFloatingIP": float})}})
			members := w.members(2, front)
			c := w.machine("c", nodes, nil, nil)
			for _, m := range members {
				m.serve(":80")
				m.serve(":443")
				address := m.v4
				if float {
					address = front
				}
				m.servePackets(at(address, 53))
			}
			for _, port := range []int{80, 443} {
				for _, g := range c.meets(at(front, port), 2) {
					if g.client != c.v4.String() {
						t.Errorf("%+v, want client %s", g, c.v4)
					}
				}
			}
			if g, err := c.send(at(front, 53), generous); err != nil || g.client != c.v4.String() {
				t.Errorf("udp: %+v %v", g, err)
			}
			w.outside.misses(at(front, 80))
		})
	}
}

func TestMembersByAddress(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.open()
	a, b := w.machine("a", nodes, nil, nil), w.machine("b", nodes, nil, nil)
	id, front := w.publicIP("front", "IPv4")
	member := func(m *machine) object {
		return object{"name": m.name, "properties": object{"ipAddress": m.v4.String(), "virtualNetwork": ref(vnet)}}
	}
	w.balancer(balancing{public: id, addresses: list{member(a), member(b)}, rules: list{rule("web", "Tcp", 80, 8080, nil)}})
	a.serve(":8080")
	b.serve(":8080")
	w.outside.meets(at(front, 80), 2)
	w.balancer(balancing{public: id, addresses: list{member(b)}, rules: list{rule("web", "Tcp", 80, 8080, nil)}})
	for range 10 {
		if g := w.outside.reaches(at(front, 80)); g.server != "b" {
			t.Errorf("%+v", g)
		}
	}
}

// A member that does not answer its probe gets no new connection and keeps its present connections.
func TestProbesDrain(t *testing.T) {
	t.Parallel()
	for protocol, float := range map[string]bool{"Tcp": true, "Http": false} {
		t.Run(fmt.Sprintf("%s floating %v", protocol, float), func(t *testing.T) {
			t.Parallel()
			drain(t, protocol, float)
		})
	}
}

func drain(t *testing.T, protocol string, float bool) {
	w := start(t)
	w.open()
	id, front := w.publicIP("front", "IPv4")
	path := ""
	if protocol != "Tcp" {
		path = "/healthz"
	}
	id6, frontSix := w.publicIP("front6", "IPv6")
	w.balancer(balancing{public: id, public6: id6})
	members := w.members(2, front, frontSix)
	healths := map[string]*health{}
	for _, m := range members {
		m.serve(":80")
		m.servePackets(at(front, 53))
		healths[m.name] = m.health(protocol)
	}
	// This is after the first answer to the probe.
	w.balancer(balancing{public: id, public6: id6, probes: list{probe("probe", protocol, 8000, path)}, rules: list{
		rule("web", "Tcp", 80, 80, with(probed, object{"enableFloatingIP": float})),
		rule("web6", "Tcp", 80, 80, with(probed, front6, floats)),
		rule("names", "Udp", 53, 53, with(probed, floats)),
	}})
	w.waitHealthy("web", members...)
	w.waitHealthy("web6", members...)
	w.outside.meets(at(frontSix, 80), 2)
	held := map[string]net.Conn{}
	for len(held) < 2 {
		c, err := w.outside.open("tcp", at(front, 80), generous)
		if err != nil {
			t.Fatal(err)
		}
		g := parseGreeting(read(t, c))
		if held[g.server] != nil {
			c.Close()
			continue
		}
		held[g.server] = c
		defer c.Close()
	}
	w.waitHealthy("names", members...)
	names := w.namesFrom("m0", at(front, 53))
	healths["m0"].set(false)
	w.waitHealthy("web", members[1])
	w.waitHealthy("names", members[1])
	if g, err := sayTo(names, generous); err != nil || g.server != "m1" {
		t.Errorf("datagrams of a drained member: %+v %v, want them to go to the other", g, err)
	}
	for range 10 {
		if g := w.outside.reaches(at(front, 80)); g.server != "m1" {
			t.Fatalf("a drained member got a connection: %+v", g)
		}
	}
	for name, c := range held {
		if _, err := fmt.Fprintf(c, "still there, %s?\n", name); err != nil {
			t.Fatal(err)
		}
		if got := read(t, c); got != "still there, "+name+"?\n" {
			t.Errorf("%s says %q", name, got)
		}
	}
	healths["m1"].set(false)
	w.waitHealthy("web")
	w.outside.misses(at(front, 80))
	if protocol != "Tcp" {
		return // the way back is the same
	}
	healths["m0"].set(true)
	w.waitHealthy("web", members[0])
	if g := w.outside.reaches(at(front, 80)); g.server != "m0" {
		t.Errorf("%+v", g)
	}
}

// namesFrom returns a socket that sends its datagrams to a member.
func (w *lab) namesFrom(member, address string) net.Conn {
	w.Helper()
	for {
		c, err := w.outside.open("udp", address, generous)
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { c.Close() })
		g, err := sayTo(c, generous)
		if err != nil {
			w.Fatal(err)
		}
		if g.server == member {
			return c
		}
	}
}

func read(t *testing.T, c net.Conn) string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(generous))
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// health is a machine's reply to probes.
type health struct {
	m        *machine
	protocol string
	mu       sync.Mutex
	well     bool
	listener net.Listener
	server   *http.Server
	tasks    sync.WaitGroup
}

func (m *machine) health(protocol string) *health {
	h := &health{m: m, protocol: protocol}
	h.set(true)
	m.w.Cleanup(func() { h.close(); h.tasks.Wait() })
	return h
}

// set changes the health of the machine: over TCP by listening, else by the reply.
func (h *health) set(well bool) {
	h.m.w.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.well = well
	if h.protocol != "Tcp" && h.listener != nil {
		return
	}
	if !well {
		h.listener.Close()
		return
	}
	h.m.do(func() (err error) {
		h.listener, err = net.Listen("tcp", ":8000")
		return err
	})
	l := h.listener
	if h.protocol == "Tcp" {
		h.tasks.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Close()
			}
		})
		return
	}
	h.server = &http.Server{Handler: h, TLSConfig: certificate(h.m.w)}
	h.tasks.Go(func() {
		if h.protocol == "Https" {
			_ = h.server.ServeTLS(l, "", "")
		} else {
			_ = h.server.Serve(l)
		}
	})
}

func (h *health) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listener.Close()
	if h.server != nil {
		h.server.Close()
	}
}

func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := netip.MustParseAddrPort(r.RemoteAddr).Addr().Unmap()
	if !h.well || r.URL.Path != "/healthz" || from.Is4() && from != wiring.Platform || from.Is6() && from.WithZone("") != wiring.Gateway6 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// A load balancer does not know that a machine is off. It loses the machine's connections until the probe fails.
func TestStoppedMachine(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.open()
	id, front := w.publicIP("front", "IPv4")
	w.balancer(balancing{public: id, rules: list{
		rule("asked", "Tcp", 80, 80, with(floats, probed)), rule("unasked", "Tcp", 81, 81, floats), rule("translated", "Tcp", 82, 82, nil),
	}, probes: list{probe("probe", "Tcp", 80, "")}})
	members := w.members(2, front)
	for _, m := range members {
		m.serve(":80")
		m.serve(":81")
		m.serve(":82")
	}
	w.waitHealthy("asked", members...)
	if err := w.fabric.Detach(t.Context(), members[1].nic); err != nil {
		t.Fatal(err)
	}
	for _, b := range w.fabric.Balancers() {
		if len(b.Backends) != 2 {
			t.Errorf("rule %s has the members %v, the machine that is off is still one", b.Rule.Name(), b.Backends)
		}
	}
	w.waitHealthy("asked", members[0])
	for range 20 {
		if g := w.outside.reaches(at(front, 80)); g.server != members[0].name {
			t.Fatalf("%s answers", g.server)
		}
	}
	for _, port := range []int{81, 82} {
		lost := false
		for end := time.Now().Add(generous); !lost && time.Now().Before(end); {
			_, err := w.outside.try(at(front, port), refused)
			lost = err != nil
		}
		if !lost {
			t.Errorf("port %d: no connection is lost though one of two machines is off and there is no probe", port)
		}
	}
	members[1].attach()
	w.waitHealthy("asked", members...)
	w.outside.meets(at(front, 81), 2)
}
