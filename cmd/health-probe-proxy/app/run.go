package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"

	"golang.org/x/sync/errgroup"

	"kaz/internal/component"
	"kaz/internal/healthproxy"
	"kaz/internal/observe"
)

// run answers probes until ctx ends. started, if not nil, is called with the addresses once it
// listens.
func run(ctx context.Context, o *options, log *slog.Logger, started func(probes, metrics net.Addr)) error {
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
	diagnostics := component.Diagnostics{Flag: "--metrics-bind-address", Address: o.metricsAddress, Metrics: registry}
	at, err := diagnostics.Serve(ctx, tasks)
	if err != nil {
		_ = probes.Close()
		return err
	}
	log.Info("answering health probes", "address", probes.Addr().String(), "target", target.Host)
	tasks.Go(func() error { return proxy.Serve(ctx, probes) })
	if started != nil {
		started(probes.Addr(), at)
	}
	return tasks.Wait()
}
