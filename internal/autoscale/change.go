package autoscale

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/reconcile"
)

// writes makes the changes of groups in Azure, in the background.
type writes struct {
	Config
	catalogue *catalogue
	inventory *Provider
	// changes makes one request to Azure of all changes of a scale set that come together.
	changes *reconcile.Coalescer[change, struct{}]
	// background waits for the changes under way. Their context is that of the provider.
	background sync.WaitGroup
	ctx        func() context.Context
}

// How long changes are gathered into one request: cluster-autoscaler deletes each node with a call of its own.
const (
	gatherCalm = 200 * time.Millisecond
	gatherMost = time.Second
)

// newWrites returns the writes of a provider, until ctx ends.
func newWrites(ctx context.Context, p *Provider) *writes {
	w := &writes{Config: p.Config, catalogue: p.catalogue, inventory: p, ctx: func() context.Context { return ctx }}
	w.changes = reconcile.NewCoalescer(w.commit)
	w.changes.Gather(gatherCalm, gatherMost)
	context.AfterFunc(ctx, w.changes.Close)
	return w
}

// close waits for what is under way.
func (w *writes) close() {
	w.changes.Close()
	w.background.Wait()
}

// change is what one call of cluster-autoscaler changes of a group.
type change struct {
	group *group
	grow  int
	// leave are machines to delete or to deallocate.
	leave []azure.ID
	// lower takes machines that were waived off the capacity.
	lower bool
}

// submit makes a change in the background.
func (w *writes) submit(c change) {
	w.background.Go(func() {
		_, err := w.changes.Submit(w.ctx(), c.group.set.Key(), c)
		if err != nil && w.ctx().Err() == nil {
			w.Log.Error("change of a scale set failed", "scale_set", c.group.set, "error", err)
		}
	})
}

// commit makes all changes of a scale set that came together. It returns when Azure has accepted them. What Azure refuses
// is noted in the group.
func (w *writes) commit(ctx context.Context, _ string, batch []change) ([]struct{}, error) {
	g := batch[0].group
	grow, lower := 0, false
	var leave []azure.ID
	for _, c := range batch {
		grow += c.grow
		leave = append(leave, c.leave...)
		lower = lower || c.lower
	}
	if grow > 0 {
		w.grow(ctx, g, grow)
	}
	if len(leave) > 0 {
		w.shrink(ctx, g, leave)
	}
	if lower {
		w.lower(ctx, g)
	}
	return make([]struct{}, len(batch)), nil
}

// grow asks Azure for n machines, as far as they are still wanted.
func (w *writes) grow(ctx context.Context, g *group, n int) {
	g.mu.Lock()
	spec := g.status.Group
	n = min(n, g.queued)
	g.queued -= n
	g.sending = n // one request of a group at a time
	g.mu.Unlock()
	fits, refused := w.catalogue.take(ctx, spec, n)
	if refused != nil {
		w.refuse(g, n-fits, *refused)
	}
	if fits > 0 && spec.Options.Deallocate {
		fits -= w.restart(ctx, g, fits)
	}
	if fits <= 0 {
		return
	}
	op, err := w.setCapacity(ctx, g, func(capacity int) int { return capacity + fits }, func() { g.sending -= fits })
	if err != nil {
		w.refuse(g, fits, failure(err))
		return
	}
	w.Log.Info("scale set grows", "scale_set", g.set, "machines", fits)
	w.follow(g, op, func(err error) { w.grown(g, fits, err) })
}

// failure returns what an error means for machines that were asked for. An error that might pass has lasted too long by
// then.
func failure(err error) nodegroup.Failure {
	if f := nodegroup.FailureOf(err); f != nil {
		return *f
	}
	return nodegroup.Failure{Code: azure.KindOf(err).String(), Message: err.Error(), Class: nodegroup.Other}
}

// refuse turns n machines of the request that is being made into placeholders.
func (w *writes) refuse(g *group, n int, f nodegroup.Failure) {
	g.mu.Lock()
	g.sending -= n
	g.refuse(n, f, false)
	g.mu.Unlock()
	w.Metrics.refused(f.Code, n)
	w.Log.Warn("machines are not asked for, or refused", "scale_set", g.set, "machines", n, "code", f.Code, "message", f.Message)
}

// grown notes the machines of an increase that Azure did not make.
func (w *writes) grown(g *group, n int, err error) {
	if err == nil {
		return
	}
	w.catalogue.forgetUsages()
	f := nodegroup.FailureOf(err)
	if f == nil {
		return
	}
	g.mu.Lock()
	var failed int
	g.status, failed = g.status.Failed(*f)
	missing := max(min(n-failed, g.account().Missing()-g.waived-(len(g.refused)-g.uncounted())), 0)
	g.refuse(missing, *f, true)
	g.mu.Unlock()
	w.Metrics.refused(f.Code, failed+missing)
	w.Log.Warn("machines were not made", "scale_set", g.set, "failed", failed, "missing", missing, "code", f.Code, "message", f.Message)
}

