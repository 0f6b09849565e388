// Package gateway is the controller that serves Ingresses with an application gateway. Layer L3.
//
// The gateway is one document for all Ingresses. What changes within a moment is written together. Each write is planned on a fresh read,
// and none is made if nothing differs. What Azure refuses is traced to its Ingress: all others are served.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	networking "k8s.io/api/networking/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"kaz/internal/azure"
	"kaz/internal/controller"
	"kaz/internal/plan"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/cluster"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/reconcile"
)

// Config is what a controller is made with.
type Config struct {
	planner.Config
	Class ingress.Class
	// Namespaces are those of the Ingresses, none for all.
	Namespaces []string
	Azure      reconcile.Azure
	Kube       kubernetes.Interface
	Events     record.EventRecorder
	Log        *slog.Logger
	Metrics    *Metrics // nil for none

	// Calm is how long a change waits for a next one, and Most how long it waits at most.
	Calm, Most time.Duration
	// Drift is the time from one comparison with Azure to the next, if nothing changes.
	Drift time.Duration
}

// The usual times of a [Config].
const (
	Calm  = 300 * time.Millisecond
	Most  = 2 * time.Second
	Drift = time.Minute
)

// everything is the key that stands for a comparison with Azure. It is no key of an Ingress.
const everything = ""

// reasons is empty: an Ingress is decided from what is known when it is decided.
type reasons struct{}

// And implements [controller.Reasons].
func (reasons) And(reasons) reasons { return reasons{} }

// Controller serves Ingresses with an application gateway.
type Controller struct {
	config   Config
	kube     *kube
	queue    *controller.Queue[string, reasons]
	statuses *controller.Queue[string, reasons]
	commits  *reconcile.Coalescer[string, struct{}]

	// What follows belongs to the commit, of which there is one at a time.
	accepted map[string]*networking.Ingress // as they were last written
	objects  *cluster.Objects               // of the last commit
	address  addresses
	empty    emptiness

	mu       sync.Mutex // guards what follows
	refused  map[string]error
	failures map[string]int
	events   map[string]*controller.Deduplicator[plan.Problem]
	wanted   map[string]string // addresses in the status of Ingresses, "" for none
	held     string            // why nothing is written
	running  bool
	compared bool // a commit has ended well
}

// New returns a controller, which [Controller.Run] runs.
func New(c Config) *Controller {
	k := &Controller{
		config: c, kube: newKube(c),
		queue:    controller.NewQueue[string, reasons]("ingresses"),
		statuses: controller.NewQueue[string, reasons]("statuses"),
		accepted: map[string]*networking.Ingress{}, refused: map[string]error{}, failures: map[string]int{},
		events: map[string]*controller.Deduplicator[plan.Problem]{}, wanted: map[string]string{},
	}
	k.commits = reconcile.NewCoalescer(k.commit)
	k.commits.Gather(c.Calm, c.Most)
	return k
}

// Ready returns an error from the start of [Controller.Run] until the gateway was compared with the Ingresses.
func (c *Controller) Ready(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running && !c.compared {
		return errors.New("the application gateway has not been compared with the Ingresses yet")
	}
	return nil
}

// Run serves Ingresses until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	defer c.commits.Close()
	c.mu.Lock()
	c.running = true
	c.mu.Unlock()
	var work sync.WaitGroup
	defer work.Wait()
	defer c.statuses.ShutDown()
	defer c.queue.ShutDown()
	if err := c.watch(); err != nil {
		return err
	}
	stop := c.kube.start(ctx)
	defer stop()
	if err := c.kube.wait(ctx); err != nil {
		return nil // ctx has ended
	}
	for _, i := range c.kube.ingresses() {
		if c.isOurs(i) {
			c.queue.Mark(keyOf(i), reasons{})
		}
	}
	c.queue.Mark(everything, reasons{})
	const writers = 4
	for range writers {
		work.Go(func() { c.updateStatuses(ctx) })
	}
	work.Go(func() { c.dispatch(ctx, &work) })
	<-ctx.Done()
	return nil
}

// dispatch hands the keys of the queue to commits. Each waits for its commit; a key that is marked meanwhile is handed over again.
func (c *Controller) dispatch(ctx context.Context, work *sync.WaitGroup) {
	for {
		key, down := c.queue.Get()
		if down {
			return
		}
		work.Go(func() {
			defer c.queue.Done(key)
			c.queue.Take(key)
			c.serve(ctx, key)
		})
	}
}

// serve commits one Ingress with all others that wait, and deals with the answer.
func (c *Controller) serve(ctx context.Context, key string) {
	_, err := c.commits.Submit(ctx, c.config.Gateway.Key(), key)
	if key == everything {
		defer c.queue.MarkAfter(everything, reasons{}, c.config.Drift)
	}
	if ctx.Err() != nil || errors.Is(err, reconcile.ErrClosed) {
		return
	}
	c.mu.Lock()
	if err == nil {
		delete(c.failures, key)
		c.mu.Unlock()
		return
	}
	c.failures[key]++
	wait := controller.Delay(err, c.failures[key])
	c.mu.Unlock()
	if key != everything {
		c.refuse(key, err)
		c.queue.MarkAfter(key, reasons{}, wait)
	}
	c.config.Log.Warn("cannot write the application gateway", "ingress", key, "error", err, "again_in", wait.String())
}

// refuse notes that Azure has refused an Ingress, and tells its owner.
func (c *Controller) refuse(key string, err error) {
	if refusal, ok := errors.AsType[*azure.Error](err); !ok || !controller.IsLasting(refusal) {
		return
	}
	c.mu.Lock()
	c.refused[key] = err
	c.mu.Unlock()
	c.report(key, []plan.Problem{{
		Object: objectKey(key), Reason: reasonRefused,
		Message: fmt.Sprintf("Azure refuses the application gateway with this Ingress: %v; others are served, and it is tried again", err),
	}})
}

// reasonRefused is AGIC's reason of the event.
const reasonRefused = "FailedApplyingAppGwConfig"

func keyOf(i *networking.Ingress) string { return i.Namespace + "/" + i.Name }

func objectKey(key string) string { return ingress.Kind + "/" + key }

func (c *Controller) isOurs(i *networking.Ingress) bool {
	return i.DeletionTimestamp == nil && c.config.Class.Takes(i, c.kube.classes())
}

// current returns the Ingresses of the controller's class by key.
func (c *Controller) current() map[string]*networking.Ingress {
	all := map[string]*networking.Ingress{}
	for _, i := range c.kube.ingresses() {
		if c.isOurs(i) {
			all[keyOf(i)] = i
		}
	}
	return all
}

// waitForCaches waits until all informers have their objects.
func waitForCaches(ctx context.Context, synced []cache.InformerSynced) error {
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return ctx.Err()
	}
	return nil
}
