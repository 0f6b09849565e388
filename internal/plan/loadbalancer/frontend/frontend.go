// Package frontend decides the frontend IP configurations of a load balancer. Layer L1.
package frontend

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
)

// Plan gives each live Service its frontends in a load balancer and removes the frontends that nothing uses
// any longer. shrank reports whether it removes any.
func Plan(x *index.Index, b *batch.Batch, lb *index.LoadBalancer, found *problem.List) (all []index.FrontendConfig, shrank bool) {
	p := planner{x, b, found}
	claims := b.Claims()
	have := lb.Properties.FrontendIPConfigurations
	all = make([]index.FrontendConfig, 0, len(have)+len(b.Live))
	for _, fe := range have {
		at := index.Frontend{LB: lb, Name: fe.Name}
		c, claimed := claims[at.Key()]
		switch {
		case claimed && c.Placement.Own:
			fe = p.view(c, &fe)
		case !claimed && p.leaves(at):
			shrank = true
			continue
		default:
			if claimed {
				p.warnKept(at, "Service "+c.Service.Key())
			}
			fe.Keep = true
		}
		all = append(all, fe)
	}
	all = append(all, p.fresh(lb)...)
	if shrank && len(all) == 0 && x.Config.IsPreset(lb.Internal) {
		all = append(all, p.keepLast(lb))
	}
	return all, shrank
}

type planner struct {
	index *index.Index
	batch *batch.Batch
	found *problem.List
}

// fresh are the frontends that are new at a load balancer.
func (p planner) fresh(lb *index.LoadBalancer) (all []index.FrontendConfig) {
	for _, s := range p.batch.Live {
		for _, at := range s.Placements {
			if _, exists := at.At.Config(); at.At.LB == lb && at.Own && !exists {
				all = append(all, p.view(batch.Claim{Spec: s.Spec, Placement: at}, predecessor(s.Spec, at)))
			}
		}
	}
	return all
}

// keepLast leaves the last frontend to a load balancer that must not be deleted:
// Azure has none without.
func (p planner) keepLast(lb *index.LoadBalancer) index.FrontendConfig {
	last := lb.Properties.FrontendIPConfigurations[0]
	last.Keep = true
	for _, s := range p.batch.All() {
		if s.Owner == naming.Owner(last.Name) {
			p.found.Warn(s.Service.Key(), problem.FrontendKept,
				"frontend %s and its address stay: it is the last one of load balancer %s, whose pools are pre-configured and which "+
					"is not deleted", last.Name, lb.ID.Name())
		}
	}
	return last
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
			p.found.Warn(s.Service.Key(), problem.FrontendKept, "frontend %s and its address stay: %s uses it", at.Name, user)
		}
	}
}

// isAbandoned reports whether Services of the batch share a frontend that its owner has left: the owner is
// deleted, as far as is known, or served elsewhere.
func (p planner) isAbandoned(at index.Frontend) bool {
	fe, _ := at.Config()
	if owner := p.index.Service(at.Owner()); owner != nil &&
		!p.isElsewhere(spec.Service{Service: owner}, at, index.TargetOf(fe.Properties)) {
		return false
	}
	if ref := fe.Properties.PublicIPAddress; ref != nil {
		ip, _ := p.index.PublicIP(ref.ID)
		if slices.ContainsFunc(ip.Services, func(name string) bool { return !p.batch.HasService(name) }) {
			return false // the owner, which has no rule at the moment
		}
	}
	return slices.ContainsFunc(at.Uses(), func(u index.Use) bool { return p.batch.Has(u.Owner) })
}

// isElsewhere reports whether a Service neither asks for a frontend of its own any more nor
// needs it until it has another one.
func (p planner) isElsewhere(service spec.Service, at index.Frontend, t index.Target) bool {
	s, wrong := spec.Read(service, p.index.Config)
	want := func(a spec.Address) index.Target {
		target, _ := publicip.Target(p.index, s, a)
		return target
	}
	if wrong.Blocking() || !publicip.GivesUp(s, at, t, want) {
		return false
	}
	return !at.UsedBy(s.Owner) &&
		slices.ContainsFunc(p.index.FrontendsServing(s.Owner), func(f index.Frontend) bool { return f.UsedBy(s.Owner) })
}

// predecessor is the frontend that an address has under another name so far, nil for
// none.
func predecessor(s *spec.Spec, p batch.Placement) *index.FrontendConfig {
	for _, fe := range p.At.LB.Owned(s.Owner) {
		if cluster.HasSuffix(fe.Name, cluster.SuffixIPv6) == (p.Suffix != "") {
			return &fe
		}
	}
	return nil
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
