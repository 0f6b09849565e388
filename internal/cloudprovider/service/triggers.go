package service

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/controller"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/cluster"
)

// item is one Service that ever was: a successor of the same name is another one.
type item struct {
	Namespace, Name string
	UID             types.UID
}

func itemOf(s *corev1.Service) item { return item{s.Namespace, s.Name, s.UID} }

func (it item) String() string { return strings.TrimPrefix(it.Namespace+"/"+it.Name, "/") }

var (
	// everything is the item that stands for all Services.
	everything = item{}
	// orphansItem is the item that stands for what deleted Services have left in Azure: a user has
	// taken the finalizer off, Azure has said that something is done which is not, or a leader that
	// did not know yet that it was none has served a Service that the next one had removed.
	orphansItem = item{Name: "leftovers"}
)

// reasons say why a Service is queued.
type reasons struct {
	nodes   bool // the cluster's nodes changed
	drift   bool // it is time to compare with what is in Azure
	startup bool // it is the first pass of this process for a Service that has its address
	// since is when that was. What was read of Azure before does not count; where it is zero,
	// what is in the cache will do.
	since time.Time
}

// And is both reasons together. A startup is not inherited.
func (r reasons) And(other reasons) reasons {
	r.nodes = r.nodes || other.nodes
	r.drift = r.drift || other.drift
	if other.since.After(r.since) {
		r.since = other.since
	}
	return r
}

// nodesTogether is how long the first change of nodes waits for others: a scale set's new
// machines come within seconds of each other, and a look at Azure is due after each
// change. Probes take longer to find out that a node serves.
const nodesTogether = time.Second

// watch has Services marked when something changes that they depend on. Only a cluster with several load
// balancers looks at namespaces and endpoints.
func (c *Controller) watch(factory informers.SharedInformerFactory) error {
	core := factory.Core().V1()
	mark := func(s *corev1.Service) { c.queue.Mark(itemOf(s), reasons{}) }
	services := controller.Watch[*corev1.Service]{
		Added: func(s *corev1.Service, _ bool) { mark(s) },
		Changed: func(old, s *corev1.Service) {
			if old.UID != s.UID {
				mark(old)
			}
			if !sameSpec(old, s) || helpers.HasLBFinalizer(old) && !helpers.HasLBFinalizer(s) {
				mark(s)
			}
		},
		Deleted: mark,
	}
	markAll := func(*corev1.Node) {
		c.queue.MarkAfter(everything, reasons{nodes: true, since: time.Now()}, nodesTogether)
	}
	nodes := whenChanged(func(old, n *corev1.Node) bool { return sameNode(c.config.LoadBalancer, old, n) }, markAll)
	nodes.Deleted = func(n *corev1.Node) {
		c.cluster.Deleted.Add(n)
		markAll(n)
	}
	err := errors.Join(c.listen(core.Services().Informer(), services.Handler()), c.listen(core.Nodes().Informer(), nodes.Handler()))
	if err != nil || len(c.config.LoadBalancer.Balancers) == 0 {
		return err
	}

	// The labels of a namespace can become known after its Services.
	namespaces := whenChanged(func(old, n *corev1.Namespace) bool { return maps.Equal(old.Labels, n.Labels) }, func(n *corev1.Namespace) {
		for _, s := range listed(c.services.Services(n.Name).List)() {
			if c.config.Classes.Wants(s) {
				mark(s)
			}
		}
	})
	markOwner := func(e *discovery.EndpointSlice) {
		s, err := c.services.Services(e.Namespace).Get(e.Labels[discovery.LabelServiceName])
		if err == nil && (loadbalancer.Service{Service: s}).IsLocal() && c.config.Classes.Wants(s) {
			c.queue.Mark(itemOf(s), reasons{nodes: true, since: time.Now()})
		}
	}
	endpoints := whenChanged(func(old, e *discovery.EndpointSlice) bool {
		return slices.Equal(decision.NodesOf(old), decision.NodesOf(e))
	}, markOwner)
	endpoints.Added, endpoints.Deleted = func(e *discovery.EndpointSlice, _ bool) { markOwner(e) }, markOwner
	inNamespaces, inSlices := core.Namespaces(), factory.Discovery().V1().EndpointSlices()
	c.cluster.Namespaces, c.cluster.Endpoints = listed(inNamespaces.Lister().List), listed(inSlices.Lister().List)
	return errors.Join(c.listen(inNamespaces.Informer(), namespaces.Handler()), c.listen(inSlices.Informer(), endpoints.Handler()))
}

func (c *Controller) listen(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) error {
	registration, err := informer.AddEventHandler(handler)
	if err == nil {
		c.synced = append(c.synced, registration.HasSynced)
	}
	return err
}

// whenChanged marks what an object is about when the object appears after the start, or is not the same any more.
func whenChanged[T any](same func(old, now T) bool, mark func(T)) controller.Watch[T] {
	return controller.Watch[T]{
		Added: func(o T, atStart bool) {
			if !atStart {
				mark(o)
			}
		},
		Changed: func(old, now T) {
			if !same(old, now) {
				mark(now)
			}
		},
	}
}

// sameSpec reports whether two states of a Service ask for the same, nil for one that never was. Labels
// count: they can decide which load balancer it is served by. The status does not.
func sameSpec(a, b *corev1.Service) bool {
	return a != nil && a.UID == b.UID && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// sameNode reports whether two states of a node are the same to load balancers:
// its role, its machine, its addresses, and the labels by which nodes are placed.
// Whether it is ready is the probes' business.
func sameNode(c loadbalancer.Config, a, b *corev1.Node) bool {
	return cluster.RoleOf(c, a) == cluster.RoleOf(c, b) &&
		a.Spec.ProviderID == b.Spec.ProviderID &&
		slices.Equal(a.Status.Addresses, b.Status.Addresses) &&
		maps.Equal(a.Labels, b.Labels)
}
