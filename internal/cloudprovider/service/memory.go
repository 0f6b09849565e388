package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// history is what this process did for a Service. It belongs to the Service's pass,
// of which there is one at a time.
type history struct {
	tried    *corev1.Service // as last worked on; something of it can be in Azure
	begun    *corev1.Service // as its owner was last told that it is being brought about
	done     *corev1.Service // as last brought about, nil when it never was
	failures int             // in a row
	wrong    bool            // the last pass, or process, did not bring it about
	told     told
	hush     hush
	doubted  *corev1.Service              // as it was when its refusal was last doubted
	groups   []key.Note                   // resource groups that it has asked for, or told of
	move     string                       // the last change of address that was told
	shown    []corev1.LoadBalancerIngress // that its status was given last
	noted    []string                     // names of the notes in which the Service tells of some
}

// noteGroups notes the resource groups that a Service asks for, those that can be ones, and its
// notes.
func (h *history) noteGroups(s *corev1.Service) {
	for _, n := range slices.Concat(key.AskedGroups(s.Annotations), key.Noted(s.Status.Conditions)) {
		if !slices.ContainsFunc(h.groups, n.Same) {
			h.groups = append(h.groups, n)
		}
	}
	h.addNotes(key.Notes(s.Status.Conditions))
}

// addressGroups are the groups of which a Service tells with its finalizer, as addresses are
// made there first of all. Of private link services it tells when kaz has looked there.
func (h *history) addressGroups() []key.Note {
	return slices.DeleteFunc(slices.Clone(h.groups), func(n key.Note) bool { return n.Of != key.PublicIPs })
}

// addNoted adds the notes of which the Service tells since.
func (h *history) addNoted(noted []key.Note) {
	for _, n := range noted {
		h.addNotes([]string{n.Name()})
	}
}

// outdated are the notes of what the Service need not tell any more.
func (h *history) outdated(still []key.Note) []string {
	return slices.DeleteFunc(slices.Clone(h.noted), func(name string) bool {
		return slices.ContainsFunc(still, func(n key.Note) bool { return n.Name() == name })
	})
}

func (h *history) addNotes(names []string) {
	for _, name := range names {
		if !slices.Contains(h.noted, name) {
			h.noted = append(h.noted, name)
		}
	}
}

// isHeld reports whether a Service can be worked for: it does not go without our knowing,
// and it tells of the groups where addresses are made for it, even if somebody took the
// notes off.
func (h *history) isHeld(s *corev1.Service) bool {
	complete := len(s.Status.LoadBalancer.Ingress) > 0 // what it has, load balancers tell
	told := key.Noted(s.Status.Conditions)
	return helpers.HasLBFinalizer(s) &&
		(complete || !slices.ContainsFunc(h.addressGroups(), func(n key.Note) bool { return !slices.ContainsFunc(told, n.Same) }))
}

// doubts reports whether a Service is refused for what was in Azure when somebody looked, and
// nobody has looked since the Service asks for what it asks for: what it needs may have
// been made together with it. It says so once for each state of the Service.
func (h *history) doubts(s *corev1.Service, problems []plan.Problem) bool {
	if h.doubted != nil && sameWish(h.doubted, s) || !slices.ContainsFunc(problems, isOfAzure) {
		return false
	}
	h.doubted = s
	return true
}

// isOfAzure reports whether a problem can go away without a change of its Service.
func isOfAzure(p plan.Problem) bool {
	switch p.Reason {
	case loadbalancer.ReasonAnnotation, loadbalancer.ReasonSpec:
		return false
	}
	return !p.Warning
}

// announced reports whether the owner is to be told when the Service is brought
// about: because it is new or changed, or was not well. What a restart finds in
// place is not news.
func (h *history) announced(s *corev1.Service) bool {
	switch {
	case h.wrong:
		return true
	case h.done == nil:
		return len(s.Status.LoadBalancer.Ingress) == 0
	}
	return !sameWish(h.done, s)
}

// served reports whether this process has worked on a Service.
func (c *Controller) served(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.histories[uid] != nil
}

// historyOf is what is known of a Service that is worked on.
func (c *Controller) historyOf(uid types.UID) *history {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.histories[uid]
	if !ok {
		h = &history{wrong: c.leftFailed[uid]}
		c.histories[uid] = h
	}
	return h
}

// forget drops what is known of a Service of which nothing is left.
func (c *Controller) forget(it item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.histories, it.UID)
	delete(c.blocked, it)
}

// block keeps a Service from being tried again until something changes.
func (c *Controller) block(it item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocked[it] = true
}

func (c *Controller) unblock(it item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.blocked, it)
}

// lookAgain marks the Services that wait for something to change: a port or an
// address that was somebody else's may be free now.
func (c *Controller) lookAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for it := range c.blocked {
		c.queue.Add(it)
	}
}
