package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/cluster/graph"
	"kaz/internal/picture"
)

// Picture is the cluster as boxes: units from left to right in the order in which they are deployed, with their resources. Lines lead from
// a unit to those that use its ports.
func (p Plan) Picture() picture.Picture {
	depth, most := map[string]int{}, 0
	for _, u := range p.Graph.Units { // each stands behind those that it waits for
		for _, before := range u.After {
			depth[u.Name] = max(depth[u.Name], depth[before]+1)
		}
		most = max(most, depth[u.Name])
	}
	columns := []string{"First"}
	for i := range most {
		columns = append(columns, fmt.Sprintf("Step %d", i+2))
	}
	drawn := picture.New("Cluster "+p.Names.Cluster, columns...)
	for _, u := range p.Graph.Units {
		drawn.Add(depth[u.Name], picture.Box{Key: u.Name, Kind: "unit", Name: u.Name, Lines: unitLines(u), To: u.After})
	}
	return *drawn
}

// unitLines are the resources of a unit by type, and the values that it gets from other units.
func unitLines(u *graph.LinkedUnit) (lines []string) {
	counts := map[string]int{}
	for _, r := range u.Resources {
		counts[r.Type]++
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("%d %s", counts[name], strings.TrimPrefix(name, "Microsoft.")))
	}
	for _, name := range slices.Sorted(maps.Keys(u.Inputs)) {
		lines = append(lines, "gets "+name)
	}
	return lines
}
