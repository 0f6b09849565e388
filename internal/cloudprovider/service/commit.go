package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/controller"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/note"
	"kaz/internal/reconcile"
)

// request is one Service that is to be served, or to be removed.
type request struct {
	service loadbalancer.Service
	reasons reasons
	orphans bool // it is for no Service, but for what deleted Services have left in Azure
	// vanished says that the Service was to be served and turned out to be deleted.
	vanished bool
}

// answer is what came of a request.
type answer struct {
	ingress  []corev1.LoadBalancerIngress
	problems []plan.Problem
	vanished bool        // the Service does not exist any more, and was not served
	hasNodes bool        // the Service has got the nodes that changed
	shared   bool        // the commit changed something, for other Services too
	repairs  []string    // what was not as kaz had left it
	released []plan.Step // deletions that are left to do for it
	members  *poolWrite  // has to begin before the Service is served, nil for nothing
	recorded []key.Note  // the resource groups that the Service records since
	still    []key.Note  // and the ones that it still records
	// orphaned says that the Service is refused, maybe for what deleted Services have left.
	orphaned bool
	err      error // this request's alone
}

// refused reports whether something in the Service keeps it from being served.
func (a answer) refused() bool {
	return slices.ContainsFunc(a.problems, func(p plan.Problem) bool { return !p.Warning })
}

// commit is a batch of requests on its way into Azure. Each phase takes one and returns what it
// has become.
type commit struct {
	batch     []request
	client    reconcile.Azure
	done      func()  // gives the turn to write members back
	reasons   reasons // of all requests
	began     time.Time
	postponed map[int]bool // requests that are left for the next commit
	target    decision.Commit
	out       reconcile.Outcome
	failure   error // why Azure is not as it was decided
	released  []plan.Step
	members   []plan.Step // members of pools that are to be written
	answers   []answer
}

// committer writes the cluster's load balancers with the security group that they share. What
// belongs to such a group is planned in one piece, and written side by side: so a cluster has
// one group, and one commit of it at a time.
type committer struct {
	decision.Cluster
	azure   reconcile.Azure
	kube    kube.Client
	classes decision.Classes
	metrics *metrics
	pools   *poolWriter
	notify  notifications

	// What a commit leaves to the ones after it.
	freshness freshness
	presence  presence
	failed    controller.FailedWrites
	groups    deletionGroups
	rejected  rejectedAddresses
}

// notifications are what a committer tells the controller.
type notifications struct {
	*reporter
	changed    func()                         // a commit changed something in Azure
	rearranged func(others []*corev1.Service) // a commit moved nodes between load balancers
}

// commit carries out the requests of one batch.
func (b *committer) commit(ctx context.Context, _ string, batch []request) ([]answer, error) {
	c := commit{batch: slices.Clone(batch), client: b.azure, done: func() {}, began: time.Now()}
	for _, r := range batch {
		c.reasons = c.reasons.And(r.reasons)
	}
	defer func() { c.done() }()
	for _, phase := range []func(context.Context, commit) (commit, error){
		b.gather,          // Services, nodes, and what former commits remember
		b.refresh,         // reads past the cache what something has happened to
		b.addOrphans,      // what deleted Services have left in Azure
		b.confirmServices, // that Azure has nothing of exist in the API server
		b.apply,           // decides, answers what the decision asks, and writes
		b.applyWithoutRejected,
		b.applyAfterRewrite,
		b.reportWrites,
		b.blame, // ends a commit that failed
		b.remember,
		b.answerRequests,
		b.startPoolWrites,
	} {
		var err error
		if c, err = phase(ctx, c); err != nil {
			return nil, err
		}
	}
	if len(c.postponed) > 0 {
		return c.answers, &reconcile.Postponed{Requests: c.postponed}
	}
	return c.answers, nil
}

// serves reports whether the commit carries out the i-th request for a Service.
func (c commit) serves(i int) bool { return !c.batch[i].orphans && !c.postponed[i] }

// gather makes the input of the decision.
func (b *committer) gather(ctx context.Context, c commit) (commit, error) {
	var services []loadbalancer.Service
	for _, r := range c.batch {
		if !r.orphans {
			services = append(services, r.service)
		}
	}
	in := b.Target(ctx, services)
	in.Services = b.groups.recall(services, b.Services())
	in.Others = b.presence.withoutDeleted(in.Others)
	in.RejectedAddresses = b.rejected.stillOf(in.Nodes, c.reasons.drift)
	c.target = decision.Commit{Target: in}
	return c, nil
}

