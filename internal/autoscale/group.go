package autoscale

import (
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/nodegroup"
)

// group is a node group with what is known of it.
type group struct {
	set  azure.ID
	name string
	// reading is held while the instances are read, so that an older answer does not replace a newer one.
	reading chan struct{}
	known   guarded[ledger]
}

func newGroup(spec nodegroup.Group) *group {
	return &group{
		set: spec.Set, name: spec.Name, reading: make(chan struct{}, 1), known: guarded[ledger]{state: newLedger(spec)},
	}
}

// spec returns what the scale set says of the group.
func (g *group) spec() nodegroup.Group { return ask(&g.known, (*ledger).spec) }

// example returns what the scale set says of the group, and the last node of the group, nil if there was none.
func (g *group) example() (spec nodegroup.Group, seen *corev1.Node) {
	g.known.change(func(l *ledger) { spec, seen = l.status.Group, l.seen })
	return spec, seen
}

// instance is an answer about a machine.
type instance struct {
	nodegroup.Instance
	listed bool
}

// instance returns a machine of the last list.
func (g *group) instance(machine azure.ID) instance {
	return ask(&g.known, func(l *ledger) instance {
		i, listed := l.instance(machine)
		return instance{i, listed}
	})
}