// restart starts up to n deallocated machines. It returns for how many of the n machines no new machine is to be made.
func (w *writes) restart(ctx context.Context, g *group, n int) int {
	g.mu.Lock()
	var ids []azure.ID
	for _, i := range g.account().Restart(n) {
		ids = append(ids, i.ID)
	}
	g.mu.Unlock()
	if len(ids) == 0 {
		return 0
	}
	op, err := w.act(ctx, g, "start", ids, nil)
	if err != nil {
		w.refuse(g, len(ids), failure(err))
		return len(ids)
	}
	g.mu.Lock()
	g.sending -= len(ids)
	g.under++
	g.status = g.status.Started(ids)
	g.mu.Unlock()
	w.Log.Info("deallocated machines start", "scale_set", g.set, "machines", len(ids))
	w.follow(g, op, func(err error) {
		if err == nil {
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		off := 0
		for _, id := range ids {
			if at, listed := g.index[id.Key()]; listed && g.status.Instances[at].Deallocated {
				off++
			}
		}
		g.refuse(off, failure(err), false)
	})
	return len(ids)
}

// tries is how often a request is sent that Azure refuses for a reason that passes. pause is the first wait between two
// tries. The wait doubles each time, unless Azure names another wait.
const (
	tries = 6
	pause = 2 * time.Second
)

// retry calls do until it succeeds or fails for good.
func retry(ctx context.Context, do func(try int) (*azure.Operation, error)) (op *azure.Operation, err error) {
	for try := range tries {
		if op, err = do(try); err == nil || nodegroup.FailureOf(err) != nil {
			return op, err
		}
		var refused *azure.Error
		wait := pause << try
		if errors.As(err, &refused) && refused.RetryAfter > 0 {
			wait = refused.RetryAfter
		}
		if azure.KindOf(err) == azure.Changed {
			wait = 0
		}
		select {
		case <-ctx.Done():
			return op, err
		case <-time.After(wait):
		}
	}
	return op, err
}

// setCapacity changes the capacity of a scale set if the scale set is as it was read; otherwise it reads the scale set again.
// If the scale set then has the capacity that was asked for, the request came through and its answer was lost. When Azure
// accepts the request, setCapacity calls accepted with the lock, so that no machine counts twice.
func (w *writes) setCapacity(ctx context.Context, g *group, to func(capacity int) int, accepted func()) (*azure.Operation, error) {
	wanted := -1
	op, err := retry(ctx, func(try int) (*azure.Operation, error) {
		now, err := w.status(ctx, g, try > 0)
		if err != nil {
			return nil, err
		}
		if now.Capacity == wanted {
			return azure.Done(nil), nil
		}
		if wanted = to(now.Capacity); wanted == now.Capacity {
			return azure.Done(nil), nil
		}
		body, err := json.Marshal(map[string]any{"sku": map[string]any{"capacity": wanted}})
		if err != nil {
			return nil, err
		}
		return w.Azure.Begin(ctx, azure.Request{Verb: azure.Patch, ID: g.set, Body: body, IfMatch: now.Etag, Unseen: true})
	})
	if err == nil {
		g.mu.Lock()
		g.status = g.status.Accepted(wanted)
		g.under++
		accepted()
		g.mu.Unlock()
	}
	return op, err
}

// status returns the status of a scale set with a capacity that a write may be computed from. It reads the scale set if that
// is needed, or if again says so. If the capacity is in doubt, it reads the machines too. A doubt that lasts is an error.
func (w *writes) status(ctx context.Context, g *group, again bool) (nodegroup.Status, error) {
	isNode := w.inventory.nodesNow()
	current := func() (nodegroup.Status, nodegroup.Circumstances) {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.status, g.circumstances(isNode)
	}
	now, circumstances := current()
	if !again && now.Etag != "" {
		return now, nil
	}
	fresh, err := w.inventory.read(ctx, now.Group)
	if err != nil {
		return now, err
	}
	if now = now.Shown(fresh, circumstances); now.Doubt == "" {
		return now, nil
	}
	g.mu.Lock()
	g.status, g.stale = g.status.Shown(fresh, circumstances), true
	g.mu.Unlock()
	w.inventory.inspect(ctx, g)
	if now, _ = current(); now.Doubt != "" {
		return now, &azure.Error{Kind: azure.Unavailable, Op: "patch", ID: g.set, Message: now.Doubt}
	}
	return now, nil
}

// act runs an action of the scale set on machines.
func (w *writes) act(ctx context.Context, g *group, action string, ids []azure.ID, parameters map[string]string) (
	*azure.Operation, error,
) {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.Name()
	}
	body, err := json.Marshal(map[string]any{"instanceIds": names})
	if err != nil {
		return nil, err
	}
	op, err := retry(ctx, func(int) (*azure.Operation, error) {
		return w.Azure.Begin(ctx, azure.Request{Verb: azure.Post, ID: g.set, Action: action, Parameters: parameters, Body: body})
	})
	if err == nil {
		g.mu.Lock()
		g.status = g.status.Touched()
		g.mu.Unlock()
	}
	return op, err
}

