package loadbalancer

import (
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// facts is the snapshot, read once.
type facts struct {
	Input
	sides       []*side
	groupExists bool
	group       azure.Resource[network.SecurityGroup]
	ips         map[string]publicIP    // by id key
	ipsOf       map[string][]azure.ID  // by Service that a tag names
	ipsAt       map[string][]azure.ID  // by address
	standsAt    map[string][]*side     // which load balancers have an address, by its target's key
	nodes       []*v1.Node             // all, by name
	nodeIPs     map[netip.Addr]bool    // of all nodes
	alive       map[string]*v1.Service // all known Services, by base name in lower case
	linkAt      map[string]privateLink // by id key of the frontend
	linksByID   map[string]privateLink // by id key
	subnets     map[string]subnetFacts // by id key
	// unclaimed is what the decision takes away, or gives to others, because no Service that
	// is known has it, and what has it so far.
	unclaimed map[string]string
}

// side is one load balancer as it is: the external or the internal one of a pair.
type side struct {
	id        azure.ID
	internal  bool
	entry     int // of the configuration, -1 for a load balancer that is not there any more
	exists    bool
	lb        azure.Resource[network.LoadBalancer]
	uses      map[string][]use                       // of frontends, by name in lower case
	ruled     map[string][]network.LoadBalancingRule // by the Service's base name
	rules     map[string]bool                        // names, in lower case
	poolUsers map[string]map[string]bool             // owners of rules that lead to a pool, by its name in lower case
	order     map[string]int                         // of the frontends, by name in lower case
	byOwner   map[string][]azure.Child[network.FrontendIPConfiguration]
	known     map[string]azure.Child[network.FrontendIPConfiguration] // by name in lower case
}

type subnetFacts struct {
	exists bool // or may exist: it could not be read
	ranges []netip.Prefix
}

func readFacts(in Input) (*facts, error) {
	f := &facts{Input: in, unclaimed: map[string]string{}}
	f.alive = make(map[string]*v1.Service, len(in.Services)+len(in.Others))
	for _, s := range in.Services {
		f.alive[strings.ToLower(baseName(s.Service))] = s.Service
	}
	for _, s := range in.Others {
		f.alive[strings.ToLower(baseName(s))] = s
	}
	err := f.readSides()
	if err != nil {
		return nil, err
	}
	f.readStanding()
	if in.Config.SecurityGroupName != "" {
		if f.group, f.groupExists, err = plan.View[network.SecurityGroup](in.Have, in.Config.securityGroup()); err != nil {
			return nil, err
		}
	}
	if err := f.readPublicIPs(); err != nil {
		return nil, err
	}
	f.nodes = slices.SortedFunc(slices.Values(in.Nodes), func(a, b *v1.Node) int { return strings.Compare(a.Name, b.Name) })
	f.readNodeIPs()
	if err := f.readLinks(); err != nil {
		return nil, err
	}
	return f, f.readSubnets()
}

// readSides reads the configured load balancers, and others that have a frontend or a rule of
// a known Service: the configuration may have been another one.
func (f *facts) readSides() error {
	for i, e := range f.Config.entries() {
		for _, internal := range []bool{false, true} {
			s, err := readSide(f.Input, f.Config.balancer(e.Name, internal), internal)
			if err != nil {
				return err
			}
			s.entry = i
			f.sides = append(f.sides, s)
		}
	}
	for _, d := range f.Have.List(f.Config.balancers(), network.LoadBalancers) {
		if f.sideWith(d.ID()) != nil {
			continue
		}
		view, err := azure.Decode[links](d)
		if err != nil {
			return err
		}
		if !f.servesKnown(view.Properties) {
			continue
		}
		s, err := readSide(f.Input, d.ID(), isInternal(d.ID()))
		if err != nil {
			return err
		}
		s.entry = -1
		f.sides = append(f.sides, s)
	}
	return nil
}

// servesKnown reports whether something in a load balancer is a known Service's.
func (f *facts) servesKnown(lb links) bool {
	return slices.ContainsFunc(lb.FrontendIPConfigurations, func(fe azure.Child[struct{}]) bool { return f.alive[ownerBase(fe.Name)] != nil }) ||
		slices.ContainsFunc(lb.LoadBalancingRules, func(r azure.Child[linkRule]) bool { return f.alive[ownerBase(r.Name)] != nil })
}

func readSide(in Input, id azure.ID, internal bool) (*side, error) {
	s := &side{id: id, internal: internal}
	var err error
	s.lb, s.exists, err = plan.View[network.LoadBalancer](in.Have, id)
	s.uses = usesOf(s.lb.Properties)
	s.ruled = make(map[string][]network.LoadBalancingRule, len(s.lb.Properties.LoadBalancingRules))
	s.poolUsers = map[string]map[string]bool{}
	s.rules = make(map[string]bool, len(s.lb.Properties.LoadBalancingRules))
	for _, r := range s.lb.Properties.LoadBalancingRules {
		s.rules[strings.ToLower(r.Name)] = true
		owner := ownerBase(r.Name)
		s.ruled[owner] = append(s.ruled[owner], r.Properties)
		if ref := r.Properties.BackendAddressPool; ref != nil {
			name := strings.ToLower(ref.ID.Name())
			if s.poolUsers[name] == nil {
				s.poolUsers[name] = map[string]bool{}
			}
			s.poolUsers[name][owner] = true
		}
	}
	all := s.lb.Properties.FrontendIPConfigurations
	s.byOwner = make(map[string][]azure.Child[network.FrontendIPConfiguration], len(all))
	s.known = make(map[string]azure.Child[network.FrontendIPConfiguration], len(all))
	s.order = make(map[string]int, len(all))
	for i, fe := range all {
		s.order[strings.ToLower(fe.Name)] = i
		owner := ownerBase(fe.Name)
		s.byOwner[owner] = append(s.byOwner[owner], fe)
		s.known[strings.ToLower(fe.Name)] = fe
	}
	return s, err
}

func (f *facts) readStanding() {
	f.standsAt = map[string][]*side{}
	for _, s := range f.sides {
		for _, fe := range s.lb.Properties.FrontendIPConfigurations {
			if at := targetOf(fe.Properties).key(); at != "" {
				f.standsAt[at] = append(f.standsAt[at], s)
			}
		}
	}
}

func (f *facts) readNodeIPs() {
	f.nodeIPs = make(map[netip.Addr]bool, len(f.Nodes))
	for _, n := range f.Nodes {
		for _, ip := range internalIPs(n) {
			f.nodeIPs[ip] = true
		}
	}
}

func internalIPs(n *v1.Node) []netip.Addr {
	var ips []netip.Addr
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == v1.NodeInternalIP {
			ips = append(ips, ip.Unmap())
		}
	}
	return ips
}

