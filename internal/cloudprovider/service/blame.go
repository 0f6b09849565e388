package service

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/controller"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/reconcile"
)

// failedCommit is the error of a decision that Azure did not take.
type failedCommit struct {
	error
	problems []plan.Problem // that the decision also found
}

func (f *failedCommit) Unwrap() error { return f.error }

// blame is the error of a commit that failed. It names the requests at fault, if Azure tells. A step may be for one Service
// alone. Azure may name a part of a shared document, and the part's name begins with the Service's own name. Or Azure may
// name the id of what the Service's frontend refers to. If Azure is busy and names no part, all requests that the document
// serves wait, and no others.
func (c *commit) blame() error {
	err := controller.Blame(c.failure, c.out.Failed(), len(c.batch), func(failed reconcile.Result) []controller.Suspicion {
		text, lb := refusalOf(failed)
		isNamed := func(id azure.ID) bool { return controller.Mentions(text, id.Key()) }
		for _, fe := range lb.FrontendIPConfigurations {
			if slices.ContainsFunc(azure.References(fe.Properties), isNamed) {
				text += " " + naming.Owner(fe.Name)
			}
		}
		isFor := func(i int) bool {
			return c.serves(i) && slices.Contains(failed.Step.For, c.batch[i].service.Key())
		}
		ownsPart := func(i int) bool {
			return c.serves(i) && strings.Contains(text, naming.OwnerOf(c.batch[i].service.Service))
		}
		switch {
		case len(failed.Step.For) <= 1:
			return []controller.Suspicion{isFor}
		case azure.KindOf(failed.Err) == azure.Busy:
			return []controller.Suspicion{ownsPart, isFor}
		}
		return []controller.Suspicion{ownsPart}
	})
	problems := c.out.Decision.Problems
	refusal, ok := errors.AsType[*reconcile.Refusal](err)
	if !ok {
		return &failedCommit{c.failure, problems}
	}
	for i, cause := range refusal.Culprits {
		refusal.Culprits[i] = &failedCommit{cause, problems}
	}
	return refusal
}

// rejectedBy returns the addresses of nodes that Azure names in a refusal of their pool, each with Azure's message.
func rejectedBy(out reconcile.Outcome) map[string]string {
	rejected := map[string]string{}
	for _, res := range out.Failed() {
		e, ok := errors.AsType[*azure.Error](res.Err)
		if !ok || e.Kind != azure.Invalid {
			continue
		}
		text, lb := refusalOf(res)
		for _, p := range lb.BackendAddressPools {
			if !controller.Mentions(text, res.Step.ID.Child(network.BackendAddressPools, p.Name).Key()) {
				continue
			}
			named := map[string]string{}
			for _, m := range p.Properties.LoadBalancerBackendAddresses {
				ip := m.Properties.IPAddress
				if ip != "" && (controller.Mentions(text, strings.ToLower(m.Name)) || controller.Mentions(text, strings.ToLower(ip))) {
					named[ip] = e.Message
				}
			}
			if len(named) < len(p.Properties.LoadBalancerBackendAddresses) { // otherwise no node is at fault, and the pool would be empty
				maps.Copy(rejected, named)
			}
		}
	}
	return rejected
}

// refusalOf returns Azure's refusal of a step, in lower case, and the load balancer that the step writes. The load balancer
// is empty if the step writes something else.
func refusalOf(failed reconcile.Result) (text string, lb network.LoadBalancer) {
	if e, ok := errors.AsType[*azure.Error](failed.Err); ok {
		text = strings.ToLower(e.Target + " " + e.Message)
	}
	if failed.Step.ID.Is(network.LoadBalancers) && len(failed.Step.Body) > 0 {
		r, _ := azure.Decode[network.LoadBalancer](failed.Step.Body) // the planner has made it
		lb = r.Properties
	}
	return text, lb
}

// newFailedWrites is for failed writes of what load balancers share and refer to. Azure refuses a load balancer that refers
// to a failed resource.
func newFailedWrites() controller.FailedWrites {
	return controller.FailedWrites{
		Types: []string{network.SecurityGroups, network.Subnets, network.PublicIPAddresses, network.LoadBalancers},
		Refers: map[string]func(azure.Document) []azure.ID{
			network.LoadBalancers:       controller.ReferencesOf[network.LoadBalancer],
			network.PrivateLinkServices: controller.ReferencesOf[network.PrivateLinkService],
			network.Subnets: controller.ReferencesOf[struct {
				NetworkSecurityGroup *azure.Reference `json:"networkSecurityGroup,omitempty"`
			}],
		},
		// A virtual network is failed while one of its subnets is, and kaz writes subnets, not networks. Subnets that may
		// not be read are left to others.
		Hidden: func(ctx context.Context, client reconcile.Azure, refusal *azure.Error) ([]azure.Document, error) {
			if !azure.ID(refusal.Target).Is(network.VirtualNetworks) {
				return nil, nil
			}
			docs, err := client.Fresh().List(ctx, azure.Query{Scope: azure.ID(refusal.Target), Type: network.Subnets})
			if azure.KindOf(err) == azure.Denied {
				return nil, nil
			}
			return docs, err
		},
	}
}
