// Package cloudprovider implements the interfaces of the Kubernetes cloud-controller-manager
// framework, with one type for each. Layer L3: plan, reconcile and Kubernetes libraries. It receives
// an ARM client and does not import its implementation.
package cloudprovider

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	framework "k8s.io/cloud-provider"

	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/routes"
	"kaz/internal/reconcile"
)

// Name is the name of the provider: the value of --cloud-provider and the scheme of provider ids.
const Name = "azure"

// Config is the part of the cloud configuration that the provider needs.
type Config struct {
	// LoadBalancer is complete except for ClusterName, which comes from the framework, and
	// LoadBalancerName if that is the name of the cluster.
	LoadBalancer loadbalancer.Config
	// Zones returns the zones of LoadBalancer when they are needed; nil means that LoadBalancer has
	// them.
	Zones func(context.Context) ([]string, error)
	// Subscription and ResourceGroup contain the cluster's machines.
	Subscription, ResourceGroup string
	Location                    string
	// NotFoundGrace is how long after its creation a node is kept although its machine is not found.
	NotFoundGrace time.Duration
	// Uncached disables the machine cache: every question reads Azure.
	Uncached bool
	// Routes has the route table; its Table is empty for a cluster without routes.
	Routes routes.Config
	// Attester is the name of the signer of machines' documents, empty in clouds without them.
	Attester string
	// Registerer registers the metrics; may be nil.
	Registerer prometheus.Registerer
}

// Cloud implements the framework's Interface.
type Cloud struct {
	arm        reconcile.Azure
	balancer   loadbalancer.Config
	zones      func(context.Context) ([]string, error)
	machines   *instances
	measured   operations
	all        bool        // set if the framework asks about all nodes in turn
	routes     *routeTable // nil without a route table
	kubernetes kubernetes.Interface
	off        *outOfService // nil before SetInformers
	attester   string
}

var (
	_ framework.Interface    = (*Cloud)(nil)
	_ framework.InformerUser = (*Cloud)(nil)
)

// New returns a cloud that uses an ARM client. The caller must close it.
func New(c Config, client reconcile.Azure) *Cloud {
	cloud := &Cloud{arm: client, balancer: c.LoadBalancer, zones: c.Zones, machines: newInstances(c, client),
		measured: newOperations(c.Registerer), attester: c.Attester}
	if c.Routes.Table != "" {
		cloud.routes = newRouteTable(c.Routes, client, cloud.machines, cloud.measured)
	}
	return cloud
}

// Close cancels the requests in flight and waits for them.
func (c *Cloud) Close() {
	c.machines.cache.close()
	if c.off != nil {
		c.off.close()
	}
	if c.routes != nil {
		c.routes.commits.Close()
	}
}

// Initialize starts to send Events.
func (c *Cloud) Initialize(clients framework.ControllerClientBuilder, stop <-chan struct{}) {
	client, err := clients.Client("azure-cloud-provider")
	if err != nil {
		slog.Warn("no events from the cloud provider", "error", err)
		return
	}
	c.kubernetes = client
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	events := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "azure-cloud-provider"})
	c.machines.events.to(events)
	if c.routes != nil {
		c.routes.events = events
	}
	go func() {
		<-stop
		broadcaster.Shutdown()
	}()
}

// SetInformers passes the informers of the cluster to the cloud. The framework's controllers then ask
// about all nodes in turn, so questions wait only briefly and ready nodes cost no reads.
func (c *Cloud) SetInformers(factory informers.SharedInformerFactory) {
	c.machines.cache.impatient, c.all = true, true
	nodes := factory.Core().V1().Nodes()
	if _, err := nodes.Informer().AddEventHandler(c.machines.watch()); err != nil {
		slog.Warn("cannot watch nodes: machines of nodes that become not ready are read later", "error", err)
	}
	if c.kubernetes != nil {
		var err error
		if c.off, err = keepOutOfService(c.kubernetes, nodes); err != nil {
			slog.Warn("nodes whose machines are off are not marked as out of service", "error", err)
		}
	}
	if c.routes == nil {
		return
	}
	c.routes.nodes = nodeSource{lister: nodes.Lister(), synced: nodes.Informer().HasSynced}
}

// nodeSource lists the nodes that the informer has.
type nodeSource struct {
	lister listers.NodeLister
	synced cache.InformerSynced
}

// LoadBalancer is not supported: [Cloud.Services] replaces the controller that would use it.
func (c *Cloud) LoadBalancer() (framework.LoadBalancer, bool) { return nil, false }

// InstancesV2 is supported.
func (c *Cloud) InstancesV2() (framework.InstancesV2, bool) {
	if c.all {
		return settledInstances{c.machines}, true
	}
	return c.machines, true
}

// Instances is not supported: InstancesV2 replaces it.
func (c *Cloud) Instances() (framework.Instances, bool) { return nil, false }

// Zones is not supported: InstancesV2 replaces it.
func (c *Cloud) Zones() (framework.Zones, bool) { return nil, false }

// Clusters is not supported.
func (c *Cloud) Clusters() (framework.Clusters, bool) { return nil, false }

// Routes is supported if the configuration has a route table.
func (c *Cloud) Routes() (framework.Routes, bool) {
	if c.routes == nil {
		return nil, false
	}
	return c.routes, true
}

// ProviderName returns [Name].
func (c *Cloud) ProviderName() string { return Name }

// HasClusterID returns true: all resources in Azure carry the cluster's name.
func (c *Cloud) HasClusterID() bool { return true }

// known reports whether the informer has synced.
func (n nodeSource) known() bool { return n.lister != nil && (n.synced == nil || n.synced()) }
