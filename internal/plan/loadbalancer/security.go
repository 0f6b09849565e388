package loadbalancer

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
)

// Priorities of managed rules: allow rules take the lowest free one upwards, the
// deny rule the highest downwards.
const (
	firstPriority = 500
	lastPriority  = 4095
)

// The limits of a security group.
const (
	mostRules    = 1000
	mostPrefixes = 4000 // of sources, and of destinations
)

// security decides the rules of the security group. Where an address is not known
// yet it says so in pending and leaves that Service's rules as they are. Services
// for which there is no room are refused, by UID.
func (f *facts) security(b batch, m *membership, stray []azure.ID, pending *[]string, found *problems) (node plan.Node, refused []string, ok bool) {
	if !f.groupExists {
		return plan.Node{}, nil, false
	}
	names, notes := b.names(), frameTags(f.Config, f.groupNotes(stray), f.group.Tags)
	over := f.handovers(b)
	if len(stray) > 0 && len(over) > 0 {
		// The load balancers wait for the notes, and the rules for the load balancers: they
		// come in the next round.
		return plan.Wanted(azure.Resource[network.SecurityGroup]{ID: f.Config.securityGroup(), Tags: notes}, "where "+summary(names)+" had addresses", names...), nil, true
	}
	rules := newRuleSet(f.group.Properties.SecurityRules)
	grants := make([][]grant, len(b.live))
	staying := map[string]map[string]bool{} // destinations that are opened again, by the rule's name
	for i, w := range b.live {
		some, unknown := f.grants(w, m)
		*pending = append(*pending, unknown...)
		grants[i] = some
		for _, g := range some {
			g.note(staying)
		}
	}
	f.withdraw(b, rules, staying)
	if f.Complete && !f.hasUnreadAddress() {
		for _, address := range rules.forget(f.knownDestinations(b)) { // first, for what it takes away leaves room
			f.unclaimed[address] = f.Config.SecurityGroupName
		}
	}
	f.follow(b, m, rules)
	for i, w := range b.live {
		before := rules.size()
		for _, g := range grants[i] {
			rules.open(g)
		}
		if why := rules.size().exceeds(before); why != "" {
			found.refuse(w.service.Key(), ReasonLimit, "network security group %s cannot take its rules: %s", f.Config.SecurityGroupName, why)
			refused = append(refused, string(w.service.UID))
		}
	}
	view := azure.Resource[network.SecurityGroup]{
		ID: f.Config.securityGroup(), Tags: notes,
		Properties: network.SecurityGroup{SecurityRules: rules.children()},
	}
	node = plan.Wanted(view, "who may reach "+summary(names), names...)
	node.After = involved(over)
	return node, refused, true
}

// grant opens destinations to those whom a Service lets in.
type grant struct {
	openings []opening
	implied  []opening // let nobody in whom those do not: rules that say so may stay
	family   v1.IPFamily
	to       []string
	deny     bool // everything else
}

// note adds the grant's destinations to those of the rules that it opens.
func (g grant) note(staying map[string]map[string]bool) {
	add := func(name string) {
		name = strings.ToLower(name)
		if staying[name] == nil {
			staying[name] = make(map[string]bool, len(g.to))
		}
		for _, address := range g.to {
			staying[name][address] = true
		}
	}
	for _, o := range slices.Concat(g.openings, g.implied) {
		add(o.name())
	}
	if g.deny {
		add(denyRuleName(g.family))
	}
}

// grants are the openings of a Service's addresses, and the addresses that are not
// known yet.
func (f *facts) grants(w wish, m *membership) (grants []grant, pending []string) {
	if !w.access.open {
		return nil, nil
	}
	for _, family := range []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} {
		to, atNodes := map[string]bool{}, map[string]bool{}
		for _, p := range w.places {
			if p.family != family {
				continue
			}
			if !p.floating {
				for _, ip := range m.addresses(p) {
					atNodes[ip] = true
				}
				continue
			}
			if address := f.placeAddress(p); address != "" {
				to[address] = true
			} else if len(w.access.from[family]) > 0 || w.access.deny {
				pending = append(pending, pendingRule(p, w))
			}
		}
		for _, ip := range w.further {
			switch {
			case familyOf(ip) != family:
			case w.fixed: // they are brought to the same ports
				atNodes[ip.String()] = true
			default:
				to[ip.String()] = true
			}
		}
		nodePort := !highlyAvailable(w.service, w.internal)
		grants = append(grants,
			w.grant(family, false, to, w.access.deny),
			w.grant(family, nodePort, atNodes, w.access.deny && w.fixed))
	}
	return grants, pending
}

