package loadbalancer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
)

// place is where an address of a Service is served: at a frontend of its own, or
// together with another Service at that one's.
type place struct {
	address
	side     *side
	frontend string   // its name
	own      bool     // no other Service's
	ip       azure.ID // the public IP, "" where the address is private
	subnetID azure.ID // of a private address
	ownPool  string   // that its packets go to instead of the cluster's, "" for that
	link     azure.ID // private link service that it asks for there, "" for none
	leads    bool     // it says what that is like
}

func (p place) frontendID() azure.ID {
	return p.side.id.Child(network.FrontendIPConfigurations, p.frontend)
}

func (p place) spot() spot { return spot{p.side, p.frontend} }

// pool is the backend pool that the place's packets go to.
func (p place) pool(c Config) azure.ID {
	return p.side.id.Child(network.BackendAddressPools, firstOf(p.ownPool, c.poolName(p.family)))
}

// target is what an address is known by before it has a place: the id of its public
// IP, or the private address, "" for one of Azure's choice.
type target struct {
	ip      azure.ID
	private string
}

func (t target) key() string {
	if t.ip != "" {
		return t.ip.Key()
	}
	return t.private
}

// targetOf is what a frontend's address is known by.
func targetOf(fe network.FrontendIPConfiguration) target {
	if ref := fe.PublicIPAddress; ref != nil {
		return target{ip: ref.ID}
	}
	return target{private: plainAddress(fe.PrivateIPAddress)}
}

// plainAddress is an address in the one way to write it that this package uses: Azure keeps
// an IPv6 address as somebody has written it. A text that is no address stays as it is.
func plainAddress(text string) string {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	return ip.Unmap().String()
}

// search finds the places of all live Services of a commit.
type search struct {
	*facts
	found    *problems
	gone     map[string]bool       // base names, in lower case
	wishes   map[string]wish       // by base name, in lower case
	commit   []wish                // live and gone
	at       map[string]spot       // where an address stands, by its key
	taken    map[string][]taking   // what stands at a frontend when all is done, by the spot's key
	linked   map[string]string     // who is the first to have a private link service, by its id key
	staying  map[*side]int         // rules that are there and stay
	planned  map[*side]int         // rules that come with the commit
	leading  map[ruleGroup]int     // rules that lead to the nodes when all is done
	pools    map[string]string     // whose the pools of Services of policy Local are, by side and name
	linkSide map[string]*side      // where those stand
	linkTo   map[string]azure.ID   // which one the first asks for at a frontend, by its id key
	four     map[*side]bool        // which load balancers have IPv4 when all is done
	coming   map[string][]string   // who comes to a managed public IP, by its id key
	tagged   map[string]azure.Tags // what those bring who found their place at a public IP, by its id key
}

// taking is a rule that stands at a frontend.
type taking struct {
	use
	service string
}

// findPlaces finds for each wish where its addresses are served. Those that have a
// frontend of their kind come first, so that nobody loses a port to a newcomer.
//
// Who is refused stays where he is, which others may have counted on not to be so:
// then all is done again without him.
func (f *facts) findPlaces(wishes, gone []wish, found *problems) []wish {
	for {
		live := f.tryPlaces(wishes, gone, found)
		if len(live) == len(wishes) {
			return live
		}
		wishes = live
	}
}

func (f *facts) tryPlaces(wishes, gone []wish, found *problems) []wish {
	s := search{facts: f, found: found, commit: slices.Concat(wishes, gone), coming: map[string][]string{}, tagged: map[string]azure.Tags{}, gone: map[string]bool{}, wishes: make(map[string]wish, len(wishes)), at: map[string]spot{}, taken: map[string][]taking{},
		linked: map[string]string{}, linkSide: map[string]*side{}, linkTo: map[string]azure.ID{}, four: map[*side]bool{},
		planned: map[*side]int{}, pools: map[string]string{}}
	for _, w := range gone {
		s.gone[strings.ToLower(w.base)] = true
	}
	for _, w := range wishes {
		s.wishes[strings.ToLower(w.base)] = w
	}
	s.seed()
	s.countRules()
	var live []wish
	for _, w := range s.inTurn(wishes) {
		var wrong problems
		places := s.places(w, &wrong)
		s.warnFurther(w, places, &wrong)
		if *found = append(*found, wrong...); wrong.blocking() {
			continue
		}
		w.places = places
		for _, p := range places {
			s.note(w, p)
			s.noteLink(w, p)
			s.noteListed(w, p)
			s.noteTags(w, p)
		}
		live = append(live, w)
	}
	slices.SortStableFunc(live, func(a, b wish) int { return strings.Compare(a.service.Key(), b.service.Key()) })
	return live
}