// refresh reads Azure past the cache where the cache is older than what the commit is for. The
// decision then finds it in the cache.
func (b *committer) refresh(ctx context.Context, c commit) (commit, error) {
	if !c.reasons.since.After(b.freshness.read) {
		return c, nil
	}
	began := time.Now()
	_, err := reconcile.Gather(ctx, b.azure.Fresh(), c.target.Needs)
	if err == nil {
		b.freshness.read = began
	}
	return c, err
}

// apply converges. What the decision asks for is answered, and it is decided again.
func (b *committer) apply(ctx context.Context, c commit) (commit, error) {
	reports := c.out.Reports
	for {
		c.out, c.failure = reconcile.Converge(ctx, c.client, c.target)
		reports = append(reports, c.out.Reports...)
		c.out.Reports = reports
		if c.failure != nil || c.out.Decision.Ask == nil {
			return c, nil
		}
		if c, c.failure = b.answer(ctx, c, c.out.Decision.Ask); c.failure != nil {
			return c, nil
		}
	}
}

// rejectedAtMost is how many addresses of nodes a commit learns not to be taken. Where there are
// more, something is wrong with more than a node.
const rejectedAtMost = 10

// applyWithoutRejected applies again without the addresses of nodes that Azure names in its
// refusal: a load balancer is written as a whole, and no Service could be served any more.
func (b *committer) applyWithoutRejected(ctx context.Context, c commit) (commit, error) {
	for range rejectedAtMost {
		named := rejectedBy(c.out)
		if c.failure == nil || len(named) == 0 {
			break
		}
		maps.Copy(named, c.target.RejectedAddresses)
		c.target.RejectedAddresses = named
		c, _ = b.apply(ctx, c) // its failure is the commit's
	}
	return c, nil
}

// applyAfterRewrite applies again where Azure refused because of something that it had left
// unfinished, after that was written again.
func (b *committer) applyAfterRewrite(ctx context.Context, c commit) (commit, error) {
	b.failed.Note(c.out, isShared)
	if c.failure == nil {
		if err := b.failed.Retry(ctx, b.azure); err != nil { // no Service waits for that
			slog.WarnContext(ctx, "failed writes are not repeated", "error", err)
		}
		return c, nil
	}
	unblocked, err := b.failed.Unblock(ctx, b.azure, c.out)
	if !unblocked || err != nil {
		c.failure = errors.Join(c.failure, err)
		return c, nil
	}
	c, _ = b.apply(ctx, c) // its failure is the commit's
	b.failed.Note(c.out, isShared)
	return c, nil
}

// reportWrites counts the commit, and tells what it wrote, or tried to.
func (b *committer) reportWrites(_ context.Context, c commit) (commit, error) {
	if len(c.target.Config.Balancers) > 0 && c.movesNodes() {
		b.notify.rearranged(c.target.Others)
	}
	b.metrics.committed(len(c.target.Services), c.reasons, c.began, c.failure)
	b.notify.upgrades(c)
	return c, nil
}

// movesNodes reports whether a commit moved nodes between load balancers, or tried to.
func (c commit) movesNodes() bool {
	isOfPools := func(c azure.Change) bool { return strings.HasPrefix(c.Path, "properties.backendAddressPools") }
	for res := range c.out.Attempted() {
		if res.Step.ID.Is(network.LoadBalancers) && slices.ContainsFunc(res.Step.Changes, isOfPools) {
			return true
		}
	}
	return false
}

// blame ends a commit that failed. Its error names the requests at fault, if Azure tells.
func (b *committer) blame(_ context.Context, c commit) (commit, error) {
	if c.failure == nil {
		b.ConfirmName()
		return c, nil
	}
	found := c.out.Decision.Problems
	refusal, ok := errors.AsType[*reconcile.Refusal](blame(c))
	if !ok {
		return c, &failedCommit{c.failure, found}
	}
	for i, cause := range refusal.Culprits {
		refusal.Culprits[i] = &failedCommit{cause, found}
	}
	return c, refusal
}

// failedCommit is the error of a decision that Azure did not take.
type failedCommit struct {
	error
	problems []plan.Problem // that were found besides
}

func (f *failedCommit) Unwrap() error { return f.error }

