package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"kaz/internal/localazure/plane/proxy"
	"kaz/internal/localazure/plane/token"
)

// plane answers requests to some paths of the local Azure.
type plane interface {
	Handler(path string) http.Handler // nil for a path of another plane
}

// planes passes a request to the first plane that answers its path. http.ServeMux does not fit, because it redirects
// unusual paths. Azure returns an error for them.
type planes struct {
	handlers  []plane
	otherwise http.Handler
	log       io.Writer // receives a line for each request
	unlogged  plane     // answers first, and its requests are not logged
}

func (p planes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := p.unlogged.Handler(r.URL.Path); h != nil {
		h.ServeHTTP(w, r)
		return
	}
	for _, plane := range p.handlers {
		if h := plane.Handler(r.URL.Path); h != nil {
			logged(h, p.log).ServeHTTP(w, r)
			return
		}
	}
	p.otherwise.ServeHTTP(w, r)
}

// httpServers are the HTTP servers of a local Azure.
type httpServers struct {
	servers []*http.Server
	proxy   *proxy.Proxy // nil for none
	tasks   sync.WaitGroup
	log     *slog.Logger
}

// shutdownTimeout bounds the wait for requests in flight.
const shutdownTimeout = 10 * time.Second

// serve answers requests at a listener until shutdown, over TLS if there is a config.
func (h *httpServers) serve(l net.Listener, handler http.Handler, config *tls.Config) {
	s := &http.Server{
		Handler: withBodyTimeout(handler, bodyTimeout), TLSConfig: config,
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       5 * time.Minute,
		ErrorLog:          slog.NewLogLogger(h.log.Handler(), slog.LevelDebug),
	}
	h.servers = append(h.servers, s)
	h.tasks.Go(func() {
		serve := func() error { return s.Serve(l) }
		if config != nil {
			serve = func() error { return s.ServeTLS(l, "", "") }
		}
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			h.log.Error("local azure stopped serving", "address", l.Addr().String(), "error", err)
		}
	})
}

// shutdown stops the servers after the requests in flight.
func (h *httpServers) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	var stopping sync.WaitGroup
	for _, s := range h.servers {
		stopping.Go(func() {
			if s.Shutdown(ctx) != nil {
				_ = s.Close() // requests exceeded the timeout
			}
		})
	}
	var err error
	if h.proxy != nil {
		err = h.proxy.Close(ctx)
	}
	stopping.Wait()
	h.tasks.Wait()
	return err
}

// closers are the functions that release resources.
type closers []func() error

func (c *closers) add(f func() error) { *c = append(*c, f) }

// close calls the functions, the last added first.
func (c *closers) close() error {
	var errs []error
	for _, f := range slices.Backward(*c) {
		errs = append(errs, f())
	}
	*c = nil
	return errors.Join(errs...)
}

func ignoreClosed(f func() error) func() error {
	return func() error {
		if err := f(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}

// ownerCredential issues tokens with all rights to this program.
type ownerCredential struct{ server *Server }

func (c ownerCredential) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	audience := c.server.info.ARM
	if len(o.Scopes) > 0 {
		audience = strings.TrimSuffix(o.Scopes[0], "/.default")
	}
	t, err := c.server.tokens.Issue(c.server.owner, "", audience, token.ManagedLifetime)
	return azcore.AccessToken{Token: t.Text, ExpiresOn: t.Expires}, err
}
