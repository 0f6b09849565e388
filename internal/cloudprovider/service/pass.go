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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/controller"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/problem"
)

// pass does what has to be done for a Service now. There is one at a time for each.
func (c *Controller) pass(ctx context.Context, it item) {
	why := c.queue.Take(it)
	switch it {
	case everything:
		c.markAll(why)
		return
	case orphansItem:
		c.conclude(ctx, it, c.histories.of(it), why, c.removeOrphans(ctx, why))
		return
	}
	s := c.current(it)
	todo := c.config.Classes.Next(s, c.histories.has(it.UID))
	if todo == decision.Ignore {
		c.histories.forget(it)
		return
	}
	h := c.histories.of(it)
	vanished := s == nil
	if vanished {
		s = h.tried
	}
	h.try(s)
	if wait := time.Until(c.aloneFrom(h)); todo == decision.Remove && wait > 0 {
		c.queue.MarkAfter(it, why, wait)
		return
	}
	h.blocked.Store(false)
	var err error
	if todo == decision.Ensure {
		err = c.ensure(ctx, s, h, why)
	} else {
		err = c.remove(ctx, s, h, vanished)
	}
	c.conclude(ctx, it, h, why, err)
}

// overlap is how long the leader before may go on making what it had begun to make: twice its
// lease.
const overlap = 30 * time.Second

// aloneFrom is when no earlier leader makes a public IP any more where no controller would look
// for it when its Service is gone; zero for a Service that asks for none there.
func (c *Controller) aloneFrom(h *history) (when time.Time) {
	elsewhere := func(n key.Note) bool { return !strings.EqualFold(n.Group, c.config.LoadBalancer.ResourceGroup) }
	if slices.ContainsFunc(h.addressGroups(), elsewhere) {
		return c.started.Add(overlap)
	}
	return when
}

// conclude has a pass that failed tried again. Services for which Azure was too busy are tried
// together, as soon as kaz itself is not what keeps it busy, else at beats that get rarer: one
// write serves them all.
func (c *Controller) conclude(ctx context.Context, it item, h *history, why reasons, err error) {
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		h.failures, h.busy = 0, controller.BusyFilter{}
		return
	}
	h.failures++
	h.wrong = h.wrong || !h.busy.Holds()
	c.queue.Note(it, why)
	wait := controller.Delay(err, h.failures)
	switch {
	case azure.KindOf(err) != azure.Busy:
		c.queue.AddAfter(it, wait)
	case c.pools.lock.after(func() { c.queue.Add(it) }):
		wait = 0
	default:
		wait = controller.Beat(time.Since(c.started), wait, err)
		c.queue.AddAfter(it, wait)
	}
	slog.WarnContext(ctx, "service not served", "service", it, "error", err, "again_in", wait)
}

// ensure serves a Service.
func (c *Controller) ensure(ctx context.Context, s *corev1.Service, h *history, why reasons) error {
	announced := h.announced(s)
	if announced && (h.begun == nil || !sameSpec(h.begun, s)) {
		h.begun = s
		c.report.normal(s, reasonEnsuring)
	}
	why.startup = h.done == nil && !announced
	got, err := c.bring(ctx, s, h, why)
	if err == nil && !got.vanished {
		c.report.problems(ctx, s, h, got.problems)
		if got.refused() {
			return c.leave(s, h, got)
		}
		err = c.show(ctx, s, h, got)
	}
	if got.vanished || errors.Is(err, kube.ErrGone) {
		// The API server does not have the Service any more, or it asks for nothing any more:
		// the event that tells so is still on its way.
		slog.InfoContext(ctx, "service is gone", "service", s.Namespace+"/"+s.Name)
		return c.remove(ctx, s, h, false)
	}
	if err != nil {
		reason := reasonSyncFailed
		if why.nodes && !announced {
			reason = reasonUpdateFailed
		}
		c.report.failure(ctx, s, h, reason, err)
		return err
	}
	h.done, h.wrong = s, false
	c.report.served(s, h, why, announced, got)
	return nil
}

