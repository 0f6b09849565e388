// Package security decides the rules of the network security group: which sources may reach the Services. Layer L1.
package security

import (
	"cmp"
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
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/backend"
	"kaz/internal/plan/loadbalancer/batch"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/note"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/publicip"
	"kaz/internal/plan/loadbalancer/spec"
)

// Plan is what was decided of the security group.
type Plan struct {
	Node      plan.Node
	Pending   []string // addresses that no step of this round brings; the rules of their Services stay
	Refused   []string // Services for which there is no room, by UID
	Problems  problem.List
	Unclaimed []string // addresses that are removed because no Service uses them

	index      *index.Index
	batch      *batch.Batch
	members    *backend.Planner
	notesFirst bool // the group is written before load balancers change
	rules      *ruleSet
	needed     map[need]bool   // by others, and by the batch's Services for rules that stay
	known      map[string]bool // addresses that anything of the cluster but its nodes has after the decision
	atNodes    map[string]bool // owners of load balancing rules whose packets arrive at the nodes' own addresses
}

// New decides the rules of the security group, which must exist. Where there are unnamed resource groups, its tags must
// name them before load balancers change. Rules that wait for load balancers come in the next round, then.
func New(x *index.Index, b *batch.Batch, members *backend.Planner, unnamed []azure.ID) *Plan {
	p := &Plan{index: x, batch: b, members: members, notesFirst: len(unnamed) > 0,
		rules:  newRuleSet(x.SecurityGroup.Properties.SecurityRules, b.Has),
		needed: map[need]bool{}, known: map[string]bool{}, atNodes: map[string]bool{}}
	names, handovers := b.Names(), b.Handovers(x)
	view := azure.Resource[network.SecurityGroup]{ID: x.Config.SecurityGroupID(),
		Tags: naming.WantedTagsOfShared(x.Config, note.Tags(x, unnamed), x.SecurityGroup.Tags)}
	if p.notesFirst && len(handovers) > 0 {
		p.Node = plan.Wanted(view, "where "+batch.Summary(names)+" had addresses", names...)
		return p
	}
	for _, r := range x.Rules() {
		if !floats(r) {
			p.atNodes[naming.Owner(r.Name)] = true
		}
	}
	complete := x.Complete
	for at, fe := range x.Frontends() {
		if x.Known[at.Owner()] != nil || !naming.IsOwned(at.Name) {
			p.known[x.Address(at)] = true
		}
		if _, unread := x.Have.Unread(fe.Properties.PublicIPAddress.To().Parent(), network.PublicIPAddresses); unread {
			complete = false // a destination may be the address of this public IP
		}
	}
	grants := make([][]grant, len(b.Live)) // by Service
	for i, s := range b.Live {
		grants[i] = p.grants(s)
	}
	p.needOthers()
	p.withdrawBatch()
	if complete {
		p.forget() // before anything is added, for what goes leaves room
	}
	p.follow()
	for i, s := range b.Live {
		before := p.rules.counts
		for _, g := range grants[i] {
			p.rules.point(g.rule, g.to...)
		}
		if why := p.rules.counts.exceeds(before); why != "" {
			p.Problems.Refuse(s.Key(), problem.Limit, "network security group %s cannot take its rules: %s",
				x.Config.SecurityGroupName, why)
			p.Refused = append(p.Refused, string(s.Service.UID))
		}
	}
	rules := p.rules.decided()
	view.Properties.SecurityRules = rules.Written()
	p.Node = plan.Wanted(view, "access to "+batch.Summary(names), names...).Owning(rules.Owner())
	for _, h := range handovers {
		p.Node.After = append(p.Node.After, h.From.ID, h.To.ID)
	}
	return p
}

// need is what a Service needs at a destination.
type need struct {
	to   string // an address, allNodes, or a family for the nodes' addresses of it
	what string // an open port, a rule by its name in lower case, denied or anyPort
}

const (
	allNodes = "nodes"
	denied   = "denied"   // everything else is
	anyPort  = "any port" // any port may be open: a rule for all ports leads there, of unknown sources
)

