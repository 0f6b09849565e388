package balancer

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
)

// planFrontends gives each live Service its frontends in a load balancer and removes the frontends that nothing uses
// any longer.
func (p planner) planFrontends(w *Wanted) {
	lb := w.State
	for at := range p.batch.Placed() {
		if at.At.LB == lb && at.Own {
			w.Frontends.Write(p.frontend(at))
		}
	}
	claims := p.batch.Claims()
	var unused []index.Frontend
	for _, fe := range lb.Properties.FrontendIPConfigurations {
		at := index.Frontend{LB: lb, Name: fe.Name}
		c, claimed := claims[at.Key()]
		switch {
		case claimed && !c.Own:
			p.warnKept(at, "Service "+c.For.Key()+" uses it", false)
		case !claimed && p.leaves(at):
			unused = append(unused, at)
		}
	}
	w.Shrank = len(unused) > 0
	goes := w.Shrank && len(unused) == len(lb.Properties.FrontendIPConfigurations) && len(w.Frontends.Written()) == 0
	if goes && p.index.Config.IsPreset(lb.Internal) { // Azure has no load balancer without a frontend
		p.warnKept(unused[0], "it is the last one of load balancer "+lb.ID.Name()+
			", whose pools are pre-configured and which is not deleted", true)
		unused = unused[1:]
	}
	for _, at := range unused {
		w.Frontends.Remove(at.Name)
	}
}

// leaves reports whether a frontend goes that no live Service claims: its owner is of
// the batch, or has left it before and the Services that shared it leave now.
func (p planner) leaves(at index.Frontend) bool {
	if !p.batch.Has(at.Owner()) && (!p.isAbandoned(at) || !naming.IsOwned(at.Name)) {
		return false
	}
	rest := p.batch.Remaining(at)
	if len(rest) > 0 {
		p.warnKept(at, fmt.Sprintf("the %s %q uses it", rest[0].What, rest[0].Name), false)
	}
	return len(rest) == 0
}

// warnKept warns the owner of a frontend that it stays, unless the owner is live and has no need to know.
func (p planner) warnKept(at index.Frontend, why string, live bool) {
	for _, s := range p.batch.All {
		if s.Owner == at.Owner() && (live || s.Service.Gone) {
			p.found.Warn(s.Key(), problem.FrontendKept, "frontend %s and its address stay: %s", at.Name, why)
		}
	}
}

// isAbandoned reports whether Services of the batch share a frontend that its owner has left: the owner is
// deleted, as far as is known, or it is served elsewhere and does not ask for this frontend any more.
func (p planner) isAbandoned(at index.Frontend) bool {
	x, fe := p.index, at.State()
	if owner := x.Known[at.Owner()]; owner != nil {
		s, wrong := spec.Read(spec.Service{Service: owner}, x.Config)
		isUsed := func(f index.Frontend) bool { return f.UsedBy(s.Owner) }
		if wrong.Blocking() || !publicip.GivesUp(x, s, at) || isUsed(at) ||
			!slices.ContainsFunc(x.FrontendsServing(s.Owner), isUsed) {
			return false
		}
	}
	if slices.ContainsFunc(x.PublicIPOf(fe).Services, func(name string) bool { return !p.batch.HasService(name) }) {
		return false // the owner, which has no rule at the moment
	}
	return slices.ContainsFunc(at.Uses(), func(u index.Use) bool { return p.batch.Has(u.Owner) })
}

// frontend is a Service's frontend in its wanted state.
func (p planner) frontend(at batch.Placement) index.FrontendConfig {
	was, known := at.Predecessor()
	next := index.FrontendConfig{Name: at.At.Name, Zones: was.Zones}
	if at.IP != "" {
		next.Properties.PublicIPAddress = azure.Ref(at.IP)
		next.Properties.PrivateIPAllocationMethod = at.At.State().PrivateIPAllocationMethod
		return next
	}
	if at.KeepsPrivate(at.At.State()) {
		return was
	}
	if !known && p.index.Config.EdgeZone == nil {
		next.Zones = p.index.Config.Zones
	}
	next.Properties.Subnet = azure.Ref(at.SubnetID)
	next.Properties.PrivateIPAllocationMethod = "Dynamic"
	next.Properties.PrivateIPAddress = at.Pinned
	if at.Pinned != "" {
		next.Properties.PrivateIPAllocationMethod = "Static"
	}
	switch {
	case at.IsIPv6():
		next.Properties.PrivateIPAddressVersion = "IPv6"
	case strings.EqualFold(was.Properties.PrivateIPAddressVersion, "IPv6"):
		next.Properties.PrivateIPAddressVersion = "IPv4"
	}
	return next
}

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
	for at := range p.batch.Placed() {
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
