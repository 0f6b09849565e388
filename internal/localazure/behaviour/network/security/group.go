package security

import (
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/ipam"
	"kaz/internal/localazure/behaviour/network/schema"
)

// applicationSecurityGroups is the type of the names for sets of network interfaces.
func applicationSecurityGroups() behaviour.Type {
	return schema.Tracked("applicationSecurityGroups", behaviour.Type{
		Style: schema.RetryAfter(3, 10),
		InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
			return behaviour.Invalid("InUseApplicationSecurityGroupCannotBeDeleted",
				"Application security group %s cannot be deleted because it is in use by the following resources: %s.", c.ID,
				schema.JoinIDs(schema.ObjectIDs(by)))
		},
	})
}

// ipGroups is the type of the names for sets of addresses.
func ipGroups() behaviour.Type {
	style := schema.RetryAfter(3, 10)
	style.Protocol = behaviour.FirewallOperations()
	style.Etag, style.EtagHeaderForm = behaviour.BareGUID, behaviour.QuotedGUID
	delete(style.Long, behaviour.Delete)
	style.Deleted = 200
	t := schema.Tracked("ipGroups", behaviour.Type{
		Style: style,
		Fill: func(c *behaviour.Call) error {
			if err := schema.List(c, "properties.ipAddresses", "properties.firewalls", "properties.firewallPolicies"); err != nil {
				return err
			}
			for _, text := range behaviour.Texts(c.Doc, "properties.ipAddresses") {
				if !ipam.IsAddressOrRange(text) && !addressSpan(text) {
					return behaviour.Invalid("InvalidIpGroupAddress",
						"IP address %s of IP group %s is not an address, a range in CIDR notation, or two addresses with a dash.",
						text, c.ID)
				}
			}
			return nil
		},
	})
	t.Own = []string{"properties.firewalls", "properties.firewallPolicies", "properties.resourceGuid"}
	return t
}

// addressSpan reports whether a text is two addresses in ascending order with a dash between them.
func addressSpan(text string) bool {
	from, to, ok := strings.Cut(text, "-")
	a, okA := ipam.Parse(from)
	b, okB := ipam.Parse(to)
	return ok && okA && okB && a.BitLen() == b.BitLen() && !b.Less(a)
}
