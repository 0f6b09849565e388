package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/reconcile"
)

// answer does what a decision asks for, and returns the commit that knows the answer.
func (b *committer) answer(ctx context.Context, c commit, ask reconcile.Ask) (commit, error) {
	switch a := ask.(type) {
	case decision.ConfirmServices:
		return b.confirm(ctx, c, a.Services)
	case decision.ReadAgain:
		c.target.Reread = true
		_, err := reconcile.Gather(ctx, b.azure.Fresh(), c.target.Needs)
		return c, err
	case decision.RecordGroups:
		return b.record(ctx, c, a.Groups)
	case decision.RememberGroups:
		b.groups.add(a.Groups)
		c.target.Services = withGroups(c.target.Services, a.Groups)
		return c, nil
	case decision.ListServices:
		return b.list(ctx, c, a.State)
	case decision.RemoveBalancers:
		return b.allowRemoval(ctx, c, a.Balancers)
	case decision.WriteMembers:
		return b.takePools(ctx, c)
	}
	return c, fmt.Errorf("a decision asks for what no commit answers: %T", ask)
}

// confirmServices asks ahead for the Services of which Azure had nothing when their last commit
// ended: a decision that finds it out needs a second one.
func (b *committer) confirmServices(ctx context.Context, c commit) (commit, error) {
	fresh := map[types.UID]bool{}
	for _, s := range c.target.Services {
		if !s.Gone && !b.presence.inAzure[s.UID] {
			fresh[s.UID] = true
		}
	}
	if len(fresh) == 0 {
		return c, nil
	}
	return b.confirm(ctx, c, fresh)
}

// confirm asks the API server for Services. Those that are gone are served as such.
func (b *committer) confirm(ctx context.Context, c commit, doubted map[types.UID]bool) (commit, error) {
	var asked []*corev1.Service
	for _, s := range c.target.Services {
		if doubted[s.UID] {
			asked = append(asked, s.Service)
		}
	}
	live, err := b.kube.Live(ctx, asked)
	if err != nil {
		return c, err
	}
	c.target.Confirmed = merged(c.target.Confirmed, doubted)
	c.target.Services = withGone(c.target.Services, func(s loadbalancer.Service) bool {
		now := live[s.UID]
		return doubted[s.UID] && (now == nil || !b.classes.Wants(now))
	})
	return c, nil
}

// withGone are Services of which more are gone.
func withGone(services []loadbalancer.Service, gone func(loadbalancer.Service) bool) []loadbalancer.Service {
	services = slices.Clone(services)
	for i, s := range services {
		services[i].Gone = s.Gone || gone(s)
	}
	return services
}