// follow waits for an operation in the background and reads the group. Then it calls ended with the operation's error.
func (w *writes) follow(g *group, op *azure.Operation, ended func(error)) {
	w.background.Go(func() {
		ctx := w.ctx()
		_, err := op.Wait(ctx)
		if ctx.Err() != nil {
			return
		}
		g.mu.Lock()
		g.under--
		g.stale = true
		last := g.under == 0
		g.mu.Unlock()
		if err != nil {
			w.Log.Warn("operation of a scale set failed", "scale_set", g.set, "error", err)
		}
		w.inventory.inspect(ctx, g)
		ended(err)
		g.mu.Lock()
		waived := g.waived > 0
		g.mu.Unlock()
		if last && waived {
			w.submit(change{group: g, lower: true})
		}
	})
}

// shrink deletes machines, or deallocates them where the group keeps them.
func (w *writes) shrink(ctx context.Context, g *group, ids []azure.ID) {
	keep, del := g.split(ids)
	if len(keep) > 0 {
		w.remove(ctx, g, "deallocate", keep, nil)
	}
	if len(del) > 0 {
		w.remove(ctx, g, "delete", del, w.force(g))
	}
}

// split returns the machines that are to be deallocated and those that are to be deleted.
func (g *group) split(ids []azure.ID) (keep, del []azure.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range ids {
		if g.leaving[id.Key()].deallocate {
			keep = append(keep, id)
		} else {
			del = append(del, id)
		}
	}
	return keep, del
}

func (w *writes) force(g *group) map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	force := w.ForceDelete
	if g.status.Group.Options.ForceDelete != nil {
		force = *g.status.Group.Options.ForceDelete
	}
	if !force || !g.status.Group.Forceable || g.unforced {
		return nil
	}
	return map[string]string{"forceDeletion": "true"}
}

// remove has machines deleted or deallocated.
func (w *writes) remove(ctx context.Context, g *group, action string, ids []azure.ID, parameters map[string]string) {
	op, err := w.act(ctx, g, action, ids, parameters)
	if parameters != nil && notAllowed(err) {
		w.Log.Info("machines of the scale set cannot be deleted by force", "scale_set", g.set, "error", err)
		g.mu.Lock()
		g.unforced = true
		g.mu.Unlock()
		op, err = w.act(ctx, g, action, ids, nil)
	}
	if err != nil {
		w.stay(g, ids, err)
		return
	}
	g.mu.Lock()
	g.under++
	g.mu.Unlock()
	w.Log.Info("machines leave a scale set", "scale_set", g.set, "action", action, "machines", len(ids))
	w.follow(g, op, func(err error) { w.left(g, action, ids, err) })
}

func notAllowed(err error) bool {
	var refused *azure.Error
	return errors.As(err, &refused) && strings.EqualFold(refused.Code, "OperationNotAllowed")
}

// left notes the machines that are there although their operation ended.
func (w *writes) left(g *group, action string, ids []azure.ID, err error) {
	g.mu.Lock()
	unread := g.err != nil
	ids = slices.DeleteFunc(slices.Clone(ids), g.forget)
	g.mu.Unlock()
	switch {
	case len(ids) == 0, err == nil && unread:
		return
	case err == nil:
		err = errors.New("Azure reports success, and they are still there")
	case azure.KindOf(err) == azure.Changed: // another operation took its place: once more
		ctx := w.ctx()
		if op, again := w.act(ctx, g, action, ids, nil); again == nil {
			_, err = op.Wait(ctx)
			if w.inventory.inspect(ctx, g); err == nil {
				return
			}
		}
	}
	w.stay(g, ids, err)
}

// stay notes that machines do not leave.
func (w *writes) stay(g *group, ids []azure.ID, err error) {
	g.mu.Lock()
	stayed := 0
	for _, id := range ids {
		if _, leaves := g.leaving[id.Key()]; leaves {
			delete(g.leaving, id.Key())
			stayed++
		}
	}
	g.stale = true
	g.mu.Unlock()
	w.Metrics.stayed(g.name, stayed)
	w.Log.Error("machines do not leave a scale set", "scale_set", g.set, "machines", stayed, "error", err)
}

// lower takes waived machines, which Azure did not make, off the capacity. While an operation is under way it does nothing:
// follow calls it again at the end.
func (w *writes) lower(ctx context.Context, g *group) {
	g.mu.Lock()
	busy := g.under > 0 || g.waived == 0
	g.mu.Unlock()
	if busy {
		return
	}
	w.inventory.inspect(ctx, g)
	g.mu.Lock()
	existing, waived := 0, g.waived
	for _, i := range g.status.Instances {
		if _, leaves := g.leaving[i.Key]; !leaves && i.State != nodegroup.Deleting {
			existing++
		}
	}
	g.mu.Unlock()
	op, err := w.setCapacity(ctx, g, func(capacity int) int { return nodegroup.Lower(capacity, existing, waived) },
		func() { g.waived = max(g.waived-waived, 0) })
	if err != nil {
		w.Log.Warn("the capacity of a scale set cannot be lowered", "scale_set", g.set, "error", err)
		return
	}
	w.follow(g, op, func(error) {})
}
