package loadbalancer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
)

type privateLink = azure.Resource[network.PrivateLinkService]

// linkWish is the private link service that a Service asks for.
type linkWish struct {
	name       string // "" for one after the frontend
	group      string // resource group, "" for the configured one
	subnet     string // "" for the configured one
	count      int    // of addresses
	static     []string
	fqdns      []string
	proxy      bool
	visibility []string
	approval   []string
	option     string // an annotation that only the owner may have, "" for none
}

// mostLinks is how many private link services Azure lets stand before one load
// balancer.
const mostLinks = 8

// The tag that says which Service a private link service belongs to.
const tagLinkOwner = "k8s-azure-owner-service"

// readLink reads the private link service that a Service asks for, nil for none.
func readLink(s Service, w wish, found *problems) *linkWish {
	if !read(s, key.LinkCreate.Read, found) {
		return nil
	}
	if fixed, _ := key.DisableFloatingIP.Read(s.Annotations); !w.internal && !fixed {
		found.refuse(s.Key(), ReasonAnnotation, "annotation %s: a private link service stands before internal addresses or such without floating IP, allowed is it beside %s or %s",
			key.LinkCreate.Name, key.Internal.Name, key.DisableFloatingIP.Name)
	}
	if !slices.ContainsFunc(w.addresses, func(a address) bool { return !a.is6() }) {
		found.refuse(s.Key(), ReasonAnnotation, "annotation %s: a private link service stands before IPv4 addresses, allowed is a Service that has one", key.LinkCreate.Name)
	}
	l := &linkWish{
		name: read(s, key.LinkName.Read, found), group: read(s, key.LinkGroup.Read, found),
		subnet: firstOf(read(s, key.LinkSubnet.Read, found), w.subnet), count: int(read(s, key.LinkAddressCount.Read, found)),
		fqdns: read(s, key.LinkFQDNs.Read, found), proxy: read(s, key.LinkProxyProtocol.Read, found),
		visibility: read(s, key.LinkVisibility.Read, found), approval: read(s, key.LinkAutoApproval.Read, found),
	}
	l.option, _, _ = key.FirstLinkOption(s.Annotations)
	if slices.Contains(l.visibility, "*") {
		l.visibility = []string{"*"}
	}
	for _, text := range read(s, key.LinkAddresses.Read, found) {
		ip, err := netip.ParseAddr(text)
		if err != nil || !ip.Is4() {
			found.refuse(s.Key(), ReasonAnnotation, "annotation %s: %q is not allowed, allowed is %s", key.LinkAddresses.Name, text, key.LinkAddresses.Allowed)
			continue
		}
		if !slices.Contains(l.static, ip.String()) {
			l.static = append(l.static, ip.String())
		}
	}
	if len(l.static) > l.count {
		found.refuse(s.Key(), ReasonAnnotation, "annotation %s: %d is less than the %d static addresses, allowed is %s", key.LinkAddressCount.Name, l.count, len(l.static), key.LinkAddressCount.Allowed)
	}
	return l
}

// mayHaveLinks reports whether one of the Services asks for what can have a private link
// service, or has it so far.
func mayHaveLinks(in Input) bool {
	if in.Config.PoolByIP && hasPoolsOfInterfaces(in, in.Config.isOwnPool) {
		return true // they stay so behind a private link service
	}
	bases := make(map[string]bool, len(in.Services))
	for _, s := range in.Services {
		internal, _ := key.Internal.Read(s.Annotations)
		fixed, _ := key.DisableFloatingIP.Read(s.Annotations)
		onlyNamed := s.UID == "" // a leftover of which nothing tells but a tag, maybe a private link service's
		if key.LinkStays(s.Annotations) || internal || fixed || onlyNamed || len(s.before(key.PrivateLinks)) > 0 {
			return true
		}
		bases[strings.ToLower(baseName(s.Service))] = true
	}
	return slices.ContainsFunc(balancersOf(in), func(id azure.ID) bool {
		view, _, err := plan.View[links](in.Have, id)
		if err != nil {
			return false // that a document cannot be read is Desired's to report
		}
		return isInternal(id) && slices.ContainsFunc(view.Properties.FrontendIPConfigurations, func(c azure.Child[struct{}]) bool { return bases[ownerBase(c.Name)] }) ||
			slices.ContainsFunc(view.Properties.LoadBalancingRules, func(r azure.Child[linkRule]) bool {
				f := r.Properties.EnableFloatingIP // a guest has rules alone
				return bases[ownerBase(r.Name)] && (isInternal(id) || f == nil || !*f)
			})
	})
}

