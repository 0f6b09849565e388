package nodegroup

import (
	"fmt"
	"maps"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// Status is what is known of a scale set and its machines. It is a value: an event returns the next status and leaves the
// status before it as it was.
type Status struct {
	Group Group // as Azure showed it last
	// Capacity is the last capacity that Azure reported or accepted and that nothing known contradicts.
	Capacity int
	// Etag belongs to Capacity. It is "" if the scale set may have changed since, or if its reported capacity is in doubt.
	Etag string
	// Doubt says what contradicts the capacity that Azure reported last, "" if nothing does.
	Doubt     string
	Instances []Instance

	confirmed bool // a report with machines, or Azure's consent, confirmed Capacity
	doubted   int  // the capacity in doubt
	// reasons are failures by the keys of the machines' ids, from the operations that made the machines. Lists of machines
	// do not have them.
	reasons map[string]Failure
}

// Circumstances are what is known beside Azure's documents when Azure shows a scale set.
type Circumstances struct {
	// Leaving reports whether Azure accepted the deletion of a machine.
	Leaving func(Instance) bool
	// Registered reports whether a machine is, or was, a node.
	Registered func(azure.ID) bool
	// Busy says that an operation of the scale set is under way.
	Busy bool
}

// NewStatus returns the status of a scale set that a list shows for the first time.
func NewStatus(g Group) Status {
	reported, _ := g.Reported()
	return Status{Group: g, Capacity: reported, Etag: g.Etag(), doubted: nowhere}
}

// nowhere is no capacity.
const nowhere = -1

// Shown returns the status after Azure showed the scale set without its machines.
func (s Status) Shown(g Group, c Circumstances) Status { return s.believe(g, 0, c) }

// Listed returns the status after Azure listed the machines, and showed the scale set after them.
func (s Status) Listed(g Group, machines []azure.Resource[compute.ScaledInstance], c Circumstances) Status {
	before, listed := s.states(), make(map[string]State, len(machines))
	observed := Observed{
		Before:     func(id azure.ID) State { return before[id.Key()] },
		Registered: c.Registered,
		Reason:     func(id azure.ID) (Failure, bool) { f, known := s.reasons[id.Key()]; return f, known },
	}
	s.Instances = make([]Instance, 0, len(machines))
	for _, m := range machines {
		if m.ID == "" { // it is being deleted
			continue
		}
		i := ReadInstance(m, observed)
		s.Instances, listed[i.Key] = append(s.Instances, i), i.State
	}
	s.reasons = maps.Clone(s.reasons)
	maps.DeleteFunc(s.reasons, func(key string, _ Failure) bool { return listed[key] == Unknown })
	gone := 0
	for key, state := range before {
		if now := listed[key]; state != Deleting && (now == Unknown || now == Deleting) {
			gone++
		}
	}
	return s.believe(g, gone, c)
}

func (s Status) states() map[string]State {
	states := make(map[string]State, len(s.Instances))
	for _, i := range s.Instances {
		states[i.Key] = i.State
	}
	return states
}

// believe returns the status with the capacity that Azure reports, or with a doubt. Azure has reported a capacity of 0 for a
// scale set with machines. A capacity that lacks machines is in doubt. So is a lower capacity that the gone machines
// do not explain, until Azure reports it twice while no operation is under way.
func (s Status) believe(g Group, gone int, c Circumstances) Status {
	s.Group = g
	existing, leaving := 0, 0
	for _, i := range s.Instances {
		switch {
		case i.State == Deleting:
		case c.Leaving(i):
			leaving++
		default:
			existing++
		}
	}
	reported, reports := g.Reported()
	explained := s.Capacity - gone - leaving
	doubt := ""
	switch {
	case !reports:
		reported, doubt = nowhere, "it reports no capacity"
	case s.confirmed && reported == s.Capacity: // more machines can exist for a while: see Group.Warnings, overprovision
	case reported < existing:
		doubt = fmt.Sprintf("it reports a capacity of %d, and %d of its machines exist", reported, existing)
	case s.confirmed && reported < explained && (c.Busy || reported != s.doubted):
		doubt = fmt.Sprintf("it reports a capacity of %d, and %d were asked for", reported, s.Capacity)
	}
	if doubt == "" {
		s.Capacity, s.Etag, s.Doubt, s.confirmed, s.doubted = reported, g.Etag(), "", true, nowhere
		return s
	}
	s.Capacity, s.Etag = max(s.Capacity-gone, existing), ""
	s.Doubt, s.doubted = fmt.Sprintf("scale set %s: %s; no capacity is written until a later answer agrees", g.Name, doubt), reported
	return s
}

// Accepted returns the status after Azure accepted a capacity.
func (s Status) Accepted(capacity int) Status {
	s.Capacity, s.Etag, s.Doubt, s.confirmed, s.doubted = capacity, "", "", true, nowhere
	return s
}

// Touched returns the status after Azure accepted another change of the scale set.
func (s Status) Touched() Status {
	s.Etag = ""
	return s
}

// Failed returns the status after an operation that makes machines failed. The machines that failed for an unknown reason
// have the operation's failure, in later lists too. It also returns how many they are.
func (s Status) Failed(f Failure) (Status, int) {
	n := 0
	s.Instances, s.reasons = slices.Clone(s.Instances), maps.Clone(s.reasons)
	if s.reasons == nil {
		s.reasons = map[string]Failure{}
	}
	for at := range s.Instances {
		if i := &s.Instances[at]; i.Failure != nil && i.Failure.Code == FailedState {
			i.Failure, s.reasons[i.Key] = &f, f
			n++
		}
	}
	return s, n
}

// Started returns the status after Azure accepted the start of deallocated machines.
func (s Status) Started(machines []azure.ID) Status {
	s.Instances = slices.Clone(s.Instances)
	for at := range s.Instances {
		if i := &s.Instances[at]; slices.ContainsFunc(machines, i.ID.Equal) {
			i.Deallocated, i.State = false, Creating
		}
	}
	return s
}
