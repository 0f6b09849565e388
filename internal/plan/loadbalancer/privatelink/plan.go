package privatelink

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/plan/loadbalancer/tag"
)

// Plan is the private link services of a batch.
type Plan struct {
	Wanted  []plan.Node
	Orphans []string // names of those that were of a Service which does not exist, and change hands
	gone    []*index.Link
	index   *index.Index
	batch   *batch.Batch
}

// New decides the private link services that the batch's Services want, and those that go: managed ones that their
// Service no longer wants, or that lose their frontend. If another Service asks for one at the frontend, it becomes
// the owner, and the next decision about it configures the private link service.
func New(x *index.Index, b *batch.Batch) *Plan {
	p := &Plan{index: x, batch: b}
	claims := p.claims()
	var subnets []plan.Node
	for _, c := range claims {
		have := x.Link(c.Placement.Link)
		of, orphan := owner(x, have)
		if of != "" && of != c.Key() {
			continue // it is shared, and its owner says what it is like
		}
		if orphan { // it is given to the Service that asks for it now
			p.Orphans = append(p.Orphans, have.ID.Name())
		}
		id := x.Config.SubnetID(c.Link.Subnet)
		i := slices.IndexFunc(subnets, func(n plan.Node) bool { return n.ID.Equal(id) })
		if i < 0 {
			i = len(subnets)
			view := azure.Resource[network.Subnet]{ID: id, Properties: network.Subnet{PrivateLinkServiceNetworkPolicies: "Disabled"}}
			subnets = append(subnets, plan.Wanted(view, "private link services take addresses there"))
		}
		subnets[i].For = append(subnets[i].For, c.Key())
		p.Wanted = append(p.Wanted, plan.Wanted(p.view(c, id), "private link service of "+c.Key(), c.Key()))
	}
	p.Wanted = append(p.Wanted, subnets...)
	for _, l := range x.Links {
		of := index.LinkOwner(l)
		isWanted := slices.ContainsFunc(claims, func(c batch.Claim) bool { return c.Placement.Link.Equal(l.ID) })
		if isWanted || !b.HasService(of) || !index.IsManagedLink(x.Config, l) || p.isUndecided(l, of) {
			continue
		}
		if heir := p.heir(l); heir != "" {
			view := index.Link{ID: l.ID, Tags: tag.Wanted(x.Config, p.tags(l, heir), l.Tags)}
			p.Wanted = append(p.Wanted, plan.Wanted(view, "private link service of "+heir+", as "+of+" no longer asks for it", of))
			continue
		}
		p.gone = append(p.gone, l)
	}
	return p
}

// claims are the private link services that the batch's Services want. Of several claims of one the one that leads
// counts.
func (p *Plan) claims() (claims []batch.Claim) {
	for s, at := range p.batch.Placed() {
		if at.Link == "" || p.index.Link(at.Link) != nil && p.index.LinkAt(at.At) == nil {
			continue // it goes from another frontend first
		}
		claim := batch.Claim{Spec: s.Spec, Placement: at}
		i := slices.IndexFunc(claims, func(c batch.Claim) bool { return c.Placement.Link.Equal(at.Link) })
		switch {
		case i < 0:
			claims = append(claims, claim)
		case at.Leads:
			claims[i] = claim
		}
	}
	return claims
}

// isUndecided reports whether a private link service is at its Service's frontend, and its annotations cannot
// be read.
func (p *Plan) isUndecided(l *index.Link, of string) bool {
	return slices.ContainsFunc(p.batch.Live, func(s batch.Served) bool {
		return s.Key() == of && s.Link == nil && key.LinkStays(s.Service.Annotations) &&
			slices.ContainsFunc(s.Placements, func(at batch.Placement) bool { return p.index.LinkAt(at.At) == l })
	})
}