// links is as much of a load balancer as tells whose it is, and whether private link services
// may stand before it.
type links struct {
	FrontendIPConfigurations []azure.Child[struct{}] `json:"frontendIPConfigurations"`
	LoadBalancingRules       []azure.Child[linkRule] `json:"loadBalancingRules"`
}

type linkRule struct {
	EnableFloatingIP *bool `json:"enableFloatingIP"`
}

// linkLists is what tells which private link services there are, and who is connected
// to those of the commit's Services.
func linkLists(in Input) []azure.Query {
	if !mayHaveLinks(in) {
		return nil
	}
	keys := make(map[string]bool, len(in.Services))
	for _, s := range in.Services {
		keys[s.Key()] = true
	}
	var lists []azure.Query
	for _, group := range linkGroups(in) {
		lists = append(lists, azure.Query{Scope: group, Type: network.PrivateLinkServices})
		for _, d := range in.Have.List(group, network.PrivateLinkServices) {
			l, err := azure.Decode[network.PrivateLinkService](d)
			if owner, _ := l.Tags.Get(tagLinkOwner); err == nil && keys[owner] && in.Config.isManagedLink(l) && len(l.Properties.PrivateEndpointConnections) > 0 {
				lists = append(lists, azure.Query{Scope: l.ID, Type: network.PrivateEndpointConnections})
			}
		}
	}
	return lists
}

// linkGroups are the resource groups in which the Services' private link services may
// be: those that they ask for, or have asked for, and for who asks for one those of the others,
// whose it may share. So it is where pools may get addresses: nobody's may stand before them.
func linkGroups(in Input) []azure.ID {
	groups := []azure.ID{in.Config.links("")}
	add := func(names ...string) {
		for _, name := range names {
			if id := in.Config.links(name); !slices.ContainsFunc(groups, id.Equal) {
				groups = append(groups, id)
			}
		}
	}
	all := false
	for _, s := range in.Services {
		add(groupsOf(key.PrivateLinks, key.AskedGroups(s.Annotations))...)
		add(s.before(key.PrivateLinks)...)
		all = all || !s.Gone && key.LinkStays(s.Annotations)
	}
	others := slices.DeleteFunc(slices.Clone(in.Others), func(s *v1.Service) bool { return !key.LinkStays(s.Annotations) })
	if len(others) > 0 && (all || in.Config.PoolByIP && hasPoolsOfInterfaces(in, in.Config.isOwnPool)) {
		for _, s := range others {
			add(groupsOf(key.PrivateLinks, key.AskedGroups(s.Annotations), key.Noted(s.Status.Conditions))...)
		}
	}
	return groups
}

func (f *facts) readLinks() error {
	f.linkAt, f.linksByID = map[string]privateLink{}, map[string]privateLink{}
	for _, group := range linkGroups(f.Input) {
		for _, d := range f.Have.List(group, network.PrivateLinkServices) {
			l, err := azure.Decode[network.PrivateLinkService](d)
			if err != nil {
				return err
			}
			f.linksByID[l.ID.Key()] = l
			for _, ref := range l.Properties.LoadBalancerFrontendIPConfigurations {
				f.linkAt[ref.ID.Key()] = l
			}
		}
	}
	return nil
}

// linkOwner is the Service that a private link service belongs to, "" when nobody
// claims it any more; stray says that this is for want of the Service that its tag names.
func (f *facts) linkOwner(l privateLink) (owner string, stray bool) {
	if !f.Config.isManagedLink(l) {
		return "", false // another cluster may have a Service of that name
	}
	owner, _ = l.Tags.Get(tagLinkOwner)
	if i := slices.IndexFunc(f.Services, func(s Service) bool { return s.Key() == owner }); i >= 0 {
		s := f.Services[i]
		if key.LinkStays(s.Annotations) && !s.Gone {
			return owner, false
		}
		return "", false
	}
	if owner != "" && f.Complete && !slices.ContainsFunc(f.Others, func(s *v1.Service) bool { return s.Namespace+"/"+s.Name == owner }) {
		return "", true
	}
	return owner, false
}

