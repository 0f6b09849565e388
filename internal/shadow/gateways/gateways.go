// Package gateways decides what the application-gateway-controller of kaz would write for Ingresses, Gateways and their routes. Layer L3.
package gateways

import (
	"cmp"
	"context"
	"slices"
	"time"

	"kaz/internal/azure"
	"kaz/internal/gateway/explain"
	plan "kaz/internal/plan/shadow"
	"kaz/internal/shadow"
)

// Source decides about all objects that a controller serves with its application gateways. config finds these.
func Source(clients explain.Clients, from azure.Reader, config func(context.Context) (explain.Config, error)) shadow.Source {
	return shadow.Source{Kind: "Ingresses and Gateways", Decide: func(ctx context.Context) ([]plan.Verdict, error) {
		c, err := config(ctx)
		if err != nil {
			return nil, err
		}
		applications := c.Applications
		if len(applications) == 0 {
			applications = []azure.ID{c.Gateway}
		}
		var all []plan.Verdict
		for _, c.Gateway = range applications {
			facts, err := explain.GatherAll(ctx, clients, from, c)
			if err != nil {
				return nil, err
			}
			objects, err := facts.ExplainAll(time.Now())
			if err != nil {
				return nil, err
			}
			for _, o := range objects {
				all = add(all, o)
			}
		}
		return all, nil
	}}
}

// add adds what would be written for an object, which several application gateways can serve.
func add(all []plan.Verdict, o explain.Object) []plan.Verdict {
	i := slices.IndexFunc(all, func(v plan.Verdict) bool { return v.Object == o.Key })
	if i < 0 {
		return append(all, plan.Verdict{Object: o.Key, Writes: o.Writes, Refused: o.Refused})
	}
	all[i].Writes, all[i].Refused = append(all[i].Writes, o.Writes...), cmp.Or(all[i].Refused, o.Refused)
	return all
}
