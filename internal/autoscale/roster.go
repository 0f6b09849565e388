package autoscale

import (
	"maps"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/plan/nodegroup"
)

// roster is which node groups and nodes there are. Its methods are events and questions. The ledger of a group may be asked under
// the lock of the roster, never the other way round.
type roster struct {
	groups map[string]*group
	// absent counts the lists in a row in which a group was missing.
	absent  map[string]int
	listed  time.Time         // when the scale sets were listed, zero: never
	ignored map[string]string // why scale sets are no node groups, by their names
	nodes   map[string]seenNode
	loop    int       // of cluster-autoscaler
	began   time.Time // when the loop began
}

// seenNode is a node by the key of its machine's id.
type seenNode struct {
	providerID, name string
	loop             int // in which cluster-autoscaler asked for it, -1: a watch shows it
}

func newRoster() roster {
	return roster{groups: map[string]*group{}, absent: map[string]int{}, ignored: map[string]string{}, nodes: map[string]seenNode{}}
}

// group returns a group by its id, nil if there is none.
func (r *roster) group(id string) *group { return r.groups[strings.ToLower(id)] }

// all returns the groups in the order of their names.
func (r *roster) all() []*group {
	all := make([]*group, 0, len(r.groups))
	for _, key := range slices.Sorted(maps.Keys(r.groups)) {
		all = append(all, r.groups[key])
	}
	return all
}

// seen returns the nodes by the keys of their machines.
func (r *roster) seen() map[string]seenNode { return maps.Clone(r.nodes) }

// isNode reports whether there is a node at a machine.
func (r *roster) isNode(machine azure.ID) bool {
	_, is := r.nodes[machine.Key()]
	return is
}

// note remembers a node, with the spelling of its provider id, and reports whether it is new.
func (r *roster) note(machine azure.ID, node seenNode) (isNew bool) {
	key := machine.Key()
	have, known := r.nodes[key]
	if known && have.loop == -1 {
		node.loop = -1
	}
	r.nodes[key] = node
	return !known
}

// nextLoop begins a loop of cluster-autoscaler. Nodes that it did not ask for in the last loops are gone.
func (r *roster) nextLoop(now time.Time) {
	r.loop++
	r.began = now
	const remembered = 3
	maps.DeleteFunc(r.nodes, func(_ string, n seenNode) bool { return n.loop >= 0 && n.loop < r.loop-remembered })
}

// news tells the log of a provider what a list of scale sets changed. It is told without the lock.
type news func(*Provider)

// adopt takes over what a list of scale sets shows. A group is gone if two lists in a row lack it. It is gone at once if a
// list shows its scale set and the reason why it is no node group.
func (r *roster) adopt(found []nodegroup.Group, ignored map[string]string, now time.Time) []news {
	r.listed = now
	here := map[string]bool{}
	var all []news
	for _, spec := range found {
		key := strings.ToLower(spec.Name)
		here[key] = true
		delete(r.absent, key)
		if g, known := r.groups[key]; known {
			if doubt := ask(&g.known, func(l *ledger) string { return l.adopt(spec, r.isNode) }); doubt != "" {
				all = append(all, func(p *Provider) { p.doubt(g, doubt) })
			}
			continue
		}
		r.groups[key] = newGroup(spec)
		all = append(all, func(p *Provider) {
			p.Log.Info("node group found", "scale_set", spec.Set, "min", spec.Min, "max", spec.Max)
			for _, w := range spec.Warnings {
				p.Log.Warn("node group", "scale_set", spec.Set, "warning", w)
			}
		})
	}
	for name, why := range ignored {
		key := strings.ToLower(name)
		if _, known := r.groups[key]; known {
			r.absent[key] = 1 // the scale set is there and says so itself
		}
		if r.ignored[name] != why {
			all = append(all, func(p *Provider) { p.Log.Info("scale set is no node group", "scale_set", name, "reason", why) })
		}
	}
	r.ignored = ignored
	return append(all, r.miss(here)...)
}

// miss counts the lists that lack a group, and drops groups that are gone.
func (r *roster) miss(here map[string]bool) (all []news) {
	for key, g := range r.groups {
		if here[key] {
			continue
		}
		if r.absent[key]++; r.absent[key] > 1 {
			all = append(all, func(p *Provider) { p.Log.Info("node group is gone", "scale_set", g.set) })
			delete(r.groups, key)
			delete(r.absent, key)
		} else {
			all = append(all, func(p *Provider) {
				p.Log.Warn("a node group is missing in the list of scale sets; the next list decides", "scale_set", g.set)
			})
		}
	}
	return all
}