// linkID is the id of the private link service that a Service asks for at a frontend. Azure has
// one there at most: where one stands already, or the first Service of the commit asks for one,
// it is that, whatever its name and group.
func (s *search) linkID(w wish, p place) azure.ID {
	if w.link == nil || p.is6() {
		return ""
	}
	if l, there := s.linkAt[p.frontendID().Key()]; there {
		return l.ID
	}
	if id, there := s.linkTo[p.frontendID().Key()]; there {
		return id
	}
	return s.Config.links(w.link.group).Resource(network.PrivateLinkServices, firstOf(w.link.name, "pls-"+p.frontend))
}

// leader is the Service that says what the private link service at a place is like: whose it is,
// or the first of the commit that asks for it.
func (s *search) leader(w wish, p place) string {
	owner, _ := s.linkOwner(s.linkAt[p.frontendID().Key()])
	return firstOf(owner, s.linked[p.link.Key()], w.service.Key())
}

// refuseLink finds what keeps a Service from having its private link service.
func (s *search) refuseLink(w wish, p place, wrong *problems) {
	if p.link == "" {
		return
	}
	subnet := s.Config.subnet(w.link.subnet)
	s.refuseMissing(w, "annotation "+key.LinkSubnet.Name, subnet, wrong)
	for _, text := range w.link.static {
		ip, err := netip.ParseAddr(text)
		if why := s.subnets[subnet.Key()].refuses(ip); err == nil && why != "" {
			wrong.refuse(w.service.Key(), ReasonAddress, "annotation %s: %q %s %q, allowed is another address of %s", key.LinkAddresses.Name, text, why, subnet.Name(), s.subnets[subnet.Key()])
		} else if s.nodeIPs[ip] {
			wrong.refuse(w.service.Key(), ReasonAddress, "annotation %s: %q is in use by a node, allowed is an address of the subnet %q that nothing else has", key.LinkAddresses.Name, text, subnet.Name())
		}
	}
	have, there := s.linkAt[p.frontendID().Key()]
	if !there {
		s.refuseNewLink(w, p, wrong)
	} else {
		s.refuseLinkThere(w, p, have, wrong)
		s.warnPlace(w, have, wrong)
		s.warnPools(w, p, have, wrong)
	}
	if owner := s.leader(w, p); w.link.option != "" && owner != w.service.Key() {
		wrong.refuse(w.service.Key(), ReasonLink, "annotation %s: the private link service at frontend %s belongs to Service %s, allowed is %s alone", w.link.option, p.frontend, owner, key.LinkCreate.Name)
	}
}

// refuseLinkThere finds what is wrong with a private link service that stands at the
// frontend already.
func (s *search) refuseLinkThere(w wish, p place, have privateLink, wrong *problems) {
	switch {
	case !s.Config.isManagedLink(have):
		wrong.refuse(w.service.Key(), ReasonLink, "private link service %s at frontend %s is not managed by this cluster, allowed is a frontend without one", have.ID.Name(), p.frontend)
	case w.link.name != "" && !sameText(w.link.name, have.ID.Name()):
		wrong.refuse(w.service.Key(), ReasonLink, "annotation %s: %q cannot be, the private link service is named %q and keeps that, allowed is its name", key.LinkName.Name, w.link.name, have.ID.Name())
	}
}

// warnPlace warns of a private link service that stands in another resource group than its
// Service asks for. To move it would end the connections of those who use it.
func (s *search) warnPlace(w wish, have privateLink, found *problems) {
	group := have.ID.Parent()
	owner, _ := s.linkOwner(have)
	if owner != w.service.Key() || group.Equal(s.Config.links(w.link.group)) {
		return
	}
	found.warn(owner, ReasonLink, "annotation %s: %q cannot be, private link service %s stays in the resource group %q, allowed is that one; to move it, which disconnects its users, take %s off and put it on again",
		key.LinkGroup.Name, s.Config.links(w.link.group).Name(), have.ID.Name(), group.Name(), key.LinkCreate.Name)
}

// warnPools warns of a private link service that keeps pools from being as configured.
func (s *search) warnPools(w wish, p place, have privateLink, found *problems) {
	if s.Config.PoolByIP && !s.byIP(p.side) && !s.Config.presets(p.side.internal) {
		found.warn(w.service.Key(), ReasonLink, "private link service %s stands before load balancer %s, whose backend pools list network interfaces for that and not addresses, allowed is loadBalancerBackendPoolConfigurationType %q, or no private link service there",
			have.ID.Name(), p.side.id.Name(), "nodeIPConfiguration")
	}
}

