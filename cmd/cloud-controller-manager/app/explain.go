package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/cloudprovider"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/component/access"
)

// Cluster says how to reach a cluster and its Azure resources from outside.
type Cluster struct {
	Kubernetes  *rest.Config
	CloudConfig string // path of azure.json
	Name        string
	Classes     []string // load balancer classes of the Services that are served
	Nodes       string   // label selector of the managed nodes, "" for all
}

// Validate checks the flags with the same rules as the cloud-controller-manager.
func (c Cluster) Validate() error {
	_, err := parseNodeFilter(c.Nodes)
	return errors.Join(cloudconfig.CheckClusterName(c.Name), checkClasses(c.Classes), err)
}

// NewInspector returns a read-only view of a cluster's Services, computed like the cloud-controller-manager
// of the same configuration does. It cannot write: its Kubernetes client sends GET requests only, and
// its ARM client has no writing methods.
func NewInspector(ctx context.Context, cluster Cluster, lookup func(string) (string, bool)) (*explain.Inspector, error) {
	if err := cluster.Validate(); err != nil {
		return nil, err
	}
	c, err := readConfig(cluster.CloudConfig, cluster.Name, lookup)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(readOnly(cluster.Kubernetes))
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	// Check access to Kubernetes first, so that a missing right is reported without waiting for
	// Azure.
	if _, err := client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	azureClient, err := connect(ctx, c, access.ClientOptions{})
	if err != nil {
		return nil, err
	}
	config := explain.Config{
		Classes:      classes(cluster.Classes),
		NodeSelector: cluster.Nodes,
		LoadBalancer: cloudprovider.BalancerOf(providerConfig(c, nil).LoadBalancer, cluster.Name),
	}
	if config.LoadBalancer.Zones, err = zonesWhenAsked(azureClient, c)(ctx); err != nil {
		return nil, err
	}
	return explain.NewInspector(ctx, config, reading{azureClient}, client)
}

// reading is the read-only part of an ARM client.
type reading struct{ client azure.Reader }

func (r reading) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return r.client.Get(ctx, id)
}

func (r reading) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return r.client.List(ctx, q)
}

// readOnly returns a configuration for Kubernetes clients that send GET and HEAD requests only.
func readOnly(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return onlyGet{next} })
	return c
}

// onlyGet rejects requests other than GET and HEAD.
type onlyGet struct{ next http.RoundTripper }

func (o onlyGet) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return o.next.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close() // required of a RoundTripper
	}
	return nil, fmt.Errorf("%s %s is not sent: nothing is written", r.Method, r.URL.Path)
}
