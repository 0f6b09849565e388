package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics/legacyregistry"

	"kaz/internal/component"
	"kaz/internal/dns"
	"kaz/internal/dns/readiness"
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
	if config.Cluster != "" {
		if err := o.keep(ctx, tasks, provider); err != nil {
			return err
		}
	}
	return tasks.Wait()
}

// keep starts what names shared with other clusters need.
func (o *settings) keep(ctx context.Context, tasks *errgroup.Group, provider *dns.Provider) error {
	var ready dns.Readiness
	if o.unready > 0 {
		config, err := o.kube.Read(name)
		if err == nil && config == nil {
			err = errors.New("--kubeconfig: the program does not run in a pod, so a kubeconfig is needed; or set --unready-after=0")
		}
		if err != nil {
			return err
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("--kubeconfig: %w", err)
		}
		watcher, err := readiness.New(client, o.unready)
		if err != nil {
			return err
		}
		tasks.Go(func() error { return watcher.Run(ctx) })
		ready = watcher
	}
	tasks.Go(func() error { return provider.NewKeeper(ready).Run(ctx) })
	return nil
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
		Options: records.Options{DefaultTTL: o.defaultTTL, MostDeleted: o.mostDeleted, Cluster: o.cluster}, Lease: o.lease,
		Refresh: o.refresh, Deadline: o.deadline, Parallel: o.parallel, PublicWrites: dns.PublicWrites, PrivateWrites: dns.PrivateWrites,
		DryRun: o.dryRun, Log: log, Metrics: dns.NewMetrics(registry),
	}
	if o.mostWrites > 0 {
		config.PublicWrites, config.PrivateWrites = o.mostWrites, o.mostWrites
	}
	if o.traffic != "" {
		config.Traffic = groupOf(cloud, o.traffic)
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
