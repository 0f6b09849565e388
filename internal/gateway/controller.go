// Package gateway is the controller that serves Ingresses and the Gateway API with application gateways. Layer L3.
//
// An application gateway is one document for many objects. What changes within a moment is written together. Each write is planned on a
// fresh read, and none is made if nothing differs. What Azure refuses is traced to its object: all others are served.
package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	networking "k8s.io/api/networking/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	gatewayclient "sigs.k8s.io/gateway-api/pkg/client/clientset/versioned"

	"kaz/internal/azure"
	"kaz/internal/controller"
	"kaz/internal/gateway/metrics"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/reconcile"
)

// Config is what a controller is made with.
type Config struct {
	planner.Config
	// Applications are the application gateways. The first one is Gateway, which alone serves Ingresses. None means Gateway alone.
	Applications []azure.ID
	Class        ingress.Class
	// Namespaces are those of the objects that are served, none for all.
	Namespaces []string
	Azure      reconcile.Azure
	Kube       kubernetes.Interface
	// GatewayAPI is the client of the Gateway API, nil to serve Ingresses alone.
	GatewayAPI gatewayclient.Interface
	// Dynamic is a client for AGIC's objects with rewrite rules and prohibited targets, nil to read none.
	Dynamic dynamic.Interface
	Events  record.EventRecorder
	Log     *slog.Logger
	Metrics *metrics.Metrics // nil for none

	// Calm is how long a change waits for a next one, and Most how long it waits at most.
	Calm, Most time.Duration
	// Drift is the time from one comparison with Azure to the next, if nothing changes.
	Drift time.Duration
}

// The usual times of a [Config].
const (
	Calm  = 300 * time.Millisecond
	Most  = 2 * time.Second
	Drift = 65 * time.Second // an hour without changes costs less than 60 reads
)

// reasons is empty: an object is decided from what is known when it is decided.
type reasons struct{}

// And implements [controller.Reasons].
func (reasons) And(reasons) reasons { return reasons{} }

// Controller serves Ingresses and the Gateway API with application gateways. Each of these has a worker.
type Controller struct {
	config   Config
	kube     *kube
	workers  []*worker
	statuses *controller.Queue[string, reasons]
	gates    *gates

	assigning sync.Mutex // held while the application gateways of Gateways are chosen

	mu         sync.Mutex // guards what follows
	assignment assignment
	verdicts   map[string]map[azure.ID]verdict // by object and application gateway
	running    bool
}

// New returns a controller, which [Controller.Run] runs.
func New(config Config) *Controller {
	if len(config.Applications) == 0 {
		config.Applications = []azure.ID{config.Gateway}
	}
	c := &Controller{
		config: config, kube: newKube(config), statuses: controller.NewQueue[string, reasons]("statuses"),
		verdicts: map[string]map[azure.ID]verdict{},
	}
	c.gates = newGates(c)
	for n, id := range config.Applications {
		c.workers = append(c.workers, newWorker(c, id, n == 0))
	}
	return c
}

// Ready returns an error from the start of [Controller.Run] until each application gateway was compared with its objects.
func (c *Controller) Ready(context.Context) error {
	c.mu.Lock()
	running := c.running
	c.mu.Unlock()
	for _, w := range c.workers {
		if running && !w.hasCompared() {
			return fmt.Errorf("the application gateway %s has not been compared with the Ingresses and Gateways yet", w.id)
		}
	}
	return nil
}

// Run serves objects until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	c.mu.Lock()
	c.running = true
	c.mu.Unlock()
	var work sync.WaitGroup
	defer func() {
		c.statuses.ShutDown()
		for _, w := range c.workers {
			w.queue.ShutDown()
		}
		work.Wait()
		for _, w := range c.workers {
			w.commits.Close()
		}
	}()
	if err := c.watch(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	stop := c.kube.start(ctx)
	defer stop()
	if err := c.kube.wait(ctx); err != nil {
		return nil // ctx has ended
	}
	c.begin()
	const writers = 4
	for range writers {
		work.Go(func() { statusWriter{c}.run(ctx) })
	}
	for _, w := range c.workers {
		work.Go(func() { w.dispatch(ctx, &work) })
		work.Go(func() { w.diagnosis.run(ctx) })
	}
	work.Go(func() { c.gates.run(ctx) })
	c.gates.wake()
	<-ctx.Done()
	return nil
}

// begin marks what is there at the start.
func (c *Controller) begin() {
	for _, i := range c.kube.ingresses() {
		if c.isOurs(i) {
			c.workers[0].mark(keyOf(i))
		}
	}
	if c.kube.api != nil {
		c.assign()
		for _, class := range c.kube.api.objects().Classes {
			c.statuses.Mark(keyOf(class), reasons{})
		}
		for _, r := range c.kube.routes() { // it may have the status of a Gateway that is gone
			c.statuses.Mark(keyOf(r), reasons{})
		}
	}
	for _, w := range c.workers {
		w.mark(everything)
	}
}

func (c *Controller) isOurs(i *networking.Ingress) bool {
	return i.DeletionTimestamp == nil && c.config.Class.Takes(i, c.kube.classes())
}

// waitForCaches waits until all informers have their objects.
func waitForCaches(ctx context.Context, synced []cache.InformerSynced) error {
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	return nil
}