// merged is a with all of b added.
func merged[K comparable, V any](a, b map[K]V) map[K]V {
	all := make(map[K]V, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// A public IP may be made in a resource group that only its Service names. If the Service asks for
// another one before a load balancer has the address, and kaz is stopped in between, nothing else
// shows that group. So the Service records it in a condition of kaz's own, from before the address is
// made until the load balancer has it. A new Service gets the note with its finalizer and loses it
// with its status, so neither is a write of its own. A private link service in such a group is
// recorded as long as it exists, because no load balancer ever shows it. This also holds for one that
// another implementation made, or that is handed over.

// record has Services record resource groups. One that does not exist any more is served as
// gone, or has no say.
func (b *committer) record(ctx context.Context, c commit, groups map[types.UID][]key.Note) (commit, error) {
	all := slices.DeleteFunc(c.target.All(), func(s *corev1.Service) bool { return len(groups[s.UID]) == 0 })
	errs := make([]error, len(all))
	var writes errgroup.Group
	for i, s := range all {
		writes.Go(func() error {
			_, errs[i] = b.kube.Hold(ctx, s, groups[s.UID])
			return nil
		})
	}
	_ = writes.Wait() // each has its own error
	recorded, gone := merged(c.target.Recorded, nil), map[types.UID]bool{}
	for i, s := range all {
		recorded[s.UID] = slices.Concat(recorded[s.UID], groups[s.UID])
		if errors.Is(errs[i], kube.ErrGone) {
			gone[s.UID], errs[i] = true, nil
		}
	}
	c.target.Recorded = recorded
	c.target.Services = withGone(c.target.Services, func(s loadbalancer.Service) bool { return gone[s.UID] })
	c.target.Others = slices.DeleteFunc(slices.Clone(c.target.Others), func(s *corev1.Service) bool { return gone[s.UID] })
	return c, errors.Join(errs...)
}

// listsAtMost bounds how often a commit lists all Services.
const listsAtMost = 3

// list takes all Services that the API server has into account. Where Azure changes all the
// time meanwhile, what no Service uses stays this time.
func (b *committer) list(ctx context.Context, c commit, state string) (commit, error) {
	if c.target.Lists++; c.target.Lists > listsAtMost {
		c.target.Complete = false
		return c, nil
	}
	all, err := b.kube.All(ctx)
	if err != nil {
		return c, err
	}
	among := decision.UIDs(c.target.Services)
	c.target.Complete = !slices.ContainsFunc(all, b.classes.Foreign)
	c.target.Others = slices.DeleteFunc(all, func(s *corev1.Service) bool {
		return among[s.UID] || !decision.StaysAround(s) || b.classes.Next(s, false) == decision.Ignore
	})
	c.target.Listed = state
	return c, nil
}

// manyLeave is how many Services have to leave at once for some of them to go last. Azure
// allows this number of deletions at once, and ten a second after them.
const manyLeave = 200

// allowRemoval lets load balancers go as soon as they can.
//
// A load balancer goes with its last Service. That takes more than ten seconds, in which
// no public IP can go, while one that stays lets go of all others in three: so where many
// leave, one Service of each load balancer that would go is left for the next commit.
//
// Its members leave in this commit, which takes the turn to write members: machines that are on
// their way into a pool of the load balancer could not be asked to leave it.
func (b *committer) allowRemoval(ctx context.Context, c commit, balancers []azure.Document) (commit, error) {
	leaving := 0
	for i, r := range c.batch {
		if c.serves(i) && r.service.Gone {
			leaving++
		}
	}
	if leaving >= manyLeave && c.postponed == nil {
		if c.postponed = c.lastOf(balancers); len(c.postponed) > 0 {
			later := map[types.UID]bool{}
			for i := range c.postponed {
				later[c.batch[i].service.UID] = true
			}
			c.target.Services = slices.DeleteFunc(slices.Clone(c.target.Services),
				func(s loadbalancer.Service) bool { return later[s.UID] })
			return c, nil
		}
	}
	removing := map[string]bool{}
	for _, d := range balancers {
		removing[d.ID().Key()] = true
	}
	c.target.Removing = merged(c.target.Removing, removing)
	return b.takePools(ctx, c)
}

// takePools takes the turn to write members of pools until the commit ends.
func (b *committer) takePools(ctx context.Context, c commit) (commit, error) {
	if c.target.WithMembers {
		return c, nil
	}
	client, release, err := b.pools.take(ctx, newPoolWrite())
	if err == nil {
		c.client, c.done, c.target.WithMembers = client, release, true
	}
	return c, err
}

// lastOf are the requests that leave each of these load balancers last, by their place in the
// batch.
func (c commit) lastOf(balancers []azure.Document) map[int]bool {
	last := map[int]bool{}
	for _, d := range balancers {
		lb, err := azure.Decode[network.LoadBalancer](d)
		if err != nil {
			continue // the decision has reported it
		}
		owners := map[string]bool{}
		for _, r := range lb.Properties.LoadBalancingRules {
			owners[naming.Owner(r.Name)] = true
		}
		for i, r := range slices.Backward(c.batch) {
			if c.serves(i) && r.service.Gone && owners[framework.DefaultLoadBalancerName(r.service.Service)] {
				last[i] = true
				break
			}
		}
	}
	return last
}
