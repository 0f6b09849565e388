package cloudprovider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/record"
	framework "k8s.io/cloud-provider"

	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// loadBalancers serves Services. All calls about one load balancer are committed
// together: see [reconcile.Coalescer].
type loadBalancers struct {
	config  loadbalancer.Config
	door    reconcile.Azure
	nodes   nodeSource
	events  record.EventRecorder
	commits *reconcile.Coalescer[request, answer]
}

var _ framework.LoadBalancer = (*loadBalancers)(nil)

// request is one Service that shall be served, or served no more.
type request struct {
	cluster string
	service loadbalancer.Service
}

// answer is what came of it.
type answer struct {
	ingress []corev1.LoadBalancerIngress
	err     error
}

func newLoadBalancers(config loadbalancer.Config, door reconcile.Azure) *loadBalancers {
	l := &loadBalancers{config: config, door: door, events: &record.FakeRecorder{}}
	l.commits = reconcile.NewCoalescer(l.commit)
	return l
}

// configFor completes the configuration with the cluster's name.
func (l *loadBalancers) configFor(cluster string) loadbalancer.Config {
	c := l.config
	c.ClusterName = cluster
	if c.LoadBalancerName == "" {
		c.LoadBalancerName = cluster
	}
	return c
}

// GetLoadBalancerName is the start of the names of all that belongs to the Service.
func (l *loadBalancers) GetLoadBalancerName(_ context.Context, _ string, service *corev1.Service) string {
	return framework.DefaultLoadBalancerName(service)
}

// GetLoadBalancer tells whether anything of the Service is in Azure.
func (l *loadBalancers) GetLoadBalancer(ctx context.Context, cluster string, service *corev1.Service) (*corev1.LoadBalancerStatus, bool, error) {
	in := loadbalancer.Input{Config: l.configFor(cluster), Services: []loadbalancer.Service{{Service: service}}}
	ids, lists := loadbalancer.Needs(in)
	have, err := reconcile.Take(ctx, l.door, reconcile.Needs{Resources: ids, Lists: lists})
	if err != nil {
		return nil, false, fmt.Errorf("load balancer of %s/%s: %w", service.Namespace, service.Name, err)
	}
	in.Have = have
	there, err := loadbalancer.InPlace(in)
	if err != nil {
		return nil, false, err
	}
	key := in.Services[0].Key()
	if !there[key] {
		return nil, false, nil
	}
	status, err := loadbalancer.Status(in)
	return &corev1.LoadBalancerStatus{Ingress: status[key]}, true, err
}

// EnsureLoadBalancer serves the Service and returns its addresses.
func (l *loadBalancers) EnsureLoadBalancer(ctx context.Context, cluster string, service *corev1.Service, _ []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
	got, err := l.submit(ctx, request{cluster: cluster, service: loadbalancer.Service{Service: service}})
	if err != nil {
		return nil, err
	}
	return &corev1.LoadBalancerStatus{Ingress: got}, nil
}

// UpdateLoadBalancer brings the Service's backends up to date with the nodes.
func (l *loadBalancers) UpdateLoadBalancer(ctx context.Context, cluster string, service *corev1.Service, _ []*corev1.Node) error {
	_, err := l.submit(ctx, request{cluster: cluster, service: loadbalancer.Service{Service: service}})
	return err
}

// EnsureLoadBalancerDeleted takes everything of the Service out of Azure.
func (l *loadBalancers) EnsureLoadBalancerDeleted(ctx context.Context, cluster string, service *corev1.Service) error {
	_, err := l.submit(ctx, request{cluster: cluster, service: loadbalancer.Service{Service: service, Gone: true}})
	return err
}

func (l *loadBalancers) submit(ctx context.Context, r request) ([]corev1.LoadBalancerIngress, error) {
	got, err := l.commits.Submit(ctx, l.configFor(r.cluster).LoadBalancer().Key()+" "+r.cluster, r)
	return got.ingress, errors.Join(err, got.err)
}