// needOthers adds what Services outside the batch need. The rules at frontends show it, and the objects of Services that
// are known. A Service that is not known may want a denial wherever it is.
func (p *Plan) needOthers() {
	others := map[string]*spec.Spec{} // by owner
	for owner, o := range p.index.Known {
		if !p.batch.Has(owner) {
			others[owner] = spec.WithAccess(spec.Service{Service: o})
			p.needService(others[owner])
		}
	}
	for lb, c := range p.index.Rules() {
		r, owner, frontend := c.Properties, naming.Owner(c.Name), c.Properties.FrontendIPConfiguration.To().Name()
		if frontend == "" || !naming.IsOwned(c.Name) || p.batch.Has(owner) {
			continue
		}
		s := others[owner] // nil for a Service that is not known
		to, number, deny := p.index.Address(index.Frontend{LB: lb, Name: frontend}), r.FrontendPort, s == nil || s.Access.Deny
		if !floats(c) { // the object of a Service says what it wants denied, and of all ports which ones are let in
			to, number, deny = allNodes, r.BackendPort, s == nil
		}
		if to == "" || to == allNodes && number == 0 && s != nil && s.AllPorts() {
			continue
		}
		p.needed[need{to, port(r.Protocol, strconv.Itoa(int(number)))}] = true
		if deny {
			p.needed[need{to, denied}] = true
		}
	}
}

func floats(r index.Rule) bool {
	return r.Properties.EnableFloatingIP != nil && *r.Properties.EnableFloatingIP
}

// needService adds what a Service serves, and wants denied, at the addresses that its object shows.
func (p *Plan) needService(s *spec.Spec) {
	further, _ := key.AdditionalIPs.Read(s.Service.Annotations)
	ports := s.PortsByProtocol(s.Fixed && !s.AllPorts())
	for _, to := range s.Service.KnownAddresses() {
		p.known[to] = true
		p.needPorts(to, ports)
		if s.Access.Deny && (!s.Fixed || slices.Contains(further, to)) {
			p.needed[need{to, denied}] = true
		}
	}
	for _, family := range s.Service.Families() {
		nodes := string(family)
		if s.Access.Deny && s.Fixed {
			p.needed[need{nodes, denied}] = true
		}
		if !s.AllPorts() || s.Floats(family) {
			continue
		}
		// One rule serves all ports of the nodes' own addresses, where other Services may have the same ports. If all
		// security rules that the Service asks for exist, it needs only these. Else it may have asked for something else
		// before, which only the security rules show.
		asked := s.Openings(family, false)
		if slices.ContainsFunc(asked, func(o spec.Opening) bool {
			r := p.rules.byName[strings.ToLower(o.Name())]
			return r == nil || r.nodeFamily(p.index.NodeIPs) == ""
		}) {
			p.needPorts(nodes, asked)
			if p.atNodes[s.Owner] {
				p.needed[need{nodes, anyPort}] = true
			}
			continue
		}
		for _, o := range asked {
			p.needed[need{nodes, strings.ToLower(o.Name())}] = true
		}
	}
}

func (p *Plan) needPorts(to string, openings []spec.Opening) {
	for _, o := range openings {
		for _, number := range o.Ports {
			p.needed[need{to, port(o.Protocol, number)}] = true
		}
	}
}

// grant is a rule that leads to addresses of a Service.
type grant struct {
	rule securityRule
	to   []string
}

// grants are the openings of a Service's addresses. Their rules are noted as needed there.
func (p *Plan) grants(s batch.Served) (grants []grant) {
	if !s.Access.Open {
		return nil
	}
	for _, family := range address.Families() {
		var own, nodes []string
		for _, at := range s.Placements {
			switch {
			case at.Family != family:
			case !at.Floating:
				nodes = append(nodes, p.members.AddressesIn(at.Pool(p.index.Config), family)...)
			case p.addressOf(at) != "":
				own = append(own, p.addressOf(at))
			case len(s.Access.From[family]) > 0 || s.Access.Deny:
				p.Pending = append(p.Pending, "the security group needs the address of frontend "+at.At.Name+" ["+s.Key()+"]")
			}
		}
		for _, ip := range s.Further {
			switch {
			case address.Family(ip) != family:
			case s.Fixed: // packets for it arrive at the same ports
				nodes = append(nodes, ip.String())
			default:
				own = append(own, ip.String())
			}
		}
		grants = append(grants, p.grantsTo(own, s, family, false, s.Access.Deny)...)
		grants = append(grants, p.grantsTo(nodes, s, family, !s.AllPorts(), s.Access.Deny && s.Fixed)...)
	}
	return grants
}