// heir is the Service that is not of the batch, uses a private link's frontend and asks for it, too; "" for none.
func (p *Plan) heir(l *index.Link) string {
	for _, at := range frontends(p.index, l) {
		for _, u := range p.batch.Remaining(at) {
			for _, o := range p.index.Staying() {
				if key.LinkStays(o.Annotations) && naming.OwnerOf(o) == u.Owner {
					return spec.KeyOf(o)
				}
			}
		}
	}
	return ""
}

// Removals delete connections first, then private link services. That changes the load balancer's etag, so if
// it is to be written, as writes reports, all is held until the next round; likewise if the private link
// service returns at another frontend.
func (p *Plan) Removals(writes func(*index.LoadBalancer) bool) (nodes []plan.Node, held []string) {
	for _, l := range p.gone {
		of := index.LinkOwner(l)
		for _, d := range p.index.Have.List(l.ID, network.PrivateEndpointConnections) {
			nodes = append(nodes,
				plan.Gone[network.PrivateEndpointConnection](d.ID(), "connected to private link service "+l.ID.Name()+", which goes", of))
		}
		nodes = append(nodes, plan.Gone[network.PrivateLinkService](l.ID, of+" no longer asks for it", of))
		isHeld := slices.ContainsFunc(frontends(p.index, l), func(at index.Frontend) bool {
			return writes(at.LB) || p.index.Config.PoolByIP && !ByIP(p.index, at.LB)
		})
		for _, at := range p.batch.Placed() {
			isHeld = isHeld || at.Link.Equal(l.ID)
		}
		if isHeld {
			held = append(held, "the load balancer is written when private link service "+l.ID.Name()+" is gone ["+of+"]")
		}
	}
	return nodes, held
}

func (p *Plan) view(c batch.Claim, subnet azure.ID) index.Link {
	config, id := p.index.Config, c.Placement.Link
	have := cmp.Or(p.index.LinkAt(c.Placement.At), &index.Link{})
	const longest = 80
	var addresses []azure.Child[network.PrivateLinkAddress] // static ones first
	for i := range c.Link.Count {
		a := network.PrivateLinkAddress{
			Primary: new(i == 0), PrivateIPAllocationMethod: "Dynamic", PrivateIPAddressVersion: "IPv4", Subnet: azure.Ref(subnet),
		}
		end := fmt.Sprintf("-dynamic-%d", i-len(c.Link.Static))
		if i < len(c.Link.Static) {
			a.PrivateIPAllocationMethod, a.PrivateIPAddress = "Static", c.Link.Static[i]
			end = "-static-" + c.Link.Static[i]
		}
		name := naming.Shorten(subnet.Name()+"-"+id.Name(), longest-len(end)) + end
		addresses = append(addresses, azure.Child[network.PrivateLinkAddress]{Name: name, Properties: a})
	}
	if sameAddresses(have.Properties.IPConfigurations, addresses) {
		addresses = have.Properties.IPConfigurations
	}
	view := index.Link{ID: id, Tags: tag.Wanted(config, p.tags(have, c.Key()), have.Tags)}
	if have.ID == "" {
		view.Location, view.ExtendedLocation = config.Location, config.EdgeZone
	}
	view.Properties = network.PrivateLinkService{
		LoadBalancerFrontendIPConfigurations: []azure.Reference{{ID: c.Placement.At.ID()}},
		IPConfigurations:                     addresses,
		EnableProxyProtocol:                  new(c.Link.Proxy),
		FQDNs:                                append([]string{}, c.Link.FQDNs...),
		Visibility:                           &network.SubscriptionSet{Subscriptions: append([]string{}, c.Link.Visibility...)},
		AutoApproval:                         &network.SubscriptionSet{Subscriptions: append([]string{}, c.Link.Approval...)},
		ProvisioningState:                    publicip.Retried(have.Properties.ProvisioningState),
	}
	return view
}

func (p *Plan) tags(have *index.Link, of string) azure.Tags {
	return azure.Tags{tag.Cluster: tag.ClusterAs(have.Tags, p.index.Config.ClusterName), tag.LinkOwner: of}
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
