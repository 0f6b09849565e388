package change

import (
	"cmp"
	"slices"
)

// oldest is the oldest version of the pool's nodes.
func (p Pool) oldest() string {
	version := p.Model
	for _, n := range p.Nodes {
		if n.Version != "" && (version == "" || compare(n.Version, version) < 0) {
			version = n.Version
		}
	}
	return version
}

// model is what the machines of a pool are to be made from.
type model struct{ version, revision string }

// current reports whether new machines of a scale set are made from the model.
func (p Pool) current(want model) bool { return p.Model == want.version && p.Revision == want.revision }

// has reports whether a node was made from a model. A node that has not joined was made from the model of its pool.
func (p Pool) has(n Node, want model) bool {
	if n.Version == "" {
		return p.Standalone || p.current(want)
	}
	return n.Version == want.version && !differ(n.Revision, want.revision)
}

// old are the nodes that were made from another model.
func (p Pool) old(want model) []Node {
	return slices.DeleteFunc(slices.Clone(p.Nodes), func(n Node) bool { return p.has(n, want) })
}

// next chooses the next step of a pool that stays.
func (p Pool) next(to PoolTarget, version string) *Step {
	want := model{version, to.Revision}
	old := p.old(want)
	desired := p.desired(to, want, len(old))
	if step := p.hold(to, want, desired, len(old)); step != nil {
		return step
	}
	spare := p.spare(want, old, desired, to.Unavailable.of(desired, false))
	least, most := p.room(to, desired, len(old))
	switch {
	case len(spare) > 0:
		return p.evict(p.victims(want, 1, spare)[0])
	case len(p.Nodes) < least:
		return &Step{Action: Grow, Pool: p.Name, Count: least}
	case len(p.Nodes) > most && !to.Autoscaled:
		return p.shrink(want, len(p.Nodes)-most)
	case p.waits(want):
		return &Step{Action: Grow, Pool: p.Name, Count: len(p.Nodes)} // waits until they are ready
	case len(old) > 0:
		return p.replace(want, old, most)
	}
	return p.release(to)
}

// spare returns the old nodes that may go now. Cordoned nodes go first. Other nodes go as long as enough nodes take pods.
func (p Pool) spare(want model, old []Node, desired, unavailable int) []Node {
	ready := 0
	for _, n := range p.Nodes {
		ready += rank(n.Ready && !n.Cordoned)
	}
	begun := slices.DeleteFunc(slices.Clone(old), func(n Node) bool { return !n.Cordoned })
	switch {
	case len(begun) > 0 && len(p.Nodes) > desired-unavailable:
		return begun
	case ready > desired-unavailable && unavailable > 0:
		return old
	case ready > desired:
		return p.replaced(want, old)
	}
	return nil
}

// room returns how many nodes a pool has at least and at most while its old nodes are replaced.
func (p Pool) room(to PoolTarget, desired, old int) (least, most int) {
	surge := min(to.Surge.of(desired, true), old)
	if surge == 0 || p.Standalone {
		return desired, desired
	}
	return desired + surge, desired + max(surge, len(p.Zones))
}

// replace removes an old node, or makes another new node first.
func (p Pool) replace(want model, old []Node, most int) *Step {
	ready := p.replaced(want, old)
	if len(ready) == 0 && len(p.Nodes) < most {
		return &Step{Action: Grow, Pool: p.Name, Count: len(p.Nodes) + 1}
	}
	if len(ready) == 0 {
		ready = old
	}
	return p.evict(p.victims(want, 1, ready)[0])
}

// replaced returns the old nodes with a ready new node in the same zone. Pods with disks of that zone can run there. Azure
// chooses the zone of a new machine: one of the zones with the fewest machines. Cordoned nodes are returned, too, and without
// zones all old nodes.
func (p Pool) replaced(want model, old []Node) []Node {
	var all []Node
	for _, n := range old {
		if n.Cordoned || !slices.Contains(p.Zones, n.Zone) || slices.ContainsFunc(p.Nodes, func(other Node) bool {
			return p.has(other, want) && other.Zone == n.Zone && other.Ready
		}) {
			all = append(all, n)
		}
	}
	return all
}