// grantsTo open addresses of a family at the Service's own ports, or at its node ports.
func (p *Plan) grantsTo(to []string, s batch.Served, family v1.IPFamily, nodePort, deny bool) (grants []grant) {
	if len(to) == 0 {
		return nil
	}
	var implied []grant // other controllers wrote these, which let in no source that the others do not
	for _, o := range s.Openings(family, nodePort) {
		grants = append(grants, grant{allowance(o), to})
		if slices.Contains(o.Sources, "0.0.0.0/0") || slices.Contains(o.Sources, "::/0") {
			o.Sources = []string{spec.Internet}
			implied = append(implied, grant{allowance(o), to})
		}
	}
	if deny {
		grants = append(grants, grant{denial(family), to})
	}
	for _, g := range slices.Concat(grants, implied) {
		for _, address := range to {
			p.needed[need{address, strings.ToLower(g.rule.Name)}] = true
		}
	}
	return grants
}

// addressOf is the address of a placement: an output where a step of this round has Azure choose it. It is ""
// where Azure has no address for what exists, and where the load balancer waits for the security group.
func (p *Plan) addressOf(at batch.Placement) string {
	switch known := at.KnownAddress(); {
	case known != "":
		return known
	case at.IP != "" && !at.Public.Exists():
		return address.OfPublicIP(at.IP)
	case at.IP != "", at.KeepsPrivate(at.At.State()), p.notesFirst:
		return ""
	}
	fe, _ := at.At.LB.Frontend(at.At.Name)
	return address.OfFrontend(at.At.LB.ID, cmp.Or(fe.Name, at.At.Name))
}

// withdrawBatch takes the batch's Services out of all rules, except for what is needed.
func (p *Plan) withdrawBatch() {
	x, all := p.index, p.batch.All
	useNodes := false
	for _, s := range all {
		useNodes = useNodes || p.atNodes[s.Owner] ||
			slices.ContainsFunc(s.Placements, func(at batch.Placement) bool { return !at.Floating })
		for _, address := range p.addressesOf(s) {
			p.withdraw(address)
		}
	}
	if !useNodes && !x.Complete { // else it need not be guessed whether a Service was at the nodes
		// If a port of the batch's Services is open there, the load balancer may have dropped the rule that led there.
		open := p.rules.openAt(x.NodeIPs)
		for _, s := range all {
			for _, o := range s.PortsByProtocol(!s.AllPorts()) {
				isOpen := func(number string) bool { return open[port(o.Protocol, number)] != nil }
				useNodes = useNodes || slices.ContainsFunc(o.Ports, isOpen)
			}
		}
		if !useNodes {
			return
		}
	}
	for _, ip := range slices.SortedFunc(maps.Keys(x.NodeIPs), netip.Addr.Compare) {
		if p.withdraw(ip.String()) && !useNodes {
			p.Unclaimed = append(p.Unclaimed, ip.String())
		}
	}
}

// withdraw removes an address from all managed rules, except for rules and ports that are needed, and reports
// whether it did.
func (p *Plan) withdraw(text string) (was bool) {
	places := []string{text}
	ip, err := netip.ParseAddr(text)
	if p.index.NodeIPs[ip] {
		places = append(places, allNodes, string(address.Family(ip)))
	}
	isNeeded := func(what string) bool {
		return slices.ContainsFunc(places, func(to string) bool { return p.needed[need{to, what}] })
	}
	for _, r := range slices.Clone(p.rules.to[text]) {
		protocol, all, deny := r.Properties.Protocol, ports(r.Properties), strings.EqualFold(r.Properties.Access, "Deny")
		rest := slices.DeleteFunc(slices.Clone(all), func(number string) bool {
			return !isNeeded(port(protocol, number)) && !isNeeded(anyPort)
		})
		if isNeeded(strings.ToLower(r.Name)) || deny && isNeeded(denied) || !deny && len(rest) == len(all) {
			continue
		}
		was = true
		p.rules.remove(r, text)
		if err == nil && len(rest) > 0 && !deny {
			o := spec.Opening{Family: address.Family(ip), Protocol: protocol, Sources: sources(r.Properties), Ports: rest}
			p.rules.point(allowance(o), text)
		}
	}
	return was
}

