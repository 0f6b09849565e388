package loadbalancer

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
)

type publicIP = azure.Resource[network.PublicIPAddress]

func (f *facts) readPublicIPs() error {
	f.ips, f.ipsOf, f.ipsAt = map[string]publicIP{}, map[string][]azure.ID{}, map[string][]azure.ID{}
	for _, group := range addressGroups(f.Input, f.sides...) {
		for _, d := range f.Have.List(group, network.PublicIPAddresses) {
			ip, err := azure.Decode[network.PublicIPAddress](d)
			if err != nil {
				return err
			}
			ip.Properties.IPAddress = plainAddress(ip.Properties.IPAddress)
			f.ips[ip.ID.Key()] = ip
			f.ipsAt[ip.Properties.IPAddress] = append(f.ipsAt[ip.Properties.IPAddress], ip.ID)
			names, _ := servicesIn(ip.Tags)
			for _, name := range names {
				f.ipsOf[name] = append(f.ipsOf[name], ip.ID)
			}
		}
	}
	return nil
}

// publicIPFor is the public IP that a Service shall have: the one it names, one of
// the address it names, or its own.
func (f *facts) publicIPFor(w wish, a address, wrong *problems) (azure.ID, bool) {
	group := f.Config.publicIPs(w.group)
	var id azure.ID
	switch {
	case a.publicIP != "":
		id = group.Resource(network.PublicIPAddresses, a.publicIP)
		if _, exists := f.ips[id.Key()]; !exists {
			wrong.refuse(w.service.Key(), ReasonAddress, "%s is not found in resource group %s, allowed is the name of a public IP that is there", a.asked, group.Name())
			return "", false
		}
	case a.pinned != "":
		i := slices.IndexFunc(f.ipsAt[a.pinned], func(id azure.ID) bool { return id.Parent().Equal(group) })
		if i < 0 {
			wrong.refuse(w.service.Key(), ReasonAddress, "%s is not found in resource group %s, allowed is the address of a public IP that is there", a.asked, group.Name())
			return "", false
		}
		id = f.ipsAt[a.pinned][i]
	default:
		prefix := ""
		if a.prefix != "" {
			prefix = a.prefix.Name()
		}
		id = group.Resource(network.PublicIPAddresses, publicIPName(f.Config.ClusterName, w.base, prefix, a.suffix))
		if ip, exists := f.ips[id.Key()]; !exists || f.isOnlyOf(ip, w) {
			return id, true
		}
	}
	ip := f.ips[id.Key()]
	if !hasVersion(ip, a.family) {
		wrong.refuse(w.service.Key(), ReasonAddress, "%s: public IP %s has %s, allowed is one with %s", firstOf(a.asked, "its own"), id.Name(), ip.Properties.PublicIPAddressVersion, a.family)
		return "", false
	}
	f.refuseLabel(w, ip, wrong)
	return ip.ID, true
}

// isManaged reports whether a public IP is this cluster's to change.
func (f *facts) isManaged(ip publicIP) bool {
	_, managed := servicesIn(ip.Tags)
	return managed && !ofOtherCluster(ip.Tags, f.Config.ClusterName)
}

// isOnlyOf reports whether a public IP is managed and serves one Service alone.
func (f *facts) isOnlyOf(ip publicIP, w wish) bool {
	names, _ := servicesIn(ip.Tags)
	return f.isManaged(ip) && len(names) == 1 && names[0] == w.service.Key()
}

func hasVersion(ip publicIP, family v1.IPFamily) bool {
	version := ip.Properties.PublicIPAddressVersion
	return sameText(version, string(family)) || version == "" && family == v1.IPv4Protocol
}

// refuseLabel keeps a Service from naming a public IP that another one has named.
func (f *facts) refuseLabel(w wish, ip publicIP, wrong *problems) {
	owner := labelOwner(ip.Tags)
	if w.label == nil || owner == "" || owner == w.service.Key() {
		return
	}
	named, asks := labelOf(ip), f.asksForLabel(owner)
	if named == "" && !asks {
		return // the owner has taken it away again
	}
	or := ""
	if !asks {
		or = fmt.Sprintf("; that one asks for none any more, but leaves %q there until its annotation is \"\"", named)
	}
	wrong.refuse(w.service.Key(), ReasonDNSLabel, "annotation %s: %q cannot be set, Service %s has named public IP %s, allowed is one Service that does%s", key.DNSLabel.Name, *w.label, owner, ip.ID.Name(), or)
}

