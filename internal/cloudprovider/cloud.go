// Package cloudprovider is kaz as the Kubernetes cloud-controller-manager
// framework sees it: one type for each of the framework's interfaces, each made of
// a planner and the door to Azure. Layer L3: plan, reconcile and Kubernetes
// libraries; never the door's implementation.
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

// Name is the provider's name: the value of --cloud-provider and the scheme of
// provider ids.
const Name = "azure"

// Config is what the cloud configuration says of the cluster.
type Config struct {
	// LoadBalancer is complete but for ClusterName, which the framework tells, and
	// LoadBalancerName where it is to be the cluster's name.
	LoadBalancer loadbalancer.Config
	// Zones are those of LoadBalancer, when they are needed; nil is that it has them.
	Zones func(context.Context) ([]string, error)
	// Subscription and ResourceGroup hold the cluster's machines.
	Subscription, ResourceGroup string
	Location                    string
	// NotFoundGrace is how long after its registration a node is kept though no
	// machine of its name is found, 0 for not at all.
	NotFoundGrace time.Duration
	// Uncached has every question about a machine read Azure.
	Uncached bool
	// Routes names the route table, none for a cluster without.
	Routes routes.Config
	// Registerer takes the metrics, nil for none.
	Registerer prometheus.Registerer
}

// Cloud implements the framework's interface. Its parts are in one file each.
type Cloud struct {
	door     reconcile.Azure
	balancer loadbalancer.Config
	zones    func(context.Context) ([]string, error)
	machines *instances
	measured operations
	all      bool        // nodes are asked about
	routes   *routeTable // nil for a cluster without
	client   kubernetes.Interface
	off      *outOfService // nil until the cluster's nodes are known
}

var (
	_ framework.Interface    = (*Cloud)(nil)
	_ framework.InformerUser = (*Cloud)(nil)
)

// New is a cloud that reaches Azure through door. Close it when done.
func New(c Config, door reconcile.Azure) *Cloud {
	cloud := &Cloud{door: door, balancer: c.LoadBalancer, zones: c.Zones, machines: newInstances(c, door), measured: newOperations(c.Registerer)}
	if c.Routes.Table != "" {
		cloud.routes = newRouteTable(c.Routes, door, cloud.machines, cloud.measured)
	}
	return cloud
}

// Close ends what is in flight and waits for it.
func (c *Cloud) Close() {
	c.machines.seen.close()
	if c.off != nil {
		c.off.close()
	}
	if c.routes != nil {
		c.routes.commits.Close()
	}
}

// Initialize starts to send events to Kubernetes.
func (c *Cloud) Initialize(clients framework.ControllerClientBuilder, stop <-chan struct{}) {
	client, err := clients.Client("azure-cloud-provider")
	if err != nil {
		slog.Warn("no events from the cloud provider", "error", err)
		return
	}
	c.client = client
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	events := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "azure-cloud-provider"})
	c.machines.told.to(events)
	if c.routes != nil {
		c.routes.events = events
	}
	go func() {
		<-stop
		broadcaster.Shutdown()
	}()
}

// SetInformers tells the cloud of the cluster's nodes. Who does so asks about all of
// them, one after the other: so questions are not kept waiting for long, and nodes
// that are at work are believed.
func (c *Cloud) SetInformers(factory informers.SharedInformerFactory) {
	c.machines.seen.impatient, c.all = true, true
	nodes := factory.Core().V1().Nodes()
	if _, err := nodes.Informer().AddEventHandler(c.machines.watch()); err != nil {
		slog.Warn("machines of nodes that fall silent are not looked at before somebody asks", "error", err)
	}
	if c.client != nil {
		var err error
		if c.off, err = keepOutOfService(c.client, nodes); err != nil {
			slog.Warn("nodes whose machines are off are not marked as out of service", "error", err)
		}
	}
	if c.routes == nil {
		return
	}
	c.routes.nodes = nodeSource{lister: nodes.Lister(), synced: nodes.Informer().HasSynced}
}

// nodeSource lists the cluster's nodes as far as Kubernetes has told of them.
type nodeSource struct {
	lister listers.NodeLister
	synced cache.InformerSynced
}

// LoadBalancer is not supported: [Cloud.Services] is in the place of the controller
// that would use it.
func (c *Cloud) LoadBalancer() (framework.LoadBalancer, bool) { return nil, false }

// InstancesV2 is supported.
func (c *Cloud) InstancesV2() (framework.InstancesV2, bool) {
	if c.all {
		return settledInstances{c.machines}, true
	}
	return c.machines, true
}

// Instances is not supported: InstancesV2 is in its place.
func (c *Cloud) Instances() (framework.Instances, bool) { return nil, false }

// Zones is not supported: InstancesV2 tells of them.
func (c *Cloud) Zones() (framework.Zones, bool) { return nil, false }

// Clusters is not supported.
func (c *Cloud) Clusters() (framework.Clusters, bool) { return nil, false }

// Routes is supported where the configuration names a route table.
func (c *Cloud) Routes() (framework.Routes, bool) {
	if c.routes == nil {
		return nil, false
	}
	return c.routes, true
}

// ProviderName is [Name].
func (c *Cloud) ProviderName() string { return Name }

// HasClusterID is true: everything in Azure carries the cluster's name.
func (c *Cloud) HasClusterID() bool { return true }

// known reports whether Kubernetes has told of the nodes.
func (n nodeSource) known() bool { return n.lister != nil && (n.synced == nil || n.synced()) }
