package network

import (
	"strings"

	"kaz/internal/emulator/behaviour"
)

// applicationSecurityGroups are names for sets of network interfaces.
func applicationSecurityGroups() behaviour.Type {
	return tracked("applicationSecurityGroups", behaviour.Type{
		Style: waiting(3, 10),
		InUse: func(c *behaviour.Call, by []behaviour.Referrer) error {
			return behaviour.Invalid("InUseApplicationSecurityGroupCannotBeDeleted", "Application security group %s cannot be deleted because it is in use by the following resources: %s.", c.ID, joined(objects(by)))
		},
	})
}

// ipGroups are names for sets of addresses.
func ipGroups() behaviour.Type {
	style := waiting(3, 10)
	style.Protocol = behaviour.FirewallOperations()
	style.Etag, style.EtagHeaderForm = behaviour.BareGUID, behaviour.QuotedGUID
	delete(style.Long, behaviour.Delete)
	style.Deleted = 200
	t := tracked("ipGroups", behaviour.Type{
		Style: style,
		Fill: func(c *behaviour.Call) error {
			if err := list(c, "properties.ipAddresses", "properties.firewalls", "properties.firewallPolicies"); err != nil {
				return err
			}
			for _, text := range behaviour.Texts(c.Doc, "properties.ipAddresses") {
				if !addressOrRange(text) && !addressSpan(text) {
					return behaviour.Invalid("InvalidIpGroupAddress", "IP address %s of IP group %s is not an address, a range in CIDR notation, or two addresses with a dash.", text, c.ID)
				}
			}
			return nil
		},
	})
	t.Own = []string{"properties.firewalls", "properties.firewallPolicies", "properties.resourceGuid"}
	return t
}

// addressSpan reports whether a text is two addresses with a dash, in order.
func addressSpan(text string) bool {
	from, to, ok := strings.Cut(text, "-")
	a, okA := parseAddress(from)
	b, okB := parseAddress(to)
	return ok && okA && okB && a.BitLen() == b.BitLen() && !b.Less(a)
}
