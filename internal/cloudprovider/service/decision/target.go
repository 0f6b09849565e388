package decision

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/leftover"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/query"
	"kaz/internal/reconcile"
)

// Cluster is where the input of a decision comes from, besides the Services that it is about.
type Cluster struct {
	Config   loadbalancer.Config
	Zones    func(context.Context) ([]string, error) // nil where Config has them
	Nodes    func() []*corev1.Node
	Services func() []*corev1.Service // all that this controller serves
	// Foreign tells whether other controllers serve Services: what those have in Azure is not
	// known.
	Foreign      func() bool
	Surroundings Surroundings
	Deleted      *DeletedNodes
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
	nodes, among := c.Nodes(), UIDs(services)
	// A Service that leaves has no say in what stays: else a frontend that the last two Services
	// shared would stay for the one that left first.
	others := slices.DeleteFunc(c.Services(), func(s *corev1.Service) bool { return among[s.UID] || !StaysAround(s) })
	in.Input = loadbalancer.Input{
		Config: c.Config, NoZones: noZones, Services: services, Others: others, Complete: !c.Foreign(),
		Nodes: nodes, DeletedNodes: c.Deleted.among(nodes),
		Namespaces: c.Surroundings.labelsOf(), Endpoints: c.Surroundings.nodesWith(),
	}
	return in
}

// ConfirmName notes that a decision has found no other name of the cluster.
func (c Cluster) ConfirmName() { c.NameConfirmed.Store(true) }

// UIDs are those of Services.
func UIDs(services []loadbalancer.Service) map[types.UID]bool {
	uids := make(map[types.UID]bool, len(services))
	for _, s := range services {
		uids[s.UID] = true
	}
	return uids
}

// StaysAround reports whether a Service has a say in what stays.
func StaysAround(s *corev1.Service) bool {
	return s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// Target is what a decision is made of, but for Azure. It is a value: deciding does not change
// it.
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
		if query.MayBeUnread(in.Config, id, id.Type()) {
			needs.Optional.Resources = append(needs.Optional.Resources, id)
		} else {
			needs.Resources = append(needs.Resources, id)
		}
	}
	for _, q := range lists {
		if query.MayBeUnread(in.Config, q.Scope, q.Type) {
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
	if err := in.checkName(); err != nil {
		return reconcile.Decision{}, err
	}
	graph, problems, err := loadbalancer.Desired(in.Input)
	return reconcile.Decision{Graph: graph, Problems: problems}, err
}

// ProblemsOf are the problems of a Service: those that a decision found, and that no node can
// serve it.
func (in Target) ProblemsOf(key string, gone bool, found []plan.Problem) []plan.Problem {
	own := slices.DeleteFunc(slices.Clone(found), func(p plan.Problem) bool { return p.Object != key })
	receives := func(n *corev1.Node) bool { return cluster.RoleOf(in.Config, n) == cluster.Receiver }
	if !gone && !slices.ContainsFunc(in.Nodes, receives) {
		own = append(own, plan.Problem{
			Object: key, Reason: problem.NoNodes, Warning: true,
			Message: "There are no available nodes for LoadBalancer",
		})
	}
	return own
}

// WrongName is the error of a decision for a cluster that is given the name of another one:
// docs/decisions/cluster-name.md.
type WrongName struct {
	given string
	leftover.OtherName
}

// checkName refuses a cluster name where Services have addresses that were made under another
// one.
func (in Target) checkName() error {
	if in.nameConfirmed {
		return nil
	}
	if other, found := leftover.FindOtherName(in.Input); found {
		return &WrongName{in.Config.ClusterName, other}
	}
	return nil
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
		"nothing is changed in Azure. To do: set --cluster-name=%[6]s; or, if the name and the addresses shall change, set the tag "+
		"k8s-azure-cluster-name of public IPs that have %[6]q there to %[1]q first",
		w.given, w.PublicIP.Name(), w.Address, w.Service, more, w.Name)
}

// Lasting implements [controller.Lasting]: a user has to give the cluster its name.
func (w *WrongName) Lasting() bool { return true }
