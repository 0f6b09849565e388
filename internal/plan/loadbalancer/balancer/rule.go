package balancer

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
)

// planRules replaces the batch's rules and probes at a load balancer. The shared probe goes with the last rule that
// uses it.
func (p planner) planRules(w *Wanted) {
	before := map[string]network.LoadBalancingRule{}
	for _, r := range w.State.Properties.LoadBalancingRules {
		if p.batch.Has(naming.Owner(r.Name)) {
			before[strings.ToLower(r.Name)] = r.Properties
			w.Rules.Remove(r.Name)
		}
	}
	for _, probe := range w.State.Properties.Probes {
		if p.batch.Has(naming.Owner(probe.Name)) {
			w.Probes.Remove(probe.Name)
		}
	}
	for _, at := range p.batch.Placed() {
		if at.At.LB != w.State {
			continue
		}
		for _, r := range at.Rules {
			w.Rules.Write(index.Rule{Name: r.Name, Properties: rule(p.index.Config, r, at, before[strings.ToLower(r.Name)])})
		}
		for _, probe := range at.Probes {
			w.Probes.Write(probe)
		}
	}
	if !w.Rules.Has(func(r index.Rule) bool {
		return strings.EqualFold(r.Properties.Probe.To().Name(), spec.SharedProbe)
	}) {
		w.Probes.Remove(spec.SharedProbe)
	}
}

// rule is a rule in its wanted state. It is written as it is written already where that means the same: Azure
// repeats the pool, a switch that is left out is off, and no time is the default.
func rule(c cluster.Config, r spec.Rule, at batch.Placement, was network.LoadBalancingRule) network.LoadBalancingRule {
	next := network.LoadBalancingRule{
		Protocol: r.Protocol, FrontendPort: r.Port, BackendPort: r.BackendPort,
		EnableFloatingIP: new(at.Floating), EnableTCPReset: r.Reset, LoadDistribution: r.Distribution,
		DisableOutboundSNAT: new(c.DisableOutboundSNAT), IdleTimeoutInMinutes: new(r.IdleMinutes),
		FrontendIPConfiguration: azure.Ref(at.At.ID()),
		BackendAddressPool:      azure.Ref(at.Pool(c)),
	}
	if r.Probe != "" {
		next.Probe = azure.Ref(at.At.LB.ID.Child(network.Probes, r.Probe))
	}
	if was.Protocol == "" {
		return next // it is a new one
	}
	if len(was.BackendAddressPools) > 0 {
		next.BackendAddressPools = []azure.Reference{*next.BackendAddressPool}
	}
	asUnset(&next.EnableFloatingIP, was.EnableFloatingIP)
	asUnset(&next.EnableTCPReset, was.EnableTCPReset)
	asUnset(&next.DisableOutboundSNAT, was.DisableOutboundSNAT)
	if next.EnableTCPReset == nil && was.EnableTCPReset != nil && *was.EnableTCPReset && !strings.EqualFold(next.Protocol, was.Protocol) {
		next.EnableTCPReset = new(false) // it was a rule for all ports, of the same name
	}
	if was.IdleTimeoutInMinutes == nil && r.IdleMinutes == key.IdleTimeout.Default {
		next.IdleTimeoutInMinutes = nil
	}
	return next
}

// asUnset leaves a switch out that is off and was left out.
func asUnset(now **bool, was *bool) {
	if was == nil && *now != nil && !**now {
		*now = nil
	}
}
