package healthproxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"

	"github.com/pires/go-proxyproto"
)

// open takes the PROXY header off each connection of a listener, if there is one.
func (p *Proxy) open(listener net.Listener) net.Listener {
	return &headers{Listener: &proxyproto.Listener{
		Listener:          listener,
		ReadHeaderTimeout: p.patience,
		// Anybody may say whence it comes: nothing here depends on it. And nobody must.
		ConnPolicy: func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) { return proxyproto.USE, nil },
	}, proxy: p}
}

type headers struct {
	net.Listener
	proxy *Proxy
}

// Accept implements [net.Listener].
func (h *headers) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	opened, ok := c.(*proxyproto.Conn)
	if !ok {
		return c, nil
	}
	return &conn{Conn: opened, proxy: h.proxy}, nil
}

// conn tells of headers that make no sense, which net/http would keep to itself.
type conn struct {
	*proxyproto.Conn
	proxy *Proxy
	once  sync.Once
}

// Read implements [net.Conn].
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil && malformed(err) {
		c.once.Do(func() {
			c.proxy.metrics.malformedHeader()
			level := slog.LevelDebug
			if c.proxy.complained.CompareAndSwap(false, true) {
				level = slog.LevelWarn // the first is news, and all are counted
			}
			c.proxy.log.Log(context.Background(), level, "health probe's PROXY header cannot be read, connection closed", "from", c.Raw().RemoteAddr().String(), "error", err)
		})
	}
	return n, err
}

// malformed says whether an error is about the header and not about the connection.
func malformed(err error) bool {
	return slices.ContainsFunc([]error{
		proxyproto.ErrCantReadVersion1Header, proxyproto.ErrVersion1HeaderTooLong, proxyproto.ErrLineMustEndWithCrlf,
		proxyproto.ErrCantReadProtocolVersionAndCommand, proxyproto.ErrCantReadAddressFamilyAndProtocol, proxyproto.ErrCantReadLength,
		proxyproto.ErrUnknownProxyProtocolVersion, proxyproto.ErrUnsupportedProtocolVersionAndCommand,
		proxyproto.ErrUnsupportedAddressFamilyAndProtocol, proxyproto.ErrInvalidLength, proxyproto.ErrInvalidAddress,
		proxyproto.ErrInvalidPortNumber,
		io.ErrUnexpectedEOF, // it ends within the header
	}, func(kind error) bool { return errors.Is(err, kind) })
}

// probeConn is the key of the context's connection.
type probeConn struct{}

// headerOf says with which header a probe came.
func headerOf(ctx context.Context) string {
	c, ok := ctx.Value(probeConn{}).(*conn)
	if !ok {
		return "none"
	}
	header := c.ProxyHeader()
	switch {
	case header == nil:
		return "none"
	case header.Version == 1:
		return "v1"
	default:
		return "v2"
	}
}
