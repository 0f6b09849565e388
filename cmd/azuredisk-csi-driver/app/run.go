package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go's metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // the version metric

	"kaz/cmd/internal/release"
	"kaz/internal/csi"
	"kaz/internal/csi/disk"
	"kaz/internal/csi/hooks"
	"kaz/internal/observe"
	"kaz/internal/observe/tracing"
)

// run serves the driver until ctx ends.
func run(ctx context.Context, o *options, lookup func(string) (string, bool)) error {
	log, err := observe.NewLogger(os.Stderr, slog.Level(-int(o.logging.Verbosity)), o.logging.Format)
	if err != nil {
		return err
	}
	observe.UseForKubernetes(log)
	slog.SetDefault(log)
	client, err := o.kubernetes()
	if err != nil {
		return err
	}
	d := &driver{options: o, lookup: lookup, client: client, log: log}
	if o.stopHook {
		return d.awaitDetachment(ctx)
	}
	log.Info(name, "version", release.Version(), "driver", o.driver, "mode", o.mode)
	traces, err := tracing.Open(ctx, o.tracingFile, name, release.Version())
	if err != nil {
		return fmt.Errorf("--tracing-config-file: %w", err)
	}
	defer func() {
		if err := traces.Close(ctx); err != nil {
			log.Warn("tracing", "error", err)
		}
	}()
	return d.run(ctx)
}

// run serves the services of the mode until ctx ends.
func (d *driver) run(ctx context.Context) error {
	var err error
	if d.metrics, err = csi.NewMetrics(legacyregistry.Registerer(), knownMetrics); err != nil {
		return err
	}
	services, closeAll, err := d.services(ctx)
	if err != nil {
		return err
	}
	defer closeAll()
	tasks, ctx := errgroup.WithContext(ctx)
	if err := d.serveDiagnostics(ctx, tasks); err != nil {
		return err
	}
	listener, err := csi.Listen(ctx, d.options.endpoint)
	if err != nil {
		return err
	}
	tasks.Go(func() error { return csi.Serve(ctx, listener, services, d.log) })
	if o := d.options; o.registeredSocket != "" {
		r := csi.Registration{Driver: o.driver, Socket: o.registeredSocket, Dir: o.registrationDir, Log: d.log}
		tasks.Go(func() error { return r.Register(ctx) })
	}
	if services.Node != nil && d.client != nil && d.options.removeTaint {
		taint := &hooks.Taint{
			Client: d.client, Driver: d.options.driver, Node: d.options.node, Once: !d.options.keepRemoving, Log: d.log,
			Delay: time.Duration(d.options.taintDelay) * time.Second,
		}
		tasks.Go(func() error { taint.Run(ctx); return nil })
	}
	return tasks.Wait()
}

// awaitDetachment waits until a drained node has no volumes.
func (d *driver) awaitDetachment(ctx context.Context) error {
	node := d.options.node
	if named, ok := d.lookup("KUBE_NODE_NAME"); ok && node == "" {
		node = named
	}
	switch {
	case node == "":
		return errors.New("--pre-stop-hook: --nodeid and $KUBE_NODE_NAME are missing: want the name of the node")
	case d.client == nil:
		return errors.New("--pre-stop-hook: needs the Kubernetes API: --kubeconfig is missing, and this is no pod")
	}
	return (&hooks.Stop{Client: d.client, Driver: d.options.driver, Node: node, Log: d.log}).Wait(ctx)
}

// kubernetes returns a client of the Kubernetes API. Outside a cluster and without a kubeconfig there is none.
func (o *options) kubernetes() (client kubernetes.Interface, err error) {
	var config *rest.Config
	if o.kubeconfig == "" {
		if config, err = rest.InClusterConfig(); errors.Is(err, rest.ErrNotInCluster) {
			return client, nil
		}
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %q: %w", o.kubeconfig, err)
	}
	config.QPS, config.Burst = o.qps, o.burst
	return kubernetes.NewForConfig(rest.AddUserAgent(config, name))
}

// driver composes the services of a driver.
type driver struct {
	options *options
	lookup  func(string) (string, bool)
	client  kubernetes.Interface // nil without a cluster
	log     *slog.Logger
	metrics *csi.Metrics
	ready   readiness
	sizes   *disk.Sizes // nil without a cloud configuration
}

// services returns the services of the mode, and what ends them. A node without a cloud configuration has no
// controller.
func (d *driver) services(ctx context.Context) (csi.Services, func(), error) {
	o := d.options
	c := disk.Config{
		Name: o.driver, Version: release.Version(), OnlineResize: o.onlineResize, ConvertCaching: o.convertCaching,
		ListVolumes: o.listVolumes, Log: d.log,
		Limit: func(context.Context, string) int { return 0 }, Ready: d.ready.check, Batches: d.metrics.Batch,
	}
	s := csi.Services{Identity: &disk.Identity{Config: c}, Metrics: d.metrics}
	err := d.openAzure(ctx, &c)
	if err != nil && (o.mode == modeController || o.node == "") {
		return s, nil, err
	}
	if err != nil {
		d.log.Warn("no controller, and no limit of disks by the size of the machine", "error", err)
	}
	if o.mode != modeController && o.node != "" {
		if s.Node, err = d.node(c); err != nil {
			return s, nil, err
		}
	}
	if o.mode == modeNode || c.Azure == nil {
		return s, func() {}, nil
	}
	controller := disk.NewController(c)
	s.Controller = controller
	return s, controller.Close, nil
}
