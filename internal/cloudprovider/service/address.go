package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// allocate makes the public IPs that a Service needs and that are not there yet.
// Those of several Services are planned together, on one snapshot, and made side by
// side; each Service goes on as soon as it has its own.
//
// It runs ahead of the commit, which would make them too. So what it finds made or
// changed by somebody else is left to the commit, which looks again.
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

// allocation plans new public IPs.
type allocation struct {
	cluster
	azure reconcile.Azure
}

// commit answers each Service with the steps that make its public IPs.
func (a *allocation) commit(ctx context.Context, _ string, batch []loadbalancer.Service) ([][]plan.Step, error) {
	target, err := a.target(ctx, batch)
	if err != nil {
		return nil, err
	}
	have, err := reconcile.Gather(ctx, a.azure, target.Needs)
	if err != nil {
		return nil, err
	}
	graph, err := target.Desired(have)
	if waiting, ok := errors.AsType[*unzoned](err); ok {
		return nil, waiting.among(len(batch), func(i int) string { return batch[i].Key() })
	}
	if err != nil {
		return nil, err
	}
	p, err := plan.Diff(have, graph)
	if err != nil {
		return nil, fmt.Errorf("plan addresses: %w", err)
	}
	answers := make([][]plan.Step, len(batch))
	for _, step := range p.Steps {
		if step.Op != plan.Create || len(step.After) > 0 || !sameType(step.ID, network.PublicIPAddresses) {
			continue
		}
		first := slices.IndexFunc(batch, func(s loadbalancer.Service) bool { return slices.Contains(step.For, s.Key()) })
		if first >= 0 {
			answers[first] = append(answers[first], step)
		}
	}
	return answers, nil
}
