// Package rule decides the load balancing rules and the health probes of a load balancer. Layer L1.
package rule

import (
	"slices"
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

type (
	// Child is a load balancing rule of a load balancer.
	Child = azure.Child[network.LoadBalancingRule]
	// Probe is a health probe of a load balancer.
	Probe = azure.Child[network.Probe]
)

// Plan replaces the batch's rules and probes at a load balancer and keeps all others.
func Plan(c cluster.Config, b *batch.Batch, lb *index.LoadBalancer) (rules []Child, probes []Probe) {
	had := lb.Properties.LoadBalancingRules
	rules = make([]Child, 0, len(had)+len(b.Live))
	before := map[string]network.LoadBalancingRule{}
	for _, r := range had {
		if !b.Has(naming.Owner(r.Name)) {
			r.Keep = true
			rules = append(rules, r)
			continue
		}
		before[strings.ToLower(r.Name)] = r.Properties
	}
	var wanted []Probe
	for _, s := range b.Live {
		for _, p := range s.Placements {
			if p.At.LB != lb {
				continue
			}
			for _, r := range p.Rules {
				view := view(c, r, p)
				asBefore(&view, before[strings.ToLower(r.Name)])
				rules = append(rules, Child{Name: r.Name, Properties: view})
			}
			wanted = append(wanted, p.Probes...)
		}
	}
	isShared := func(r Child) bool {
		return r.Properties.Probe != nil && strings.EqualFold(r.Properties.Probe.ID.Name(), spec.SharedProbe)
	}
	return rules, planProbes(b, lb.Properties.Probes, wanted, slices.ContainsFunc(rules, isShared))
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

// planProbes are the other Services' probes unchanged, and the batch's. The shared probe goes with the last
// rule that uses it.
func planProbes(b *batch.Batch, had, wanted []Probe, asksShared bool) []Probe {
	var shared *Probe
	probes := make([]Probe, 0, len(had)+len(wanted))
	for _, p := range had {
		p.Keep = true
		switch {
		case strings.EqualFold(p.Name, spec.SharedProbe):
			shared = &p
		case !b.Has(naming.Owner(p.Name)):
			probes = append(probes, p)
		}
	}
	for _, p := range wanted {
		if p.Name == spec.SharedProbe {
			shared = &p
			continue
		}
		probes = append(probes, p)
	}
	if shared != nil && asksShared {
		probes = append(probes, *shared)
	}
	return probes
}