// newPublicIPs says which addresses are not known because their public IPs do not
// exist yet.
func (f *facts) newPublicIPs(b batch) []string {
	var pending []string
	for _, w := range b.live {
		for _, p := range w.places {
			if _, ok := f.ips[p.ip.Key()]; p.ip != "" && !ok {
				pending = append(pending, pendingAddress(p.ip, w))
			}
		}
	}
	return pending
}

func pendingAddress(id azure.ID, w wish) string {
	return "the load balancer and the security group need the address of " + id.Name() + " [" + w.service.Key() + "]"
}

// users is who of a batch has a public IP, or lets it go.
type users struct {
	claims  []claim
	leaving []string // keys of Services
	unnamed bool     // its DNS label comes in a later round
}

// usersOf finds the batch's users of public IPs, and the ids in the order in which
// they were met: wanted ones first.
func (f *facts) usersOf(b batch) (map[string]*users, []azure.ID) {
	by := map[string]*users{}
	var order []azure.ID
	at := func(id azure.ID) *users {
		u, ok := by[id.Key()]
		if !ok {
			u = &users{}
			by[id.Key()], order = u, append(order, id)
		}
		return u
	}
	for _, w := range b.live {
		for _, p := range w.places {
			if p.ip != "" {
				at(p.ip).claims = append(at(p.ip).claims, claim{w, p})
			}
		}
	}
	for _, w := range slices.Concat(b.live, b.gone) {
		for _, id := range f.managedIPsOf(w) {
			has := func(c claim) bool { return c.service.Key() == w.service.Key() }
			if b.holds[id.Key()] {
				continue
			}
			if u := at(id); !slices.ContainsFunc(u.claims, has) && !slices.Contains(u.leaving, w.service.Key()) {
				u.leaving = append(u.leaving, w.service.Key())
			}
		}
	}
	return by, order
}

// publicIPs are the public IPs of the batch's Services: those they have, and those
// that they let go. A managed one that serves nobody any more is deleted, after the
// security group has forgotten its address: once it is gone, nobody can tell which
// address that was.
func (f *facts) publicIPs(by map[string]*users, order []azure.ID, kept map[string]bool) (wanted, released []plan.Node) {
	for _, id := range order {
		u := by[id.Key()]
		have, exists := f.ips[id.Key()]
		names, managed := servicesIn(have.Tags)
		rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(u.leaving, name) })
		switch {
		case len(u.claims) > 0 && exists && ofOtherCluster(have.Tags, f.Config.ClusterName):
			// It is used as it is.
		case len(u.claims) > 0 && exists && !managed:
			wanted = append(wanted, f.ownPublicIP(u, have))
		case len(u.claims) > 0:
			view := f.publicIPView(id, u, have, names, exists)
			var of []string
			for _, c := range u.claims {
				of = append(of, c.service.Key())
			}
			wanted = append(wanted, plan.Wanted(view, "address of "+summary(of), of...))
		case len(rest) > 0 || !kept[id.Key()]:
			released = append(released, f.releasedPublicIP(have, u.leaving, rest))
		}
	}
	return wanted, released
}

// ownPublicIP is a public IP that somebody made: only its SKU must fit, and it is
// named in DNS if a Service asks for that.
func (f *facts) ownPublicIP(u *users, have publicIP) plan.Node {
	c := u.claims[0]
	view := publicIP{ID: have.ID}
	if have.SKU == nil || sameText(have.SKU.Name, "Basic") {
		view.SKU = &azure.SKU{Name: "Standard"}
	}
	view.Properties.DNSSettings = have.Properties.DNSSettings
	if i := slices.IndexFunc(u.claims, func(c claim) bool { return c.label != nil }); i >= 0 && !u.unnamed {
		c = u.claims[i]
		view.Properties.DNSSettings = dnsSettings(*c.label)
	}
	view.Properties.ProvisioningState = anew(have.Properties.ProvisioningState)
	return plan.Wanted(view, "somebody's own public IP, for "+c.service.Key(), c.service.Key())
}

func dnsSettings(label string) *network.DNSSettings {
	if label == "" {
		return nil
	}
	return &network.DNSSettings{DomainNameLabel: label}
}

// anew is the provisioning state that has a resource written once more which failed
// to be made.
func anew(state string) string {
	if sameText(state, "Failed") {
		return "Succeeded"
	}
	return ""
}

