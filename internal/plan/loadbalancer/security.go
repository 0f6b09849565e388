package loadbalancer

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
)

// Priorities of managed rules: allow rules take the lowest free one upwards, the
// deny rule the highest downwards.
const (
	firstPriority = 500
	lastPriority  = 4095
)

// security decides the rules of the security group. Where an address is not known
// yet it says so in pending and leaves that Service's rules as they are.
func (f *facts) security(b batch, lb balancer, pending *[]string) (plan.Node, bool) {
	if !f.groupExists {
		return plan.Node{}, false
	}
	rules := newRuleSet(f.group.Properties.SecurityRules)
	owners := f.addressOwners()
	var open []grant
	for _, w := range slices.Concat(b.live, b.gone) {
		for _, address := range f.addressesOf(w, owners) {
			rules.withdraw(address, f.needed(b, lb, w, address))
		}
	}
	for _, w := range b.live {
		address := f.ips[f.publicIPOf(w).Key()].Properties.IPAddress
		if address == "" {
			*pending = append(*pending, pendingAddress(f.publicIPOf(w), w))
			continue
		}
		open = append(open, grant{w.access, address})
	}
	for _, g := range open {
		rules.open(g)
	}
	names := b.names()
	view := azure.Resource[network.SecurityGroup]{
		ID: f.Config.securityGroup(), Tags: wantedTags(f.Config, nil, f.group.Tags),
		Properties: network.SecurityGroup{SecurityRules: rules.children()},
	}
	return plan.Wanted(view, "who may reach "+summary(names), names...), true
}

type grant struct {
	access
	address string
}

// addressOwners is the base name at whose frontend each known address stands, ""
// for an address that stands elsewhere or nowhere.
func (f *facts) addressOwners() map[string]string {
	owners := make(map[string]string, len(f.ips))
	for _, ip := range f.ips {
		if ip.Properties.IPAddress == "" {
			continue
		}
		owners[ip.Properties.IPAddress] = ""
		if at := ip.Properties.IPConfiguration; at != nil {
			owners[ip.Properties.IPAddress] = ownerBase(at.ID.Name())
		}
	}
	return owners
}

// needed is what others than the batch's Services serve at an address, as
// "Tcp/80": Services that share the frontend.
func (f *facts) needed(b batch, lb balancer, w wish, address string) map[string]bool {
	needed := map[string]bool{}
	for _, fe := range f.frontendsOf(w.base) {
		ref := fe.Properties.PublicIPAddress
		if ref == nil || !lb.kept[ref.ID.Key()] || f.ips[ref.ID.Key()].Properties.IPAddress != address {
			continue
		}
		for _, u := range f.remaining(b, fe.Name) {
			if u.owner != "" {
				needed[portKey(u.protocol, strconv.Itoa(int(u.first)))] = true
			}
		}
	}
	return needed
}

func portKey(protocol, port string) string { return strings.ToLower(protocol) + "/" + port }

// ruleSet is the rules of a security group while they are being decided.
type ruleSet struct {
	all    []*securityRule
	byName map[string]*securityRule
	used   map[int32]bool // priorities
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
		if isManagedRule(c) {
			r.to = map[string]bool{}
			for _, address := range destinations(c.Properties) {
				r.to[address] = true
			}
		}
		set.add(r)
	}
	return set
}

func isManagedRule(c azure.Child[network.SecurityRule]) bool {
	return len(c.Name) >= len(managedRulePrefix) && sameText(c.Name[:len(managedRulePrefix)], managedRulePrefix) &&
		c.Properties.Priority >= firstPriority && c.Properties.Priority <= lastPriority+1
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

func (s *ruleSet) add(r *securityRule) {
	s.all = append(s.all, r)
	s.byName[strings.ToLower(r.Name)] = r
	s.used[r.Properties.Priority] = true
}

// withdraw takes an address out of all managed rules, but for the ports that others
// need there.
func (s *ruleSet) withdraw(address string, needed map[string]bool) {
	for _, r := range slices.Clone(s.all) {
		if !r.to[address] {
			continue
		}
		all := ports(r.Properties)
		rest := slices.DeleteFunc(slices.Clone(all), func(port string) bool { return !needed[portKey(r.Properties.Protocol, port)] })
		deny := sameText(r.Properties.Access, "Deny")
		if deny && len(needed) > 0 || len(rest) == len(all) && !deny {
			continue
		}
		delete(r.to, address)
		r.changed = true
		if len(rest) > 0 {
			s.allow(opening{protocol: r.Properties.Protocol, sources: sources(r.Properties), ports: rest}, address)
		}
	}
}

// open lets in what a Service asks for.
func (s *ruleSet) open(g grant) {
	for _, o := range g.allow {
		s.allow(o, g.address)
	}
	if !g.deny {
		return
	}
	r, ok := s.byName[strings.ToLower(denyRuleName)]
	if !ok {
		r = denyRule(s.freePriority(lastPriority, -1))
		s.add(r)
	}
	r.admit(g.address)
}

func (s *ruleSet) allow(o opening, address string) {
	name := allowRuleName(o.protocol, o.sources, o.ports)
	r, ok := s.byName[strings.ToLower(name)]
	if !ok {
		r = allowRule(name, o, s.freePriority(firstPriority, 1))
		s.add(r)
	}
	r.conform(o)
	r.admit(address)
}

// conform makes a rule again what its name says it is, should somebody have edited it.
func (r *securityRule) conform(o opening) {
	p := &r.Properties
	if r.to == nil || sameText(p.Protocol, o.protocol) && sameText(p.Access, "Allow") && sameText(p.Direction, "Inbound") &&
		sameList(ports(*p), o.ports) && sameList(sources(*p), o.sources) {
		return
	}
	r.changed = true
	p.Protocol, p.Access, p.Direction = o.protocol, "Allow", "Inbound"
	p.DestinationPortRange, p.DestinationPortRanges = nil, o.ports
	p.SourceAddressPrefix, p.SourceAddressPrefixes = oneOrMany(o.sources, p.SourceAddressPrefixes != nil)
}

// sameList compares without regard to order.
func sameList(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// admit adds a destination. A foreign rule that has a managed name keeps its own.
func (r *securityRule) admit(address string) {
	if r.to != nil && !r.to[address] {
		r.to[address] = true
		r.changed = true
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

func denyRule(priority int32) *securityRule {
	r := network.SecurityRule{
		Priority: priority, Direction: "Inbound", Access: "Deny", Protocol: "*",
		SourceAddressPrefix: new("*"), SourcePortRange: new("*"), DestinationPortRange: new("*"),
	}
	return &securityRule{Child: azure.Child[network.SecurityRule]{Name: denyRuleName, Properties: r}, to: map[string]bool{}}
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