// inTurn puts the wishes in the order in which they find their places: first those that
// have a frontend of their kind; who has IPv6 alone needs others with IPv4 beside him; and
// who shares an address goes where its owner goes.
func (s *search) inTurn(wishes []wish) []wish {
	owners := map[string]string{} // of addresses, by their keys
	for _, w := range wishes {
		for _, a := range w.addresses {
			t, _ := s.quietTarget(w, a)
			if w.internal {
				t.private = s.statusAddress(w, place{address: a, subnetID: s.Config.subnet(w.subnet)})
			}
			if !a.given() && t.key() != "" {
				owners[t.key()] = strings.ToLower(w.base)
			}
		}
	}
	turn := make(map[string]int, len(wishes))
	for _, w := range wishes {
		there := slices.ContainsFunc(s.ofOwner(w.base), func(at spot) bool { return at.side.internal == w.internal })
		if !there {
			turn[w.base] = 4 + 2*w.ipv6Alone()
		}
		if slices.ContainsFunc(w.addresses, func(a address) bool { return s.waitsForOwner(w, a, owners, there) }) {
			turn[w.base]++
		}
	}
	return slices.SortedStableFunc(slices.Values(wishes), func(a, b wish) int { return turn[a.base] - turn[b.base] })
}

// waitsForOwner reports whether an address that a Service names has an owner who finds his
// place before: he has the frontend already, or he is to make it.
func (s *search) waitsForOwner(w wish, a address, owners map[string]string, there bool) bool {
	t, ok := s.quietTarget(w, a)
	if !ok || !a.given() || t.key() == "" {
		return false
	}
	at, stands := s.at[t.key()]
	owner := owners[t.key()]
	if stands {
		owner = ownerBase(at.name)
	}
	return stands == there && owner != "" && owner != strings.ToLower(w.base)
}

// ipv6Alone is 1 for a Service without IPv4, else 0.
func (w wish) ipv6Alone() int {
	if slices.ContainsFunc(w.addresses, func(a address) bool { return !a.is6() }) {
		return 0
	}
	return 1
}

// seed notes where addresses stand now, but for those of the commit's Services that
// give them up, and where others than those have IPv4.
func (s *search) seed() {
	for _, side := range s.sides {
		for _, fe := range side.lb.Properties.FrontendIPConfigurations {
			at := spot{side, fe.Name}
			t := targetOf(fe.Properties)
			owner := ownerBase(fe.Name)
			if _, live := s.wishes[owner]; !live && !s.gone[owner] && !s.is6(fe.Properties) {
				s.four[side] = true
			}
			if t.key() != "" && !s.isGivenUp(at, t) {
				s.at[t.key()] = at
			}
		}
	}
}

// isGivenUp reports whether the owner of a frontend leaves it, or leaves its address,
// and nobody else stands there.
func (s *search) isGivenUp(at spot, t target) bool {
	owner := ownerBase(at.name)
	w, live := s.wishes[owner]
	if !live && !s.gone[owner] {
		return false
	}
	for _, u := range at.side.uses[strings.ToLower(at.name)] {
		if u.owner != owner && !s.gone[u.owner] && s.wants(u.owner, t) {
			return false
		}
	}
	return !live || s.givesUp(w, at, t)
}

// givesUp reports whether the owner of a frontend asks for another one, or for another address.
func (f *facts) givesUp(w wish, at spot, t target) bool {
	if w.internal != at.side.internal {
		return true
	}
	for _, a := range w.addresses {
		if a.frontend() == at.name {
			want, _ := f.quietTarget(w, a)
			return want.key() != "" && want.key() != t.key()
		}
	}
	return true
}

// wants reports whether what stands at an address wants to be there: a Service of the
// commit may ask for another one.
func (s *search) wants(owner string, t target) bool {
	w, live := s.wishes[owner]
	if !live {
		return true
	}
	return slices.ContainsFunc(w.addresses, func(a address) bool {
		want, _ := s.quietTarget(w, a)
		return want.key() == t.key()
	})
}

// target is what an address of a Service shall be.
func (f *facts) target(w wish, a address, wrong *problems) (target, bool) {
	if w.internal {
		return target{private: a.pinned}, true
	}
	id, ok := f.publicIPFor(w, a, wrong)
	return target{ip: id}, ok
}

