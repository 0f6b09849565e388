package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
)

// pass does what has to be done for a Service now. There is one at a time for each.
func (c *Controller) pass(ctx context.Context, it item) {
	w := c.dirt.take(it)
	if it == everything {
		if err := c.markAll(w); err != nil {
			slog.ErrorContext(ctx, "list services", "error", err)
		}
		return
	}
	if it == sweeping {
		c.sweep(ctx, w)
		return
	}
	s, served := c.current(it), c.served(it.UID)
	todo := remove
	switch {
	case s != nil:
		todo = c.config.Classes.next(s, served)
	case !served:
		todo = ignore
	}
	if todo == ignore {
		c.forget(it)
		return
	}
	h := c.historyOf(it.UID)
	vanished := s == nil
	if vanished {
		s = h.tried
	}
	h.tried = s
	h.noteGroups(s)
	if wait := time.Until(c.aloneFrom(h)); todo == remove && wait > 0 {
		c.dirt.add(it, w)
		c.queue.AddAfter(it, wait)
		return
	}
	c.unblock(it)
	var err error
	if todo == ensure {
		err = c.ensure(ctx, s, h, w)
	} else {
		err = c.remove(ctx, s, h, vanished)
	}
	c.conclude(ctx, it, h, w, err)
}

// overlap is how long the leader before may go on making what it had begun to make: twice its
// lease.
const overlap = 30 * time.Second

// aloneFrom is when nobody makes a public IP any more where nobody would look for it when its
// Service is gone; zero for a Service that asks for none there.
func (c *Controller) aloneFrom(h *history) (when time.Time) {
	elsewhere := func(n key.Note) bool { return !strings.EqualFold(n.Group, c.config.LoadBalancer.ResourceGroup) }
	if slices.ContainsFunc(h.addressGroups(), elsewhere) {
		return c.began.Add(overlap)
	}
	return when
}

// conclude sees to it that a Service that failed is tried again.
func (c *Controller) conclude(ctx context.Context, it item, h *history, w why, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil:
		h.failures, h.hush = 0, hush{}
	default:
		h.failures++
		h.wrong = h.wrong || !h.hush.holds()
		c.dirt.add(it, w)
		wait := c.tryAgain(it, err, h.failures)
		slog.WarnContext(ctx, "service not brought about", "service", it.Namespace+"/"+it.Name, "error", err, "again_in", wait)
	}
}

// ensure brings a Service about.
func (c *Controller) ensure(ctx context.Context, s *corev1.Service, h *history, w why) error {
	announced := h.announced(s)
	if announced && (h.begun == nil || !sameWish(h.begun, s)) {
		h.begun = s
		c.events.Event(s, corev1.EventTypeNormal, reasonEnsuring, "Ensuring load balancer")
	}
	w.start = h.done == nil && !announced
	got, err := c.bring(ctx, s, h, w)
	if got.gone || errors.Is(err, errGone) {
		return c.takeBack(ctx, s, h)
	}
	if err != nil {
		c.tellFailure(ctx, s, w, announced, err)
		return err
	}
	c.tellProblems(ctx, s, h, got.problems)
	if got.refused() {
		c.leave(s, h, got)
		return got.again()
	}
	if err = got.filling.wait(ctx); err == nil {
		err = c.kube.show(ctx, s, got.ingress, h.shown, h.outdated(got.still))
	}
	if errors.Is(err, errGone) {
		return c.takeBack(ctx, s, h)
	}
	if err == nil {
		h.noted, h.shown = nil, got.ingress
		h.addNoted(got.still)
		err = c.release(ctx, got.released)
	}
	if err != nil {
		c.tellFailure(ctx, s, w, announced, err)
		return err
	}
	h.done, h.wrong = s, false
	c.tellMove(s, h, got)
	c.tellDone(s, w, announced, got)
	return nil
}

// tellDone says that a Service is served, and what of it was done now.
func (c *Controller) tellDone(s *corev1.Service, w why, announced bool, got answer) {
	if (w.drift || w.start) && !announced {
		c.tellRepairs(s, w, got.repairs)
	}
	switch {
	case announced, w.start && len(got.repairs) > 0:
		c.events.Event(s, corev1.EventTypeNormal, reasonEnsured, "Ensured load balancer")
	case got.backends, w.told && !got.fills: // what could not be written may have been done all the same
		c.tellUpdated(s)
	}
}

