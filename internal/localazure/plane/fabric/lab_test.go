package fabric_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/fabric"
	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localazure/plane/fabric/wiring"
)

const (
	group    = azure.ID("/subscriptions/" + core.DefaultSubscription + "/resourceGroups/rg")
	provider = group + "/providers/Microsoft.Network"
	vnet     = provider + "/virtualNetworks/vnet"
	nodes    = vnet + "/subnets/nodes"
	balancer = provider + "/loadBalancers/lb"

	// generous is the timeout for events that happen soon in a passing test.
	generous = 2 * time.Minute
	// refused is the time for which a test waits for packets that must not come.
	refused = 200 * time.Millisecond
)

// The tests mostly wait, so more of them run in parallel than there are processors.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

type object = map[string]any
type list = []any

func ref(id azure.ID) object { return object{"id": string(id)} }

// lab is a local Azure with a fabric. Its outside is a namespace of its own, so the tests do not touch this machine's
// network.
type lab struct {
	testing.TB
	azure    *core.Emulator
	client   *http.Client
	fabric   *fabric.Fabric
	instance string
	outside  *machine
}

var instances atomic.Int64

// instanceName returns a name that no other test on this machine has now.
func instanceName() string {
	return "t" + strconv.FormatInt(int64(os.Getpid())%46656, 36) + strconv.FormatInt(instances.Add(1), 36)
}

// start returns a lab with a virtual network of two families.
func start(t testing.TB) *lab {
	t.Helper()
	instance := instanceName()
	if err := netns.Check(t.Context(), instance, ""); err != nil && !strings.Contains(err.Error(), "are in use on this machine") {
		t.Skipf("packets are not tested here: %v", err)
	}
	e, err := core.New(core.Options{Providers: []behaviour.Provider{resources.Provider(), network.Provider(), compute.Provider()}})
	if err != nil {
		t.Fatal(err)
	}
	w := &lab{TB: t, azure: e, client: &http.Client{Transport: e.Transport()}, instance: instance}
	w.put(group, object{"location": "eastus"})
	w.network("vnet", "10.1.0.0/16", "fd01::/48",
		object{"name": "nodes", "properties": object{"addressPrefixes": list{"10.1.0.0/24", "fd01::/64"}}})
	w.outside = w.namespace("outside")
	w.start()
	return w
}

func (w *lab) start() {
	w.Helper()
	level := slog.LevelWarn
	f, err := fabric.Start(w.Context(),
		fabric.Options{Instance: w.instance, Azure: w.azure, Outside: w.outside.path, ProbeInterval: time.Second,
			Log: slog.New(slog.NewTextHandler(w.Output(), &slog.HandlerOptions{Level: level})),
			Metadata: func(nic azure.ID) http.Handler {
				return http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, nic.Name()) })
			}})
	if err != nil {
		w.Fatal(err)
	}
	w.fabric = f
	w.Cleanup(func() {
		if err := f.Close(); err != nil {
			w.Error(err)
		}
	})
}

// put writes a document and waits until it is in force.
func (w *lab) put(id azure.ID, doc object) object {
	w.Helper()
	return w.send(http.MethodPut, id, doc)
}

func (w *lab) send(method string, id azure.ID, doc object) object {
	w.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		w.Fatal(err)
	}
	r, err := http.NewRequestWithContext(w.Context(), method, "http://azure"+string(id)+"?api-version=2024-05-01",
		strings.NewReader(string(text)))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := w.client.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		w.Fatalf("%s %s: %s %s %v", method, id, response.Status, body, err)
	}
	var answer object
	if len(body) > 0 {
		if err := json.Unmarshal(body, &answer); err != nil {
			w.Fatal(err)
		}
	}
	w.settle()
	return answer
}

func (w *lab) settle() {
	w.Helper()
	if w.fabric == nil {
		return
	}
	ctx, cancel := context.WithTimeout(w.Context(), generous)
	defer cancel()
	if err := w.fabric.Settle(ctx); err != nil {
		w.Fatal(err)
	}
}

func (w *lab) network(name, v4, v6 string, subnets ...any) {
	w.put(provider+azure.ID("/virtualNetworks/"+name), object{"location": "eastus", "properties": object{
		"addressSpace": object{"addressPrefixes": list{v4, v6}}, "subnets": subnets}})
}

