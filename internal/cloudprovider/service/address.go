package service

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// allocate makes the public IPs that a Service needs and that do not exist yet.
// Those of several Services are planned together, on one snapshot, and made side by
// side; each Service goes on as soon as it has its own.
//
// It runs ahead of the commit, which would make them too, so that a public IP that is slow or
// refused holds up no other Service. What it finds made or changed by others is left to the
// commit, which reads again.
func (c *Controller) allocate(ctx context.Context, s loadbalancer.Service) error {
	steps, err := c.addresses.Submit(ctx, c.config.LoadBalancer.LoadBalancer().Key(), s)
	if err != nil || len(steps) == 0 {
		return err
	}
	err = reconcile.Apply(ctx, c.azure, plan.Plan{Steps: steps}).Err()
	switch azure.KindOf(err) {
	case azure.Exists, azure.Changed, azure.Busy:
		return nil
	}
	return err
}

// planAddresses answers each Service with the steps that make its public IPs.
func (c *Controller) planAddresses(ctx context.Context, _ string, batch []loadbalancer.Service) ([][]plan.Step, error) {
	in := c.cluster.Target(ctx, batch)
	have, err := reconcile.Gather(ctx, c.azure, in.Needs)
	if err != nil {
		return nil, err
	}
	d, err := in.Decide(have)
	if err != nil {
		return nil, err
	}
	c.cluster.ConfirmName()
	if zones, ok := d.Ask.(*decision.ZonesNeeded); ok {
		return nil, zones.Refuse(len(batch), func(i int) string { return batch[i].Key() })
	}
	p, err := plan.Diff(have, d.Graph)
	if err != nil {
		return nil, fmt.Errorf("plan addresses: %w", err)
	}
	answers := make([][]plan.Step, len(batch))
	for _, step := range p.Steps {
		if step.Op != plan.Create || len(step.After) > 0 || !step.ID.Is(network.PublicIPAddresses) {
			continue
		}
		first := slices.IndexFunc(batch, func(s loadbalancer.Service) bool { return slices.Contains(step.For, s.Key()) })
		if first >= 0 {
			answers[first] = append(answers[first], step)
		}
	}
	return answers, nil
}

// release deletes public IPs that a commit has released. What several Services wait for is
// deleted once.
func (c *Controller) release(ctx context.Context, steps []plan.Step) error {
	var group errgroup.Group
	for _, s := range steps {
		group.Go(func() error {
			_, err, _ := c.releases.Do(s.ID.Key(), func() (any, error) {
				return nil, reconcile.Apply(ctx, c.azure, plan.Plan{Steps: []plan.Step{s}}).Err()
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("failed to delete load balancer: %w", err)
	}
	return nil
}
