package security

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/schema"
)

func securityRules() behaviour.Type {
	return schema.Inside("networkSecurityGroups/securityRules", "properties.securityRules", behaviour.Type{
		Style: schema.RetryAfter(10, 10),
		Fill:  fillSecurityRule,
	})
}

func fillSecurityRule(c *behaviour.Call) error {
	const lowest, highest = 100, 4096
	if priority, ok := behaviour.Int(c.Doc, "properties.priority"); !ok || priority < lowest || priority > highest {
		given := behaviour.At(c.Doc, "properties.priority")
		if given == nil {
			given = 0
		}
		return behaviour.Invalid("SecurityRuleInvalidPriority",
			"Security rule has invalid Priority. Value provided: %v Allowed range %d-%d.", given, lowest, highest)
	}
	err := schema.FirstError(
		func() error { return schema.Number(c, "properties.priority", -1, lowest, highest) },
		func() error { return schema.Required(c, "properties.direction", "Inbound", "Outbound") },
		func() error { return schema.Required(c, "properties.access", "Allow", "Deny") },
		func() error { return schema.Required(c, "properties.protocol", "*", "Tcp", "Udp", "Icmp", "Esp", "Ah") },
	)
	if err != nil {
		return err
	}
	for _, s := range ruleSides {
		if err := s.fillPorts(c); err != nil {
			return err
		}
		if err := s.fillAddresses(c); err != nil {
			return err
		}
	}
	return checkRanges(c)
}

// checkRanges checks that all addresses of a rule are of one family, and those of a side do not overlap.
func checkRanges(c *behaviour.Call) error {
	var all []netip.Prefix
	for _, s := range ruleSides {
		ranges := s.ranges(c.Doc)
		for _, p := range ranges {
			if all = append(all, p); ipam.Family(p.Addr()) != ipam.Family(all[0].Addr()) {
				return behaviour.Invalid("ResourceCannotContainAddressPrefixesFromDifferentAddressFamilies",
					"Resource %s contains IP addresses or prefixes that belong to different address families. All IP addresses or "+
						"prefixes in the resource should belong to the same address family.", c.ID)
			}
		}
		slices.SortFunc(ranges, netip.Prefix.Compare) // overlapping ranges are neighbours after this
		for i := range max(len(ranges)-1, 0) {
			if ranges[i].Overlaps(ranges[i+1]) {
				return behaviour.Invalid("OverlappingSubnetsNotPermittedInSecurityRule",
					"Security rule parameter %s for rule with Id %s contains overlapping subnets [%s, %s], which is not permitted.",
					field(s.address), c.ID, ranges[i], ranges[i+1])
			}
		}
	}
	return nil
}

// ranges returns the addresses of a side, without tags.
func (s ruleSide) ranges(rule behaviour.Object) []netip.Prefix {
	var ranges []netip.Prefix
	for _, text := range append(behaviour.Texts(rule, s.addresses), behaviour.Text(rule, s.address)) {
		if p, err := netip.ParsePrefix(text); err == nil {
			ranges = append(ranges, p)
		} else if a, ok := ipam.Parse(text); ok {
			ranges = append(ranges, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return ranges
}

// ruleSide has the paths of the properties for one end of a rule's traffic.
type ruleSide struct{ port, ports, address, addresses, groups string }

var ruleSides = []ruleSide{
	{"properties.sourcePortRange", "properties.sourcePortRanges", "properties.sourceAddressPrefix",
		"properties.sourceAddressPrefixes", "properties.sourceApplicationSecurityGroups"},
	{"properties.destinationPortRange", "properties.destinationPortRanges", "properties.destinationAddressPrefix",
		"properties.destinationAddressPrefixes", "properties.destinationApplicationSecurityGroups"},
}

// field returns the last name of a path, as Azure's messages spell it.
func field(path string) string {
	name := path[strings.LastIndexByte(path, '.')+1:]
	return strings.ToUpper(name[:1]) + name[1:]
}

func (s ruleSide) fillPorts(c *behaviour.Call) error {
	one, many, err := oneOrMany(c, s.port, s.ports)
	if err != nil {
		return err
	}
	if one == "" && len(many) == 0 {
		return missingInRule(c.ID, "%s or %s", field(s.ports), field(s.port))
	}
	if one != "" {
		many = []string{one}
	}
	for _, text := range many {
		if !portRange(text) {
			return behaviour.Invalid("SecurityRuleInvalidPortRange",
				"Security rule has invalid Port range. Value provided: %s. Value should be an integer OR integer range with '-' "+
					"delimiter. Valid range 0-65535.", text)
		}
	}
	return nil
}

func missingInRule(id azure.ID, format string, args ...any) error {
	return behaviour.Invalid("SecurityRuleParametersMissing",
		"Required security rule parameters are missing for security rule with Id: %s. Security rule must specify "+format+".",
		append([]any{id}, args...)...)
}

// oneOrMany reads a property with a single and a list form. A single value keeps an empty list beside it. A list has no
// single value beside it, or "" as it was sent.
func oneOrMany(c *behaviour.Call, single, plural string) (string, []string, error) {
	if err := schema.List(c, plural); err != nil {
		return "", nil, err
	}
	one, many := behaviour.Text(c.Doc, single), behaviour.Texts(c.Doc, plural)
	if one != "" && len(many) > 0 {
		return "", nil,
			behaviour.Invalid("SecurityRuleParameterContainsUnsupportedValue", "Security rule %s must not specify both %s and %s.", c.ID,
				field(single), field(plural))
	}
	return one, many, nil
}

// portRange reports whether a text is "*", a port, or two ports with a dash between them.
func portRange(text string) bool {
	if text == "*" {
		return true
	}
	from, to, isRange := strings.Cut(text, "-")
	a, err := strconv.ParseUint(from, 10, 16)
	if err != nil {
		return false
	}
	if !isRange {
		return true
	}
	b, err := strconv.ParseUint(to, 10, 16)
	return err == nil && a <= b
}

func (s ruleSide) fillAddresses(c *behaviour.Call) error {
	one, many, err := oneOrMany(c, s.address, s.addresses)
	if err != nil {
		return err
	}
	groups := behaviour.Objects(c.Doc, s.groups)
	switch {
	case one == "" && len(many) == 0 && len(groups) == 0:
		return missingInRule(c.ID, "%s, %s, or %s", field(s.addresses), field(s.address), field(s.groups))
	case len(groups) > 0 && (one != "" || len(many) > 0):
		return behaviour.Invalid("SecurityRuleParameterContainsUnsupportedValue", "Security rule %s must not specify both %s and %s.",
			c.ID, field(s.groups), field(s.address))
	}
	if one != "" && !ipam.IsServiceTag(one) && !ipam.IsAddressOrRange(one) {
		return invalidAddress(c.ID, one)
	}
	for _, text := range many {
		if ipam.IsServiceTag(text) {
			return behaviour.Invalid("SecurityRuleParameterContainsUnsupportedValue",
				"Security rule parameter %s for rule with Id %s cannot specify existing VIRTUALNETWORK, INTERNET, "+
					"AZURELOADBALANCER, '*' or system tags. Unsupported value used: %s.", field(s.address), c.ID, text)
		}
		if !ipam.IsAddressOrRange(text) {
			return invalidAddress(c.ID, text)
		}
	}
	return nil
}

func invalidAddress(id azure.ID, text string) error {
	return behaviour.Invalid("SecurityRuleInvalidAddressPrefix",
		"Security rule %s has invalid Address prefix. Value provided: %s", id, text)
}
