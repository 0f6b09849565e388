package records

import (
	"maps"
	"slices"
	"strings"
)

// Leave returns the changes that take all contributions of a cluster away, and the names that it keeps because no other cluster has them.
// With last, it keeps none.
func (s Snapshot) Leave(cluster string, last bool) (c Changes, kept []string) {
	alone := map[string]bool{}
	for _, set := range s.Sets {
		if set.Type != "TXT" && set.onlyOf(cluster) && !last {
			alone[set.FullName()] = true
		}
	}
	for _, set := range s.Sets {
		for id, one := range set.Shares {
			of := set.FullName()
			if one.Of != "" {
				of = one.Of
			}
			if one.Cluster != cluster || alone[of] {
				continue
			}
			e := Endpoint{Name: set.FullName(), Type: set.Type, Targets: one.Targets, TTL: one.TTL, SetIdentifier: id}
			if one.Of != "" {
				e.Labels = map[string]string{ownedRecord: one.Of}
			}
			c.Delete = append(c.Delete, e)
		}
	}
	slices.SortFunc(c.Delete, func(a, b Endpoint) int { return strings.Compare(a.Name+" "+a.Type, b.Name+" "+b.Type) })
	return c, slices.Sorted(maps.Keys(alone))
}

// onlyOf reports whether a cluster is the only one that contributes to a set.
func (s Set) onlyOf(cluster string) bool {
	for _, c := range s.Shares {
		if c.Cluster != cluster {
			return false
		}
	}
	return len(s.Shares) > 0
}
