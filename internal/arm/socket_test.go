package arm

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
)

// overTLS is a server with HTTP/2, and the default transport that trusts it.
func overTLS(t *testing.T, h http.HandlerFunc) (string, *http.Client) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	client := NewTransport()
	t.Cleanup(client.CloseIdleConnections)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	client.Transport.(*http.Transport).TLSClientConfig.RootCAs = roots
	return s.URL, client
}

func TestDefaultTransport(t *testing.T) {
	var proto atomic.Value
	url, client := overTLS(t, func(w http.ResponseWriter, r *http.Request) {
		proto.Store(r.Proto)
		switch {
		case strings.HasSuffix(r.URL.Path, "/away"):
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusFound)
		case strings.HasSuffix(r.URL.Path, "/cut"):
			panic(http.ErrAbortHandler)
		default:
			fmt.Fprint(w, `{"id":"x"}`)
		}
	})
	d := open(t, client, func(c *Config) { c.Endpoint, c.RetryDelay = url, time.Millisecond })
	if _, err := d.Get(t.Context(), lb("l")); err != nil || proto.Load() != "HTTP/2.0" {
		t.Errorf("%v over %v", err, proto.Load())
	}
	if _, err := d.Get(t.Context(), lb("away")); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("a redirect: %v", err)
	}
	if _, err := d.Get(t.Context(), lb("cut")); azure.KindOf(err) != azure.Unavailable {
		t.Errorf("a connection cut: %v", err)
	}
}

// TestConnectionRefused checks that without a listener nothing arrived, so that even an action is
// tried again.
func TestConnectionRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	client := NewTransport()
	defer client.CloseIdleConnections()
	dials := 0
	dial := client.Transport.(*http.Transport).DialContext
	client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials++
		return dial(ctx, network, addr)
	}
	d := open(t, client, func(c *Config) { c.Endpoint, c.RetryDelay = "http://"+address, time.Millisecond })
	if _, err := d.Post(t.Context(), lb("l"), "start", nil); azure.KindOf(err) != azure.Unavailable || dials != 4 {
		t.Errorf("%v after %d dials, want 4", err, dials)
	}
}

func TestDiscover(t *testing.T) {
	const url = endpoint + "/metadata/endpoints?api-version=2019-05-01"
	s := script(answer{status: 200, body: `[{"name":"x"}]`})
	body, err := Discover(t.Context(), s, url)
	if r := s.requests()[0]; err != nil || string(body) != `[{"name":"x"}]` || r.header.Get("Authorization") != "" ||
		r.query != "api-version=2019-05-01" {
		t.Errorf("%s %v", body, err)
	}
	for want, a := range map[string]answer{
		"HTTP 404":    {status: 404, body: `[]`},
		"not JSON":    {status: 200, body: "<html>"},
		"larger than": {status: 200, body: `"` + strings.Repeat("x", 1<<20) + `"`},
		"reset":       {err: reset},
	} {
		if _, err := Discover(t.Context(), script(a), url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Discover(t.Context(), s, "::"); err == nil {
		t.Error("no URL was taken")
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if _, err := Discover(t.Context(), script(answer{after: time.Hour}), url); err == nil || time.Since(start) != 30*time.Second {
			t.Errorf("%v after %v, want an end after 30s", err, time.Since(start))
		}
	})
}

func BenchmarkGet(b *testing.B) {
	s := &server{answer: func(int, request) answer { return answer{status: 200, body: resource(lb("l"), "Succeeded")} }}
	d, err := New(Config{Endpoint: endpoint, Credential: token("t"), Transport: s})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Get(b.Context(), lb("l")); err != nil {
			b.Fatal(err)
		}
	}
}
