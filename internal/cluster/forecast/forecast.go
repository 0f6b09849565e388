// Package forecast estimates how long a deployment of a cluster still takes. Layer L1: pure.
package forecast

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kaz/internal/cluster/change"
	"kaz/internal/cluster/graph"
)

// Unit is a unit of a deployment.
type Unit struct {
	Name string
	// Kind is the same for units that take as long as each other.
	Kind string
	// After are the units that must be complete first.
	After []string
	// Ended says that the unit is complete. Began is when it began, zero if it has not.
	Ended bool
	Began time.Time
	// Took is how long the unit took, or the last time, 0 if that is not known.
	Took time.Duration
}

// Of returns the units of a graph, none of which has begun. Those with machines are of one kind, because they wait until machines have
// booted, and the others of another.
func Of(g graph.Linked) (units []Unit) {
	for _, u := range g.Units {
		kind := "documents"
		if slices.ContainsFunc(u.Resources, isMachine) {
			kind = "machines"
		}
		units = append(units, Unit{Name: u.Name, Kind: kind, After: u.After})
	}
	return units
}

func isMachine(r graph.LinkedResource) bool {
	return strings.EqualFold(r.Type, "Microsoft.Compute/virtualMachines") ||
		strings.EqualFold(r.Type, "Microsoft.Compute/virtualMachineScaleSets")
}

// Left estimates how long the units take that have not ended. Units stand behind those that they wait for, and begin when the last of these
// has ended, also if Azure does not say that they have begun. A unit takes as long as the last time, or as those of its kind that have
// ended. The estimate is unknown while that is unknown of a unit, and when all have ended.
func Left(units []Unit, now time.Time) (left time.Duration, known bool) {
	usual := averages(units)
	ends := map[string]time.Duration{} // from now on, of the units that have not ended
	for _, u := range units {
		if u.Ended {
			continue
		}
		took, measured := u.Took, u.Took > 0
		if !measured {
			took, measured = usual[u.Kind]
		}
		if !measured {
			return 0, false
		}
		var end time.Duration
		began, ready := begin(units, u)
		switch {
		case !ready:
			for _, first := range u.After {
				end = max(end, ends[first])
			}
			end += took
		case began.IsZero():
			end = took
		default:
			end = max(0, took-now.Sub(began))
		}
		ends[u.Name] = end
		left, known = max(left, end), true
	}
	return left, known
}

// begin returns when a unit has begun, and whether it has: when Azure says so, or when the last unit has ended that it waits for. The time
// is zero if it is not known.
func begin(units []Unit, u Unit) (began time.Time, ready bool) {
	if !u.Began.IsZero() {
		return u.Began, true
	}
	for _, first := range units {
		switch {
		case !slices.Contains(u.After, first.Name):
			continue
		case !first.Ended:
			return time.Time{}, false
		}
		if end := first.Began.Add(first.Took); !first.Began.IsZero() && end.After(began) {
			began = end
		}
	}
	return began, true
}

// averages are how long the units that have ended took, by their kinds.
func averages(units []Unit) map[string]time.Duration {
	total, count := map[string]time.Duration{}, map[string]time.Duration{}
	for _, u := range units {
		if u.Ended && u.Took > 0 {
			total[u.Kind] += u.Took
			count[u.Kind]++
		}
	}
	for kind, n := range count {
		total[kind] /= n
	}
	return total
}

// Deployment is a deployment that runs.
type Deployment struct {
	Units []Unit
	Began time.Time
}

// Saw notes the state of a unit. If the unit is complete, it returns what to say of the deployment: how many units are, after how long,
// and how long the rest takes if that is known.
func (d *Deployment) Saw(unit, state string, now time.Time) string {
	i := slices.IndexFunc(d.Units, func(u Unit) bool { return u.Name == unit })
	if i < 0 {
		return ""
	}
	u := &d.Units[i]
	if u.Began.IsZero() && state == "Succeeded" { // it ended between two looks
		if u.Began, _ = begin(d.Units, *u); u.Began.IsZero() {
			u.Began = d.Began
		}
	} else if u.Began.IsZero() {
		u.Began = now
	}
	if state != "Succeeded" {
		return ""
	}
	u.Ended, u.Took = true, now.Sub(u.Began)
	ended := 0
	for _, other := range d.Units {
		if other.Ended {
			ended++
		}
	}
	text := fmt.Sprintf(" (%d of %d, after %s", ended, len(d.Units), change.Short(now.Sub(d.Began)))
	if left, known := Left(d.Units, now); known {
		text += fmt.Sprintf(", about %s left", change.Short(left))
	}
	return text + ")"
}