// quietTarget is target without a word about what is wrong.
func (f *facts) quietTarget(w wish, a address) (target, bool) {
	var ignored problems
	return f.target(w, a, &ignored)
}

// places finds where a Service's addresses are served.
func (s *search) places(w wish, wrong *problems) []place {
	var places []place
	side := s.choose(w, wrong)
	for _, a := range w.addresses {
		t, ok := s.target(w, a, wrong)
		if !ok {
			continue
		}
		p := place{address: a, side: side, frontend: a.frontend(), own: true, ip: t.ip}
		if w.internal {
			p.subnetID = s.Config.subnet(w.subnet)
			p.pinned = firstOf(a.pinned, s.recall(w, p))
		}
		if at, stands := s.at[t.key()]; t.key() != "" && stands && ownerBase(at.name) != strings.ToLower(w.base) {
			p.side, p.frontend, p.own = at.side, at.name, false
			s.refuseSharing(w, p, t, wrong)
		}
		if len(s.Config.Balancers) > 0 && isLocal(w.service) && s.byIP(p.side) {
			p.ownPool = localPoolName(w.service.Service, a.family)
		}
		s.refuseTooMany(w, p, wrong)
		s.refuseTags(w, p, wrong)
		s.refuseKinds(w, p, wrong)
		s.warnPrefix(w, p, wrong)
		s.refuseUnlisted(w, p, wrong)
		s.refuseOtherLabel(w, p, wrong)
		s.refusePool(w, p, wrong)
		s.refuseAttached(w, p, wrong)
		s.refuseOccupied(w, p, t, wrong)
		s.refuseConflicts(w, p, wrong)
		p.link = s.linkID(w, p)
		p.leads = s.leader(w, p) == w.service.Key()
		s.refuseLink(w, p, wrong)
		places = append(places, p)
	}
	return places
}

// note remembers a place for the Services that come after.
func (s *search) note(w wish, p place) {
	key := target{ip: p.ip, private: p.pinned}.key()
	if _, known := s.at[key]; key != "" && (p.own || !known) {
		s.at[key] = p.spot() // also of an address that has been elsewhere
	}
	s.pools[p.side.id.Key()+"/"+p.ownPool] = w.service.Key()
	s.four[p.side] = s.four[p.side] || !p.is6()
	for _, r := range p.rules {
		if !p.side.rules[strings.ToLower(r.name)] {
			s.planned[p.side]++
			s.leading[p.side.group(p.is6())]++
		}
		s.taken[p.spot().key()] = append(s.taken[p.spot().key()], taking{
			use{"rule", r.name, r.protocol, r.port, r.port, strings.ToLower(w.base)}, w.service.Key(),
		})
	}
}

// refuseSharing keeps apart what cannot stand at one frontend.
func (s *search) refuseSharing(w wish, p place, t target, wrong *problems) {
	switch {
	case !p.given():
		wrong.refuse(w.service.Key(), ReasonConflict, "its public IP %s stands at frontend %s of %s already, allowed is one that the annotation %s or spec.loadBalancerIP names",
			t.ip.Name(), p.frontend, p.side.id.Name(), key.PublicIPName.Name)
	case p.side.internal != w.internal:
		wrong.refuse(w.service.Key(), ReasonConflict, "%s belongs to frontend %s of load balancer %s, allowed is one of the same kind as the Service", p.asked, p.frontend, p.side.id.Name())
	}
}

// refuseAttached refuses a public IP that something else has.
func (s *search) refuseAttached(w wish, p place, wrong *problems) {
	ip := s.ips[p.ip.Key()].Properties
	at := ip.IPConfiguration
	switch {
	case p.ip == "":
		return
	case ip.NATGateway != nil:
		at = ip.NATGateway
	case at == nil || s.sideWith(at.ID.Parent()) != nil:
		return
	}
	wrong.refuse(w.service.Key(), ReasonAddress, "%s: public IP %s is in use by %s, allowed is one that nothing else uses", firstOf(p.asked, "its own"), p.ip, at.ID)
}

// refusePrivate refuses a private address that cannot be had: Azure would refuse the whole
// load balancer.
func (f *facts) refusePrivate(w wish, found *problems) {
	subnet := f.Config.subnet(w.subnet)
	for _, a := range w.addresses {
		ip, err := netip.ParseAddr(a.pinned)
		if !w.internal || err != nil || subnet == "" {
			continue
		}
		if why := f.subnets[subnet.Key()].refuses(ip); why != "" {
			found.refuse(w.service.Key(), ReasonAddress, "%s %s %q, allowed is another address of %s", a.asked, why, subnet.Name(), f.subnets[subnet.Key()])
		} else if f.nodeIPs[ip] {
			found.refuse(w.service.Key(), ReasonAddress, "%s is in use by a node, allowed is an address of the subnet %q that nothing else has", a.asked, subnet.Name())
		}
	}
}

