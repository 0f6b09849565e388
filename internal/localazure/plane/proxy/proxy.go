// Package proxy is the local Azure's HTTP proxy. It connects clients of Azure's public hosts to the local Azure, and
// connects to no other host. Layer L2.
package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"kaz/internal/localazure/plane/cloud"
)

// Proxy is an http.Handler for CONNECT requests. It does not lead to the instance metadata service, which knows a caller by the
// interface that a request comes from.
type Proxy struct {
	// Target is the address of the local Azure over TLS. Clients that send loopback addresses to their proxy may ask
	// for Target or Plain themselves.
	Target, Plain string
	// Registry reports whether another host is served here: a registry outside of Azure's clouds, or a file service. Nil is for none.
	Registry func(host string) bool
	// Log receives refused requests. Nil is slog.Default.
	Log *slog.Logger

	tunnels sync.WaitGroup
	mu      sync.Mutex
	open    map[net.Conn]bool
	closed  bool
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		p.refuse(w, r.URL.Host)
		return
	}
	target, ok := p.target(r.Host)
	if !ok {
		p.refuse(w, r.Host)
		return
	}
	p.tunnel(w, r, target)
}

func (p *Proxy) refuse(w http.ResponseWriter, host string) {
	p.log().Info("proxy request refused", "host", host)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusForbidden)
	// An error means that the client is gone.
	_, _ = fmt.Fprintf(w, "host %q: this proxy leads to Azure's login, management, registry and file hosts only\n", host)
}

func (p *Proxy) log() *slog.Logger {
	if p.Log == nil {
		return slog.Default()
	}
	return p.Log
}

// target returns the address to which a connection to host:port goes.
func (p *Proxy) target(address string) (string, bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", false
	}
	_, known := cloud.OfHost(host)
	if !known && p.Registry != nil {
		known = p.Registry(host)
	}
	if known && port == "443" {
		return p.Target, true
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", false
	}
	for _, own := range []string{p.Target, p.Plain} {
		if _, ownPort, err := net.SplitHostPort(own); err == nil && ownPort == port {
			return own, true
		}
	}
	return "", false
}

// tunnel connects the client's connection with one to the target.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, target string) {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	server, err := dialer.DialContext(r.Context(), "tcp", target)
	if err != nil {
		http.Error(w, "the local Azure does not answer", http.StatusBadGateway)
		return
	}
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = server.Close() // nothing was sent
		http.Error(w, "CONNECT needs HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return
	}
	if !p.keep(client, server) {
		return
	}
	defer p.drop(client, server)
	// The deadlines of the HTTP server must not end the tunnel.
	if err := client.SetDeadline(time.Time{}); err != nil {
		return
	}
	if _, err := client.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { pipe(server, buffered.Reader) })
	both.Go(func() { pipe(client, server) })
	both.Wait()
}

// pipe copies until the source ends, then closes the sink for writing.
func pipe(to net.Conn, from io.Reader) {
	_, _ = io.Copy(to, from) // either end may be cut at any time
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // so that the other direction can end
	}
}

func (p *Proxy) keep(connections ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		for _, c := range connections {
			_ = c.Close() // the proxy has ended
		}
		return false
	}
	if p.open == nil {
		p.open = map[net.Conn]bool{}
	}
	for _, c := range connections {
		p.open[c] = true
	}
	p.tunnels.Add(1)
	return true
}

func (p *Proxy) drop(connections ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range connections {
		delete(p.open, c)
		_ = c.Close() // both directions have ended
	}
	p.tunnels.Done()
}

// Close closes all tunnels and waits for their goroutines.
func (p *Proxy) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		_ = c.Close() // the connections are closing
	}
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		p.tunnels.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the proxy: %w", ctx.Err())
	}
}
