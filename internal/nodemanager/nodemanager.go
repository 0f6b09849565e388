// Package nodemanager tells Kubernetes of the machines under nodes: it gives a new
// node its provider id, labels and addresses, takes off the taint that keeps work
// away until then, and keeps the addresses right. It usually runs on each node and
// asks that machine's own metadata service. Layer L3: decisions, Kubernetes
// libraries and a [Source] that its program gives it.
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

// Config is what all nodes of a process have in common. Client and Period are
// required.
type Config struct {
	Client kubernetes.Interface
	// Only is the name of the one node that is watched, empty to watch all of the
	// cluster, for a process that has several.
	Only string
	// Period is how often an initialized node's addresses are looked at.
	Period time.Duration
	// Resync repeats what is known of nodes, 0 for never.
	Resync time.Duration
	// WaitRoutes says that a new node has no network before the route controller says
	// so.
	WaitRoutes bool
	// BetaLabels keeps the deprecated topology labels too.
	BetaLabels bool
	// Events tells people of what is wrong with a node; nil for nobody.
	Events  record.EventRecorder
	Metrics *Metrics // nil for none
	Log     *slog.Logger
}

// Group looks after nodes, each independently of the others: a slow or broken
// machine keeps only its own node waiting.
type Group struct {
	config   Config
	nodes    listers.NodeLister
	informer cache.SharedIndexInformer
	factory  informers.SharedInformerFactory

	mu      sync.Mutex
	members map[string]*member // by node name
}

// New is a group without members.
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

// slim keeps out of memory what nobody reads here.
func slim(object any) (any, error) {
	if o, err := meta.Accessor(object); err == nil {
		o.SetManagedFields(nil)
	}
	if node, ok := object.(*corev1.Node); ok {
		node.Status.Images = nil
	}
	return object, nil
}

// wake tells a node's member of news. It must not block: it is called by the
// informer.
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
	default: // told already
	}
}

// Synced reports whether the cluster's nodes are known: the group's health.
func (g *Group) Synced() bool { return g.informer.HasSynced() }

// Member is a node with where its machine is described.
type Member struct {
	Node   string
	Source Source
}

// Run looks after the members, and after those that replace them whenever changes
// says so, until ctx ends and all of them have stopped. A nil changes never does.
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
		return nil // told to stop
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

// replace starts new members, stops those that are gone, and leaves the others
// alone.
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
