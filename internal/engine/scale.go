package engine

import (
	"context"
	"encoding/json"

	"kaz/internal/azure"
	"kaz/internal/plan/cluster/emit"
	"kaz/internal/plan/cluster/naming"
)

// scale gives pools that exist more machines. The template does not write a scale set that exists, because others write into
// it, too, so a change of the number is one field of it. A smaller number is reported: machines must be drained first.
func (e *Engine) scale(ctx context.Context, w work, result *Result) error {
	for _, pool := range w.plan.Definition.Pools {
		u := w.plan.Graph.Unit(naming.PoolUnit(pool.Metadata.Name))
		if pool.Spec.Backend == "StandaloneVM" || pool.Spec.Autoscaling != nil {
			continue
		}
		id := emit.ID(w.plan.Names, u.Resources[0].Resource, u.Unit)
		if !w.state.Has(id) {
			continue // it was made with its number
		}
		doc, err := e.Azure.Get(ctx, id)
		if err != nil {
			return err
		}
		var set struct {
			SKU struct {
				Capacity int `json:"capacity"`
			} `json:"sku"`
		}
		if err := json.Unmarshal(doc, &set); err != nil {
			return err
		}
		switch have, want := set.SKU.Capacity, pool.Spec.Replicas; {
		case have > want:
			e.say("pool %s has %d machines, and the definition %d: kaz cluster scale or upgrade removes machines",
				pool.Metadata.Name, have, want)
		case have < want:
			e.say("scale pool %s from %d to %d", pool.Metadata.Name, have, want)
			body, err := json.Marshal(map[string]any{"sku": map[string]any{"capacity": want}})
			if err != nil {
				return err
			}
			if _, err := azure.Do(ctx, e.Azure, azure.Request{Verb: azure.Patch, ID: id, Body: body, Unseen: true}); err != nil {
				return err
			}
			result.Unchanged = false
		}
	}
	return nil
}
