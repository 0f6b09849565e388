package machine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"
)

// metadataAddress is where a machine finds its metadata service.
const metadataAddress = "169.254.169.254:80"

// services are what answers inside a machine and runs outside.
type services struct {
	spec     Spec
	log      *slog.Logger
	api      []net.Listener
	metadata net.Listener
}

func openServices(s Spec, log *slog.Logger) (*services, error) {
	v := &services{spec: s, log: log}
	if err := addLocalAddresses(s.Namespace, netip.MustParseAddrPort(metadataAddress).Addr(), APIAddress); err != nil {
		return nil, err
	}
	for _, address := range []string{s.APIServer, netip.AddrPortFrom(APIAddress, APIPort).String()} {
		l, err := listen(s.Namespace, address)
		if err != nil {
			v.close()
			return nil, fmt.Errorf("the API server at %s inside: %w", address, err)
		}
		v.api = append(v.api, l)
	}
	var err error
	if v.metadata, err = listen(s.Namespace, metadataAddress); err != nil {
		v.close()
		return nil, fmt.Errorf("metadata service: %w", err)
	}
	return v, nil
}

func (v *services) close() {
	for _, l := range v.api {
		l.Close()
	}
	if v.metadata != nil {
		v.metadata.Close()
	}
}

// serve serves until ctx is done.
func (v *services) serve(ctx context.Context) error {
	target, err := url.Parse(v.spec.Metadata)
	if err != nil {
		v.close()
		return fmt.Errorf("metadata service %s: %w", v.spec.Metadata, err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		// What a client says of forwarding is for the service to refuse.
		r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
		r.SetURL(target)
	}}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	tasks, ctx := errgroup.WithContext(ctx)
	for _, l := range v.api {
		tasks.Go(func() error { return v.relay(ctx, l) })
	}
	tasks.Go(func() error {
		if err := server.Serve(v.metadata); ctx.Err() == nil && !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("metadata service: %w", err)
		}
		return nil
	})
	tasks.Go(func() error {
		<-ctx.Done()
		err := server.Close() // with its listener
		v.close()
		return err
	})
	return tasks.Wait()
}

// relay passes connections on to the API server.
func (v *services) relay(ctx context.Context, l net.Listener) error {
	var connections errgroup.Group
	for {
		c, err := l.Accept()
		if err != nil {
			_ = connections.Wait()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("the API server inside: %w", err)
		}
		connections.Go(func() error {
			if err := pass(ctx, c, v.spec.APIServer); err != nil {
				v.log.Debug("connection to the API server", "error", err)
			}
			return nil
		})
	}
}

// pass joins a connection with a new one to address until either ends.
func pass(ctx context.Context, c net.Conn, address string) error {
	defer c.Close()
	var d net.Dialer
	other, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return join(ctx, c, other)
}
