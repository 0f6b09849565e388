// Package dns has the behaviour of private and public DNS zones, their record sets, and the links of private zones
// to virtual networks. Layer L2.
package dns

import (
	"slices"

	"kaz/internal/localazure/behaviour"
)

// Types returns the resource types of this package.
func Types() []behaviour.Type {
	return slices.Concat(
		[]behaviour.Type{privateZones(), networkLinks(), privateZone.allRecordSets("ALL")},
		privateZone.recordSets(),
		[]behaviour.Type{publicZones(), signing(), publicZone.allRecordSets("recordsets"), publicZone.allRecordSets("all")},
		publicZone.recordSets(),
	)
}
