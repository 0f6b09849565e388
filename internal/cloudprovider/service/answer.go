package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/reconcile"
)

func (c *commit) answer(ctx context.Context, ask reconcile.Ask) error {
	switch a := ask.(type) {
	case decision.ConfirmServices:
		return c.confirm(ctx, a.Services)
	case decision.ReadAgain:
		c.target.Reread = true
		_, err := reconcile.Gather(ctx, c.client.Fresh(), c.target.Needs)
		return err
	case decision.RecordGroups:
		return c.record(ctx, a.Groups)
	case decision.RememberGroups:
		for uid, notes := range a.Groups {
			c.groups[uid] = append(c.groups[uid], notes...)
		}
		c.addGroups(a.Groups)
		return nil
	case decision.ListServices:
		return c.list(ctx, a.State)
	case decision.RemoveBalancers:
		return c.allowRemoval(ctx, a.Balancers)
	case decision.WriteMembers:
		return c.takePools(ctx)
	}
	return fmt.Errorf("a decision asks for what no commit answers: %T", ask)
}

func (c *commit) addGroups(more map[types.UID][]key.Note) {
	for i, s := range c.target.Services {
		c.target.Services[i].Groups = slices.Concat(s.Groups, more[s.UID])
	}
}

// confirmServices asks ahead for the Services of which Azure had nothing when their last commit
// ended: a decision that finds it out needs a second one.
func (c *commit) confirmServices(ctx context.Context) error {
	fresh := decision.UIDs(c.target.Services)
	maps.DeleteFunc(fresh, func(uid types.UID, _ bool) bool { return c.inAzure[uid] })
	return c.confirm(ctx, fresh)
}

// confirm asks the API server for Services that are to be served. Those that are gone are served as such.
func (c *commit) confirm(ctx context.Context, doubted map[types.UID]bool) error {
	var asked []*corev1.Service
	for _, s := range c.target.Services {
		if doubted[s.UID] && !s.Gone {
			asked = append(asked, s.Service)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	live, err := c.kube.Live(ctx, asked)
	if err != nil {
		return err
	}
	wanted := map[types.UID]bool{}
	for _, s := range live {
		wanted[s.UID] = c.config.Classes.Wants(s)
	}
	for i, s := range c.target.Services {
		if doubted[s.UID] && !s.Gone {
			c.target.Confirmed[s.UID] = true
			c.target.Services[i].Gone = !wanted[s.UID]
		}
	}
	return nil
}

// record has Services record resource groups. One that does not exist any more is served as
// gone, or has no say.
//
// A public IP may be made in a resource group that only its Service names. If the Service asks for
// another one before a load balancer has the address, and kaz is stopped in between, nothing else
// shows that group. So the Service records it in a condition of kaz's own, from before the address is
// made until the load balancer has it. A new Service gets the note with its finalizer and loses it
// with its status, so neither is a write of its own. A private link service in such a group is
// recorded as long as it exists, because no load balancer ever shows it. This also holds for one that
// another implementation made, or that is handed over.
func (c *commit) record(ctx context.Context, groups map[types.UID][]key.Note) error {
	all := slices.DeleteFunc(c.target.All(), func(s *corev1.Service) bool { return len(groups[s.UID]) == 0 })
	errs := make([]error, len(all))
	var writes sync.WaitGroup
	for i, s := range all {
		writes.Go(func() { _, errs[i] = c.kube.Hold(ctx, s, groups[s.UID]) })
	}
	writes.Wait()
	gone := map[types.UID]bool{}
	for i, s := range all {
		c.target.Recorded[s.UID] = slices.Concat(c.target.Recorded[s.UID], groups[s.UID])
		if errors.Is(errs[i], kube.ErrGone) {
			gone[s.UID], errs[i] = true, nil
		}
	}
	for i, s := range c.target.Services {
		c.target.Services[i].Gone = s.Gone || gone[s.UID]
	}
	c.target.Others = slices.DeleteFunc(c.target.Others, func(s *corev1.Service) bool { return gone[s.UID] })
	return errors.Join(errs...)
}

const listsAtMost = 3

// list takes all Services that the API server has into account. Where Azure changes all the
// time meanwhile, what no Service uses stays this time.
func (c *commit) list(ctx context.Context, state string) error {
	if c.target.Lists++; c.target.Lists > listsAtMost {
		c.target.Complete = false
		return nil
	}
	all, err := c.kube.All(ctx)
	if err != nil {
		return err
	}
	among := decision.UIDs(c.target.Services)
	c.target.Complete = !slices.ContainsFunc(all, c.config.Classes.Foreign)
	c.target.Others = slices.DeleteFunc(all, func(s *corev1.Service) bool { return among[s.UID] || !c.config.Classes.Wants(s) })
	c.target.Listed = state
	return nil
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
func (c *commit) allowRemoval(ctx context.Context, balancers []azure.Document) error {
	leaving := 0
	for i, r := range c.batch {
		if c.serves(i) && r.service.Gone {
			leaving++
		}
	}
	if leaving >= manyLeave && c.postponed == nil {
		c.postponed = c.lastOf(balancers)
		later := map[types.UID]bool{}
		for i := range c.postponed {
			later[c.batch[i].service.UID] = true
		}
		c.target.Services = slices.DeleteFunc(c.target.Services, func(s loadbalancer.Service) bool { return later[s.UID] })
		if len(later) > 0 {
			return nil
		}
	}
	for _, d := range balancers {
		c.target.Removing[d.ID().Key()] = true
	}
	return c.takePools(ctx)
}

// takePools takes the turn to write members of pools until the commit ends.
func (c *commit) takePools(ctx context.Context) error {
	if c.target.WithMembers {
		return nil
	}
	client, release, err := c.pools.take(ctx, newPoolWrite())
	if err == nil {
		c.client, c.done, c.target.WithMembers = client, release, true
	}
	return err
}

// lastOf are the requests that leave each of these load balancers last, by their place in the
// batch.
func (c *commit) lastOf(balancers []azure.Document) map[int]bool {
	last := map[int]bool{}
	for _, d := range balancers {
		lb, _ := azure.Decode[network.LoadBalancer](d) // the decision has read it without an error
		owners := map[string]bool{}
		for _, r := range lb.Properties.LoadBalancingRules {
			owners[naming.Owner(r.Name)] = true
		}
		for i, r := range slices.Backward(c.batch) {
			if c.serves(i) && r.service.Gone && owners[naming.OwnerOf(r.service.Service)] {
				last[i] = true
				break
			}
		}
	}
	return last
}
