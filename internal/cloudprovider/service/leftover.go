package service

import (
	"context"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// sweeping is the item that stands for what is in Azure of Services that are not there
// any more: somebody has taken the finalizer off, Azure has said that something is
// done which is not, or a leader that did not know yet that it was none has served a
// Service behind the back of the one that took it away.
var sweeping = item{Name: "leftovers"}

// sweeper is the request for that. It stands for no Service.
func sweeper(w why) request {
	return request{why: w, sweeps: true, service: loadbalancer.Service{Gone: true, Service: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: sweeping.Name}}}}
}

// sweep takes away what is in Azure of Services that are not there any more.
func (c *Controller) sweep(ctx context.Context, w why) {
	err := c.takeLeftovers(ctx, w)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		c.sweepFailures = 0
	default:
		c.sweepFailures++
		wait := delay(err, c.sweepFailures)
		slog.WarnContext(ctx, "leftovers not taken away", "error", err, "again_in", wait)
		c.dirt.add(sweeping, w)
		c.queue.AddAfter(sweeping, wait)
	}
}

func (c *Controller) takeLeftovers(ctx context.Context, w why) error {
	got, err := c.commits.Submit(ctx, c.config.LoadBalancer.LoadBalancer().Key(), sweeper(w))
	if err != nil {
		return err
	}
	return c.release(ctx, got.released)
}

// noteLeftovers notes in the answers of those who are refused for what is in Azure whether
// some of that may be left of Services that are gone, as far as this process has heard.
func (t *target) noteLeftovers(answers []answer) error {
	inTheWay := func(a answer) bool { return slices.ContainsFunc(a.problems, isOfAzure) }
	if !slices.ContainsFunc(answers, inTheWay) {
		return nil
	}
	all := slices.Clone(t.Others)
	for _, s := range t.Services {
		all = append(all, s.Service)
	}
	left, err := loadbalancer.Leftovers(t.Config, t.Have, all)
	left = slices.DeleteFunc(left, isRulesAlone)
	for i, a := range answers {
		answers[i].leftovers = len(left) > 0 && inTheWay(a)
	}
	return err
}

// addLeftovers has a commit take away what is left of Services that are not there any
// more, if one of its requests asks for that.
func (b *balancers) addLeftovers(ctx context.Context, t *shared, batch []request) error {
	if !slices.ContainsFunc(batch, func(r request) bool { return r.sweeps }) {
		return nil
	}
	left, err := t.addLeftovers(ctx, b.azure, b.kube.all)
	for _, s := range left {
		slog.InfoContext(ctx, "left in azure without a service", "service", s.Key(), "uid", s.UID)
	}
	return err
}

// looksAtMost bounds how often one thing that is found leads to a look for more.
const looksAtMost = 3

// addLeftovers adds what is left of Services that are not there any more, and returns it.
// all asks Kubernetes for all Services.
func (t *target) addLeftovers(ctx context.Context, r azure.Reader, all listing) ([]loadbalancer.Service, error) {
	services := t.Services
	for range looksAtMost {
		left, err := t.leftovers(ctx, r, all, services)
		if err != nil {
			return nil, err
		}
		same := len(services)+len(left) == len(t.Services)
		t.Services = slices.Concat(services, left)
		if same {
			break
		}
	}
	return t.Services[len(services):], nil
}

// listing asks Kubernetes for all Services.
type listing func(ctx context.Context) ([]*corev1.Service, error)

func (t *target) leftovers(ctx context.Context, r azure.Reader, list listing, services []loadbalancer.Service) ([]loadbalancer.Service, error) {
	// First Azure and then Kubernetes: what was made for a Service was made after it, so
	// the Service is in the list, or gone.
	have, err := reconcile.Gather(ctx, r, t.Needs)
	if err != nil {
		return nil, err
	}
	all, err := list(ctx)
	if err != nil {
		return nil, err
	}
	all = append(slices.DeleteFunc(all, func(s *corev1.Service) bool { return !mayHaveAny(s) }), t.Others...)
	for _, s := range services {
		all = append(all, s.Service)
	}
	left, err := loadbalancer.Leftovers(t.Config, have, all)
	// Security rules that lead nowhere may be others', and are looked at with any Service.
	if !t.Complete || len(services) > 0 {
		left = slices.DeleteFunc(left, isRulesAlone)
	}
	return left, err
}

// isRulesAlone reports whether what is left is security rules of which not even a base
// name is known.
func isRulesAlone(s loadbalancer.Service) bool {
	return s.UID == "" && s.Namespace == loadbalancer.Nobody
}

// mayHaveAny reports whether anything of a Service can be in Azure, whoever serves it.
func mayHaveAny(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer || helpers.HasLBFinalizer(s)
}

// releasedForNobody are the steps after a commit that no Service of it sees to.
func (d *shared) releasedForNobody(batch []request) []plan.Step {
	var steps []plan.Step
	for _, s := range d.released {
		if !slices.ContainsFunc(batch, func(r request) bool { return !r.sweeps && slices.Contains(s.For, r.service.Key()) }) {
			steps = append(steps, s)
		}
	}
	return steps
}
