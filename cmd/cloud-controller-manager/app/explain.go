package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kaz/cmd/internal/access"
	"kaz/internal/azure"
	"kaz/internal/cloudconfig"
	"kaz/internal/cloudprovider"
	"kaz/internal/cloudprovider/service"
)

// Cluster says where a cluster is, for a look at it from outside.
type Cluster struct {
	Kubernetes  *rest.Config
	CloudConfig string // path of azure.json
	Name        string
	Classes     []string // of the Services that are served
	Nodes       string   // label selector of the nodes that are looked after, "" for all
}

// Validate refuses what the cloud-controller-manager would refuse of the same flags.
func (c Cluster) Validate() error {
	_, err := parseNodeFilter(c.Nodes)
	return errors.Join(cloudconfig.CheckClusterName(c.Name), checkClasses(c.Classes), err)
}

// Look takes a look at a cluster's Services as the cloud-controller-manager of the
// same configuration would. It cannot write: Kubernetes is asked through a client that
// sends no request but GET, and of the door to Azure only the reading half is handed on.
func Look(ctx context.Context, cluster Cluster, lookup func(string) (string, bool)) (*service.Look, error) {
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
	// Kubernetes is asked first: who may not look there need not wait for Azure.
	if _, err := client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return nil, fmt.Errorf("list Services: %w", err)
	}
	door, err := connect(ctx, c, access.DoorOptions{})
	if err != nil {
		return nil, err
	}
	config := service.Config{
		Classes:      classes(cluster.Classes),
		LoadBalancer: cloudprovider.BalancerOf(providerConfig(c, nil).LoadBalancer, cluster.Name),
	}
	if config.LoadBalancer.Zones, err = zonesWhenAsked(door, c)(ctx); err != nil {
		return nil, err
	}
	return service.TakeLookAt(ctx, cluster.Nodes, config, reading{door}, client)
}

// reading is the reading half of a door.
type reading struct{ door azure.Reader }

func (r reading) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return r.door.Get(ctx, id)
}

func (r reading) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return r.door.List(ctx, q)
}

// readOnly is a configuration whose clients send nothing that could change anything.
func readOnly(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return onlyGet{next} })
	return c
}

// onlyGet refuses requests that are not for reading.
type onlyGet struct{ next http.RoundTripper }

func (o onlyGet) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return o.next.RoundTrip(r)
	}
	if r.Body != nil {
		_ = r.Body.Close() // a RoundTripper must
	}
	return nil, fmt.Errorf("%s %s is not sent: nothing is written", r.Method, r.URL.Path)
}