func (c *Controller) tellUpdated(s *corev1.Service) {
	c.events.Event(s, corev1.EventTypeNormal, reasonUpdated, "Updated load balancer with new hosts")
}

// bring takes a Service through all that serving it needs: the finalizer before
// anything is in Azure, an address, and a commit of its load balancer.
func (c *Controller) bring(ctx context.Context, s *corev1.Service, h *history, w why) (answer, error) {
	if !h.isHeld(s) {
		held, err := c.kube.hold(ctx, s, h.addressGroups())
		if err != nil {
			return answer{}, err
		}
		s = held
		h.addNoted(h.addressGroups())
	}
	wanted := loadbalancer.Service{Service: s, Groups: h.groups}
	if len(s.Status.LoadBalancer.Ingress) == 0 {
		if err := c.allocate(ctx, wanted); err != nil {
			return answer{}, fmt.Errorf("failed to ensure load balancer: %w", err)
		}
	}
	got, err := c.commit(ctx, request{service: wanted, why: w})
	if err == nil && h.doubts(s, got.problems) {
		w.since = time.Now()
		got, err = c.commit(ctx, request{service: wanted, why: w})
	}
	if err == nil && got.leftovers {
		if err = c.takeLeftovers(ctx, w); err == nil {
			got, err = c.commit(ctx, request{service: wanted, why: w})
		}
	}
	h.addNoted(got.noted)
	if err != nil {
		return got, fmt.Errorf("failed to ensure load balancer: %w", err)
	}
	return got, nil
}

// takeBack takes away what was made for a Service that the API server does not have any
// more, or that asks for nothing any more: the news of that is still on its way.
func (c *Controller) takeBack(ctx context.Context, s *corev1.Service, h *history) error {
	slog.InfoContext(ctx, "service is gone", "service", s.Namespace+"/"+s.Name)
	return c.remove(ctx, s, h, false)
}

// remove takes all of a Service out of Azure, and then lets it go.
func (c *Controller) remove(ctx context.Context, s *corev1.Service, h *history, vanished bool) error {
	if h.failures == 0 {
		c.events.Event(s, corev1.EventTypeNormal, reasonDeleting, "Deleting load balancer")
	}
	gone := loadbalancer.Service{Service: s, Gone: true, Groups: h.groups}
	got, err := c.commit(ctx, request{service: gone, why: why{since: c.aloneFrom(h)}})
	if err == nil {
		c.tellProblems(ctx, s, h, got.problems)
		if got.refused() {
			c.leave(s, h, got)
			return got.again()
		}
		if err = c.release(ctx, got.released); err == nil && !vanished {
			err = c.kube.release(ctx, s, h.noted)
		}
	} else {
		err = fmt.Errorf("failed to delete load balancer: %w", err)
	}
	if err != nil {
		if vanished {
			c.tell(ctx, s, reasonDeleteFailed, "Error deleting load balancer: %v", err)
		} else {
			c.tell(ctx, s, reasonSyncFailed, "Error syncing load balancer: %v", err)
		}
		return err
	}
	c.events.Event(s, corev1.EventTypeNormal, reasonDeleted, "Deleted load balancer")
	c.forget(itemOf(s))
	return nil
}

// leave leaves a Service as it is in Azure until something changes. When others
// changed something in the same commit, that is now.
func (c *Controller) leave(s *corev1.Service, h *history, got answer) {
	h.wrong = true
	c.block(itemOf(s))
	if got.moved {
		c.queue.Add(itemOf(s))
	}
}

// commit has a request brought about with all others that wait.
func (c *Controller) commit(ctx context.Context, r request) (answer, error) {
	done := c.measure(operation(r))
	got, err := c.commits.Submit(ctx, c.config.LoadBalancer.LoadBalancer().Key(), r)
	err = errors.Join(err, got.err)
	done(err)
	return got, err
}

// operation is what dashboards call what a request wants.
func operation(r request) string {
	switch {
	case r.service.Gone:
		return "services_ensure_loadbalancer_deleted"
	case r.why.nodes:
		return "services_update_loadbalancer"
	}
	return "services_ensure_loadbalancer"
}
