package app

import (
	"context"
	"errors"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/cloud-provider/app/config"
	"k8s.io/controller-manager/pkg/clientbuilder"

	"kaz/internal/azure"
	"kaz/internal/reconcile"
)

// requestGuard counts and finally stops the requests of the controllers of one configuration. The
// framework's controllers cannot be waited for. Once the guard is closed, their leftovers send no
// further request, and none is in flight.
type requestGuard struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

// errReplaced is the error of requests after the configuration was replaced.
var errReplaced = errors.New("the cloud configuration of this request was replaced")

func (g *requestGuard) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errReplaced
	}
	g.inside.Add(1)
	return nil
}

// refuse rejects all further requests.
func (g *requestGuard) refuse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// close rejects all further requests and waits for those in flight.
func (g *requestGuard) close() {
	g.refuse()
	g.inside.Wait()
}

// kubernetes returns the program's configuration with Kubernetes clients under the guard.
func (g *requestGuard) kubernetes(c *config.CompletedConfig) (*config.CompletedConfig, error) {
	own := *c.Config
	own.LoopbackClientConfig = nil // is already in use
	own.Kubeconfig = rest.CopyConfig(c.Kubeconfig)
	own.Kubeconfig.Wrap(g.transport)
	client, err := kubernetes.NewForConfig(own.Kubeconfig)
	if err != nil {
		return nil, err
	}
	own.Client, own.VersionedClient = client, client
	own.ClientBuilder = clientbuilder.SimpleControllerClientBuilder{ClientConfig: own.Kubeconfig}
	if c.ComponentConfig.KubeCloudShared.UseServiceAccountCredentials {
		anonymous := rest.AnonymousClientConfig(c.Kubeconfig)
		anonymous.Wrap(g.transport)
		own.ClientBuilder = clientbuilder.NewDynamicClientBuilder(anonymous, client.CoreV1(), metav1.NamespaceSystem)
	}
	return own.Complete(), nil
}

func (g *requestGuard) transport(next http.RoundTripper) http.RoundTripper {
	return guardedTransport{g, next}
}

type guardedTransport struct {
	guard *requestGuard
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t guardedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.guard.enter(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // required of a RoundTripper
		}
		return nil, err
	}
	defer t.guard.inside.Done()
	return t.next.RoundTrip(r)
}

// azure returns an ARM client under the guard.
func (g *requestGuard) azure(client reconcile.Azure) reconcile.Azure {
	return guardedClient{guardedReader{g, client}, azure.Around(client, g.begin), guardedReader{g, client.Fresh()}}
}

type guardedClient struct {
	guardedReader
	azure.Writer
	fresh azure.Reader
}

// Fresh reads past the cache.
func (c guardedClient) Fresh() azure.Reader { return c.fresh }

// begin counts a change as in flight until it has ended. A closed guard rejects it.
func (g *requestGuard) begin(_ context.Context, r azure.Request) (ended func(azure.Document, error), err error) {
	if err := g.enter(); err != nil {
		return nil, &azure.Error{Kind: azure.Canceled, Op: r.Op(), ID: r.ID, Cause: err}
	}
	return func(azure.Document, error) { g.inside.Done() }, nil
}

type guardedReader struct {
	guard  *requestGuard
	reader azure.Reader
}

// Get implements [azure.Reader].
func (r guardedReader) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return guarded(r.guard, id, func() (azure.Document, error) { return r.reader.Get(ctx, id) })
}

// List implements [azure.Reader].
func (r guardedReader) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return guarded(r.guard, q.Scope, func() ([]azure.Document, error) { return r.reader.List(ctx, q) })
}

// guarded reads, unless the guard is closed.
func guarded[T any](g *requestGuard, id azure.ID, read func() (T, error)) (T, error) {
	if err := g.enter(); err != nil {
		var nothing T
		return nothing, &azure.Error{Kind: azure.Canceled, Op: http.MethodGet, ID: id, Cause: err}
	}
	defer g.inside.Done()
	return read()
}
