package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/naming"
)

// scale gives existing pools more machines, the autoscaler its limits, and outbound traffic its addresses. The template does not
// write scale sets and the load balancer of outbound traffic when they exist, because other programs write into them, too. So
// scale changes only single fields of them. It only reports a smaller number of machines: they must be drained first.
func (e deployer) scale(ctx context.Context, w work, result *Result) error {
	wrote, err := e.outbound(ctx, w)
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
		limited, err := e.limit(ctx, w.state, id, pool.Metadata.Name, u.Resources[0].Body)
		if err != nil {
			return err
		}
		result.Unchanged = result.Unchanged && !limited
		if pool.Spec.Autoscaling != nil {
			continue
		}
		more, err := e.enlarge(ctx, id, pool.Metadata.Name, pool.Spec.Replicas)
		if err != nil {
			return err
		}
		result.Unchanged = result.Unchanged && !more
	}
	return nil
}

// setTags gives a resource these tags and no others. A change of the resource itself might keep other tags.
func (e deployer) setTags(ctx context.Context, id azure.ID, tags map[string]string) error {
	body, err := json.Marshal(object{"properties": object{"tags": tags}})
	if err != nil {
		return err
	}
	_, err = azure.Do(ctx, e.Azure, azure.Request{Verb: azure.Put, ID: id.Resource(tagsType, "default"), Body: body, Unseen: true})
	return err
}

// enlarge gives a pool more machines, and reports whether it did.
func (e deployer) enlarge(ctx context.Context, id azure.ID, pool string, want int) (bool, error) {
	doc, err := e.Azure.Get(ctx, id)
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
		e.say("pool %s has %d machines, and the definition %d: kaz cluster scale or upgrade removes machines", pool, have, want)
	}
	if have >= want {
		return false, nil
	}
	if err := e.agree(ctx, id, have); err != nil {
		return false, fmt.Errorf("scale pool %s: %w", pool, err)
	}
	e.say("scale pool %s from %d to %d", pool, have, want)
	return true, e.patch(ctx, id, object{"sku": object{"capacity": want}})
}

// agree returns an error if a scale set has more machines than its capacity. Azure has reported a capacity of 0 for a scale set
// with machines, and a write that is computed from it would delete some of them.
func (e deployer) agree(ctx context.Context, id azure.ID, capacity int) error {
	machines, err := observer(e).instances(ctx, id)
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
