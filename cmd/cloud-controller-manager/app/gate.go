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

// gate is what all requests of the controllers of one configuration go through. The
// framework's controllers cannot be waited for; behind a closed gate nothing that is
// left of them does anything, and nothing of what they did is still on its way.
type gate struct {
	mu     sync.Mutex
	closed bool
	inside sync.WaitGroup
}

// errReplaced is what those meet who come too late.
var errReplaced = errors.New("the cloud configuration that this was begun with is not in force any more")

func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errReplaced
	}
	g.inside.Add(1)
	return nil
}

// refuse lets nobody in any more.
func (g *gate) refuse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// close lets nobody in any more and waits for those who are.
func (g *gate) close() {
	g.refuse()
	g.inside.Wait()
}

// kubernetes is the program's configuration with clients that go through the gate.
func (g *gate) kubernetes(c *config.CompletedConfig) (*config.CompletedConfig, error) {
	own := *c.Config
	own.LoopbackClientConfig = nil // it has been seen to
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

func (g *gate) transport(next http.RoundTripper) http.RoundTripper { return gatedTransport{g, next} }

type gatedTransport struct {
	gate *gate
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t gatedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.gate.enter(); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // nobody reads it
		}
		return nil, err
	}
	defer t.gate.inside.Done()
	return t.next.RoundTrip(r)
}

// azure is a door behind the gate.
func (g *gate) azure(door reconcile.Azure) reconcile.Azure { return gatedDoor{g, door} }

type gatedDoor struct {
	gate *gate
	door reconcile.Azure
}

// through does something with the door, if the gate is open.
func through[T any](g *gate, op string, id azure.ID, do func() (T, error)) (T, error) {
	if err := g.enter(); err != nil {
		var nothing T
		return nothing, &azure.Error{Kind: azure.Canceled, Op: op, ID: id, Cause: err}
	}
	defer g.inside.Done()
	return do()
}

// Get implements [azure.Reader].
func (d gatedDoor) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return through(d.gate, http.MethodGet, id, func() (azure.Document, error) { return d.door.Get(ctx, id) })
}

// List implements [azure.Reader].
func (d gatedDoor) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return through(d.gate, http.MethodGet, q.Scope, func() ([]azure.Document, error) { return d.door.List(ctx, q) })
}

// Put implements [azure.Writer].
func (d gatedDoor) Put(ctx context.Context, w azure.Write) (azure.Document, error) {
	return through(d.gate, http.MethodPut, w.ID, func() (azure.Document, error) { return d.door.Put(ctx, w) })
}

// Patch implements [azure.Writer].
func (d gatedDoor) Patch(ctx context.Context, w azure.Write) (azure.Document, error) {
	return through(d.gate, http.MethodPatch, w.ID, func() (azure.Document, error) { return d.door.Patch(ctx, w) })
}

// Delete implements [azure.Writer].
func (d gatedDoor) Delete(ctx context.Context, id azure.ID) error {
	_, err := through(d.gate, http.MethodDelete, id, func() (struct{}, error) { return struct{}{}, d.door.Delete(ctx, id) })
	return err
}

// Post implements [azure.Writer].
func (d gatedDoor) Post(ctx context.Context, id azure.ID, action string, body azure.Document) (azure.Document, error) {
	return through(d.gate, http.MethodPost+" "+action, id, func() (azure.Document, error) { return d.door.Post(ctx, id, action, body) })
}

// Fresh reads past the cache.
func (d gatedDoor) Fresh() azure.Reader { return gatedReader{d.gate, d.door.Fresh()} }

type gatedReader struct {
	gate   *gate
	reader azure.Reader
}

func (r gatedReader) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return through(r.gate, http.MethodGet, id, func() (azure.Document, error) { return r.reader.Get(ctx, id) })
}

func (r gatedReader) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return through(r.gate, http.MethodGet, q.Scope, func() ([]azure.Document, error) { return r.reader.List(ctx, q) })
}
