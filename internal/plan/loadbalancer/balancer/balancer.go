// Package balancer decides which load balancers exist, with their frontends, rules and probes, and in which order they
// are written. Layer L1.
package balancer

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
)

// Wanted is a load balancer in its wanted state.
type Wanted struct {
	State     *index.LoadBalancer
	Frontends plan.Shared[network.FrontendIPConfiguration]
	Pools     plan.Shared[network.BackendAddressPool]
	Rules     plan.Shared[network.LoadBalancingRule]
	Probes    plan.Shared[network.Probe]
	Shrank    bool // it loses a frontend

	after map[*Wanted]bool // load balancers that are written first
}

type planner struct {
	index  *index.Index
	batch  *batch.Batch
	found  problem.List
	claims map[index.Frontend]batch.Placement
}

// Plan decides the frontends, rules and probes of the cluster's load balancers, external and internal. It also decides
// which load balancers are written after others. A load balancer waits for one of its kind from which an address moves.
// It also waits for one of the other kind to which a Service moves, unless that one waits for it already.
func Plan(x *index.Index, b *batch.Batch) ([]*Wanted, problem.List) {
	p := planner{index: x, batch: b, claims: b.Claims()}
	all, by := make([]*Wanted, len(x.LoadBalancers)), make(map[*index.LoadBalancer]*Wanted, len(x.LoadBalancers))
	for i, lb := range x.LoadBalancers {
		had := lb.Properties
		all[i] = &Wanted{
			State: lb, Frontends: plan.SharedList(had.FrontendIPConfigurations), Pools: plan.SharedList(had.BackendAddressPools),
			Rules: plan.SharedList(had.LoadBalancingRules), Probes: plan.SharedList(had.Probes), after: map[*Wanted]bool{},
		}
		p.planFrontends(all[i])
		p.planRules(all[i])
		by[lb] = all[i]
	}
	for at := range b.Placed() {
		for _, from := range batch.Sources(x, at) {
			by[at.At.LB].after[by[from]] = true
		}
	}
	for _, h := range b.Handovers(x) {
		if h.From.Internal != h.To.Internal && !by[h.To].waitsFor(by[h.From]) {
			by[h.From].after[by[h.To]] = true
		}
	}
	return all, p.found
}

// Stays reports whether the load balancer has frontends. Azure has no load balancer without.
func (w *Wanted) Stays() bool {
	return w.Frontends.Has(func(index.FrontendConfig) bool { return true })
}

// Goes reports whether the load balancer is deleted.
func (w *Wanted) Goes() bool { return w.State.Exists && w.Shrank && !w.Stays() }

