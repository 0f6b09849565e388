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
	return controller.Blame(c.failure, c.out.Reports, len(c.batch), func(failed reconcile.Result) []controller.Suspicion {
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
	for name, refs := range frontendsOf(failed.Step) {
		if slices.ContainsFunc(refs, func(ref *azure.Reference) bool { return ref != nil && controller.Mentions(text, ref.ID.Key()) }) {
			named = append(named, name)
		}
	}
	return func(r request) bool {
		base := framework.DefaultLoadBalancerName(r.service.Service)
		return strings.Contains(text, base) || slices.ContainsFunc(named, func(name string) bool { return strings.HasPrefix(name, base) })
	}
}

// frontendsOf is what the frontends of a load balancer refer to that a step writes, by
// their names in lower case.
func frontendsOf(s plan.Step) map[string][]*azure.Reference {
	if !s.ID.Is(network.LoadBalancers) || len(s.Body) == 0 {
		return nil
	}
	lb, err := azure.Decode[network.LoadBalancer](s.Body)
	if err != nil {
		return nil // the planner has made it
	}
	refs := make(map[string][]*azure.Reference, len(lb.Properties.FrontendIPConfigurations))
	for _, fe := range lb.Properties.FrontendIPConfigurations {
		refs[strings.ToLower(fe.Name)] = []*azure.Reference{fe.Properties.PublicIPAddress, fe.Properties.Subnet}
	}
	return refs
}
