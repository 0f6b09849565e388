package machine

import (
	"context"
	"io"
	"net"

	"golang.org/x/sync/errgroup"
)

// join copies between two connections until either end closes or ctx is done, and closes both.
func join(ctx context.Context, a, b net.Conn) error {
	shut := func() { a.Close(); b.Close() }
	defer shut()
	defer context.AfterFunc(ctx, shut)()
	var both errgroup.Group
	for _, p := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() error {
			_, err := io.Copy(p[0], p[1])
			if half, ok := p[0].(interface{ CloseWrite() error }); ok && err == nil {
				return half.CloseWrite()
			}
			shut()
			return err
		})
	}
	return both.Wait()
}
