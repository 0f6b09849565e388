package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/cloud-provider/service/helpers"
	"k8s.io/utils/ptr"

	"kaz/internal/azure"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/note"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/reconcile"
)

// Config is the configuration of an inspector.
type Config struct {
	LoadBalancer loadbalancer.Config // complete
	Classes      decision.Classes
	// NodeSelector is a label selector of the nodes that are managed, "" for all.
	NodeSelector string
}

// Inspector explains Services without a controller: what exists now, and what a controller of the same configuration
// would do. It can only read.
type Inspector struct {
	azure   azure.Reader
	cluster decision.Cluster
	all     []*corev1.Service
}

// NewInspector reads what a decision needs of Kubernetes. Each explanation reads what it needs of Azure.
func NewInspector(ctx context.Context, config Config, r azure.Reader, client kubernetes.Interface) (*Inspector, error) {
	services := kube.New(client, 1)
	all, err := services.All(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: config.NodeSelector})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	in := &Inspector{azure: r, all: all, cluster: decision.Cluster{
		Config: config.LoadBalancer, Classes: config.Classes, All: services.All,
		Nodes: func() []*corev1.Node { return kube.Pointers(nodes.Items) },
		Services: func() []*corev1.Service {
			ignored := func(s *corev1.Service) bool { return config.Classes.Next(s, false) == decision.Ignore }
			return slices.DeleteFunc(slices.Clone(all), ignored)
		},
		Foreign: func() bool { return slices.ContainsFunc(all, config.Classes.Foreign) },
		Deleted: &decision.DeletedNodes{}, NameConfirmed: &atomic.Bool{},
	}}
	if len(config.LoadBalancer.Balancers) == 0 {
		return in, nil
	}
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	endpoints, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list endpoint slices: %w", err)
	}
	in.cluster.Namespaces = func() []*corev1.Namespace { return kube.Pointers(namespaces.Items) }
	in.cluster.Endpoints = func() []*discovery.EndpointSlice { return kube.Pointers(endpoints.Items) }
	return in, nil
}

// Explain explains one Service, as it would be served alone.
func (in *Inspector) Explain(ctx context.Context, namespace, name string) (Explanation, error) {
	i := slices.IndexFunc(in.all, func(s *corev1.Service) bool { return s.Namespace == namespace && s.Name == name })
	if i < 0 {
		return Explanation{}, fmt.Errorf("there is no Service %s/%s", namespace, name)
	}
	s, classes, why := in.all[i], in.cluster.Classes, "that is being deleted, and nothing of it is left"
	switch {
	case classes.Next(s, false) != decision.Ignore:
		return Services(ctx, in.cluster, in.azure, []*corev1.Service{s}, false)
	case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
		why = fmt.Sprintf("of type %s: only those of type %s are served", s.Spec.Type, corev1.ServiceTypeLoadBalancer)
	case classes.Foreign(s):
		why = fmt.Sprintf("of the load balancer class %q: served are %q (--load-balancer-class)",
			ptr.Deref(s.Spec.LoadBalancerClass, ""), []string(classes))
	}
	return Explanation{}, fmt.Errorf("%s/%s is a Service %s", namespace, name, why)
}

// ExplainAll explains all Services, served together, and what deleted Services
// have left.
func (in *Inspector) ExplainAll(ctx context.Context) (Explanation, error) {
	services := in.cluster.Services()
	slices.SortFunc(services, func(a, b *corev1.Service) int { return strings.Compare(spec.KeyOf(a), spec.KeyOf(b)) })
	return Services(ctx, in.cluster, in.azure, services, true)
}

// Services explains what a commit of the Services would find and do. It takes the same steps as a commit, up to the
// first write. If all is set, it also looks for what deleted Services have left.
func Services(ctx context.Context, c decision.Cluster, r azure.Reader, asked []*corev1.Service, all bool) (Explanation, error) {
	var services []loadbalancer.Service
	for _, s := range asked {
		services = append(services, loadbalancer.Service{Service: s, Gone: c.Classes.Next(s, false) == decision.Remove})
	}
	t, err := c.Target(ctx, services), error(nil)
	if all {
		if t, err = c.WithOrphans(ctx, r, t); err != nil {
			return Explanation{}, err
		}
	}
	if t.Have, err = reconcile.Gather(ctx, r, t.Needs); err != nil {
		return Explanation{}, err
	}
	d, err := t.Decide(t.Have)
	if err != nil {
		return Explanation{}, err
	}
	p, err := plan.Diff(t.Have, d.Graph)
	if err != nil {
		return Explanation{}, err
	}
	status, err := loadbalancer.Status(t.Input)
	if err != nil {
		return Explanation{}, err
	}
	x := explainer{Target: t, problems: d.Problems, plan: p, before: t.Have, status: status, unnoted: note.Missing(t.Input, d.Graph)}
	e := Explanation{Services: []Explained{}, Steps: x.followPlan(), Then: p.Pending, plan: p}
	for _, s := range services {
		e.Services = append(e.Services, x.service(s))
	}
	for _, s := range t.Services[len(services):] {
		left := Explained{Service: s.Key(), UID: s.UID}
		if s.UID != "" {
			left.Parts = partsOf(s.Service, nil, x.before, x.Have)
		}
		if len(left.Parts) > 0 || slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return slices.Contains(s.For, left.Service) }) {
			e.Leftovers = append(e.Leftovers, left)
		}
	}
	e.Problems = slices.DeleteFunc(slices.Clone(d.Problems), func(p plan.Problem) bool {
		isOf := func(s loadbalancer.Service) bool { return s.Key() == p.Object }
		// The steps tell what is removed because no Service uses it.
		return p.Reason == problem.Unclaimed || slices.ContainsFunc(t.Services, isOf)
	})
	return e, nil
}

