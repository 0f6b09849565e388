package service

import (
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/controller"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/problem"
)

// history is what this process did for a Service. It belongs to the Service's pass,
// of which there is one at a time.
type history struct {
	tried    *corev1.Service // as last worked on; something of it can be in Azure
	begun    *corev1.Service // as of the last event that the work has begun
	done     *corev1.Service // as last served, nil when it never was
	item     item
	failures int             // in a row
	blocked  atomic.Bool     // it is not tried again until something changes
	wrong    bool            // the last pass, or process, did not serve it
	about    *corev1.Service // as it was when the problems in reported were
	reported controller.Deduplicator[plan.Problem]
	busy     controller.BusyFilter
	doubted  *corev1.Service              // as it was when its refusal was last doubted
	groups   []key.Note                   // resource groups that it has asked for, or recorded
	move     string                       // the last change of address that was reported
	shown    []corev1.LoadBalancerIngress // that its status was given last
	recorded []string                     // names of the notes in which the Service records groups
}

// unreported are the problems that were not reported yet of the Service as it is. One that a
// change of the Service did not cure is reported again.
func (h *history) unreported(s *corev1.Service, problems []plan.Problem) []plan.Problem {
	if h.about == nil || !sameSpec(h.about, s) {
		h.reported.Reset()
	}
	h.about = s
	return h.reported.New(problems)
}

// try notes that a Service is worked on, and the resource groups that it asks for, those that can
// be ones, and its notes. Failures of a Service that a user has changed since do not count.
func (h *history) try(s *corev1.Service) {
	if h.tried != nil && !sameSpec(h.tried, s) {
		h.failures, h.busy = 0, controller.BusyFilter{}
	}
	h.tried = s
	for _, n := range slices.Concat(key.AskedGroups(s.Annotations), key.Noted(s.Status.Conditions)) {
		if !slices.ContainsFunc(h.groups, n.Same) {
			h.groups = append(h.groups, n)
		}
	}
	h.addNotes(key.Notes(s.Status.Conditions))
}

// addressGroups are the groups that a Service records with its finalizer, because addresses are made
// there first of all. Groups of private link services are recorded after kaz has read them.
func (h *history) addressGroups() []key.Note {
	return slices.DeleteFunc(slices.Clone(h.groups), func(n key.Note) bool { return n.Of != key.PublicIPs })
}

// addRecorded adds groups that the Service has recorded since.
func (h *history) addRecorded(recorded []key.Note) {
	for _, n := range recorded {
		h.addNotes([]string{n.Name()})
	}
}

// outdated are the notes that the Service no longer needs.
func (h *history) outdated(still []key.Note) []string {
	return slices.DeleteFunc(slices.Clone(h.recorded), func(name string) bool {
		return slices.ContainsFunc(still, func(n key.Note) bool { return n.Name() == name })
	})
}

func (h *history) addNotes(names []string) {
	for _, name := range names {
		if !slices.Contains(h.recorded, name) {
			h.recorded = append(h.recorded, name)
		}
	}
}

// isHeld reports whether Azure may be changed for a Service: it has the finalizer, and it records the
// groups where addresses are made for it, even if a user removed the notes.
func (h *history) isHeld(s *corev1.Service) bool {
	complete := len(s.Status.LoadBalancer.Ingress) > 0 // load balancers show what it has
	recorded := key.Noted(s.Status.Conditions)
	return helpers.HasLBFinalizer(s) &&
		(complete || !slices.ContainsFunc(h.addressGroups(), func(n key.Note) bool { return !slices.ContainsFunc(recorded, n.Same) }))
}

// doubts reports whether a Service is refused for what Azure had when it was last read: what the
// Service needs may have been made together with it, after the read. It reports that once for each
// state of the Service.
func (h *history) doubts(s *corev1.Service, problems []plan.Problem) bool {
	if h.doubted != nil && sameSpec(h.doubted, s) || !slices.ContainsFunc(problems, isOfAzure) {
		return false
	}
	h.doubted = s
	return true
}

// isOfAzure reports whether a problem can go away without a change of its Service.
func isOfAzure(p plan.Problem) bool {
	return !p.Warning && p.Reason != problem.Annotation && p.Reason != problem.Spec
}

// announced reports whether an event is due when the Service is served: because it is new or changed,
// or had failed. A restart sends no events for Services in place.
func (h *history) announced(s *corev1.Service) bool {
	switch {
	case h.wrong:
		return true
	case h.done == nil:
		return len(s.Status.LoadBalancer.Ingress) == 0
	}
	return !sameSpec(h.done, s)
}

// histories are those of all Services that this process has worked on, and of the orphans.
type histories struct {
	mu    sync.Mutex // guards what follows; never held while waiting
	known map[types.UID]*history
	// failed are the Services for which the last event of an earlier process was a failure.
	failed map[types.UID]bool
}

// has reports whether this process has worked on a Service.
func (hs *histories) has(uid types.UID) bool {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.known[uid] != nil
}

// of is the history of an item that is worked on.
func (hs *histories) of(it item) *history {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h, ok := hs.known[it.UID]
	if !ok {
		h = &history{item: it, wrong: hs.failed[it.UID]}
		hs.known[it.UID] = h
	}
	return h
}

// forget drops the history of a Service when nothing of it is left.
func (hs *histories) forget(it item) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	delete(hs.known, it.UID)
}

// requeueWaiting queues the Services that wait for something to change: a port or an address that another
// Service had may be free now.
func (c *Controller) requeueWaiting() {
	c.histories.mu.Lock()
	defer c.histories.mu.Unlock()
	for _, h := range c.histories.known {
		if h.blocked.Load() {
			c.queue.Add(h.item)
		}
	}
}