// Nodes returns the load balancers of the graph. A load balancer without its last frontend is deleted.
func Nodes(x *index.Index, b *batch.Batch, all []*Wanted) (nodes []plan.Node) {
	for _, w := range all {
		names := b.NamesAt(w.State)
		var n plan.Node
		switch {
		case w.Stays():
			r := azure.Resource[network.LoadBalancer]{ID: w.State.ID, Tags: naming.WantedTagsOfShared(x.Config, nil, w.State.Tags),
				Properties: network.LoadBalancer{FrontendIPConfigurations: w.Frontends.Written(), BackendAddressPools: w.Pools.Written(),
					LoadBalancingRules: w.Rules.Written(), Probes: w.Probes.Written()}}
			if !w.State.Exists {
				r.Location, r.SKU, r.ExtendedLocation = x.Config.Location, &azure.SKU{Name: "Standard"}, x.Config.EdgeZone
			}
			why := "frontends, rules and probes of " + batch.Summary(names)
			if len(names) == 0 {
				why = "nodes in its backend pools"
			}
			n = plan.Wanted(r, why, names...).Owning(w.Frontends.Owner(), w.Pools.Owner(), w.Rules.Owner(), w.Probes.Owner())
		case w.Goes():
			n = plan.Gone[network.LoadBalancer](w.State.ID, "its last frontend goes with "+batch.Summary(names), names...)
		default:
			continue
		}
		for _, other := range all {
			if w.after[other] {
				n.After = append(n.After, other.State.ID)
			}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// IsWritten reports whether a load balancer stays and differs from its wanted state.
func IsWritten(x *index.Index, b *batch.Batch, all []*Wanted, lb *index.LoadBalancer) bool {
	i := slices.IndexFunc(all, func(w *Wanted) bool { return w.State == lb && w.Stays() })
	if i < 0 {
		return false
	}
	var g plan.Graph
	err := g.Add(Nodes(x, b, all[i:i+1])[0])
	p, differs := plan.Diff(x.Have, g)
	return err != nil || differs != nil || !p.Empty() // an error is reported when all is compared
}

// KeptIPs are the public IPs that remain at a frontend, by key.
func KeptIPs(all []*Wanted) map[string]bool {
	kept := map[string]bool{}
	for _, w := range all {
		for fe := range w.Frontends.All() {
			kept[fe.Properties.PublicIPAddress.To().Key()] = true
		}
	}
	return kept
}

// Unproven says which load balancers must be read again. Azure may drop the addresses in the pools of a load balancer
// that it creates. See docs/decisions/created-pools.md.
func Unproven(all []*Wanted) (pending []string) {
	for _, w := range all {
		if !w.State.Exists && w.Stays() && w.Pools.Has(index.HasAddresses) {
			pending = append(pending, "the members of new load balancer "+w.State.ID.Name()+" are to be seen in Azure")
		}
	}
	return pending
}

// waitsFor reports whether a load balancer is written after another, directly or through others.
func (w *Wanted) waitsFor(other *Wanted) bool {
	waits := w == other
	for first := range w.after {
		waits = waits || first.waitsFor(other)
	}
	return waits
}

// RefuseFamilies finds Services that would leave a load balancer with IPv6 frontends alone, which Azure does not have. It
// returns their UIDs, and a problem of each.
func RefuseFamilies(x *index.Index, b *batch.Batch, all []*Wanted) (refused []string, found problem.List) {
	claims := b.Claims()
	for _, w := range all {
		isIPv4 := func(fe index.FrontendConfig) bool {
			if c, claimed := claims[(index.Frontend{LB: w.State, Name: fe.Name}).Key()]; claimed {
				return !c.IsIPv6()
			}
			return !x.IsIPv6(fe.Properties)
		}
		if !w.Stays() || w.Frontends.Has(isIPv4) {
			continue
		}
		leave := slices.DeleteFunc(slices.Clone(b.Live), func(s batch.Served) bool { return !s.IsAt(w.State) })
		if len(refused)+len(leave) == 0 { // a Service takes the last IPv4 frontend away
			leave = slices.DeleteFunc(slices.Clone(b.All), func(s batch.Served) bool { return len(w.State.Owned[s.Owner]) == 0 })
		}
		for _, s := range leave {
			found.Refuse(s.Key(), problem.Family,
				"load balancer %s would have IPv6 frontends alone, allowed is IPv6 together with a Service with IPv4 at the same "+
					"load balancer",
				w.State.ID.Name())
			refused = append(refused, string(s.Service.UID))
		}
	}
	return refused, found
}

// planFrontends gives each live Service its frontends in a load balancer and removes the frontends that nothing uses
// any longer.
func (p *planner) planFrontends(w *Wanted) {
	lb := w.State
	for at := range p.batch.Placed() {
		if at.At.LB == lb && at.Own {
			w.Frontends.Write(p.frontend(at))
		}
	}
	var unused []index.Frontend
	for _, fe := range lb.Properties.FrontendIPConfigurations {
		at := index.Frontend{LB: lb, Name: fe.Name}
		c, claimed := p.claims[at.Key()]
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

// leaves reports whether a frontend that no live Service claims is removed. Its owner is in the batch, or has left it
// before, and nothing uses it after the batch.
func (p *planner) leaves(at index.Frontend) bool {
	if !p.batch.Has(at.Owner()) && (!p.isAbandoned(at) || !naming.IsOwned(at.Name)) {
		return false
	}
	rest := p.batch.Remaining(at)
	if len(rest) > 0 {
		p.warnKept(at, fmt.Sprintf("the %s %q uses it", rest[0].What, rest[0].Name), false)
	}
	return len(rest) == 0
}

// warnKept warns the owner of a frontend that the frontend stays. A live owner is warned only if the argument live is
// true.
func (p *planner) warnKept(at index.Frontend, why string, live bool) {
	for _, s := range p.batch.All {
		if s.Owner == at.Owner() && (live || s.Service.Gone) {
			p.found.Warn(s.Key(), problem.FrontendKept, "frontend %s and its address stay: %s", at.Name, why)
		}
	}
}

// isAbandoned reports whether Services of the batch share a frontend that its owner has left. The owner is deleted, as
// far as is known, or it is served elsewhere and no longer asks for this frontend.
func (p *planner) isAbandoned(at index.Frontend) bool {
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
func (p *planner) frontend(at batch.Placement) index.FrontendConfig {
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
func (p *planner) planRules(w *Wanted) {
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

// rule returns a load balancing rule in its wanted state. It keeps Azure's form where that means the same. Azure repeats
// the pool, an omitted switch is off, and an omitted timeout is the default.
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

// asUnset omits a switch that is off and that Azure's rule omits.
func asUnset(now **bool, was *bool) {
	if was == nil && *now != nil && !**now {
		*now = nil
	}
}