// grant opens addresses of a family at the Service's own ports, or at its node ports.
func (w wish) grant(family v1.IPFamily, nodePort bool, to map[string]bool, deny bool) grant {
	return grant{
		w.access.openings(w.service, family, nodePort), w.access.implied(w.service, family, nodePort),
		family, slices.Sorted(maps.Keys(to)), deny,
	}
}

// placeAddress is the address of a place as far as is known.
func (f *facts) placeAddress(p place) string {
	if p.ip != "" {
		return f.ips[p.ip.Key()].Properties.IPAddress
	}
	if p.pinned != "" {
		return p.pinned
	}
	fe, exists := p.spot().frontend()
	if !exists || !f.keepsPrivate(p, fe.Properties) {
		return ""
	}
	return plainAddress(fe.Properties.PrivateIPAddress)
}

func pendingRule(p place, w wish) string {
	if p.ip != "" {
		return pendingAddress(p.ip, w)
	}
	return "the security group needs the address of frontend " + p.frontend + " [" + w.service.Key() + "]"
}

// withdraw takes the batch's Services out of all rules, but for what others need and
// what is opened again.
func (f *facts) withdraw(b batch, rules *ruleSet, staying map[string]map[string]bool) {
	rules.drop(func(r *securityRule) bool { return isLegacyRule(r.Child) && b.base[ownerBase(r.Name)] })
	owners := f.addressOwners()
	needed := f.neededByOthers(b, rules)
	atNodes := false
	for _, w := range slices.Concat(b.live, b.gone) {
		atNodes = atNodes || f.usesNodes(w)
		for _, address := range f.addressesOf(w, owners) {
			rules.withdraw(address, staying, f.neededAt(needed, address)...)
		}
	}
	nodes := slices.SortedFunc(maps.Keys(f.nodeIPs), netip.Addr.Compare)
	// Who has all Services before him need not guess whether one was at the nodes.
	atNodes = atNodes || !f.Complete && wereAt(nodes, b, rules)
	if !atNodes && !f.Complete {
		return
	}
	for _, ip := range nodes {
		if rules.withdraw(ip.String(), staying, f.neededAt(needed, ip.String())...) && !atNodes {
			f.unclaimed[ip.String()] = f.Config.SecurityGroupName
		}
	}
}

// usesNodes reports whether packets of a Service arrive at nodes' own addresses, now
// or when all is done.
func (f *facts) usesNodes(w wish) bool {
	for _, p := range w.places {
		if !p.floating {
			return true
		}
	}
	for _, s := range f.sides {
		for _, r := range s.ruled[strings.ToLower(w.base)] {
			if floats := r.EnableFloatingIP; floats == nil || !*floats {
				return true
			}
		}
	}
	return false
}

// follow lets those in at nodes that come who are let in at nodes because of Services that are
// not of the batch: their packets arrive there from now on, and one that is refused would never
// say so.
func (f *facts) follow(b batch, m *membership, rules *ruleSet) {
	open, in := rules.openAt(f.nodeIPs), map[azure.ID][]string{}
	for _, s := range f.sides {
		for _, c := range s.lb.Properties.LoadBalancingRules {
			r, owner := c.Properties, ownerBase(c.Name)
			some := open[portKey(r.Protocol, strconv.Itoa(int(r.BackendPort)))]
			if len(some) == 0 || f.alive[owner] == nil || b.base[owner] || r.BackendAddressPool == nil || r.EnableFloatingIP != nil && *r.EnableFloatingIP {
				continue
			}
			pool := r.BackendAddressPool.ID
			if _, known := in[pool]; !known {
				in[pool] = slices.Concat(m.addressesIn(pool, v1.IPv4Protocol), m.addressesIn(pool, v1.IPv6Protocol))
			}
			for _, one := range some {
				rules.extend(one, in[pool])
			}
		}
	}
}

