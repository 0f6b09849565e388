package security

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
)

const (
	// Managed allow rules take the lowest free priority upwards, deny rules the highest downwards.
	firstPriority = 500
	lastPriority  = 4095

	// The limits of a security group.
	mostRules    = 1000
	mostPrefixes = 4000 // of sources, and of destinations
)

type securityRule = azure.Child[network.SecurityRule]

type rule struct {
	securityRule
	to      map[string]bool // destinations of a managed rule, nil of others
	changed bool
}

// IsManagedRule reports whether a security rule is one of kaz.
func IsManagedRule(c azure.Child[network.SecurityRule]) bool {
	return naming.IsManagedRule(c.Name) && c.Properties.Priority >= firstPriority
}

// IsLegacyRule reports whether a rule is one that older controllers wrote, for one
// port of one Service: base-TCP-80-Internet.
func IsLegacyRule(c azure.Child[network.SecurityRule]) bool {
	parts := strings.SplitN(c.Name, "-", 4)
	return len(parts) == 4 && naming.IsOwned(c.Name) && isProtocol(strings.ToUpper(parts[1])) && c.Properties.Priority >= firstPriority
}

// isLegacySharedRule reports whether a rule is one that older controllers wrote, for one
// port of several Services: shared-TCP-80-Internet. Managed rules replace it, so that it loses the
// Services' addresses, and goes with the last one.
func isLegacySharedRule(c securityRule) bool {
	parts := strings.SplitN(c.Name, "-", 4)
	return len(parts) == 4 && parts[0] == "shared" && isProtocol(parts[1]) &&
		slices.Equal(ports(c.Properties), []string{parts[2]}) && strings.EqualFold(c.Properties.Direction, "Inbound") &&
		c.Properties.Priority >= firstPriority
}

func isProtocol(text string) bool { return slices.Contains([]string{"TCP", "UDP", "SCTP"}, text) }

// nodeFamily is the family of the nodes' addresses to which a rule leads, "" for none. A rule of Azure has one family.
func (r *rule) nodeFamily(nodes map[netip.Addr]bool) v1.IPFamily {
	for to := range r.to {
		if ip, err := netip.ParseAddr(to); err == nil && nodes[ip] {
			return address.Family(ip)
		}
	}
	return ""
}

// conform restores a rule to what its name says, if it was edited.
func (r *rule) conform(want network.SecurityRule) {
	p := &r.Properties
	if strings.EqualFold(p.Protocol, want.Protocol) && strings.EqualFold(p.Access, want.Access) &&
		strings.EqualFold(p.Direction, want.Direction) && slices.Equal(ports(*p), ports(want)) &&
		slices.Equal(sources(*p), sources(want)) && slices.Equal(Listed(p.SourcePortRange, p.SourcePortRanges), []string{"*"}) {
		return
	}
	r.changed = true
	p.Protocol, p.Access, p.Direction = want.Protocol, want.Access, want.Direction
	p.DestinationPortRange, p.DestinationPortRanges = want.DestinationPortRange,
		emptied(want.DestinationPortRanges, p.DestinationPortRanges)
	p.SourcePortRange, p.SourcePortRanges = want.SourcePortRange, emptied(want.SourcePortRanges, p.SourcePortRanges)
	p.SourceAddressPrefix, p.SourceAddressPrefixes = want.SourceAddressPrefix,
		emptied(want.SourceAddressPrefixes, p.SourceAddressPrefixes)
}

func ports(r network.SecurityRule) []string {
	return Listed(r.DestinationPortRange, r.DestinationPortRanges)
}

func sources(r network.SecurityRule) []string {
	return Listed(r.SourceAddressPrefix, r.SourceAddressPrefixes)
}

// Listed reads the two ways in which Azure writes a list: one element alone, or a list. It is sorted.
func Listed(one *string, many []string) []string {
	if one != nil && *one != "" {
		many = append([]string{*one}, many...)
	}
	return slices.Sorted(slices.Values(many))
}

func oneOrMany(values []string) (one *string, many []string) {
	if len(values) == 1 {
		return new(values[0]), nil
	}
	return nil, values
}

// emptied is a list in its wanted state: one that exists is emptied rather than left.
func emptied(want, have []string) []string {
	if want == nil && have != nil {
		return []string{}
	}
	return want
}

// allowance is the rule of an opening, as denial without a priority.
func allowance(o spec.Opening) securityRule {
	r := network.SecurityRule{Direction: "Inbound", Access: "Allow", Protocol: o.Protocol, SourcePortRange: new("*"),
		DestinationPortRanges: o.Ports}
	r.SourceAddressPrefix, r.SourceAddressPrefixes = oneOrMany(o.Sources)
	return securityRule{Name: o.Name(), Properties: r}
}

func denial(family v1.IPFamily) securityRule {
	return securityRule{Name: naming.DenyRule(family), Properties: network.SecurityRule{Direction: "Inbound", Access: "Deny",
		Protocol: "*", SourceAddressPrefix: new("*"), SourcePortRange: new("*"), DestinationPortRange: new("*")}}
}