func (f *facts) publicIPView(id azure.ID, u *users, have publicIP, names []string, exists bool) publicIP {
	asked := f.askedTags(u, have, names)
	own := f.ownershipTags(u, have, names, asked)
	view := publicIP{ID: id, SKU: &azure.SKU{Name: "Standard"}}
	view.Properties = network.PublicIPAddress{
		PublicIPAllocationMethod: "Static", PublicIPAddressVersion: string(u.claims[0].place.family), DNSSettings: have.Properties.DNSSettings,
		ProvisioningState: anew(have.Properties.ProvisioningState), IPTags: f.wantedKinds(u, have, exists),
	}
	for _, c := range u.claims {
		if !u.unnamed {
			f.name(&view, own, c, have)
		}
	}
	for _, tags := range asked {
		addTags(own, tags)
	}
	if !exists {
		f.complete(&view, u.claims[0].place)
	}
	owner := labelOwner(have.Tags)
	leaves := slices.Contains(u.leaving, owner)
	if len(f.Config.SystemTags) > 0 && owner != "" && !leaves && labelOwner(own) == "" {
		own[tagLabel] = owner
	}
	view.Tags = wantedTags(f.Config, own, have.Tags)
	if leaves && labelOwner(own) == "" {
		view.Tags = dropLabel(view.Tags, have.Tags)
	}
	return view
}

// askedTags are the tags that Services ask for at a public IP, those of the first by name
// first: what the batch's ask for, and what has been brought about of what others ask for.
func (f *facts) askedTags(u *users, have publicIP, names []string) []azure.Tags {
	by := map[string]azure.Tags{}
	for _, c := range u.claims {
		by[c.service.Key()] = c.ipTags
	}
	for _, name := range names {
		if _, claims := by[name]; !claims && !slices.Contains(u.leaving, name) {
			by[name] = f.tagsOfOther(name, have)
		}
	}
	var tags []azure.Tags
	for _, name := range slices.Sorted(maps.Keys(by)) {
		tags = append(tags, by[name])
	}
	return tags
}

// tagsOfOther are those tags of a public IP that a Service asks for that is not of the commit,
// or that stays in it as it is.
func (f *facts) tagsOfOther(service string, have publicIP) azure.Tags {
	tags := azure.Tags{}
	add := func(o *v1.Service) {
		if o.Namespace+"/"+o.Name != service {
			return
		}
		asked, _ := key.PublicIPTags.Read(o.Annotations)
		for name := range asked.Values {
			if value, there := have.Tags.Get(name); there {
				tags[name] = value
			}
		}
	}
	for _, o := range f.Others {
		add(o)
	}
	for _, s := range f.Services {
		add(s.Service)
	}
	return tags
}

// complete says of a new public IP what cannot be said later.
func (f *facts) complete(view *publicIP, p place) {
	view.Location, view.ExtendedLocation = f.Config.Location, f.Config.EdgeZone
	if len(f.Config.Zones) > 0 && f.Config.EdgeZone == nil {
		view.Zones = f.Config.Zones
	}
	if p.prefix != "" {
		view.Properties.PublicIPPrefix = azure.Ref(p.prefix)
	}
}

// wantedKinds are the IP tags that a public IP gets: those of the first Service that
// asks for any, where they differ and can be had.
func (f *facts) wantedKinds(u *users, have publicIP, exists bool) []network.IPTag {
	for _, c := range u.claims {
		if c.wantsKinds(have) && (!exists || f.Config.IPTagsMayChange) {
			return c.kinds
		}
	}
	return nil
}

// name gives a managed public IP the DNS label that a Service asks for, and notes
// which Service that was: the first one counts.
func (f *facts) name(view *publicIP, own azure.Tags, c claim, have publicIP) {
	if c.label == nil || labelOwner(own) != "" {
		return
	}
	view.Properties.DNSSettings = dnsSettings(*c.label)
	_, said := have.Tags.Get(tagLabel)
	if *c.label == "" || labelOwner(have.Tags) == c.service.Key() && !said && len(f.Config.SystemTags) == 0 {
		return
	}
	own[tagLabel] = labelTag(have.Tags, c.service.Key())
}

// wantsKinds reports whether a Service asks for other IP tags than a public IP has.
func (w wish) wantsKinds(have publicIP) bool {
	return w.kinds != nil && !sameKinds(have.Properties.IPTags, w.kinds)
}

// sameKinds compares IP tags without regard to order and case.
func sameKinds(a, b []network.IPTag) bool {
	isIn := func(list []network.IPTag, x network.IPTag) bool {
		return slices.ContainsFunc(list, func(y network.IPTag) bool { return sameText(x.IPTagType, y.IPTagType) && sameText(x.Tag, y.Tag) })
	}
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x network.IPTag) bool { return !isIn(b, x) })
}

