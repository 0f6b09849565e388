package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"kaz/internal/localazure/plane/gateway/routing"
)

// Limits of clients.
const (
	mostConnections   = 4096 // at each frontend
	mostRequestHeader = 32 << 10
	headerTimeout     = 60 * time.Second
	keepAliveTimeout  = 75 * time.Second
	shutdownTimeout   = 30 * time.Second
)

// front listens at an address of a gateway.
type front struct {
	gateway  *gateway
	at       netip.AddrPort
	protocol routing.Protocol
	listener net.Listener
	server   *http.Server // nil for streams
	state    atomic.Pointer[served]
}

// served is what a front serves, with the configurations for TLS by site.
type served struct {
	*serving
	tls map[*routing.Site]*tls.Config
}

// open listens at a front and serves it.
func (g *gateway) open(ctx context.Context, state *serving) (*front, error) {
	l, err := g.options.Network.Listen(ctx, g.id, state.front.At)
	if err != nil {
		return nil, err
	}
	f := &front{gateway: g, at: state.front.At, protocol: state.front.Protocol, listener: netutil.LimitListener(l, mostConnections)}
	f.set(state)
	serve := f.stream
	if !f.protocol.Stream() {
		f.server = &http.Server{
			Handler: http.HandlerFunc(f.answer), ReadHeaderTimeout: headerTimeout, IdleTimeout: keepAliveTimeout,
			MaxHeaderBytes: mostRequestHeader, TLSConfig: &tls.Config{GetConfigForClient: f.configFor, MinVersion: tls.VersionTLS12},
			ErrorLog: slog.NewLogLogger(g.options.Log.Handler(), slog.LevelDebug),
		}
		serve = func() error { return f.server.Serve(f.listener) }
		if f.protocol.Secure() {
			serve = func() error { return f.server.ServeTLS(f.listener, "", "") }
		}
	}
	g.tasks.Go(func() {
		if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			g.options.Log.Error("application gateway stopped serving", "gateway", string(g.id), "frontend", f.at.String(), "error", err)
		}
	})
	return f, nil
}

// set replaces what the front serves.
func (f *front) set(state *serving) {
	s := &served{serving: state, tls: map[*routing.Site]*tls.Config{}}
	if f.protocol.Secure() {
		for i := range state.front.Sites {
			site := &state.front.Sites[i]
			config, err := state.config(site)
			if err != nil {
				f.gateway.options.Log.Warn("a listener of an application gateway is not served", "gateway", string(f.gateway.id),
					"listener", site.Listener, "error", err)
				continue
			}
			s.tls[site] = config
		}
	}
	f.state.Store(s)
}

// versions are the versions of TLS. Older ones are not served here.
var versions = map[string]uint16{"TLSv1_3": tls.VersionTLS13}

// config is the configuration for the TLS clients of a site.
func (s *serving) config(site *routing.Site) (*tls.Config, error) {
	certificate := s.material.certificates[site.Certificate]
	if certificate == nil {
		return nil, fmt.Errorf("there is no certificate %s", site.Certificate)
	}
	c := &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12}
	c.MinVersion = max(c.MinVersion, versions[site.MinTLS])
	if !s.front.Protocol.Stream() {
		c.NextProtos = []string{"http/1.1"}
		if s.http2 {
			c.NextProtos = []string{"h2", "http/1.1"}
		}
	}
	roots, err := poolOf(s.material.clientRoots, site.ClientRoots)
	if err != nil {
		return nil, err
	}
	if roots != nil {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, roots
	}
	return c, nil
}

// configFor returns the configuration for a client, by the server name that it asks for.
func (f *front) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	state := f.state.Load()
	config := state.tls[state.front.Certified(hello.ServerName)]
	if config == nil {
		return nil, fmt.Errorf("no listener at %s has a certificate for %q", f.at, hello.ServerName)
	}
	return config, nil
}

// close stops listening. Requests in flight get some time to end.
func (f *front) close() {
	_ = f.listener.Close() // nothing is lost
	if f.server == nil {
		return
	}
	f.gateway.begin(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
		defer cancel()
		if f.server.Shutdown(ctx) != nil {
			_ = f.server.Close() // requests exceeded the time
		}
	})
}
