package security

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/spec"
)

// rule is one rule of a security group.
type rule struct {
	azure.Child[network.SecurityRule]
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
func isLegacySharedRule(c azure.Child[network.SecurityRule]) bool {
	parts := strings.SplitN(c.Name, "-", 4)
	return len(parts) == 4 && parts[0] == "shared" && isProtocol(parts[1]) &&
		slices.Equal(ports(c.Properties), []string{parts[2]}) && strings.EqualFold(c.Properties.Direction, "Inbound") &&
		c.Properties.Priority >= firstPriority
}

func isProtocol(text string) bool { return slices.Contains([]string{"TCP", "UDP", "SCTP"}, text) }

// Azure writes a list of one element alone, or as a list; these are the lists, however written.

func destinations(r network.SecurityRule) []string {
	return listed(r.DestinationAddressPrefix, r.DestinationAddressPrefixes)
}
func ports(r network.SecurityRule) []string {
	return listed(r.DestinationPortRange, r.DestinationPortRanges)
}
func sources(r network.SecurityRule) []string {
	return listed(r.SourceAddressPrefix, r.SourceAddressPrefixes)
}
func sourcePorts(r network.SecurityRule) []string {
	return listed(r.SourcePortRange, r.SourcePortRanges)
}

func listed(one *string, many []string) []string {
	if one != nil && *one != "" {
		return append([]string{*one}, many...)
	}
	return many
}

// oneOrMany is Azure's two ways to write a list. An existing list is emptied rather than left.
func oneOrMany(values []string, listed bool) (*string, []string) {
	if len(values) != 1 {
		return nil, values
	}
	if listed {
		return new(values[0]), []string{}
	}
	return new(values[0]), nil
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// isIPv6 reports whether a rule leads to IPv6 addresses.
func (r *rule) isIPv6() bool {
	for address := range r.to { // an address that Azure chooses does not tell
		if strings.Contains(address, ":") {
			return true
		}
	}
	return false
}

// leadsTo reports whether a managed rule leads to one of the addresses.
func (r *rule) leadsTo(addresses map[netip.Addr]bool) bool {
	for address := range r.to {
		if ip, err := netip.ParseAddr(address); err == nil && addresses[ip] {
			return true
		}
	}
	return false
}

// hasWrittenDestinations reports whether a rule's document has its destinations already.
func (r *rule) hasWrittenDestinations() bool {
	written := destinations(r.Properties)
	return len(r.to) == len(written) && !slices.ContainsFunc(written, func(x string) bool { return !r.to[x] })
}

// conform makes a rule again what its name says it is, should it have been edited.
func (r *rule) conform(want network.SecurityRule) {
	p := &r.Properties
	if r.to == nil || strings.EqualFold(p.Protocol, want.Protocol) && strings.EqualFold(p.Access, want.Access) &&
		strings.EqualFold(p.Direction, want.Direction) && sameList(ports(*p), ports(want)) &&
		sameList(sources(*p), sources(want)) && sameList(sourcePorts(*p), sourcePorts(want)) {
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

// emptied is a list in its wanted state: one that exists is emptied rather than left.
func emptied(want, have []string) []string {
	if want == nil && have != nil {
		return []string{}
	}
	return want
}

// sameList compares without regard to order.
func sameList(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// allowance is the content of the rule of an opening.
func allowance(o spec.Opening) network.SecurityRule {
	r := network.SecurityRule{Direction: "Inbound", Access: "Allow", Protocol: o.Protocol, SourcePortRange: new("*"),
		DestinationPortRanges: slices.Sorted(slices.Values(o.Ports))}
	r.SourceAddressPrefix, r.SourceAddressPrefixes = oneOrMany(slices.Sorted(slices.Values(o.Sources)), false)
	return r
}

// denial is the content of a rule that denies everything.
func denial() network.SecurityRule {
	return network.SecurityRule{Direction: "Inbound", Access: "Deny", Protocol: "*",
		SourceAddressPrefix: new("*"), SourcePortRange: new("*"), DestinationPortRange: new("*")}
}
