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

// item identifies one Service by name and UID: a later Service of the same name is another item.
type item struct {
	Namespace, Name string
	UID             types.UID
}

func itemOf(s *corev1.Service) item { return item{s.Namespace, s.Name, s.UID} }

func (it item) String() string { return strings.TrimPrefix(it.Namespace+"/"+it.Name, "/") }

var (
	// everything is the item that stands for all Services.
	everything = item{}
	// orphansItem is the item that stands for what deleted Services have left in Azure. A user removed the finalizer, or
	// Azure reported a write as done that was not. Or a leader that had lost its lease, and did not know it yet, served a
	// Service that the next leader had removed.
	orphansItem = item{Name: "leftovers"}
)

// reasons say why a Service is queued.
type reasons struct {
	nodes   bool // the cluster's nodes changed
	drift   bool // it is time to compare with what is in Azure
	startup bool // it is the first pass of this process for a Service that has its address
	// since is the time of the reason. Earlier reads of Azure do not count. If it is zero, the cache is good enough.
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

// nodesTogether is how long the first change of nodes waits for others. A scale set's new machines come within seconds of
// each other, and each change needs a read of Azure. Probes take longer to find out that a node serves.
const nodesTogether = time.Second

// watch marks Services when something changes that they depend on. Only a cluster with several load balancers watches
// namespaces and endpoints.
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

// whenChanged calls mark for an object that appears after the start, and for an object that is not the same any more.
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

// sameSpec reports whether two states of a Service ask for the same. An earlier state that does not exist is nil. Labels
// count: they can decide which load balancer serves the Service. The status does not count.
func sameSpec(a, b *corev1.Service) bool {
	return a != nil && a.UID == b.UID && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// sameNode reports whether two states of a node are the same to load balancers. It compares the role, the machine and the
// addresses, and the labels by which nodes are placed. It ignores whether the node is ready, because probes find that out.
func sameNode(c loadbalancer.Config, a, b *corev1.Node) bool {
	return cluster.RoleOf(c, a) == cluster.RoleOf(c, b) &&
		a.Spec.ProviderID == b.Spec.ProviderID &&
		slices.Equal(a.Status.Addresses, b.Status.Addresses) &&
		maps.Equal(a.Labels, b.Labels)
}
