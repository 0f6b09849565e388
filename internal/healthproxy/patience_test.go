package healthproxy

import (
	"bufio"
	"context"
	"errors"
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
	"testing/synctest"
	"time"

	"github.com/pires/go-proxyproto"
)

// pipes is a listener without sockets, for simulated time.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 10356} }

// dial returns a connection that will be accepted.
func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	go func() {
		select {
		case p.conns <- there:
		case <-p.closed:
			there.Close()
		}
	}()
	return here
}

// answers is a health server without a socket.
type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func ok(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody, Request: r}, nil
}

// inTime runs a scenario in a bubble.
func inTime(t *testing.T, a answers, scenario func(*testing.T, *pipes)) {
	t.Helper()
	stoppedInTime(t, a, func(t *testing.T, listener *pipes, _ func()) { scenario(t, listener) })
}

// stoppedInTime runs a scenario that may stop the proxy.
func stoppedInTime(t *testing.T, a answers, scenario func(t *testing.T, listener *pipes, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := newPipes()
		p := newProxy(Config{Target: &url.URL{Scheme: "http", Host: "localhost:10256"}, Log: slog.New(slog.DiscardHandler)}, a)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Serve(ctx, listener) }()
		scenario(t, listener, cancel)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// untilClosed returns how long a connection stays open and what was read.
func untilClosed(t *testing.T, c net.Conn) (time.Duration, string) {
	t.Helper()
	begin := time.Now()
	text, err := io.ReadAll(c)
	if err != nil {
		t.Error(err)
	}
	return time.Since(begin), string(text)
}

// TestSilence checks that incomplete requests time out.
func TestSilence(t *testing.T) {
	for name, c := range map[string]struct {
		says string
		wait time.Duration
	}{
		"nothing at all":        {"", 2 * Patience},
		"half a signature":      {string(proxyproto.SIGV2[:6]), Patience}, // then it is a bad request
		"a header without end":  {string(proxyproto.SIGV2) + "\x21\x11\x00\x0c1", Patience},
		"half a request":        {"GET /healthz HTTP/1.1\r\nHost: a\r\n", Patience},
		"a header and no more":  {"PROXY UNKNOWN\r\n", Patience},
		"a header in two parts": {"PROXY UNK", 0},
	} {
		t.Run(name, func(t *testing.T) {
			inTime(t, ok, func(t *testing.T, listener *pipes) {
				conn := listener.dial()
				defer conn.Close()
				if c.says != "" {
					if _, err := io.WriteString(conn, c.says); err != nil {
						t.Fatal(err)
					}
				}
				took, text := untilClosed(t, conn)
				if took != c.wait || strings.Contains(text, "200 OK") {
					t.Errorf("closed after %s with %q, want after %s", took, text, c.wait)
				}
			})
		})
	}
}

// TestSlowHealthServer checks that a response slower than the timeout is a failure.
func TestSlowHealthServer(t *testing.T) {
	never := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	inTime(t, never, func(t *testing.T, listener *pipes) {
		c := listener.dial()
		defer c.Close()
		begin := time.Now()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if took := time.Since(begin); answer.StatusCode != 503 || took != Patience {
			t.Errorf("%s after %s", answer.Status, took)
		}
	})
}

// TestManyConnections checks that many idle connections of one source do not delay a probe of that source.
func TestManyConnections(t *testing.T) {
	inTime(t, ok, func(t *testing.T, listener *pipes) {
		for range maxConnections {
			c := listener.dial()
			defer c.Close()
		}
		synctest.Wait()
		begin := time.Now()
		c := listener.dial()
		defer c.Close()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if took := time.Since(begin); answer.StatusCode != 200 || took != 0 {
			t.Errorf("%s after %s, want at once", answer.Status, took)
		}
	})
}

// TestIdleConnectionsOfOthers checks that a probe is answered at once while others hold, and keep opening, connections of real sockets:
// without a word, in the middle of a header or of a request, with a body that does not come, or after a request.
func TestIdleConnectionsOfOthers(t *testing.T) {
	health := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer health.Close()
	target, err := url.Parse(health.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"silent": "", "half a header": "PROXY TCP4 ", "half a request": "GET /healthz HTTP/1.1\r\nHost:",
		"a body": "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n", "kept": "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		for _, sources := range []int{1, 200} {
			t.Run(fmt.Sprintf("%s of %d", name, sources), func(t *testing.T) { probeAmong(t, target, says, sources) })
		}
	}
}

// probeAmong probes while a number of sources hold 1,000 connections.
func probeAmong(t *testing.T, target *url.URL, says string, sources int) {
	p, err := New(Config{Target: target, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, listener) }()
	open := func(source int) net.Conn {
		from := &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(source))}
		c, err := (&net.Dialer{LocalAddr: from, Timeout: Patience}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, says) // the connection may be closed
		return c
	}
	var held []net.Conn
	defer func() {
		for _, c := range held {
			_ = c.Close()
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for i := range 1000 {
		held = append(held, open(1+i%sources))
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: Patience}
	for i := range 5 {
		began := time.Now()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		const soon = 3 * time.Second
		if took := time.Since(began); answer.StatusCode != http.StatusOK || took > soon {
			t.Errorf("probe %d: %s after %s", i, answer.Status, took)
		}
		for range 20 {
			held = append(held, open(1+i%sources))
		}
	}
}

// TestProberLeaves checks that a canceled probe cancels the request to the health server.
func TestProberLeaves(t *testing.T) {
	left := make(chan error, 1)
	wait := func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		left <- r.Context().Err()
		return nil, r.Context().Err()
	}
	inTime(t, wait, func(t *testing.T, listener *pipes) {
		c := listener.dial()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.Close()
		synctest.Wait()
		select {
		case err := <-left:
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		default:
			t.Error("the health server is still asked")
		}
	})
}

// TestListenerFails checks that a permanent failure of the listener ends the proxy.
func TestListenerFails(t *testing.T) {
	listener := newPipes()
	listener.Close()
	p := newProxy(Config{Target: &url.URL{Scheme: "http", Host: "localhost:10256"}, Log: slog.New(slog.DiscardHandler)}, answers(ok))
	if err := p.Serve(t.Context(), listener); !errors.Is(err, net.ErrClosed) ||
		!strings.Contains(err.Error(), "serve health probes on 127.0.0.1:10356") {
		t.Error(err)
	}
}

// TestStop checks that a stopping proxy finishes probes in flight and does not wait longer for idle
// connections.
func TestStop(t *testing.T) {
	slow := func(r *http.Request) (*http.Response, error) {
		<-time.After(Patience - time.Second)
		return ok(r)
	}
	stoppedInTime(t, slow, func(t *testing.T, listener *pipes, stop func()) {
		silent := listener.dial()
		defer silent.Close()
		if _, err := io.WriteString(silent, "PRO"); err != nil { // an incomplete header
			t.Fatal(err)
		}
		c := listener.dial()
		defer c.Close()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begin := time.Now()
		stop()
		synctest.Wait()
		// The listener is closed first.
		if took, text := untilClosed(t, listener.dial()); took > 0 || text != "" {
			t.Errorf("a late prober waited %s for %q", took, text)
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if took := time.Since(begin); answer.StatusCode != 200 || took != Patience-time.Second {
			t.Errorf("%s after %s", answer.Status, took)
		}
		_, _ = untilClosed(t, silent)
		if took := time.Since(begin); took > Patience+time.Second {
			t.Errorf("it took %s to stop", took)
		}
	})
}
