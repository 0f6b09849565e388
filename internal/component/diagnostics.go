package component

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"kaz/internal/observe"
)

// Diagnostics are what a program serves about itself: /metrics, /healthz, /readyz, and profiles below /debug/pprof if they are wanted.
type Diagnostics struct {
	Flag, Address string // the flag with the address, and its value. "" serves nothing
	Metrics       prometheus.Gatherer
	Health        observe.Health
	Profiling     bool
	Pages         map[string]http.HandlerFunc // further pages by pattern
}

// ServeMetrics serves /metrics alone as one of the tasks until ctx ends: without TLS and authentication, as a Prometheus asks that finds
// pods by their annotations. It returns the address, nil if none is served.
func ServeMetrics(ctx context.Context, tasks *errgroup.Group, flag, address string, gatherer prometheus.Gatherer) (net.Addr, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := observe.Listen(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", observe.MetricsHandler(gatherer))
	slog.InfoContext(ctx, "metrics", "address", listener.Addr().String())
	tasks.Go(func() error { return observe.Serve(ctx, listener, mux) })
	return listener.Addr(), nil
}

// Serve serves the diagnostics as one of the tasks until ctx ends. It returns the address, nil if none is served.
func (d *Diagnostics) Serve(ctx context.Context, tasks *errgroup.Group) (net.Addr, error) {
	if d.Address == "" {
		return nil, nil
	}
	listener, err := observe.Listen(ctx, d.Address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Flag, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", observe.MetricsHandler(d.Metrics))
	d.Health.Register(mux)
	for pattern, page := range d.Pages {
		mux.HandleFunc("GET "+pattern, page)
	}
	if d.Profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	slog.InfoContext(ctx, "diagnostics", "address", listener.Addr().String())
	tasks.Go(func() error { return observe.Serve(ctx, listener, mux) })
	return listener.Addr(), nil
}