// kindsIn is a public IP's IP tags as an annotation has them.
func kindsIn(ip publicIP) string {
	var pairs []string
	for _, tag := range ip.Properties.IPTags {
		pairs = append(pairs, tag.IPTagType+"="+tag.Tag)
	}
	return firstOf(strings.Join(pairs, ","), "none")
}

// refuseKinds refuses IP tags for which a public IP that is there would be lost: with a slip
// in them, as nobody knows what was meant and Azure might refuse the new one when the old
// one is gone; or where the Service names the public IP that would go. Where none would be
// lost, a slip is told and the Service is served.
func (s *search) refuseKinds(w wish, p place, wrong *problems) {
	if p.ip == "" {
		return
	}
	have, exists := s.ips[p.ip.Key()]
	renewed := s.isOutgrown(w, p)
	if renewed && s.refuseHeld(w, p, wrong) {
		return
	}
	changed := s.Config.IPTagsMayChange && s.isManaged(have) && w.wantsKinds(have)
	asked := fmt.Sprintf("annotation %s: %q", key.IPTags.Name, w.service.Annotations[key.IPTags.Name])
	switch {
	case !renewed && !changed && exists && w.wantsKinds(have):
		wrong.warn(w.service.Key(), ReasonUnheeded, "%s is not heeded at public IP %s, which somebody else made or others have, too: its IP tags are %s, and Azure changes none of a public IP",
			asked, p.ip.Name(), kindsIn(have))
	case !renewed && !changed:
		warnKinds(w.service, wrong)
	case w.slip != "":
		wrong.refuse(w.service.Key(), ReasonAnnotation, "%s would change the IP tags of public IP %s, which are %s, but %s, allowed is %s: correct it, or take the annotation away and the public IP stays as it is",
			asked, p.ip.Name(), kindsIn(have), w.slip, key.IPTags.Allowed)
	case renewed && p.given():
		wrong.refuse(w.service.Key(), ReasonAnnotation, "%s would have public IP %s made anew with another address, but %s is that one, allowed are the IP tags that it has, %s: ask for these, or take one of the two away",
			asked, p.ip.Name(), p.asked, kindsIn(have))
	}
}

// warnPrefix tells of a prefix that a Service's own public IP is not taken from: it has been there
// before, under the name that it has with a prefix of that name.
func (s *search) warnPrefix(w wish, p place, wrong *problems) {
	have, exists := s.ips[p.ip.Key()]
	from := have.Properties.PublicIPPrefix
	if !exists || p.prefix == "" || from != nil && from.ID.Equal(p.prefix) {
		return
	}
	is := "from none"
	if from != nil {
		is = "from " + string(from.ID)
	}
	wrong.warn(w.service.Key(), ReasonUnheeded, "%s is not heeded at public IP %s, which is %s, and Azure changes that of no public IP, allowed is a prefix whose name differs in its first %d characters: the Service gets another public IP for it",
		p.asked, p.ip.Name(), is, longestName-len(publicIPName(s.Config.ClusterName, w.base, "", ""))-1)
}

// refuseHeld reports whether somebody keeps an outgrown public IP from being made anew. Then
// other IP tags are not heeded, and another family cannot be had.
func (s *search) refuseHeld(w wish, p place, wrong *problems) bool {
	have, holder := s.ips[p.ip.Key()], s.holderOf(w, p)
	switch version := have.Properties.PublicIPAddressVersion; {
	case holder == "":
		return false
	case !hasVersion(have, p.family):
		wrong.refuse(w.service.Key(), ReasonAddress, "its own public IP %s has %s and cannot be made anew as %s, allowed is %s until that has left",
			p.ip.Name(), version, holder, version)
	default:
		wrong.warn(w.service.Key(), ReasonUnheeded, "annotation %s: %q is not heeded at public IP %s, which cannot be made anew as %s, allowed are the IP tags that it has, %s, until that has left",
			key.IPTags.Name, w.service.Annotations[key.IPTags.Name], p.ip.Name(), holder, kindsIn(have))
	}
	return true
}

