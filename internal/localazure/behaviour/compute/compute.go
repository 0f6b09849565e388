// Package compute composes the behaviour of Microsoft.Compute from its packages, and adds SSH keys, the catalogue of
// SKUs and the usages. Layer L2.
package compute

import (
	_ "embed"
	"maps"
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/manageddisk"
	"kaz/internal/localazure/behaviour/compute/scaleset"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
)

//go:embed types.txt
var table string

//go:embed routes.txt
var routes string

// styles are the styles of the types that only the table has.
func styles() map[string]behaviour.Style {
	plain := behaviour.Plain("Microsoft.Compute")
	plain.RawNextLink = true
	compute := behaviour.Compute()
	compute.Etag, compute.EtagHeader = behaviour.NoEtag, behaviour.Never
	gallery := compute
	gallery.Name, gallery.Protocol = "Microsoft.Compute galleries", behaviour.ComputeOperations("capsOperations", false)
	// Groups of reservations are created as operations are, but clients expect their deletion to end at once.
	reserving := compute
	reserving.Name, reserving.Deleted = "Microsoft.Compute capacity reservation groups", 200
	reserving.Long = maps.Clone(compute.Long)
	delete(reserving.Long, behaviour.Delete)
	return map[string]behaviour.Style{
		"plain": plain, "compute": compute, "gallery": gallery, "reserving": reserving, "disk": behaviour.Disk(),
	}
}

// Provider is Microsoft.Compute.
func Provider() behaviour.Provider {
	types := behaviour.Describe(table, styles(),
		slices.Concat(scaleset.Types(), vm.Types(), manageddisk.Types(), []behaviour.Type{sshPublicKeys(), images()}))
	for i := range types {
		switch strings.TrimPrefix(types[i].Name, schema.Namespace) {
		case "proximityPlacementGroups":
			types[i].Show = placementGroups
		case "galleries/images/versions":
			types[i].Fill, types[i].Settle, types[i].Show = nameRegions, copyImage, showReplication
		case "galleries/applications/versions":
			types[i].Fill, types[i].Show = nameRegions, showReplication
		case "galleries":
			shareGallery(&types[i])
		case "restorePointCollections":
			types[i].Fill = locateSource
			types[i].Show = showChildren("restorePoints", "restorePoints")
		case "restorePointCollections/restorePoints":
			types[i].Fill, types[i].Settle = describeSource, saveDisks
		case "hostGroups":
			types[i].Show = showChildren("hosts", "")
		case "capacityReservationGroups":
			types[i].Show = both(types[i].Show, showReservations)
		case "hostGroups/hosts":
			types[i].Show = both(types[i].Show, showHost)
		case "capacityReservationGroups/capacityReservations":
			types[i].Show = showReservation
		}
	}
	return behaviour.Provider{
		Types:  types,
		Routes: slices.Concat(skuRoutes(), catalogueRoutes(), scaleset.Routes(), locationRoutes(), behaviour.DescribeRoutes(routes)),
	}
}
