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
	if i := slices.IndexFunc(x.Services, func(s spec.Service) bool { return s.Key() == owner }); i >= 0 {
		if s := x.Services[i]; !key.LinkStays(s.Annotations) || s.Gone {
			return "", false
		}
		return owner, false
	}
	if owner != "" && x.Complete && !slices.ContainsFunc(x.Others, func(s *v1.Service) bool { return spec.KeyOf(s) == owner }) {
		return "", true
	}
	return owner, false
}

// countAt counts the private link services at a load balancer, without those of one Service.
func countAt(x *index.Index, lb *index.LoadBalancer, but string) (count int) {
	for _, l := range x.Links {
		if !slices.ContainsFunc(l.Properties.LoadBalancerFrontendIPConfigurations,
			func(r azure.Reference) bool { return r.ID.Under(lb.ID) }) {
			continue
		}
		if of, _ := owner(x, l); but == "" || of != but {
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
	index *index.Index
	first map[string]request          // by id key
	at    map[index.Frontend]azure.ID // what the first Service at a frontend asks for
}

type request struct {
	service string
	lb      *index.LoadBalancer
}

// NewRequests is no requests yet.
func NewRequests(x *index.Index) *Requests {
	return &Requests{index: x, first: map[string]request{}, at: map[index.Frontend]azure.ID{}}
}

// ID is the id of the private link service that a Service asks for at a frontend. Azure has one there at
// most: the existing one, or the one of the first Service of the commit, whatever the name and group.
func (r *Requests) ID(s *spec.Spec, p batch.Placement) azure.ID {
	if s.Link == nil || p.IsIPv6() {
		return ""
	}
	if l := r.index.LinkAt(p.At); l != nil {
		return l.ID
	}
	if id, there := r.at[p.At.Key()]; there {
		return id
	}
	return r.index.Config.LinkGroup(s.Link.Group).Resource(network.PrivateLinkServices, cmp.Or(s.Link.Name, "pls-"+p.At.Name))
}

// Leader is the Service that decides what the private link service at a placement is like: its
// owner, or the first of the commit that asks for it.
func (r *Requests) Leader(s *spec.Spec, p batch.Placement) string {
	of, _ := owner(r.index, r.index.LinkAt(p.At))
	return cmp.Or(of, r.first[p.Link.Key()].service, s.Key())
}

// Add notes the private link service of a placement.
func (r *Requests) Add(s *spec.Spec, p batch.Placement) {
	if id := p.Link.Key(); p.Link != "" && r.first[id].service == "" {
		r.first[id], r.at[p.At.Key()] = request{s.Key(), p.At.LB}, p.Link
	}
}

// Check finds what keeps a Service from having its private link service.
func (r *Requests) Check(s *spec.Spec, p batch.Placement, wrong *problem.List) {
	if p.Link == "" {
		return
	}
	x := r.index
	id := x.Config.SubnetID(s.Link.Subnet)
	admission.RequireSubnet(x, s, "annotation "+key.LinkSubnet.Name, id, wrong)
	for _, text := range s.Link.Static {
		if ip, err := netip.ParseAddr(text); err == nil {
			admission.RequireAddress(x, s, fmt.Sprintf("annotation %s: %q", key.LinkAddresses.Name, text), id, ip, wrong)
		}
	}
	if have := x.LinkAt(p.At); have == nil {
		r.checkNew(s, p, wrong)
	} else {
		r.checkPresent(s, p, have, wrong)
	}
	if leader := r.Leader(s, p); s.Link.Option != "" && leader != s.Key() {
		wrong.Refuse(s.Key(), problem.Link,
			"annotation %s: the private link service at frontend %s belongs to Service %s, allowed is %s alone", s.Link.Option,
			p.At.Name, leader, key.LinkCreate.Name)
	}
}

// checkPresent finds what is wrong with a private link service that exists at the frontend. To move it to
// another resource group would disconnect its users.
func (r *Requests) checkPresent(s *spec.Spec, p batch.Placement, have *index.Link, wrong *problem.List) {
	c := r.index.Config
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
	if of, _ := owner(r.index, have); of == s.Key() && !group.Equal(asked) {
		wrong.Warn(of, problem.Link,
			"annotation %s: %q cannot be, private link service %s stays in the resource group %q, allowed is that one; to move it, "+
				"which disconnects its users, take %s off and put it on again",
			key.LinkGroup.Name, asked.Name(), have.ID.Name(), group.Name(), key.LinkCreate.Name)
	}
	if c.PoolByIP && !ByIP(r.index, p.At.LB) && !c.IsPreset(p.At.LB.Internal) {
		wrong.Warn(s.Key(), problem.Link,
			"private link service %s is in front of load balancer %s, whose backend pools list network interfaces for that and not "+
				"addresses, allowed is loadBalancerBackendPoolConfigurationType %q, or no private link service there",
			have.ID.Name(), p.At.LB.ID.Name(), "nodeIPConfiguration")
	}
}

// checkNew finds what keeps Azure from making a private link service. A Service's own one at another
// frontend does not count: it goes first.
func (r *Requests) checkNew(s *spec.Spec, p batch.Placement, wrong *problem.List) {
	c, lb := r.index.Config, p.At.LB
	if other := r.index.Link(p.Link); other != nil {
		if of, _ := owner(r.index, other); of != s.Key() {
			wrong.Refuse(s.Key(), problem.Link,
				"annotation %s: private link service %q is already at another frontend, allowed is another name", key.LinkName.Name,
				other.ID.Name())
		}
	}
	count := countAt(r.index, lb, s.Key())
	if c.PoolByIP && count == 0 && !c.IsPreset(lb.Internal) {
		wrong.Refuse(s.Key(), problem.Link,
			"annotation %s: Azure has no private link service in front of backend pools that list addresses, as those of load balancer "+
				"%s, allowed is one where loadBalancerBackendPoolConfigurationType is %q",
			key.LinkCreate.Name, lb.ID.Name(), "nodeIPConfiguration")
	}
	for id, first := range r.first {
		if r.index.Link(azure.ID(id)) == nil && first.lb == lb {
			count++
		}
	}
	if r.first[p.Link.Key()].service == "" && count >= most {
		wrong.Refuse(s.Key(), problem.Limit, "load balancer %s has %d private link services already, allowed are %d",
			lb.ID.Name(), count, most)
	}
}
