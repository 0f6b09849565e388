package gateway_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"software.sslmate.com/src/go-pkcs12"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/identity"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/behaviour/vault"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/gateway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	object = map[string]any
	list   = []any
)

const (
	networks = behaviourtest.Group + "/providers/Microsoft.Network"
	gateID   = networks + "/applicationGateways/g"
	private  = "10.0.0.100"
)

// gatewaySite is a local Azure with an application gateway, which listens at ports of this machine.
type gatewaySite struct {
	testing.TB
	azure   *behaviourtest.Azure
	network *gateway.Loopback
	service *gateway.Service
	public  netip.Addr
	clock   *clock
}

// clock is the time between probes and for draining. It passes when the test says so.
type clock struct {
	mu    sync.Mutex
	ended chan time.Time
}

func (c *clock) after(time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// pass lets all waits end.
func (c *clock) pass() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.ended)
	c.ended = make(chan time.Time)
}

func start(t testing.TB) *gatewaySite {
	t.Helper()
	network := &gateway.Loopback{}
	w := startAt(t, network, slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})))
	w.network = network
	return w
}

// startAt is start with a network and a logger.
func startAt(t testing.TB, at gateway.Network, log *slog.Logger) *gatewaySite {
	t.Helper()
	w := &gatewaySite{TB: t, clock: &clock{ended: make(chan time.Time)}}
	w.azure = behaviourtest.StartWith(t, core.Options{Providers: []behaviour.Provider{resources.Provider(), network.Provider(),
		vault.Provider(), identity.Provider()}})
	w.put(networks+"/virtualNetworks/v", object{"location": "eastus", "properties": object{
		"addressSpace": object{"addressPrefixes": list{"10.0.0.0/16"}},
		"subnets":      list{object{"name": "gateways", "properties": object{"addressPrefix": "10.0.0.0/24"}}}}})
	w.put(networks+"/publicIPAddresses/p", object{"location": "eastus", "sku": object{"name": "Standard"},
		"properties": object{"publicIPAllocationMethod": "Static"}})
	w.public = netip.MustParseAddr(behaviour.Text(w.get(networks+"/publicIPAddresses/p"), "properties.ipAddress"))
	w.service = gateway.Start(t.Context(), gateway.Options{Azure: w.azure, Network: at, After: w.clock.after, Log: log})
	t.Cleanup(func() {
		if err := w.service.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *gatewaySite) put(id string, body object) {
	w.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		w.Fatal(err)
	}
	if got := w.azure.Request("PUT", id, string(text)); got.Status >= http.StatusMultipleChoices {
		w.Fatalf("PUT %s: %d %v", id, got.Status, got.Body)
	}
}

func (w *gatewaySite) get(id string) object {
	w.Helper()
	return w.azure.Request("GET", id, "").Body
}

// serve writes the gateway and waits until it serves.
func (w *gatewaySite) serve(properties object) {
	w.Helper()
	w.put(gateID, object{"location": "eastus", "properties": properties})
	if err := w.service.Settle(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func ref(list, name string) object { return object{"id": gateID + "/" + list + "/" + name} }

func child(name string, properties object) object {
	return object{"name": name, "properties": properties}
}

// site are the properties of a gateway with a listener at port 80 for all hosts, and a rule that leads to the backends of the pool.
func site(backends ...string) object {
	return object{
		"sku":                     object{"name": "Standard_v2", "capacity": 1},
		"gatewayIPConfigurations": list{child("i", object{"subnet": object{"id": networks + "/virtualNetworks/v/subnets/gateways"}})},
		"frontendIPConfigurations": list{
			child("public", object{"publicIPAddress": object{"id": networks + "/publicIPAddresses/p"}}),
			child("private", object{"subnet": object{"id": networks + "/virtualNetworks/v/subnets/gateways"},
				"privateIPAllocationMethod": "Static", "privateIPAddress": private}),
		},
		"frontendPorts":                 list{child("80", object{"port": 80}), child("443", object{"port": 443})},
		"backendAddressPools":           list{pool("web", backends...)},
		"backendHttpSettingsCollection": list{child("set", setting(backends...))},
		"httpListeners":                 list{child("any", listener("80"))},
		"requestRoutingRules":           list{child("any", rule(10, "any", "web"))},
	}
}

// pool is a pool with the addresses of backends, which all have the same port.
func pool(name string, backends ...string) object {
	addresses := list{}
	for _, b := range backends {
		host, _, _ := net.SplitHostPort(b)
		addresses = append(addresses, object{"ipAddress": host})
	}
	return child(name, object{"backendAddresses": addresses})
}

func setting(backends ...string) object {
	port := 1
	if len(backends) > 0 {
		_, text, _ := net.SplitHostPort(backends[0])
		port, _ = strconv.Atoi(text)
	}
	return object{"port": port, "protocol": "Http"}
}

func listener(port string, hosts ...string) object {
	p := object{"protocol": "Http", "frontendIPConfiguration": ref("frontendIPConfigurations", "public"),
		"frontendPort": ref("frontendPorts", port)}
	if len(hosts) > 0 {
		p["hostNames"] = hosts
	}
	return p
}

func rule(priority int, listener, pool string) object {
	return object{"ruleType": "Basic", "priority": priority, "httpListener": ref("httpListeners", listener),
		"backendAddressPool": ref("backendAddressPools", pool), "backendHttpSettings": ref("backendHttpSettingsCollection", "set")}
}

// backend is a web server that says its name and what it was asked.
type backend struct {
	name    string
	address string
	handler http.HandlerFunc // nil answers with what it was asked
	server  *httptest.Server
}

// loopback are addresses of this machine, one for each backend.
func (w *gatewaySite) backends(names ...string) []*backend {
	w.Helper()
	var all []*backend
	port := "0"
	for i, name := range names {
		l, err := net.Listen("tcp", net.JoinHostPort(fmt.Sprintf("127.0.0.%d", i+2), port))
		if err != nil {
			w.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(l.Addr().String())
		b := &backend{name: name, address: l.Addr().String()}
		b.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(b.answer)}}
		b.server.Start()
		w.Cleanup(b.server.Close)
		all = append(all, b)
	}
	return all
}

func (b *backend) answer(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Backend", b.name)
	if b.handler != nil {
		b.handler(w, r)
		return
	}
	for name, values := range r.Header {
		for _, v := range values {
			w.Header().Add("Got-"+name, v)
		}
	}
	_, _ = fmt.Fprintf(w, "%s %s %s%s", b.name, r.Method, r.Host, r.URL.RequestURI())
}

// client connects to the frontends of the gateway, and follows no redirects.
func (w *gatewaySite) client() *http.Client {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(address)
			return w.network.Reach(ctx, network, net.JoinHostPort(w.public.String(), port))
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}
	w.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// reply is a response with its body.
type reply struct {
	*http.Response
	body string
}

// ask sends a GET to a URL, with headers as pairs of name and value.
func (w *gatewaySite) ask(c *http.Client, address string, header ...string) reply {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodGet, address, nil)
	if err != nil {
		w.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	got, err := c.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		w.Fatal(err)
	}
	return reply{got, string(body)}
}

// says checks the body of a reply to a GET.
func (w *gatewaySite) says(address, want string) {
	w.Helper()
	if got := w.ask(w.client(), address); got.body != want {
		w.Errorf("GET %s: %d %q, want %q", address, got.StatusCode, got.body, want)
	}
}

// status checks the status of a reply to a GET.
func (w *gatewaySite) status(address string, want int) reply {
	w.Helper()
	got := w.ask(w.client(), address)
	if got.StatusCode != want {
		w.Errorf("GET %s: %d %q, want %d", address, got.StatusCode, got.body, want)
	}
	return got
}

// pfx returns a new certificate for hosts with its key, in base64, and the certificate.
func pfx(t testing.TB, password string, hosts ...string) (string, *x509.Certificate, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: strings.Join(hosts, ",")}, DNSNames: hosts,
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 2)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	data, err := pkcs12.Modern.Encode(key, leaf, nil, password)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(data), leaf, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
