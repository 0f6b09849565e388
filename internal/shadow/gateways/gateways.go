// Package gateways decides what the application-gateway-controller of kaz would write for Ingresses, Gateways and their routes. Layer L3.
package gateways

import (
	"context"
	"time"

	"kaz/internal/azure"
	"kaz/internal/gateway/explain"
	plan "kaz/internal/plan/shadow"
	"kaz/internal/shadow"
)

// Source decides about all objects that a controller serves with an application gateway. config finds the application gateway.
func Source(clients explain.Clients, from azure.Reader, config func(context.Context) (explain.Config, error)) shadow.Source {
	return shadow.Source{Kind: "Ingresses and Gateways", Decide: func(ctx context.Context) ([]plan.Verdict, error) {
		c, err := config(ctx)
		if err != nil {
			return nil, err
		}
		facts, err := explain.GatherAll(ctx, clients, from, c)
		if err != nil {
			return nil, err
		}
		objects, err := facts.ExplainAll(time.Now())
		if err != nil {
			return nil, err
		}
		var all []plan.Verdict
		for _, o := range objects {
			all = append(all, plan.Verdict{Object: o.Key, Writes: o.Writes, Refused: o.Refused})
		}
		return all, nil
	}}
}
