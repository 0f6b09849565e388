package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"

	"kaz/internal/component"
	"kaz/internal/component/event"
	"kaz/internal/component/kubeconfig"
	"kaz/internal/component/release"
	"kaz/internal/component/traces"
	"kaz/internal/imds"
	"kaz/internal/nodemanager"
)

// run manages the nodes until ctx ends.
func run(ctx context.Context, o *options, lookup func(string) (string, bool), log *slog.Logger) error {
	endTraces, err := traces.Open(ctx, o.tracingFile, name)
	if err != nil {
		return err
	}
	defer endTraces()
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
	events, stopEvents := event.NewRecorder(ctx, client, "cloud-node-controller")
	defer stopEvents()
	group, err := nodemanager.New(nodemanager.Config{
		Client: client, Only: m.only, Period: o.updateFrequency, Resync: o.minResync,
		WaitRoutes: o.waitRoutes, BetaLabels: o.betaLabels, Metrics: metrics, Log: log, Events: events,
	})
	if err != nil {
		return err
	}
	tasks, ctx := errgroup.WithContext(ctx)
	if _, err := component.ServeMetrics(ctx, tasks, "--metrics-address", o.metricsAddress, legacyregistry.DefaultGatherer); err != nil {
		return err
	}
	tasks.Go(func() error { return group.Run(ctx, m.members, m.changes) })
	tasks.Go(func() error { return m.watch(ctx, log) })
	tasks.Go(func() error { return o.serve(ctx, group.Synced) })
	return tasks.Wait()
}

func (o *options) kubernetes() (*rest.Config, error) {
	config, err := kubeconfig.Read(o.master, o.kubeconfig)
	if err != nil {
		return nil, err
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
