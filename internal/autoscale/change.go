package autoscale

import (
	"context"
	"encoding/json"
	"errors"
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
	n = ask(&g.known, func(l *ledger) int { return l.send(n) })
	spec := g.spec()
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
	op, err := w.setCapacity(ctx, g, func(capacity int) int { return capacity + fits }, func(l *ledger) { l.sending -= fits })
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
	g.known.change(func(l *ledger) { l.notSent(n, f, time.Now()) })
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
	var failed, missing int
	g.known.change(func(l *ledger) { failed, missing = l.grown(n, *f, time.Now()) })
	w.Metrics.refused(f.Code, failed+missing)
	w.Log.Warn("machines were not made", "scale_set", g.set, "failed", failed, "missing", missing, "code", f.Code, "message", f.Message)
}

// restart starts up to n deallocated machines. It returns for how many of the n machines no new machine is to be made.
func (w *writes) restart(ctx context.Context, g *group, n int) int {
	ids := ask(&g.known, func(l *ledger) []azure.ID { return l.restartable(n) })
	if len(ids) == 0 {
		return 0
	}
	op, err := w.act(ctx, g, "start", ids, nil)
	if err != nil {
		w.refuse(g, len(ids), failure(err))
		return len(ids)
	}
	g.known.change(func(l *ledger) { l.started(ids) })
	w.Log.Info("deallocated machines start", "scale_set", g.set, "machines", len(ids))
	w.follow(g, op, func(err error) {
		if err != nil {
			g.known.change(func(l *ledger) { l.notStarted(ids, failure(err), time.Now()) })
		}
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
// accepts the request, accepted is a part of the same event, so that no machine counts twice.
func (w *writes) setCapacity(ctx context.Context, g *group, to func(capacity int) int, accepted func(*ledger)) (
	*azure.Operation, error,
) {
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
		g.known.change(func(l *ledger) {
			l.accepted(wanted)
			accepted(l)
		})
	}
	return op, err
}

// status returns the status of a scale set with a capacity that a write may be computed from. It reads the scale set if that
// is needed, or if again says so. If the capacity is in doubt, it reads the machines too. A doubt that lasts is an error.
func (w *writes) status(ctx context.Context, g *group, again bool) (nodegroup.Status, error) {
	isNode := w.inventory.nodesNow()
	var circumstances nodegroup.Circumstances
	now := ask(&g.known, func(l *ledger) nodegroup.Status {
		circumstances = l.circumstances(isNode)
		return l.status
	})
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
	g.known.change(func(l *ledger) { l.status, l.stale = l.status.Shown(fresh, circumstances), true })
	w.inventory.inspect(ctx, g)
	if now = ask(&g.known, func(l *ledger) nodegroup.Status { return l.status }); now.Doubt != "" {
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
		g.known.change((*ledger).touched)
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
		last := ask(&g.known, (*ledger).ended)
		if err != nil {
			w.Log.Warn("operation of a scale set failed", "scale_set", g.set, "error", err)
		}
		w.inventory.inspect(ctx, g)
		ended(err)
		if waived := ask(&g.known, func(l *ledger) bool { return l.waived > 0 }); last && waived {
			w.submit(change{group: g, lower: true})
		}
	})
}

// shrink deletes machines, or deallocates them where the group keeps them.
func (w *writes) shrink(ctx context.Context, g *group, ids []azure.ID) {
	var keep, del []azure.ID
	var parameters map[string]string
	g.known.change(func(l *ledger) {
		keep, del = l.split(ids)
		if l.forces(w.ForceDelete) {
			parameters = map[string]string{"forceDeletion": "true"}
		}
	})
	if len(keep) > 0 {
		w.remove(ctx, g, "deallocate", keep, nil)
	}
	if len(del) > 0 {
		w.remove(ctx, g, "delete", del, parameters)
	}
}

// remove has machines deleted or deallocated.
func (w *writes) remove(ctx context.Context, g *group, action string, ids []azure.ID, parameters map[string]string) {
	op, err := w.act(ctx, g, action, ids, parameters)
	if parameters != nil && notAllowed(err) {
		w.Log.Info("machines of the scale set cannot be deleted by force", "scale_set", g.set, "error", err)
		g.known.change(func(l *ledger) { l.unforced = true })
		op, err = w.act(ctx, g, action, ids, nil)
	}
	if err != nil {
		w.stay(g, ids, err)
		return
	}
	g.known.change(func(l *ledger) { l.under++ })
	w.Log.Info("machines leave a scale set", "scale_set", g.set, "action", action, "machines", len(ids))
	w.follow(g, op, func(err error) { w.left(g, action, ids, err) })
}

func notAllowed(err error) bool {
	var refused *azure.Error
	return errors.As(err, &refused) && strings.EqualFold(refused.Code, "OperationNotAllowed")
}

// left notes the machines that are there although their operation ended.
func (w *writes) left(g *group, action string, ids []azure.ID, err error) {
	var unread bool
	g.known.change(func(l *ledger) { ids, unread = l.remaining(ids) })
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
	stayed := ask(&g.known, func(l *ledger) int { return l.stay(ids) })
	w.Metrics.stayed(g.name, stayed)
	w.Log.Error("machines do not leave a scale set", "scale_set", g.set, "machines", stayed, "error", err)
}

// lower takes waived machines, which Azure did not make, off the capacity. While an operation is under way it does nothing:
// follow calls it again at the end.
func (w *writes) lower(ctx context.Context, g *group) {
	if !ask(&g.known, (*ledger).lowers) {
		return
	}
	w.inventory.inspect(ctx, g)
	var existing, waived int
	g.known.change(func(l *ledger) { existing, waived = l.existing(), l.waived })
	op, err := w.setCapacity(ctx, g, func(capacity int) int { return nodegroup.Lower(capacity, existing, waived) },
		func(l *ledger) { l.waived = max(l.waived-waived, 0) })
	if err != nil {
		w.Log.Warn("the capacity of a scale set cannot be lowered", "scale_set", g.set, "error", err)
		return
	}
	w.follow(g, op, func(error) {})
}
