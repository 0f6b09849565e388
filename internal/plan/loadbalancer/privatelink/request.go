// Package privatelink decides the private link services of Services: whether a Service can have
// one, what they are like, and which ones go. Layer L1.
package privatelink

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer/admission"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/spec"
)

// most is how many private link services Azure lets stand before one load balancer.
const most = 8

// owner is the Service that a private link service belongs to, "" when no Service
// claims it any more; orphan says that the Service that its tag names does not exist.
func owner(x *index.Index, l *index.Link) (owner string, orphan bool) {
	if l == nil || !index.IsManagedLink(x.Config, l) {
		return "", false // another cluster may have a Service of that name
	}
	owner = index.LinkOwner(l)
	i := slices.IndexFunc(x.Services, func(s spec.Service) bool { return s.Key() == owner })
	switch {
	case i >= 0 && (!key.LinkStays(x.Services[i].Annotations) || x.Services[i].Gone):
		return "", false
	case i < 0 && owner != "" && x.Complete && !slices.ContainsFunc(x.Others, func(s *v1.Service) bool { return spec.KeyOf(s) == owner }):
		return "", true
	}
	return owner, false
}

// frontends are the frontends of the cluster's load balancers that a private link service is in front of.
func frontends(x *index.Index, l *index.Link) (all []index.Frontend) {
	for _, ref := range l.Properties.LoadBalancerFrontendIPConfigurations {
		if at, known := x.FrontendAt(ref.ID); known {
			all = append(all, at)
		}
	}
	return all
}

// countAt counts the private link services at a load balancer, without those of one Service.
func countAt(x *index.Index, lb *index.LoadBalancer, but string) (count int) {
	for _, l := range x.Links {
		of, _ := owner(x, l)
		if (but == "" || of != but) && slices.ContainsFunc(frontends(x, l), func(at index.Frontend) bool { return at.LB == lb }) {
			count++
		}
	}
	return count
}

// ByIP reports whether the cluster's pools at a load balancer list addresses. Azure has no private link
// service in front of such pools, so they stay pools of network interfaces as long as there is one.
func ByIP(x *index.Index, lb *index.LoadBalancer) bool {
	return x.Config.PoolByIP && (slices.ContainsFunc(lb.Properties.BackendAddressPools, index.IsByAddress) || countAt(x, lb, "") == 0)
}

// Requests are the private link services for which Services of a commit ask, in the order in which
// the Services find their places.
type Requests struct {
	Index *index.Index
	first []batch.Claim // the first of each private link service
}

// Add notes the private link service of a placement.
func (r *Requests) Add(s *spec.Spec, p batch.Placement) {
	if p.Link != "" && r.leader(p.Link) == "" {
		r.first = append(r.first, batch.Claim{Spec: s, Placement: p})
	}
}

// leader is the first Service that asks for a private link service, "" for none so far.
func (r *Requests) leader(id azure.ID) string {
	for _, c := range r.first {
		if c.Placement.Link.Equal(id) {
			return c.Key()
		}
	}
	return ""
}

// Ask sets the private link service that a Service asks for at a placement, and finds what keeps it from having
// that. Azure has one at a frontend at most: the existing one, or the one of the first Service of the commit,
// whatever the name and group. Its owner, or the first Service that asks for it, decides what it is like.
func (r *Requests) Ask(s *spec.Spec, p *batch.Placement, wrong *problem.List) {
	if s.Link == nil || p.IsIPv6() {
		return
	}
	x := r.Index
	have := x.LinkAt(p.At)
	i := slices.IndexFunc(r.first, func(c batch.Claim) bool { return c.Placement.At.Key() == p.At.Key() })
	switch {
	case have != nil:
		p.Link = have.ID
	case i >= 0:
		p.Link = r.first[i].Placement.Link
	default:
		p.Link = x.Config.LinkGroup(s.Link.Group).Resource(network.PrivateLinkServices, cmp.Or(s.Link.Name, "pls-"+p.At.Name))
	}
	id := x.Config.SubnetID(s.Link.Subnet)
	admission.RequireSubnet(x, s, "annotation "+key.LinkSubnet.Name, id, wrong)
	for _, text := range s.Link.Static {
		if ip, err := netip.ParseAddr(text); err == nil {
			admission.RequireAddress(x, s, fmt.Sprintf("annotation %s: %q", key.LinkAddresses.Name, text), id, ip, wrong)
		}
	}
	if have == nil {
		r.checkNew(s, *p, wrong)
	} else {
		r.checkPresent(s, *p, have, wrong)
	}
	of, _ := owner(x, have)
	leader := cmp.Or(of, r.leader(p.Link), s.Key())
	if p.Leads = leader == s.Key(); !p.Leads && s.Link.Option != "" {
		wrong.Refuse(s.Key(), problem.Link,
			"annotation %s: the private link service at frontend %s belongs to Service %s, allowed is %s alone", s.Link.Option,
			p.At.Name, leader, key.LinkCreate.Name)
	}
}

