// Package decision is what the service controller decides: a pure function of the Services, the cluster and Azure.
// Layer L3: it combines the planner of load balancers with what the API server has to be asked first, and writes
// nothing.
//
// [Classes] say what has to be done for a Service. [Cluster] gathers the input, [Target] decides about some
// Services, and [Commit] also says what has to be asked or recorded before its graph is applied.
package decision

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cloud-provider/service/helpers"
	"k8s.io/utils/ptr"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/leftover"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/nodes"
	"kaz/internal/reconcile"
)

// Class is the load balancer class that names this provider, if several providers serve one cluster.
const Class = "kaz/azure"

// Classes are the load balancer classes that are served; "" stands for Services
// that name none.
type Classes []string

// Step is what has to be done for a Service now.
type Step int

const (
	Ignore Step = iota // another controller serves it, or nothing is left of it
	Ensure             // it is to be served as it asks
	Remove             // nothing of it stays in Azure
)

// Next decides what has to be done for a Service. The Service is nil if it is gone. If this process has served it,
// something of it can be in Azure, whatever it says now.
func (c Classes) Next(s *corev1.Service, served bool) Step {
	switch {
	case s != nil && c.Wants(s):
		return Ensure
	case served, s != nil && helpers.HasLBFinalizer(s) && c.mine(s):
		return Remove
	}
	return Ignore
}

// Wants reports whether a Service asks for a load balancer of a class that is served.
func (c Classes) Wants(s *corev1.Service) bool {
	return staysAround(s) && c.mine(s)
}

