package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"

	"golang.org/x/sync/errgroup"

	"kaz/cmd/internal/release"
	"kaz/internal/healthproxy"
	"kaz/internal/observe"
)

// run answers probes until ctx ends. started, if not nil, is called with the addresses once it
// listens.
func run(ctx context.Context, o *options, started func(probes, metrics net.Addr)) error {
	log, err := observe.NewLogger(os.Stderr, slog.Level(-int(o.logging.Verbosity)), o.logging.Format)
	if err != nil {
		return err
	}
	observe.UseForKubernetes(log)
	registry := observe.NewRegistry()
	metrics, err := healthproxy.NewMetrics(registry)
	if err != nil {
		return err
	}
	target := &url.URL{Scheme: "http", Host: net.JoinHostPort("localhost", strconv.Itoa(o.targetPort))}
	proxy, err := healthproxy.New(healthproxy.Config{Target: target, Patience: o.timeout, Metrics: metrics, Log: log})
	if err != nil {
		return err
	}
	probes, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(o.bindAddress, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("--health-check-port: %w", err)
	}
	tasks, ctx := errgroup.WithContext(ctx)
	var at net.Addr
	if o.metricsAddress != "" {
		listener, err := observe.Listen(ctx, o.metricsAddress)
		if err != nil {
			_ = probes.Close()
			return fmt.Errorf("--metrics-bind-address: %w", err)
		}
		at = listener.Addr()
		answers := http.NewServeMux()
		answers.Handle("GET /metrics", observe.MetricsHandler(registry))
		(&observe.Health{}).Register(answers)
		tasks.Go(func() error { return observe.Serve(ctx, listener, answers) })
	}
	log.Info("health-probe-proxy", "version", release.Version(), "address", probes.Addr().String(), "target", target.Host)
	tasks.Go(func() error { return proxy.Serve(ctx, probes) })
	if started != nil {
		started(probes.Addr(), at)
	}
	return tasks.Wait()
}
