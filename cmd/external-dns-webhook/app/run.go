package app

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"

	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics/legacyregistry"

	"kaz/internal/component"
	"kaz/internal/dns"
	"kaz/internal/observe"
	"kaz/internal/plan/records"
)

// run serves ExternalDNS until ctx ends.
func run(ctx context.Context, o *settings, lookup func(string) (string, bool), log *slog.Logger) error {
	config, err := o.provider(ctx, lookup, log)
	if err != nil {
		return err
	}
	provider := dns.New(config)
	tasks, ctx := errgroup.WithContext(ctx)
	d := &component.Diagnostics{Flag: "--metrics-address", Address: o.diagnosticAddress, Metrics: legacyregistry.DefaultGatherer}
	d.Health.Ready("zones", provider.Ready)
	if _, err := d.Serve(ctx, tasks); err != nil {
		return err
	}
	listener, err := observe.Listen(ctx, o.address)
	if err != nil {
		return fmt.Errorf("--webhook-address: %w", err)
	}
	log.Info("serving ExternalDNS", "address", listener.Addr().String(), "groups", config.Zones.Groups, "zones", config.Zones.IDs)
	tasks.Go(func() error { return observe.Serve(ctx, listener, dns.NewServer(provider).Handler()) })
	tasks.Go(func() error {
		// The first read makes the program ready. If it fails, requests read again.
		if _, err := provider.Records(ctx); err != nil {
			log.Warn("the zones cannot be read", "error", err)
		}
		return nil
	})
	return tasks.Wait()
}

// provider returns the configuration of the provider.
func (o *settings) provider(ctx context.Context, lookup func(string) (string, bool), log *slog.Logger) (dns.Config, error) {
	cloud, err := o.readConfig(lookup, log)
	if err != nil {
		return dns.Config{}, err
	}
	registry := legacyregistry.Registerer()
	azure, err := o.open(ctx, cloud, registry)
	if err != nil {
		return dns.Config{}, err
	}
	config := dns.Config{
		Azure: azure, Zones: o.find(cloud),
		Options: records.Options{DefaultTTL: o.defaultTTL, MostDeleted: o.mostDeleted},
		Refresh: o.refresh, Deadline: o.deadline, Parallel: o.parallel, PublicWrites: dns.PublicWrites, PrivateWrites: dns.PrivateWrites,
		DryRun: o.dryRun, Log: log, Metrics: dns.NewMetrics(registry),
	}
	if o.mostWrites > 0 {
		config.PublicWrites, config.PrivateWrites = o.mostWrites, o.mostWrites
	}
	for _, p := range o.protect {
		expression, err := regexp.Compile(p)
		if err != nil {
			return config, err
		}
		config.Protect = append(config.Protect, expression)
	}
	return config, nil
}
