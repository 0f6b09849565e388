package ipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/podcidr"
)

// Event reasons.
const (
	ReasonNotAvailable = "CIDRNotAvailable"
	ReasonFailed       = "CIDRAssignmentFailed"
)

// Tags reads the tags of a machine's scale set or availability set, by provider id.
type Tags func(ctx context.Context, providerID string) (azure.Tags, error)

// Controller assigns blocks to nodes and releases them.
type Controller struct {
	config  Config
	tags    Tags // nil unless tags determine sizes
	client  kubernetes.Interface
	nodes   listers.NodeLister
	synced  cache.InformerSynced
	queue   workqueue.TypedRateLimitingInterface[string]
	metrics *metrics
	events  record.EventRecorder

	mu      sync.Mutex // guards the fields below; never held while waiting
	ledger  *podcidr.Ledger
	sent    map[string]map[string]bool // Events already sent, by node
	waiting map[string]bool            // nodes that found no free block
}

// workers is the number of nodes processed in parallel.
const workers = 30

// Minimum and maximum backoff after a failure of a node.
const (
	soonest = 100 * time.Millisecond
	latest  = time.Minute
)

// New returns a controller for the nodes of the informer.
func New(config Config, client kubernetes.Interface, nodes coreinformers.NodeInformer, tags Tags,
	registerer prometheus.Registerer) (*Controller, error) {
	if config.Tagged == (tags == nil) {
		return nil, errors.New("node ipam: Tags is required if tags determine block sizes")
	}
	m, err := newMetrics(registerer)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		config: config, tags: tags, client: client, metrics: m,
		nodes: nodes.Lister(), synced: nodes.Informer().HasSynced,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](soonest, latest),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "node_ipam"}),
		events: &record.FakeRecorder{},
		ledger: podcidr.NewLedger(config.Ranges, config.Reserved),
		sent:   map[string]map[string]bool{}, waiting: map[string]bool{},
	}
	for i, r := range config.Ranges {
		m.size(r, config.Bits[i])
	}
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			c.queue.Add(key)
		}
	}
	_, err = nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }, DeleteFunc: enqueue,
	})
	return c, err
}

// Run runs the controller until ctx ends.
func (c *Controller) Run(ctx context.Context) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: c.client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	c.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "cidrAllocator"})

	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced) {
		return
	}
	if err := c.recordAll(); err != nil {
		slog.ErrorContext(ctx, "cannot list nodes", "error", err)
		return
	}
	for range workers {
		running.Go(func() {
			for c.work(ctx) {
			}
		})
	}
	<-ctx.Done()
}

// recordAll records the blocks of all nodes before the first assignment.
func (c *Controller) recordAll() error {
	list, err := c.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, n := range list {
		if len(n.Spec.PodCIDRs) > 0 {
			c.record(n)
		}
	}
	return nil
}

func (c *Controller) work(ctx context.Context) bool {
	name, stopped := c.queue.Get()
	if stopped {
		return false
	}
	defer c.queue.Done(name)
	if err := c.sync(ctx, name); err != nil {
		if ctx.Err() == nil {
			slog.WarnContext(ctx, "node without pod addresses", "node", name, "error", err)
		}
		c.queue.AddRateLimited(name)
		return true
	}
	c.queue.Forget(name)
	return true
}

func (c *Controller) sync(ctx context.Context, name string) error {
	node, err := c.nodes.Get(name)
	switch {
	case apierrors.IsNotFound(err):
		c.forget(name)
		return nil
	case err != nil:
		return err
	case len(node.Spec.PodCIDRs) > 0:
		c.record(node)
		return nil
	case node.DeletionTimestamp != nil:
		return nil
	case c.config.Tagged && node.Spec.ProviderID == "":
		return nil // the machine and its tags are not known yet
	}
	bits := c.config.Bits
	if c.config.Tagged {
		if bits, err = c.sizes(ctx, node); err != nil {
			return err
		}
	}
	blocks, err := c.assign(node, bits)
	if err != nil {
		c.report(node, ReasonNotAvailable, err.Error())
		return err
	}
	return c.give(ctx, node, blocks)
}

