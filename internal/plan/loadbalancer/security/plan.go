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
	p := &planner{Input: in, rules: newRuleSet(x.SecurityGroup.Properties.SecurityRules, b.Has), needed: map[need]bool{}}
	grants := make([][]grant, len(b.Live)) // by Service
	for i, s := range b.Live {
		grants[i] = p.grants(s)
	}
	p.needOthers()
	p.withdrawBatch()
	if x.Complete {
		p.forget() // before anything is added, for what goes leaves room
	}
	p.follow()
	for i, s := range b.Live {
		before := p.rules.counts
		for _, g := range grants[i] {
			for _, r := range g.rules {
				p.rules.point(r, g.to...)
			}
		}
		if why := p.rules.counts.exceeds(before); why != "" {
			found.Refuse(s.Key(), problem.Limit, "network security group %s cannot take its rules: %s",
				x.Config.SecurityGroupName, why)
			p.result.Refused = append(p.result.Refused, string(s.Service.UID))
		}
	}
	rules := p.rules.decided()
	view.Properties.SecurityRules = rules.Written()
	p.result.Node = plan.Wanted(view, "access to "+batch.Summary(names), names...).Owning(rules.Owner())
	for _, h := range handovers {
		p.result.Node.After = append(p.result.Node.After, h.From.ID, h.To.ID)
	}
	return p.result
}

type planner struct {
	Input
	rules  *ruleSet
	needed map[need]bool // by others, and by the batch's Services for rules that stay
	result Result
}

// grant is rules that lead to addresses of a Service.
type grant struct {
	rules []securityRule
	to    []string
}

