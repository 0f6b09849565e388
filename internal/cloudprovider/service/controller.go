// Package service is the controller of Services of type LoadBalancer. Layer L3:
// plan, reconcile and Kubernetes libraries; never the ARM client's implementation.
//
// It replaces the framework's own service controller, under its name, with its finalizer and its events. The framework's
// controller works on one Service at a time. This controller serves all Services that wait for the same load balancer
// together (see [reconcile.Coalescer]):
//
//   - Informers queue Services with the reasons (triggers.go). A reason says why, never what: a pass reads the
//     current Service.
//   - A pass serves one Service (pass.go): what has to be done now is a pure function of the object (decision.Classes). A
//     Service without an address gets one first, beside all others; then it joins the next commit of the load balancers.
//     The phases of a commit ask, decide and write (commit.go), remember and answer (answer.go).
//   - The members of pools have one writer (pools.go). It works beside the commits, because it takes
//     minutes.
//   - A mistake in an object is reported once and not tried again until something changes (report.go). What Azure refuses
//     is tried again after a time that depends on the kind of the refusal ([controller.Delay]).
//   - Drift repair compares everything with Azure from time to time, and undoes changes by hand (controller.go).
//
// The packages beside it: decision decides, kube reads and writes Services, explain says what a
// commit would do.
package service

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/controller"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// Classes are the load balancer classes that are served; "" stands for Services that name none.
type Classes = decision.Classes

// Class is the load balancer class that names this provider.
const Class = decision.Class

// Config is the configuration of the controller.
type Config struct {
	LoadBalancer loadbalancer.Config // complete
	Classes      Classes
	// RepairPeriod is how often everything is compared with Azure as it is, 0 for
	// never.
	RepairPeriod time.Duration
	// Syncs is how many Services may be written to in Kubernetes at once, at least one. It does not limit how many
	// Services share a write to Azure.
	Syncs int
}

// Deps are the dependencies of the controller.
type Deps struct {
	Azure      reconcile.Azure
	Client     kubernetes.Interface
	Informers  informers.SharedInformerFactory
	Events     record.EventRecorder
	Registerer prometheus.Registerer // nil for no metrics
	// Zones returns the zones of the region. It is called when Services are served, not before. It is nil if the
	// configuration has the zones. While it returns an error, Services that need zones wait.
	Zones func(context.Context) ([]string, error)
	// Measure begins to measure an operation for a Service, and the returned function ends that. It is nil if nothing is
	// measured.
	Measure func(operation string) (done func(error))
}

// Services of one burst, such as the end of a namespace, become known within moments.
const (
	burstCalm   = 20 * time.Millisecond  // how long the first Service of a commit waits for a next one
	burstAtMost = 150 * time.Millisecond // how long it waits at most if Services keep coming
)

// Controller keeps Azure as the cluster's Services say.
type Controller struct {
	config   Config
	azure    reconcile.Azure
	kube     kube.Client
	events   record.EventRecorder
	services listers.ServiceLister
	measure  func(string) func(error)
	synced   []cache.InformerSynced

	cluster decision.Cluster
	queue   *controller.Queue[item, reasons]
	// histories are those of all Services that this process has worked on, and of the orphans.
	histories  sync.Map           // of items to *history
	leftFailed map[types.UID]bool // Services for which the last event of an earlier process was a failure
	addresses  *reconcile.Coalescer[loadbalancer.Service, []plan.Step]
	commits    *reconcile.Coalescer[request, answer]
	releases   singleflight.Group // of public IPs that are deleted
	pools      *poolWriter
	started    time.Time
}

