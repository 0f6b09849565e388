package decision

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/nodes"
)

// Cluster is where the input of a decision comes from, besides the Services that it is about.
type Cluster struct {
	Config   loadbalancer.Config
	Zones    func(context.Context) ([]string, error) // nil where Config has them
	Nodes    func() []*corev1.Node
	Services func() []*corev1.Service // all that this controller serves
	// Foreign tells whether other controllers serve Services: what those have in Azure is not
	// known.
	Foreign func() bool
	// What decides among several load balancers besides Services and nodes: the labels of namespaces, and where
	// the endpoints of Services of policy Local are. A cluster with one load balancer watches neither.
	Namespaces func() []*corev1.Namespace
	Endpoints  func() []*discovery.EndpointSlice
	Deleted    *DeletedNodes
	// NameConfirmed remembers that --cluster-name is not the name of another cluster. Azure tells
	// it only until something is made under the name.
	NameConfirmed *atomic.Bool
}

// Target gathers what a decision about these Services is made of, but for Azure.
func (c Cluster) Target(ctx context.Context, services []loadbalancer.Service) Target {
	in, noZones := Target{nameConfirmed: c.NameConfirmed.Load()}, error(nil)
	if c.Zones != nil && slices.ContainsFunc(services, func(s loadbalancer.Service) bool { return !s.Gone }) {
		c.Config.Zones, noZones = c.Zones(ctx)
	}
	all, among := c.Nodes(), UIDs(services)
	// A Service that leaves has no say in what stays: else a frontend that the last two Services
	// shared would stay for the one that left first.
	others := slices.DeleteFunc(c.Services(), func(s *corev1.Service) bool { return among[s.UID] || !staysAround(s) })
	in.Input = loadbalancer.Input{
		Config: c.Config, NoZones: noZones, Services: services, Others: others, Complete: !c.Foreign(),
		Nodes: all, DeletedNodes: c.Deleted.among(all),
		Namespaces: map[string]map[string]string{}, Endpoints: map[string][]string{},
	}
	if len(c.Config.Balancers) == 0 {
		return in
	}
	for _, n := range c.Namespaces() {
		in.Namespaces[n.Name] = n.Labels
	}
	for _, e := range c.Endpoints() {
		if name := e.Labels[discovery.LabelServiceName]; name != "" {
			key := e.Namespace + "/" + name
			in.Endpoints[key] = append(in.Endpoints[key], NodesOf(e)...)
		}
	}
	return in
}

// NodesOf are the nodes that have endpoints in a slice, ready or not: whether they
// are is the probes' business.
func NodesOf(e *discovery.EndpointSlice) []string {
	var names []string
	for _, end := range e.Endpoints {
		if end.NodeName != nil && *end.NodeName != "" {
			names = append(names, *end.NodeName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// UIDs are those of Services.
func UIDs(services []loadbalancer.Service) map[types.UID]bool {
	uids := make(map[types.UID]bool, len(services))
	for _, s := range services {
		uids[s.UID] = true
	}
	return uids
}

// staysAround reports whether a Service has a say in what stays.
func staysAround(s *corev1.Service) bool {
	return s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// DeletedNodes are the machines without a Node: this process saw the Node deleted. They are
// remembered until there is a Node again or the machine is gone, because Azure does not know
// them: to it they are like instances that are just made and will get a Node.
type DeletedNodes struct {
	mu       sync.Mutex
	machines map[string]azure.ID // by id key
}

// deletedAtMost is more machines than a cluster has. While nothing is decided, nothing finds out
// which of them are gone.
const deletedAtMost = 10_000

// Add notes that a Node was deleted.
func (d *DeletedNodes) Add(n *corev1.Node) {
	id, is := nodes.MachineID(n.Spec.ProviderID)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !is || len(d.machines) >= deletedAtMost {
		return
	}
	if d.machines == nil {
		d.machines = map[string]azure.ID{}
	}
	d.machines[id.Key()] = id
}

// among are those that are known, sorted. Those that have one of these Nodes again are
// forgotten.
func (d *DeletedNodes) among(all []*corev1.Node) []azure.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.machines) == 0 {
		return nil
	}
	for _, n := range all {
		if id, is := nodes.MachineID(n.Spec.ProviderID); is {
			delete(d.machines, id.Key())
		}
	}
	return slices.Sorted(maps.Values(d.machines))
}

// ForgetGone forgets those that a decision knew of and did not find in Azure.
func (d *DeletedNodes) ForgetGone(in loadbalancer.Input) error {
	if len(in.DeletedNodes) == 0 {
		return nil
	}
	exists, err := loadbalancer.Machines(in)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range in.DeletedNodes {
		if !exists[id.Key()] {
			delete(d.machines, id.Key())
		}
	}
	return nil
}