// isManagedLink reports whether a tag says that a private link service is of this
// cluster.
func (c Config) isManagedLink(l privateLink) bool {
	return hasTag(l.Tags, tagCluster) && !ofOtherCluster(l.Tags, c.ClusterName)
}

func (s *search) refuseNewLink(w wish, p place, wrong *problems) {
	other, taken := s.linksByID[p.link.Key()]
	if owner, _ := s.linkOwner(other); taken && owner != w.service.Key() {
		wrong.refuse(w.service.Key(), ReasonLink, "annotation %s: private link service %q stands at another frontend already, allowed is another name", key.LinkName.Name, other.ID.Name())
	}
	// Its own one comes along, and goes from where it is first.
	count := s.linksAt(p.side, w.service.Key())
	if s.Config.PoolByIP && count == 0 && !s.Config.presets(p.side.internal) {
		wrong.refuse(w.service.Key(), ReasonLink, "annotation %s: Azure has no private link service before backend pools that list addresses, as those of load balancer %s, allowed is one where loadBalancerBackendPoolConfigurationType is %q",
			key.LinkCreate.Name, p.side.id.Name(), "nodeIPConfiguration")
	}
	for linked := range s.linked {
		if _, there := s.linksByID[linked]; !there && s.linkSide[linked] == p.side {
			count++
		}
	}
	if s.linked[p.link.Key()] == "" && count >= mostLinks {
		wrong.refuse(w.service.Key(), ReasonLimit, "load balancer %s has %d private link services already, allowed are %d", p.side.id.Name(), count, mostLinks)
	}
}

// linksAt counts the private link services that stand before a load balancer and are not a
// Service's.
func (f *facts) linksAt(s *side, but string) (count int) {
	for _, l := range f.linksByID {
		if !slices.ContainsFunc(l.Properties.LoadBalancerFrontendIPConfigurations, func(r azure.Reference) bool { return r.ID.Under(s.id) }) {
			continue
		}
		if owner, _ := f.linkOwner(l); but == "" || owner != but {
			count++
		}
	}
	return count
}

func hasTag(tags azure.Tags, name string) bool { _, ok := tags.Get(name); return ok }

// noteLink remembers who is the first to have a private link service.
func (s *search) noteLink(w wish, p place) {
	if id := p.link.Key(); p.link != "" && s.linked[id] == "" {
		s.linked[id], s.linkSide[id], s.linkTo[p.frontendID().Key()] = w.service.Key(), p.side, p.link
	}
}

// linkClaims are the private link services that the batch's Services want, by id key,
// and the keys in their order. Of several at one frontend the one that leads counts.
func (f *facts) linkClaims(b batch) (claimed map[string]claim, order []string) {
	claimed = map[string]claim{}
	for _, w := range b.live {
		for _, p := range w.places {
			if p.link == "" {
				continue
			}
			id := p.link.Key()
			if _, there := f.linksByID[id]; there && f.linkAt[p.frontendID().Key()].ID == "" {
				continue // it goes from another frontend first
			}
			_, there := claimed[id]
			if !there {
				order = append(order, id)
			}
			if !there || p.leads {
				claimed[id] = claim{w, p}
			}
		}
	}
	return claimed, order
}

// links are the private link services that the batch's Services want, and those that
// go.
func (f *facts) links(b batch) (wanted []plan.Node, gone []privateLink) {
	claimed, order := f.linkClaims(b)
	subnets := map[string][]string{} // keys of Services, by id
	var subnetOrder []azure.ID
	for _, id := range order {
		c := claimed[id]
		owner, stray := f.linkOwner(f.linksByID[id])
		if owner != "" && owner != c.service.Key() {
			continue // it is shared, and its owner says what it is like
		}
		if stray { // it is given to who asks for it now
			name := f.linksByID[id].ID.Name()
			f.unclaimed["the private link service "+name] = name
		}
		subnet := f.Config.subnet(c.link.subnet)
		if len(subnets[subnet.Key()]) == 0 {
			subnetOrder = append(subnetOrder, subnet)
		}
		subnets[subnet.Key()] = append(subnets[subnet.Key()], c.service.Key())
		wanted = append(wanted, plan.Wanted(f.linkView(c, subnet), "private link service of "+c.service.Key(), c.service.Key()))
	}
	for _, id := range subnetOrder {
		view := azure.Resource[network.Subnet]{ID: id, Properties: network.Subnet{PrivateLinkServiceNetworkPolicies: "Disabled"}}
		wanted = append(wanted, plan.Wanted(view, "private link services take addresses there", subnets[id.Key()]...))
	}
	gone, handed := f.goneLinks(b, claimed)
	return append(wanted, handed...), gone
}

