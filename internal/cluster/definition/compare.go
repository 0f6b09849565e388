package definition

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/cluster/definition/fields"
	"kaz/internal/plan/poolnode"
)

// Difference is a field that two definitions set differently.
type Difference struct {
	// Path is the field with its document: "NodePool general: spec.replicas".
	Path     string
	Old, New string
	Change   fields.Change
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
		before, after := s.written(a), s.written(b)
		if before != after {
			_, path, _ := strings.Cut(s.path, ".")
			all = append(all, Difference{kind + " " + name + ": " + path, before, after, s.Change})
		}
	}
	visit(shapes()[kind], tree(old), tree(now))
	return all
}

// written is a value of the field as JSON. A definition that was recorded before the field was there has its default.
func (s *shape) written(v any) string {
	text := compact(v)
	if s.Later && (text == `""` || text == "null") {
		return s.Default
	}
	return text
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

// Revision is a hash of what a pool's nodes are made from, without the version of Kubernetes. For the pool "" it is that of
// the members of the control plane. If it changes, the machines must be replaced.
func Revision(d Definition, pool string) string {
	of := fields.Members
	all := map[string]string{}
	if pool != "" {
		of = fields.Nodes
		i := slices.IndexFunc(d.Pools, func(p NodePool) bool { return p.Metadata.Name == pool })
		shapes()["NodePool"].values(tree(d.Pools[i]), of, all)
	}
	shapes()["Cluster"].values(tree(d.Cluster), of, all)
	for _, e := range d.Extensions {
		if e.Spec.AppliesTo.Has(pool) {
			all["Extension "+e.Metadata.Name] = compact([]any{e.Spec.Files, e.Spec.Commands})
		}
	}
	if pool != "" && d.Cluster.Spec.Attested() {
		all["joining"] = "attested" // machines with an older boot script cannot join a cluster with the add-ons of today
	}
	if d.Authorities > 0 {
		all["authorities"] = compact(d.Authorities)
	}
	if d.Encrypts() && pool == "" {
		all["encrypted"] = "true"
	}
	sum := sha256.Sum256([]byte(compact(all)))
	return hex.EncodeToString(sum[:5])
}

// Node describes the nodes of a pool.
func Node(d Definition, pool NodePool) poolnode.Node {
	n := poolnode.Node{Pool: pool.Metadata.Name, Revision: Revision(d, pool.Metadata.Name), Given: pool.Spec.Labels,
		Pods: pool.Spec.MaxPods}
	for _, text := range pool.Spec.Taints {
		n.Taints = append(n.Taints, poolnode.ReadTaint(text))
	}
	return n
}

// values collects the values of the fields for which an upgrade replaces machines.
func (s *shape) values(v any, of fields.Machines, all map[string]string) {
	if s.Of&of != 0 {
		if text := s.written(v); !s.Later || text != s.Default {
			all[s.path] = text
		}
		return
	}
	branch, _ := v.(map[string]any)
	for _, field := range s.fields {
		field.values(branch[field.name()], of, all)
	}
}
