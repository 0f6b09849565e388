package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"

	"kaz/cmd/internal/kubeconfig"
	"kaz/cmd/internal/release"
	"kaz/internal/imds"
	"kaz/internal/nodemanager"
	"kaz/internal/observe"
	"kaz/internal/observe/tracing"
)

// run manages the nodes until ctx ends.
func run(ctx context.Context, o *options, lookup func(string) (string, bool)) error {
	log, err := observe.NewLogger(os.Stderr, slog.Level(-int(o.logging.Verbosity)), o.logging.Format)
	if err != nil {
		return err
	}
	observe.UseForKubernetes(log)
	slog.SetDefault(log)
	log.Info("cloud-node-manager", "version", release.Version())
	traces, err := tracing.Open(ctx, o.tracingFile, name, release.Version())
	if err != nil {
		return fmt.Errorf("--tracing-config-file: %w", err)
	}
	defer func() {
		if err := traces.Close(ctx); err != nil {
			log.Warn("tracing", "error", err)
		}
	}()
	config, err := o.kubernetes()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("kubernetes client: %w", err)
	}
	m, err := open(ctx, o, lookup)
	if err != nil {
		return err
	}
	defer m.close()
	metrics, err := nodemanager.NewMetrics(legacyregistry.Registerer())
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	group, err := nodemanager.New(nodemanager.Config{
		Client: client, Only: m.only, Period: o.updateFrequency, Resync: o.minResync,
		WaitRoutes: o.waitRoutes, BetaLabels: o.betaLabels, Metrics: metrics, Log: log,
		Events: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "cloud-node-controller"}),
	})
	if err != nil {
		return err
	}
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.Go(func() error { return group.Run(ctx, m.members, m.changes) })
	tasks.Go(func() error { return m.watch(ctx, log) })
	tasks.Go(func() error { return o.serve(ctx, group.Synced) })
	return tasks.Wait()
}

func (o *options) kubernetes() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags(o.master, o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %q, --master %q: %w", o.kubeconfig, o.master, kubeconfig.Explain(err))
	}
	config.QPS, config.Burst, config.ContentType = o.qps, int(o.burst), o.contentType
	return rest.AddUserAgent(config, name), nil
}

// machines are the managed nodes and the sources of their machines' properties.
type machines struct {
	members []nodemanager.Member
	only    string // the only node, if there is only one
	changes chan []nodemanager.Member
	watch   func(context.Context, *slog.Logger) error
	close   func()
}

// open determines the nodes and opens their sources.
func open(ctx context.Context, o *options, lookup func(string) (string, bool)) (*machines, error) {
	if o.nodeList != "" {
		return openList(o.nodeList)
	}
	node, err := o.node(lookup)
	if err != nil {
		return nil, err
	}
	m := &machines{only: node, watch: func(context.Context, *slog.Logger) error { return nil }}
	var source nodemanager.Source
	if o.useMetadata {
		client, err := metadataClient(o.metadataEndpoint)
		if err != nil {
			return nil, err
		}
		source, m.close = nodemanager.FromMetadata{Service: client}, client.Close
	} else {
		cloud, err := openCloud(ctx, o.cloudConfig, lookup)
		if err != nil {
			return nil, err
		}
		instances, ok := cloud.InstancesV2()
		if !ok {
			return nil, errors.New("the cloud provider tells nothing of instances")
		}
		source, m.close = nodemanager.FromAzure{Instances: instances}, cloud.Close
	}
	m.members = []nodemanager.Member{{Node: node, Source: source}}
	return m, nil
}

func metadataClient(endpoint string) (*imds.Client, error) {
	return imds.New(imds.Config{Endpoint: endpoint, UserAgent: "kaz-" + name + "/" + release.Version()})
}
