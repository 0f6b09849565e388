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
	CloudConfig string // path of azure.json, "" if it is in the Secret alone
	Secret      Secret // with the configuration; without a name there is none
	Name        string
	Classes     []string // load balancer classes of the Services that are served
	Nodes       string   // label selector of the managed nodes, "" for all
}

// Secret names a Secret with the cloud configuration, or a part of it.
type Secret struct{ Namespace, Name, Key string }

// source is where the configuration is.
func (c Cluster) source(lookup func(string) (string, bool)) source {
	return source{path: c.CloudConfig, cluster: c.Name, lookup: lookup, secretName: c.Secret.Name,
		secretNamespace: or(c.Secret.Namespace, cloudconfig.SecretNamespace), secretKey: or(c.Secret.Key, cloudconfig.SecretKey)}
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
	r, err := openReaders(ctx, cluster, lookup)
	if err != nil {
		return nil, err
	}
	return r.inspector(ctx, cluster, reading{r.azure})
}

// readers read a cluster and its Azure.
type readers struct {
	config     cloudconfig.Config
	kubernetes kubernetes.Interface // sends GET requests only
	azure      *access.Clients
}

// openReaders checks the flags, and opens the clients.
func openReaders(ctx context.Context, cluster Cluster, lookup func(string) (string, bool)) (readers, error) {
	if err := cluster.Validate(); err != nil {
		return readers{}, err
	}
	client, err := kubernetes.NewForConfig(readOnly(cluster.Kubernetes))
	if err != nil {
		return readers{}, fmt.Errorf("kubeconfig: %w", err)
	}
	return readersWith(ctx, client, cluster, lookup, access.ClientOptions{})
}

// readersWith checks the access to Kubernetes first, so that a missing right is reported without waiting for Azure.
func readersWith(ctx context.Context, client kubernetes.Interface, cluster Cluster, lookup func(string) (string, bool),
	options access.ClientOptions,
) (readers, error) {
	c, err := cluster.source(lookup).read(ctx, client)
	if err != nil {
		return readers{}, err
	}
	if _, err := client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return readers{}, fmt.Errorf("list Services: %w", err)
	}
	clients, err := connect(ctx, c, options)
	return readers{c, client, clients}, err
}

// inspector returns an inspector that reads Azure by a reader.
func (r readers) inspector(ctx context.Context, cluster Cluster, from azure.Reader) (*explain.Inspector, error) {
	config := explain.Config{
		Classes:      classes(cluster.Classes),
		NodeSelector: cluster.Nodes,
		LoadBalancer: cloudprovider.BalancerOf(providerConfig(r.config, nil).LoadBalancer, cluster.Name),
	}
	var err error
	if config.LoadBalancer.Zones, err = zonesWhenAsked(r.azure, r.config)(ctx); err != nil {
		return nil, err
	}
	return explain.NewInspector(ctx, config, from, r.kubernetes)
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
