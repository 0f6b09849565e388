package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/gateway"
)

// sockets is a network with frontends at sockets of files: a test opens more connections than there are ports.
type sockets struct {
	gateway.Loopback
	at string
}

// fromFile is a connection of a client that has an address, as over TCP.
type fromFile struct {
	*net.UnixConn
	client netip.AddrPort
}

func (c fromFile) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.client) }

// fileListener gives the connections the addresses of clients, in their order.
type fileListener struct {
	*net.UnixListener
	accepted int
}

func (l *fileListener) Accept() (net.Conn, error) {
	c, err := l.AcceptUnix()
	if err != nil {
		return nil, err
	}
	l.accepted++
	return fromFile{c, clientOf(l.accepted)}, nil
}

// clientOf is the address of the client with the n-th connection.
func clientOf(n int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n >> 16)}), uint16(n))
}

func (s *sockets) Listen(context.Context, azure.ID, netip.AddrPort) (net.Listener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: s.at})
	if err != nil {
		return nil, err
	}
	return &fileListener{UnixListener: l}, nil
}

// panics counts the log entries about panics, which net/http recovers from.
type panics struct {
	slog.Handler
	mu    sync.Mutex
	texts []string
}

func (p *panics) Enabled(context.Context, slog.Level) bool { return true }

func (p *panics) Handle(_ context.Context, r slog.Record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.Contains(r.Message, "panic") {
		p.texts = append(p.texts, r.Message)
	}
	return nil
}

// seen are the requests that the backends got and that no rule of the gateway leads to them.
type seen struct {
	mu    sync.Mutex
	wrong []string
	// asked has what each client asked for, by its address. A request can come to a backend when its connection is closed already.
	asked   map[string][]string
	clients int
}

// mostClients is how many clients are remembered.
const mostClients = 1000

func question(method, host, requestURI string) string { return method + " " + host + " " + requestURI }

// asks notes the requests of a stream that the gateway is to see.
func (s *seen) asks(requests []*http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients++
	delete(s.asked, clientOf(s.clients-mostClients).String())
	for _, r := range requests {
		client := clientOf(s.clients).String()
		s.asked[client] = append(s.asked[client], question(r.Method, r.Host, r.URL.RequestURI()))
	}
}

// backend notes a request that is not for the backend.
func (s *seen) backend(of func(host, path string) bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "127.0.0.1" && r.Header.Get("X-Original-Host") == "" {
			return // a probe
		}
		_, _ = io.Copy(io.Discard, r.Body) // an error means that the client is gone
		s.mu.Lock()
		defer s.mu.Unlock()
		asked := question(r.Method, r.Header.Get("X-Original-Host"), r.URL.RequestURI())
		forwarded := r.Header.Get("X-Forwarded-For")
		client := forwarded[strings.LastIndexByte(forwarded, ' ')+1:]
		if !of(r.Host, r.URL.Path) || !slices.Contains(s.asked[client], asked) {
			s.wrong = append(s.wrong, client+" "+asked+" with the host "+r.Host)
		}
	}
}

// take returns what was wrong since the last call.
func (s *seen) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	wrong := s.wrong
	s.wrong = nil
	return wrong
}

// requestsIn reads the requests of a stream of bytes. The result whole is false if the stream does not end behind a request.
func requestsIn(stream []byte) (all []*http.Request, whole bool) {
	in := bufio.NewReader(bytes.NewReader(stream))
	for {
		if _, err := in.Peek(1); err != nil {
			return all, true
		}
		r, err := http.ReadRequest(in)
		if err != nil {
			return all, false
		}
		all = append(all, r)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return all, false
		}
	}
}

// underApp reports whether a path means something below /app, as the path rule of the gateway says.
func underApp(requested string) bool {
	return strings.HasPrefix(requested, "/") && strings.HasPrefix(strings.ToLower(path.Clean(requested)+"/"), "/app/")
}

