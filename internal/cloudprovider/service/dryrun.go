package service

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/controller"
)

// DryRun is like Run, and writes nothing to Azure or Kubernetes. It reports what Run would do for each Service, and reports
// again when that changes. A controller runs or runs dry, once.
//
// Another controller may write meanwhile, so Azure is read past the cache each time.
func (c *Controller) DryRun(ctx context.Context, report func(explain.Explanation)) {
	r := dryRun{Controller: c, report: report, reported: map[item]string{}}
	begin := func() {
		if c.config.RepairPeriod > 0 {
			c.queue.Mark(orphansItem, reasons{})
		}
	}
	c.serve(ctx, begin, func(it item) { r.round(ctx, it) })
}

type dryRun struct {
	*Controller
	report   func(explain.Explanation)
	reported map[item]string // of each Service, and of orphans
	failures int
}

// round explains an item together with all items that wait behind it, because they would be one commit. It reports the
// explanation if anything in it is new.
func (r *dryRun) round(ctx context.Context, first item) {
	items := []item{first}
	for r.queue.Len() > 0 {
		it, _ := r.queue.Get()
		items = append(items, it)
	}
	var services []*corev1.Service
	var about []item // the Services, and orphans where they are looked for
	all := false     // orphans are looked for
	for _, it := range items {
		r.queue.Take(it)
		r.queue.Done(it)
		switch it {
		case everything:
			r.markAll(reasons{})
			continue
		case orphansItem:
			all = true
			continue
		}
		s := r.current(it)
		if s == nil || r.config.Classes.Next(s, false) == decision.Ignore {
			delete(r.reported, it)
			continue
		}
		services, about = append(services, s), append(about, it)
	}
	if all {
		about = append(about, orphansItem)
	}
	if len(about) == 0 {
		return
	}
	e, err := explain.Services(ctx, r.cluster, r.azure.Fresh(), services, all)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		r.failures++
		wait := controller.Delay(err, r.failures)
		slog.WarnContext(ctx, "services not explained", "error", err, "again_in", wait.Round(time.Second))
		for _, it := range about {
			r.queue.AddAfter(it, wait)
		}
		return
	}
	r.failures = 0
	fresh, gists := false, e.Gists()
	for i, it := range about {
		fresh = fresh || r.reported[it] != gists[i]
		r.reported[it] = gists[i]
	}
	if fresh {
		e.Log(ctx)
		r.report(e)
	}
}
