package dns

import (
	"net/netip"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/trafficmanager"
)

// elsewhere are the types of alias targets of which the local Azure knows no records.
var elsewhere = []string{"Microsoft.Cdn/profiles/endpoints", "Microsoft.Cdn/profiles/afdEndpoints", "Microsoft.Network/frontDoors",
	"Microsoft.Web/staticSites"}

// checkTarget checks the resource of an alias. A record set keeps a target that was deleted.
func (z zoneKind) checkTarget(c *behaviour.Call, r recordType) error {
	target := behaviour.RefID(c.Doc, "properties.targetResource")
	if target == "" || c.Old != nil && behaviour.RefID(c.Old, "properties.targetResource").Equal(target) {
		return nil
	}
	if !slices.Contains([]string{"A", "AAAA", "CNAME"}, r.name) {
		return badRecord("The record set '%s' of type '%s' cannot be an alias: only A, AAAA and CNAME can.", c.ID.Name(), r.name)
	}
	of := target.Type()
	if slices.ContainsFunc(elsewhere, func(t string) bool { return strings.EqualFold(t, of) }) {
		return nil
	}
	if aliases(c, target) >= mostAliases {
		return badRecord("The resource '%s' is the target of %d record sets, the most that it can be.", target, mostAliases)
	}
	doc, ok := c.Get(target)
	switch {
	case !isAliasType(c.ID, of):
		return badRecord("The resource '%s' cannot be the target of an alias: its type is '%s'.", target, of)
	case !ok:
		return badRecord("The target resource '%s' of record set '%s' does not exist.", target, c.ID.Name())
	case !fits(c, r, target, doc):
		return badRecord("The resource '%s' cannot be the target of record set '%s' of type '%s'.", target, c.ID.Name(), r.name)
	}
	return nil
}

// fits reports whether a record set of a type can follow a resource that exists.
func fits(c *behaviour.Call, r recordType, target azure.ID, doc behaviour.Object) bool {
	switch of := target.Type(); {
	case strings.EqualFold(of, "Microsoft.Network/publicIPAddresses"):
		return r.name == familyOf(behaviour.Text(doc, "properties.publicIPAddressVersion"))
	case strings.EqualFold(of, trafficmanager.Type):
		return r.name == "CNAME" || trafficmanager.HasAddresses(doc, netipFamily(r.name))
	default:
		return target.Parent().Equal(c.ID.Parent()) && strings.EqualFold(of, c.ID.Type()) && !target.Equal(c.ID)
	}
}

// mostAliases is how many record sets can follow a resource.
const mostAliases = 20

// aliases counts the other record sets of the subscription that follow a resource.
func aliases(c *behaviour.Call, target azure.ID) (n int) {
	for _, r := range []string{"A", "AAAA", "CNAME"} {
		for id, doc := range c.List(azure.SubscriptionID(c.ID.Subscription()), c.ID.Parent().Type()+"/"+r) {
			if !id.Equal(c.ID) && behaviour.RefID(doc, "properties.targetResource").Equal(target) {
				n++
			}
		}
	}
	return n
}

// isAliasType reports whether resources of a type, or record sets of the zone, can be targets of aliases.
func isAliasType(record azure.ID, of string) bool {
	zone := record.Parent().Type()
	return strings.EqualFold(of, "Microsoft.Network/publicIPAddresses") || strings.EqualFold(of, trafficmanager.Type) ||
		strings.HasPrefix(strings.ToLower(of), strings.ToLower(zone)+"/")
}

// familyOf returns the type of records of a version of public IP addresses.
func familyOf(version string) string {
	if version == "IPv6" {
		return "AAAA"
	}
	return "A"
}

// netipFamily returns the test for addresses of a type of records.
func netipFamily(record string) func(netip.Addr) bool {
	if record == "AAAA" {
		return netip.Addr.Is6
	}
	return netip.Addr.Is4
}