// fuzzed starts a gateway with two listeners: app.test leads to backend a for paths below /app, and redirects others. All hosts of
// wild.test lead to backend b.
func fuzzed(f *testing.F, s *seen, log *panics) (socket string) {
	f.Helper()
	at := &sockets{at: filepath.Join(f.TempDir(), "s")}
	w := startAt(f, at, slog.New(log))
	b := w.backends("a", "b")
	b[0].handler = s.backend(func(host, path string) bool { return strings.EqualFold(host, "app.test") && underApp(path) })
	b[1].handler = s.backend(func(host, _ string) bool { return strings.HasSuffix(strings.ToLower(host), ".wild.test") })
	p := site(b[0].address)
	p["backendAddressPools"] = list{pool("a", b[0].address), pool("b", b[1].address)}
	p["httpListeners"] = list{child("app", listener("80", "app.test")), child("wild", listener("80", "*.wild.test"))}
	p["redirectConfigurations"] = list{child("away", object{"redirectType": "Found", "targetUrl": "http://other.test/",
		"includePath": true, "includeQueryString": true})}
	p["urlPathMaps"] = list{child("map", object{"defaultRedirectConfiguration": ref("redirectConfigurations", "away"),
		"pathRules": list{pathRule("app", "a", "/app/*")}})}
	p["requestRoutingRules"] = list{child("wild", rule(20, "wild", "b")), child("app", object{"ruleType": "PathBasedRouting",
		"priority": 10, "httpListener": ref("httpListeners", "app"), "urlPathMap": ref("urlPathMaps", "map")})}
	w.serve(p)
	return at.at
}

// lastRequest asks the gateway to close the connection.
const lastRequest = "GET / HTTP/1.1\r\nHost: none.test\r\nConnection: close\r\n\r\n"

// FuzzStream sends any bytes to a listener for HTTP. Each connection ends with an answer or is closed, and a backend gets only what
// was asked for and what a rule leads to it.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		"GET /app/x?y=1 HTTP/1.1\r\nHost: app.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: app.test:80\r\n\r\nPOST /app/ HTTP/1.1\r\nHost: app.test\r\nContent-Length: 3\r\n\r\nabc",
		"POST /app/ HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nTrailer: x\r\n\r\n",
		"GET http://x.wild.test/%2e%2e/a HTTP/1.1\r\nHost: app.test\r\n\r\n", "GET /app/../x HTTP/1.1\r\nHost: app.test\r\n\r\n",
		"POST /app/ HTTP/1.1\r\nHost: app.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
			"GET /x HTTP/1.1\r\nHost: a.wild.test\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: y.wild.test\r\n\r\n", "CONNECT app.test:80 HTTP/1.1\r\nHost: app.test\r\n\r\n",
		"GET /app/ws HTTP/1.1\r\nHost: app.test\r\nConnection: upgrade, X-Original-Host\r\n" +
			"Upgrade: websocket\r\nExpect: 100-continue\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET //app//x HTTP/1.0\r\n\r\n", "HEAD /APP/ HTTP/1.1\nHost: APP.test\n\n", "\x16\x03\x01\x00\xff",
	} {
		f.Add([]byte(seed))
	}
	s, log := &seen{asked: map[string][]string{}}, &panics{}
	socket := fuzzed(f, s, log)
	f.Fuzz(func(t *testing.T, stream []byte) {
		requests, whole := requestsIn(stream)
		s.asks(requests)
		c, err := (&net.Dialer{}).DialContext(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if whole {
			stream = append(bytes.Clone(stream), lastRequest...)
		}
		go func() {
			_, _ = c.Write(stream) // the gateway may close the connection first
			if !whole {
				_ = c.(*net.UnixConn).CloseWrite() // as above
			}
		}()
		answer, err := io.ReadAll(c)
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			t.Fatalf("neither closed nor answered for 20 s: %q", answer)
		}
		if len(answer) > 0 && !bytes.HasPrefix(answer, []byte("HTTP/1.")) {
			t.Errorf("the answer is %q", answer)
		}
		if whole && len(answer) == 0 && err == nil {
			t.Error("no answer")
		}
		if wrong := s.take(); len(wrong) > 0 {
			t.Errorf("a backend got %q", wrong)
		}
		log.mu.Lock()
		defer log.mu.Unlock()
		if len(log.texts) > 0 {
			t.Error(log.texts)
			log.texts = nil
		}
	})
}
