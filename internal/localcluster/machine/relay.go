package machine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"

	"golang.org/x/sync/errgroup"
)

// Relay forwards the connections of a listener to an address, until ctx is done.
func Relay(ctx context.Context, l net.Listener, address string, log *slog.Logger) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var connections errgroup.Group
	for {
		c, err := l.Accept()
		if err != nil {
			_ = connections.Wait() // each connection has logged its error
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("relay to %s: %w", address, err)
		}
		connections.Go(func() error {
			if err := pass(ctx, c, address); err != nil {
				log.Debug("relayed connection", "to", address, "error", err)
			}
			return nil
		})
	}
}

// pass forwards a connection to an address until either side closes.
func pass(ctx context.Context, c net.Conn, address string) error {
	var d net.Dialer
	other, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		c.Close()
		return err
	}
	return join(ctx, c, other)
}

// join copies between two connections until either end closes or ctx is done, and closes both.
func join(ctx context.Context, a, b net.Conn) error {
	closeBoth := func() { a.Close(); b.Close() }
	defer closeBoth()
	defer context.AfterFunc(ctx, closeBoth)()
	var both errgroup.Group
	for _, p := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() error {
			_, err := io.Copy(p[0], p[1])
			if half, ok := p[0].(interface{ CloseWrite() error }); ok && err == nil {
				return half.CloseWrite()
			}
			closeBoth()
			return err
		})
	}
	return both.Wait()
}
