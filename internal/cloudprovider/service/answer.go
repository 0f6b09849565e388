package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/leftover"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/note"
	"kaz/internal/reconcile"
)

func (c *commit) answer(ctx context.Context, ask reconcile.Ask) error {
	switch a := ask.(type) {
	case decision.ConfirmServices:
		return c.confirm(ctx, func(uid types.UID) bool { return a.Services[uid] })
	case decision.ReadAgain:
		c.target.Reread = true
		_, err := reconcile.Gather(ctx, c.client.Fresh(), c.target.Needs)
		return err
	case decision.RecordGroups:
		return c.record(ctx, a.Groups)
	case decision.RememberGroups:
		for i, s := range c.target.Services {
			c.groups[s.UID] = append(c.groups[s.UID], a.Groups[s.UID]...)
			c.target.Services[i].Groups = slices.Concat(s.Groups, a.Groups[s.UID])
		}
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

// confirmServices asks in advance for the Services of which Azure had nothing when their last commit ended. If the decision
// had to ask, a second decision would be needed.
func (c *commit) confirmServices(ctx context.Context) error {
	return c.confirm(ctx, func(uid types.UID) bool { return !c.inAzure[uid] })
}

// confirm asks the API server for doubted Services that are to be served. A Service that does not want a load balancer any
// more is served as gone.
func (c *commit) confirm(ctx context.Context, doubted func(types.UID) bool) error {
	var asked []*corev1.Service
	for _, s := range c.target.Services {
		if doubted(s.UID) && !s.Gone {
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
		if doubted(s.UID) && !s.Gone {
			c.target.Confirmed[s.UID] = true
			c.target.Services[i].Gone = !wanted[s.UID]
		}
	}
	return nil
}

// record has Services record resource groups. A Service that does not exist any more is served as gone, or is left out of
// the other Services.
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

// list takes all Services that the API server has into account. If Azure keeps changing meanwhile, what no Service uses
// stays this time.
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

// manyLeave is how many Services must leave at once before some of them are left for the next commit. Azure allows this
// number of deletions at once, and ten a second after them.
const manyLeave = 200

// allowRemoval allows load balancers to be deleted as soon as possible.
//
// A load balancer goes with its last Service. Its deletion takes more than ten seconds, and no public IP can be deleted
// meanwhile. A load balancer that stays releases all other public IPs in three seconds. So if many Services leave, one
// Service of each load balancer that would go is left for the next commit.
//
// The members leave in this commit, which takes the turn to write members. Otherwise machines that are just joining a pool
// of the load balancer could not be asked to leave it.
func (c *commit) allowRemoval(ctx context.Context, balancers []azure.Document) error {
	var leaving []int // requests
	for i, r := range c.batch {
		if c.serves(i) && r.service.Gone {
			leaving = append(leaving, i)
		}
	}
	if len(leaving) >= manyLeave && c.postponed == nil {
		c.postponed = map[int]bool{}
		later := map[types.UID]bool{}
		for _, d := range balancers {
			lb, _ := azure.Decode[network.LoadBalancer](d) // the decision has read it without an error
			owners := map[string]bool{}
			for _, r := range lb.Properties.LoadBalancingRules {
				owners[naming.Owner(r.Name)] = true
			}
			for _, i := range slices.Backward(leaving) {
				if s := c.batch[i].service; owners[naming.OwnerOf(s.Service)] {
					c.postponed[i], later[s.UID] = true, true
					break
				}
			}
		}
		if len(later) > 0 {
			c.target.Services = slices.DeleteFunc(c.target.Services, func(s loadbalancer.Service) bool { return later[s.UID] })
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

func (c *commit) remember(ctx context.Context) error {
	deferred, err := plan.Diff(c.out.Have, c.out.Decision.Deferred)
	if err != nil {
		return err
	}
	for _, s := range deferred.Steps {
		if s.ID.Is(network.PublicIPAddresses) {
			c.released = append(c.released, plan.Step{Op: s.Op, ID: s.ID, Why: s.Why, For: s.For})
		} else {
			c.members = append(c.members, s)
		}
	}
	c.rejected = c.target.RejectedAddresses
	if len(c.out.Reports) > 0 || len(c.members) > 0 {
		c.wrote = c.began
		for it, h := range c.histories.Range { // a port or an address that another Service had may be free now
			if h.(*history).blocked.Load() {
				c.queue.Add(it.(item))
			}
		}
	}
	c.target.Have = c.out.Have
	c.reportNodes(ctx)
	absent := leftover.Absent(c.target.Input)
	for _, s := range c.target.Services {
		if len(c.releasedFor(s.Key())) == 0 {
			delete(c.groups, s.UID)
		}
		c.deleted[s.UID], c.inAzure[s.UID] = s.Gone, !s.Gone && !absent[s.UID]
	}
	return c.cluster.Deleted.ForgetGone(c.target.Input)
}

// releasedFor are the deletions that a Service waits for. A public IP that several Services left is deleted for each:
// no Service is gone before the public IP is.
func (c *commit) releasedFor(service string) []plan.Step {
	return slices.DeleteFunc(slices.Clone(c.released), func(s plan.Step) bool { return !slices.Contains(s.For, service) })
}

func (c *commit) answerRequests(ctx context.Context) error {
	err := c.setAnswers()
	if err == nil && slices.ContainsFunc(c.answers, func(a answer) bool { return a.err != nil }) {
		// Azure has chosen addresses.
		if c.target.Have, err = reconcile.Gather(ctx, c.client, c.target.Needs); err == nil {
			err = c.setAnswers()
		}
	}
	return err
}

func (c *commit) setAnswers() error {
	status, err := loadbalancer.Status(c.target.Input)
	if err != nil {
		return err
	}
	mayBeOrphaned := false // deleted Services have left something in Azure, as far as informers tell
	if slices.ContainsFunc(c.out.Decision.Problems, isOfAzure) {
		left, err := leftover.Find(c.target.Config, c.target.Have, c.target.All())
		if err != nil {
			return err
		}
		mayBeOrphaned = slices.ContainsFunc(left, func(s loadbalancer.Service) bool { return !decision.IsRulesAlone(s) })
	}
	still, repairs := note.Kept(c.target.Input), c.repairs()
	c.answers = make([]answer, len(c.batch))
	served := map[string]bool{} // by key
	for i, r := range c.batch {
		if !c.serves(i) {
			continue
		}
		key, gone := r.service.Key(), c.deleted[r.service.UID]
		served[key] = true
		a := answer{
			ingress: status[key], vanished: gone && !r.service.Gone, released: c.releasedFor(key), repairs: repairs[i],
			problems: c.target.ProblemsOf(key, gone, c.out.Decision.Problems),
			recorded: namesOf(c.target.Recorded[r.service.UID]), still: namesOf(still[r.service.UID]),
			hasNodes: r.reasons.nodes && !c.wrote.Before(r.reasons.since),
			shared:   len(c.out.Reports) > 0 && len(c.batch)-len(c.postponed) > 1,
		}
		a.orphaned = mayBeOrphaned && slices.ContainsFunc(a.problems, isOfAzure)
		if !gone && !a.refused() && len(a.ingress) == 0 {
			a.err = fmt.Errorf("%s has no address yet", key)
		}
		c.answers[i] = a
	}
	for i, r := range c.batch {
		if r.isForOrphans() { // it has the deletions that no Service of the commit waits for
			c.answers[i].problems = c.out.Decision.Problems
			c.answers[i].released = slices.DeleteFunc(slices.Clone(c.released), func(s plan.Step) bool {
				return slices.ContainsFunc(s.For, func(key string) bool { return served[key] })
			})
		}
	}
	return nil
}

// startPoolWrites has the members of the pools written, or compared if the last write failed. A Service at a load balancer
// without members waits for the first member.
func (c *commit) startPoolWrites(ctx context.Context) error {
	if len(c.members) == 0 && !c.pools.reported.Load() {
		return nil
	}
	empty, at := map[string]bool{}, map[string]string{} // load balancers by id key, and the last of each owner
	// The decision has read these documents without an error.
	balancers, _ := plan.Views[network.LoadBalancer](c.target.Have, c.target.Config.NetworkGroup(), network.LoadBalancers)
	for _, lb := range balancers {
		if slices.ContainsFunc(lb.Properties.BackendAddressPools, func(p azure.Child[network.BackendAddressPool]) bool {
			return len(p.Properties.BackendIPConfigurations)+len(p.Properties.LoadBalancerBackendAddresses) > 0
		}) {
			continue
		}
		empty[lb.ID.Key()] = true
		for _, r := range lb.Properties.LoadBalancingRules {
			owner := naming.Owner(r.Name)
			at[owner] = max(at[owner], lb.ID.Key())
		}
	}
	write := c.pools.start(ctx, c.target.Services, empty)
	for i, r := range c.batch {
		if !c.serves(i) || c.deleted[r.service.UID] {
			continue
		}
		if lb := at[naming.OwnerOf(r.service.Service)]; lb != "" {
			c.answers[i].members = write(lb)
		}
	}
	return nil
}
