package documents

import (
	"net/netip"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// addressFamilies writes the families of the addresses of a pool.
func addressFamilies(c *behaviour.Call) error {
	families := []any{}
	for _, text := range behaviour.Texts(c.Doc, "properties.addressPrefixes") {
		family := "IPv4"
		if p, err := netip.ParsePrefix(text); err == nil && p.Addr().Is6() {
			family = "IPv6"
		}
		if !slices.Contains(families, any(family)) {
			families = append(families, family)
		}
	}
	behaviour.Set(c.Doc, "properties.ipAddressType", families)
	return nil
}

// copyIntent writes into a run of a reachability analysis what its intent asks for.
func copyIntent(c *behaviour.Call) error {
	intent, there := c.Get(azure.ID(behaviour.Text(c.Doc, "properties.intentId")))
	if !there {
		return nil
	}
	for _, name := range []string{"sourceResourceId", "destinationResourceId", "ipTraffic", "description"} {
		if value := behaviour.At(intent, "properties."+name); value != nil {
			behaviour.Set(c.Doc, "properties.intentContent."+name, behaviour.Clone(any(value)))
		}
	}
	return nil
}

// locateMember writes where the member of a network group is.
func locateMember(c *behaviour.Call) error {
	member := azure.ID(behaviour.Text(c.Doc, "properties.resourceId"))
	for id := member; id != ""; id = id.Parent() {
		if doc, there := c.Get(id); there && behaviour.Text(doc, "location") != "" {
			behaviour.Set(c.Doc, "properties.region", behaviour.Text(doc, "location"))
			break
		}
	}
	return nil
}
