// Package nodemanager describes the machines of nodes to Kubernetes. It gives a new node its provider id, labels and
// addresses, and removes the taint that keeps pods away. Then it keeps the addresses up to date. It usually runs on each
// node and reads the machine's metadata service. Layer L3: decisions, Kubernetes libraries and a [Source] from its program.
package nodemanager

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
)

// Config is common to all nodes of a process. Client and Period are required.
type Config struct {
	Client kubernetes.Interface
	// Only is the name of the only watched node. If it is empty, the process watches all nodes of the
	// cluster.
	Only string
	// Period is the interval of address updates of an initialized node.
	Period time.Duration
	// Resync is the resync period of the informer, 0 for never.
	Resync time.Duration
	// WaitRoutes marks the network of a new node as unavailable until the route controller changes
	// that.
	WaitRoutes bool
	// BetaLabels also sets the deprecated topology labels.
	BetaLabels bool
	// Events receives Events about nodes; may be nil.
	Events  record.EventRecorder
	Metrics *Metrics // may be nil
	Log     *slog.Logger
}

// Group manages nodes independently of each other: a slow or broken machine delays only its own node.
type Group struct {
	config   Config
	nodes    listers.NodeLister
	informer cache.SharedIndexInformer
	factory  informers.SharedInformerFactory

	mu      sync.Mutex
	members map[string]*member // by node name
}

// New returns a group without members.
func New(c Config) (*Group, error) {
	if c.Period <= 0 {
		return nil, fmt.Errorf("node status update frequency %s: must be more than 0", c.Period)
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	options := []informers.SharedInformerOption{informers.WithTransform(slim)}
	if c.Only != "" {
		options = append(options, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, c.Only).String()
		}))
	}
	g := &Group{config: c, members: map[string]*member{}}
	g.factory = informers.NewSharedInformerFactoryWithOptions(c.Client, c.Resync, options...)
	g.nodes = g.factory.Core().V1().Nodes().Lister()
	g.informer = g.factory.Core().V1().Nodes().Informer()
	_, err := g.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    g.wake,
		UpdateFunc: func(_, node any) { g.wake(node) },
	})
	return g, err
}

// slim removes fields that the group does not use, to save memory.
func slim(object any) (any, error) {
	if o, err := meta.Accessor(object); err == nil {
		o.SetManagedFields(nil)
	}
	if node, ok := object.(*corev1.Node); ok {
		node.Status.Images = nil
	}
	return object, nil
}

// wake notifies the member of a changed node. It must not block, because the informer calls it.
func (g *Group) wake(object any) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return
	}
	g.mu.Lock()
	m := g.members[node.Name]
	g.mu.Unlock()
	if m == nil {
		return
	}
	select {
	case m.news <- struct{}{}:
	default: // a notification is pending
	}
}

// Synced reports whether the informer has the cluster's nodes. It is the group's health check.
func (g *Group) Synced() bool { return g.informer.HasSynced() }

// Member is a node with the source of its machine's metadata.
type Member struct {
	Node   string
	Source Source
}

// Run manages the members, and those that replace them when changes receives new ones. It returns
// when ctx ends and all members have stopped. changes may be nil.
func (g *Group) Run(ctx context.Context, members []Member, changes <-chan []Member) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		g.factory.Shutdown()
	}()
	g.factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), g.informer.HasSynced) {
		return nil // stopping
	}
	for {
		g.replace(ctx, &running, members)
		select {
		case <-ctx.Done():
			return nil
		case members = <-changes:
		}
	}
}

// replace starts new members, stops removed ones, and keeps the others running.
func (g *Group) replace(ctx context.Context, running *sync.WaitGroup, members []Member) {
	want := map[string]Source{}
	for _, m := range members {
		want[m.Node] = m.Source
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, m := range g.members {
		if source, ok := want[name]; !ok || source != m.source {
			m.stop()
			delete(g.members, name)
		}
	}
	for name, source := range want {
		if g.members[name] != nil {
			continue
		}
		m := newMember(g, name, source)
		of, stop := context.WithCancel(ctx)
		m.stop = stop
		g.members[name] = m
		running.Go(func() { m.run(of) })
	}
}