// refuseOccupied keeps a Service from taking the address away from those that share
// its frontend.
func (s *search) refuseOccupied(w wish, p place, t target, wrong *problems) {
	fe, exists := p.spot().frontend()
	if !p.own || !exists || t.key() == "" {
		return
	}
	was := targetOf(fe.Properties)
	if was.key() == t.key() {
		return
	}
	for _, u := range p.side.uses[strings.ToLower(p.frontend)] {
		if u.owner != strings.ToLower(w.base) && !s.gone[u.owner] && s.wants(u.owner, was) {
			wrong.refuse(w.service.Key(), ReasonConflict, "the address of frontend %s cannot change while the %s %q of %s stands at it, allowed is the address that it has; asked for is %s",
				p.frontend, u.what, u.name, s.whose(u, p), s.addressOf(p))
			return
		}
	}
}

// refuseConflicts finds what others have put at the Service's ports.
func (s *search) refuseConflicts(w wish, p place, wrong *problems) {
	for _, r := range p.rules {
		refuse := func(u use, of string) {
			port := "all ports"
			if r.port > 0 {
				port = fmt.Sprintf("port %d/%s", r.port, r.protocol)
			}
			wrong.refuse(w.service.Key(), ReasonConflict, "%s of %s: the %s %q of %s stands there at frontend %s already, allowed is a port that is free",
				port, s.addressOf(p), u.what, u.name, of, p.frontend)
		}
		for _, u := range p.side.uses[strings.ToLower(p.frontend)] {
			if u.owner != strings.ToLower(w.base) && u.takes(r.protocol, r.port) && s.stays(u) {
				refuse(u, s.whose(u, p))
			}
		}
		for _, u := range s.taken[p.spot().key()] {
			if u.owner != strings.ToLower(w.base) && u.takes(r.protocol, r.port) && !s.stands(p, u.name) {
				refuse(u.use, "Service "+u.service)
			}
		}
	}
}

// addressOf is the address of a place in a person's words, and where it is asked for.
func (s *search) addressOf(p place) string {
	text := "its own address"
	switch address := firstOf(p.pinned, s.addressAt(p.spot())); {
	case p.ip != "" && s.ips[p.ip.Key()].Properties.IPAddress != "":
		text = fmt.Sprintf("public IP %s (%s)", p.ip.Name(), s.ips[p.ip.Key()].Properties.IPAddress)
	case p.ip != "":
		text = "public IP " + p.ip.Name()
	case address != "":
		text = "address " + address
	}
	if p.asked != "" {
		text += ", named by " + p.asked
	}
	return text
}

// whose says to whom a use at a place belongs: as the cluster knows, or the tag of the public
// IP where it names nobody else that the cluster does not know.
func (f *facts) whose(u use, p place) string {
	if u.owner == "" {
		return "somebody else"
	}
	known := map[string]string{} // keys of Services, by base name in lower case
	for _, s := range f.Services {
		known[strings.ToLower(baseName(s.Service))] = s.Key()
	}
	for _, o := range f.Others {
		known[strings.ToLower(baseName(o))] = o.Namespace + "/" + o.Name
	}
	if key, ok := known[u.owner]; ok {
		return "Service " + key
	}
	tagged, _ := servicesIn(f.ips[p.ip.Key()].Tags)
	for _, key := range known {
		tagged = slices.DeleteFunc(tagged, func(name string) bool { return name == key })
	}
	if len(tagged) == 1 {
		return "Service " + tagged[0]
	}
	return "somebody else"
}

// stays reports whether a use is there after the commit, as far as its owner's wish
// tells.
func (s *search) stays(u use) bool {
	if s.gone[u.owner] {
		return false
	}
	w, live := s.wishes[u.owner]
	if !live || u.owner == "" {
		return true
	}
	for _, a := range w.addresses {
		if slices.ContainsFunc(a.rules, func(r rule) bool { return sameText(r.name, u.name) }) {
			return true
		}
	}
	return false
}

// stands reports whether a rule is at the place's frontend already.
func (s *search) stands(p place, name string) bool {
	return slices.ContainsFunc(p.side.uses[strings.ToLower(p.frontend)], func(u use) bool { return sameText(u.name, name) })
}

