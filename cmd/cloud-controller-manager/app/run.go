package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/healthz"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	frameworkapp "k8s.io/cloud-provider/app"
	"k8s.io/cloud-provider/app/config"
	configv1alpha1 "k8s.io/cloud-provider/config/v1alpha1"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/slis"
	genericmanager "k8s.io/controller-manager/app"
	"k8s.io/controller-manager/controller"
	"k8s.io/controller-manager/pkg/clientbuilder"
	controllerhealthz "k8s.io/controller-manager/pkg/healthz"
	"k8s.io/controller-manager/pkg/leadermigration"

	kit "kaz/internal/component"
	"kaz/internal/component/election"
)

// component is the program's name in logs, events and leases.
const component = "cloud-controller-manager"

// manager runs the controllers like the framework does, but stops gracefully. The framework exits at
// once, with writes in flight and its lease still held.
type manager struct {
	config  *config.CompletedConfig
	first   *generation
	metrics string // address, "" for none
	// reload watches the cloud configuration; nil if it is read only once.
	reload *reloader

	health  *controllerhealthz.MutableHealthzHandler
	checked map[string]bool // controllers that have a health check
}

// run runs the controllers until ctx ends, and then waits for the work in flight.
func (m *manager) run(ctx context.Context) error {
	m.config.EventBroadcaster.StartStructuredLogging(0)
	m.config.EventBroadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: m.config.Client.CoreV1().Events("")})
	defer m.config.EventBroadcaster.Shutdown()
	if err := m.showConfig(); err != nil {
		return err
	}
	elects := m.config.ComponentConfig.Generic.LeaderElection.LeaderElect
	watch := leaderelection.NewLeaderHealthzAdaptor(20 * time.Second)
	var checks []healthz.HealthChecker
	if elects {
		checks = append(checks, watch)
	}
	m.health = controllerhealthz.NewMutableHealthzHandler(checks...)
	// Serve health and metrics until the end.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	if err := errors.Join(m.serveMetrics(serving), m.serve(serving, ctx)); err != nil {
		return err
	}
	if !elects {
		return m.work(ctx, func(string) bool { return true })
	}
	return m.elect(ctx, watch)
}

// showConfig registers /configz.
func (m *manager) showConfig() error {
	shown := &configv1alpha1.CloudControllerManagerConfiguration{}
	convert := configv1alpha1.Convert_config_CloudControllerManagerConfiguration_To_v1alpha1_CloudControllerManagerConfiguration
	if err := convert(&m.config.ComponentConfig, shown, nil); err != nil {
		return fmt.Errorf("configz: %w", err)
	}
	shown.SetGroupVersionKind(configv1alpha1.SchemeGroupVersion.WithKind("CloudControllerManagerConfiguration"))
	page, err := configz.New(frameworkapp.ConfigzName)
	if err == nil {
		err = page.Set(shown)
	}
	if err != nil {
		return fmt.Errorf("configz: %w", err)
	}
	return nil
}

// serve serves health and metrics until ctx ends. /readyz fails once working has ended.
func (m *manager) serve(ctx, working context.Context) error {
	if m.config.SecureServing == nil {
		return nil
	}
	mux := genericmanager.NewBaseHandler(&m.config.ComponentConfig.Generic.Debugging, m.health)
	mux.Handle("/livez", alive(m.health))
	mux.Handle("/readyz", ready(working, m.health))
	slis.SLIMetricsWithReset{}.Install(mux)
	handler := genericmanager.BuildHandlerChain(mux, &m.config.Authorization, &m.config.Authentication)
	if _, _, err := m.config.SecureServing.Serve(handler, 0, ctx.Done()); err != nil {
		return fmt.Errorf("--secure-port: %w", err)
	}
	return nil
}

// serveMetrics serves metrics to every client until ctx ends.
func (m *manager) serveMetrics(ctx context.Context) error {
	var tasks errgroup.Group
	if _, err := kit.ServeMetrics(ctx, &tasks, "--"+metricsFlag, m.metrics, legacyregistry.DefaultGatherer); err != nil {
		return err
	}
	go func() {
		if err := tasks.Wait(); err != nil {
			slog.Error("metrics are no longer served", "address", m.metrics, "error", err)
		}
	}()
	return nil
}