// New is a controller. Run it, then start the informers.
func New(config Config, d Deps) (*Controller, error) {
	m, err := newMetrics(d.Registerer)
	if err != nil {
		return nil, fmt.Errorf("metrics of the service controller: %w", err)
	}
	core := d.Informers.Core().V1()
	c := &Controller{
		config: config, azure: d.Azure, events: d.Events, measure: d.Measure,
		kube: kube.New(d.Client, config.Syncs), services: core.Services().Lister(),
		queue: controller.NewQueue[item, reasons]("service"),
	}
	if c.measure == nil {
		c.measure = func(string) func(error) { return func(error) {} }
	}
	c.cluster = decision.Cluster{
		Config: config.LoadBalancer, Classes: config.Classes, Zones: d.Zones,
		Nodes: listed(core.Nodes().Lister().List), Services: c.ours, All: c.kube.All,
		Foreign: func() bool { return slices.ContainsFunc(listed(c.services.List)(), config.Classes.Foreign) },
		Deleted: &decision.DeletedNodes{}, NameConfirmed: &atomic.Bool{},
	}
	if err := c.watch(d.Informers); err != nil {
		return nil, err
	}
	c.pools = newPoolWriter(c)
	c.addresses = reconcile.NewCoalescer(c.planAddresses)
	c.commits = reconcile.NewCoalescer((&committer{Controller: c, metrics: m, inAzure: map[types.UID]bool{},
		groups: map[types.UID][]key.Note{}, failed: newFailedWrites()}).commit)
	c.commits.Gather(burstCalm, burstAtMost)
	return c, nil
}

// Run serves Services until ctx ends, and returns when nothing is under way any
// more. A controller runs once.
func (c *Controller) Run(ctx context.Context) {
	c.started = time.Now()
	var passes sync.WaitGroup
	c.serve(ctx, func() { c.leftFailed = c.kube.LeftFailed(ctx, outcomes) }, func(it item) {
		// A pass waits for Azure most of the time, so there is one for each item.
		passes.Go(func() {
			defer c.queue.Done(it)
			c.pass(ctx, it)
		})
	})
	passes.Wait()
}

// firstRepair is when a new leader compares everything for the first time. The earlier leader may have written until its
// lease ran out, for Services and nodes as it knew them.
const firstRepair = 90 * time.Second

// serve hands out items until ctx ends. It begins when the whole cluster is known, so that one
// snapshot serves the first items, and ends the commits when it returns.
func (c *Controller) serve(ctx context.Context, begin func(), do func(it item)) {
	var repairs sync.WaitGroup
	defer func() {
		c.queue.ShutDown()
		c.addresses.Close()
		c.commits.Close()
		c.pools.work.Wait()
		repairs.Wait()
	}()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return
	}
	begin()
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	if c.config.RepairPeriod > 0 { // compares everything with Azure as it is
		repairs.Go(func() {
			for wait := min(firstRepair, c.config.RepairPeriod); ; wait = c.config.RepairPeriod {
				select {
				case <-ctx.Done():
					return
				case now := <-time.After(wait):
					c.queue.Mark(everything, reasons{drift: true, since: now})
					c.queue.Mark(orphansItem, reasons{drift: true, since: now})
				}
			}
		})
	}
	for {
		it, down := c.queue.Get()
		if down {
			return
		}
		do(it)
	}
}

func (c *Controller) markAll(why reasons) {
	for _, s := range c.ours() {
		c.queue.Mark(itemOf(s), why)
	}
}

// listed lists all objects of a lister. A lister returns no error, because it reads the memory of an informer.
func listed[T any](list func(labels.Selector) ([]T, error)) func() []T {
	return func() []T {
		all, _ := list(labels.Everything())
		return all
	}
}

// ours are the Services that are to be served or removed.
func (c *Controller) ours() []*corev1.Service {
	return slices.DeleteFunc(listed(c.services.List)(), func(s *corev1.Service) bool {
		return c.config.Classes.Next(s, c.served(itemOf(s))) == decision.Ignore
	})
}

// current is a Service as Kubernetes has it, nil when it is gone.
func (c *Controller) current(it item) *corev1.Service {
	s, err := c.services.Services(it.Namespace).Get(it.Name)
	if err != nil || s.UID != it.UID {
		return nil // a lister knows no other error
	}
	return s
}