// waits reports whether a node has not joined. During an upgrade it also reports whether a new node is not ready.
func (p Pool) waits(want model) bool {
	upgrade := len(p.old(want)) > 0
	return slices.ContainsFunc(p.Nodes, func(n Node) bool {
		return !n.Ready && !n.Cordoned && (n.Version == "" || upgrade && p.has(n, want))
	})
}

// shrink takes nodes away. All of them are cordoned before the first is drained, so that no pod moves twice.
func (p Pool) shrink(want model, count int) *Step {
	victims := p.victims(want, count, p.Nodes)
	var open []string
	for _, n := range victims {
		if !n.Cordoned {
			open = append(open, n.Name)
		}
	}
	if len(open) > 0 {
		slices.Sort(open)
		return &Step{Action: Cordon, Pool: p.Name, Names: open}
	}
	slices.SortStableFunc(victims, func(a, b Node) int { return cmp.Or(rank(b.Drained)-rank(a.Drained), cmp.Compare(a.Name, b.Name)) })
	return p.evict(victims[0])
}

func (p Pool) evict(n Node) *Step {
	if !n.Drained && !n.Failed {
		return &Step{Action: Drain, Pool: p.Name, Node: n.Name}
	}
	return &Step{Action: DeleteNode, Pool: p.Name, Node: n.Name}
}

// remove takes a pool away.
func (p Pool) remove() *Step {
	if len(p.Nodes) > 0 {
		return p.shrink(model{p.Model, p.Revision}, len(p.Nodes))
	}
	return &Step{Action: DeletePool, Pool: p.Name}
}

// victims chooses the nodes to remove. Nodes that do not work go first, then cordoned or marked nodes, then old nodes. Next
// are the nodes of the zone with the most nodes, nodes with the fewest volumes and the fewest pods, and the newest nodes.
// Standalone machines have fixed names. If none of them is old, those with the last names go.
func (p Pool) victims(want model, count int, among []Node) []Node {
	rest := slices.Clone(among)
	var all []Node
	for len(all) < count && len(rest) > 0 {
		zones := map[string]int{}
		for _, n := range rest {
			zones[n.Zone]++
		}
		slices.SortStableFunc(rest, func(a, b Node) int {
			if p.Standalone && len(p.old(want)) == 0 {
				return cmp.Or(len(b.Name)-len(a.Name), cmp.Compare(b.Name, a.Name))
			}
			return cmp.Or(
				rank(b.Failed || !b.Ready)-rank(a.Failed || !a.Ready),
				rank(b.Cordoned || b.First)-rank(a.Cordoned || a.First),
				rank(p.has(a, want))-rank(p.has(b, want)),
				zones[b.Zone]-zones[a.Zone],
				a.Volumes-b.Volumes,
				a.Pods-b.Pods,
				cmp.Compare(a.Age, b.Age),
				cmp.Compare(a.Name, b.Name),
			)
		})
		all, rest = append(all, rest[0]), rest[1:]
	}
	return all
}

// Unready are the new nodes of an upgrade that are not ready. A pool that is not upgraded has none. Without late, only nodes with a
// failed machine count.
func (p Pool) Unready(late bool) []string {
	now := model{p.Model, p.Revision}
	if p.Standalone || len(p.old(now)) == 0 {
		return nil
	}
	var all []string
	for _, n := range p.Nodes {
		if !n.Ready && !n.Cordoned && p.has(n, now) && (late || n.Failed) {
			all = append(all, n.Name)
		}
	}
	return all
}

// Begun reports whether a node of an upgraded pool is ready with the new model.
func (p Pool) Begun() bool {
	return slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Ready && p.has(n, model{p.Model, p.Revision}) })
}