// holderOf says who keeps a public IP from being made anew, "" for nobody: what stays at its
// frontend, or who asks for it, too.
func (s *search) holderOf(w wish, p place) string {
	for _, u := range p.side.uses[strings.ToLower(p.frontend)] {
		if _, live := s.wishes[u.owner]; !live && !s.gone[u.owner] {
			return fmt.Sprintf("the %s %q of %s stands at it", u.what, u.name, s.whose(u, p))
		}
	}
	for _, other := range s.commit {
		if !other.service.Gone && other.service.Key() != w.service.Key() && s.wants(strings.ToLower(other.base), target{ip: p.ip}) {
			return "Service " + other.service.Key() + " asks for it, too"
		}
	}
	return ""
}

// ownershipTags says whom a public IP serves. What is said already, in this or in
// older words, is not said again, unless a tag that is asked for takes the place of those.
func (f *facts) ownershipTags(u *users, have publicIP, names []string, asked []azure.Tags) azure.Tags {
	replaced := slices.ContainsFunc(append(asked, f.Config.Tags), func(tags azure.Tags) bool {
		_, services := tags.Get(legacyTagServices)
		_, cluster := tags.Get(legacyTagCluster)
		return services || cluster
	})
	now := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(u.leaving, name) })
	for _, c := range u.claims {
		if !slices.Contains(now, c.service.Key()) {
			now = append(now, c.service.Key())
		}
	}
	own := azure.Tags{tagCluster: f.Config.ClusterName, tagServices: strings.Join(now, ",")}
	text, said := have.Tags.Get(tagServices)
	switch same := slices.Equal(now, names); {
	case same && said:
		own[tagServices] = text
		if _, named := clusterIn(have.Tags); !named && !replaced { // it is older than the tag
			delete(own, tagCluster)
		}
	case same && len(f.Config.SystemTags) == 0 && !replaced:
		return azure.Tags{}
	}
	if text, ok := have.Tags.Get(tagCluster); ok && sameText(text, f.Config.ClusterName) {
		own[tagCluster] = text
	}
	return own
}

func (f *facts) releasedPublicIP(ip publicIP, leaving, rest []string) plan.Node {
	if len(rest) > 0 {
		view := publicIP{ID: ip.ID, Tags: azure.Tags{tagServices: strings.Join(rest, ",")}}
		view.Properties.DNSSettings = ip.Properties.DNSSettings
		if slices.Contains(leaving, labelOwner(ip.Tags)) {
			view.Tags = dropLabel(view.Tags, ip.Tags)
		}
		return plan.Wanted(view, "serves "+summary(leaving)+" no more", leaving...)
	}
	n := plan.Gone[network.PublicIPAddress](ip.ID, "address of "+summary(leaving)+", which needs it no more", leaving...)
	n.After = []azure.ID{f.Config.securityGroup()}
	for _, s := range f.sides {
		n.After = append(n.After, s.id)
	}
	return n
}

// managedIPsOf lists the managed public IPs that a tag says serve a Service. One that
// something else is using is not among them.
func (f *facts) managedIPsOf(w wish) []azure.ID {
	var ids []azure.ID
	for _, id := range f.ipsOf[w.service.Key()] {
		ip := f.ips[id.Key()]
		if !ofOtherCluster(ip.Tags, f.Config.ClusterName) && f.isAt(ip, w) && !f.isOfSuccessor(ip, w) && !slices.ContainsFunc(ids, ip.ID.Equal) {
			ids = append(ids, ip.ID)
		}
	}
	return ids
}

// isOfSuccessor reports whether a public IP that nothing uses yet was made for another
// Service of the name of one that is gone.
func (f *facts) isOfSuccessor(ip publicIP, w wish) bool {
	names, _ := servicesIn(ip.Tags)
	base := f.baseOf(ip.ID.Name())
	return w.service.Gone && len(names) == 1 && ip.Properties.IPConfiguration == nil && base != "" && base != strings.ToLower(w.base)
}

// isAt reports whether a public IP is attached to nothing, or to a frontend where a
// Service stands: its own, or one of another that it shares.
func (f *facts) isAt(ip publicIP, w wish) bool {
	at := ip.Properties.IPConfiguration
	if at == nil {
		return true
	}
	s := f.sideWith(at.ID.Parent())
	if s == nil {
		return false
	}
	if ownerBase(at.ID.Name()) == strings.ToLower(w.base) {
		return true
	}
	names, _ := servicesIn(ip.Tags)
	return len(names) > 1 || slices.ContainsFunc(s.uses[strings.ToLower(at.ID.Name())], func(u use) bool { return sameText(u.owner, w.base) })
}

