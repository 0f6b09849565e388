package app

import (
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics/legacyregistry"

	"kaz/internal/observe"
)

// knownMetrics is the prefix of the metrics of the driver that this one replaces.
const knownMetrics = "azuredisk_csi_driver"

// readiness is whether the driver can serve: it can once all checks have passed. Later failures do not count: sidecars
// and livenessprobe would restart the driver, which helps against none of them.
type readiness struct {
	mu     sync.Mutex
	checks []readyCheck
}

type readyCheck struct {
	name  string
	check observe.Check
}

func (r *readiness) add(name string, check observe.Check) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks = append(r.checks, readyCheck{name, check})
}

// check returns why the driver cannot serve yet. A check that has passed is not repeated.
func (r *readiness) check(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.checks) > 0 {
		first := r.checks[0]
		if err := first.check(ctx); err != nil {
			return fmt.Errorf("%s: %w", first.name, err)
		}
		r.checks = r.checks[1:]
	}
	return nil
}

// serveDiagnostics serves metrics, health and profiles at --metrics-address.
func (d *driver) serveDiagnostics(ctx context.Context, tasks *errgroup.Group) error {
	o := d.options
	if o.metricsAddress == "" {
		return nil
	}
	listener, err := observe.Listen(ctx, o.metricsAddress)
	if err != nil {
		return fmt.Errorf("--metrics-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", observe.MetricsHandler(legacyregistry.DefaultGatherer))
	var health observe.Health
	health.Ready("driver", d.ready.check)
	health.Register(mux)
	if o.profiling {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	d.log.Info("diagnostics", "address", listener.Addr().String())
	tasks.Go(func() error { return observe.Serve(ctx, listener, mux) })
	return nil
}
