package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/gateway/routing"
)

// wires are the connections to the members of a pool.
type wires struct {
	network  Network
	gateway  azure.ID
	config   *tls.Config
	name     string // the server name for TLS, "" for that of the member
	requests *http.Transport
	probes   *http.Transport
}

// notConnected is an error before anything was sent, so another member may get the request.
type notConnected struct{ error }

func (e notConnected) Unwrap() error { return e.error }

// Limits of connections to backends.
const (
	mostIdle       = 64 // for each member
	idleTimeout    = 60 * time.Second
	mostHeaderSize = 64 << 10
)

// newWires returns the connections of a backend. Roots are the certificates that the members' certificates are checked against, nil for
// the well-known ones.
func newWires(network Network, gateway azure.ID, b *routing.Backend, roots *x509.CertPool) *wires {
	w := &wires{network: network, gateway: gateway, name: b.ServerName}
	if w.name == "" {
		w.name = b.Host
	}
	w.config = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	transport := func(timeout time.Duration) *http.Transport {
		return &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				return w.limited(ctx, b.Timeout, address, false)
			},
			DialTLSContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				return w.limited(ctx, b.Timeout, address, true)
			},
			ResponseHeaderTimeout: timeout, MaxResponseHeaderBytes: mostHeaderSize,
			MaxIdleConnsPerHost: mostIdle, IdleConnTimeout: idleTimeout, DisableCompression: true,
		}
	}
	w.requests, w.probes = transport(b.Timeout), transport(0)
	w.probes.DisableKeepAlives = true
	return w
}

func (w *wires) limited(ctx context.Context, timeout time.Duration, address string, secure bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := w.dial(ctx, address, secure, w.name)
	if err != nil {
		return nil, notConnected{err}
	}
	return c, nil
}

// dial connects to a member. Without a server name that of the member is used. A member by its IP address is checked against the roots
// only, as application gateways do.
func (w *wires) dial(ctx context.Context, address string, secure bool, name string) (net.Conn, error) {
	c, err := w.network.Dial(ctx, w.gateway, address)
	if err != nil || !secure {
		return c, err
	}
	config := w.config.Clone()
	if config.ServerName = name; name == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	if net.ParseIP(config.ServerName) != nil {
		config.InsecureSkipVerify = true // the chain is verified below, and there is no name to verify
		config.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(state, config.RootCAs) }
	}
	secured := tls.Client(c, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("the certificate of the backend server: %w", err), c.Close())
	}
	return secured, nil
}

func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("there is none")
	}
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range state.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(o)
	return err
}

func (w *wires) close() {
	w.requests.CloseIdleConnections()
	w.probes.CloseIdleConnections()
}
