package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	framework "k8s.io/cloud-provider"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// request is one Service that shall be served, or served no more.
type request struct {
	service loadbalancer.Service
	why     why
	sweeps  bool // it is for no Service, but for what is left of those that are gone
	// vanished says that the Service was to be served and turned out to be gone.
	vanished bool
}

// answer is what came of it.
type answer struct {
	ingress  []corev1.LoadBalancerIngress
	problems []plan.Problem
	backends bool        // they were brought up to date with the nodes
	fills    bool        // machines are about to come or leave
	moved    bool        // the commit changed something, and it served others too
	gone     bool        // the Service is not there any more, and was not served
	repairs  []string    // what was not as kaz had left it
	released []plan.Step // what is left to delete for it
	filling  *fill       // what has to begin before it is served, nil for nothing
	noted    []key.Note  // of which the Service tells since
	still    []key.Note  // of which it goes on telling
	// leftovers says that it is refused, maybe for what is left of Services that are gone.
	leftovers bool
	err       error // nobody else's
}

// refused reports whether something in the Service keeps it from being served.
func (a answer) refused() bool {
	return slices.ContainsFunc(a.problems, func(p plan.Problem) bool { return !p.Warning })
}

// balancers are the cluster's load balancers with the security group that they
// share. What belongs to a group like that is planned in one piece, and what it
// consists of is written side by side: so a cluster has one group, and there is one
// commit of it at a time.
type balancers struct {
	cluster
	azure   reconcile.Azure
	kube    kube
	classes Classes
	metrics *metrics
	fills   *fills
	events  record.EventRecorder
	changed func() // is called when a commit changed something in Azure
	// rearranged is called with the Services that are not of a commit that changed which nodes
	// are at which of several load balancers.
	rearranged func(others []*corev1.Service)

	// Of the commits so far: the beginning of the last one that looked past the
	// cache and of the last one that changed something, and what was told of machines.
	looked, wrote time.Time
	machines      map[plan.Problem]bool
	// departed are Services that have nothing in Azure any more and that Kubernetes
	// may still have, as their finalizer goes last.
	departed map[types.UID]bool
	// spoilt are shared documents of which a write of this process has failed.
	spoilt map[azure.ID]bool
	// loose are the resource groups in which public IPs of a Service are to be deleted, until a
	// commit finds none there: that the security group tells of them is what Azure says.
	loose map[types.UID][]key.Note
	// unfit are the addresses of nodes that Azure has not taken into a pool, with its words.
	unfit map[string]string
	// present are the Services of which there was something in Azure when their last
	// commit ended.
	present map[types.UID]bool
}

// leaveOut takes Services that have departed out of those that are not of the commit:
// what they shared with others goes with the last of those.
func (b *balancers) leaveOut(t *target) {
	still := map[types.UID]bool{}
	t.Others = slices.DeleteFunc(t.Others, func(s *corev1.Service) bool {
		if b.departed[s.UID] {
			still[s.UID] = true
		}
		return b.departed[s.UID]
	})
	b.departed = still
}

func (b *balancers) noteDeparted(services []loadbalancer.Service) {
	for _, s := range services {
		if s.Gone {
			b.departed[s.UID] = true
		}
	}
}

// asked are the Services of a batch, and why all of it is asked for.
func asked(batch []request) (services []loadbalancer.Service, w why) {
	for _, r := range batch {
		if !r.sweeps {
			services = append(services, r.service)
		}
		w = w.and(r.why)
	}
	return services, w
}

