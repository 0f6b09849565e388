// Package security decides the rules of the network security group: which sources may reach the Services. Layer L1.
package security

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
)

// Input is what the rules are decided of.
type Input struct {
	Index *index.Index
	Batch *batch.Batch
	// AddressesIn are the addresses of the nodes in a backend pool.
	AddressesIn func(pool azure.ID, family v1.IPFamily) []string
	Tags        azure.Tags // of the security group
	// NotesFirst says that tags must be written before load balancers change. Rules that wait for
	// load balancers come in the next round, then.
	NotesFirst bool
}

// Result is what was decided.
type Result struct {
	Node      plan.Node
	Pending   []string // addresses that no step of this round brings; the rules of their Services stay
	Refused   []string // Services for which there is no room, by UID
	Unclaimed []string // addresses that are removed because no Service uses them
}

// Plan decides the rules of the security group, which must exist.
func Plan(in Input, found *problem.List) Result {
	x, b := in.Index, in.Batch
	names, handovers := b.Names(), b.Handovers(x)
	view := azure.Resource[network.SecurityGroup]{ID: x.Config.SecurityGroupID(), Tags: in.Tags}
	if in.NotesFirst && len(handovers) > 0 {
		return Result{Node: plan.Wanted(view, "where "+batch.Summary(names)+" had addresses", names...)}
	}
	p := &planner{Input: in, rules: newRuleSet(x.SecurityGroup.Properties.SecurityRules), staying: map[lead]bool{}}
	grants := make([][]grant, len(b.Live))
	for i, s := range b.Live {
		grants[i] = p.grants(s)
		for _, g := range grants[i] {
			g.note(p.staying)
		}
	}
	p.withdraw()
	if x.Complete && !hasUnreadAddress(x) {
		p.forget() // before anything is added, for what goes leaves room
	}
	p.follow()
	for i, s := range b.Live {
		before := p.rules.counts
		for _, g := range grants[i] {
			p.rules.open(g)
		}
		if why := p.rules.counts.exceeds(before); why != "" {
			found.Refuse(s.Key(), problem.Limit, "network security group %s cannot take its rules: %s",
				x.Config.SecurityGroupName, why)
			p.result.Refused = append(p.result.Refused, string(s.Service.UID))
		}
	}
	rules := p.rules.decided(x.SecurityGroup.Properties.SecurityRules)
	view.Properties.SecurityRules = rules.Written()
	p.result.Node = plan.Wanted(view, "access to "+batch.Summary(names), names...).Owning(rules.Owner())
	for _, h := range handovers {
		p.result.Node.After = append(p.result.Node.After, h.From.ID, h.To.ID)
	}
	return p.result
}

type planner struct {
	Input
	rules   *ruleSet
	staying map[lead]bool // what is opened again
	result  Result
}

// grants are the openings of a Service's addresses.
func (p *planner) grants(s batch.Served) (grants []grant) {
	if !s.Access.Open {
		return nil
	}
	for _, family := range address.Families() {
		to, nodes := map[string]bool{}, map[string]bool{}
		for _, at := range s.Placements {
			if at.Family != family {
				continue
			}
			if !at.Floating {
				for _, ip := range p.AddressesIn(at.Pool(p.Index.Config), family) {
					nodes[ip] = true
				}
				continue
			}
			if known := p.addressOf(at); known != "" {
				to[known] = true
			} else if len(s.Access.From[family]) > 0 || s.Access.Deny {
				p.result.Pending = append(p.result.Pending,
					"the security group needs the address of frontend "+at.At.Name+" ["+s.Key()+"]")
			}
		}
		for _, ip := range s.Further {
			switch {
			case address.Family(ip) != family:
			case s.Fixed: // packets for it arrive at the same ports
				nodes[ip.String()] = true
			default:
				to[ip.String()] = true
			}
		}
		grants = append(grants,
			newGrant(s.Spec, family, false, to, s.Access.Deny),
			newGrant(s.Spec, family, !s.AllPorts(), nodes, s.Access.Deny && s.Fixed))
	}
	return grants
}

