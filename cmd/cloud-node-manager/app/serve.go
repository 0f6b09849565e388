package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	chain "k8s.io/controller-manager/app"

	"kaz/internal/observe"
)

// serve serves health and metrics at the configured port until ctx ends.
func (o *options) serve(ctx context.Context, synced func() bool) error {
	if o.serving.BindPort == 0 {
		return nil
	}
	if err := o.serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return fmt.Errorf("certificate of --secure-port: %w", err)
	}
	var info *server.SecureServingInfo
	var loopback *rest.Config
	if err := o.serving.ApplyTo(&info, &loopback); err != nil {
		return fmt.Errorf("--secure-port: %w", err)
	}
	var authentication server.AuthenticationInfo
	var authorization server.AuthorizationInfo
	if err := o.authentication.ApplyTo(&authentication, info, nil); err != nil {
		return fmt.Errorf("authentication: %w", err)
	}
	if err := o.authorization.ApplyTo(&authorization); err != nil {
		return fmt.Errorf("authorization: %w", err)
	}
	stopped, _, err := info.Serve(chain.BuildHandlerChain(handler(synced), &authorization, &authentication), 0, ctx.Done())
	if err != nil {
		return fmt.Errorf("--secure-port: %w", err)
	}
	<-stopped
	return nil
}

func handler(synced func() bool) http.Handler {
	health := &observe.Health{}
	health.Ready("nodes", func(context.Context) error {
		if !synced() {
			return errors.New("the node is not known yet")
		}
		return nil
	})
	answers := http.NewServeMux()
	health.Register(answers)
	m := mux.NewPathRecorderMux(name)
	m.Handle("/healthz", answers)
	m.Handle("/livez", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.URL.Path = "/healthz"
		answers.ServeHTTP(w, r)
	}))
	m.Handle("/readyz", answers)
	m.Handle("/metrics", legacyregistry.Handler())
	return m
}