// wereAt reports whether a port of the batch's Services at the nodes, which nobody else has
// there, is open at one: the load balancer may have let the rule go that led there already.
func wereAt(nodes []netip.Addr, b batch, rules *ruleSet) bool {
	own := map[string]bool{}
	for _, w := range slices.Concat(b.live, b.gone) {
		internal, _ := key.Internal.Read(w.service.Annotations) // of who is gone nothing else is read
		for _, o := range portsByProtocol(w.service, !highlyAvailable(w.service, internal)) {
			for _, port := range o.ports {
				own[portKey(o.protocol, port)] = true
			}
		}
	}
	return slices.ContainsFunc(nodes, func(ip netip.Addr) bool {
		return slices.ContainsFunc(rules.having(ip.String()), func(r *securityRule) bool {
			return slices.ContainsFunc(ports(r.Properties), func(port string) bool { return own[portKey(r.Properties.Protocol, port)] })
		})
	})
}

// anyNode stands for the addresses of all nodes.
const anyNode = "nodes"

// anyNodeOf stands for those of a family.
func anyNodeOf(family v1.IPFamily) string { return anyNode + "/" + string(family) }

// denial is needed where somebody wants everything else denied.
const denial = "denial"

// neededAt is what others need at an address, which may be a node's, whoever names it.
func (f *facts) neededAt(needed map[string]map[string]bool, address string) []map[string]bool {
	ip, err := netip.ParseAddr(address)
	if err != nil || !f.nodeIPs[ip] {
		return []map[string]bool{needed[address]}
	}
	return []map[string]bool{needed[anyNode], needed[anyNodeOf(familyOf(ip))], needed[address]}
}

// neededByOthers is what others than the batch's Services serve at each address, as
// "tcp/80", and denials: from the rules that Services have at frontends, and from the
// objects of Services that are known. Who is not known may want a denial wherever he is.
func (f *facts) neededByOthers(b batch, rules *ruleSet) map[string]map[string]bool {
	needed := map[string]map[string]bool{}
	add := func(address, what string) {
		if needed[address] == nil {
			needed[address] = map[string]bool{}
		}
		needed[address][what] = true
	}
	known := map[string]*wish{} // Services, by base name in lower case
	for _, o := range f.others(b) {
		w := readKind(o, &problems{})
		w.access = readAccess(w, &problems{})
		known[strings.ToLower(w.base)] = &w
		f.needsOf(w, rules, add)
	}
	for _, s := range f.sides {
		for _, r := range s.lb.Properties.LoadBalancingRules {
			if owner := ownerBase(r.Name); r.Properties.FrontendIPConfiguration != nil && looksOwned(r.Name) && !b.base[owner] {
				f.needsOfRule(s, r.Properties, known[owner], add)
			}
		}
	}
	return needed
}

// needsOfRule adds what a Service needs where a rule of it leads. nil is one that is not known.
func (f *facts) needsOfRule(s *side, r network.LoadBalancingRule, w *wish, add func(address, what string)) {
	address, port := f.addressAt(spot{s, r.FrontendIPConfiguration.ID.Name()}), r.FrontendPort
	denied := w == nil || w.access.deny
	if r.EnableFloatingIP == nil || !*r.EnableFloatingIP {
		address, port = anyNode, r.BackendPort
		if w != nil { // its object says what it wants denied, and of all ports which ones are let in
			denied = false
			if port == 0 && highlyAvailable(w.service, w.internal) {
				return
			}
		}
	}
	if address == "" {
		return
	}
	add(address, portKey(r.Protocol, strconv.Itoa(int(port))))
	if denied {
		add(address, denial)
	}
}

