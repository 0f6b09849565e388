// Package rule decides the load balancing rules and the health probes of a load balancer. Layer L1.
package rule

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/balancer"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
)

// Plan replaces the batch's rules and probes at a load balancer. The shared probe goes with the last rule that
// uses it.
func Plan(c cluster.Config, b *batch.Batch, w *balancer.Wanted) {
	before := map[string]network.LoadBalancingRule{}
	for _, r := range w.State.Properties.LoadBalancingRules {
		if b.Has(naming.Owner(r.Name)) {
			before[strings.ToLower(r.Name)] = r.Properties
			w.Rules.Remove(r.Name)
		}
	}
	for _, p := range w.State.Properties.Probes {
		if b.Has(naming.Owner(p.Name)) {
			w.Probes.Remove(p.Name)
		}
	}
	for _, p := range b.Placed() {
		if p.At.LB != w.State {
			continue
		}
		for _, r := range p.Rules {
			view := view(c, r, p)
			asBefore(&view, before[strings.ToLower(r.Name)])
			w.Rules.Write(index.Rule{Name: r.Name, Properties: view})
		}
		for _, probe := range p.Probes {
			w.Probes.Write(probe)
		}
	}
	if !w.Rules.Has(func(r index.Rule) bool {
		return strings.EqualFold(r.Properties.Probe.To().Name(), spec.SharedProbe)
	}) {
		w.Probes.Remove(spec.SharedProbe)
	}
}

// view is a rule as the load balancer has it.
func view(c cluster.Config, r spec.Rule, p batch.Placement) network.LoadBalancingRule {
	view := network.LoadBalancingRule{
		Protocol: r.Protocol, FrontendPort: r.Port, BackendPort: r.BackendPort,
		EnableFloatingIP: new(p.Floating), EnableTCPReset: r.Reset, LoadDistribution: r.Distribution,
		DisableOutboundSNAT: new(c.DisableOutboundSNAT), IdleTimeoutInMinutes: new(r.IdleMinutes),
		FrontendIPConfiguration: azure.Ref(p.At.ID()),
		BackendAddressPool:      azure.Ref(p.Pool(c)),
	}
	if r.Probe != "" {
		view.Probe = azure.Ref(p.At.LB.ID.Child(network.Probes, r.Probe))
	}
	return view
}

// asBefore writes a rule as it is written already where that means the same: Azure
// repeats the pool, a switch that is left out is off, and no time is the default.
func asBefore(r *network.LoadBalancingRule, was network.LoadBalancingRule) {
	if len(was.BackendAddressPools) > 0 {
		r.BackendAddressPools = []azure.Reference{*r.BackendAddressPool}
	}
	if was.Protocol == "" {
		return // it is a new one
	}
	asUnset(&r.EnableFloatingIP, was.EnableFloatingIP)
	asUnset(&r.EnableTCPReset, was.EnableTCPReset)
	asUnset(&r.DisableOutboundSNAT, was.DisableOutboundSNAT)
	if r.EnableTCPReset == nil && was.EnableTCPReset != nil && *was.EnableTCPReset && !strings.EqualFold(r.Protocol, was.Protocol) {
		r.EnableTCPReset = new(false) // it was a rule for all ports, of the same name
	}
	if was.IdleTimeoutInMinutes == nil && *r.IdleTimeoutInMinutes == key.IdleTimeout.Default {
		r.IdleTimeoutInMinutes = nil
	}
}

// asUnset leaves a switch out that is off and was left out.
func asUnset(now **bool, was *bool) {
	if was == nil && *now != nil && !**now {
		*now = nil
	}
}
