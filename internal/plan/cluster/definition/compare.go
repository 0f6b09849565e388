package definition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Difference is a field that two definitions set differently.
type Difference struct {
	// Path is the field with its document: "NodePool general: spec.replicas".
	Path     string
	Old, New string
	Change   Change
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s -> %s (%s)", d.Path, d.Old, d.New, d.Change)
}

// Compare returns what a new definition changes in a cluster that exists. Documents that only one of them has are Live: they
// are added or removed as a whole.
func Compare(old, now Definition) []Difference {
	var all []Difference
	all = append(all, compare("Cluster", now.Cluster.Metadata.Name, old.Cluster, now.Cluster)...)
	for _, pool := range now.Pools {
		i := slices.IndexFunc(old.Pools, func(p NodePool) bool { return p.Metadata.Name == pool.Metadata.Name })
		if i >= 0 {
			all = append(all, compare("NodePool", pool.Metadata.Name, old.Pools[i], pool)...)
		}
	}
	slices.SortFunc(all, func(a, b Difference) int { return cmp.Compare(a.Path, b.Path) })
	return all
}

// compare compares two documents of a kind.
func compare(kind, name string, old, now any) []Difference {
	var all []Difference
	var visit func(s *shape, a, b any)
	visit = func(s *shape, a, b any) {
		if len(s.fields) > 0 {
			x, _ := a.(map[string]any)
			y, _ := b.(map[string]any)
			if x != nil && y != nil {
				for _, field := range s.fields {
					visit(field, x[field.name()], y[field.name()])
				}
				return
			}
		}
		before, after := compact(a), compact(b)
		if before != after {
			_, path, _ := strings.Cut(s.path, ".")
			all = append(all, Difference{kind + " " + name + ": " + path, before, after, s.Change})
		}
	}
	visit(shapes()[kind], tree(old), tree(now))
	return all
}

func tree(v any) any {
	var plain any
	if err := json.Unmarshal([]byte(compact(v)), &plain); err != nil {
		panic(err) // what was written can be read
	}
	return plain
}

func compact(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // definitions have JSON
	}
	return string(text)
}
