package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/component-base/metrics/legacyregistry"
	gatewayclient "sigs.k8s.io/gateway-api/pkg/client/clientset/versioned"

	"kaz/internal/component"
	"kaz/internal/component/election"
	"kaz/internal/component/event"
	"kaz/internal/gateway"
	"kaz/internal/gateway/answers"
	"kaz/internal/gateway/metrics"
	"kaz/internal/observe"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/merge"
	"kaz/internal/plan/gateway/naming"
)

// run serves Ingresses and the Gateway API until ctx ends. With leader election, only one replica does at a time.
func run(ctx context.Context, o *settings, lookup func(string) (string, bool), log *slog.Logger) error {
	kube, err := o.kube.Read(name)
	if err == nil && kube == nil {
		err = errors.New("--kubeconfig: the program does not run in a pod, so a kubeconfig is needed")
	}
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return err
	}
	config, stop, err := o.controller(ctx, client, lookup, log)
	if err != nil {
		return err
	}
	defer stop()
	if config.Dynamic, err = dynamic.NewForConfig(kube); err != nil {
		return err
	}
	if o.gatewayAPI {
		if config.GatewayAPI, err = gatewayclient.NewForConfig(kube); err != nil {
			return err
		}
	}
	controller := gateway.New(config)
	watch := leaderelection.NewLeaderHealthzAdaptor(o.election.LeaseDuration.Duration)
	tasks, ctx := errgroup.WithContext(ctx)
	d := &component.Diagnostics{Flag: "--metrics-address", Address: o.metricsAddress}
	d.Metrics = withAGIC(legacyregistry.DefaultGatherer, labelsOfAGIC(config.Gateway, config.Class.Value, lookup))
	d.Pages = map[string]http.HandlerFunc{"/health/alive": d.Health.ServeLive, "/health/ready": d.Health.ServeReady} // those of AGIC
	d.Health.Ready("application gateway", controller.Ready)
	if o.election.LeaderElect {
		d.Health.Live("leader election", func(context.Context) error { return watch.Check(nil) })
	}
	if _, err := d.Serve(ctx, tasks); err != nil {
		return err
	}
	if err := o.serveAnswers(ctx, tasks, log); err != nil {
		return err
	}
	log.Info("serving Ingresses and the Gateway API", "gateways", config.Applications, "prefix", config.Prefix)
	tasks.Go(func() error {
		if !o.election.LeaderElect {
			return work(ctx, controller)
		}
		return o.lead(ctx, kube, watch, config, controller)
	})
	return tasks.Wait()
}

// serveAnswers serves status codes, if a Service leads to them. All replicas do.
func (o *settings) serveAnswers(ctx context.Context, tasks *errgroup.Group, log *slog.Logger) error {
	if o.answers == "" {
		return nil
	}
	listener, err := observe.Listen(ctx, o.answersAddress)
	if err != nil {
		return fmt.Errorf("--answers-address: %w", err)
	}
	log.Info("answering for the application gateway", "address", listener.Addr().String(), "service", o.answers)
	tasks.Go(func() error { return observe.Serve(ctx, listener, answers.Handler()) })
	return nil
}

// work runs the controller. When ctx ends, it waits for the write in flight.
func work(ctx context.Context, controller *gateway.Controller) error {
	done := make(chan error, 1)
	go func() { done <- controller.Run(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	var err error
	election.Drain(func() { err = <-done })
	return err
}

// lead runs the controller while this replica holds the lock.
func (o *settings) lead(ctx context.Context, kube *rest.Config, watch *leaderelection.HealthzAdaptor, config gateway.Config,
	controller *gateway.Controller) error {
	identity, err := election.Identity()
	if err != nil {
		return err
	}
	lock := election.Lock{
		Kubeconfig: kube, Timing: o.election, Kind: o.election.ResourceLock, Name: o.election.ResourceName, Identity: identity,
		Events: config.Events, Watch: watch,
	}
	return lock.Lead(ctx, func(ctx context.Context) error { return work(ctx, controller) })
}

// atStart is the timeout of the requests before the controller starts.
const atStart = time.Minute

// controller returns the configuration of the controller. The caller calls stop.
func (o *settings) controller(ctx context.Context, client kubernetes.Interface, lookup func(string) (string, bool), log *slog.Logger) (
	config gateway.Config, stop func(), err error,
) {
	cloud, err := o.readConfig(lookup, log)
	if err != nil {
		return config, nil, err
	}
	registry := legacyregistry.Registerer()
	azure, err := open(ctx, cloud, registry)
	if err != nil {
		return config, nil, err
	}
	identity, err := identityOf(ctx, client)
	if err != nil {
		return config, nil, err
	}
	short := o.clusterID
	if short == "" {
		short = naming.Short(identity)
	}
	events, stop := event.NewRecorder(ctx, client, name)
	return gateway.Config{
		Config: planner.Config{
			Gateway:   o.id(cloud),
			Ownership: merge.Ownership{Prefix: naming.Of(short), Exclusive: o.exclusive, AGIC: o.adoptAGIC},
			Identity:  identity, Ingress: o.ingress, Answers: o.answers,
		},
		Applications: o.applications(cloud),
		Class:        o.class, Namespaces: o.namespaces, Azure: azure, Kube: client, Events: events, Log: log,
		Metrics: metrics.New(registry), Calm: gateway.Calm, Most: gateway.Most, Drift: o.drift,
	}, stop, nil
}

// identityOf returns what tells a cluster from all others: the UID of its first namespace.
func identityOf(ctx context.Context, client kubernetes.Interface) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, atStart)
	defer cancel()
	namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("identity of the cluster: %w", err)
	}
	return string(namespace.UID), nil
}
