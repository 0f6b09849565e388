package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kaz/internal/azure"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/plan/loadbalancer"
)

// Config is the configuration of an inspector.
type Config struct {
	LoadBalancer loadbalancer.Config // complete
	Classes      decision.Classes
	// NodeSelector is a label selector of the nodes that are managed, "" for all.
	NodeSelector string
}

// Inspector explains Services without a controller: what exists now, and what a controller of the
// same configuration would do. It reads, and cannot do more.
type Inspector struct {
	classes decision.Classes
	azure   azure.Reader
	cluster decision.Cluster
	all     []*corev1.Service
}

// NewInspector reads what a decision needs of Kubernetes. Of Azure, each explanation reads
// what it needs.
func NewInspector(ctx context.Context, config Config, r azure.Reader, client kubernetes.Interface) (*Inspector, error) {
	services := kube.New(client, 1)
	all, err := services.All(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: config.NodeSelector})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	in := &Inspector{classes: config.Classes, azure: r, all: all, cluster: decision.Cluster{
		Config: config.LoadBalancer, All: services.All,
		Nodes: func() []*corev1.Node { return kube.Pointers(nodes.Items) },
		Services: func() []*corev1.Service {
			ignored := func(s *corev1.Service) bool { return config.Classes.Next(s, false) == decision.Ignore }
			return slices.DeleteFunc(slices.Clone(all), ignored)
		},
		Foreign: func() bool { return slices.ContainsFunc(all, config.Classes.Foreign) },
		Deleted: &decision.DeletedNodes{}, NameConfirmed: &atomic.Bool{},
	}}
	if len(config.LoadBalancer.Balancers) == 0 {
		return in, nil
	}
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	endpoints, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list endpoint slices: %w", err)
	}
	in.cluster.Namespaces = func() []*corev1.Namespace { return kube.Pointers(namespaces.Items) }
	in.cluster.Endpoints = func() []*discovery.EndpointSlice { return kube.Pointers(endpoints.Items) }
	return in, nil
}

// Explain explains one Service, as it would be served alone.
func (in *Inspector) Explain(ctx context.Context, namespace, name string) (Explanation, error) {
	i := slices.IndexFunc(in.all, func(s *corev1.Service) bool { return s.Namespace == namespace && s.Name == name })
	if i < 0 {
		return Explanation{}, fmt.Errorf("there is no Service %s/%s", namespace, name)
	}
	if err := in.classes.Unserved(in.all[i]); err != nil {
		return Explanation{}, err
	}
	return Services(ctx, in.cluster, in.azure, []loadbalancer.Service{in.classes.Asked(in.all[i])}, false)
}

// ExplainAll explains all Services, served together, and what deleted Services
// have left.
func (in *Inspector) ExplainAll(ctx context.Context) (Explanation, error) {
	var services []loadbalancer.Service
	for _, s := range in.cluster.Services() {
		services = append(services, in.classes.Asked(s))
	}
	slices.SortFunc(services, func(a, b loadbalancer.Service) int { return strings.Compare(a.Key(), b.Key()) })
	return Services(ctx, in.cluster, in.azure, services, true)
}
