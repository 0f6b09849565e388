package local

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/plane/token"
)

// plane answers for some of the paths of the local Azure.
type plane interface {
	Handler(path string) http.Handler // nil when the path is not its own
}

// planes asks one after the other. There is no http.ServeMux because it would
// answer unusual paths itself, with a redirect, where Azure answers with an error.
type planes struct {
	handlers  []plane
	otherwise http.Handler
	log       io.Writer // of requests, nil for none
}

func (p planes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, plane := range p.handlers {
		if h := plane.Handler(r.URL.Path); h != nil {
			if p.log != nil {
				h = logged(h, p.log)
			}
			h.ServeHTTP(w, r)
			return
		}
	}
	p.otherwise.ServeHTTP(w, r)
}

// run serves until the server is shut down, over TLS if there is a config.
func (a *Azure) run(l net.Listener, handler http.Handler, config *tls.Config) {
	s := &http.Server{
		Handler: handler, TLSConfig: config,
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       5 * time.Minute,
		ErrorLog:          slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	a.servers = append(a.servers, s)
	a.tasks.Go(func() {
		serve := func() error { return s.Serve(l) }
		if config != nil {
			serve = func() error { return s.ServeTLS(l, "", "") }
		}
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error("local azure stopped serving", "address", l.Addr().String(), "error", err)
		}
	})
}

// look lets planes read the resources.
func (a *Azure) look(f func(w behaviour.World)) {
	if a.emulator != nil {
		a.emulator.Look(f)
	}
}

// ownerCredential gives tokens to the program itself.
type ownerCredential struct{ azure *Azure }

func (c ownerCredential) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	audience := c.azure.info.ARM
	if len(o.Scopes) > 0 {
		audience = strings.TrimSuffix(o.Scopes[0], "/.default")
	}
	t, err := c.azure.tokens.Issue(c.azure.owner, "", audience, token.ManagedLifetime)
	return azcore.AccessToken{Token: t.Text, ExpiresOn: t.Expires}, err
}
