package service

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/controller"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/spec"
	"kaz/internal/reconcile"
)

// request is one Service that is to be served or removed. A request without a Service is for what deleted Services have
// left in Azure.
type request struct {
	service loadbalancer.Service
	reasons reasons
}

func (r request) isForOrphans() bool { return r.service.Service == nil }

// answer is what came of a request.
type answer struct {
	ingress  []corev1.LoadBalancerIngress
	problems []plan.Problem
	vanished bool        // the Service was to be served, and turned out to be deleted
	hasNodes bool        // the Service has got the nodes that changed
	shared   bool        // the commit changed something, for other Services too
	orphaned bool        // the Service is refused, maybe for what deleted Services have left
	repairs  []string    // what was not as kaz had left it
	released []plan.Step // deletions that are left to do for it
	members  *poolWrite  // has to begin before the Service is served, nil for nothing
	err      error       // this request's alone
	// Names of notes in which the Service records resource groups: new ones, and all that stay.
	recorded, still sets.Set[string]
}

// refused reports whether something in the Service keeps it from being served.
func (a answer) refused() bool {
	return slices.ContainsFunc(a.problems, func(p plan.Problem) bool { return !p.Warning })
}

// committer writes the cluster's load balancers with the security group that they share. It plans them in one piece
// and writes them side by side, so a cluster has one commit at a time. Its fields are what a commit leaves to the
// next commits.
type committer struct {
	*Controller
	metrics *metrics
	// When the commits last read Azure past the cache, and last changed something. Without these times, each change of a
	// node would be read and written once for each Service.
	read, wrote time.Time
	// inAzure are the Services that had something in Azure when their last commit ended. A commit asks the API server for
	// all others.
	inAzure map[types.UID]bool
	// deleted are the removed Services that informers still have, because their finalizers go last. They count for nothing.
	deleted      map[types.UID]bool
	failed       controller.FailedWrites
	nodeProblems controller.Deduplicator[plan.Problem]
	// groups are the resource groups in which public IPs of Services are still to be deleted. Nothing in Azure shows these
	// groups reliably.
	groups map[types.UID][]key.Note
	// rejected are addresses of nodes that Azure has not taken into a pool, with its reason. A commit that tried them again
	// would fail for all Services.
	rejected map[string]string
}

// commit is a batch of requests on its way into Azure.
type commit struct {
	*committer
	batch     []request
	client    reconcile.Azure // the client of commits, or that with the turn to write members
	done      func()          // gives the turn back
	reasons   reasons         // of all requests
	began     time.Time
	postponed map[int]bool // requests that are left for the next commit
	target    decision.Commit
	out       reconcile.Outcome
	failure   error       // why Azure is not as it was decided
	released  []plan.Step // deletions of public IPs that are left to do
	members   []plan.Step // members of pools that are to be written
	answers   []answer
}

func (b *committer) commit(ctx context.Context, _ string, batch []request) ([]answer, error) {
	c := commit{committer: b, batch: batch, client: guardedClient{b.azure, &b.pools.lock, nil}, done: func() {}, began: time.Now()}
	defer func() { c.done() }()
	for _, phase := range []func(context.Context) error{
		c.gather,          // Services, nodes, and what former commits remember
		c.refresh,         // reads Azure past the cache if something has happened
		c.addOrphans,      // what deleted Services have left in Azure
		c.confirmServices, // asks the API server for Services of which Azure has nothing
		c.write,           // decides, answers what the decision asks, and writes
		c.remember,        // what the next commits have to know
		c.answerRequests,
		c.startPoolWrites, // of the members, beside the next commits
	} {
		if err := phase(ctx); err != nil {
			return nil, err
		}
	}
	if len(c.postponed) > 0 {
		return c.answers, &reconcile.Postponed{Requests: c.postponed}
	}
	return c.answers, nil
}

// serves reports whether the commit carries out the i-th request for a Service.
func (c *commit) serves(i int) bool { return !c.batch[i].isForOrphans() && !c.postponed[i] }

func (c *commit) gather(ctx context.Context) error {
	var services []loadbalancer.Service
	for _, r := range c.batch {
		c.reasons = c.reasons.And(r.reasons)
		if !r.isForOrphans() {
			r.service.Groups = slices.Concat(r.service.Groups, c.groups[r.service.UID])
			services = append(services, r.service)
		}
	}
	exists := decision.UIDs(services)
	for _, s := range c.ours() {
		exists[s.UID] = true
	}
	maps.DeleteFunc(c.groups, func(uid types.UID, _ []key.Note) bool { return !exists[uid] })
	maps.DeleteFunc(c.inAzure, func(uid types.UID, _ bool) bool { return !exists[uid] })
	in := c.cluster.Target(ctx, services)
	c.target = decision.Commit{
		Target: in, Confirmed: map[types.UID]bool{}, Recorded: map[types.UID][]key.Note{}, Removing: map[string]bool{},
	}

	// What deleted Services shared with other Services goes with the last of these other Services.
	still := map[types.UID]bool{}
	c.target.Others = slices.DeleteFunc(in.Others, func(s *corev1.Service) bool {
		if c.deleted[s.UID] {
			still[s.UID] = true
		}
		return c.deleted[s.UID]
	})
	c.deleted = still

	c.target.RejectedAddresses = map[string]string{}
	if c.reasons.drift {
		return nil // tries them again: the virtual network may be another one by now
	}
	for _, n := range in.Nodes {
		for _, ip := range cluster.InternalIPs(n) {
			if reason, rejected := c.rejected[ip.String()]; rejected {
				c.target.RejectedAddresses[ip.String()] = reason
			}
		}
	}
	return nil
}

