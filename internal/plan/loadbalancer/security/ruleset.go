package security

import (
	"fmt"
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

// Priorities of managed rules: allow rules take the lowest free one upwards, the deny rule the highest downwards.
const (
	firstPriority = 500
	lastPriority  = 4095
)

// The limits of a security group.
const (
	mostRules    = 1000
	mostPrefixes = 4000 // of sources, and of destinations
)

// grant opens destinations to the sources that a Service lets in.
type grant struct {
	openings []spec.Opening
	implied  []spec.Opening // let in no source that those do not: rules that say so may stay
	family   v1.IPFamily
	to       []string
	deny     bool // everything else
}

// newGrant opens addresses of a family at the Service's own ports, or at its node ports.
func newGrant(s *spec.Spec, family v1.IPFamily, nodePort bool, to map[string]bool, deny bool) grant {
	if len(to) == 0 {
		return grant{}
	}
	return grant{s.Openings(family, nodePort), s.Implied(family, nodePort), family, sorted(to), deny}
}

// lead is a rule, by its name in lower case, that leads to a destination.
type lead struct{ rule, to string }

// note adds where the rules of the grant lead.
func (g grant) note(staying map[lead]bool) {
	add := func(name string) {
		name = strings.ToLower(name)
		for _, address := range g.to {
			staying[lead{name, address}] = true
		}
	}
	for _, o := range slices.Concat(g.openings, g.implied) {
		add(o.Name())
	}
	if g.deny {
		add(naming.DenyRule(g.family))
	}
}

// ruleSet is the rules of a security group while they are being decided.
type ruleSet struct {
	all    []*rule
	byName map[string]*rule   // in lower case
	used   map[int32]bool     // priorities
	to     map[string][]*rule // managed rules that have had a destination
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
			return fmt.Sprintf("it would have too many %s, allowed by Azure are %d: take ranges or ports away, or let Services have "+
				"the same, which share their rules", limit.what, limit.most)
		}
	}
	return ""
}

func newRuleSet(children []azure.Child[network.SecurityRule]) *ruleSet {
	set := &ruleSet{
		byName: make(map[string]*rule, len(children)), used: make(map[int32]bool, len(children)), to: map[string][]*rule{},
	}
	for _, c := range children {
		r := &rule{Child: c}
		if IsManagedRule(c) || isLegacySharedRule(c) {
			r.to = map[string]bool{}
			for _, address := range destinations(c.Properties) {
				r.to[address] = true
				set.to[address] = append(set.to[address], r)
			}
		}
		set.add(r)
		set.count(r, 1)
		set.counts.destinations += len(destinations(c.Properties))
	}
	return set
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

// drop takes rules out as a whole.
func (s *ruleSet) drop(which func(*rule) bool) {
	s.all = slices.DeleteFunc(s.all, func(r *rule) bool {
		if !which(r) {
			return false
		}
		delete(s.byName, strings.ToLower(r.Name))
		delete(s.used, r.Properties.Priority)
		s.count(r, -1)
		s.counts.destinations -= len(destinations(r.Properties))
		r.to = nil
		return true
	})
}

// withdraw removes an address from all managed rules, except for rules and ports that others need, and
// reports whether it did.
func (s *ruleSet) withdraw(address string, staying map[lead]bool, needed needs) (was bool) {
	rules := s.having(address)
	if len(rules) == 0 {
		return false
	}
	needs := needed.at(address)
	for _, r := range rules {
		if staying[lead{strings.ToLower(r.Name), address}] {
			continue
		}
		all := ports(r.Properties)
		rest := slices.DeleteFunc(slices.Clone(all), func(port string) bool {
			return !needs(need{kind: needPort, port: portOf(r.Properties.Protocol, port)}) && !needs(need{kind: needAllPorts})
		})
		deny := strings.EqualFold(r.Properties.Access, "Deny")
		if needs(need{kind: needRule, rule: strings.ToLower(r.Name)}) || deny && needs(need{kind: needDenial}) ||
			len(rest) == len(all) && !deny {
			continue
		}
		was = true
		s.remove(r, address)
		if family, ok := familyOf(address); ok && len(rest) > 0 && !deny {
			s.allow(spec.Opening{Family: family, Protocol: r.Properties.Protocol, Sources: sources(r.Properties), Ports: rest}, address)
		}
	}
	return was
}

func familyOf(text string) (v1.IPFamily, bool) {
	ip, err := netip.ParseAddr(text)
	return address.Family(ip), err == nil
}

func (s *ruleSet) having(address string) (rules []*rule) {
	for _, r := range s.to[address] {
		if r.to[address] {
			rules = append(rules, r)
		}
	}
	return rules
}

// openAt are the managed rules that lead to one of the addresses, by the ports that they open.
func (s *ruleSet) openAt(addresses map[netip.Addr]bool) map[portNeed][]*rule {
	open := map[portNeed][]*rule{}
	for _, r := range s.all {
		if !r.leadsTo(addresses) {
			continue
		}
		for _, port := range ports(r.Properties) {
			at := portOf(r.Properties.Protocol, port)
			open[at] = append(open[at], r)
		}
	}
	return open
}

// destinations are the addresses to which managed rules lead. An older controller's rules do not
// count, as other software may use them after all.
func (s *ruleSet) destinations() map[string]bool {
	all := map[string]bool{}
	for _, r := range s.all {
		for text := range r.to {
			if _, is := familyOf(text); is && IsManagedRule(r.Child) {
				all[text] = true
			}
		}
	}
	return all
}

// forget takes destinations out of managed rules, and returns them.
func (s *ruleSet) forget(unknown map[string]bool) []string {
	for _, address := range sorted(unknown) {
		for _, r := range s.having(address) {
			if IsManagedRule(r.Child) {
				s.remove(r, address)
			}
		}
	}
	return sorted(unknown)
}

func (s *ruleSet) remove(r *rule, address string) {
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
		s.allow(o, g.to...)
	}
	if g.deny {
		s.point(naming.DenyRule(g.family), denial(), lastPriority, -1, g.to...)
	}
}

