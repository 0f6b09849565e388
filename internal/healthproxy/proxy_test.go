package healthproxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pires/go-proxyproto"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for an event.
const patience = time.Minute

// healthServer stands in for kube-proxy's health server.
type healthServer struct {
	*httptest.Server
	mu     sync.Mutex
	status int
	asked  []*http.Request
}

func newHealthServer(t *testing.T) *healthServer {
	s := &healthServer{status: http.StatusOK}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, r)
		if s.status == 0 { // unavailable
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(s.status)
		fmt.Fprintf(w, `{"path":%q}`, r.URL.String())
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *healthServer) says(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *healthServer) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// running is a proxy with a real socket.
type running struct {
	address  string
	registry *prometheus.Registry
	lines    *lines
	stop     func() error // stops the proxy and returns its error
}

func serve(t *testing.T, target string) *running {
	t.Helper()
	r := &running{registry: prometheus.NewRegistry(), lines: &lines{}}
	metrics, err := NewMetrics(r.registry)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Config{Target: to, Patience: patience, Metrics: metrics, Log: slog.New(slog.NewTextHandler(r.lines, nil))})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, listener) }()
	r.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// dial opens a connection and sends a header.
func (r *running) dial(t *testing.T, header []byte) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(header); err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a request and reads the response.
func ask(t *testing.T, c net.Conn, method, path string) (status int, body string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: 10.0.0.4:10356\r\nUser-Agent: Load Balancer Agent\r\n\r\n", method,
		path); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// counted returns the metrics that are not 0.
func (r *running) counted(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "kaz_health_probe_proxy_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			if v := m.GetCounter().GetValue(); v > 0 {
				counted[name] = v
			}
		}
	}
	return counted
}

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

var (
	from = &net.TCPAddr{IP: net.IPv4(168, 63, 129, 16), Port: 51234}
	to   = &net.TCPAddr{IP: net.IPv4(10, 0, 0, 4), Port: 10356}
)

func format(t testing.TB, h *proxyproto.Header, tlvs ...proxyproto.TLV) []byte {
	t.Helper()
	if err := h.SetTLVs(tlvs); err != nil {
		t.Fatal(err)
	}
	b, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestProbes checks that probes with any valid header get kube-proxy's response, and that kube-proxy
// receives a plain request.
func TestProbes(t *testing.T) {
	six := &net.TCPAddr{IP: net.ParseIP("fd00::4"), Port: 1}
	// Azure sends the id of the private endpoint's link in a TLV of type 0xEE.
	link := proxyproto.TLV{Type: 0xEE, Value: []byte{1, 0x67, 0x45, 0x23, 0x01}}
	for name, c := range map[string]struct {
		header  []byte
		version string
	}{
		"no header":               {nil, "none"},
		"version 1":               {[]byte("PROXY TCP4 168.63.129.16 10.0.0.4 51234 10356\r\n"), "v1"},
		"version 1, IPv6":         {[]byte("PROXY TCP6 fd00::10 fd00::4 51234 10356\r\n"), "v1"},
		"version 1, unknown":      {[]byte("PROXY UNKNOWN\r\n"), "v1"},
		"version 2":               {format(t, proxyproto.HeaderProxyFromAddrs(2, from, to)), "v2"},
		"version 2, IPv6":         {format(t, proxyproto.HeaderProxyFromAddrs(2, six, six)), "v2"},
		"version 2, Azure's link": {format(t, proxyproto.HeaderProxyFromAddrs(2, from, to), link), "v2"},
		"version 2, local": {format(t,
			&proxyproto.Header{Version: 2, Command: proxyproto.LOCAL, TransportProtocol: proxyproto.UNSPEC}), "v2"},
		"version 2, Unix addresses": {format(t, &proxyproto.Header{
			Version: 2, Command: proxyproto.PROXY, TransportProtocol: proxyproto.UnixStream,
			SourceAddr: &net.UnixAddr{Net: "unix", Name: "a"}, DestinationAddr: &net.UnixAddr{Net: "unix", Name: "b"},
		}), "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHealthServer(t)
			r := serve(t, s.URL)
			conn := r.dial(t, c.header)
			if status, body := ask(t, conn, "GET", "/healthz?verbose=1"); status != 200 || body != `{"path":"/healthz?verbose=1"}` {
				t.Error(status, body)
			}
			// The header belongs to the connection: the second probe has none.
			s.says(http.StatusServiceUnavailable)
			if status, body := ask(t, conn, "GET", "/livez"); status != 503 || body != `{"path":"/livez"}` {
				t.Error(status, body)
			}
			if status, _ := ask(t, conn, "HEAD", "/healthz"); status != 503 {
				t.Error(status)
			}
			for _, asked := range s.requests() {
				if asked.Host != strings.TrimPrefix(s.URL, "http://") || asked.Header.Get("X-Forwarded-For") != "" ||
					asked.UserAgent() != "Load Balancer Agent" {
					t.Errorf("the health server was asked %s %v", asked.Host, asked.Header)
				}
			}
			want := map[string]float64{"probes_total " + c.version + " healthy": 1, "probes_total " + c.version + " unhealthy": 2}
			if diff := cmp.Diff(want, r.counted(t)); diff != "" {
				t.Error(diff)
			}
			if n := r.lines.count("health server answers"); n != 2 {
				t.Errorf("%d lines, want one for each change", n)
			}
		})
	}
}

