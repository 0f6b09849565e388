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
	wrong    bool            // the last pass did not bring it about
	told     told
	hush     hush
	doubted  *corev1.Service              // as it was when its refusal was last doubted
	groups   []string                     // resource groups of public IPs that it has asked for
	move     string                       // the last change of address that was told
	shown    []corev1.LoadBalancerIngress // that its status was given last
	noted    []string                     // names of the annotations in which the Service tells of some
}

// noteGroup notes the resource group that a Service asks for, if it can be one, and its notes.
func (h *history) noteGroup(s *corev1.Service) {
	if group, _ := key.PublicIPGroup.Read(s.Annotations); group != "" && !slices.Contains(h.groups, group) {
		h.groups = append(h.groups, group)
	}
	h.addNotes(key.Notes(s.Annotations))
}

// addNoted adds the notes of groups of which the Service tells since.
func (h *history) addNoted(groups []string) {
	for _, g := range groups {
		h.addNotes([]string{key.GroupNote(g)})
	}
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
	told := key.NotedGroups(s.Annotations)
	return helpers.HasLBFinalizer(s) &&
		(complete || !slices.ContainsFunc(h.groups, func(g string) bool { return !slices.Contains(told, g) }))
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
		h = &history{}
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