// others are the Services that are known and not of the batch.
func (f *facts) others(b batch) []Service {
	var all []Service
	for _, o := range f.Others {
		all = append(all, Service{Service: o})
	}
	for _, s := range f.Services { // those that are left as they are
		if !b.base[strings.ToLower(baseName(s.Service))] {
			all = append(all, s)
		}
	}
	return all
}

// needsOf adds what a Service serves, and wants denied, at the addresses that its object
// tells of.
func (f *facts) needsOf(w wish, rules *ruleSet, add func(address, what string)) {
	s := w.service
	nodePort := w.fixed && !highlyAvailable(s, w.internal)
	further, _ := key.AdditionalIPs.Read(s.Annotations)
	serve := func(address string) {
		for _, o := range portsByProtocol(s, nodePort) {
			for _, port := range o.ports {
				add(address, portKey(o.protocol, port))
			}
		}
	}
	for _, address := range knownAddresses(s) {
		serve(address)
		if w.access.deny && (!w.fixed || slices.Contains(further, address)) {
			add(address, denial)
		}
	}
	for _, family := range familiesOf(s) {
		if w.access.deny && w.fixed {
			add(anyNodeOf(family), denial)
		}
		if highlyAvailable(s, w.internal) && !w.floats(family) {
			f.needsOfAllPorts(w, family, rules, add)
		}
	}
}

// needsOfAllPorts adds what a Service with one rule for all ports needs at the nodes' own
// addresses, where others may have the same ports. Where all that it asks for is there, it is
// that alone. Else it may have asked for something else before, of which nothing tells but the
// security rules.
func (f *facts) needsOfAllPorts(w wish, family v1.IPFamily, rules *ruleSet, add func(address, what string)) {
	asked := w.access.openings(w.service, family, false)
	has := !slices.ContainsFunc(asked, func(o opening) bool {
		r, there := rules.byName[strings.ToLower(o.name())]
		return !there || !r.leadsTo(f.nodeIPs)
	})
	for _, o := range asked {
		if has {
			add(anyNodeOf(family), ruleKey(o.name()))
			continue
		}
		for _, port := range o.ports {
			add(anyNodeOf(family), portKey(o.protocol, port))
		}
	}
	if !has && f.usesNodes(w) {
		add(anyNodeOf(family), allPorts)
	}
}

// knownAddresses are those in a Service's status, and those that it names besides.
func knownAddresses(s Service) []string {
	var all []string
	for _, in := range s.Status.LoadBalancer.Ingress {
		all = append(all, in.IP)
	}
	further, _ := key.AdditionalIPs.Read(s.Annotations)
	return append(all, further...)
}

