package service

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// Config is what the controller is told.
type Config struct {
	LoadBalancer loadbalancer.Config // complete
	Classes      Classes
	// RepairPeriod is how often everything is compared with Azure as it is, 0 for
	// never.
	RepairPeriod time.Duration
	// Syncs is how many Services may be written to in Kubernetes at once, at least
	// one. How many share a write to Azure does not depend on it.
	Syncs int
}

// Deps is what the controller works with.
type Deps struct {
	Azure      reconcile.Azure
	Client     kubernetes.Interface
	Informers  informers.SharedInformerFactory
	Events     record.EventRecorder
	Registerer prometheus.Registerer // nil for no metrics
	// Zones are those of the region, which the first Service that is served asks for; nil is
	// that the configuration has them. While there is an error, who needs them waits.
	Zones func(context.Context) ([]string, error)
	// Measure begins to measure what a Service asks for, and what it returns ends that;
	// nil is not to measure.
	Measure func(operation string) (done func(error))
}

// News of what came at once, such as the end of a namespace, is heard within moments.
// burstCalm is how long the first Service of a commit waits for a next one, and
// burstAtMost for how long it does so where they keep coming.
const (
	burstCalm   = 5 * time.Millisecond
	burstAtMost = 100 * time.Millisecond
)

// Controller keeps Azure as the cluster's Services say.
type Controller struct {
	config   Config
	azure    reconcile.Azure
	kube     kube
	events   record.EventRecorder
	measure  func(string) func(error)
	services listers.ServiceLister
	synced   []cache.InformerSynced

	cluster   cluster
	queue     workqueue.TypedDelayingInterface[item]
	dirt      dirt
	addresses *reconcile.Coalescer[loadbalancer.Service, []plan.Step]
	commits   *reconcile.Coalescer[request, answer]
	releases  *reconcile.Coalescer[plan.Step, struct{}]
	fills     *fills
	began     time.Time
	// leftFailed are the Services of which an earlier process has said last that they failed.
	leftFailed map[types.UID]bool
	// sweepFailures are those in a row; they belong to the pass that sweeps.
	sweepFailures int

	mu        sync.Mutex // guards what follows; never held while waiting
	histories map[types.UID]*history
	blocked   map[item]bool // Services that wait for something to change
}

// watched is what the controller hears of.
type watched struct {
	informer cache.SharedIndexInformer
	handler  cache.ResourceEventHandler
}

// New is a controller. Run it, then start the informers.
func New(config Config, d Deps) (*Controller, error) {
	m, err := newMetrics(d.Registerer)
	if err != nil {
		return nil, fmt.Errorf("metrics of the service controller: %w", err)
	}
	services, nodes := d.Informers.Core().V1().Services(), d.Informers.Core().V1().Nodes()
	c := &Controller{
		config: config, azure: d.Azure, events: d.Events, measure: d.Measure,
		kube:      kube{client: d.Client, turns: semaphore.NewWeighted(int64(max(config.Syncs, 1)))},
		services:  services.Lister(),
		queue:     workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[item]{Name: "service"}),
		histories: map[types.UID]*history{}, blocked: map[item]bool{},
	}
	if c.measure == nil {
		c.measure = func(string) func(error) { return func(error) {} }
	}
	deleted := &nodeless{}
	around, more := c.watchSurroundings(d.Informers)
	for _, watch := range append(more, watched{services.Informer(), c.watchServices()}, watched{nodes.Informer(), c.watchNodes(deleted)}) {
		registration, err := watch.informer.AddEventHandler(watch.handler)
		if err != nil {
			return nil, err
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	cluster := cluster{config: config.LoadBalancer, zones: d.Zones, nodes: nodes.Lister(), services: c.ours, strangers: c.strangers, around: around, nodeless: deleted, rightName: &atomic.Bool{}}
	c.cluster = cluster
	c.addresses = reconcile.NewCoalescer((&allocation{cluster: cluster, azure: d.Azure}).commit)
	c.fills = &fills{cluster: cluster, azure: d.Azure, failed: c.fillFailed, recovered: c.fillRecovered, ran: c.fillRan}
	c.commits = reconcile.NewCoalescer((&balancers{cluster: cluster, azure: besideDoor{d.Azure, &c.fills.shut}, kube: c.kube, classes: config.Classes, present: map[types.UID]bool{}, spoilt: map[azure.ID]bool{}, loose: map[types.UID][]key.Note{}, metrics: m, fills: c.fills, events: c.events, changed: c.lookAgain, rearranged: c.nodesRearranged}).commit)
	c.releases = reconcile.NewCoalescer(releasing{d.Azure}.commit)
	c.commits.Gather(burstCalm, burstAtMost)
	return c, nil
}

// Run serves Services until ctx ends, and returns when nothing is under way any
// more. A controller runs once.
func (c *Controller) Run(ctx context.Context) {
	c.began = time.Now()
	var passes sync.WaitGroup
	defer func() {
		c.queue.ShutDown()
		c.addresses.Close()
		c.commits.Close()
		c.releases.Close()
		c.fills.work.Wait()
		passes.Wait()
	}()
	// The first look is at the whole cluster, so that one snapshot serves it.
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return
	}
	c.leftFailed = c.kube.leftFailed(ctx)
	stop := context.AfterFunc(ctx, c.queue.ShutDown)
	defer stop()
	if c.config.RepairPeriod > 0 {
		passes.Go(func() { c.repairPeriodically(ctx) })
	}
	for {
		it, down := c.queue.Get()
		if down {
			return
		}
		// A pass waits for Azure most of the time, in the company of others.
		passes.Go(func() {
			defer c.queue.Done(it)
			c.pass(ctx, it)
		})
	}
}

// mark has a Service looked at.
func (c *Controller) mark(it item, w why) {
	c.dirt.add(it, w)
	c.queue.Add(it)
}

// markAll marks each Service that is ours.
func (c *Controller) markAll(w why) error {
	all, err := c.ours()
	for _, s := range all {
		c.mark(itemOf(s), w)
	}
	return err
}

// ours are the Services for which something is to be done, or is done already.
func (c *Controller) ours() ([]*corev1.Service, error) {
	all, err := c.services.List(labels.Everything())
	return slices.DeleteFunc(all, func(s *corev1.Service) bool {
		return c.config.Classes.next(s, c.served(s.UID)) == ignore
	}), err
}

// strangers reports whether there are Services that others serve.
func (c *Controller) strangers() (bool, error) {
	all, err := c.services.List(labels.Everything())
	return slices.ContainsFunc(all, c.config.Classes.serveNot), err
}

// current is a Service as Kubernetes has it, nil when it is gone.
func (c *Controller) current(it item) *corev1.Service {
	s, err := c.services.Services(it.Namespace).Get(it.Name)
	if err != nil || s.UID != it.UID {
		return nil // a lister knows no other error
	}
	return s
}
