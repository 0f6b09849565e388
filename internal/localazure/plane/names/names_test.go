package names_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/names"
	"kaz/internal/localazure/providers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	group    = azure.GroupID(core.DefaultSubscription, "rg")
	vnet     = group.Resource("Microsoft.Network/virtualNetworks", "net")
	platform = netip.MustParseAddr("168.63.129.16")
)

// start returns the name server of a network with the machine web (10.0.0.4). A machine far is in another network, and
// shop is the name of the public address 198.18.x.y.
func start(t *testing.T) (*names.Server, *net.Resolver, string) {
	t.Helper()
	s, resolver, address, _ := startAzure(t)
	return s, resolver, address
}

// startAzure is start, and returns the local Azure besides.
func startAzure(t *testing.T) (*names.Server, *net.Resolver, string, *core.Emulator) {
	t.Helper()
	e, err := core.New(core.Options{Providers: providers.All(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	put := func(id azure.ID, body string) { t.Helper(); put(t, e, id, body) }
	put(group, `{"location":"westeurope"}`)
	other := group.Resource("Microsoft.Network/virtualNetworks", "other")
	for name, network := range map[string]azure.ID{"web": vnet, "far": other} {
		put(network,
			`{"location":"westeurope","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"default",
				"properties":{"addressPrefix":"10.0.0.0/24"}}]}}`)
		nic := group.Resource("Microsoft.Network/networkInterfaces", name)
		put(nic, `{"location":"westeurope","properties":{"ipConfigurations":[{"name":"ip","properties":{"subnet":{"id":"`+
			string(network.Child("subnets", "default"))+`"}}}]}}`)
		put(group.Resource("Microsoft.Compute/virtualMachines",
			name), `{"location":"westeurope","properties":{"hardwareProfile":{"vmSize":"Standard_D2s_v5"},
			"osProfile":{"computerName":"`+strings.ToUpper(name)+`","adminUsername":"me","adminPassword":"P4ssword-only-here"},
			"storageProfile":{"imageReference":{"publisher":"Canonical","offer":"ubuntu-24_04-lts","sku":"server","version":"latest"},
			"osDisk":{"createOption":"FromImage"}},
			"networkProfile":{"networkInterfaces":[{"id":"`+string(nic)+`"}]}}}`)
	}
	put(group.Resource("Microsoft.Network/publicIPAddresses", "shop"),
		`{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static",
			"dnsSettings":{"domainNameLabel":"shop"}}}`)

	s := &names.Server{Network: vnet, World: e.Look, At: platform,
		Own: func(host string) bool { return strings.HasSuffix(host, ".azurecr.io") }}
	address := serve(t, s)
	return s, &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, protocol, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, protocol, address)
	}}, address, e
}

// put writes a resource.
func put(t *testing.T, e *core.Emulator, id azure.ID, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://management.azure.com"+string(id)+
		"?api-version=2024-05-01", bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := e.Transport().RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		var text bytes.Buffer
		_, _ = text.ReadFrom(answer.Body)
		t.Fatalf("%s: %s: %s", id, answer.Status, &text)
	}
}

