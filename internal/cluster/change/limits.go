package change

import "fmt"

// Release lets the autoscaler scale a pool again.
const Release Action = "let the autoscaler scale pool"

// Limits are the numbers of nodes between which the autoscaler scales a pool. They are tags of its scale set.
type Limits struct {
	Least int `json:"min"`
	Most  int `json:"max"`
}

// held returns the limits of an autoscaled pool while its nodes are replaced. Both are the greatest number of nodes that the
// upgrade makes. So the autoscaler removes no node, and adds none beyond that number.
func (p Pool) held(to PoolTarget, desired int) Limits {
	most := desired
	if surge := to.Surge.of(desired, true); surge > 0 {
		most += max(surge, len(p.Zones))
	}
	return Limits{most, most}
}

// desired is the number of nodes that a pool should have. While the nodes of an autoscaled pool are replaced, it is the
// number when the replacement began. If the autoscaler was released since, as after an abort, it is the current number.
func (p Pool) desired(to PoolTarget, want model, old int) int {
	switch {
	case !to.Autoscaled:
		return to.Replicas
	case old > 0 && p.current(want) && p.Desired > 0 && p.Limits == p.held(to, p.Desired):
		return p.Desired
	}
	return len(p.Nodes)
}

// hold sets the model of new machines of a pool, and holds the autoscaler with the same write. It returns nil if both are
// done.
func (p Pool) hold(to PoolTarget, want model, desired, old int) *Step {
	if p.Standalone {
		return nil
	}
	step := Step{Action: SetModel, Pool: p.Name, Version: want.version, Revision: want.revision, Count: desired}
	if to.Autoscaled && old > 0 {
		held := p.held(to, desired)
		step.Limits = &held
	}
	if p.current(want) && (step.Limits == nil || *step.Limits == p.Limits) {
		return nil
	}
	return &step
}

// release gives the autoscaler its limits back, nil if it has them.
func (p Pool) release(to PoolTarget) *Step {
	if !to.Autoscaled || p.Standalone || p.Limits == to.Limits {
		return nil
	}
	return &Step{Action: Release, Pool: p.Name, Limits: &to.Limits}
}

func (p *Pool) setLimits(l *Limits) {
	if l != nil {
		p.Limits = *l
	}
}

func (l *Limits) text() string {
	switch {
	case l == nil:
		return ""
	case l.Least == l.Most:
		return fmt.Sprintf("(autoscaler held at %d)", l.Most)
	}
	return fmt.Sprintf("(%d to %d)", l.Least, l.Most)
}