// grants are the openings of a Service's addresses. Their rules stay there.
func (p *planner) grants(s batch.Served) (grants []grant) {
	if !s.Access.Open {
		return nil
	}
	for _, family := range address.Families() {
		to, nodes := map[string]bool{}, map[string]bool{}
		for _, at := range s.Placements {
			switch {
			case at.Family != family:
			case !at.Floating:
				for _, ip := range p.AddressesIn(at.Pool(p.Index.Config), family) {
					nodes[ip] = true
				}
			case p.addressOf(at) != "":
				to[p.addressOf(at)] = true
			case len(s.Access.From[family]) > 0 || s.Access.Deny:
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
		grants = append(grants, p.grant(s, family, false, to, s.Access.Deny),
			p.grant(s, family, !s.AllPorts(), nodes, s.Access.Deny && s.Fixed))
	}
	return grants
}

// grant opens addresses of a family at the Service's own ports, or at its node ports.
func (p *planner) grant(s batch.Served, family v1.IPFamily, nodePort bool, set map[string]bool, deny bool) (g grant) {
	if len(set) == 0 {
		return g
	}
	g.to = sorted(set)
	var implied []securityRule // other controllers wrote these, which let in no source that the others do not
	for _, o := range s.Openings(family, nodePort) {
		g.rules = append(g.rules, allowance(o))
		if slices.Contains(o.Sources, "0.0.0.0/0") || slices.Contains(o.Sources, "::/0") {
			o.Sources = []string{spec.Internet}
			implied = append(implied, allowance(o))
		}
	}
	if deny {
		g.rules = append(g.rules, denial(family))
	}
	for _, r := range slices.Concat(g.rules, implied) {
		for _, address := range g.to {
			p.needed[need{to: address, rule: strings.ToLower(r.Name)}] = true
		}
	}
	return g
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

// withdrawBatch takes the batch's Services out of all rules, except for what is needed.
func (p *planner) withdrawBatch() {
	x, b := p.Index, p.Batch
	useNodes := false
	for _, s := range b.All() {
		useNodes = useNodes || p.hasRuleAtNodes(s.Owner) ||
			slices.ContainsFunc(s.Placements, func(at batch.Placement) bool { return !at.Floating })
		for _, address := range p.addressesOf(s) {
			p.withdraw(address)
		}
	}
	if !useNodes && !x.Complete { // else it need not be guessed whether a Service was at the nodes
		// If a port of the batch's Services is open there, the load balancer may have dropped the rule that led there.
		open := p.openAtNodes()
		for _, s := range b.All() {
			for _, o := range s.PortsByProtocol(!s.AllPorts()) {
				useNodes = useNodes ||
					slices.ContainsFunc(o.Ports, func(number string) bool { return open[portOf(o.Protocol, number)] != nil })
			}
		}
		if !useNodes {
			return
		}
	}
	for _, ip := range slices.SortedFunc(maps.Keys(x.NodeIPs), netip.Addr.Compare) {
		if p.withdraw(ip.String()) && !useNodes {
			p.result.Unclaimed = append(p.result.Unclaimed, ip.String())
		}
	}
}

// withdraw removes an address from all managed rules, except for rules and ports that are needed, and reports
// whether it did.
func (p *planner) withdraw(text string) (was bool) {
	rules := slices.Clone(p.rules.to[text])
	if len(rules) == 0 {
		return false
	}
	places := []string{text}
	ip, err := netip.ParseAddr(text)
	if p.Index.NodeIPs[ip] {
		places = append(places, allNodes, string(address.Family(ip)))
	}
	isNeeded := func(what need) bool {
		return slices.ContainsFunc(places, func(to string) bool {
			what.to = to
			return p.needed[what]
		})
	}
	for _, r := range rules {
		deny := strings.EqualFold(r.Properties.Access, "Deny")
		all := ports(r.Properties)
		rest := slices.DeleteFunc(slices.Clone(all), func(port string) bool {
			return !isNeeded(need{port: portOf(r.Properties.Protocol, port)}) && !isNeeded(need{anyPort: true})
		})
		if isNeeded(need{rule: strings.ToLower(r.Name)}) || deny && isNeeded(need{denial: true}) || len(rest) == len(all) && !deny {
			continue
		}
		was = true
		p.rules.remove(r, text)
		if err == nil && len(rest) > 0 && !deny {
			p.rules.point(allowance(spec.Opening{Family: address.Family(ip), Protocol: r.Properties.Protocol,
				Sources: sources(r.Properties), Ports: rest}), text)
		}
	}
	return was
}

// openAtNodes are the managed rules that lead to nodes, by their ports.
func (p *planner) openAtNodes() map[port][]*rule {
	open := map[port][]*rule{}
	for _, r := range p.rules.all {
		if r.leadsTo(p.Index.NodeIPs) {
			for _, number := range ports(r.Properties) {
				at := portOf(r.Properties.Protocol, number)
				open[at] = append(open[at], r)
			}
		}
	}
	return open
}

// follow opens new members of a pool to the sources that rules allow at nodes for Services outside the batch:
// their packets arrive there from now on.
func (p *planner) follow() {
	open := p.openAtNodes()
	for _, c := range p.Index.Rules() {
		r, owner := c.Properties, naming.Owner(c.Name)
		if p.Index.Known[owner] == nil || p.Batch.Has(owner) || r.BackendAddressPool == nil || floats(r) {
			continue
		}
		for _, rule := range open[portOf(r.Protocol, strconv.Itoa(int(r.BackendPort)))] {
			for _, address := range p.AddressesIn(r.BackendAddressPool.ID, rule.family()) {
				if p.rules.counts.destinations < mostPrefixes {
					p.rules.admit(rule, address)
				}
			}
		}
	}
}

// forget removes destinations of managed rules that nothing in the cluster has. An older controller's rules stay,
// as other software may use them after all.
func (p *planner) forget() {
	x := p.Index
	for _, fe := range x.Frontends() {
		if _, unread := x.Have.Unread(fe.Properties.PublicIPAddress.To().Parent(), network.PublicIPAddresses); unread {
			return // a destination may be the address of this public IP
		}
	}
	unknown := map[string]bool{}
	for text, rules := range p.rules.to {
		if ip, err := netip.ParseAddr(text); err == nil && !x.NodeIPs[ip] && slices.ContainsFunc(rules, isManaged) {
			unknown[text] = true
		}
	}
	for _, known := range p.knownAddresses() {
		delete(unknown, known)
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
	for _, address := range sorted(unknown) {
		for _, r := range slices.Clone(p.rules.to[address]) {
			if isManaged(r) {
				p.rules.remove(r, address)
			}
		}
		p.result.Unclaimed = append(p.result.Unclaimed, address)
	}
}

func isManaged(r *rule) bool { return IsManagedRule(r.securityRule) }

// knownAddresses are all addresses that anything of the cluster but its nodes has.
func (p *planner) knownAddresses() []string {
	x := p.Index
	var known []string
	for at := range x.Frontends() {
		if x.Known[at.Owner()] != nil || !naming.IsOwned(at.Name) {
			known = append(known, x.Address(at))
		}
	}
	for owner, o := range x.Known {
		if !p.Batch.Has(owner) {
			known = append(known, spec.Service{Service: o}.KnownAddresses()...)
		}
	}
	for _, s := range p.Batch.Live {
		known = append(known, placedAddresses(s)...)
	}
	return known
}

// placedAddresses are the addresses that a Service has after the decision, as far as they are known.
func placedAddresses(s batch.Served) (addresses []string) {
	for _, at := range s.Placements {
		addresses = append(addresses, at.KnownAddress())
	}
	for _, ip := range s.Further {
		addresses = append(addresses, ip.String())
	}
	return addresses
}

// askedAddresses are the addresses that a Service asks for, as far as they are known.
func askedAddresses(x *index.Index, service spec.Service) (addresses []string) {
	s, _ := spec.Read(service, x.Config)
	for _, a := range s.Addresses {
		t, _ := publicip.Target(x, s, a)
		addresses = append(addresses, a.Pinned, x.PublicIP(t.PublicIP).Properties.IPAddress)
	}
	return append(addresses, placedAddresses(batch.Served{Spec: s})...) // the further ones
}

// addressesOf lists the addresses that a Service has or had. An address of its status does not count if
// another Service has it and that Service's needs are not known.
func (p *planner) addressesOf(s batch.Served) []string {
	x := p.Index
	addresses := placedAddresses(s)
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
		if ip, err := netip.ParseAddr(in.IP); err == nil && !p.isOfOther(ip.Unmap(), s.Owner) {
			addresses = append(addresses, ip.Unmap().String())
		}
	}
	slices.Sort(addresses)
	return slices.DeleteFunc(slices.Compact(addresses), func(a string) bool { return a == "" })
}

// isOfOther reports whether an address is a node's, or that of a frontend of another owner, or of a public IP for others
// that has no frontend. If another Service's status has it, that Service's object shows all that it needs there.
func (p *planner) isOfOther(ip netip.Addr, self string) bool {
	x, owner := p.Index, self
	for _, id := range x.PublicIPsAt[ip.String()] {
		public := x.PublicIP(id)
		if at := public.Properties.IPConfiguration.To().Name(); naming.IsOwned(at) {
			owner = naming.Owner(at)
		} else if public.Tagged {
			owner = ""
		}
	}
	for _, at := range x.Holders[ip.String()] {
		if naming.IsOwned(at.Name) {
			owner = at.Owner()
		}
	}
	if x.NodeIPs[ip] {
		owner = ""
	}
	other := x.Known[owner]
	return owner != self && (other == nil || !slices.ContainsFunc(other.Status.LoadBalancer.Ingress,
		func(in v1.LoadBalancerIngress) bool { return in.IP == ip.String() }))
}