// staysAround reports whether a Service is of type LoadBalancer and is not being deleted.
func staysAround(s *corev1.Service) bool {
	return s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// Foreign reports whether another controller serves a Service.
func (c Classes) Foreign(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && !c.mine(s)
}

// mine reports whether a Service is of a class that is served. A Service that is no load balancer any more names no class.
// Only its finalizer tells that it was one, and the controller that serves Services without a class takes it as its own.
func (c Classes) mine(s *corev1.Service) bool {
	return slices.Contains(c, ptr.Deref(s.Spec.LoadBalancerClass, ""))
}

// Cluster is where the input of a decision comes from, besides the Services that it is about.
type Cluster struct {
	Config   loadbalancer.Config
	Classes  Classes
	Zones    func(context.Context) ([]string, error) // nil where Config has them
	Nodes    func() []*corev1.Node
	Services func() []*corev1.Service // all that this controller serves
	// All asks Kubernetes for all Services, whichever controller serves them.
	All func(context.Context) ([]*corev1.Service, error)
	// Foreign tells whether other controllers serve Services. What these Services have in Azure is not known.
	Foreign func() bool
	// What also decides among several load balancers: the labels of namespaces, and where the endpoints of Services
	// of policy Local are. A cluster with one load balancer watches neither.
	Namespaces func() []*corev1.Namespace
	Endpoints  func() []*discovery.EndpointSlice
	Deleted    *DeletedNodes
	// NameConfirmed remembers that --cluster-name is not the name of another cluster. Azure tells
	// it only until something is made under the name.
	NameConfirmed *atomic.Bool
}

// Target gathers the input of a decision about these Services, except for Azure.
func (c Cluster) Target(ctx context.Context, services []loadbalancer.Service) Target {
	in, noZones := Target{nameConfirmed: c.NameConfirmed.Load()}, error(nil)
	if c.Zones != nil && slices.ContainsFunc(services, func(s loadbalancer.Service) bool { return !s.Gone }) {
		c.Config.Zones, noZones = c.Zones(ctx)
	}
	all, among := c.Nodes(), UIDs(services)
	// A Service that leaves does not count. Otherwise a frontend that the last two Services shared would stay for the
	// Service that left first.
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

// NodesOf returns the nodes that have endpoints in a slice, ready or not. Probes find out whether they are ready.
func NodesOf(e *discovery.EndpointSlice) []string {
	names := map[string]bool{}
	for _, end := range e.Endpoints {
		names[ptr.Deref(end.NodeName, "")] = true
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// UIDs returns the UIDs of Services.
func UIDs(services []loadbalancer.Service) map[types.UID]bool {
	uids := make(map[types.UID]bool, len(services))
	for _, s := range services {
		uids[s.UID] = true
	}
	return uids
}

// Target is the input of a decision, except for Azure. It is a value: deciding does not change it.
type Target struct {
	loadbalancer.Input
	nameConfirmed bool
}

// Needs implements [reconcile.Target].
func (in Target) Needs(have plan.Snapshot) reconcile.Needs {
	in.Have = have
	ids, lists := loadbalancer.Needs(in.Input)
	var needs reconcile.Needs
	for _, id := range ids {
		if loadbalancer.MayBeUnread(in.Config, id, id.Type()) {
			needs.Optional.Resources = append(needs.Optional.Resources, id)
		} else {
			needs.Resources = append(needs.Resources, id)
		}
	}
	for _, q := range lists {
		if loadbalancer.MayBeUnread(in.Config, q.Scope, q.Type) {
			needs.Optional.Lists = append(needs.Optional.Lists, q)
		} else {
			needs.Lists = append(needs.Lists, q)
		}
	}
	return needs
}

// Decide implements [reconcile.Target].
func (in Target) Decide(have plan.Snapshot) (reconcile.Decision, error) {
	in.Have = have
	if !in.nameConfirmed {
		if other, found := leftover.FindOtherName(in.Input); found {
			return reconcile.Decision{}, &WrongName{in.Config.ClusterName, other}
		}
	}
	graph, problems, err := loadbalancer.Desired(in.Input)
	return reconcile.Decision{Graph: graph, Problems: problems}, err
}

// ProblemsOf returns the problems of a Service that a decision found. If no node can serve the Service, it adds a warning.
func (in Target) ProblemsOf(key string, gone bool, found []plan.Problem) []plan.Problem {
	own := slices.DeleteFunc(slices.Clone(found), func(p plan.Problem) bool { return p.Object != key })
	receives := func(n *corev1.Node) bool { return cluster.RoleOf(in.Config, n) == cluster.Receiver }
	if !gone && !slices.ContainsFunc(in.Nodes, receives) {
		const message = "There are no available nodes for LoadBalancer"
		own = append(own, plan.Problem{Object: key, Reason: problem.NoNodes, Message: message, Warning: true})
	}
	return own
}

// searchesAtMost bounds how often one orphan that is found leads to a search for more.
const searchesAtMost = 3

// WithOrphans adds what deleted Services have left in Azure to the Services.
func (c Cluster) WithOrphans(ctx context.Context, r azure.Reader, in Target) (Target, error) {
	services := in.Services
	for range searchesAtMost {
		// It reads Azure first and then Kubernetes. A resource is made after its Service, so the Service is in the list or
		// was deleted.
		have, err := reconcile.Gather(ctx, r, in.Needs)
		if err != nil {
			return in, err
		}
		all, err := c.All(ctx)
		if err != nil {
			return in, err
		}
		// Only Services of type LoadBalancer, and Services with the finalizer, can have anything in Azure, whichever
		// controller serves them.
		all = slices.DeleteFunc(all, func(s *corev1.Service) bool {
			return s.Spec.Type != corev1.ServiceTypeLoadBalancer && !helpers.HasLBFinalizer(s)
		})
		known := loadbalancer.Input{Services: services, Others: in.Others}
		left, err := leftover.Find(in.Config, have, append(all, known.All()...))
		if err != nil {
			return in, err
		}
		// Security rules that lead nowhere may belong to other controllers. A decision about any Service compares
		// them, too.
		if !in.Complete || len(services) > 0 {
			left = slices.DeleteFunc(left, IsRulesAlone)
		}
		same := len(services)+len(left) == len(in.Services)
		if in.Services = slices.Concat(services, left); same {
			break
		}
	}
	return in, nil
}

// IsRulesAlone reports whether only security rules are left, and not even the base name of their Service is known.
func IsRulesAlone(s loadbalancer.Service) bool {
	return s.UID == "" && s.Namespace == naming.UnknownNamespace
}

// WrongName is the error of a decision for a cluster that has the configured name of another cluster:
// docs/decisions/cluster-name.md.
type WrongName struct {
	given string
	leftover.OtherName
}

func (w *WrongName) Error() string {
	more := " was"
	switch {
	case w.Addresses == 2:
		more = " and 1 other were"
	case w.Addresses > 2:
		more = fmt.Sprintf(" and %d others were", w.Addresses-1)
	}
	return fmt.Sprintf("--cluster-name %[1]q is not the name of this cluster: public IP %[2]s (%[3]s) of %[4]s%[5]s made under the "+
		"name %[6]q, and under another one each would get a new address; "+
		"nothing is changed in Azure. To do: set --cluster-name=%[6]s; or, if the name and the addresses are to change, set the tag "+
		"k8s-azure-cluster-name of public IPs that have %[6]q there to %[1]q first",
		w.given, w.PublicIP.Name(), w.Address, w.Service, more, w.Name)
}

// Lasting implements [controller.Lasting]: a user has to give the cluster its name.
func (w *WrongName) Lasting() bool { return true }

// DeletedNodes are the machines without a Node: this process saw the Node deleted. They are remembered until there is a
// Node again or the machine is gone. In Azure they look like new instances that will get a Node.
type DeletedNodes struct {
	mu       sync.Mutex
	machines map[string]azure.ID // by id key
}

// deletedAtMost limits the remembered machines; it is more than a cluster has. Without a decision, nothing finds out which
// of them are gone.
const deletedAtMost = 10_000

// Add notes that a Node was deleted.
func (d *DeletedNodes) Add(n *corev1.Node) {
	id, is := nodes.MachineID(n.Spec.ProviderID)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.machines == nil {
		d.machines = map[string]azure.ID{}
	}
	if is && len(d.machines) < deletedAtMost {
		d.machines[id.Key()] = id
	}
}

// among returns the remembered machines, sorted. It forgets the machines that have one of these Nodes again.
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

// ForgetGone forgets the machines that a decision knew of and did not find in Azure.
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