// commit brings about the requests of one batch.
func (l *loadBalancers) commit(ctx context.Context, _ string, batch []request) ([]answer, error) {
	nodes, err := l.listNodes(ctx)
	if err != nil {
		return nil, err
	}
	target := &balancerTarget{Input: loadbalancer.Input{Config: l.configFor(batch[0].cluster), Services: latest(batch), Nodes: nodes}}
	out, err := reconcile.Converge(ctx, l.door, target)
	if err != nil {
		return nil, blame(err, out, batch)
	}
	l.tell(batch, target.problems)
	target.Have = out.Have
	return target.answers(batch)
}

// listNodes waits until Kubernetes has told of the nodes: nobody must leave a
// backend pool because the cluster looks empty.
func (l *loadBalancers) listNodes(ctx context.Context) ([]*corev1.Node, error) {
	if l.nodes.lister == nil || !l.nodes.wait(ctx) {
		return nil, errors.New("the cluster's nodes are not known yet")
	}
	return l.nodes.lister.List(labels.Everything())
}

// latest are the Services of a batch, each once: what was asked last counts.
func latest(batch []request) []loadbalancer.Service {
	last := map[string]int{}
	for i, r := range batch {
		last[string(r.service.UID)] = i
	}
	services := make([]loadbalancer.Service, 0, len(last))
	for i, r := range batch {
		if last[string(r.service.UID)] == i {
			services = append(services, r.service)
		}
	}
	return services
}

// blame names the requests at fault where each failed step was for one Service.
func blame(err error, out reconcile.Outcome, batch []request) error {
	if len(out.Reports) == 0 {
		return err
	}
	culprits := map[int]error{}
	for _, res := range out.Reports[len(out.Reports)-1].Results {
		if res.Err == nil || errors.Is(res.Err, reconcile.ErrNotAttempted) {
			continue
		}
		if len(res.Step.For) != 1 {
			return err
		}
		for i, r := range batch {
			if r.service.Key() == res.Step.For[0] {
				culprits[i] = fmt.Errorf("%s: %w", res.Step.Why, res.Err)
			}
		}
	}
	if len(culprits) == 0 || len(culprits) == len(batch) {
		return err
	}
	return &reconcile.Refusal{Culprits: culprits}
}

// tell sends warnings as events of their Service, and logs those about machines.
// What keeps a Service from being served is the answer to its caller, who makes an
// event of it.
func (l *loadBalancers) tell(batch []request, problems []plan.Problem) {
	for _, p := range problems {
		if !p.Warning {
			continue
		}
		i := slices.IndexFunc(batch, func(r request) bool { return r.service.Key() == p.Object })
		if i < 0 {
			slog.Warn("not as asked", "object", p.Object, "reason", p.Reason, "message", p.Message)
			continue
		}
		l.events.Event(batch[i].service.Service, corev1.EventTypeWarning, p.Reason, p.Message)
	}
}

// balancerTarget is the load balancer with the Services of one commit.
type balancerTarget struct {
	loadbalancer.Input
	problems []plan.Problem // of the last decision
}

// Needs implements [reconcile.Target].
func (t *balancerTarget) Needs(have plan.Snapshot) reconcile.Needs {
	in := t.Input
	in.Have = have
	ids, lists := loadbalancer.Needs(in)
	return reconcile.Needs{Resources: ids, Lists: lists}
}

// Desired implements [reconcile.Target].
func (t *balancerTarget) Desired(have plan.Snapshot) (plan.Graph, error) {
	in := t.Input
	in.Have = have
	graph, problems, err := loadbalancer.Desired(in)
	t.problems = problems
	return graph, err
}

// answers tells each request what came of it.
func (t *balancerTarget) answers(batch []request) ([]answer, error) {
	status, err := loadbalancer.Status(t.Input)
	if err != nil {
		return nil, err
	}
	answers := make([]answer, len(batch))
	for i, r := range batch {
		key := r.service.Key()
		wrong := refusals(t.problems, key)
		switch {
		case len(wrong) > 0:
			answers[i].err = errors.New(strings.Join(wrong, "; "))
		case r.service.Gone:
		case len(status[key]) == 0:
			answers[i].err = fmt.Errorf("%s has no address yet", key)
		default:
			answers[i].ingress = status[key]
		}
	}
	return answers, nil
}

// refusals are the problems that keep an object from being served.
func refusals(problems []plan.Problem, object string) []string {
	var wrong []string
	for _, p := range problems {
		if p.Object == object && !p.Warning {
			wrong = append(wrong, p.Message)
		}
	}
	return wrong
}