// addressOf is the address of a placement: an output where a step of this round has Azure choose it. It is ""
// where Azure has no address for what exists, and where the load balancer waits for the security group.
func (p *planner) addressOf(at batch.Placement) string {
	switch known := at.KnownAddress(); {
	case known != "":
		return known
	case at.IP != "" && !at.Public.Exists():
		return address.OfPublicIP(at.IP)
	case at.IP != "", at.KeepsPrivate(at.At.State()), p.NotesFirst:
		return ""
	}
	fe, _ := at.At.LB.Frontend(at.At.Name)
	return address.OfFrontend(at.At.LB.ID, cmp.Or(fe.Name, at.At.Name))
}

// withdraw takes the batch's Services out of all rules, except for what others need and what is opened again.
func (p *planner) withdraw() {
	x, b := p.Index, p.Batch
	p.rules.drop(func(r *rule) bool { return IsLegacyRule(r.Child) && b.Has(naming.Owner(r.Name)) })
	owners := addressOwners(x)
	needed := needsOfOthers(x, b, p.rules)
	useNodes := false
	for _, s := range b.All() {
		useNodes = useNodes || usesNodes(x, s)
		for _, address := range addressesOf(x, s, owners) {
			p.rules.withdraw(address, p.staying, needed)
		}
	}
	nodes := slices.SortedFunc(maps.Keys(x.NodeIPs), netip.Addr.Compare)
	// Where all Services are known it need not be guessed whether one was at the nodes.
	useNodes = useNodes || !x.Complete && wereOpen(nodes, b, p.rules)
	if !useNodes && !x.Complete {
		return
	}
	for _, ip := range nodes {
		if p.rules.withdraw(ip.String(), p.staying, needed) && !useNodes {
			p.result.Unclaimed = append(p.result.Unclaimed, ip.String())
		}
	}
}

// wereOpen reports whether a node is open at a port of the batch's Services: the load balancer may have
// dropped the rule already that led there.
func wereOpen(nodes []netip.Addr, b *batch.Batch, rules *ruleSet) bool {
	own := map[portNeed]bool{}
	for _, s := range b.All() {
		for _, o := range s.PortsByProtocol(!s.AllPorts()) {
			for _, port := range o.Ports {
				own[portOf(o.Protocol, port)] = true
			}
		}
	}
	return slices.ContainsFunc(nodes, func(ip netip.Addr) bool {
		return slices.ContainsFunc(rules.having(ip.String()), func(r *rule) bool {
			return slices.ContainsFunc(ports(r.Properties), func(port string) bool { return own[portOf(r.Properties.Protocol, port)] })
		})
	})
}

// follow opens new members of a pool to the sources that rules allow at nodes for Services outside the batch:
// their packets arrive there from now on.
func (p *planner) follow() {
	open, members := p.rules.openAt(p.Index.NodeIPs), map[string][]string{}
	if len(open) == 0 {
		return
	}
	for _, c := range p.Index.Rules() {
		r, owner := c.Properties, naming.Owner(c.Name)
		some := open[portOf(r.Protocol, strconv.Itoa(int(r.BackendPort)))]
		if len(some) == 0 || p.Index.Known[owner] == nil || p.Batch.Has(owner) || r.BackendAddressPool == nil || floats(r) {
			continue
		}
		pool := r.BackendAddressPool.ID
		in, known := members[pool.Key()]
		if !known {
			in = slices.Concat(p.AddressesIn(pool, v1.IPv4Protocol), p.AddressesIn(pool, v1.IPv6Protocol))
			members[pool.Key()] = in
		}
		for _, rule := range some {
			p.rules.extend(rule, in)
		}
	}
}

// forget removes destinations of managed rules that nothing in the cluster has.
func (p *planner) forget() {
	unknown := p.rules.destinations()
	for _, known := range knownDestinations(p.Index, p.Batch) {
		delete(unknown, known)
	}
	if len(unknown) == 0 {
		return
	}
	for _, o := range p.Index.Others { // something else may be making the addresses that a Service asks for
		s := spec.Service{Service: o}
		for _, ip := range p.Index.PublicIPsFor[s.Key()] {
			delete(unknown, ip.Properties.IPAddress)
		}
		for _, asked := range askedAddresses(p.Index, s) {
			delete(unknown, asked)
		}
	}
	p.result.Unclaimed = append(p.result.Unclaimed, p.rules.forget(unknown)...)
}