// bring takes a Service through all that serving it needs: the finalizer before
// anything is in Azure, an address, and a commit of its load balancer.
func (c *Controller) bring(ctx context.Context, s *corev1.Service, h *history, why reasons) (answer, error) {
	if !h.isHeld(s) {
		held, err := c.kube.Hold(ctx, s, h.addressGroups())
		if err != nil {
			return answer{}, err
		}
		s = held
		h.addRecorded(h.addressGroups())
	}
	wanted := loadbalancer.Service{Service: s, Groups: h.groups}
	if len(s.Status.LoadBalancer.Ingress) == 0 {
		if err := c.allocate(ctx, wanted); err != nil {
			return answer{}, fmt.Errorf("failed to ensure load balancer: %w", err)
		}
	}
	serve := func() (answer, error) { return c.commit(ctx, request{service: wanted, reasons: why}) }
	got, err := serve()
	if err == nil && h.doubts(s, got.problems) {
		why.since = time.Now()
		got, err = serve()
	}
	if err == nil && got.orphaned {
		if err = c.removeOrphans(ctx, why); err == nil {
			got, err = serve()
		}
	}
	h.addRecorded(got.recorded)
	if err != nil {
		return got, fmt.Errorf("failed to ensure load balancer: %w", err)
	}
	return got, nil
}

// show writes the addresses of a Service into its status as soon as they serve, and deletes what
// it has released.
func (c *Controller) show(ctx context.Context, s *corev1.Service, h *history, got answer) error {
	if err := got.members.wait(ctx); err != nil {
		return err
	}
	if err := c.kube.Show(ctx, s, got.ingress, h.shown, h.outdated(got.still)); err != nil {
		return err
	}
	h.recorded, h.shown = nil, got.ingress
	h.addRecorded(got.still)
	return c.release(ctx, got.released)
}

// remove takes all of a Service out of Azure, and then lets it go.
func (c *Controller) remove(ctx context.Context, s *corev1.Service, h *history, vanished bool) error {
	if h.failures == 0 {
		c.report.normal(s, reasonDeleting)
	}
	gone := loadbalancer.Service{Service: s, Gone: true, Groups: h.groups}
	got, err := c.commit(ctx, request{service: gone, reasons: reasons{since: c.aloneFrom(h)}})
	if err == nil {
		c.report.problems(ctx, s, h, got.problems)
		if got.refused() {
			return c.leave(s, h, got)
		}
		if err = c.release(ctx, got.released); err == nil && !vanished {
			err = c.kube.Release(ctx, s, h.recorded)
		}
	} else {
		err = fmt.Errorf("failed to delete load balancer: %w", err)
	}
	if err != nil {
		reason := reasonSyncFailed
		if vanished {
			reason = reasonDeleteFailed
		}
		c.report.failure(ctx, s, h, reason, err)
		return err
	}
	c.report.normal(s, reasonDeleted)
	c.histories.forget(itemOf(s))
	c.waitForOrphans(got)
	return nil
}

// leave leaves a refused Service as it is in Azure until something changes. When others
// changed something in the same commit, that is now. What may change where no event tells, as
// what could not be read, is an error, so that it is tried again.
func (c *Controller) leave(s *corev1.Service, h *history, got answer) error {
	h.wrong = true
	h.blocked.Store(true)
	if got.shared {
		c.queue.Add(itemOf(s))
	}
	i := slices.IndexFunc(got.problems, func(p plan.Problem) bool { return p.Reason == problem.Unread })
	if i < 0 {
		return nil
	}
	return &azure.Error{Kind: azure.Denied, Message: got.problems[i].Message}
}

// commit has a request carried out with all others that wait.
func (c *Controller) commit(ctx context.Context, r request) (answer, error) {
	operation := "services_ensure_loadbalancer" // as dashboards know it
	switch {
	case r.service.Gone:
		operation = "services_ensure_loadbalancer_deleted"
	case r.reasons.nodes:
		operation = "services_update_loadbalancer"
	}
	done := c.measure(operation)
	got, err := c.commits.Submit(ctx, c.config.LoadBalancer.LoadBalancer().Key(), r)
	err = errors.Join(err, got.err)
	done(err)
	return got, err
}

// removeOrphans removes what deleted Services have left in Azure.
func (c *Controller) removeOrphans(ctx context.Context, why reasons) error {
	c.histories.of(orphansItem).blocked.Store(false)
	none := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: orphansItem.Name}}
	r := request{reasons: why, orphans: true, service: loadbalancer.Service{Service: none, Gone: true}}
	got, err := c.commits.Submit(ctx, c.config.LoadBalancer.LoadBalancer().Key(), r)
	if err != nil {
		return err
	}
	c.waitForOrphans(got)
	return c.release(ctx, got.released)
}

// waitForOrphans has orphans looked for when a commit changes something in Azure, if a deleted Service
// has left a frontend there that something else needs. A new Service may bring another frontend.
func (c *Controller) waitForOrphans(got answer) {
	if slices.ContainsFunc(got.problems, func(p plan.Problem) bool { return p.Reason == problem.FrontendKept }) {
		c.histories.of(orphansItem).blocked.Store(true)
	}
}
