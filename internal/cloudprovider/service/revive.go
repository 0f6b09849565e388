package service

import (
	"context"
	"errors"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// revive writes again what Azure began and did not finish and what a load balancer that
// could not be written refers to: Azure takes none of it until somebody does. It reports
// whether there was any.
func revive(ctx context.Context, door reconcile.Azure, out reconcile.Outcome) (bool, error) {
	var errs []error
	ids := unfinished(out.Have, refusedReferences(out), nil)
	for _, id := range ids {
		doc, _ := out.Have.Get(id)
		_, err := door.Put(ctx, azure.Write{ID: id, Body: doc, IfMatch: doc.Etag()})
		errs = append(errs, err)
	}
	return len(ids) > 0, errors.Join(errs...)
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

// revivable are the types of which a failed resource is written again as it is.
var revivable = []string{network.SecurityGroups, network.Subnets, network.PublicIPAddresses}

// unfinished adds to found those of the resources, and of what they refer to, that Azure
// gave up on. What one needs comes before it: a subnet is taken when its security group is well.
func unfinished(have plan.Snapshot, ids, found []azure.ID) []azure.ID {
	type needs struct {
		ProvisioningState    string           `json:"provisioningState,omitempty" azure:"read"`
		NetworkSecurityGroup *azure.Reference `json:"networkSecurityGroup,omitempty"`
	}
	for _, id := range ids {
		if !slices.ContainsFunc(revivable, func(fullType string) bool { return sameType(id, fullType) }) {
			continue
		}
		r, ok, err := plan.View[needs](have, id)
		if err != nil || !ok {
			continue
		}
		found = unfinished(have, azure.References(r.Properties), found)
		if strings.EqualFold(r.Properties.ProvisioningState, "Failed") && !slices.ContainsFunc(found, id.Equal) {
			found = append(found, id)
		}
	}
	return found
}