// TestMalformedHeaders checks that an invalid header closes its own connection only.
func TestMalformedHeaders(t *testing.T) {
	s := newHealthServer(t)
	r := serve(t, s.URL)
	v2 := string(proxyproto.SIGV2)
	bad := map[string]string{
		"no transport":              "PROXY\r\n",
		"unknown transport":         "PROXY UDP4 1.2.3.4 1.2.3.4 1 1\r\n",
		"address of another family": "PROXY TCP4 fd00::1 1.2.3.4 1 1\r\n",
		"no port":                   "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
		"no carriage return":        "PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n",
		"too long":                  "PROXY UNKNOWN " + strings.Repeat("f", 200) + "\r\n",
		"version 3":                 v2 + "\x31\x11\x00\x0c123456789012",
		"unknown family":            v2 + "\x21\x13\x00\x0c123456789012",
		"too short for IPv4":        v2 + "\x21\x11\x00\x03123",
		"longer than anything":      v2 + "\x21\x11\xff\xff123456789012",
	}
	for name, header := range bad {
		c := r.dial(t, []byte(header+"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"))
		// The connection may be reset because of unread data.
		if answer, _ := io.ReadAll(c); len(answer) > 0 {
			t.Errorf("%s: answered %q", name, answer)
		}
	}
	if status, _ := ask(t, r.dial(t, nil), "GET", "/healthz"); status != 200 {
		t.Error("another connection:", status)
	}
	if got := r.counted(t); got["malformed_headers_total"] != float64(len(bad)) {
		t.Error(got)
	}
	if n := len(s.requests()); n != 1 {
		t.Errorf("the health server was asked %d times, want once", n)
	}
	if n := r.lines.count("level=WARN"); n != 1 {
		t.Errorf("%d warnings, want one", n)
	}
}

// TestHealthServerAway checks that probes fail without kube-proxy, and that each change of state is
// logged.
func TestHealthServerAway(t *testing.T) {
	s := newHealthServer(t)
	r := serve(t, s.URL)
	for _, c := range []struct{ says, status int }{{200, 200}, {0, 503}, {0, 503}, {404, 404}, {404, 404}, {0, 503}} {
		s.says(c.says)
		status, body := ask(t, r.dial(t, nil), "GET", "/healthz")
		if status != c.status || (c.says == 0) != strings.Contains(body, "kube-proxy's health server does not answer") {
			t.Fatal(status, body)
		}
	}
	if r.lines.count("health server does not answer, probes fail") != 2 || r.lines.count("health server answers") != 2 {
		t.Error(r.lines.text.String())
	}
	if diff := cmp.Diff(map[string]float64{"probes_total none healthy": 1, "probes_total none unreachable": 3,
		"probes_total none unhealthy": 2}, r.counted(t)); diff != "" {
		t.Error(diff)
	}
}

// TestConnectionRefused checks a port without a listener.
func TestConnectionRefused(t *testing.T) {
	s := newHealthServer(t)
	s.Close()
	if status, _ := ask(t, serve(t, s.URL).dial(t, nil), "GET", "/healthz"); status != 503 {
		t.Error(status)
	}
}

// TestMethods checks that only methods of probes are forwarded.
func TestMethods(t *testing.T) {
	s := newHealthServer(t)
	r := serve(t, s.URL)
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
		c := r.dial(t, nil)
		fmt.Fprintf(c, "%s /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", method)
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusMethodNotAllowed || answer.Header.Get("Allow") != "GET, HEAD" {
			t.Error(method, answer.Status)
		}
	}
	if n := len(s.requests()); n > 0 {
		t.Errorf("the health server was asked %d times", n)
	}
}

func TestBadTargets(t *testing.T) {
	for _, target := range []*url.URL{nil, {Scheme: "https", Host: "localhost:1"}, {Scheme: "http"}} {
		if _, err := New(Config{Target: target, Log: slog.New(slog.DiscardHandler)}); err == nil ||
			!strings.Contains(err.Error(), "must be http://HOST:PORT") {
			t.Error(target, err)
		}
	}
	if _, err := New(Config{Target: &url.URL{Scheme: "http", Host: "localhost:1"}, Patience: -1}); err == nil ||
		!strings.Contains(err.Error(), "must be more than 0") {
		t.Error(err)
	}
}
