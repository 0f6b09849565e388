package driver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/fifo" // the metrics of informers
	_ "k8s.io/component-base/metrics/prometheus/restclient"    // the metrics of requests to the API server
	_ "k8s.io/component-base/metrics/prometheus/version"       // the version metric
	_ "k8s.io/component-base/metrics/prometheus/workqueue"     // the metrics of work queues

	"kaz/internal/cloudconfig"
	"kaz/internal/component"
	"kaz/internal/component/release"
	"kaz/internal/component/traces"
	"kaz/internal/csi"
	"kaz/internal/csi/kube"
	"kaz/internal/observe"
)

// Process is a driver that runs.
type Process struct {
	Options *Options
	Program string
	Lookup  func(string) (string, bool) // of environment variables
	Client  *kube.Client                // nil without a cluster
	Log     *slog.Logger
	Metrics *csi.Metrics
	Ready   Readiness

	beside []func(context.Context)
}

// Compose returns the services of a driver and what ends them.
type Compose func(ctx context.Context, p *Process) (csi.Services, func(), error)

// Open returns the process of a program, with its client of Kubernetes.
func Open(program string, o *Options, lookup func(string) (string, bool), log *slog.Logger) (*Process, error) {
	client, err := o.Kubernetes(program)
	return &Process{Options: o, Program: program, Lookup: lookup, Log: log, Client: client}, err
}

// Run serves the driver until ctx ends. known is the prefix of the metrics of the driver that it replaces.
func (p *Process) Run(ctx context.Context, known string, compose Compose) error {
	p.Log.Info("the driver starts", "driver", p.Options.Driver, "mode", p.Options.Mode)
	endTraces, err := traces.Open(ctx, p.Options.TracingFile, p.Program)
	if err != nil {
		return err
	}
	defer endTraces()
	if p.Metrics, err = csi.NewMetrics(legacyregistry.Registerer(), known); err != nil {
		return err
	}
	return p.serve(ctx, compose)
}

// Beside has a task run while the services are served.
func (p *Process) Beside(task func(context.Context)) { p.beside = append(p.beside, task) }

func (p *Process) serve(ctx context.Context, compose Compose) error {
	services, closeAll, err := compose(ctx, p)
	if err != nil {
		return err
	}
	defer closeAll()
	services.Metrics = p.Metrics
	tasks, ctx := errgroup.WithContext(ctx)
	o := p.Options
	diagnostics := component.Diagnostics{
		Flag: "--metrics-address", Address: o.MetricsAddress, Metrics: legacyregistry.DefaultGatherer, Profiling: o.Profiling,
	}
	diagnostics.Health.Ready("driver", p.Ready.Check)
	if _, err := diagnostics.Serve(ctx, tasks); err != nil {
		return err
	}
	listener, err := csi.Listen(ctx, o.Endpoint)
	if err != nil {
		return err
	}
	tasks.Go(func() error { return csi.Serve(ctx, listener, services, p.Log) })
	if o.RegisteredSocket != "" {
		r := csi.Registration{Driver: o.Driver, Socket: o.RegisteredSocket, Dir: o.RegistrationDir, Log: p.Log}
		tasks.Go(func() error { return r.Register(ctx) })
	}
	for _, task := range p.beside {
		tasks.Go(func() error { task(ctx); return nil })
	}
	return tasks.Wait()
}

// CloudConfig reads azure.json: the Secret if there is one, else the file.
func (p *Process) CloudConfig(ctx context.Context) (cloudconfig.Config, error) {
	path := p.Options.CloudConfig
	if path == "" {
		path = DefaultConfig
		if named, ok := p.Lookup("AZURE_CREDENTIAL_FILE"); ok && named != "" {
			path = named
		}
	}
	sources := cloudconfig.Sources{Path: path, Environment: p.Lookup}
	where := path
	if text, err := p.secret(ctx); err != nil {
		return cloudconfig.Config{}, err
	} else if text != nil {
		sources.Path, sources.Secret, where = "", text, "secret "+p.Options.SecretNamespace+"/"+p.Options.SecretName
	}
	c, err := component.CloudConfig(p.Log, where, sources)
	if err != nil {
		return c, err
	}
	c.UserAgent = cmp.Or(p.Options.UserAgent, p.Options.Driver+"/"+release.Version())
	if p.Options.UserAgentSuffix != "" {
		c.UserAgent += " " + p.Options.UserAgentSuffix
	}
	return c, nil
}

// secret returns the cloud configuration in the Secret, nil if there is none.
func (p *Process) secret(ctx context.Context) ([]byte, error) {
	o := p.Options
	if p.Client == nil || o.SecretName == "" || o.SecretNamespace == "" || o.CloudConfig != "" {
		return nil, nil
	}
	secret, err := p.Client.Secrets(o.SecretNamespace).Get(ctx, o.SecretName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		p.Log.Warn("the secret with the cloud configuration may not be read: the file is used", "error", err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read secret %s/%s: %w", o.SecretNamespace, o.SecretName, err)
	}
	return secret.Data[cloudconfig.SecretKey], nil
}

// Readiness is whether a driver can serve: it can once all checks have passed. Later failures do not count: sidecars and
// livenessprobe would restart the driver, which helps against none of them.
type Readiness struct {
	mu     sync.Mutex
	checks []readyCheck
}

type readyCheck struct {
	name  string
	check observe.Check
}

// Add adds a check.
func (r *Readiness) Add(name string, check observe.Check) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks = append(r.checks, readyCheck{name, check})
}

// Check returns why the driver cannot serve yet. A check that has passed is not repeated.
func (r *Readiness) Check(ctx context.Context) error {
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