// checkPresent finds what is wrong with a private link service that exists at the frontend. To move it to
// another resource group would disconnect its users.
func (r *Requests) checkPresent(s *spec.Spec, p batch.Placement, have *index.Link, wrong *problem.List) {
	c := r.Index.Config
	switch {
	case !index.IsManagedLink(c, have):
		wrong.Refuse(s.Key(), problem.Link,
			"private link service %s at frontend %s is not managed by this cluster, allowed is a frontend without one", have.ID.Name(),
			p.At.Name)
	case s.Link.Name != "" && !strings.EqualFold(s.Link.Name, have.ID.Name()):
		wrong.Refuse(s.Key(), problem.Link,
			"annotation %s: %q cannot be, the private link service is named %q and keeps that, allowed is its name", key.LinkName.Name,
			s.Link.Name, have.ID.Name())
	}
	group, asked := have.ID.Parent(), c.LinkGroup(s.Link.Group)
	if of, _ := owner(r.Index, have); of == s.Key() && !group.Equal(asked) {
		wrong.Warn(of, problem.Link,
			"annotation %s: %q cannot be, private link service %s stays in the resource group %q, allowed is that one; to move it, "+
				"which disconnects its users, take %s off and put it on again",
			key.LinkGroup.Name, asked.Name(), have.ID.Name(), group.Name(), key.LinkCreate.Name)
	}
	if c.PoolByIP && !ByIP(r.Index, p.At.LB) && !c.IsPreset(p.At.LB.Internal) {
		wrong.Warn(s.Key(), problem.Link,
			"private link service %s is in front of load balancer %s, whose backend pools list network interfaces for that and not "+
				"addresses, allowed is loadBalancerBackendPoolConfigurationType %q, or no private link service there",
			have.ID.Name(), p.At.LB.ID.Name(), "nodeIPConfiguration")
	}
}

// checkNew finds what keeps Azure from making a private link service. A Service's own one at another
// frontend does not count: it goes first.
func (r *Requests) checkNew(s *spec.Spec, p batch.Placement, wrong *problem.List) {
	c, lb := r.Index.Config, p.At.LB
	if other := r.Index.Link(p.Link); other != nil {
		if of, _ := owner(r.Index, other); of != s.Key() {
			wrong.Refuse(s.Key(), problem.Link,
				"annotation %s: private link service %q is already at another frontend, allowed is another name", key.LinkName.Name,
				other.ID.Name())
		}
	}
	count := countAt(r.Index, lb, s.Key())
	if c.PoolByIP && count == 0 && !c.IsPreset(lb.Internal) {
		wrong.Refuse(s.Key(), problem.Link,
			"annotation %s: Azure has no private link service in front of backend pools that list addresses, as those of load balancer "+
				"%s, allowed is one where loadBalancerBackendPoolConfigurationType is %q",
			key.LinkCreate.Name, lb.ID.Name(), "nodeIPConfiguration")
	}
	for _, c := range r.first {
		if r.Index.Link(c.Placement.Link) == nil && c.Placement.At.LB == lb {
			count++
		}
	}
	if r.leader(p.Link) == "" && count >= most {
		wrong.Refuse(s.Key(), problem.Limit, "load balancer %s has %d private link services already, allowed are %d",
			lb.ID.Name(), count, most)
	}
}