// follow opens new members of a pool for Services outside the batch, because their packets arrive there from now on. It
// allows the sources that rules allow at nodes.
func (p *Plan) follow() {
	open := p.rules.openAt(p.index.NodeIPs)
	for _, c := range p.index.Rules() {
		r, owner := c.Properties, naming.Owner(c.Name)
		if p.index.Known[owner] == nil || p.batch.Has(owner) || floats(c) {
			continue
		}
		for _, rule := range open[port(r.Protocol, strconv.Itoa(int(r.BackendPort)))] {
			for _, address := range p.members.AddressesIn(r.BackendAddressPool.To(), rule.nodeFamily(p.index.NodeIPs)) {
				if p.rules.counts.destinations < mostPrefixes {
					p.rules.admit(rule, address)
				}
			}
		}
	}
}

// forget removes destinations of managed rules that nothing in the cluster has. An older controller's rules stay,
// as other software may use them after all.
func (p *Plan) forget() {
	x := p.index
	unknown := map[string][]*rule{} // by destination
	for _, r := range p.rules.all {
		for to := range r.to {
			if ip, err := netip.ParseAddr(to); err == nil && !x.NodeIPs[ip] && !p.known[to] && IsManagedRule(r.securityRule) {
				unknown[to] = append(unknown[to], r)
			}
		}
	}
	if len(unknown) == 0 {
		return
	}
	for _, o := range x.Others { // something else may be making the addresses that a Service asks for
		s := spec.Service{Service: o}
		for _, ip := range x.PublicIPsFor[s.Key()] {
			delete(unknown, ip.Properties.IPAddress)
		}
		for _, asked := range askedAddresses(x, s) {
			delete(unknown, asked)
		}
	}
	for _, address := range slices.Sorted(maps.Keys(unknown)) {
		for _, r := range unknown[address] {
			p.rules.remove(r, address)
		}
		p.Unclaimed = append(p.Unclaimed, address)
	}
}

// askedAddresses are the addresses that a Service asks for, as far as they are known.
func askedAddresses(x *index.Index, service spec.Service) (addresses []string) {
	s, _ := spec.Read(service, x.Config)
	for _, a := range s.Addresses {
		p, _ := publicip.Asked(x, s, a)
		addresses = append(addresses, a.Pinned, p.Public.Properties.IPAddress)
	}
	for _, ip := range s.Further {
		addresses = append(addresses, ip.String())
	}
	return addresses
}

// addressesOf lists the addresses that a Service has or had, and notes those that it will have. An address of its status
// does not count if another Service has it and that Service's needs are not known.
func (p *Plan) addressesOf(s batch.Served) (addresses []string) {
	x := p.index
	for _, at := range s.Placements {
		addresses = append(addresses, at.KnownAddress())
	}
	for _, ip := range s.Further {
		addresses = append(addresses, ip.String())
	}
	for _, next := range addresses {
		p.known[next] = true
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
		ip, err := netip.ParseAddr(in.IP)
		if ip = ip.Unmap(); err == nil && !x.NodeIPs[ip] && !p.isOfOther(ip.String(), s.Owner) {
			addresses = append(addresses, ip.String())
		}
	}
	slices.Sort(addresses)
	return addresses
}

// isOfOther reports whether an address is that of a frontend of another owner, or of a public IP for others that has no
// frontend. If another Service's status has it, that Service's object shows all that it needs there.
func (p *Plan) isOfOther(ip, self string) bool {
	x, owner := p.index, self
	for _, id := range x.PublicIPsAt[ip] {
		public := x.PublicIP(id)
		if at := public.Properties.IPConfiguration.To().Name(); naming.IsOwned(at) {
			owner = naming.Owner(at)
		} else if len(public.Services) > 0 {
			owner = ""
		}
	}
	for _, at := range x.Holders[ip] {
		if naming.IsOwned(at.Name) {
			owner = at.Owner()
		}
	}
	other := x.Known[owner]
	return owner != self && (other == nil ||
		!slices.ContainsFunc(other.Status.LoadBalancer.Ingress, func(in v1.LoadBalancerIngress) bool { return in.IP == ip }))
}
