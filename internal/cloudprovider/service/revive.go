package service

import (
	"context"
	"errors"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// revive writes those public IPs and subnets again that Azure began and did not finish,
// and that a load balancer which could not be written refers to: Azure takes none of
// them until somebody does. It reports whether there were any.
func revive(ctx context.Context, door reconcile.Azure, out reconcile.Outcome) (bool, error) {
	var errs []error
	revived := map[string]bool{}
	for _, id := range refusedReferences(out) {
		ip, ok := unfinished(out.Have, id)
		if !ok || revived[id.Key()] {
			continue
		}
		revived[id.Key()] = true
		_, err := door.Put(ctx, azure.Write{ID: id, Body: ip})
		errs = append(errs, err)
	}
	return len(revived) > 0, errors.Join(errs...)
}

// refusedReferences is what the load balancers refer to that Azure did not take.
func refusedReferences(out reconcile.Outcome) []azure.ID {
	if len(out.Reports) == 0 {
		return nil
	}
	var ids []azure.ID
	for _, res := range out.Reports[len(out.Reports)-1].Results {
		if res.Err == nil || errors.Is(res.Err, reconcile.ErrNotAttempted) || !sameType(res.Step.ID, network.LoadBalancers) {
			continue
		}
		if lb, err := azure.Decode[network.LoadBalancer](res.Step.Body); err == nil {
			ids = append(ids, azure.References(lb)...)
		}
	}
	return ids
}

// unfinished is a public IP or subnet that Azure gave up on.
func unfinished(have plan.Snapshot, id azure.ID) (azure.Document, bool) {
	if !sameType(id, network.PublicIPAddresses) && !sameType(id, network.Subnets) {
		return nil, false
	}
	type state struct {
		ProvisioningState string `json:"provisioningState,omitempty"`
	}
	ip, ok, err := plan.View[state](have, id)
	if err != nil || !ok || !strings.EqualFold(ip.Properties.ProvisioningState, "Failed") {
		return nil, false
	}
	doc, ok := have.Get(id)
	return doc, ok
}