// postpone takes addresses whose public IP must be made anew out of this round: the
// old one goes first.
func (f *facts) postpone(b *batch) {
	for i, w := range b.live {
		b.live[i].places = slices.DeleteFunc(slices.Clone(w.places), func(p place) bool {
			if !f.mustRenew(*b, w, p) {
				return false
			}
			b.waits = append(b.waits, "public IP "+p.ip.Name()+" is made anew with another version or other IP tags ["+w.service.Key()+"]")
			return true
		})
	}
}

// untangle takes moves between load balancers out of this round where one load balancer
// would wait for the other, and that for the first, be it only by the machines that
// are in one and go to the other: the addresses leave in this round and come in the
// next.
func (f *facts) untangle(b *batch) {
	waits := map[*side]map[*side]bool{}
	later := map[string]bool{} // spots, by key, at which a frontend comes: those who share it wait, too
	for _, w := range b.live {
		for _, p := range w.places {
			for _, from := range f.comesFrom(w, p) {
				later[p.spot().key()] = true
				if waits[p.side] == nil {
					waits[p.side] = map[*side]bool{}
				}
				waits[p.side][from] = true
			}
		}
	}
	if len(waits) == 0 || f.Config.PoolByIP && !f.inCircle(waits) {
		return
	}
	b.holdBack(func(_ wish, p place) bool { return later[p.spot().key()] }, func(w wish, p place) string {
		return "load balancer " + p.side.id.Name() + " gets the address of " + w.service.Key() + ", which is elsewhere so far"
	})
}

// holdBack takes places out of this round that come in a later one, and says why. Their
// public IPs are kept for them.
func (b *batch) holdBack(which func(w wish, p place) bool, why func(w wish, p place) string) {
	for i, w := range b.live {
		b.live[i].places = slices.DeleteFunc(slices.Clone(w.places), func(p place) bool {
			if !which(w, p) {
				return false
			}
			b.holds[p.ip.Key()] = true
			b.waits = append(b.waits, why(w, p))
			return true
		})
	}
}

// inCircle reports whether load balancers wait for each other.
func (f *facts) inCircle(waits map[*side]map[*side]bool) bool {
	left := slices.Clone(f.sides)
	for {
		rest := slices.DeleteFunc(slices.Clone(left), func(s *side) bool {
			return !slices.ContainsFunc(left, func(other *side) bool { return waits[s][other] })
		})
		if len(rest) == len(left) {
			return len(left) > 0
		}
		left = rest
	}
}

// isOutgrown reports whether a public IP has other IP tags than those asked for, or is of
// the other family, and nobody but the one Service that asks has it, as its tag says.
func (f *facts) isOutgrown(w wish, p place) bool {
	have, exists := f.ips[p.ip.Key()]
	otherKinds := !f.Config.IPTagsMayChange && w.wantsKinds(have)
	return exists && p.own && (otherKinds || !hasVersion(have, p.family)) && f.isOnlyOf(have, w)
}

// mustRenew reports whether a public IP is outgrown and nobody else is at it, or comes.
func (f *facts) mustRenew(b batch, w wish, p place) bool {
	if !f.isOutgrown(w, p) || len(b.remaining(p.spot())) > 0 {
		return false
	}
	return !slices.ContainsFunc(b.live, func(c wish) bool {
		return c.service.Key() != w.service.Key() && slices.ContainsFunc(c.places, func(other place) bool { return other.ip.Equal(p.ip) })
	})
}

// addressOwners is the base name of the Service at whose frontend each address stands that
// is one's, "" for those of nodes, and for public IPs of Services that stand nowhere. What else
// has an address has it beside those Services that name it.
func (f *facts) addressOwners() map[netip.Addr]string {
	owners := make(map[netip.Addr]string, len(f.ips))
	note := func(address, owner string) {
		if a, err := netip.ParseAddr(address); err == nil {
			owners[a] = owner
		}
	}
	for _, ip := range f.ips {
		at := ip.Properties.IPConfiguration
		if at != nil && looksOwned(at.ID.Name()) {
			note(ip.Properties.IPAddress, ownerBase(at.ID.Name()))
		} else if _, managed := servicesIn(ip.Tags); managed {
			note(ip.Properties.IPAddress, "")
		}
	}
	for _, s := range f.sides {
		for _, fe := range s.lb.Properties.FrontendIPConfigurations {
			if looksOwned(fe.Name) {
				note(fe.Properties.PrivateIPAddress, ownerBase(fe.Name))
			}
		}
	}
	for a := range f.nodeIPs {
		owners[a] = ""
	}
	return owners
}
