package service

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/reconcile"
)

// unfitAtMost is how many addresses of nodes a commit learns not to be taken. Where there are
// more, something is wrong with more than a node.
const unfitAtMost = 10

// stillUnfit are the addresses that Azure has not taken into a pool and that a node has. To
// compare everything is to try them once more: the virtual network may be another one by now.
func (b *balancers) stillUnfit(nodes []*corev1.Node, drift bool) map[string]string {
	still := map[string]string{}
	if drift {
		return still
	}
	for _, n := range nodes {
		for _, a := range n.Status.Addresses {
			if ip, err := netip.ParseAddr(a.Address); err == nil {
				if why, unfit := b.unfit[ip.Unmap().String()]; unfit {
					still[ip.Unmap().String()] = why
				}
			}
		}
	}
	return still
}

// withoutUnfit brings a target about again without the addresses of nodes that Azure names in
// its refusal: a load balancer is written as a whole, and no Service could be served any more.
func (b *balancers) withoutUnfit(ctx context.Context, t *shared, out reconcile.Outcome, err error) (reconcile.Outcome, error) {
	for range unfitAtMost {
		named := unfitIn(out)
		if err == nil || len(named) == 0 {
			break
		}
		maps.Copy(t.Unfit, named)
		again, failed := b.bringAbout(ctx, t)
		again.Reports = append(out.Reports, again.Reports...)
		out, err = again, failed
	}
	return out, err
}

// unfitIn are the addresses that Azure has not taken into a pool, with its words, by address.
func unfitIn(out reconcile.Outcome) map[string]string {
	unfit := map[string]string{}
	if len(out.Reports) == 0 {
		return unfit
	}
	for _, res := range out.Reports[len(out.Reports)-1].Results {
		e, ok := errors.AsType[*azure.Error](res.Err)
		if !ok || e.Kind != azure.Invalid || !sameType(res.Step.ID, network.LoadBalancers) || len(res.Step.Body) == 0 {
			continue
		}
		lb, err := azure.Decode[network.LoadBalancer](res.Step.Body)
		if err != nil {
			continue // it was written by the planner
		}
		text := strings.ToLower(e.Target + " " + e.Message)
		for _, p := range lb.Properties.BackendAddressPools {
			if !tells(text, res.Step.ID.Child(network.BackendAddressPools, p.Name).Key()) {
				continue
			}
			named := slices.DeleteFunc(slices.Clone(p.Properties.LoadBalancerBackendAddresses), func(m azure.Child[network.BackendAddress]) bool {
				return m.Properties.IPAddress == "" || !tells(text, strings.ToLower(m.Name)) && !tells(text, strings.ToLower(m.Properties.IPAddress))
			})
			if len(named) == len(p.Properties.LoadBalancerBackendAddresses) {
				continue // nobody would be left: it is not about a node
			}
			for _, m := range named {
				unfit[m.Properties.IPAddress] = e.Message
			}
		}
	}
	return unfit
}