// elect runs the controllers while this process is the leader. With leader migration, the migrated
// controllers have a second lock.
func (m *manager) elect(ctx context.Context, watch *leaderelection.HealthzAdaptor) error {
	identity, err := election.Identity()
	if err != nil {
		return err
	}
	generic := m.config.ComponentConfig.Generic
	if !leadermigration.Enabled(&generic) {
		return m.leadAs(ctx, identity, generic.LeaderElection.ResourceLock, generic.LeaderElection.ResourceName, watch,
			func(string) bool { return true })
	}
	migration := leadermigration.NewLeaderMigrator(&generic.LeaderMigration, component)
	results := make(chan error, 2)
	go func() {
		results <- m.leadAs(ctx, identity, generic.LeaderElection.ResourceLock, generic.LeaderElection.ResourceName, watch,
			only(migration, leadermigration.ControllerNonMigrated), func() { close(migration.MigrationReady) })
	}()
	go func() {
		select {
		case <-migration.MigrationReady:
			results <- m.leadAs(ctx, identity, generic.LeaderMigration.ResourceLock, generic.LeaderMigration.LeaderName, nil,
				only(migration, leadermigration.ControllerMigrated))
		case <-ctx.Done():
			results <- nil
		}
	}()
	for range cap(results) {
		if err := <-results; err != nil {
			return err // at once: after losing one lock, do not continue with the other
		}
	}
	return nil
}

// only selects the controllers for which the migration gives this result.
func only(migration *leadermigration.LeaderMigrator, of leadermigration.FilterResult) func(string) bool {
	return func(name string) bool { return migration.FilterFunc(name) == of }
}

// leadAs runs the controllers that which selects while it holds the named lock. It calls first
// before.
func (m *manager) leadAs(ctx context.Context, identity, kind, name string, watch *leaderelection.HealthzAdaptor, which func(string) bool,
	first ...func()) error {
	lock := election.Lock{
		Kubeconfig: m.config.Kubeconfig, Timing: m.config.ComponentConfig.Generic.LeaderElection, Kind: kind, Name: name,
		Identity: identity, Events: m.config.EventRecorder, Watch: watch,
	}
	return lock.Lead(ctx, func(leading context.Context) error {
		for _, f := range first {
			f()
		}
		return m.work(leading, which)
	})
}

// work runs the controllers until ctx ends and their work in flight is done. It restarts them when
// the cloud configuration changes.
func (m *manager) work(ctx context.Context, which func(string) bool) error {
	for g := m.first; g != nil; {
		working, stop := context.WithCancel(ctx)
		if err := m.start(working, g, which); err != nil {
			stop()
			return err
		}
		next := m.next(ctx, g)
		stop()
		election.Drain(g.finish)
		g.retire()
		g = next
	}
	return nil
}

// next waits for the next generation. It returns nil when ctx ends.
func (m *manager) next(ctx context.Context, g *generation) *generation {
	if m.reload != nil {
		return m.reload.next(ctx, g)
	}
	<-ctx.Done()
	return nil
}

// start starts the controllers of a generation. They stop when ctx ends.
func (m *manager) start(ctx context.Context, g *generation, which func(string) bool) error {
	if g.cloud == nil {
		return nil
	}
	c := g.config
	shared, err := frameworkapp.CreateControllerContext(c, clientbuilder.SimpleControllerClientBuilder{ClientConfig: c.Kubeconfig},
		ctx.Done())
	if err != nil {
		return fmt.Errorf("start controllers: %w", err)
	}
	g.cloud.Initialize(c.ClientBuilder, ctx.Done())
	g.cloud.SetInformers(c.SharedInformers)
	var checks []healthz.HealthChecker
	for name, start := range g.controllers {
		if !which(name) {
			continue
		}
		if !genericmanager.IsControllerEnabled(name, frameworkapp.ControllersDisabledByDefault, c.ComponentConfig.Generic.Controllers) {
			slog.Info("controller is disabled", "controller", name)
			continue
		}
		started, running, err := start(ctx, shared)
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		if !running {
			slog.Info("controller has nothing to do", "controller", name)
			continue
		}
		slog.Info("controller started", "controller", name)
		if !m.hasCheck(name) {
			checks = append(checks, healthOf(name, started))
		}
		select {
		case <-time.After(wait.Jitter(c.ComponentConfig.Generic.ControllerStartInterval.Duration, frameworkapp.ControllerStartJitter)):
		case <-ctx.Done():
			return nil // stopping
		}
	}
	m.health.AddHealthChecker(checks...)
	c.SharedInformers.Start(ctx.Done())
	shared.InformerFactory.Start(shared.Stop)
	close(shared.InformersStarted)
	return nil
}

// hasCheck reports whether a controller already has a health check from an earlier generation.
func (m *manager) hasCheck(name string) bool {
	if m.reload == nil {
		return false
	}
	already := m.checked[name]
	m.checked[name] = true
	return already
}

// healthOf returns the controller's own health check, or one that always succeeds.
func healthOf(name string, c controller.Interface) healthz.HealthChecker {
	if own, ok := c.(controller.HealthCheckable); ok {
		if check := own.HealthChecker(); check != nil {
			return controllerhealthz.NamedHealthChecker(name, check)
		}
	}
	return controllerhealthz.NamedPingChecker(name)
}
