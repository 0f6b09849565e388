package behaviour

import (
	"slices"
	"strings"
)

// PlaceInZone chooses the zone of a resource that leaves the choice to Azure: the first of those that its placement includes and does not
// exclude. What has zones keeps them.
func PlaceInZone(c *Call) {
	if len(Array(c.Doc, "zones")) > 0 || Text(c.Doc, "placement.zonePlacementPolicy") == "" {
		return
	}
	if was := Array(c.Old, "zones"); len(was) > 0 {
		c.Doc["zones"] = Clone(was)
		return
	}
	zones := Texts(c.Doc, "placement.includeZones")
	if len(zones) == 0 {
		zones = []string{"1", "2", "3"}
	}
	for _, zone := range zones {
		if !slices.ContainsFunc(Texts(c.Doc, "placement.excludeZones"), func(no string) bool { return strings.EqualFold(no, zone) }) {
			c.Doc["zones"] = []any{zone}
			return
		}
	}
}