// explainer is a decision and its results.
type explainer struct {
	decision.Target // with Azure when the plan is carried out
	problems        []plan.Problem
	plan            plan.Plan
	before          plan.Snapshot // Azure as it is
	status          map[string][]corev1.LoadBalancerIngress
	// The resource groups that Services record: the groups that stay when all is done, and the groups that are not
	// recorded yet.
	still, unnoted map[types.UID][]key.Note
}

// followPlan finds out what the steps of the plan leave, and lists them.
func (x *explainer) followPlan() []ExplainedStep {
	all := make([]ExplainedStep, 0, len(x.plan.Steps))
	for i, s := range x.plan.Steps {
		switch s.Op {
		case plan.Delete:
			x.Have = x.Have.Without(s.ID)
		case plan.Create, plan.Update:
			doc, _, _ := azure.Overlay(s.Body, struct { // what is new has no id yet
				ID azure.ID `json:"id" azure:"fold"`
			}{s.ID})
			x.Have = x.Have.With(doc)
		}
		e := ExplainedStep{Number: i + 1, Op: s.Op, ID: s.ID, Why: s.Why, For: s.For, Text: s.String()}
		for _, before := range s.After {
			e.After = append(e.After, before+1)
		}
		for _, c := range s.Changes {
			e.Changes = append(e.Changes, c.String())
		}
		all = append(all, e)
	}
	x.still = note.Kept(x.Input)
	return all
}

func (x *explainer) service(s loadbalancer.Service) Explained {
	addresses := kube.Addresses(s.Status.LoadBalancer.Ingress, x.status[s.Key()])
	e := Explained{Service: s.Key(), State: Settled, Problems: x.ProblemsOf(s.Key(), s.Gone, x.problems),
		Parts: partsOf(s.Service, addresses, x.before, x.Have)}
	refused := slices.ContainsFunc(e.Problems, func(p plan.Problem) bool { return !p.Warning })
	e.Kubernetes = x.inKubernetes(s, refused)
	switch {
	case refused:
		e.State = Refused
	case s.Gone:
		e.State = Leaving
	case len(e.Kubernetes) > 0, slices.ContainsFunc(e.Parts, func(p Part) bool { return p.State != UpToDate }),
		len(x.Services) == 1 && len(x.plan.Steps)+len(x.plan.Pending) > 0,
		slices.ContainsFunc(x.plan.Steps, func(step plan.Step) bool { return slices.Equal(step.For, []string{e.Service}) }):
		e.State = Pending
	}
	return e
}

// inKubernetes is what the pass of a Service writes into it. It leaves out new notes of public IPs, because they go
// again in the same pass.
func (x *explainer) inKubernetes(s loadbalancer.Service, refused bool) (all []string) {
	tell := func(is bool, field, change string) {
		if is {
			all = append(all, field+": "+change)
		}
	}
	for _, name := range key.Notes(s.Status.Conditions) {
		stays := slices.ContainsFunc(x.still[s.UID], func(n key.Note) bool { return n.Name() == name })
		message := meta.FindStatusCondition(s.Status.Conditions, name).Message
		tell(s.Gone || !refused && !stays, "status.conditions", "- "+name+": "+message)
	}
	for _, n := range x.unnoted[s.UID] {
		tell(!refused && n.Of == key.PrivateLinks, "status.conditions", "+ "+n.Name()+": "+n.Group)
	}
	held := helpers.HasLBFinalizer(s.Service)
	tell(s.Gone && held, "finalizers", "- "+helpers.LoadBalancerCleanupFinalizer)
	tell(!s.Gone && !held, "finalizers", "+ "+helpers.LoadBalancerCleanupFinalizer)
	const field = "status.loadBalancer.ingress"
	was, ingress, served := s.Status.LoadBalancer.Ingress, x.status[s.Key()], !s.Gone && !refused
	shown, now := strings.Join(kube.Addresses(was), ", "), strings.Join(kube.Addresses(ingress), ", ")
	tell(s.Gone && shown != "", field, "- "+shown)
	tell(served && shown == "", field, "+ "+cmp.Or(now, "its address, as soon as it is in place"))
	tell(served && shown != "" && len(ingress) > 0 && !kube.SameIngress(was, ingress), field, shown+" -> "+now)
	return all
}