// subnet writes the properties of the subnet that most tests use.
func (w *lab) subnet(more object) {
	properties := object{"addressPrefixes": list{"10.1.0.0/24", "fd01::/64"}}
	maps.Copy(properties, more)
	w.put(nodes, object{"properties": properties})
}

// document returns a stored document.
func (w *lab) document(id azure.ID) (doc behaviour.Object) {
	w.azure.Look(func(x behaviour.World) { doc, _ = x.Get(id) })
	return doc
}

// publicIP creates a public address.
func (w *lab) publicIP(name, version string) (azure.ID, netip.Addr) {
	w.Helper()
	id := provider + azure.ID("/publicIPAddresses/"+name)
	w.put(id, object{"location": "eastus", "sku": object{"name": "Standard"},
		"properties": object{"publicIPAllocationMethod": "Static", "publicIPAddressVersion": version}})
	w.settle()
	return id, netip.MustParseAddr(behaviour.Text(w.document(id), "properties.ipAddress"))
}

// machine is a network namespace of a virtual machine.
type machine struct {
	w          *lab
	name, path string
	nic        azure.ID
	v4, v6     netip.Addr
}

func (w *lab) namespace(name string) *machine {
	w.Helper()
	full := "kazm-" + w.instance + "-" + name
	if err := netns.Create(full); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := netns.Remove(full); err != nil {
			w.Error(err)
		}
	})
	return &machine{w: w, name: name, path: netns.Path(full)}
}

// machine starts a machine with an interface in the subnet. more are properties of the interface, address the properties of its
// IP configurations.
func (w *lab) machine(name string, subnet azure.ID, more, address object) *machine {
	w.Helper()
	m := w.namespace(name)
	m.nic = provider + azure.ID("/networkInterfaces/"+name)
	m.write(subnet, more, address)
	m.attach()
	return m
}

func (m *machine) write(subnet azure.ID, more, address object) {
	m.w.Helper()
	configuration := func(name, version string, primary bool) object {
		p := object{"subnet": ref(subnet), "primary": primary, "privateIPAddressVersion": version}
		for k, v := range address {
			if k6, is6 := strings.CutSuffix(k, "6"); is6 == (version == "IPv6") {
				p[k6] = v
			}
		}
		return object{"name": name, "properties": p}
	}
	properties := object{"ipConfigurations": list{configuration("v4", "IPv4", true), configuration("v6", "IPv6", false)}}
	maps.Copy(properties, more)
	m.w.put(m.nic, object{"location": "eastus", "properties": properties})
}

func (m *machine) attach() {
	m.w.Helper()
	ctx, cancel := context.WithTimeout(m.w.Context(), generous)
	defer cancel()
	port, err := m.w.fabric.Attach(ctx, m.nic, fabric.Machine{Namespace: m.path, Device: "eth0"})
	if err != nil {
		m.w.Fatal(err)
	}
	for _, a := range port.Addresses {
		if a.Addr().Is4() {
			m.v4 = a.Addr()
		} else {
			m.v6 = a.Addr()
		}
	}
}

func (m *machine) do(f func() error) {
	m.w.Helper()
	if err := netns.Do(m.path, f); err != nil {
		m.w.Fatal(err)
	}
}

// ip runs ip in the machine.
func (m *machine) ip(lines ...string) {
	m.w.Helper()
	if err := netns.Batch(m.w.Context(), m.path, lines...); err != nil {
		m.w.Fatal(err)
	}
}

// greeting is a server's message to its clients: its name, and the addresses of both ends.
type greeting struct{ server, client, at string }

func parseGreeting(line string) greeting {
	f := strings.Fields(line)
	if len(f) != 3 {
		return greeting{server: line}
	}
	return greeting{f[0], f[1], f[2]}
}

func bare(address net.Addr) string {
	return netip.MustParseAddrPort(address.String()).Addr().Unmap().String()
}

func (m *machine) listen(address string) (l net.Listener) {
	m.w.Helper()
	m.do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	return l
}

