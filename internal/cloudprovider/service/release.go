package service

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// departure is a target whose public IPs that serve nobody any more do not go in the
// commit: deleting one takes long, and nobody else needs to wait for it. Each Service
// deletes its own when the commit has let go of it, beside all others.
//
// A Service that is stopped in between finds them again: they are in a resource group
// that it or the load balancers name, and their tags tell that they are its. Those of
// which that is not so go in the commit, in a round that is not the last.
type departure struct {
	*target
	released []plan.Step // by the last decision
}

// Desired implements [reconcile.Target].
func (d *departure) Desired(have plan.Snapshot) (plan.Graph, error) {
	graph, err := d.target.Desired(have)
	d.released = nil
	if err != nil || len(graph.Pending) > 0 {
		return graph, err
	}
	var stay, leave plan.Graph
	for _, n := range graph.Nodes() {
		to := &stay
		if n.Want() == nil && sameType(n.ID, network.PublicIPAddresses) {
			n.After = nil
			to = &leave
		}
		if err := to.Add(n); err != nil {
			return graph, err
		}
	}
	p, err := plan.Diff(have, leave)
	d.released = p.Steps
	return stay, err
}

// releasedFor are the steps that a Service has to do after its commit. A public IP that
// several left is deleted for each: none of them is gone before it is.
func (d *departure) releasedFor(key string) []plan.Step {
	var steps []plan.Step
	for _, s := range d.released {
		if slices.Contains(s.For, key) {
			steps = append(steps, s)
		}
	}
	return steps
}

// release deletes what a commit has let go of. What several wait for is deleted once.
func (c *Controller) release(ctx context.Context, steps []plan.Step) error {
	var group errgroup.Group
	for _, s := range steps {
		group.Go(func() error {
			_, err := c.releases.Submit(ctx, s.ID.Key(), s)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("failed to delete load balancer: %w", err)
	}
	return nil
}

// releasing deletes public IPs.
type releasing struct{ azure reconcile.Azure }

func (r releasing) commit(ctx context.Context, _ string, batch []plan.Step) ([]struct{}, error) {
	err := reconcile.Apply(ctx, r.azure, plan.Plan{Steps: batch[:1]}).Err()
	if azure.IsNotFound(err) {
		err = nil
	}
	return make([]struct{}, len(batch)), err
}
