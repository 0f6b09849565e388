package nodegroup

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Account is what is known of the size of a group.
type Account struct {
	// Capacity is the capacity of the scale set. It counts deallocated machines, and machines that were asked for and
	// are not listed yet.
	Capacity  int
	Instances []Instance
	// Leaving reports whether the deletion or deallocation of a machine was accepted.
	Leaving func(Instance) bool
	// Queued is how many machines were asked for that Azure has not accepted yet. Waived is how many machines were not made
	// and are not wanted any more: the capacity still counts them.
	Queued, Waived int
	// Refused is how many machines Azure refused to make that cluster-autoscaler does not know of yet. The capacity does
	// not count them.
	Refused int
}

// Active returns the machines that are, or become, nodes.
func (a Account) Active() []Instance {
	return slices.DeleteFunc(slices.Clone(a.Instances), func(i Instance) bool {
		return i.Deallocated || i.State == Deleting || a.Leaving(i)
	})
}

// Missing returns how many machines the capacity counts that do not exist.
func (a Account) Missing() int { return max(a.Capacity-len(a.Instances), 0) }

// Target returns the size that the group is to have.
func (a Account) Target() int {
	return max(len(a.Active())-a.surplus()+max(a.Missing()-a.Waived, 0)+a.Queued+a.Refused, 0)
}

// surplus returns how many machines Azure made beyond the capacity. It deletes them again.
func (a Account) surplus() int {
	staying := 0
	for _, i := range a.Instances {
		if i.State != Deleting && !a.Leaving(i) {
			staying++
		}
	}
	return max(staying-a.Capacity, 0)
}

// Surplus returns the newest machines beyond the capacity.
func (a Account) Surplus() []Instance {
	active := a.Active()
	slices.SortStableFunc(active, func(x, y Instance) int {
		return -cmp.Or(cmp.Compare(x.Created, y.Created), cmp.Compare(len(x.ID), len(y.ID)), cmp.Compare(x.ID, y.ID))
	})
	return active[:min(a.surplus(), len(active))]
}

// Grow checks an increase of a group. The text of the error is known to users.
func (g Group) Grow(target, delta int) error {
	if delta <= 0 {
		return fmt.Errorf("size increase must be positive, it is %d", delta)
	}
	if target+delta > g.Max {
		return fmt.Errorf("size increase too large - desired:%d max:%d", target+delta, g.Max)
	}
	return nil
}

// Shrink checks the deletion of n machines of a group that is to have target.
func (g Group) Shrink(target, n int) error {
	if target-n < g.Min {
		return fmt.Errorf("node group %s is to have %d nodes and at least %d: %d cannot be deleted", g.Name, target, g.Min, n)
	}
	return nil
}

// Restart chooses the deallocated machines that an increase by n starts again, oldest first.
func (a Account) Restart(n int) []Instance {
	var off []Instance
	for _, i := range a.Instances {
		if i.Deallocated && i.State != Deleting && !a.Leaving(i) {
			off = append(off, i)
		}
	}
	slices.SortStableFunc(off, func(x, y Instance) int { return strings.Compare(x.Created, y.Created) })
	return off[:min(n, len(off))]
}

// Lower returns the capacity of a scale set from which waived machines are taken away. It never falls below the number
// of machines that exist: Azure would delete some of them.
func Lower(capacity, existing, waived int) int { return max(capacity-waived, min(existing, capacity)) }
