package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// stream passes connections on, byte for byte, until the listener is closed.
func (f *front) stream() error {
	for {
		c, err := f.listener.Accept()
		if err != nil {
			if temporary, ok := errors.AsType[net.Error](err); ok && temporary.Timeout() {
				continue
			}
			return err
		}
		f.gateway.begin(func(ctx context.Context) { f.splice(ctx, c) })
	}
}

// splice connects a client with a member. TLS ends here if the front is over TLS.
func (f *front) splice(ctx context.Context, client net.Conn) {
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	state := f.state.Load()
	if len(state.front.Sites) == 0 {
		return
	}
	site := &state.front.Sites[0]
	if f.protocol.Secure() {
		secured := tls.Server(client, &tls.Config{GetConfigForClient: f.configFor, MinVersion: tls.VersionTLS12})
		limited, done := context.WithTimeout(ctx, headerTimeout)
		err := secured.HandshakeContext(limited)
		done()
		if err != nil {
			return
		}
		if named := state.front.Certified(secured.ConnectionState().ServerName); named != nil {
			site = named
		}
		client = secured
	}
	b := site.Default.Backend
	if b == nil || state.pools[key(b)] == nil {
		return
	}
	server, m := state.pools[key(b)].connect(ctx)
	if server == nil {
		return
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	defer stop()
	defer state.pools[key(b)].enter(m, cancel)()
	var both sync.WaitGroup
	both.Go(func() { pipe(server, client, b.Timeout) })
	both.Go(func() { pipe(client, server, b.Timeout) })
	both.Wait()
}

// connect connects to a member of the pool, or returns nil.
func (p *pool) connect(ctx context.Context) (net.Conn, *member) {
	tried := map[*member]bool{}
	for {
		m := p.pick("", tried)
		if m == nil {
			return nil, nil
		}
		tried[m] = true
		b, w := p.now()
		limited, done := context.WithTimeout(ctx, b.Timeout)
		c, err := w.dial(limited, m.Address(), b.Protocol.Secure(), w.name)
		done()
		if err == nil {
			return c, m
		}
	}
}

// pipe copies until the source ends or is silent for too long, then closes the sink for writing.
func pipe(to, from net.Conn, idle time.Duration) {
	_, _ = io.Copy(to, patient{from, idle}) // either end may be cut at any time
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // so that the other direction can end
	} else {
		_ = to.Close() // both directions end
	}
}

// patient is a connection with reads that wait for a limited time.
type patient struct {
	net.Conn
	idle time.Duration
}

func (p patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(p.idle)); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}