// refresh reads Azure past the cache if the last such read is older than the reasons of the commit. The decision then finds
// the new state in the cache.
func (c *commit) refresh(ctx context.Context) error {
	if !c.reasons.since.After(c.read) {
		return nil
	}
	began := time.Now()
	_, err := reconcile.Gather(ctx, c.client.Fresh(), c.target.Needs)
	if err == nil {
		c.read = began
	}
	return err
}

// addOrphans adds what deleted Services have left to a commit, if one of its requests asks for that.
func (c *commit) addOrphans(ctx context.Context) error {
	if !slices.ContainsFunc(c.batch, request.isForOrphans) {
		return nil
	}
	target, err := c.cluster.WithOrphans(ctx, c.client, c.target.Target)
	if err != nil {
		return err
	}
	for _, s := range target.Services[len(c.target.Services):] {
		slog.InfoContext(ctx, "left in azure without a service", "service", s.Key(), "uid", s.UID)
	}
	c.target.Target = target
	return nil
}

// rejectedAtMost is how many refusals that name addresses of nodes a commit answers with another try. If there are more,
// something is wrong with more than a node.
const rejectedAtMost = 10

// write applies the decision. If a refusal of Azure names addresses of nodes, it applies the decision again without them. A
// load balancer is written as a whole, so otherwise no Service could be served any more. If Azure refused because of an
// unfinished write, it repeats that write and applies the decision again.
func (c *commit) write(ctx context.Context) error {
	c.apply(ctx)
	for range rejectedAtMost {
		named := rejectedBy(c.out)
		if c.failure == nil || len(named) == 0 {
			break
		}
		maps.Copy(named, c.target.RejectedAddresses)
		c.target.RejectedAddresses = named
		c.apply(ctx)
	}
	isShared := func(id azure.ID) bool { return !id.Is(network.PublicIPAddresses) }
	c.failed.Note(c.out, isShared)
	if c.failure == nil {
		if err := c.failed.Retry(ctx, c.client); err != nil { // no Service waits for this
			slog.WarnContext(ctx, "failed writes are not repeated", "error", err)
		}
	} else if unblocked, err := c.failed.Unblock(ctx, c.client, c.out); !unblocked || err != nil {
		c.failure = errors.Join(c.failure, err)
	} else {
		c.apply(ctx)
		c.failed.Note(c.out, isShared)
	}
	c.reportWrites()
	if c.failure != nil {
		return c.blame()
	}
	c.cluster.NameConfirmed.Store(true)
	return nil
}

// apply converges. If the decision asks for something, it answers that and decides again.
func (c *commit) apply(ctx context.Context) {
	reports := c.out.Reports
	c.out, c.failure = reconcile.Converge(ctx, c.client, c.target)
	c.out.Reports = slices.Concat(reports, c.out.Reports)
	if ask := c.out.Decision.Ask; c.failure == nil && ask != nil {
		if c.failure = c.answer(ctx, ask); c.failure == nil {
			c.apply(ctx)
		}
	}
}

// reportWrites counts the commit, reports upgraded public IPs, and queues other Services that a move of nodes concerns.
func (c *commit) reportWrites() {
	movesNodes := false // between load balancers
	for res := range c.out.Attempted() {
		step := res.Step
		for _, change := range step.Changes {
			switch {
			case step.ID.Is(network.LoadBalancers) && strings.HasPrefix(change.Path, "properties.backendAddressPools"):
				movesNodes = true
			case step.ID.Is(network.PublicIPAddresses) && change.Path == "sku.name" && step.Op == plan.Update && res.Err == nil:
				c.reportUpgrade(step, change.From)
			}
		}
	}
	for _, s := range c.target.Others {
		// The packets of these Services arrive at the nodes' own addresses. So the node ports must be open at the nodes
		// that a load balancer has now.
		if movesNodes && len(c.config.LoadBalancer.Balancers) > 0 && spec.AtNodes(s) {
			c.queue.Mark(itemOf(s), reasons{})
		}
	}
	c.metrics.committed(len(c.target.Services), c.reasons, c.began, c.failure)
}
