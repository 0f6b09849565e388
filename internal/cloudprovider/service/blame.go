package service

import (
	"errors"
	"slices"
	"strings"

	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/controller"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// blame names the requests at fault for the failure of a commit, if Azure tells. A step may be for
// one Service alone, or Azure may name a part of a document. Where it is busy and does not say
// with which part, all requests wait that the document serves, and no others.
func blame(c commit) error {
	return controller.Blame(c.failure, c.out.Failed(), len(c.batch), func(failed reconcile.Result) []controller.Suspicion {
		isNamed := namedBy(failed)
		all := []controller.Suspicion{func(failed reconcile.Result, i int) bool {
			alone := slices.Equal(failed.Step.For, []string{c.batch[i].service.Key()})
			return c.serves(i) && (alone || len(failed.Step.For) > 1 && isNamed(c.batch[i]))
		}}
		if azure.KindOf(failed.Err) == azure.Busy {
			all = append(all, func(failed reconcile.Result, i int) bool {
				return c.serves(i) && slices.Contains(failed.Step.For, c.batch[i].service.Key())
			})
		}
		return all
	})
}

// namedBy tells whether an error is about what a Service has in a shared document: it
// tells the name of a part, which begins with the Service's own, or the id of what the
// Service's frontend refers to.
func namedBy(failed reconcile.Result) func(request) bool {
	e, ok := errors.AsType[*azure.Error](failed.Err)
	if !ok {
		return func(request) bool { return false }
	}
	text := strings.ToLower(e.Target + " " + e.Message)
	var named []string // frontends that refer to what is named, in lower case
	for _, fe := range balancerIn(failed.Step).FrontendIPConfigurations {
		isNamed := func(id azure.ID) bool { return controller.Mentions(text, id.Key()) }
		if slices.ContainsFunc(azure.References(fe.Properties), isNamed) {
			named = append(named, strings.ToLower(fe.Name))
		}
	}
	return func(r request) bool {
		base := framework.DefaultLoadBalancerName(r.service.Service)
		return strings.Contains(text, base) || slices.ContainsFunc(named, func(name string) bool { return strings.HasPrefix(name, base) })
	}
}

// balancerIn is the load balancer that a step writes, an empty one for another step.
func balancerIn(s plan.Step) network.LoadBalancer {
	if !s.ID.Is(network.LoadBalancers) || len(s.Body) == 0 {
		return network.LoadBalancer{}
	}
	lb, _ := azure.Decode[network.LoadBalancer](s.Body) // the planner has made it
	return lb.Properties
}
