// Package balancer decides which load balancers exist, with their frontends, rules and probes, and in which order they
// are written. Layer L1.
package balancer

import (
	"slices"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/tag"
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
	index *index.Index
	batch *batch.Batch
	found *problem.List
}

// Plan decides the frontends, rules and probes of the cluster's load balancers, external and internal, and which load
// balancers wait for others: for a load balancer of their kind from which an address moves, and for a load balancer of
// the other kind to which a Service moves. Of two that would wait for each other because of the latter, neither does.
func Plan(x *index.Index, b *batch.Batch, found *problem.List) []*Wanted {
	p := planner{x, b, found}
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
	return all
}

// Stays reports whether the load balancer has frontends. Azure has no load balancer without.
func (w *Wanted) Stays() bool {
	return w.Frontends.Has(func(index.FrontendConfig) bool { return true })
}

// Goes reports whether the load balancer is deleted.
func (w *Wanted) Goes() bool { return w.State.Exists && w.Shrank && !w.Stays() }

// Nodes are the load balancers in the graph: with the last frontend one goes as a whole.
func Nodes(x *index.Index, b *batch.Batch, all []*Wanted) (nodes []plan.Node) {
	for _, w := range all {
		names := b.NamesAt(w.State)
		var n plan.Node
		switch {
		case w.Stays():
			r := azure.Resource[network.LoadBalancer]{ID: w.State.ID, Tags: tag.WantedOfShared(x.Config, nil, w.State.Tags),
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

// Unproven says which load balancers must be read again, because Azure may drop the addresses in the pools of
// one that it creates. See docs/decisions/created-pools.md.
func Unproven(all []*Wanted) (pending []string) {
	for _, w := range all {
		if !w.State.Exists && w.Stays() && w.Pools.Has(index.HasAddresses) {
			pending = append(pending, "the members of new load balancer "+w.State.ID.Name()+" are to be seen in Azure")
		}
	}
	return pending
}

// waitsFor reports whether a load balancer is written after another, whatever is between.
func (w *Wanted) waitsFor(other *Wanted) bool {
	waits := w == other
	for first := range w.after {
		waits = waits || first.waitsFor(other)
	}
	return waits
}

// RefuseFamilies finds Services that would leave a load balancer with IPv6 alone,
// which Azure does not have. It returns their UIDs.
func RefuseFamilies(x *index.Index, b *batch.Batch, all []*Wanted, found *problem.List) (refused []string) {
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
	return refused
}
