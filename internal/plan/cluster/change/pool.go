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

// old are the nodes of another version. A node that has not joined gets that of the pool.
func (p Pool) old(version string) []Node {
	var all []Node
	for _, n := range p.Nodes {
		if n.Version != version && (n.Version != "" || p.Model != version && !p.Standalone) {
			all = append(all, n)
		}
	}
	return all
}

// next chooses the next step of a pool that stays.
func (p Pool) next(want PoolTarget, version string) *Step {
	old := p.old(version)
	desired := want.Replicas
	if want.Autoscaled {
		desired = len(p.Nodes)
		if len(old) > 0 && p.Model == version && p.Desired > 0 {
			desired = p.Desired
		}
	}
	least, most := p.room(want, desired, len(old))
	switch {
	case p.Model != version && !p.Standalone:
		return &Step{Action: SetModel, Pool: p.Name, Version: version, Count: desired}
	case len(p.Nodes) < least:
		return &Step{Action: Grow, Pool: p.Name, Count: least}
	case len(p.Nodes) > most && !want.Autoscaled:
		return p.shrink(version, len(p.Nodes)-most)
	case p.waits(version):
		return &Step{Action: Grow, Pool: p.Name, Count: len(p.Nodes)} // waits until they are ready
	case len(old) > 0:
		return p.replace(version, old, most)
	}
	return nil
}

// room is how many nodes a pool has at least and at most while old ones are replaced.
func (p Pool) room(want PoolTarget, desired, old int) (least, most int) {
	surge := min(want.Surge, old)
	if surge == 0 || p.Standalone {
		return desired, desired
	}
	return desired + surge, desired + max(surge, len(p.Zones))
}

// replace lets an old node go, or makes a further new one first.
func (p Pool) replace(version string, old []Node, most int) *Step {
	ready := p.replaced(version, old)
	if len(ready) == 0 && len(p.Nodes) < most {
		return &Step{Action: Grow, Pool: p.Name, Count: len(p.Nodes) + 1}
	}
	if len(ready) == 0 {
		ready = old
	}
	return p.evict(p.victims(version, 1, ready)[0])
}

// replaced are the old nodes with a ready new node in the same zone, where pods with disks of that zone have a place. Azure chooses the
// zone of a new machine, one of those with the fewest. Without zones any new node replaces all old ones.
func (p Pool) replaced(version string, old []Node) []Node {
	var all []Node
	for _, n := range old {
		if n.Cordoned || !slices.Contains(p.Zones, n.Zone) || slices.ContainsFunc(p.Nodes, func(other Node) bool {
			return other.Version == version && other.Zone == n.Zone && other.Ready
		}) {
			all = append(all, n)
		}
	}
	return all
}

// waits reports whether a node has not joined, or, during an upgrade, a new one is not ready.
func (p Pool) waits(version string) bool {
	upgrade := len(p.old(version)) > 0
	return slices.ContainsFunc(p.Nodes, func(n Node) bool {
		return !n.Ready && !n.Cordoned && (n.Version == "" || upgrade && n.Version == version)
	})
}

// shrink takes nodes away. All of them are cordoned before the first is drained, so that no pod moves twice.
func (p Pool) shrink(version string, count int) *Step {
	victims := p.victims(version, count, p.Nodes)
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
		return p.shrink(p.Model, len(p.Nodes))
	}
	return &Step{Action: DeletePool, Pool: p.Name}
}

// victims chooses the nodes that go: those that do not work, those that are cordoned or marked, old ones, those of the zone with
// the most nodes, those with the fewest volumes and the fewest pods, and the newest. Standalone machines have fixed names, so those with
// the last names go.
func (p Pool) victims(version string, count int, among []Node) []Node {
	rest := slices.Clone(among)
	var all []Node
	for len(all) < count && len(rest) > 0 {
		zones := map[string]int{}
		for _, n := range rest {
			zones[n.Zone]++
		}
		slices.SortStableFunc(rest, func(a, b Node) int {
			if p.Standalone && len(p.old(version)) == 0 {
				return cmp.Or(len(b.Name)-len(a.Name), cmp.Compare(b.Name, a.Name))
			}
			return cmp.Or(
				rank(b.Failed || !b.Ready)-rank(a.Failed || !a.Ready),
				rank(b.Cordoned || b.First)-rank(a.Cordoned || a.First),
				rank(a.Version == version)-rank(b.Version == version),
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
	if p.Standalone || !slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Version != "" && n.Version != p.Model }) {
		return nil
	}
	var all []string
	for _, n := range p.Nodes {
		if !n.Ready && !n.Cordoned && (n.Version == "" || n.Version == p.Model) && (late || n.Failed) {
			all = append(all, n.Name)
		}
	}
	return all
}

// Begun reports whether a node of an upgraded pool is ready with the new version.
func (p Pool) Begun() bool {
	return slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Ready && n.Version == p.Model })
}