// knownDestinations are all addresses that anything of the cluster has.
func knownDestinations(x *index.Index, b *batch.Batch) []string {
	var known []string
	for ip := range x.NodeIPs {
		known = append(known, ip.String())
	}
	for at := range x.Frontends() {
		if x.Known[at.Owner()] != nil || !naming.IsOwned(at.Name) {
			known = append(known, x.Address(at))
		}
	}
	for _, o := range others(x, b) {
		known = append(known, o.KnownAddresses()...)
	}
	for _, s := range b.Live {
		for _, at := range s.Placements {
			known = append(known, at.KnownAddress())
		}
		for _, ip := range s.Further {
			known = append(known, ip.String())
		}
	}
	return known
}

// askedAddresses are the addresses that a Service asks for, as far as they are known.
func askedAddresses(x *index.Index, service spec.Service) (addresses []string) {
	s, _ := spec.Read(service, x.Config)
	for _, a := range s.Addresses {
		addresses = append(addresses, a.Pinned)
		t, _ := publicip.Target(x, s, a)
		addresses = append(addresses, x.PublicIP(t.PublicIP).Properties.IPAddress)
	}
	for _, ip := range s.Further {
		addresses = append(addresses, ip.String())
	}
	return addresses
}

// addressesOf lists the addresses that a Service has or had. An address of its status does not count if
// another Service has it and that Service's needs are not known.
func addressesOf(x *index.Index, s batch.Served, owners map[netip.Addr]string) []string {
	var addresses []string
	for _, p := range s.Placements {
		addresses = append(addresses, p.KnownAddress())
	}
	for _, id := range publicip.ManagedOf(x, s.Spec) {
		addresses = append(addresses, x.PublicIP(id).Properties.IPAddress)
	}
	for _, at := range x.FrontendsServing(s.Owner) {
		addresses = append(addresses, x.Address(at))
	}
	if s.Service.Gone { // it may have got no further than to its security rules
		addresses = append(addresses, askedAddresses(x, s.Service)...)
	}
	for _, in := range s.Service.Status.LoadBalancer.Ingress {
		a, err := netip.ParseAddr(in.IP)
		a = a.Unmap()
		if owner, taken := owners[a]; err == nil && (!taken || owner == s.Owner || shows(x, owner, a)) {
			addresses = append(addresses, a.String())
		}
	}
	for _, ip := range s.Further {
		addresses = append(addresses, ip.String())
	}
	slices.Sort(addresses)
	return slices.DeleteFunc(slices.Compact(addresses), func(a string) bool { return a == "" })
}

// shows reports whether a Service's status has an address: then its object shows all that it needs there.
func shows(x *index.Index, owner string, ip netip.Addr) bool {
	s := x.Known[owner]
	return s != nil &&
		slices.ContainsFunc(s.Status.LoadBalancer.Ingress, func(in v1.LoadBalancerIngress) bool { return in.IP == ip.String() })
}

// addressOwners is the owner of each address by frontend names, "" for nodes and for public IPs without a frontend.
func addressOwners(x *index.Index) map[netip.Addr]string {
	owners := make(map[netip.Addr]string, len(x.PublicIPs))
	note := func(text, owner string) {
		if a, err := netip.ParseAddr(text); err == nil {
			owners[a] = owner
		}
	}
	for _, ip := range x.PublicIPs {
		at := ip.Properties.IPConfiguration
		if at != nil && naming.IsOwned(at.ID.Name()) {
			note(ip.Properties.IPAddress, naming.Owner(at.ID.Name()))
		} else if ip.Tagged {
			note(ip.Properties.IPAddress, "")
		}
	}
	for at, fe := range x.Frontends() {
		if naming.IsOwned(at.Name) {
			note(fe.Properties.PrivateIPAddress, at.Owner())
		}
	}
	for a := range x.NodeIPs {
		owners[a] = ""
	}
	return owners
}

// hasUnreadAddress reports whether a frontend has a public IP that could not be read: then
// the owner of a security rule's destination is not known.
func hasUnreadAddress(x *index.Index) bool {
	for _, fe := range x.Frontends() {
		if _, unread := x.Have.Unread(fe.Properties.PublicIPAddress.To().Parent(), network.PublicIPAddresses); unread {
			return true
		}
	}
	return false
}
