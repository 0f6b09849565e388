package engine

import (
	"context"
	"maps"
	"strconv"

	"kaz/internal/azure"
	"kaz/internal/cluster/change"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/units"
)

// limitsOf are the limits of the autoscaler in the tags of a scale set, 0 for those that are no numbers.
func limitsOf(tags map[string]string) change.Limits {
	number := func(tag string) int {
		n, err := strconv.Atoi(tags[tag])
		if err != nil {
			return 0
		}
		return n
	}
	return change.Limits{Least: number(units.LeastTag), Most: number(units.MostTag)}
}

// limitsFor are the limits of a pool in its definition, 0 for one that is not autoscaled.
func limitsFor(p definition.NodePool) change.Limits {
	if a := p.Spec.Autoscaling; a != nil {
		return change.Limits{Least: a.Min, Most: a.Max}
	}
	return change.Limits{}
}

// setLimits adds limits to the tags of a scale set, unless they are nil.
func setLimits(tags map[string]string, l *change.Limits) {
	if l != nil {
		tags[units.LeastTag], tags[units.MostTag] = strconv.Itoa(l.Least), strconv.Itoa(l.Most)
	}
}

// release gives the autoscaler of a pool the limits of the definition.
func (w worker) release(ctx context.Context, s change.Step) error {
	p, err := w.at(w.record.Definition.Cluster.Spec.Kubernetes.Version, w.in.state.Generations())
	if err != nil {
		return err
	}
	id, r := w.scaleSet(p, s.Pool)
	if r == nil {
		return nil
	}
	_, err = deployer{w.Engine}.limit(ctx, w.in.state, id, s.Pool, r.Body)
	return err
}

// limit gives the autoscaler of a pool the limits of a plan, and reports whether the limits were different. It also removes
// the tag of an upgrade. The next upgrade then begins with the number of nodes that the autoscaler has chosen by then.
func (e deployer) limit(ctx context.Context, s State, id azure.ID, pool string, body object) (bool, error) {
	have := s.resources[id.Key()].Tags
	tags := planned(have, body, units.ForAutoscaler)
	if maps.Equal(have, tags) {
		return false, nil
	}
	delete(tags, rolloutTag)
	e.say("set the limits of the autoscaler of pool %s", pool)
	return true, e.setTags(ctx, id, tags)
}

// releaseAll gives the autoscaler of all pools the limits of the definition that was deployed last, after a change that is aborted.
func (e deployer) releaseAll(ctx context.Context, s State, r Record) error {
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
		id := n.Group().Resource(scaleSetType, n.With(name))
		if !held[name] && pool.Spec.Autoscaling == nil || !s.Has(id) {
			continue
		}
		want, have := limitsFor(pool), s.resources[id.Key()].Tags
		if limitsOf(have) == want {
			continue
		}
		tags := maps.Clone(have)
		delete(tags, rolloutTag)
		if setLimits(tags, &want); pool.Spec.Autoscaling == nil {
			delete(tags, units.LeastTag)
			delete(tags, units.MostTag)
		}
		e.say("set the limits of the autoscaler of pool %s", name)
		if err := e.setTags(ctx, id, tags); err != nil {
			return err
		}
	}
	return nil
}