type ruleSet struct {
	all    []*rule
	byName map[string]*rule   // in lower case
	used   map[int32]bool     // priorities
	to     map[string][]*rule // managed rules, by destination
	counts size
	list   plan.Shared[network.SecurityRule]
}

// size is what Azure limits of a security group.
type size struct{ rules, sources, destinations int }

// exceeds says which limit is exceeded now and was not exceeded as far before, "" for none.
func (s size) exceeds(before size) string {
	what, most := "", mostPrefixes
	switch {
	case s.rules > max(mostRules, before.rules):
		what, most = "rules", mostRules
	case s.sources > max(mostPrefixes, before.sources):
		what = "source prefixes"
	case s.destinations > max(mostPrefixes, before.destinations):
		what = "destination prefixes"
	default:
		return ""
	}
	return fmt.Sprintf("it would have too many %s, allowed by Azure are %d: take ranges or ports away, or let Services have "+
		"the same, which share their rules", what, most)
}

// newRuleSet is the rules that are there, without the legacy rules of owners that get managed ones.
func newRuleSet(had []securityRule, isReplaced func(owner string) bool) *ruleSet {
	s := &ruleSet{byName: make(map[string]*rule, len(had)), used: make(map[int32]bool, len(had)),
		to: map[string][]*rule{}, list: plan.SharedList(had)}
	for _, c := range had {
		if IsLegacyRule(c) && isReplaced(naming.Owner(c.Name)) {
			s.list.Remove(c.Name)
			continue
		}
		r, addresses := &rule{securityRule: c}, Listed(c.Properties.DestinationAddressPrefix, c.Properties.DestinationAddressPrefixes)
		if IsManagedRule(c) || isLegacySharedRule(c) {
			r.to = map[string]bool{}
			for _, address := range addresses {
				r.to[address] = true
				s.to[address] = append(s.to[address], r)
			}
		}
		s.add(r)
		s.count(r, 1)
		s.counts.destinations += len(addresses)
	}
	return s
}

func (s *ruleSet) add(r *rule) {
	s.all = append(s.all, r)
	s.byName[strings.ToLower(r.Name)] = r
	s.used[r.Properties.Priority] = true
}

func (s *ruleSet) count(r *rule, by int) {
	s.counts.rules += by
	s.counts.sources += by * len(sources(r.Properties))
}

func (s *ruleSet) remove(r *rule, address string) {
	delete(r.to, address)
	s.to[address] = slices.DeleteFunc(s.to[address], func(other *rule) bool { return other == r })
	r.changed = true
	s.counts.destinations--
	if len(r.to) == 0 {
		s.count(r, -1)
	}
}

func (s *ruleSet) admit(r *rule, address string) {
	if r.to[address] {
		return
	}
	if len(r.to) == 0 {
		s.count(r, 1)
	}
	r.to[address] = true
	s.to[address] = append(s.to[address], r)
	r.changed = true
	s.counts.destinations++
}

// point has a rule lead to more addresses. A new rule gets the first free priority. A foreign rule that has a
// managed name stays as it is.
func (s *ruleSet) point(want securityRule, to ...string) {
	r, ok := s.byName[strings.ToLower(want.Name)]
	if !ok {
		priority, step := int32(firstPriority), int32(1)
		if want.Properties.Access == "Deny" {
			priority, step = lastPriority, -1
		}
		for s.used[priority] {
			priority += step
		}
		want.Properties.Priority = priority
		r = &rule{securityRule: want, to: map[string]bool{}}
		s.add(r)
	}
	if r.to == nil {
		return
	}
	r.conform(want.Properties)
	for _, address := range to {
		s.admit(r, address)
	}
}

// port names an open port. Azure has several spellings of a protocol.
func port(protocol, number string) string { return strings.ToLower(protocol) + " " + number }

// openAt are the managed rules that lead to nodes, by the ports that they open.
func (s *ruleSet) openAt(nodes map[netip.Addr]bool) map[string][]*rule {
	open := map[string][]*rule{}
	for _, r := range s.all {
		if r.nodeFamily(nodes) == "" {
			continue
		}
		for _, number := range ports(r.Properties) {
			at := port(r.Properties.Protocol, number)
			open[at] = append(open[at], r)
		}
	}
	return open
}

// decided writes the rules that changed over those that were there, and removes managed rules that lost their
// last destination.
func (s *ruleSet) decided() plan.Shared[network.SecurityRule] {
	for _, r := range s.all {
		if !r.changed {
			continue
		}
		p := &r.Properties
		to := slices.Sorted(maps.Keys(r.to))
		if !slices.Equal(to, Listed(p.DestinationAddressPrefix, p.DestinationAddressPrefixes)) {
			if len(to) == 0 && len(p.DestinationApplicationSecurityGroups) == 0 {
				s.list.Remove(r.Name)
				continue
			}
			one, many := oneOrMany(to)
			p.DestinationAddressPrefix, p.DestinationAddressPrefixes = one, emptied(many, p.DestinationAddressPrefixes)
		}
		s.list.Write(r.securityRule)
	}
	return s.list
}
