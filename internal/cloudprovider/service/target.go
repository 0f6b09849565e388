package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	listers "k8s.io/client-go/listers/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// cluster is what a decision looks at besides the Services of its commit.
type cluster struct {
	config   loadbalancer.Config
	zones    func(context.Context) ([]string, error) // nil where config has them
	nodes    listers.NodeLister
	services func() ([]*corev1.Service, error) // all that are ours
	// strangers tells whether there are Services that others serve: what is theirs in
	// Azure is not known.
	strangers func() (bool, error)
	around    surroundings
	nodeless  *nodeless    // nil where nobody remembers
	rightName *atomic.Bool // it is known not to be another cluster's; nil where nobody remembers
}

// target is the cluster's load balancers with these Services.
func (c cluster) target(ctx context.Context, services []loadbalancer.Service) (*target, error) {
	var noZones error
	if c.zones != nil && slices.ContainsFunc(services, func(s loadbalancer.Service) bool { return !s.Gone }) {
		c.config.Zones, noZones = c.zones(ctx)
	}
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	others, err := c.services()
	if err != nil {
		return nil, err
	}
	among := make(map[types.UID]bool, len(services))
	for _, s := range services {
		among[s.UID] = true
	}
	// One that leaves has no say in what stays, or a frontend that the last two had
	// together would stay for the one that left it first.
	others = slices.DeleteFunc(others, func(s *corev1.Service) bool { return among[s.UID] || !staysAround(s) })
	strangers, err := c.strangers()
	if err != nil {
		return nil, err
	}
	namespaces, err := c.around.labelsOf()
	if err != nil {
		return nil, err
	}
	endpoints, err := c.around.nodesWith()
	if err != nil {
		return nil, err
	}
	return &target{noZones: noZones, rightName: c.rightName, Input: loadbalancer.Input{
		Config: c.config, Services: services, Others: others, Complete: !strangers, Nodes: nodes, Nodeless: c.nodeless.among(nodes),
		Namespaces: namespaces, Endpoints: endpoints,
	}}, nil
}

// staysAround reports whether a Service has a say in what stays.
func staysAround(s *corev1.Service) bool {
	return s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer
}

// target is the load balancers with the Services of one commit.
type target struct {
	loadbalancer.Input
	noZones   error          // why the zones of the region are not known
	rightName *atomic.Bool   // that of the cluster
	problems  []plan.Problem // of the last decision
}

// Needs implements [reconcile.Target].
func (t *target) Needs(have plan.Snapshot) reconcile.Needs {
	in := t.Input
	in.Have = have
	ids, lists := loadbalancer.Needs(in)
	var needs reconcile.Needs
	for _, id := range ids {
		if loadbalancer.MayBeUnread(t.Config, id, id.Type()) {
			needs.Optional.Resources = append(needs.Optional.Resources, id)
		} else {
			needs.Resources = append(needs.Resources, id)
		}
	}
	for _, q := range lists {
		if loadbalancer.MayBeUnread(t.Config, q.Scope, q.Type) {
			needs.Optional.Lists = append(needs.Optional.Lists, q)
		} else {
			needs.Lists = append(needs.Lists, q)
		}
	}
	return needs
}

// Desired implements [reconcile.Target].
func (t *target) Desired(have plan.Snapshot) (plan.Graph, error) {
	in := t.Input
	in.Have = have
	if err := t.checkName(in); err != nil {
		return plan.Graph{}, err
	}
	graph, problems, err := loadbalancer.Desired(in)
	t.problems = problems
	if err == nil && t.noZones != nil {
		err = waitForZones(in, graph, t.noZones)
	}
	return graph, err
}

// problemsOf are the problems of a Service: those found in it, and that no node can
// serve it.
func (t *target) problemsOf(key string, gone bool) []plan.Problem {
	own := slices.DeleteFunc(slices.Clone(t.problems), func(p plan.Problem) bool { return p.Object != key })
	receives := func(n *corev1.Node) bool { return loadbalancer.RoleOf(t.Config, n) == loadbalancer.Receiver }
	if !gone && !slices.ContainsFunc(t.Nodes, receives) {
		own = append(own, plan.Problem{
			Object: key, Reason: loadbalancer.ReasonNoNodes, Warning: true,
			Message: "There are no available nodes for LoadBalancer",
		})
	}
	return own
}

// beside adds to why a commit failed what is wrong with its Services besides.
func (t *target) beside(err error) error {
	refusal, ok := errors.AsType[*reconcile.Refusal](err)
	if !ok {
		return &undone{err, t.problems}
	}
	for i, cause := range refusal.Culprits {
		refusal.Culprits[i] = &undone{cause, t.problems}
	}
	return refusal
}

// undone is the error of a decision that was not brought about.
type undone struct {
	error
	problems []plan.Problem // that were found
}

func (u *undone) Unwrap() error { return u.error }

func sameType(id azure.ID, fullType string) bool { return strings.EqualFold(id.Type(), fullType) }
