package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics/legacyregistry"

	"kaz/internal/autoscale"
	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/component"
	"kaz/internal/component/access"
	"kaz/internal/component/release"
	"kaz/internal/retail"
)

// run serves cluster-autoscaler until ctx ends.
func run(ctx context.Context, o *options, lookup func(string) (string, bool), log *slog.Logger) error {
	registry := legacyregistry.Registerer()
	provider, metrics, err := newProvider(ctx, o, lookup, registry, log)
	if err != nil {
		return err
	}
	defer provider.Close()
	if err := registry.Register(provider); err != nil {
		return err
	}
	defer registry.Unregister(provider)
	kube, err := o.kubernetes()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return fmt.Errorf("--address: %w", err)
	}
	server, err := newServer(o, provider, metrics)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	tasks, ctx := errgroup.WithContext(ctx)
	if _, err := o.diagnostics(provider).Serve(ctx, tasks); err != nil {
		return errors.Join(err, listener.Close())
	}
	tasks.Go(func() error { provider.Run(ctx); return nil })
	if kube == nil {
		log.Warn("no Kubernetes API: a node group without nodes is described by the size of its machines alone")
	} else {
		tasks.Go(func() error { autoscale.Watch(ctx, kube, provider); return nil })
	}
	tasks.Go(func() error {
		context.AfterFunc(ctx, server.GracefulStop)
		log.Info("serving cluster-autoscaler", "address", listener.Addr().String(), "tls", o.cert != "")
		return server.Serve(listener)
	})
	return tasks.Wait()
}

// newProvider returns a provider of the cloud that the configuration names.
func newProvider(ctx context.Context, o *options, lookup func(string) (string, bool), registry prometheus.Registerer, log *slog.Logger) (
	*autoscale.Provider, *autoscale.Metrics, error,
) {
	selection, err := o.selection()
	if err != nil {
		return nil, nil, err
	}
	config, extra, err := readConfig(o.cloudConfig, lookup, log)
	if err != nil {
		return nil, nil, err
	}
	client, err := open(ctx, config, registry)
	if err != nil {
		return nil, nil, err
	}
	metrics := autoscale.NewMetrics(registry)
	var prices autoscale.PriceSource
	if o.prices != "" {
		prices = retail.Client{Source: o.prices}
	}
	provider := autoscale.New(autoscale.Config{
		Azure: struct {
			azure.Reader
			azure.Writer
		}{client.Fresh(), client},
		ResourceGroup: groupOf(config), Location: strings.ToLower(strings.ReplaceAll(config.Location, " ", "")), Selection: selection,
		ForceDelete: o.forceDelete || extra.EnableForceDelete, Prices: prices, SetsEvery: o.setsEvery, Metrics: metrics, Log: log,
	})
	return provider, metrics, nil
}

func groupOf(config cloudconfig.Config) azure.ID {
	return azure.GroupID(config.SubscriptionID, config.ResourceGroup)
}

// open opens Azure as the cloud configuration describes it.
func open(ctx context.Context, config cloudconfig.Config, registry prometheus.Registerer) (*access.Clients, error) {
	config.UserAgent = name + "/" + release.Version()
	// The provider keeps what it read itself.
	client, _, err := access.Open(ctx, config, access.ClientOptions{
		TTL: map[string]time.Duration{"": 0}, Registerer: registry, Finish: time.Minute,
	})
	return client, err
}

// kubernetes returns a client of the Kubernetes API, nil where there is none or none is wanted.
func (o *options) kubernetes() (kubernetes.Interface, error) {
	if !o.watchNodes {
		return nil, nil
	}
	config, err := o.kube.Read(name)
	if config == nil {
		return nil, err
	}
	// The lists of nodes are large.
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	return kubernetes.NewForConfig(config)
}

// newServer returns the gRPC server, with certificates if there are any.
func newServer(o *options, provider *autoscale.Provider, metrics *autoscale.Metrics) (*grpc.Server, error) {
	options := []grpc.ServerOption{grpc.UnaryInterceptor(metrics.Intercept)}
	if o.cert != "" {
		files := certificates{o.cert, o.key, o.clientCA}
		if _, err := files.config(nil); err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS12, GetConfigForClient: files.config,
		})))
	}
	server := grpc.NewServer(options...)
	externalgrpc.RegisterCloudProviderServer(server, &autoscale.Server{Provider: provider})
	return server, nil
}

// certificates are the paths of the server's certificate, of its key, and of the certificates that sign clients'.
type certificates struct{ cert, key, clientCA string }

// config reads the certificates for one connection. Clients connect rarely, and so new certificates need no restart.
func (c certificates) config(*tls.ClientHelloInfo) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("--cert and --key-cert: %w", err)
	}
	text, err := os.ReadFile(c.clientCA)
	if err != nil {
		return nil, fmt.Errorf("--ca-cert: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("--ca-cert %s: has no certificate in PEM", c.clientCA)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}, nil
}

// diagnostics returns the metrics and the health of the program.
func (o *options) diagnostics(provider *autoscale.Provider) *component.Diagnostics {
	d := &component.Diagnostics{
		Flag: "--metrics-address", Address: o.metricsAddress, Metrics: legacyregistry.DefaultGatherer,
		Pages: map[string]http.HandlerFunc{autoscale.ViewPath + "{name}": provider.ServeView},
	}
	d.Health.Ready("scale sets", func(context.Context) error {
		if !provider.Ready() {
			return errors.New("the scale sets have not been read yet")
		}
		return nil
	})
	return d
}
