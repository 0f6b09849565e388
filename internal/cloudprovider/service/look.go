package service

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer"
)

// Look is a look at a cluster without a controller: what there is now, and what a
// controller of the same configuration would do. It reads, and cannot do more.
type Look struct {
	config  Config
	azure   azure.Reader
	kube    kube
	cluster cluster
	all     []*corev1.Service
}

// TakeLook reads what a decision needs of Kubernetes. Of Azure, each explanation reads
// what it needs.
func TakeLook(ctx context.Context, config Config, r azure.Reader, client kubernetes.Interface) (*Look, error) {
	return TakeLookAt(ctx, "", config, r, client)
}

// TakeLookAt is TakeLook where only the nodes that a label selector fits are looked
// after.
func TakeLookAt(ctx context.Context, selector string, config Config, r azure.Reader, client kubernetes.Interface) (*Look, error) {
	l := &Look{config: config, azure: r, kube: kube{client: client, turns: semaphore.NewWeighted(1)}, cluster: cluster{config: config.LoadBalancer}}
	var err error
	if l.all, err = l.kube.all(ctx); err != nil {
		return nil, err
	}
	l.cluster.services = func() ([]*corev1.Service, error) {
		return slices.DeleteFunc(slices.Clone(l.all), func(s *corev1.Service) bool { return config.Classes.next(s, false) == ignore }), nil
	}
	l.cluster.strangers = func() (bool, error) { return slices.ContainsFunc(l.all, config.Classes.serveNot), nil }
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	indexer, err := indexed(nodes.Items)
	if err != nil {
		return nil, err
	}
	l.cluster.nodes = listers.NewNodeLister(indexer)
	if len(config.LoadBalancer.Balancers) > 0 {
		l.cluster.around, err = readSurroundings(ctx, client)
	}
	return l, err
}

func readSurroundings(ctx context.Context, client kubernetes.Interface) (surroundings, error) {
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return surroundings{}, fmt.Errorf("list namespaces: %w", err)
	}
	endpoints, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return surroundings{}, fmt.Errorf("list endpoint slices: %w", err)
	}
	names, err := indexed[corev1.Namespace](namespaces.Items)
	if err != nil {
		return surroundings{}, err
	}
	slicesOf, err := indexed[discovery.EndpointSlice](endpoints.Items)
	return surroundings{namespaces: listers.NewNamespaceLister(names), endpoints: discoverylisters.NewEndpointSliceLister(slicesOf)}, err
}

// indexed is objects as listers read them.
func indexed[T any](items []T) (cache.Indexer, error) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for i := range items {
		if err := indexer.Add(&items[i]); err != nil {
			return nil, err
		}
	}
	return indexer, nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// Explain explains one Service, as it would be served alone.
func (l *Look) Explain(ctx context.Context, namespace, name string) (Explanation, error) {
	i := slices.IndexFunc(l.all, func(s *corev1.Service) bool { return s.Namespace == namespace && s.Name == name })
	if i < 0 {
		return Explanation{}, fmt.Errorf("there is no Service %s/%s", namespace, name)
	}
	if err := l.config.Classes.unserved(l.all[i]); err != nil {
		return Explanation{}, err
	}
	return l.cluster.explain(ctx, l.azure, []loadbalancer.Service{l.config.Classes.asked(l.all[i])}, nil)
}

// ExplainAll explains all Services, served together, and what is left of those that are
// not there any more.
func (l *Look) ExplainAll(ctx context.Context) (Explanation, error) {
	ours, err := l.cluster.services()
	if err != nil {
		return Explanation{}, err
	}
	slices.SortFunc(ours, func(a, b *corev1.Service) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	services := make([]loadbalancer.Service, len(ours))
	for i, s := range ours {
		services[i] = l.config.Classes.asked(s)
	}
	return l.cluster.explain(ctx, l.azure, services, l.kube.all)
}

// asked is a Service with what has to be done for it.
func (c Classes) asked(s *corev1.Service) loadbalancer.Service {
	return loadbalancer.Service{Service: s, Gone: c.next(s, false) == remove}
}

// unserved says why nothing is done for a Service, nil for one that is ours.
func (c Classes) unserved(s *corev1.Service) error {
	key := s.Namespace + "/" + s.Name
	switch {
	case c.next(s, false) != ignore:
		return nil
	case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return fmt.Errorf("%s is a Service of type %s: only those of type %s are served", key, s.Spec.Type, corev1.ServiceTypeLoadBalancer)
	case !c.mine(s):
		class := ""
		if s.Spec.LoadBalancerClass != nil {
			class = *s.Spec.LoadBalancerClass
		}
		return fmt.Errorf("%s is a Service of the load balancer class %q: served are %q (--load-balancer-class)", key, class, []string(c))
	}
	return fmt.Errorf("%s is a Service that is being deleted, and nothing of it is left", key)
}