// sizes returns the prefix lengths of a node's blocks. If Azure is temporarily unavailable, the node
// waits, because a block of the wrong size would be permanent.
func (c *Controller) sizes(ctx context.Context, node *corev1.Node) ([]int, error) {
	tags, err := c.tags(ctx, node.Spec.ProviderID)
	if kind := azure.KindOf(err); err != nil && (kind.Retryable() || kind == azure.Canceled) {
		return nil, fmt.Errorf("tags of the set of node %s: %w", node.Name, err)
	}
	if err != nil {
		slog.WarnContext(ctx, "cannot read tags: the node gets a block of the default size", "node", node.Name, "error", err)
	}
	sizes, problems := podcidr.Sizes(node.Name, tags, c.config.Ranges, c.config.Bits)
	c.tellAll(node, problems)
	return sizes, nil
}

func (c *Controller) assign(node *corev1.Node, bits []int) ([]netip.Prefix, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	blocks, err := c.ledger.Assign(node.Name, string(node.UID), bits)
	if err != nil {
		c.waiting[node.Name] = true
		return nil, err
	}
	delete(c.waiting, node.Name)
	c.measure()
	return blocks, nil
}

func (c *Controller) record(node *corev1.Node) {
	c.mu.Lock()
	problems := c.ledger.Record(node.Name, string(node.UID), node.Spec.PodCIDRs)
	delete(c.waiting, node.Name)
	c.measure()
	c.mu.Unlock()
	c.tellAll(node, problems)
}

// forget releases the blocks of a deleted node and wakes the nodes that wait for a block.
func (c *Controller) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sent, name)
	delete(c.waiting, name)
	if !c.ledger.Forget(name) {
		return
	}
	c.measure()
	for _, r := range c.config.Ranges {
		c.metrics.releases.WithLabelValues(r.String()).Inc()
	}
	for other := range c.waiting {
		c.queue.Forget(other)
		c.queue.Add(other)
	}
}

func (c *Controller) measure() {
	for i, r := range c.config.Ranges {
		c.metrics.usage.WithLabelValues(r.String()).Set(c.ledger.Used(i))
	}
}

// tries is the number of write attempts before other nodes get their turn.
const tries = 3

// give writes the blocks to the node. The blocks stay reserved until the write has succeeded or the
// node is gone, so that a retry writes the same blocks.
func (c *Controller) give(ctx context.Context, node *corev1.Node, blocks []netip.Prefix) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": node.UID}, // the patch fails for another node of the same name
		"spec":     map[string]any{"podCIDR": blocks[0], "podCIDRs": blocks},
	})
	if err != nil {
		return err
	}
	for range tries {
		if _, err = c.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
			for _, r := range c.config.Ranges {
				c.metrics.allocations.WithLabelValues(r.String()).Inc()
			}
			slog.InfoContext(ctx, "pod CIDRs assigned", "node", node.Name, "pod_cidrs", blocks)
			return nil
		}
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil // the node is gone, and its deletion follows
		}
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			break
		}
	}
	c.report(node, ReasonFailed, err.Error())
	return c.has(ctx, node, fmt.Errorf("pod CIDRs of node %s: %w", node.Name, err))
}

// has records the blocks that the node received from another writer, if that caused the failure.
func (c *Controller) has(ctx context.Context, node *corev1.Node, failure error) error {
	now, err := c.client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
	if err != nil || now.UID != node.UID || len(now.Spec.PodCIDRs) == 0 {
		return failure
	}
	c.record(now)
	return nil
}

func (c *Controller) tellAll(node *corev1.Node, problems []plan.Problem) {
	for _, p := range problems {
		c.report(node, p.Reason, p.Message)
	}
}

// report sends an Event, once for each message.
func (c *Controller) report(node *corev1.Node, reason, message string) {
	c.mu.Lock()
	if c.sent[node.Name] == nil {
		c.sent[node.Name] = map[string]bool{}
	}
	said := c.sent[node.Name][message]
	c.sent[node.Name][message] = true
	c.mu.Unlock()
	if !said {
		c.events.Event(node, corev1.EventTypeWarning, reason, message)
	}
}