// serve greets every client and echoes its lines.
func (m *machine) serve(address string) {
	m.w.Helper()
	l := m.listen(address)
	var tasks sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	tasks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			tasks.Go(func() {
				defer c.Close()
				fmt.Fprintf(c, "%s %s %s\n", m.name, bare(c.RemoteAddr()), bare(c.LocalAddr()))
				_, _ = io.Copy(c, c)
				mu.Lock()
				delete(open, c)
				mu.Unlock()
			})
		}
	})
	m.w.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		tasks.Wait()
	})
}

// servePackets replies to every datagram with the greeting.
func (m *machine) servePackets(address string) {
	m.w.Helper()
	var c net.PacketConn
	m.do(func() (err error) {
		c, err = net.ListenPacket("udp", address)
		return err
	})
	var tasks sync.WaitGroup
	tasks.Go(func() {
		buffer := make([]byte, 1500)
		for {
			_, from, err := c.ReadFrom(buffer)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				fmt.Fprintf(packetWriter{c, from}, "%s %s %s\n", m.name, bare(from), bare(c.LocalAddr()))
			}
		}
	})
	m.w.Cleanup(func() {
		c.Close()
		tasks.Wait()
	})
}

type packetWriter struct {
	net.PacketConn
	to net.Addr
}

func (p packetWriter) Write(b []byte) (int, error) { return p.WriteTo(b, p.to) }

// open connects to an address.
func (m *machine) open(protocol, address string, patience time.Duration) (c net.Conn, err error) {
	err = netns.Do(m.path, func() error {
		c, err = (&net.Dialer{Timeout: patience}).DialContext(m.w.Context(), protocol, address)
		return err
	})
	return c, err
}

// try returns the name of the machine that answers at an address, or the error.
func (m *machine) try(address string, patience time.Duration) (greeting, error) {
	c, err := m.open("tcp", address, patience)
	if err != nil {
		return greeting{}, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	line, err := bufio.NewReader(c).ReadString('\n')
	return parseGreeting(line), err
}

// reaches is try for an address that must answer.
func (m *machine) reaches(address string) greeting {
	m.w.Helper()
	g, err := m.try(address, generous)
	if err != nil {
		m.w.Fatalf("%s does not reach %s: %v", m.name, address, err)
	}
	return g
}

// misses fails if a machine answers at an address.
func (m *machine) misses(address string) {
	m.w.Helper()
	if g, err := m.try(address, refused); err == nil {
		m.w.Fatalf("%s reaches %s: %+v", m.name, address, g)
	}
}

// send sends datagrams from one port until a reply comes.
func (m *machine) send(address string, patience time.Duration) (greeting, error) {
	c, err := m.open("udp", address, patience)
	if err != nil {
		return greeting{}, err
	}
	defer c.Close()
	return sayTo(c, patience)
}

// sayTo sends on a socket and repeats without a reply, because datagrams can be lost.
func sayTo(c net.Conn, patience time.Duration) (greeting, error) {
	end := time.Now().Add(patience)
	buffer := make([]byte, 1500)
	for {
		if _, err := c.Write([]byte("hello")); err != nil && time.Now().After(end) {
			return greeting{}, err
		}
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		n, err := c.Read(buffer)
		if err == nil {
			return parseGreeting(string(buffer[:n])), nil
		}
		if time.Now().After(end) {
			return greeting{}, err
		}
	}
}

func at(a netip.Addr, port int) string { return netip.AddrPortFrom(a, uint16(port)).String() }

// waitHealthy waits until exactly these members get a rule's connections.
func (w *lab) waitHealthy(rule string, members ...*machine) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), generous)
	defer cancel()
	var last []wiring.Balancer
	err := w.fabric.Wait(ctx, func(all []wiring.Balancer) bool {
		last = all
		for _, b := range all {
			if b.Rule.Name() == rule {
				return !slices.ContainsFunc(members, func(m *machine) bool {
					return !slices.Contains(b.Healthy, m.v4) && !slices.Contains(b.Healthy, m.v6)
				}) && len(b.Healthy) == len(members)
			}
		}
		return false
	})
	if err != nil {
		w.Fatalf("rule %s: %v: %v", rule, err, last)
	}
}
