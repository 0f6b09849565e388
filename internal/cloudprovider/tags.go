package cloudprovider

import (
	"context"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/podcidr"
	"kaz/internal/reconcile"
)

// SetTags returns the tags of the scale set or availability set of a machine.
func (c *Cloud) SetTags(ctx context.Context, providerID string) (azure.Tags, error) {
	have, err := reconcile.Gather(ctx, c.arm, func(have plan.Snapshot) reconcile.Needs {
		return reconcile.Needs{Lists: podcidr.Needs(have, providerID)}
	})
	if err != nil {
		return nil, err
	}
	return podcidr.TagsOf(have, providerID)
}