// addressesOf lists the addresses that a Service has or had. What its status says
// counts too, unless it is by now somebody else's of whom is not known what he needs there.
func (f *facts) addressesOf(w wish, owners map[netip.Addr]string) []string {
	var addresses []string
	add := func(address string) {
		if address != "" {
			addresses = append(addresses, address)
		}
	}
	for _, p := range w.places {
		add(f.placeAddress(p))
	}
	for _, id := range f.managedIPsOf(w) {
		add(f.ips[id.Key()].Properties.IPAddress)
	}
	for _, at := range f.spotsOf(w.base) {
		add(f.addressAt(at))
	}
	if w.service.Gone { // it may have got no further than to its security rules
		for _, address := range f.asked(w.service) {
			add(address)
		}
	}
	for _, in := range w.service.Status.LoadBalancer.Ingress {
		a, err := netip.ParseAddr(in.IP)
		if owner, taken := owners[a.Unmap()]; err == nil && (!taken || owner == strings.ToLower(w.base) || f.shows(owner, a.Unmap())) {
			add(a.Unmap().String())
		}
	}
	for _, ip := range w.further {
		add(ip.String())
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// shows reports whether a Service, by its base name, is known to have an address: its object
// tells all that it needs there.
func (f *facts) shows(base string, address netip.Addr) bool {
	s := f.alive[base]
	return s != nil && slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(in v1.LoadBalancerIngress) bool { return in.IP == address.String() })
}

// knownDestinations are all addresses that anything of the cluster has.
func (f *facts) knownDestinations(b batch) map[string]bool {
	known := map[string]bool{}
	for ip := range f.nodeIPs {
		known[ip.String()] = true
	}
	for _, s := range f.sides {
		for _, fe := range s.lb.Properties.FrontendIPConfigurations {
			if owner := ownerBase(fe.Name); f.alive[owner] != nil || !looksOwned(fe.Name) {
				known[f.addressAt(spot{s, fe.Name})] = true
			}
		}
	}
	for _, o := range f.others(b) {
		for _, address := range knownAddresses(o) {
			known[address] = true
		}
	}
	for _, o := range f.Others {
		f.noteAsked(Service{Service: o}, known)
	}
	for _, w := range b.live {
		for _, p := range w.places {
			known[f.placeAddress(p)] = true
		}
		for _, ip := range w.further {
			known[ip.String()] = true
		}
	}
	return known
}

// noteAsked notes the addresses that a Service is about to have: somebody else may be
// making them.
func (f *facts) noteAsked(s Service, known map[string]bool) {
	for _, id := range f.ipsOf[s.Key()] {
		known[f.ips[id.Key()].Properties.IPAddress] = true
	}
	for _, address := range f.asked(s) {
		known[address] = true
	}
}

// asked are the addresses that a Service asks for, and those that it would get, as far as
// they are known.
func (f *facts) asked(s Service) (addresses []string) {
	w, _ := readWish(s, f.Config)
	for _, a := range w.addresses {
		addresses = append(addresses, a.pinned)
		if id, found := f.publicIPFor(w, a, &problems{}); found && !w.internal {
			addresses = append(addresses, f.ips[id.Key()].Properties.IPAddress)
		}
	}
	for _, ip := range w.further {
		addresses = append(addresses, ip.String())
	}
	return addresses
}

func portKey(protocol, port string) string { return strings.ToLower(protocol) + "/" + port }

// allPorts is needed where a rule for all ports leads, of which nothing tells who is let in.
const allPorts = "all/0"

// ruleKey is needed where somebody needs one security rule, and nothing else.
func ruleKey(name string) string { return "rule/" + strings.ToLower(name) }

// ruleSet is the rules of a security group while they are being decided.
type ruleSet struct {
	all    []*securityRule
	byName map[string]*securityRule
	used   map[int32]bool             // priorities
	to     map[string][]*securityRule // managed rules by destination, made when asked for
	counts size
}

// size is what Azure limits of a security group.
type size struct{ rules, sources, destinations int }

// exceeds says which limit is passed that was not, or not so far, before.
func (s size) exceeds(before size) string {
	for _, limit := range []struct {
		what            string
		now, then, most int
	}{
		{"rules", s.rules, before.rules, mostRules},
		{"source prefixes", s.sources, before.sources, mostPrefixes},
		{"destination prefixes", s.destinations, before.destinations, mostPrefixes},
	} {
		if limit.now > limit.most && limit.now > limit.then {
			return fmt.Sprintf("it would have too many %s, allowed by Azure are %d: take ranges or ports away, or let Services have the same, which share their rules", limit.what, limit.most)
		}
	}
	return ""
}

// size counts the rules as they are by now.
func (s *ruleSet) size() size { return s.counts }

// count adds a rule to the counts, or takes it away by -1.
func (s *ruleSet) count(r *securityRule, by int) {
	s.counts.rules += by
	s.counts.sources += by * len(sources(r.Properties))
}

type securityRule struct {
	azure.Child[network.SecurityRule]
	to      map[string]bool // destinations of a managed rule, nil of others
	changed bool
}

func newRuleSet(children []azure.Child[network.SecurityRule]) *ruleSet {
	set := &ruleSet{byName: make(map[string]*securityRule, len(children)), used: make(map[int32]bool, len(children))}
	for _, c := range children {
		r := &securityRule{Child: c}
		if isManagedRule(c) || isLegacySharedRule(c) {
			r.to = map[string]bool{}
			for _, address := range destinations(c.Properties) {
				r.to[address] = true
			}
		}
		set.add(r)
		set.count(r, 1)
		set.counts.destinations += len(destinations(c.Properties))
	}
	return set
}

func isManagedRule(c azure.Child[network.SecurityRule]) bool {
	return len(c.Name) >= len(managedRulePrefix) && sameText(c.Name[:len(managedRulePrefix)], managedRulePrefix) &&
		c.Properties.Priority >= firstPriority
}

// isLegacyRule reports whether a rule is one that older controllers wrote, for one
// port of one Service: base-TCP-80-Internet.
func isLegacyRule(c azure.Child[network.SecurityRule]) bool {
	parts := strings.SplitN(c.Name, "-", 4)
	return len(parts) == 4 && looksOwned(c.Name) && slices.Contains([]string{"TCP", "UDP", "SCTP"}, strings.ToUpper(parts[1])) &&
		c.Properties.Priority >= firstPriority
}

// isLegacySharedRule reports whether a rule is one that older controllers wrote, for one
// port of several Services: shared-TCP-80-Internet. What it has to say stands in managed
// rules now, so that it loses the Services' addresses, and goes with the last one.
func isLegacySharedRule(c azure.Child[network.SecurityRule]) bool {
	parts := strings.SplitN(c.Name, "-", 4)
	return len(parts) == 4 && parts[0] == "shared" && slices.Contains([]string{"TCP", "UDP", "SCTP"}, parts[1]) &&
		slices.Equal(ports(c.Properties), []string{parts[2]}) && sameText(c.Properties.Direction, "Inbound") &&
		c.Properties.Priority >= firstPriority
}

// drop takes rules out as a whole.
func (s *ruleSet) drop(which func(*securityRule) bool) {
	s.all = slices.DeleteFunc(s.all, func(r *securityRule) bool {
		if !which(r) {
			return false
		}
		delete(s.byName, strings.ToLower(r.Name))
		delete(s.used, r.Properties.Priority)
		s.count(r, -1)
		s.counts.destinations -= len(destinations(r.Properties))
		return true
	})
}

func destinations(r network.SecurityRule) []string {
	if r.DestinationAddressPrefix != nil && *r.DestinationAddressPrefix != "" {
		return append([]string{*r.DestinationAddressPrefix}, r.DestinationAddressPrefixes...)
	}
	return r.DestinationAddressPrefixes
}

func ports(r network.SecurityRule) []string {
	if r.DestinationPortRange != nil && *r.DestinationPortRange != "" {
		return append([]string{*r.DestinationPortRange}, r.DestinationPortRanges...)
	}
	return r.DestinationPortRanges
}

func sources(r network.SecurityRule) []string {
	if r.SourceAddressPrefix != nil && *r.SourceAddressPrefix != "" {
		return append([]string{*r.SourceAddressPrefix}, r.SourceAddressPrefixes...)
	}
	return r.SourceAddressPrefixes
}

func sourcePorts(r network.SecurityRule) []string {
	if r.SourcePortRange != nil && *r.SourcePortRange != "" {
		return append([]string{*r.SourcePortRange}, r.SourcePortRanges...)
	}
	return r.SourcePortRanges
}

func (s *ruleSet) add(r *securityRule) {
	s.all = append(s.all, r)
	s.byName[strings.ToLower(r.Name)] = r
	s.used[r.Properties.Priority] = true
}

// withdraw takes an address out of all managed rules, but for those, and the ports, that
// others need there, and reports whether it was in any.
func (s *ruleSet) withdraw(address string, staying map[string]map[string]bool, needed ...map[string]bool) (was bool) {
	for _, r := range s.having(address) {
		if staying[strings.ToLower(r.Name)][address] {
			continue
		}
		needs := func(what string) bool {
			return slices.ContainsFunc(needed, func(n map[string]bool) bool { return n[what] })
		}
		all := ports(r.Properties)
		rest := slices.DeleteFunc(slices.Clone(all), func(port string) bool {
			return !needs(portKey(r.Properties.Protocol, port)) && !needs(allPorts)
		})
		deny := sameText(r.Properties.Access, "Deny")
		if needs(ruleKey(r.Name)) || deny && needs(denial) || len(rest) == len(all) && !deny {
			continue
		}
		was = true
		s.dismiss(r, address)
		if a, err := netip.ParseAddr(address); len(rest) > 0 && !deny && err == nil {
			s.allow(opening{family: familyOf(a), protocol: r.Properties.Protocol, sources: sources(r.Properties), ports: rest}, address)
		}
	}
	return was
}

// having lists the managed rules to an address.
func (s *ruleSet) having(address string) []*securityRule {
	if s.to == nil {
		s.to = map[string][]*securityRule{}
		for _, r := range s.all {
			for a := range r.to {
				s.to[a] = append(s.to[a], r)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(s.to[address]), func(r *securityRule) bool { return !r.to[address] })
}

// openAt are the managed rules that lead to one of the addresses, by the ports that they open.
func (s *ruleSet) openAt(addresses map[netip.Addr]bool) map[string][]*securityRule {
	open := map[string][]*securityRule{}
	for _, r := range s.all {
		if !r.leadsTo(addresses) {
			continue
		}
		for _, port := range ports(r.Properties) {
			at := portKey(r.Properties.Protocol, port)
			open[at] = append(open[at], r)
		}
	}
	return open
}

// is6 reports whether a rule leads to IPv6 addresses.
func (r *securityRule) is6() bool {
	for address := range r.to {
		return strings.Contains(address, ":")
	}
	return false
}

// leadsTo reports whether a managed rule leads to one of the addresses.
func (r *securityRule) leadsTo(addresses map[netip.Addr]bool) bool {
	for address := range r.to {
		if ip, err := netip.ParseAddr(address); err == nil && addresses[ip] {
			return true
		}
	}
	return false
}

// forget takes out destinations that nothing has any more, and returns them.
func (s *ruleSet) forget(known map[string]bool) (forgotten []string) {
	for _, r := range s.all {
		if !isManagedRule(r.Child) {
			continue // an older controller's may be somebody's after all
		}
		for address := range r.to {
			if _, err := netip.ParseAddr(address); err == nil && !known[address] {
				s.dismiss(r, address)
				forgotten = append(forgotten, address)
			}
		}
	}
	return forgotten
}

// dismiss takes a destination out of a rule.
func (s *ruleSet) dismiss(r *securityRule, address string) {
	delete(r.to, address)
	r.changed = true
	s.counts.destinations--
	if len(r.to) == 0 {
		s.count(r, -1)
	}
}

// open lets in what a Service asks for.
func (s *ruleSet) open(g grant) {
	for _, o := range g.openings {
		if len(g.to) > 0 {
			s.allow(o, g.to...)
		}
	}
	for _, address := range g.to {
		if g.deny {
			s.deny(g.family, address)
		}
	}
}

func (s *ruleSet) deny(family v1.IPFamily, address string) {
	name := denyRuleName(family)
	r, ok := s.byName[strings.ToLower(name)]
	if !ok {
		r = denyRule(name, s.freePriority(lastPriority, -1))
		s.add(r)
	}
	r.conform(denyRule(name, 0).Properties)
	s.admit(r, address)
}

func (s *ruleSet) allow(o opening, addresses ...string) {
	name := o.name()
	r, ok := s.byName[strings.ToLower(name)]
	if !ok {
		r = allowRule(name, o, s.freePriority(firstPriority, 1))
		s.add(r)
	}
	r.conform(allowRule(name, o, 0).Properties)
	for _, address := range addresses {
		s.admit(r, address)
	}
}

func (o opening) name() string { return allowRuleName(o.family, o.protocol, o.sources, o.ports) }

// conform makes a rule again what its name says it is, should somebody have edited it.
func (r *securityRule) conform(shall network.SecurityRule) {
	p := &r.Properties
	if r.to == nil || sameText(p.Protocol, shall.Protocol) && sameText(p.Access, shall.Access) && sameText(p.Direction, shall.Direction) &&
		sameList(ports(*p), ports(shall)) && sameList(sources(*p), sources(shall)) && sameList(sourcePorts(*p), sourcePorts(shall)) {
		return
	}
	r.changed = true
	p.Protocol, p.Access, p.Direction = shall.Protocol, shall.Access, shall.Direction
	p.DestinationPortRange, p.DestinationPortRanges = shall.DestinationPortRange, emptied(shall.DestinationPortRanges, p.DestinationPortRanges)
	p.SourcePortRange, p.SourcePortRanges = shall.SourcePortRange, emptied(shall.SourcePortRanges, p.SourcePortRanges)
	p.SourceAddressPrefix, p.SourceAddressPrefixes = shall.SourceAddressPrefix, emptied(shall.SourceAddressPrefixes, p.SourceAddressPrefixes)
}

// emptied is a list as it shall be: one that is there is emptied rather than left.
func emptied(shall, have []string) []string {
	if shall == nil && have != nil {
		return []string{}
	}
	return shall
}

// sameList compares without regard to order.
func sameList(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// admit adds a destination. A foreign rule that has a managed name keeps its own.
func (s *ruleSet) admit(r *securityRule, address string) {
	if r.to == nil || r.to[address] {
		return
	}
	if len(r.to) == 0 {
		s.count(r, 1)
	}
	r.to[address] = true
	r.changed = true
	s.counts.destinations++
	if s.to != nil && !slices.Contains(s.to[address], r) {
		s.to[address] = append(s.to[address], r)
	}
}

// extend adds those destinations to a rule that are of its family, as long as there is room.
func (s *ruleSet) extend(r *securityRule, addresses []string) {
	for _, address := range addresses {
		if s.counts.destinations < mostPrefixes && strings.Contains(address, ":") == r.is6() {
			s.admit(r, address)
		}
	}
}

func (s *ruleSet) freePriority(from, step int32) int32 {
	for s.used[from] {
		from += step
	}
	return from
}

func allowRule(name string, o opening, priority int32) *securityRule {
	r := network.SecurityRule{
		Priority: priority, Direction: "Inbound", Access: "Allow", Protocol: o.protocol,
		SourcePortRange: new("*"), DestinationPortRanges: slices.Sorted(slices.Values(o.ports)),
	}
	r.SourceAddressPrefix, r.SourceAddressPrefixes = oneOrMany(slices.Sorted(slices.Values(o.sources)), false)
	return &securityRule{Child: azure.Child[network.SecurityRule]{Name: name, Properties: r}, to: map[string]bool{}}
}

func denyRule(name string, priority int32) *securityRule {
	r := network.SecurityRule{
		Priority: priority, Direction: "Inbound", Access: "Deny", Protocol: "*",
		SourceAddressPrefix: new("*"), SourcePortRange: new("*"), DestinationPortRange: new("*"),
	}
	return &securityRule{Child: azure.Child[network.SecurityRule]{Name: name, Properties: r}, to: map[string]bool{}}
}

// oneOrMany is Azure's two ways to write a list: alone, or as a list. An existing
// list is emptied rather than left.
func oneOrMany(values []string, listed bool) (*string, []string) {
	if len(values) != 1 {
		return nil, values
	}
	if listed {
		return new(values[0]), []string{}
	}
	return new(values[0]), nil
}

// children is the rules as they shall be. Managed rules that lost their last
// destination are not among them.
func (s *ruleSet) children() []azure.Child[network.SecurityRule] {
	out := make([]azure.Child[network.SecurityRule], 0, len(s.all))
	for _, r := range s.all {
		r.Keep = !r.changed
		if r.changed && !sameSet(r.to, destinations(r.Properties)) {
			if len(r.to) == 0 && len(r.Properties.DestinationApplicationSecurityGroups) == 0 {
				continue
			}
			p := &r.Properties
			addresses := slices.Sorted(maps.Keys(r.to))
			p.DestinationAddressPrefix, p.DestinationAddressPrefixes = oneOrMany(addresses, p.DestinationAddressPrefixes != nil)
		}
		out = append(out, r.Child)
	}
	return out
}

func sameSet(set map[string]bool, list []string) bool {
	return len(set) == len(list) && !slices.ContainsFunc(list, func(x string) bool { return !set[x] })
}
