package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/controller"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/reconcile"
)

// pass does what has to be done for a Service now. There is one at a time for each.
func (c *Controller) pass(ctx context.Context, it item) {
	why := c.queue.Take(it)
	switch it {
	case everything:
		c.markAll(why)
		return
	case orphansItem:
		c.conclude(ctx, it, c.history(it), why, c.removeOrphans(ctx, why))
		return
	}
	s := c.current(it)
	todo := c.config.Classes.Next(s, c.served(it))
	if todo == decision.Ignore {
		c.histories.Delete(it)
		return
	}
	h := c.history(it)
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

// overlap is how long an earlier leader may continue what it had begun to make: twice its lease.
const overlap = 30 * time.Second

// aloneFrom is when no earlier leader makes a public IP in another resource group any more. No controller looks there when
// the Service is gone, so its removal waits until then. It is zero for a Service that asks for no public IP there.
func (c *Controller) aloneFrom(h *history) time.Time {
	elsewhere := func(n key.Note) bool { return !strings.EqualFold(n.Group, c.config.LoadBalancer.ResourceGroup) }
	if slices.ContainsFunc(h.addressGroups(), elsewhere) {
		return c.started.Add(overlap)
	}
	return time.Time{}
}

// conclude has a failed pass tried again. Services for which Azure was too busy are tried together, so that one write
// serves them all. If a write of kaz keeps Azure busy, they are tried when that write ends. Otherwise they are tried at
// beats that get rarer ([controller.Beat]).
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

func (c *Controller) ensure(ctx context.Context, s *corev1.Service, h *history, why reasons) error {
	// An event is due when a Service is served that is new or changed, or that had failed. A restart sends no events
	// for Services in place.
	announced := h.wrong || h.done != nil && !sameSpec(h.done, s)
	if announced && !h.begun {
		h.begun = true
		c.normal(s, eventEnsuring, "")
	}
	why.startup = h.done == nil && !announced
	got, err := c.provide(ctx, s, h, why)
	if err == nil && !got.vanished {
		c.reportProblems(ctx, s, h.reported.New(got.problems))
		if got.refused() {
			return c.waitForChange(s, h, got)
		}
		err = c.show(ctx, s, h, got)
	}
	if got.vanished || errors.Is(err, kube.ErrGone) {
		// The API server does not have the Service any more, or the Service asks for nothing any more. The informer does
		// not show that yet.
		slog.InfoContext(ctx, "service is gone", "service", spec.KeyOf(s))
		return c.remove(ctx, s, h, false)
	}
	if err != nil {
		e := eventSyncFailed
		if why.nodes && !announced {
			e = eventUpdateFailed
		}
		c.reportFailure(ctx, s, h, e, err)
		return err
	}
	h.done, h.wrong = s, false
	c.reportServed(s, h, why, announced, got)
	return nil
}

// provide gives a Service its load balancer. It sets the finalizer before anything is in Azure, makes an address, and has
// the load balancer committed.
func (c *Controller) provide(ctx context.Context, s *corev1.Service, h *history, why reasons) (got answer, err error) {
	if !h.isHeld(s) {
		if s, err = c.kube.Hold(ctx, s, h.addressGroups()); err != nil {
			return got, err
		}
		h.recorded = h.recorded.Union(namesOf(h.addressGroups()))
	}
	wanted := loadbalancer.Service{Service: s, Groups: h.groups}
	if len(s.Status.LoadBalancer.Ingress) == 0 {
		err = c.allocate(ctx, wanted)
	}
	serve := func() (answer, error) { return c.commit(ctx, request{service: wanted, reasons: why}) }
	if err == nil {
		got, err = serve()
	}
	if err == nil && !h.doubted && slices.ContainsFunc(got.problems, isOfAzure) {
		// What the Service needs may have been made at the same time as the Service, after Azure was read.
		h.doubted, why.since = true, time.Now()
		got, err = serve()
	}
	if err == nil && got.orphaned {
		if err = c.removeOrphans(ctx, why); err == nil {
			got, err = serve()
		}
	}
	h.recorded = h.recorded.Union(got.recorded)
	if err != nil {
		err = fmt.Errorf("failed to ensure load balancer: %w", err)
	}
	return got, err
}

// allocate makes the public IPs that a Service needs and that do not exist yet. The public IPs of several Services are
// planned together, on one snapshot, and made side by side. Each Service continues as soon as it has its own.
//
// It runs before the commit, which would make them too. So a public IP that is slow or refused delays no other Service. If
// Azure says that a public IP exists, has changed or is busy, allocate leaves it to the commit, which reads again.
func (c *Controller) allocate(ctx context.Context, s loadbalancer.Service) error {
	steps, err := c.addresses.Submit(ctx, c.config.LoadBalancer.LoadBalancer().Key(), s)
	if err != nil || len(steps) == 0 {
		return err
	}
	err = reconcile.Apply(ctx, c.azure, plan.Plan{Steps: steps}).Err()
	switch azure.KindOf(err) {
	case azure.Exists, azure.Changed, azure.Busy:
		return nil
	}
	return err
}

// planAddresses returns, for each Service, the steps that make its public IPs.
func (c *Controller) planAddresses(ctx context.Context, _ string, batch []loadbalancer.Service) ([][]plan.Step, error) {
	in := c.cluster.Target(ctx, batch)
	have, err := reconcile.Gather(ctx, c.azure, in.Needs)
	if err != nil {
		return nil, err
	}
	d, err := in.Decide(have)
	if err != nil {
		return nil, err
	}
	c.cluster.NameConfirmed.Store(true)
	p, err := plan.Diff(have, d.Graph)
	if err != nil {
		return nil, fmt.Errorf("plan addresses: %w", err)
	}
	answers := make([][]plan.Step, len(batch))
	for _, step := range p.Steps {
		isNew := step.Op == plan.Create && len(step.After) == 0 && step.ID.Is(network.PublicIPAddresses)
		first := slices.IndexFunc(batch, func(s loadbalancer.Service) bool { return slices.Contains(step.For, s.Key()) })
		if isNew && first >= 0 {
			answers[first] = append(answers[first], step)
		}
	}
	return answers, nil
}

// show writes the addresses of a Service into its status as soon as they serve, and deletes what
// it has released.
func (c *Controller) show(ctx context.Context, s *corev1.Service, h *history, got answer) error {
	if err := got.members.wait(ctx); err != nil {
		return err
	}
	if err := c.kube.Show(ctx, s, got.ingress, h.shown, sets.List(h.recorded.Difference(got.still))); err != nil {
		return err
	}
	h.recorded, h.shown = got.still, got.ingress
	return c.release(ctx, got.released)
}

// release deletes public IPs that a commit has released. A public IP that several Services wait for is deleted once.
func (c *Controller) release(ctx context.Context, steps []plan.Step) error {
	var group errgroup.Group
	for _, s := range steps {
		group.Go(func() error {
			_, err, _ := c.releases.Do(s.ID.Key(), func() (any, error) {
				return nil, reconcile.Apply(ctx, c.azure, plan.Plan{Steps: []plan.Step{s}}).Err()
			})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("failed to delete load balancer: %w", err)
	}
	return nil
}

// remove takes all of a Service out of Azure, and then removes its finalizer.
func (c *Controller) remove(ctx context.Context, s *corev1.Service, h *history, vanished bool) error {
	if h.failures == 0 {
		c.normal(s, eventDeleting, "")
	}
	gone := loadbalancer.Service{Service: s, Gone: true, Groups: h.groups}
	got, err := c.commit(ctx, request{service: gone, reasons: reasons{since: c.aloneFrom(h)}})
	if err == nil {
		c.reportProblems(ctx, s, h.reported.New(got.problems))
		if got.refused() {
			return c.waitForChange(s, h, got)
		}
		if err = c.release(ctx, got.released); err == nil && !vanished {
			err = c.kube.Release(ctx, s, sets.List(h.recorded))
		}
	} else {
		err = fmt.Errorf("failed to delete load balancer: %w", err)
	}
	if err != nil {
		e := eventSyncFailed
		if vanished {
			e = eventDeleteFailed
		}
		c.reportFailure(ctx, s, h, e, err)
		return err
	}
	c.normal(s, eventDeleted, "")
	c.histories.Delete(itemOf(s))
	c.waitForOrphans(got)
	return nil
}

// waitForChange keeps what a refused Service has in Azure until something changes. If the same commit changed something for other
// Services, the Service is queued again at once. Some problems can end without an event, such as a resource that could not
// be read. For these it returns an error, so that the Service is tried again.
func (c *Controller) waitForChange(s *corev1.Service, h *history, got answer) error {
	h.wrong = true
	h.blocked.Store(true)
	if got.shared {
		c.queue.Add(itemOf(s))
	}
	for _, p := range got.problems {
		switch p.Reason {
		case problem.Unread:
			return &azure.Error{Kind: azure.Denied, Message: p.Message}
		case problem.Zones:
			return &azure.Error{Kind: azure.Unavailable, Message: p.Message}
		}
	}
	return nil
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

func (c *Controller) removeOrphans(ctx context.Context, why reasons) error {
	c.history(orphansItem).blocked.Store(false)
	got, err := c.commits.Submit(ctx, c.config.LoadBalancer.LoadBalancer().Key(), request{reasons: why})
	if err != nil {
		return err
	}
	c.waitForOrphans(got)
	return c.release(ctx, got.released)
}

// waitForOrphans has orphans looked for when a later commit changes something in Azure. It does so if a deleted Service
// left a frontend that something else needs. A new Service may bring another frontend.
func (c *Controller) waitForOrphans(got answer) {
	if slices.ContainsFunc(got.problems, func(p plan.Problem) bool { return p.Reason == problem.FrontendKept }) {
		c.history(orphansItem).blocked.Store(true)
	}
}

// history is what this process did for a Service. It belongs to the Service's pass,
// of which there is one at a time.
type history struct {
	tried    *corev1.Service              // as last worked on; something of it can be in Azure
	done     *corev1.Service              // as last served, nil when it never was
	blocked  atomic.Bool                  // it is not tried again until something changes
	wrong    bool                         // it is new, or the last pass, or process, did not serve it
	groups   []key.Note                   // resource groups that it has asked for, or recorded
	recorded sets.Set[string]             // names of the notes in which the Service records groups
	move     string                       // the last change of address that was reported
	shown    []corev1.LoadBalancerIngress // that its status was given last

	// Since the Service was last changed:
	begun    bool // an event has told that the work has begun
	doubted  bool // its refusal was doubted
	failures int  // in a row
	busy     controller.BusyFilter
	reported controller.Deduplicator[plan.Problem]
}

// try notes that a Service is worked on, its notes, and the valid resource groups that it asks for. When a user has changed
// the Service, earlier failures do not count, and a problem that remains is reported again.
func (h *history) try(s *corev1.Service) {
	if !sameSpec(h.tried, s) {
		h.begun, h.doubted, h.failures = false, false, 0
		h.busy, h.reported = controller.BusyFilter{}, controller.Deduplicator[plan.Problem]{}
	}
	h.wrong = h.wrong || h.tried == nil && len(s.Status.LoadBalancer.Ingress) == 0
	h.tried = s
	for _, n := range slices.Concat(key.AskedGroups(s.Annotations), key.Noted(s.Status.Conditions)) {
		if !slices.ContainsFunc(h.groups, n.Same) {
			h.groups = append(h.groups, n)
		}
	}
	h.recorded = h.recorded.Union(sets.New(key.Notes(s.Status.Conditions)...))
}

// addressGroups are the groups that a Service records with its finalizer, because kaz makes the addresses there first.
// Groups of private link services are recorded after kaz has read them.
func (h *history) addressGroups() []key.Note {
	return slices.DeleteFunc(slices.Clone(h.groups), func(n key.Note) bool { return n.Of != key.PublicIPs })
}

func namesOf(notes []key.Note) sets.Set[string] {
	names := sets.Set[string]{}
	for _, n := range notes {
		names.Insert(n.Name())
	}
	return names
}

// isHeld reports whether Azure may be changed for a Service. The Service must have the finalizer. Until its status has an
// address, it must also record the groups where its addresses are made. A user may have removed these notes.
func (h *history) isHeld(s *corev1.Service) bool {
	complete := len(s.Status.LoadBalancer.Ingress) > 0 // load balancers show what it has
	recorded := key.Noted(s.Status.Conditions)
	return helpers.HasLBFinalizer(s) &&
		(complete || !slices.ContainsFunc(h.addressGroups(), func(n key.Note) bool { return !slices.ContainsFunc(recorded, n.Same) }))
}

// history returns the history of an item, or a new one.
func (c *Controller) history(it item) *history {
	h, _ := c.histories.LoadOrStore(it, &history{wrong: c.leftFailed[it.UID]})
	return h.(*history)
}

// served reports whether this process has worked on a Service, and may have left something of it in Azure.
func (c *Controller) served(it item) bool {
	_, known := c.histories.Load(it)
	return known
}
