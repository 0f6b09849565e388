// Package privatelink decides the private link services of Services: whether a Service can have one, its settings, and
// which ones are removed. Layer L1.
package privatelink

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/admission"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
)

// owner returns the Service that a private link service belongs to, "" when no Service claims it any more. The result
// orphan reports that the Service in its tag does not exist.
func owner(x *index.Index, l *index.Link) (owner string, orphan bool) {
	if l == nil || l.Owner == "" {
		return "", false
	}
	isOwner := func(s *v1.Service) bool { return spec.KeyOf(s) == l.Owner }
	i := slices.IndexFunc(x.Services, func(s spec.Service) bool { return isOwner(s.Service) })
	switch {
	case i >= 0 && (!key.LinkStays(x.Services[i].Annotations) || x.Services[i].Gone):
		return "", false
	case i < 0 && x.Complete && !slices.ContainsFunc(x.Others, isOwner):
		return "", true
	}
	return l.Owner, false
}

// countAt counts the private link services at a load balancer, without those of one Service.
func countAt(x *index.Index, lb *index.LoadBalancer, but string) (count int) {
	for _, l := range x.Links {
		of, _ := owner(x, l)
		if (but == "" || of != but) && slices.ContainsFunc(x.FrontendsBehind(l), func(at index.Frontend) bool { return at.LB == lb }) {
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

// Requests are the first placements that ask for each private link service, by its id key, as far as Services of a
// commit are placed.
type Requests map[string]batch.Placement

// Ask sets the private link service that a placement's Service asks for there, and finds what prevents it. Azure has at
// most one at a frontend. It is the existing one, else that of the first Service of the commit, whatever name and group
// the others ask for. Its owner, or the first Service that asks for it, decides its settings.
func (r Requests) Ask(x *index.Index, p *batch.Placement, wrong *problem.List) {
	s := p.For
	if s.Link == nil || p.IsIPv6() {
		return
	}
	have := x.LinkAt(p.At)
	p.Link = x.Config.LinkGroup(s.Link.Group).Resource(network.PrivateLinkServices, cmp.Or(s.Link.Name, "pls-"+p.At.Name))
	for _, first := range r {
		if first.At.Key() == p.At.Key() {
			p.Link = first.Link
		}
	}
	if have != nil {
		p.Link = have.ID
	}
	id := x.Config.SubnetID(s.Link.Subnet)
	admission.RequireSubnet(x, s, "annotation "+key.LinkSubnet.Name, id, wrong)
	for _, text := range s.Link.Static {
		admission.RequireAddress(x, s, fmt.Sprintf("annotation %s: %q", key.LinkAddresses.Name, text), id, text, wrong)
	}
	if have == nil {
		r.checkNew(x, *p, wrong)
	} else {
		checkPresent(x, *p, have, wrong)
	}
	leader := s.Key()
	if first, known := r[p.Link.Key()]; known {
		leader = first.For.Key()
	}
	of, _ := owner(x, have)
	leader = cmp.Or(of, leader)
	if p.Leads = leader == s.Key(); !p.Leads && s.Link.Option != "" {
		wrong.Refuse(s.Key(), problem.Link,
			"annotation %s: the private link service at frontend %s belongs to Service %s, allowed is %s alone", s.Link.Option,
			p.At.Name, leader, key.LinkCreate.Name)
	}
}

// checkPresent finds what is wrong with a private link service that exists at the frontend. To move it to
// another resource group would disconnect its users.
func checkPresent(x *index.Index, p batch.Placement, have *index.Link, wrong *problem.List) {
	c, s := x.Config, p.For
	switch {
	case !have.Managed:
		wrong.Refuse(s.Key(), problem.Link,
			"private link service %s at frontend %s is not managed by this cluster, allowed is a frontend without one", have.ID.Name(),
			p.At.Name)
	case s.Link.Name != "" && !strings.EqualFold(s.Link.Name, have.ID.Name()):
		wrong.Refuse(s.Key(), problem.Link,
			"annotation %s: %q cannot be, the private link service is named %q and keeps that, allowed is its name", key.LinkName.Name,
			s.Link.Name, have.ID.Name())
	}
	group, asked := have.ID.Parent(), c.LinkGroup(s.Link.Group)
	if of, _ := owner(x, have); of == s.Key() && !group.Equal(asked) {
		wrong.Warn(of, problem.Link,
			"annotation %s: %q cannot be, private link service %s stays in the resource group %q, allowed is that one; to move it, "+
				"which disconnects its users, take %s off and put it on again",
			key.LinkGroup.Name, asked.Name(), have.ID.Name(), group.Name(), key.LinkCreate.Name)
	}
	if c.PoolByIP && !ByIP(x, p.At.LB) && !c.IsPreset(p.At.LB.Internal) {
		wrong.Warn(s.Key(), problem.Link,
			"private link service %s is in front of load balancer %s, whose backend pools list network interfaces for that and not "+
				"addresses, allowed is loadBalancerBackendPoolConfigurationType %q, or no private link service there",
			have.ID.Name(), p.At.LB.ID.Name(), "nodeIPConfiguration")
	}
}

// checkNew finds what keeps Azure from making a private link service. A Service's own one at another
// frontend does not count: it goes first.
func (r Requests) checkNew(x *index.Index, p batch.Placement, wrong *problem.List) {
	c, s, lb := x.Config, p.For, p.At.LB
	other := x.Link(p.Link)
	if of, _ := owner(x, other); other != nil && of != s.Key() {
		wrong.Refuse(s.Key(), problem.Link,
			"annotation %s: private link service %q is already at another frontend, allowed is another name", key.LinkName.Name,
			other.ID.Name())
	}
	count := countAt(x, lb, s.Key())
	if c.PoolByIP && count == 0 && !c.IsPreset(lb.Internal) {
		wrong.Refuse(s.Key(), problem.Link,
			"annotation %s: Azure has no private link service in front of backend pools that list addresses, as those of load balancer "+
				"%s, allowed is one where loadBalancerBackendPoolConfigurationType is %q",
			key.LinkCreate.Name, lb.ID.Name(), "nodeIPConfiguration")
	}
	for _, other := range r {
		if x.Link(other.Link) == nil && other.At.LB == lb {
			count++
		}
	}
	const most = 8 // that Azure lets stand before one load balancer
	if _, known := r[p.Link.Key()]; !known && count >= most {
		wrong.Refuse(s.Key(), problem.Limit, "load balancer %s has %d private link services already, allowed are %d",
			lb.ID.Name(), count, most)
	}
}

// Plan is the private link services of a batch.
type Plan struct {
	Wanted   []plan.Node
	Removals []plan.Node
	Held     []string // why all but the removals waits for the next round
	Orphans  []string // names of those that were of a Service which does not exist, and change hands
}

// New decides which private link services the batch's Services want, and which are removed. A managed private link
// service is removed if its Service no longer wants it, or if it loses its frontend. If another Service asks for one at
// the frontend, that Service becomes the owner. The next decision about that Service configures the private link service.
// The function writes reports whether a load balancer is to be written.
func New(x *index.Index, b *batch.Batch, writes func(*index.LoadBalancer) bool) *Plan {
	p := &Plan{}
	claims := claimsOf(x, b)
	var subnets []plan.Node
	for _, c := range claims {
		s, have := c.For, x.Link(c.Link)
		of, orphan := owner(x, have)
		if of != "" && of != s.Key() {
			continue // it is shared, and its owner says what it is like
		}
		if orphan { // it is given to the Service that asks for it now
			p.Orphans = append(p.Orphans, have.ID.Name())
		}
		id := x.Config.SubnetID(s.Link.Subnet)
		i := slices.IndexFunc(subnets, func(n plan.Node) bool { return n.ID.Equal(id) })
		if i < 0 {
			i = len(subnets)
			view := azure.Resource[network.Subnet]{ID: id, Properties: network.Subnet{PrivateLinkServiceNetworkPolicies: "Disabled"}}
			subnets = append(subnets, plan.Wanted(view, "private link services take addresses there"))
		}
		subnets[i].For = append(subnets[i].For, s.Key())
		p.Wanted = append(p.Wanted, plan.Wanted(view(x, c, id), "private link service of "+s.Key(), s.Key()))
	}
	p.Wanted = append(p.Wanted, subnets...)
	for _, l := range x.Links {
		isWanted := slices.ContainsFunc(claims, func(c batch.Placement) bool { return c.Link.Equal(l.ID) })
		if isWanted || !b.HasService(l.Owner) || isUndecided(x, b, l) {
			continue
		}
		if heir := heirOf(x, b, l); heir != "" {
			view := azure.Resource[network.PrivateLinkService]{ID: l.ID, Tags: tagsOf(x, l, heir)}
			why := "private link service of " + heir + ", as " + l.Owner + " no longer asks for it"
			p.Wanted = append(p.Wanted, plan.Wanted(view, why, l.Owner))
		} else {
			p.remove(x, b, l, writes)
		}
	}
	return p
}

// claimsOf returns the placements at which the batch's Services want private link services. If several want the same one,
// it is the placement that leads.
func claimsOf(x *index.Index, b *batch.Batch) (claims []batch.Placement) {
	for at := range b.Placed() {
		if at.Link == "" || x.Link(at.Link) != nil && x.LinkAt(at.At) == nil {
			continue // it goes from another frontend first
		}
		i := slices.IndexFunc(claims, func(c batch.Placement) bool { return c.Link.Equal(at.Link) })
		switch {
		case i < 0:
			claims = append(claims, at)
		case at.Leads:
			claims[i] = at
		}
	}
	return claims
}

// isUndecided reports whether a private link service is at its Service's frontend, and its annotation is unreadable.
func isUndecided(x *index.Index, b *batch.Batch, l *index.Link) bool {
	for at := range b.Placed() {
		s := at.For
		if s.Key() == l.Owner && s.Link == nil && key.LinkStays(s.Service.Annotations) && x.LinkAt(at.At) == l {
			return true
		}
	}
	return false
}

// heirOf returns a Service outside the batch that uses a private link service's frontend and asks for a private link
// service, too; "" for none.
func heirOf(x *index.Index, b *batch.Batch, l *index.Link) string {
	for _, at := range x.FrontendsBehind(l) {
		for _, u := range b.Remaining(at) {
			for _, o := range x.Staying() {
				if key.LinkStays(o.Annotations) && naming.OwnerOf(o) == u.Owner {
					return spec.KeyOf(o)
				}
			}
		}
	}
	return ""
}

// remove deletes connections first, then the private link service. That changes the load balancer's etag. So all else
// waits for the next round if the load balancer is to be written, also because its pools can now change to addresses. It
// waits, too, if the private link service returns at another frontend.
func (p *Plan) remove(x *index.Index, b *batch.Batch, l *index.Link, writes func(*index.LoadBalancer) bool) {
	for _, d := range x.Have.List(l.ID, network.PrivateEndpointConnections) {
		p.Removals = append(p.Removals,
			plan.Gone[network.PrivateEndpointConnection](d.ID(), "connected to private link service "+l.ID.Name()+", which goes", l.Owner))
	}
	p.Removals = append(p.Removals, plan.Gone[network.PrivateLinkService](l.ID, l.Owner+" no longer asks for it", l.Owner))
	isHeld := slices.ContainsFunc(x.FrontendsBehind(l), func(at index.Frontend) bool {
		return writes(at.LB) || x.Config.PoolByIP && !ByIP(x, at.LB)
	})
	for at := range b.Placed() {
		isHeld = isHeld || at.Link.Equal(l.ID)
	}
	if isHeld {
		p.Held = append(p.Held, "the load balancer is written when private link service "+l.ID.Name()+" is gone ["+l.Owner+"]")
	}
}

func view(x *index.Index, p batch.Placement, subnet azure.ID) azure.Resource[network.PrivateLinkService] {
	asked, id, have := p.For.Link, p.Link, cmp.Or(x.LinkAt(p.At), &index.Link{})
	const longest = 80
	var addresses []azure.Child[network.PrivateLinkAddress] // static ones first
	for i := range asked.Count {
		a := network.PrivateLinkAddress{
			Primary: new(i == 0), PrivateIPAllocationMethod: "Dynamic", PrivateIPAddressVersion: "IPv4", Subnet: azure.Ref(subnet),
		}
		end := fmt.Sprintf("-dynamic-%d", i-len(asked.Static))
		if i < len(asked.Static) {
			a.PrivateIPAllocationMethod, a.PrivateIPAddress = "Static", asked.Static[i]
			end = "-static-" + asked.Static[i]
		}
		name := naming.Shorten(subnet.Name()+"-"+id.Name(), longest-len(end)) + end
		addresses = append(addresses, azure.Child[network.PrivateLinkAddress]{Name: name, Properties: a})
	}
	if sameAddresses(have.Properties.IPConfigurations, addresses) {
		addresses = have.Properties.IPConfigurations
	}
	link := azure.Resource[network.PrivateLinkService]{ID: id, Tags: tagsOf(x, have, p.For.Key())}
	if have.ID == "" {
		link.Location, link.ExtendedLocation = x.Config.Location, x.Config.EdgeZone
	}
	link.Properties = network.PrivateLinkService{
		LoadBalancerFrontendIPConfigurations: []azure.Reference{{ID: p.At.ID()}},
		IPConfigurations:                     addresses,
		EnableProxyProtocol:                  new(asked.Proxy),
		FQDNs:                                append([]string{}, asked.FQDNs...),
		Visibility:                           &network.SubscriptionSet{Subscriptions: append([]string{}, asked.Visibility...)},
		AutoApproval:                         &network.SubscriptionSet{Subscriptions: append([]string{}, asked.Approval...)},
		ProvisioningState:                    publicip.Retried(have.Properties.ProvisioningState),
	}
	return link
}

func tagsOf(x *index.Index, have *index.Link, of string) azure.Tags {
	name, _ := have.Tags.Get(naming.ClusterTag) // as it is spelled there
	own := azure.Tags{naming.ClusterTag: cmp.Or(name, x.Config.ClusterName), naming.LinkOwnerTag: of}
	return naming.WantedTags(x.Config, own, have.Tags)
}

// sameAddresses reports whether two lists of addresses mean the same, whatever the names.
func sameAddresses(a, b []azure.Child[network.PrivateLinkAddress]) bool {
	shape := func(list []azure.Child[network.PrivateLinkAddress]) []string {
		var texts []string
		for _, c := range list {
			p, address := c.Properties, ""
			if strings.EqualFold(p.PrivateIPAllocationMethod, "Static") {
				address = p.PrivateIPAddress
			}
			texts = append(texts, fmt.Sprint(address, p.Subnet.To().Key(), p.Primary != nil && *p.Primary))
		}
		slices.Sort(texts)
		return texts
	}
	return slices.Equal(shape(a), shape(b))
}
