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

// open removes the PROXY header of each connection, if there is one.
func (p *Proxy) open(listener net.Listener) net.Listener {
	return &headers{Listener: &proxyproto.Listener{
		Listener:          listener,
		ReadHeaderTimeout: p.patience,
		// The header may come from any address, because nothing depends on its content. It is
		// optional.
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

// raw returns the connection below the PROXY header.
func raw(c net.Conn) net.Conn {
	if opened, ok := c.(*conn); ok {
		return opened.Raw()
	}
	return c
}

// conn logs invalid headers, which net/http would not report.
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
				level = slog.LevelWarn // the first is logged as a warning, all are counted
			}
			c.proxy.log.Log(context.Background(), level, "invalid PROXY header of a health probe, connection closed", "from",
				c.Raw().RemoteAddr().String(), "error", err)
		})
	}
	return n, err
}

// malformed reports whether the header caused an error, and not the connection.
func malformed(err error) bool {
	return slices.ContainsFunc([]error{
		proxyproto.ErrCantReadVersion1Header, proxyproto.ErrVersion1HeaderTooLong, proxyproto.ErrLineMustEndWithCrlf,
		proxyproto.ErrCantReadProtocolVersionAndCommand, proxyproto.ErrCantReadAddressFamilyAndProtocol, proxyproto.ErrCantReadLength,
		proxyproto.ErrUnknownProxyProtocolVersion, proxyproto.ErrUnsupportedProtocolVersionAndCommand,
		proxyproto.ErrUnsupportedAddressFamilyAndProtocol, proxyproto.ErrInvalidLength, proxyproto.ErrInvalidAddress,
		proxyproto.ErrInvalidPortNumber,
		io.ErrUnexpectedEOF, // the connection ends within the header
	}, func(kind error) bool { return errors.Is(err, kind) })
}

// probeConn is the context key of the connection.
type probeConn struct{}

// headerOf returns the version of a probe's header.
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