// commitAll brings about requests with one plan.
func (b *balancers) commitAll(ctx context.Context, batch []request) ([]answer, error) {
	began := time.Now()
	services, w := asked(batch)
	planned, err := b.target(ctx, services)
	if err != nil {
		return nil, err
	}
	b.leaveOut(planned)
	planned.Unfit = b.stillUnfit(planned.Nodes, w.drift)
	// Whoever fills the pools goes by the nodes that there were when he began: what he writes last
	// is looked at by the fill after him.
	t := &shared{target: planned, whole: w.drift && b.fills.running() == nil, confirmed: map[types.UID]bool{}, noted: map[types.UID][]key.Note{}, loose: b.loose}
	if err := b.recallLoose(t); err != nil {
		return nil, err
	}
	if err := b.look(ctx, t, w); err != nil {
		return nil, err
	}
	if err := b.addLeftovers(ctx, t, batch); err != nil {
		return nil, err
	}
	if err := b.confirmNew(ctx, t); err != nil {
		return nil, err
	}
	if err := b.beAlone(ctx, t); err != nil {
		return nil, err
	}
	out, err := b.converge(ctx, t)
	b.tellRearranged(t.target, out)
	b.metrics.committed(len(t.Services), w, began, err)
	b.tellUpgrades(batch, out.Reports)
	if err != nil {
		return nil, t.beside(blame(err, out, batch))
	}
	b.unfit = t.Unfit
	if len(out.Reports) > 0 || t.fills {
		b.wrote = began
		b.changed()
	}
	for _, s := range t.Services {
		if len(t.releasedFor(s.Key())) == 0 {
			delete(b.loose, s.UID)
		}
	}
	b.noteDeparted(t.Services)
	noteGone(batch, t.Services)
	if err := b.notePresent(t, out.Have); err != nil {
		return nil, err
	}
	b.tellMachines(ctx, t.target)
	t.Have = out.Have
	if err := b.nodeless.forgetGone(t.Input); err != nil {
		return nil, err
	}
	return b.conclude(ctx, t, batch, out)
}

// tellRearranged tells the Services that are not of a commit that it moved nodes between load
// balancers, or tried to.
func (b *balancers) tellRearranged(t *target, out reconcile.Outcome) {
	moves := func(one reconcile.Result) bool {
		inPools := func(c azure.Change) bool { return strings.HasPrefix(c.Path, "properties.backendAddressPools") }
		return sameType(one.Step.ID, network.LoadBalancers) && !errors.Is(one.Err, reconcile.ErrNotAttempted) && slices.ContainsFunc(one.Step.Changes, inPools)
	}
	if len(t.Config.Balancers) > 0 && slices.ContainsFunc(out.Reports, func(r reconcile.Report) bool { return slices.ContainsFunc(r.Results, moves) }) {
		b.rearranged(t.Others)
	}
}

// recallLoose tells the Services of a commit where public IPs of theirs are to be deleted, and
// forgets it of Services that are gone.
func (b *balancers) recallLoose(t *shared) error {
	all, err := b.services()
	there := make(map[types.UID]bool, len(all))
	for _, s := range all {
		there[s.UID] = true
	}
	for i, s := range t.Services {
		there[s.UID] = true
		t.Services[i].Groups = slices.Concat(s.Groups, b.loose[s.UID])
	}
	maps.DeleteFunc(b.loose, func(uid types.UID, _ []key.Note) bool { return !there[uid] })
	return err
}

// conclude finds the answers to what was brought about.
func (b *balancers) conclude(ctx context.Context, t *shared, batch []request, out reconcile.Outcome) ([]answer, error) {
	answers, err := b.answers(t, batch, out)
	if err == nil && slices.ContainsFunc(answers, func(a answer) bool { return a.err != nil }) {
		// Azure has chosen addresses.
		if t.Have, err = reconcile.Gather(ctx, b.azure, t.Needs); err == nil {
			answers, err = b.answers(t, batch, out)
		}
	}
	if err == nil && t.fills {
		err = b.fill(ctx, t, batch, answers)
	}
	if err == nil {
		err = t.noteLeftovers(answers)
	}
	return answers, err
}

// noteGone notes in the requests which Services were found to be gone.
func noteGone(batch []request, services []loadbalancer.Service) {
	gone := map[types.UID]bool{}
	for _, s := range services {
		gone[s.UID] = s.Gone
	}
	for i, r := range batch {
		if !r.sweeps && gone[r.service.UID] && !r.service.Gone {
			batch[i].service.Gone, batch[i].vanished = true, true
		}
	}
}

