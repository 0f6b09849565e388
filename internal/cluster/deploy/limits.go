package deploy

import (
	"context"
	"fmt"
	"maps"

	"kaz/internal/azure"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/units"
)

// Limit gives the autoscaler of a pool the limits of a plan, and reports whether the limits were different. It also removes
// the tag of an upgrade. The next upgrade then begins with the number of nodes that the autoscaler has chosen by then.
func (d Deployer) Limit(ctx context.Context, s record.State, id azure.ID, pool string, body object) (bool, error) {
	have := s.Resources[id.Key()].Tags
	tags := Planned(have, body, units.ForAutoscaler)
	if maps.Equal(have, tags) {
		return false, nil
	}
	delete(tags, record.RolloutTag)
	d.Sayf("set the limits of the autoscaler of pool %s", pool)
	return true, d.SetTags(ctx, id, tags)
}

// releaseAll gives the autoscaler of all pools the limits of the definition that was deployed last, after a change that is aborted.
func (d Deployer) releaseAll(ctx context.Context, s record.State, r record.Change) error {
	if s.Definition == nil {
		return nil
	}
	n := naming.Of(s.Definition.Cluster)
	held := map[string]bool{}
	for _, pool := range r.Definition.Pools {
		held[pool.Metadata.Name] = pool.Spec.Autoscaling != nil
	}
	for _, pool := range s.Definition.Pools {
		name := pool.Metadata.Name
		id := n.Group().Resource(record.ScaleSetType, n.With(name))
		if !held[name] && pool.Spec.Autoscaling == nil || !s.Has(id) {
			continue
		}
		want, have := record.LimitsFor(pool), s.Resources[id.Key()].Tags
		if record.LimitsOf(have) == want {
			continue
		}
		tags := maps.Clone(have)
		delete(tags, record.RolloutTag)
		if record.SetLimits(tags, &want); pool.Spec.Autoscaling == nil {
			delete(tags, units.LeastTag)
			delete(tags, units.MostTag)
		}
		d.Sayf("set the limits of the autoscaler of pool %s", name)
		if err := d.SetTags(ctx, id, tags); err != nil {
			return err
		}
	}
	return nil
}

// Planned returns the tags of a scale set, with those tags of its plan for which ours is true. It removes tags for the
// autoscaler that the plan does not have.
func Planned(now map[string]string, body object, ours func(tag string) bool) map[string]string {
	tags := map[string]string{}
	for key, value := range now {
		if !units.ForAutoscaler(key) {
			tags[key] = value
		}
	}
	all, _ := body["tags"].(object)
	for key, value := range all {
		if ours(key) {
			tags[key] = fmt.Sprint(value)
		}
	}
	return tags
}