// refuseSubnets finds Services whose subnet is not there, or has no addresses of their
// families: Azure would say of such a one that it is full.
func (f *facts) refuseSubnets(w wish, found *problems) {
	if !w.internal {
		return
	}
	id := f.Config.subnet(w.subnet)
	if id == "" {
		found.refuse(w.service.Key(), ReasonSubnet, "an internal Service needs a subnet: vnetName and subnetName are not configured, allowed is the name of a subnet in %s or in the annotation %s",
			"the cloud configuration", key.InternalSubnet.Name)
		return
	}
	asked := "subnetName of the cloud configuration"
	if w.subnet != "" {
		asked = "annotation " + key.InternalSubnet.Name
	}
	f.refuseMissing(w, asked, id, found)
	for _, a := range w.addresses {
		if subnet := f.subnets[id.Key()]; subnet.lacks(a.family) {
			found.refuse(w.service.Key(), ReasonAddress, "%s: %q has no range of the family %s, it has %s, allowed is a subnet that has one, or a Service without %[3]s in spec.ipFamilies",
				asked, id.Name(), a.family, subnet)
		}
	}
}

// refuseMissing refuses a Service that asks for an address in a subnet that is not there.
func (f *facts) refuseMissing(w wish, asked string, subnet azure.ID, found *problems) {
	vnet := f.Config.virtualNetwork()
	_, networkAbsent := f.Have.Absent(vnet)
	_, networkUnread := f.Have.Unread(vnet, network.VirtualNetworks)
	switch {
	case subnet == "":
		found.refuse(w.service.Key(), ReasonSubnet, "%s: vnetName or subnetName is missing in the cloud configuration, allowed is the name of a subnet of the virtual network that is configured there", asked)
	case f.subnets[subnet.Key()].exists:
	case networkAbsent:
		found.refuse(w.service.Key(), ReasonSubnet, "%s: the virtual network %s of the subnet %q is not found, allowed is one that is there: make it, or configure another vnetName or vnetResourceGroup%s",
			asked, vnet, subnet.Name(), f.azureSays(vnet))
	default:
		or := ""
		if networkUnread {
			or = ", or the network is not there"
		}
		found.refuse(w.service.Key(), ReasonSubnet, "%s: %q is not found in virtual network %s%s, allowed is the name of one of its subnets", asked, subnet.Name(), vnet, or)
	}
}

// azureSays is what Azure said of a resource that is not there: it may be another thing that is
// missing, as its resource group.
func (f *facts) azureSays(id azure.ID) string {
	if said, absent := f.Have.Absent(id); absent {
		return "; Azure says: " + said
	}
	return ""
}

// recall is the private address that a frontend must ask for that is made anew, so that
// it is known before the frontend is there: the one that the Service has elsewhere, or has
// had so far. Of several that tell of one address the first one has it.
func (s *search) recall(w wish, p place) string {
	if at, moves := s.movesFrom(w, p.address, p.side); moves {
		return s.addressAt(at)
	}
	if fe, exists := p.spot().frontend(); exists && s.keepsPrivate(p, fe.Properties) {
		return ""
	}
	had := s.statusAddress(w, p)
	if at, stands := s.at[had]; stands && ownerBase(at.name) != strings.ToLower(w.base) {
		return ""
	}
	return had
}

// statusAddress is the address of a family that the Service has had so far and that
// lies in a subnet: it is asked for again where the frontend has to be made anew. The first
// one of a family is the Service's; behind it stand those that somebody else brings.
func (f *facts) statusAddress(w wish, p place) string {
	for _, in := range w.service.Status.LoadBalancer.Ingress {
		ip, err := netip.ParseAddr(in.IP)
		if ip = ip.Unmap(); err != nil || familyOf(ip) != p.family {
			continue
		}
		if f.subnets[p.subnetID.Key()].holds(ip) && !slices.Contains(w.further, ip) && f.isFree(ip, w) {
			return ip.String()
		}
		return ""
	}
	return ""
}

// isFree reports whether no other frontend and no node has a private address.
func (f *facts) isFree(ip netip.Addr, w wish) bool {
	for _, s := range f.sides {
		for _, fe := range s.lb.Properties.FrontendIPConfigurations {
			if targetOf(fe.Properties).private == ip.String() && ownerBase(fe.Name) != strings.ToLower(w.base) {
				return false
			}
		}
	}
	return !f.nodeIPs[ip]
}