func (s *ruleSet) allow(o spec.Opening, to ...string) {
	s.point(o.Name(), allowance(o), firstPriority, 1, to...)
}

// point has a rule lead to more addresses. A new rule gets the first free priority in the direction of step.
func (s *ruleSet) point(name string, content network.SecurityRule, priority, step int32, to ...string) {
	r, ok := s.byName[strings.ToLower(name)]
	if !ok {
		for s.used[priority] {
			priority += step
		}
		r = &rule{Child: azure.Child[network.SecurityRule]{Name: name, Properties: content}, to: map[string]bool{}}
		r.Properties.Priority = priority
		s.add(r)
	}
	r.conform(content)
	for _, address := range to {
		s.admit(r, address)
	}
}

// admit adds a destination. A foreign rule that has a managed name keeps its own.
func (s *ruleSet) admit(r *rule, address string) {
	if r.to == nil || r.to[address] {
		return
	}
	if len(r.to) == 0 {
		s.count(r, 1)
	}
	r.to[address] = true
	r.changed = true
	s.counts.destinations++
	if !slices.Contains(s.to[address], r) {
		s.to[address] = append(s.to[address], r)
	}
}

// extend adds the destinations of the rule's family, as long as there is room.
func (s *ruleSet) extend(r *rule, addresses []string) {
	for _, address := range addresses {
		if s.counts.destinations < mostPrefixes && strings.Contains(address, ":") == r.isIPv6() {
			s.admit(r, address)
		}
	}
}

// decided writes the rules that changed over those that were there, and removes managed rules that lost their
// last destination.
func (s *ruleSet) decided(had []azure.Child[network.SecurityRule]) plan.Shared[network.SecurityRule] {
	all := plan.SharedList(had)
	for _, c := range had {
		if s.byName[strings.ToLower(c.Name)] == nil {
			all.Remove(c.Name)
		}
	}
	for _, r := range s.all {
		if !r.changed {
			continue
		}
		if !r.hasWrittenDestinations() {
			if len(r.to) == 0 && len(r.Properties.DestinationApplicationSecurityGroups) == 0 {
				all.Remove(r.Name)
				continue
			}
			p := &r.Properties
			p.DestinationAddressPrefix, p.DestinationAddressPrefixes = oneOrMany(sorted(r.to), p.DestinationAddressPrefixes != nil)
		}
		all.Write(r.Child)
	}
	return all
}