// goneLinks are the managed private link services whose Service asks for them no more,
// or whose frontend goes. Those that another Service asks for at their frontend are handed
// over to it: it says what they are like when it is looked at next.
func (f *facts) goneLinks(b batch, claimed map[string]claim) (gone []privateLink, handed []plan.Node) {
	for _, group := range linkGroups(f.Input) {
		for _, d := range f.Have.List(group, network.PrivateLinkServices) {
			l := f.linksByID[d.ID().Key()]
			owner, _ := l.Tags.Get(tagLinkOwner)
			_, wanted := claimed[l.ID.Key()]
			if wanted || !b.has(owner) || !f.Config.isManagedLink(l) || b.leavesAsItIs(l, owner) {
				continue
			}
			if heir := f.heirOf(b, l); heir != "" {
				view := privateLink{ID: l.ID, Tags: wantedTags(f.Config, f.linkTags(l, heir), l.Tags)}
				handed = append(handed, plan.Wanted(view, "private link service of "+heir+", as "+owner+" asks for it no more", owner))
				continue
			}
			gone = append(gone, l)
		}
	}
	return gone, handed
}

// leavesAsItIs reports whether a private link service stands where its Service does, and it
// cannot be told whether the Service asks for it.
func (b batch) leavesAsItIs(l privateLink, owner string) bool {
	return slices.ContainsFunc(b.live, func(w wish) bool {
		return w.service.Key() == owner && w.link == nil && key.LinkStays(w.service.Annotations) && slices.ContainsFunc(w.places, func(p place) bool {
			return slices.ContainsFunc(l.Properties.LoadBalancerFrontendIPConfigurations, func(ref azure.Reference) bool { return ref.ID.Equal(p.frontendID()) })
		})
	})
}

// heirOf is the Service that is not of the batch, stands at a private link's frontend and
// asks for it, too; "" for none.
func (f *facts) heirOf(b batch, l privateLink) string {
	for _, ref := range l.Properties.LoadBalancerFrontendIPConfigurations {
		s := f.sideWith(ref.ID.Parent())
		if s == nil {
			continue
		}
		for _, u := range b.remaining(spot{s, ref.ID.Name()}) {
			for _, o := range f.staying() {
				if key.LinkStays(o.Annotations) && strings.ToLower(baseName(o)) == u.owner {
					return o.Namespace + "/" + o.Name
				}
			}
		}
	}
	return ""
}

// staying are the Services that are not gone, of the commit or not.
func (f *facts) staying() []*v1.Service {
	all := slices.Clone(f.Others)
	for _, s := range f.Services {
		if !s.Gone {
			all = append(all, s.Service)
		}
	}
	return all
}

// removals are the steps by which private link services go: who is connected first. A
// load balancer that goes as a whole goes after them in the same round. One that stays has
// another etag then, so if it is to be written all is held until the next round; so it is for
// a service that comes anew at another frontend.
func (f *facts) removals(b batch, all []*balancer, gone []privateLink) (nodes []plan.Node, held []string) {
	for _, l := range gone {
		owner, _ := l.Tags.Get(tagLinkOwner)
		for _, d := range f.Have.List(l.ID, network.PrivateEndpointConnections) {
			nodes = append(nodes, plan.Gone[network.PrivateEndpointConnection](d.ID(), "connected to private link service "+l.ID.Name()+", which goes", owner))
		}
		nodes = append(nodes, plan.Gone[network.PrivateLinkService](l.ID, owner+" asks for it no more", owner))
		if f.standsBeforeWritten(b, all, l) || f.comesAnew(b, l) || f.keepsPools(l) {
			held = append(held, "the load balancer is written when private link service "+l.ID.Name()+" is gone ["+owner+"]")
		}
	}
	return nodes, held
}

// standsBeforeWritten reports whether a private link service stands at a load balancer that
// stays and is not yet as it shall be.
func (f *facts) standsBeforeWritten(b batch, all []*balancer, l privateLink) bool {
	return slices.ContainsFunc(all, func(lb *balancer) bool {
		if !lb.stays || !slices.ContainsFunc(l.Properties.LoadBalancerFrontendIPConfigurations, func(ref azure.Reference) bool { return ref.ID.Under(lb.side.id) }) {
			return false
		}
		var g plan.Graph
		n, _ := lb.node(f, b)
		err := g.Add(n)
		p, err2 := plan.Diff(f.Have, g)
		return err != nil || err2 != nil || !p.Empty() // what is wrong is told when all is compared
	})
}

