package observe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Listen opens a TCP listener. Without a host it listens on localhost only, so that health and
// metrics are private by default. Port 0 is any free port.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen address %q: must be host:port or :port: %w", address, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

// Limits of the connections to health and metrics.
const (
	mostConnections = 256
	mostOfSource    = 64
	idleAtMost      = 2 * time.Minute
)

// Serve serves requests until ctx ends, then waits up to five seconds for those in flight. It closes
// the listener.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleAtMost, ConnState: Track,
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err := server.Shutdown(grace)
		if err != nil {
			err = errors.Join(err, server.Close())
		}
		stopped <- err
	})
	if err := server.Serve(Admit(listener, mostConnections, mostOfSource)); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	}
	return <-stopped
}
