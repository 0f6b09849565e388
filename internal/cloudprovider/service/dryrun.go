package service

import (
	"context"
	"log/slog"
	"time"

	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/controller"
	"kaz/internal/plan/loadbalancer"
)

// DryRun is Run that writes nothing, neither to Azure nor to Kubernetes: it reports
// what Run would do for each Service, and again when that becomes something else. A
// controller runs or runs dry, once.
//
// Another controller may be at work meanwhile, so Azure is read past the cache each time.
func (c *Controller) DryRun(ctx context.Context, report func(explain.Explanation)) {
	r := dryRun{Controller: c, report: report, reported: map[item]string{}}
	begin := func() {
		if c.config.RepairPeriod > 0 {
			c.queue.Mark(orphansItem, reasons{})
		}
	}
	c.serve(ctx, begin, func(it item) { r.round(ctx, r.waiting(it)) })
}

// dryRun is what was reported so far.
type dryRun struct {
	*Controller
	report   func(explain.Explanation)
	reported map[item]string // of each Service
	failures int
}

// waiting is an item with all that wait behind it: they would be one commit.
func (r *dryRun) waiting(first item) []item {
	items := []item{first}
	for r.queue.Len() > 0 {
		it, down := r.queue.Get()
		if down {
			break
		}
		items = append(items, it)
	}
	return items
}

// round explains the Services of items, and reports them when anything is new.
func (r *dryRun) round(ctx context.Context, items []item) {
	var services []loadbalancer.Service
	var about []item
	var all decision.Listing // asked when orphans are looked for
	for _, it := range items {
		r.queue.Take(it)
		r.queue.Done(it)
		if it == everything {
			r.markAll(reasons{})
			continue
		}
		if it == orphansItem {
			all = r.kube.All
			continue
		}
		s := r.current(it)
		if s == nil || r.config.Classes.Next(s, false) == decision.Ignore {
			delete(r.reported, it)
			continue
		}
		services, about = append(services, r.config.Classes.Asked(s)), append(about, it)
	}
	if len(services) == 0 && all == nil {
		return
	}
	e, err := explain.Services(ctx, r.cluster, r.azure.Fresh(), services, all)
	if err != nil {
		if all != nil {
			about = append(about, orphansItem)
		}
		r.later(ctx, about, err)
		return
	}
	r.failures = 0
	if r.changed(e, about, all != nil) {
		e.Log(ctx)
		r.report(e)
	}
}

// later queues Services again that could not be explained.
func (r *dryRun) later(ctx context.Context, about []item, err error) {
	if ctx.Err() != nil {
		return
	}
	r.failures++
	wait := controller.Delay(err, r.failures)
	slog.WarnContext(ctx, "services not explained", "error", err, "again_in", wait.Round(time.Second))
	for _, it := range about {
		r.queue.AddAfter(it, wait)
	}
}

// changed notes what is reported of each Service, and of orphans where they were looked for,
// and reports whether any of it is new.
func (r *dryRun) changed(e explain.Explanation, about []item, withOrphans bool) bool {
	fresh := false
	if withOrphans {
		gist := e.GistOfOrphans()
		fresh = r.reported[orphansItem] != gist
		r.reported[orphansItem] = gist
	}
	for i, s := range e.Services {
		gist := e.Gist(s)
		fresh = fresh || r.reported[about[i]] != gist
		r.reported[about[i]] = gist
	}
	return fresh
}
