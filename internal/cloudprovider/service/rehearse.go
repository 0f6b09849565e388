package service

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// Rehearse is Run that writes nothing, neither to Azure nor to Kubernetes: it tells
// what Run would do for each Service, and again when that becomes something else. A
// controller runs or rehearses, once.
//
// Somebody else may be at work meanwhile, so Azure is read past the cache each time.
func (c *Controller) Rehearse(ctx context.Context, tell func(Explanation)) {
	var repairs sync.WaitGroup
	defer func() {
		c.queue.ShutDown()
		c.addresses.Close()
		c.commits.Close()
		repairs.Wait()
	}()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return
	}
	stop := context.AfterFunc(ctx, c.queue.ShutDown)
	defer stop()
	if c.config.RepairPeriod > 0 {
		c.mark(sweeping, why{})
		repairs.Go(func() { c.repairPeriodically(ctx) })
	}
	r := rehearsal{Controller: c, tell: tell, told: map[item]string{}}
	for {
		it, down := c.queue.Get()
		if down {
			return
		}
		r.round(ctx, r.waiting(it))
	}
}

// rehearsal is what was told so far.
type rehearsal struct {
	*Controller
	tell     func(Explanation)
	told     map[item]string // of each Service
	failures int
}

// waiting is an item with all that wait behind it: they would be one commit.
func (r *rehearsal) waiting(first item) []item {
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

// round explains the Services of items, and tells it when anything is new.
func (r *rehearsal) round(ctx context.Context, items []item) {
	var services []loadbalancer.Service
	var about []item
	var all listing // asked when leftovers are looked for
	for _, it := range items {
		r.dirt.take(it)
		r.queue.Done(it)
		if it == everything {
			if err := r.markAll(why{}); err != nil {
				slog.ErrorContext(ctx, "list services", "error", err)
			}
			continue
		}
		if it == sweeping {
			all = r.kube.all
			continue
		}
		s := r.current(it)
		if s == nil || r.config.Classes.next(s, false) == ignore {
			delete(r.told, it)
			continue
		}
		services, about = append(services, r.config.Classes.asked(s)), append(about, it)
	}
	if len(services) == 0 && all == nil {
		return
	}
	e, err := r.cluster.explain(ctx, r.azure.Fresh(), services, all)
	if err != nil {
		if all != nil {
			about = append(about, sweeping)
		}
		r.later(ctx, about, err)
		return
	}
	r.failures = 0
	if r.news(e, about, all != nil) {
		e.log(ctx)
		r.tell(e)
	}
}

// later has Services looked at again that could not be explained.
func (r *rehearsal) later(ctx context.Context, about []item, err error) {
	if ctx.Err() != nil {
		return
	}
	r.failures++
	wait := delay(err, r.failures)
	slog.WarnContext(ctx, "services not explained", "error", err, "again_in", wait.Round(time.Second))
	for _, it := range about {
		r.queue.AddAfter(it, wait)
	}
}

// news notes what is told of each Service, and of leftovers where they were looked for,
// and reports whether any of it is new.
func (r *rehearsal) news(e Explanation, about []item, swept bool) bool {
	fresh := false
	if swept {
		gist := e.gistOfLeftovers()
		fresh = r.told[sweeping] != gist
		r.told[sweeping] = gist
	}
	for i, s := range e.Services {
		gist := e.gist(s)
		fresh = fresh || r.told[about[i]] != gist
		r.told[about[i]] = gist
	}
	return fresh
}

// gist is what is told of a Service without what depends on the company in which it is
// looked at: the priorities of security rules, and steps that are for others, too.
func (e Explanation) gist(s Explained) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.State, s.Kubernetes, s.Problems)
	writeGist(&b, s.Parts)
	for _, step := range e.Steps {
		if len(step.For) == 1 && step.For[0] == s.Service && sameType(step.ID, network.PublicIPAddresses) {
			fmt.Fprintln(&b, step.Op, step.ID, step.Changes)
		}
	}
	return b.String()
}

func writeGist(b *strings.Builder, parts []Part) {
	for _, p := range parts {
		if p.Kind == kindSecurity {
			p.Is, p.Shall = "", ""
		}
		fmt.Fprintln(b, p.ID, p.State, p.Is, p.Shall)
	}
}

// gistOfLeftovers is what is told of leftovers.
func (e Explanation) gistOfLeftovers() string {
	var b strings.Builder
	for _, l := range e.Leftovers {
		fmt.Fprintln(&b, l.Service, l.UID)
		writeGist(&b, l.Parts)
	}
	return b.String()
}

// log logs an explanation as a commit logs what it does.
func (e Explanation) log(ctx context.Context) {
	for _, l := range e.Leftovers {
		slog.InfoContext(ctx, "left in azure without a service", "service", l.Service, "uid", l.UID)
	}
	for _, s := range slices.Concat(e.Steps, e.Later) {
		slog.InfoContext(ctx, "azure would be changed", "step", s.Text)
	}
	if len(e.Later) == 0 {
		for _, then := range e.Then {
			slog.InfoContext(ctx, "azure would be changed then", "why", then)
		}
	}
	for _, s := range e.Services {
		for _, p := range s.Problems {
			logProblem(ctx, plan.Problem(p))
		}
	}
}