// serve serves until the end of the test, at the address that it returns.
func serve(t *testing.T, s *names.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(t.Context(), l, p) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func TestNames(t *testing.T) {
	_, resolver, _ := start(t)
	for name, want := range map[string]string{
		"web.internal.cloudapp.net.":              "10.0.0.4",
		"WEB.internal.CLOUDAPP.net.":              "10.0.0.4",
		"far.internal.cloudapp.net.":              "", // in another network
		"images.azurecr.io.":                      "168.63.129.16",
		"shop.westeurope.cloudapp.azure.com.":     "198.",
		"nothing.westeurope.cloudapp.azure.com.":  "",
		"example.com.":                            "",
		"x.web.internal.cloudapp.net.":            "",
		strings.Repeat("long.", 40) + "internal.": "",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resolver.LookupNetIP(t.Context(), "ip", name)
			if want == "" {
				if failure, ok := errors.AsType[*net.DNSError](err); !ok || !failure.IsNotFound {
					t.Errorf("%v, %v, want that it is not found", got, err)
				}
				return
			}
			if err != nil || len(got) != 1 || !strings.HasPrefix(got[0].Unmap().String(), want) {
				t.Errorf("%v, %v, want %s", got, err, want)
			}
		})
	}
	if got, err := resolver.LookupAddr(t.Context(), "10.0.0.4"); err != nil || !slices.Equal(got, []string{"web.internal.cloudapp.net."}) {
		t.Errorf("the name of 10.0.0.4: %v, %v", got, err)
	}
	if got, err := resolver.LookupAddr(t.Context(), "fd00::4"); err == nil {
		t.Errorf("the name of an unused address: %v", got)
	}
}

// TCP gives the same replies, and more than one in a connection.
func TestConnection(t *testing.T) {
	_, resolver, address := start(t)
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	resolver.Dial = func(context.Context, string, string) (net.Conn, error) { return kept{c}, nil }
	for range 3 {
		got, err := resolver.LookupNetIP(t.Context(), "ip4", "web.internal.cloudapp.net.")
		if err != nil || len(got) != 1 {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// kept returns a connection that its user does not close.
type kept struct{ net.Conn }

func (kept) Close() error { return nil }

// Messages that are no query, and queries without an answer, get different replies.
func TestOdd(t *testing.T) {
	s, _, _ := start(t)
	question := func(change func(*dnsmessage.Message)) []byte {
		m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true}, Questions: []dnsmessage.Question{{
			Name: dnsmessage.MustNewName("web.internal.cloudapp.net."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET,
		}}}
		change(&m)
		text, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, c := range map[string]struct {
		change  func(*dnsmessage.Message)
		code    dnsmessage.RCode
		answers int
	}{
		"address":      {func(*dnsmessage.Message) {}, dnsmessage.RCodeSuccess, 1},
		"all":          {func(m *dnsmessage.Message) { m.Questions[0].Type = dnsmessage.TypeALL }, dnsmessage.RCodeSuccess, 1},
		"no such kind": {func(m *dnsmessage.Message) { m.Questions[0].Type = dnsmessage.TypeMX }, dnsmessage.RCodeSuccess, 0},
		"other class":  {func(m *dnsmessage.Message) { m.Questions[0].Class = dnsmessage.ClassCHAOS }, dnsmessage.RCodeRefused, 0},
		"two questions": {func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) },
			dnsmessage.RCodeFormatError, 0},
		"an update": {func(m *dnsmessage.Message) { m.OpCode = 5 }, dnsmessage.RCodeNotImplemented, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got dnsmessage.Message
			if err := got.Unpack(s.Answer(question(c.change))); err != nil {
				t.Fatal(err)
			}
			if got.RCode != c.code || len(got.Answers) != c.answers || got.ID != 7 || !got.Response {
				t.Errorf("%+v, want %s and %d answers", got, c.code, c.answers)
			}
		})
	}
	for name, message := range map[string][]byte{"nothing": nil, "noise": []byte("noise"),
		"an answer": question(func(m *dnsmessage.Message) { m.Response = true })} {
		if got := s.Answer(message); got != nil {
			t.Errorf("%s is answered with %q", name, got)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	s := &names.Server{Network: vnet, At: platform, Own: func(string) bool { return true }, World: func(func(behaviour.World)) {}}
	m := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("a.azurecr.io."), Type: dnsmessage.TypeA,
		Class: dnsmessage.ClassINET}}}
	text, err := m.Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, message []byte) {
		if answer := s.Answer(message); answer != nil {
			var got dns.Msg // dnsmessage refuses labels with a dot in them
			if err := got.Unpack(answer); err != nil || !got.Response {
				t.Errorf("%q is answered with %q: %v", message, answer, err)
			}
		}
	})
}
