// Package frontend decides the frontend IP configurations of a load balancer. Layer L1.
package frontend

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer/balancer"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
)

// Plan gives each live Service its frontends in a load balancer and removes the frontends that nothing uses
// any longer.
func Plan(x *index.Index, b *batch.Batch, w *balancer.Wanted, found *problem.List) {
	p := planner{x, b, found}
	claims := b.Claims()
	lb := w.State
	var unused []string
	for _, fe := range lb.Properties.FrontendIPConfigurations {
		at := index.Frontend{LB: lb, Name: fe.Name}
		switch c, claimed := claims[at.Key()]; {
		case claimed && c.Placement.Own:
			w.Frontends.Write(p.view(c, &fe))
		case claimed:
			p.warnKept(at, "Service "+c.Key())
		case p.leaves(at):
			unused = append(unused, fe.Name)
		}
	}
	for _, fe := range p.fresh(lb) {
		w.Frontends.Write(fe)
	}
	w.Shrank = len(unused) > 0
	stays := w.Frontends.Has(func(fe index.FrontendConfig) bool { return !slices.Contains(unused, fe.Name) })
	if w.Shrank && !stays && x.Config.IsPreset(lb.Internal) {
		p.warnLast(lb, unused[0])
		unused = unused[1:]
	}
	for _, name := range unused {
		w.Frontends.Remove(name)
	}
}

type planner struct {
	index *index.Index
	batch *batch.Batch
	found *problem.List
}

// fresh are the frontends that are new at a load balancer.
func (p planner) fresh(lb *index.LoadBalancer) (all []index.FrontendConfig) {
	for s, at := range p.batch.Placed() {
		if at.At.LB == lb && at.Own && !at.At.Exists() {
			all = append(all, p.view(batch.Claim{Spec: s.Spec, Placement: at}, at.Predecessor(s.Owner)))
		}
	}
	return all
}

// warnLast warns that the last frontend stays at a load balancer that must not be deleted: Azure
// has none without.
func (p planner) warnLast(lb *index.LoadBalancer, name string) {
	for _, s := range p.batch.All() {
		if s.Owner == naming.Owner(name) {
			p.found.Warn(s.Key(), problem.FrontendKept,
				"frontend %s and its address stay: it is the last one of load balancer %s, whose pools are pre-configured and which "+
					"is not deleted", name, lb.ID.Name())
		}
	}
}

// leaves reports whether a frontend goes that no live Service claims: its owner is of
// the batch, or has left it before and the Services that shared it leave now.
func (p planner) leaves(at index.Frontend) bool {
	if !p.batch.Has(at.Owner()) && (!p.isAbandoned(at) || !naming.IsOwned(at.Name)) {
		return false
	}
	rest := p.batch.Remaining(at)
	if len(rest) == 0 {
		return true
	}
	p.warnKept(at, fmt.Sprintf("the %s %q", rest[0].What, rest[0].Name))
	return false
}

func (p planner) warnKept(at index.Frontend, user string) {
	for _, s := range p.batch.Gone {
		if s.Owner == at.Owner() {
			p.found.Warn(s.Key(), problem.FrontendKept, "frontend %s and its address stay: %s uses it", at.Name, user)
		}
	}
}

// isAbandoned reports whether Services of the batch share a frontend that its owner has left: the owner is
// deleted, as far as is known, or served elsewhere.
func (p planner) isAbandoned(at index.Frontend) bool {
	fe := at.State()
	if owner := p.index.Known[at.Owner()]; owner != nil && !p.isElsewhere(spec.Service{Service: owner}, at) {
		return false
	}
	if slices.ContainsFunc(p.index.PublicIPOf(fe).Services, func(name string) bool { return !p.batch.HasService(name) }) {
		return false // the owner, which has no rule at the moment
	}
	return slices.ContainsFunc(at.Uses(), func(u index.Use) bool { return p.batch.Has(u.Owner) })
}

// isElsewhere reports whether a Service neither asks for a frontend of its own any more nor
// needs it until it has another one.
func (p planner) isElsewhere(service spec.Service, at index.Frontend) bool {
	s, wrong := spec.Read(service, p.index.Config)
	if wrong.Blocking() || !publicip.GivesUp(p.index, s, at) {
		return false
	}
	return !at.UsedBy(s.Owner) &&
		slices.ContainsFunc(p.index.FrontendsServing(s.Owner), func(f index.Frontend) bool { return f.UsedBy(s.Owner) })
}

// view is a Service's frontend in its wanted state. was is the one that the address
// has had, under this or another name.
func (p planner) view(c batch.Claim, was *index.FrontendConfig) index.FrontendConfig {
	at := c.Placement
	next := index.FrontendConfig{Name: at.At.Name}
	same := was != nil && strings.EqualFold(was.Name, at.At.Name)
	if was != nil {
		next.Zones = was.Zones
	}
	if at.IP != "" {
		next.Properties.PublicIPAddress = azure.Ref(at.IP)
		if same {
			next.Properties.PrivateIPAllocationMethod = was.Properties.PrivateIPAllocationMethod
		}
		return next
	}
	if same && at.KeepsPrivate(was.Properties) {
		return *was
	}
	if was == nil && p.index.Config.EdgeZone == nil {
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
	case was != nil && strings.EqualFold(was.Properties.PrivateIPAddressVersion, "IPv6"):
		next.Properties.PrivateIPAddressVersion = "IPv4"
	}
	return next
}
