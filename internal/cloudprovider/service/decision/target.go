package decision

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/leftover"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/reconcile"
)

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

// ProblemsOf are the problems of a Service: those that a decision found, and that no node can
// serve it.
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

// Listing asks Kubernetes for all Services.
type Listing func(ctx context.Context) ([]*corev1.Service, error)

// WithOrphans adds what deleted Services have left in Azure to the Services.
func (in Target) WithOrphans(ctx context.Context, r azure.Reader, list Listing) (Target, error) {
	services := in.Services
	for range searchesAtMost {
		// First Azure and then Kubernetes: what was made for a Service was made after it, so
		// the Service is in the list, or deleted.
		have, err := reconcile.Gather(ctx, r, in.Needs)
		if err != nil {
			return in, err
		}
		all, err := list(ctx)
		if err != nil {
			return in, err
		}
		// Only these can have anything in Azure, whichever controller serves them.
		all = slices.DeleteFunc(all, func(s *corev1.Service) bool {
			return s.Spec.Type != corev1.ServiceTypeLoadBalancer && !helpers.HasLBFinalizer(s)
		})
		known := loadbalancer.Input{Services: services, Others: in.Others}
		left, err := leftover.Find(in.Config, have, append(all, known.All()...))
		if err != nil {
			return in, err
		}
		// Security rules that lead nowhere may be of other controllers, and are compared with any
		// Service.
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

// IsRulesAlone reports whether what is left is security rules of which not even a base
// name is known.
func IsRulesAlone(s loadbalancer.Service) bool {
	return s.UID == "" && s.Namespace == naming.UnknownNamespace
}

// WrongName is the error of a decision for a cluster that is given the name of another one:
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
		"nothing is changed in Azure. To do: set --cluster-name=%[6]s; or, if the name and the addresses shall change, set the tag "+
		"k8s-azure-cluster-name of public IPs that have %[6]q there to %[1]q first",
		w.given, w.PublicIP.Name(), w.Address, w.Service, more, w.Name)
}

// Lasting implements [controller.Lasting]: a user has to give the cluster its name.
func (w *WrongName) Lasting() bool { return true }