// remember notes what the next commits have to know.
func (b *committer) remember(ctx context.Context, c commit) (commit, error) {
	var err error
	if c.released, c.members, err = c.deferred(); err != nil {
		return c, err
	}
	b.rejected = rejectedAddresses(c.target.RejectedAddresses)
	if len(c.out.Reports) > 0 || len(c.members) > 0 {
		b.freshness.wrote = c.began
		b.notify.changed()
	}
	gone := map[types.UID]bool{}
	for _, s := range c.target.Services {
		if gone[s.UID] = s.Gone; len(releasedFor(c.released, s.Key())) == 0 {
			delete(b.groups, s.UID)
		}
	}
	for i, r := range c.batch {
		if c.serves(i) && gone[r.service.UID] && !r.service.Gone {
			c.batch[i].service.Gone, c.batch[i].vanished = true, true
		}
	}
	c.target.Have = c.out.Have
	b.notify.nodeProblems(ctx, c)
	b.presence.note(c.target.Input)
	return c, b.Deleted.ForgetGone(c.target.Input)
}

// deferred is what the decision has left to do: deletions of public IPs, and members of pools.
func (c commit) deferred() (released, members []plan.Step, err error) {
	p, err := plan.Diff(c.out.Have, c.out.Decision.Deferred)
	for _, s := range p.Steps {
		if s.ID.Is(network.PublicIPAddresses) {
			released = append(released, plan.Step{Op: s.Op, ID: s.ID, Why: s.Why, For: s.For})
		} else {
			members = append(members, s)
		}
	}
	return released, members, err
}

// releasedFor are the deletions that a Service waits for. A public IP that several Services left
// is deleted for each: none of them is gone before it is.
func releasedFor(released []plan.Step, service string) []plan.Step {
	return slices.DeleteFunc(slices.Clone(released), func(s plan.Step) bool { return !slices.Contains(s.For, service) })
}

// answerRequests finds what came of each request.
func (b *committer) answerRequests(ctx context.Context, c commit) (commit, error) {
	var err error
	c.answers, err = b.answers(c)
	if err == nil && slices.ContainsFunc(c.answers, func(a answer) bool { return a.err != nil }) {
		// Azure has chosen addresses.
		if c.target.Have, err = reconcile.Gather(ctx, b.azure, c.target.Needs); err == nil {
			c.answers, err = b.answers(c)
		}
	}
	return c, err
}

func (b *committer) answers(c commit) ([]answer, error) {
	status, err := loadbalancer.Status(c.target.Input)
	if err != nil {
		return nil, err
	}
	orphaned, err := c.mayBeOrphaned()
	if err != nil {
		return nil, err
	}
	still := note.Kept(c.target.Input)
	repairs := repairsIn(c)
	answers := make([]answer, len(c.batch))
	for i, r := range c.batch {
		key := r.service.Key()
		if !c.serves(i) {
			if r.orphans {
				answers[i].released, answers[i].problems = c.releasedForNone(), c.out.Decision.Problems
			}
			continue
		}
		a := answer{ingress: status[key], vanished: r.vanished, released: releasedFor(c.released, key),
			problems: c.target.ProblemsOf(key, r.service.Gone, c.out.Decision.Problems),
			recorded: c.target.Recorded[r.service.UID], still: still[r.service.UID]}
		a.hasNodes = r.reasons.nodes && !b.freshness.wrote.Before(r.reasons.since)
		a.shared = len(c.out.Reports) > 0 && len(c.batch)-len(c.postponed) > 1
		a.repairs = repairs[i]
		a.orphaned = orphaned && slices.ContainsFunc(a.problems, isOfAzure)
		if !r.service.Gone && !a.refused() && len(a.ingress) == 0 {
			a.err = fmt.Errorf("%s has no address yet", key)
		}
		answers[i] = a
	}
	return answers, nil
}

// releasedForNone are the deletions that no Service of the commit waits for.
func (c commit) releasedForNone() []plan.Step {
	served := map[string]bool{} // keys
	for i, r := range c.batch {
		served[r.service.Key()] = served[r.service.Key()] || c.serves(i)
	}
	isServed := func(key string) bool { return served[key] }
	return slices.DeleteFunc(slices.Clone(c.released), func(s plan.Step) bool { return slices.ContainsFunc(s.For, isServed) })
}

// startPoolWrites has the members of the pools written, or compared when the last write failed. Services at
// a load balancer without any wait for the first.
func (b *committer) startPoolWrites(ctx context.Context, c commit) (commit, error) {
	if len(c.members) == 0 && !b.pools.reported.Load() {
		return c, nil
	}
	empty := emptyBalancers(c.target.Input)
	write := b.pools.start(ctx, c.target.Services, empty)
	for i, r := range c.batch {
		if lb := empty.of(r.service); c.serves(i) && !r.service.Gone && lb != "" {
			c.answers[i].members = write(lb)
		}
	}
	return c, nil
}
