package disk

import (
	"slices"
	"strings"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/csi"
	"kaz/internal/plan/disk"
)

// locator translates between regions and zones of Azure and topologies of CSI.
type locator struct {
	// key is the label of nodes that has the zone, and location the region of the cluster.
	key, location string
}

func (c *Controller) locator() locator {
	return locator{key: zoneKey(c.config.Name), location: c.config.Cluster.Location}
}

// zone returns the number of the zone in which a disk is created, "" for none. It is the first preferred or allowed zone of
// the region. Zones of other regions alone are an error.
func (l locator) zone(p disk.Parameters, r *csispec.TopologyRequirement) (string, error) {
	if p.ZoneRedundant() {
		return "", nil
	}
	foreign := ""
	for _, topology := range append(r.GetPreferred(), r.GetRequisite()...) {
		for _, key := range []string{wellKnownZone, l.key} {
			zone := topology.GetSegments()[key]
			number, ok := strings.CutPrefix(zone, l.region(p)+"-")
			switch {
			case ok && number != "":
				return number, nil
			case zone != "":
				foreign = zone
			}
		}
	}
	if foreign != "" {
		return "", csi.Invalid("CreateVolume: zone %q is not in region %s: zones of disks are REGION-NUMBER", foreign, l.region(p))
	}
	return "", nil
}

// allowed reports whether the zone of a copy is among the allowed zones. A copy is in the zone of its source. Another node
// may be in that zone, so the error for a zone that is not allowed lets the scheduler choose again.
func (l locator) allowed(v disk.Volume, r *csispec.TopologyRequirement) bool {
	if v.Source == "" || v.Zone == "" || len(r.GetRequisite()) == 0 {
		return true
	}
	zone := l.region(v.Parameters) + "-" + v.Zone
	return slices.ContainsFunc(r.GetRequisite(), func(t *csispec.Topology) bool {
		return t.GetSegments()[wellKnownZone] == zone || t.GetSegments()[l.key] == zone
	})
}

// region returns the region of a disk as zones of nodes begin with it.
func (l locator) region(p disk.Parameters) string {
	region := p.Location
	if region == "" {
		region = l.location
	}
	return strings.ToLower(strings.ReplaceAll(region, " ", ""))
}

// topology returns where a volume can be used: in its zone, or anywhere in its region.
func (l locator) topology(v disk.Volume) []*csispec.Topology {
	region, key := l.region(v.Parameters), l.key
	values := []string{""}
	switch {
	case v.Parameters.ZoneRedundant():
		values = []string{region + "-1", region + "-2", region + "-3", region + "-4", ""}
	case v.Zone != "":
		values = []string{region + "-" + v.Zone}
	}
	var all []*csispec.Topology
	for _, value := range values {
		all = append(all, &csispec.Topology{Segments: map[string]string{key: value}})
	}
	return all
}