// keepsPools reports whether a private link service stands before pools that are not as
// configured for that.
func (f *facts) keepsPools(l privateLink) bool {
	return f.Config.PoolByIP && slices.ContainsFunc(l.Properties.LoadBalancerFrontendIPConfigurations, func(ref azure.Reference) bool {
		s := f.sideWith(ref.ID.Parent())
		return s != nil && !f.byIP(s)
	})
}

// comesAnew reports whether a Service asks for a private link service that goes at another
// frontend.
func (f *facts) comesAnew(b batch, l privateLink) bool {
	return slices.ContainsFunc(b.live, func(w wish) bool {
		return slices.ContainsFunc(w.places, func(p place) bool { return p.link != "" && p.link.Equal(l.ID) })
	})
}

func (f *facts) linkView(c claim, subnet azure.ID) privateLink {
	l, w := f.linkAt[c.place.frontendID().Key()], c.link
	id := c.place.link
	exists := l.ID != ""
	view := privateLink{ID: id, Tags: wantedTags(f.Config, f.linkTags(l, c.service.Key()), l.Tags)}
	if !exists {
		view.Location, view.ExtendedLocation = f.Config.Location, f.Config.EdgeZone
	}
	view.Properties = network.PrivateLinkService{
		LoadBalancerFrontendIPConfigurations: []azure.Reference{{ID: c.place.frontendID()}},
		IPConfigurations:                     linkAddresses(w, id.Name(), subnet),
		EnableProxyProtocol:                  new(w.proxy),
		FQDNs:                                append([]string{}, w.fqdns...),
		Visibility:                           &network.SubscriptionSet{Subscriptions: append([]string{}, w.visibility...)},
		AutoApproval:                         &network.SubscriptionSet{Subscriptions: append([]string{}, w.approval...)},
		ProvisioningState:                    anew(l.Properties.ProvisioningState),
	}
	if sameLinkAddresses(l.Properties.IPConfigurations, view.Properties.IPConfigurations) {
		view.Properties.IPConfigurations = l.Properties.IPConfigurations
	}
	return view
}

func (f *facts) linkTags(have privateLink, owner string) azure.Tags {
	own := azure.Tags{tagCluster: f.Config.ClusterName, tagLinkOwner: owner}
	if text, ok := have.Tags.Get(tagCluster); ok && sameText(text, f.Config.ClusterName) {
		own[tagCluster] = text
	}
	return own
}

// linkAddresses are the addresses of a private link service: static ones first.
func linkAddresses(w *linkWish, name string, subnet azure.ID) []azure.Child[network.PrivateLinkAddress] {
	const longest = 80
	var all []azure.Child[network.PrivateLinkAddress]
	for i := range w.count {
		a := network.PrivateLinkAddress{
			Primary: new(i == 0), PrivateIPAllocationMethod: "Dynamic", PrivateIPAddressVersion: "IPv4", Subnet: azure.Ref(subnet),
		}
		end := fmt.Sprintf("-dynamic-%d", i-len(w.static))
		if i < len(w.static) {
			a.PrivateIPAllocationMethod, a.PrivateIPAddress = "Static", w.static[i]
			end = "-static-" + w.static[i]
		}
		all = append(all, azure.Child[network.PrivateLinkAddress]{Name: shorten(subnet.Name()+"-"+name, longest-len(end)) + end, Properties: a})
	}
	return all
}

// sameLinkAddresses reports whether two lists of addresses mean the same, whatever
// the names.
func sameLinkAddresses(a, b []azure.Child[network.PrivateLinkAddress]) bool {
	shape := func(list []azure.Child[network.PrivateLinkAddress]) []string {
		var texts []string
		for _, c := range list {
			p, address, subnet := c.Properties, "", ""
			if sameText(p.PrivateIPAllocationMethod, "Static") {
				address = p.PrivateIPAddress
			}
			if p.Subnet != nil {
				subnet = p.Subnet.ID.Key()
			}
			texts = append(texts, fmt.Sprint(address, subnet, p.Primary != nil && *p.Primary))
		}
		slices.Sort(texts)
		return texts
	}
	return slices.Equal(shape(a), shape(b))
}