func (f *facts) readSubnets() error {
	f.subnets = map[string]subnetFacts{}
	for _, id := range subnetsInvolved(f.Input) {
		view, exists, err := plan.View[network.Subnet](f.Have, id)
		if err != nil {
			return err
		}
		_, unread := f.Have.Unread(id, network.Subnets)
		known := subnetFacts{exists: exists || unread}
		for _, text := range slices.Concat(view.Properties.AddressPrefixes, []string{view.Properties.AddressPrefix}) {
			if p, err := netip.ParsePrefix(text); err == nil {
				known.ranges = append(known.ranges, p)
			}
		}
		f.subnets[id.Key()] = known
	}
	return nil
}

func (s subnetFacts) String() string {
	texts := make([]string, len(s.ranges))
	for i, r := range s.ranges {
		texts[i] = r.String()
	}
	return strings.Join(texts, ", ")
}

// refuses says why nobody may have an address of the subnet, "" when somebody may.
func (s subnetFacts) refuses(ip netip.Addr) string {
	switch {
	case len(s.ranges) == 0: // it is not known
		return ""
	case !s.holds(ip):
		return "is not in the subnet"
	case slices.ContainsFunc(s.ranges, func(r netip.Prefix) bool { return isAzures(r, ip) }):
		return "is one that Azure keeps to itself in the subnet"
	}
	return ""
}

// isAzures reports whether an address is one that Azure keeps to itself: the first four
// of a range and its last.
func isAzures(r netip.Prefix, ip netip.Addr) bool {
	first := r.Masked().Addr()
	for range 4 {
		if ip == first {
			return true
		}
		first = first.Next()
	}
	return r.Contains(ip) && !r.Contains(ip.Next())
}

// lacks reports whether nobody can have an address of a family in the subnet.
func (s subnetFacts) lacks(family v1.IPFamily) bool {
	return len(s.ranges) > 0 && !slices.ContainsFunc(s.ranges, func(p netip.Prefix) bool { return familyOf(p.Addr()) == family })
}

func (s subnetFacts) holds(ip netip.Addr) bool {
	return slices.ContainsFunc(s.ranges, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// sideOf is the load balancer of a kind.
func (f *facts) sideOf(entry int, internal bool) *side {
	return f.sides[slices.IndexFunc(f.sides, func(s *side) bool { return s.entry == entry && s.internal == internal })]
}

// sideWith is the load balancer with an id, nil for none of ours.
func (f *facts) sideWith(id azure.ID) *side {
	if i := slices.IndexFunc(f.sides, func(s *side) bool { return s.id.Equal(id) }); i >= 0 {
		return f.sides[i]
	}
	return nil
}

// ofOwner lists the frontends that carry a Service's base name, wherever they are.
func (f *facts) ofOwner(base string) []spot {
	var all []spot
	for _, s := range f.sides {
		for _, fe := range s.byOwner[strings.ToLower(base)] {
			all = append(all, spot{s, fe.Name})
		}
	}
	return all
}

// spot is a frontend of a load balancer.
type spot struct {
	side *side
	name string
}

func (s spot) key() string { return s.side.id.Key() + "/" + strings.ToLower(s.name) }

// frontend is what is at the spot now.
func (s spot) frontend() (azure.Child[network.FrontendIPConfiguration], bool) {
	fe, ok := s.side.known[strings.ToLower(s.name)]
	return fe, ok
}

// addressAt is the address of a spot as far as is known.
func (f *facts) addressAt(s spot) string {
	fe, _ := s.frontend()
	if ref := fe.Properties.PublicIPAddress; ref != nil {
		return f.ips[ref.ID.Key()].Properties.IPAddress
	}
	return plainAddress(fe.Properties.PrivateIPAddress)
}
