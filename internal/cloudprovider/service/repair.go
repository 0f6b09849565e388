package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// firstRepair is when a new leader compares for the first time. The one before may have
// written until its lease ran out, of Services and nodes as it knew them.
const firstRepair = 90 * time.Second

// repairPeriodically has everything compared with Azure as it is.
func (c *Controller) repairPeriodically(ctx context.Context) {
	timer := time.NewTimer(min(firstRepair, c.config.RepairPeriod))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-timer.C:
			timer.Reset(c.config.RepairPeriod)
			c.mark(everything, why{drift: true, since: now})
			c.mark(sweeping, why{drift: true, since: now})
		}
	}
}

// repairs says, for each request of a commit, what was changed in Azure for it
// though its Service had not changed, as far as this process knows. What belongs to no
// Service alone, such as the members of a pool, is said of the first that was compared; after
// a start it is not news.
func repairs(batch []request, reports []reconcile.Report) [][]string {
	said := make([][]string, len(batch))
	first := slices.IndexFunc(batch, func(r request) bool { return r.why.drift && !r.sweeps })
	say := func(text string, concerned func(r request) bool) {
		anybody := false
		for i, r := range batch {
			if !r.sweeps && (first >= 0 || r.why.start) && concerned(r) {
				anybody = true
				said[i] = append(said[i], text)
			}
		}
		if !anybody && first >= 0 {
			said[first] = append(said[first], text)
		}
	}
	for _, report := range reports {
		for _, res := range report.Results {
			if res.Err == nil {
				sayStep(res.Step, say)
			}
		}
	}
	return said
}

func sayStep(s plan.Step, say func(text string, concerned func(r request) bool)) {
	named := func(r request) bool { return slices.Contains(s.For, r.service.Key()) }
	if s.Op != plan.Update {
		say(fmt.Sprintf("%s %s (%s)", s.Op, s.ID.Name(), s.Why), named)
		return
	}
	for _, change := range s.Changes {
		concerned := named
		if len(s.For) != 1 || !sameType(s.ID, network.PublicIPAddresses) && !sameType(s.ID, network.PrivateLinkServices) {
			concerned = func(r request) bool { return concerns(change, r) }
		}
		say(s.ID.Name()+" "+change.String(), concerned)
	}
}

// concerns reports whether a change of a shared document is about a Service: it
// names what belongs to it, or one of its addresses.
func concerns(change azure.Change, r request) bool {
	text := strings.ToLower(change.String())
	if strings.Contains(text, framework.DefaultLoadBalancerName(r.service.Service)) {
		return true
	}
	return slices.ContainsFunc(r.service.Status.LoadBalancer.Ingress, func(in corev1.LoadBalancerIngress) bool {
		return in.IP != "" && strings.Contains(text, `"`+in.IP+`"`)
	})
}
