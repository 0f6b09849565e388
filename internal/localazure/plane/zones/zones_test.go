package zones_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/zones"
	"kaz/internal/localazure/providers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	group = azure.GroupID(core.DefaultSubscription, "rg")
	zone  = group.Resource("Microsoft.Network/dnszones", "Example.com")
)

// nameServer is a local Azure with the zone example.com and its name server.
type nameServer struct {
	t       *testing.T
	azure   *core.Emulator
	address string
}

func start(t *testing.T) *nameServer {
	t.Helper()
	e, err := core.New(core.Options{Providers: providers.All(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	w := &nameServer{t: t, azure: e}
	w.do(http.MethodPut, group, `{"location":"westeurope"}`)
	w.do(http.MethodPut, zone, `{"location":"global"}`)
	w.serve()
	return w
}

// serve starts a name server on a port of the loopback address, until the end of the test.
func (w *nameServer) serve() {
	w.t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.address = l.Addr().String()
	p, err := config.ListenPacket(w.t.Context(), "udp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := &zones.Server{World: w.azure.Look, At: netip.MustParseAddr("127.0.0.1"), Log: slog.New(slog.DiscardHandler)}
	go func() { done <- s.Serve(ctx, l, p) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

func (w *nameServer) do(method string, id azure.ID, body string) {
	w.t.Helper()
	version := "2023-07-01-preview"
	if !id.Under(zone) {
		version = "2024-05-01"
	}
	w.send(method, id, body, version)
}

// send is do with an API version.
func (w *nameServer) send(method string, id azure.ID, body, version string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, "https://management.azure.com"+string(id)+"?api-version="+version,
		bytes.NewBufferString(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := w.azure.Transport().RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		var text bytes.Buffer
		_, _ = text.ReadFrom(answer.Body)
		w.t.Fatalf("%s %s: %s: %s", method, id, answer.Status, &text)
	}
}

// put writes a record set with a TTL of a minute.
func (w *nameServer) put(kind, host, properties string) {
	w.t.Helper()
	w.do(http.MethodPut, zone.Child(kind, host), `{"properties":{"TTL":60,`+properties+`}}`)
}

// ask asks over a protocol, "udp" or "tcp".
func (w *nameServer) ask(protocol, name string, kind uint16, change ...func(*dns.Msg)) *dns.Msg {
	w.t.Helper()
	m := new(dns.Msg).SetQuestion(name, kind)
	for _, c := range change {
		c(m)
	}
	reply, _, err := (&dns.Client{Net: protocol}).ExchangeContext(w.t.Context(), m, w.address)
	if err != nil {
		w.t.Fatalf("%s %s: %v", name, dns.TypeToString[kind], err)
	}
	return reply
}

// text returns the code of a reply, "aa" if it is authoritative, and its records, one a line.
func text(m *dns.Msg) string {
	lines := []string{dns.RcodeToString[m.Rcode]}
	if m.Authoritative {
		lines[0] += " aa"
	}
	add := func(section string, all []dns.RR) {
		for _, rr := range all {
			if rr.Header().Rrtype != dns.TypeOPT {
				lines = append(lines, section+strings.ReplaceAll(rr.String(), "\t", " "))
			}
		}
	}
	add("", m.Answer)
	add("ns ", m.Ns)
	add("extra ", m.Extra)
	return strings.Join(lines, "\n")
}

// fill writes record sets of all types.
func (w *nameServer) fill() {
	w.t.Helper()
	w.put("A", "www", `"ARecords":[{"ipv4Address":"192.0.2.1"},{"ipv4Address":"192.0.2.2"}]`)
	w.put("AAAA", "www", `"AAAARecords":[{"ipv6Address":"2001:db8::1"}]`)
	w.put("CNAME", "alias", `"CNAMERecord":{"cname":"www.example.com"}`)
	w.put("CNAME", "out", `"CNAMERecord":{"cname":"www.example.net"}`)
	w.put("CNAME", "gone", `"CNAMERecord":{"cname":"none.example.com"}`)
	w.put("CNAME", "ping", `"CNAMERecord":{"cname":"pong.example.com"}`)
	w.put("CNAME", "pong", `"CNAMERecord":{"cname":"ping.example.com"}`)
	w.put("MX", "@", `"MXRecords":[{"preference":10,"exchange":"mail.example.com"}]`)
	w.put("PTR", "ptr", `"PTRRecords":[{"ptrdname":"www.example.com"}]`)
	w.put("SRV", "_sip._tcp", `"SRVRecords":[{"priority":1,"weight":2,"port":5060,"target":"www.example.com"}]`)
	w.put("TXT", "txt", `"TXTRecords":[{"value":["a \"b\" \\ c","d"]}]`)
	w.put("CAA", "caa", `"caaRecords":[{"flags":0,"tag":"issue","value":"ca.example"}]`)
	w.put("DS", "signed", `"DSRecords":[{"keyTag":60485,"algorithm":5,"digest":{"algorithmType":1,"value":"2BB183AF5F22588179A53B0A98631FAD1A292118"}}]`)
	w.put("NAPTR", "phone", `"NAPTRRecords":[{"order":100,"preference":10,"flags":"U","services":"E2U+sip","regexp":"!^.*$!sip:a\\1@b.example!",`+
		`"replacement":""}]`)
	w.put("TLSA", "_443._tcp", `"TLSARecords":[{"usage":3,"selector":1,"matchingType":1,"certAssociationData":"6EC8A4B7"}]`)
	w.put("A", "*.wild", `"ARecords":[{"ipv4Address":"192.0.2.3"}]`)
	w.put("TXT", "one.wild", `"TXTRecords":[{"value":["x"]}]`)
	w.put("A", "deep.below", `"ARecords":[{"ipv4Address":"192.0.2.4"}]`)
	w.put("NS", "child", `"NSRecords":[{"nsdname":"ns.child.example.com"},{"nsdname":"ns.example.net"}]`)
	w.put("A", "ns.child", `"ARecords":[{"ipv4Address":"192.0.2.5"}]`)
	w.put("A", "same", `"targetResource":{"id":"`+string(zone.Child("A", "www"))+`"}`)
}

func TestAnswers(t *testing.T) {
	w := start(t)
	w.fill()
	soa := "ns example.com. 300 IN SOA " + w.nameServers()[0] + " azuredns-hostmaster.microsoft.com. 1 3600 300 2419200 300"
	for _, test := range []struct {
		name string
		kind uint16
		want string
	}{
		{"www.example.com.", dns.TypeA, "NOERROR aa\nwww.example.com. 60 IN A 192.0.2.1\nwww.example.com. 60 IN A 192.0.2.2"},
		{"WWW.Example.COM.", dns.TypeAAAA, "NOERROR aa\nWWW.Example.COM. 60 IN AAAA 2001:db8::1"},
		{"example.com.", dns.TypeMX, "NOERROR aa\nexample.com. 60 IN MX 10 mail.example.com."},
		{"ptr.example.com.", dns.TypePTR, "NOERROR aa\nptr.example.com. 60 IN PTR www.example.com."},
		{"_sip._tcp.example.com.", dns.TypeSRV, "NOERROR aa\n_sip._tcp.example.com. 60 IN SRV 1 2 5060 www.example.com."},
		{"txt.example.com.", dns.TypeTXT, `NOERROR aa` + "\n" + `txt.example.com. 60 IN TXT "a \"b\" \\ c" "d"`},
		{"caa.example.com.", dns.TypeCAA, "NOERROR aa\n" + `caa.example.com. 60 IN CAA 0 issue "ca.example"`},
		{"signed.example.com.", dns.TypeDS, "NOERROR aa\nsigned.example.com. 60 IN DS 60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118"},
		{"phone.example.com.", dns.TypeNAPTR, "NOERROR aa\n" + `phone.example.com. 60 IN NAPTR 100 10 "U" "E2U+sip" "!^.*$!sip:a\\1@b.example!" .`},
		{"_443._tcp.example.com.", dns.TypeTLSA, "NOERROR aa\n_443._tcp.example.com. 60 IN TLSA 3 1 1 6ec8a4b7"},
		{"alias.example.com.", dns.TypeAAAA, "NOERROR aa\nalias.example.com. 60 IN CNAME www.example.com.\n" +
			"www.example.com. 60 IN AAAA 2001:db8::1"},
		{"alias.example.com.", dns.TypeCNAME, "NOERROR aa\nalias.example.com. 60 IN CNAME www.example.com."},
		{"out.example.com.", dns.TypeA, "NOERROR aa\nout.example.com. 60 IN CNAME www.example.net."},
		{"gone.example.com.", dns.TypeA, "NXDOMAIN aa\ngone.example.com. 60 IN CNAME none.example.com.\n" + soa},
		{"ping.example.com.", dns.TypeA, "NOERROR aa\nping.example.com. 60 IN CNAME pong.example.com.\n" +
			"pong.example.com. 60 IN CNAME ping.example.com."},
		{"none.example.com.", dns.TypeA, "NXDOMAIN aa\n" + soa},
		{"www.example.com.", dns.TypeTXT, "NOERROR aa\n" + soa},
		{"below.example.com.", dns.TypeA, "NOERROR aa\n" + soa},
		{"any.wild.example.com.", dns.TypeA, "NOERROR aa\nany.wild.example.com. 60 IN A 192.0.2.3"},
		{"x.y.wild.example.com.", dns.TypeA, "NOERROR aa\nx.y.wild.example.com. 60 IN A 192.0.2.3"},
		{"one.wild.example.com.", dns.TypeA, "NOERROR aa\n" + soa},
		{"x.one.wild.example.com.", dns.TypeA, "NXDOMAIN aa\n" + soa},
		{"x.child.example.com.", dns.TypeA, "NOERROR\nns child.example.com. 60 IN NS ns.child.example.com.\n" +
			"ns child.example.com. 60 IN NS ns.example.net.\nextra ns.child.example.com. 60 IN A 192.0.2.5"},
		{"same.example.com.", dns.TypeA, "NOERROR aa\nsame.example.com. 60 IN A 192.0.2.1\nsame.example.com. 60 IN A 192.0.2.2"},
		{"www.example.org.", dns.TypeA, "REFUSED"},
		{"@.example.com.", dns.TypeMX, "NXDOMAIN aa\n" + soa},
		{w.nameServers()[1], dns.TypeA, "NOERROR aa\n" + w.nameServers()[1] + " 3600 IN A 127.0.0.1"},
	} {
		for _, protocol := range []string{"udp", "tcp"} {
			if diff := cmp.Diff(test.want, text(w.ask(protocol, test.name, test.kind))); diff != "" {
				t.Errorf("%s %s over %s (-want +got):\n%s", test.name, dns.TypeToString[test.kind], protocol, diff)
			}
		}
	}
}

// nameServers returns the names of the zone's name servers.
func (w *nameServer) nameServers() (names []string) {
	w.azure.Look(func(nameServer behaviour.World) {
		doc, _ := nameServer.Get(zone)
		names = behaviour.Texts(doc, "properties.nameServers")
	})
	return names
}

// A change is answered at once, and the alias of a deleted address is empty.
func TestChanges(t *testing.T) {
	w := start(t)
	ip := group.Resource("Microsoft.Network/publicIPAddresses", "ip")
	w.do(http.MethodPut, ip, `{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`)
	address := ""
	w.azure.Look(func(nameServer behaviour.World) {
		doc, _ := nameServer.Get(ip)
		address = behaviour.Text(doc, "properties.ipAddress")
	})
	w.put("A", "@", `"targetResource":{"id":"`+string(ip)+`"}`)
	if got, want := text(w.ask("udp", "example.com.", dns.TypeA)), "NOERROR aa\nexample.com. 60 IN A "+address; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	w.put("A", "a", `"ARecords":[{"ipv4Address":"192.0.2.1"}]`)
	for _, last := range []string{"7", "8"} {
		w.put("A", "a", `"ARecords":[{"ipv4Address":"192.0.2.`+last+`"}]`)
		if got := text(w.ask("udp", "a.example.com.", dns.TypeA)); !strings.HasSuffix(got, "192.0.2."+last) {
			t.Errorf("after the write of %s: %s", last, got)
		}
	}
	w.do(http.MethodDelete, zone.Child("A", "a"), "")
	if got := w.ask("udp", "a.example.com.", dns.TypeA); got.Rcode != dns.RcodeNameError {
		t.Errorf("after the deletion: %s", text(got))
	}
	child := group.Resource("Microsoft.Network/dnszones", "child.example.com")
	w.do(http.MethodPut, child, `{"location":"global"}`)
	if got := text(w.ask("udp", "x.child.example.com.", dns.TypeA)); !strings.Contains(got, "ns child.example.com. 300 IN SOA") {
		t.Errorf("the zone with the longest name answers: %s", got)
	}
}

// A datagram has at most the size that the client accepts. The client then asks over TCP.
func TestTruncation(t *testing.T) {
	w := start(t)
	var records []string
	for i := range 20 {
		records = append(records, fmt.Sprintf(`{"value":["%03d%s"]}`, i, strings.Repeat("x", 97)))
	}
	w.put("TXT", "long", `"TXTRecords":[`+strings.Join(records, ",")+`]`)
	for size, most := range map[uint16]int{0: 512, 100: 512, 1232: 1232, 4096: 1232} {
		got := w.ask("udp", "long.example.com.", dns.TypeTXT, func(m *dns.Msg) {
			if size > 0 {
				m.SetEdns0(size, false)
			}
		})
		got.Compress = true // as it was sent
		if !got.Truncated || got.Len() > most || (got.IsEdns0() != nil) != (size > 0) {
			t.Errorf("size %d: truncated %v, %d bytes, EDNS %v", size, got.Truncated, got.Len(), got.IsEdns0())
		}
	}
	if got := w.ask("tcp", "long.example.com.", dns.TypeTXT); got.Truncated || len(got.Answer) != len(records) {
		t.Errorf("over TCP: truncated %v, %d records", got.Truncated, len(got.Answer))
	}
}

func TestOddQueries(t *testing.T) {
	w := start(t)
	for name, test := range map[string]struct {
		change func(*dns.Msg)
		want   int
	}{
		"transfer": {func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAXFR }, dns.RcodeRefused},
		"class":    {func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }, dns.RcodeRefused},
		"notify":   {func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }, dns.RcodeNotImplemented},
		"version":  {func(m *dns.Msg) { m.SetEdns0(1232, false); m.IsEdns0().SetVersion(1) }, dns.RcodeBadVers},
	} {
		if got := w.ask("udp", "example.com.", dns.TypeA, test.change); got.Rcode != test.want {
			t.Errorf("%s: %s, want %s", name, dns.RcodeToString[got.Rcode], dns.RcodeToString[test.want])
		}
	}
}

// dig, which knows nothing of the local Azure, understands the answers.
func TestDig(t *testing.T) {
	dig, err := exec.LookPath("dig")
	if err != nil {
		t.Skip("dig is not installed (Debian package bind9-dnsutils)")
	}
	w := start(t)
	w.fill()
	host, port, err := net.SplitHostPort(w.address)
	if err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string][]string{
		"www.example.com A":         {"192.0.2.1", "192.0.2.2"},
		"alias.example.com AAAA":    {"www.example.com.", "2001:db8::1"},
		"a.wild.example.com A":      {"192.0.2.3"},
		"caa.example.com CAA":       {`0 issue "ca.example"`},
		"_sip._tcp.example.com SRV": {"1 2 5060 www.example.com."},
		"none.example.com A":        nil,
	} {
		args := append([]string{"@" + host, "-p", port, "+short"}, strings.Fields(question)...)
		out, err := exec.CommandContext(t.Context(), dig, args...).Output()
		if err != nil {
			t.Fatalf("dig %s: %v", question, err)
		}
		got := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
		if !slices.Equal(got, want) {
			t.Errorf("dig %s: %q, want %q", question, got, want)
		}
	}
}