// beAlone waits for the machines that are on their way into a pool where the commit
// takes the whole load balancer away: they could not be asked to leave it.
func (b *balancers) beAlone(ctx context.Context, t *shared) error {
	leaves := slices.ContainsFunc(t.Services, func(s loadbalancer.Service) bool { return s.Gone })
	running := b.fills.running()
	if !leaves || running == nil {
		return nil
	}
	have, err := reconcile.Gather(ctx, b.azure, t.Needs)
	if err != nil {
		return err
	}
	graph, err := t.target.Desired(have)
	if err != nil || !losesBalancer(graph) {
		return err
	}
	select {
	case <-running:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// fill has the machines come and leave, and those Services wait for the first one that
// nobody serves yet.
func (b *balancers) fill(ctx context.Context, t *shared, batch []request, answers []answer) error {
	empty, err := deserted(t.Have, t.Config)
	if err != nil {
		return err
	}
	into := make(map[string]bool, len(empty))
	for lb := range empty {
		into[lb] = true
	}
	filling := b.fills.want(ctx, t.Services, into)
	for i, r := range batch {
		base := framework.DefaultLoadBalancerName(r.service.Service)
		for lb, rules := range empty {
			if !r.service.Gone && slices.ContainsFunc(rules, func(name string) bool { return strings.HasPrefix(name, base) }) {
				answers[i].filling = filling(lb)
			}
		}
	}
	return nil
}

// converge brings the target about. What Azure left half done in its way is done
// again first.
func (b *balancers) converge(ctx context.Context, t *shared) (reconcile.Outcome, error) {
	out, err := b.bringAbout(ctx, t)
	out, err = b.withoutUnfit(ctx, t, out, err)
	b.noteSpoilt(out)
	if err == nil {
		b.mend(ctx)
		return out, nil
	}
	revived, failed := revive(ctx, b.azure, out)
	if !revived || failed != nil {
		return out, errors.Join(err, failed)
	}
	again, err := b.bringAbout(ctx, t)
	b.noteSpoilt(again)
	again.Reports = append(out.Reports, again.Reports...)
	return again, err
}

// look reads Azure past the cache where what is kept is older than what happened.
// The commit then finds it kept.
func (b *balancers) look(ctx context.Context, t *shared, w why) error {
	if !w.since.After(b.looked) {
		return nil
	}
	began := time.Now()
	if _, err := reconcile.Gather(ctx, b.azure.Fresh(), t.Needs); err != nil {
		return err
	}
	b.looked = began
	return nil
}

// answers tells each request what came of it.
func (b *balancers) answers(t *shared, batch []request, out reconcile.Outcome) ([]answer, error) {
	status, err := loadbalancer.Status(t.Input)
	if err != nil {
		return nil, err
	}
	still := loadbalancer.StillNoted(t.Input)
	answers := make([]answer, len(batch))
	repaired := repairs(batch, out.Reports)
	for i, r := range batch {
		key := r.service.Key()
		if r.sweeps {
			answers[i] = answer{released: t.releasedForNobody(batch)}
			continue
		}
		a := answer{ingress: status[key], problems: t.problemsOf(key, r.service.Gone), repairs: repaired[i], released: t.releasedFor(key), gone: r.vanished, fills: t.fills, noted: t.noted[r.service.UID], still: still[r.service.UID]}
		a.backends = r.why.nodes && !b.wrote.Before(r.why.since)
		a.moved = len(out.Reports) > 0 && len(batch) > 1
		if !r.service.Gone && !a.refused() && len(a.ingress) == 0 {
			a.err = fmt.Errorf("%s has no address yet", key)
		}
		answers[i] = a
	}
	return answers, nil
}

// tellMachines says what is wrong with machines when it is new: they have no Service
// that could be told.
func (b *balancers) tellMachines(ctx context.Context, t *target) {
	standing := map[plan.Problem]bool{}
	for _, p := range t.problems {
		if p.Reason != loadbalancer.ReasonNotJoined && p.Reason != loadbalancer.ReasonNodeNowhere {
			continue
		}
		standing[p] = true
		if b.machines[p] {
			continue
		}
		logProblem(ctx, p)
		if i := slices.IndexFunc(t.Nodes, func(n *corev1.Node) bool { return n.Name == p.Object }); i >= 0 {
			b.events.Event(t.Nodes[i], corev1.EventTypeWarning, p.Reason, p.Message)
		}
	}
	b.machines = standing
}
