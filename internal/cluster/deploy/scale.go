package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
)

// scale gives existing pools more machines, the autoscaler its limits, and outbound traffic its addresses. The template does not
// write scale sets and the load balancer of outbound traffic when they exist, because other programs write into them, too. So
// scale changes only single fields of them. It only reports a smaller number of machines: they must be drained first.
func (d Deployer) scale(ctx context.Context, w work, result *Result) error {
	wrote, err := d.outbound(ctx, w)
	if err != nil {
		return err
	}
	result.Unchanged = result.Unchanged && !wrote
	for _, pool := range w.plan.Definition.Pools {
		u := w.plan.Graph.Unit(naming.PoolUnit(pool.Metadata.Name))
		id := emit.ID(w.plan.Names, u.Resources[0].Resource, u.Unit)
		if pool.Spec.Backend == "StandaloneVM" || !w.state.Has(id) { // or it was made with its number
			continue
		}
		limited, err := d.Limit(ctx, w.state, id, pool.Metadata.Name, u.Resources[0].Body)
		if err != nil {
			return err
		}
		result.Unchanged = result.Unchanged && !limited
		if pool.Spec.Autoscaling != nil {
			continue
		}
		more, err := d.enlarge(ctx, id, pool.Metadata.Name, pool.Spec.Replicas)
		if err != nil {
			return err
		}
		result.Unchanged = result.Unchanged && !more
	}
	return nil
}

// enlarge gives a pool more machines, and reports whether it did.
func (d Deployer) enlarge(ctx context.Context, id azure.ID, pool string, want int) (bool, error) {
	doc, err := d.Azure.Get(ctx, id)
	if err != nil {
		return false, err
	}
	var set struct {
		SKU struct {
			Capacity *int `json:"capacity"`
		} `json:"sku"`
	}
	if err := json.Unmarshal(doc, &set); err != nil {
		return false, err
	}
	if set.SKU.Capacity == nil {
		return false, fmt.Errorf("scale pool %s: Azure reports no capacity of scale set %s; try again", pool, id.Name())
	}
	have := *set.SKU.Capacity
	if have > want {
		d.Sayf("pool %s has %d machines, and the definition %d: kaz cluster scale or upgrade removes machines", pool, have, want)
	}
	if have >= want {
		return false, nil
	}
	if err := agree(ctx, d.Store, id, have); err != nil {
		return false, fmt.Errorf("scale pool %s: %w", pool, err)
	}
	d.Sayf("scale pool %s from %d to %d", pool, have, want)
	return true, d.Patch(ctx, id, object{"sku": object{"capacity": want}})
}

// agree returns an error if a scale set has more machines than its capacity. Azure has reported a capacity of 0 for a scale set
// with machines, and a write that is computed from it would delete some of them.
func agree(ctx context.Context, st record.Store, id azure.ID, capacity int) error {
	machines, err := st.Instances(ctx, id)
	if err != nil {
		return err
	}
	existing := 0
	for _, m := range machines {
		if !strings.EqualFold(m.Properties.ProvisioningState, "Deleting") {
			existing++
		}
	}
	if existing > capacity {
		return fmt.Errorf("scale set %s: Azure reports a capacity of %d, and %d of its machines exist; try again when both agree",
			id.Name(), capacity, existing)
	}
	return nil
}
