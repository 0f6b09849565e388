// Package explain says what the service controller would do, and why. Layer L3: it reads the same
// decision as a commit, and writes nothing.
//
// [Inspector] is for kaz explain, and [Services] for the controller's dry run.
package explain

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/azure"
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/note"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/reconcile"
)

// Explanation is what a commit of some Services would find and do.
type Explanation struct {
	Services []Explained `json:"services"`
	// Leftovers are what deleted Services have left in Azure, which is removed.
	Leftovers []Explained `json:"leftovers,omitempty"`
	// Steps are for all Services together, in an order in which they may be done.
	Steps []ExplainedStep `json:"steps"`
	// Then names what is decided only when the steps are done.
	Then []string `json:"then,omitempty"`
	// Problems are those of nodes and scale sets.
	Problems []plan.Problem `json:"problems,omitempty"`

	plan plan.Plan
}

// State says whether anything is to be done for a Service.
type State string

// The states.
const (
	Settled State = "settled" // everything is up to date
	Pending State = "pending" // something is to be done
	Refused State = "refused" // it asks for something impossible; what it has stays
	Leaving State = "leaving" // it is removed from Azure
)

// Explained is one Service, or what Azure has of one that Kubernetes does not have, which drift repair removes.
type Explained struct {
	// Service is its namespace and name, of a deleted one as far as anything in Azure tells them.
	Service string `json:"service"`
	// UID is that of a deleted Service as far as names in Azure have it, without dashes. It is
	// empty where other Services have what is left, or nothing names the Service.
	UID   types.UID `json:"uid,omitempty"`
	State State     `json:"state,omitempty"` // "" for a deleted Service
	// Parts is what is in Azure for the Service, and what is wanted.
	Parts []Part `json:"parts,omitempty"`
	// Kubernetes is what changes in the Service itself.
	Kubernetes []string       `json:"kubernetes,omitempty"`
	Problems   []plan.Problem `json:"problems,omitempty"`
}

// ExplainedStep is one write to Azure.
type ExplainedStep struct {
	Number  int      `json:"number"`
	Op      plan.Op  `json:"op"`
	ID      azure.ID `json:"id"`
	Why     string   `json:"why"`
	For     []string `json:"for,omitempty"`
	After   []int    `json:"after,omitempty"` // numbers of the steps that come first
	Changes []string `json:"changes,omitempty"`
	// Text is the step in one line, as the controller logs it.
	Text string `json:"text"`
}

// Services explains what a commit of the Services would find and do. It takes the commit's own
// way up to where that begins to write. With all, it looks for what deleted Services have left,
// too.
func Services(ctx context.Context, c decision.Cluster, r azure.Reader, services []loadbalancer.Service, all bool) (Explanation, error) {
	t, err := c.Target(ctx, services), error(nil)
	if all {
		if t, err = c.WithOrphans(ctx, r, t); err != nil {
			return Explanation{}, err
		}
	}
	if t.Have, err = reconcile.Gather(ctx, r, t.Needs); err != nil {
		return Explanation{}, err
	}
	d, err := t.Decide(t.Have)
	if err != nil {
		return Explanation{}, err
	}
	p, err := plan.Diff(t.Have, d.Graph)
	if err != nil {
		return Explanation{}, err
	}
	status, err := loadbalancer.Status(t.Input)
	if err != nil {
		return Explanation{}, err
	}
	x := explainer{Target: t, problems: d.Problems, plan: p, before: t.Have, status: status, unnoted: note.Missing(t.Input, d.Graph)}
	e := Explanation{Services: []Explained{}, Steps: x.followPlan(), Then: p.Pending, plan: p}
	for _, s := range services {
		e.Services = append(e.Services, x.service(s))
	}
	for _, s := range t.Services[len(services):] {
		left := Explained{Service: s.Key(), UID: s.UID}
		if s.UID != "" {
			left.Parts = partsOf(s.Service, nil, x.before, x.Have)
		}
		if len(left.Parts) > 0 || slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return slices.Contains(s.For, left.Service) }) {
			e.Leftovers = append(e.Leftovers, left)
		}
	}
	e.Problems = slices.DeleteFunc(slices.Clone(d.Problems), func(p plan.Problem) bool {
		// What is removed because no Service uses it, the steps tell.
		return p.Reason == problem.Unclaimed || slices.ContainsFunc(t.Services, func(s loadbalancer.Service) bool { return s.Key() == p.Object })
	})
	return e, nil
}

// explainer is a decision, and what it comes to.
type explainer struct {
	decision.Target // with Azure when the plan is carried out
	problems        []plan.Problem
	plan            plan.Plan
	before          plan.Snapshot // Azure as it is
	status          map[string][]corev1.LoadBalancerIngress
	// The resource groups that Services record: those that stay when all is done, and those that
	// are still to come.
	still, unnoted map[types.UID][]key.Note
}

// followPlan finds out what the steps of the plan leave, and lists them.
func (x *explainer) followPlan() []ExplainedStep {
	all := make([]ExplainedStep, 0, len(x.plan.Steps))
	for i, s := range x.plan.Steps {
		switch s.Op {
		case plan.Delete:
			x.Have = x.Have.Without(s.ID)
		case plan.Create, plan.Update:
			doc, _, _ := azure.Overlay(s.Body, struct { // what is new has no id yet
				ID azure.ID `json:"id" azure:"fold"`
			}{s.ID})
			x.Have = x.Have.With(doc)
		}
		e := ExplainedStep{Number: i + 1, Op: s.Op, ID: s.ID, Why: s.Why, For: s.For, Text: s.String()}
		for _, before := range s.After {
			e.After = append(e.After, before+1)
		}
		for _, c := range s.Changes {
			e.Changes = append(e.Changes, c.String())
		}
		all = append(all, e)
	}
	x.still = note.Kept(x.Input)
	return all
}

func (x *explainer) service(s loadbalancer.Service) Explained {
	addresses := kube.Addresses(s.Status.LoadBalancer.Ingress, x.status[s.Key()])
	e := Explained{Service: s.Key(), State: Settled, Problems: x.ProblemsOf(s.Key(), s.Gone, x.problems),
		Parts: partsOf(s.Service, addresses, x.before, x.Have)}
	refused := slices.ContainsFunc(e.Problems, func(p plan.Problem) bool { return !p.Warning })
	e.Kubernetes = x.inKubernetes(s, refused)
	switch {
	case refused:
		e.State = Refused
	case s.Gone:
		e.State = Leaving
	case len(e.Kubernetes) > 0, slices.ContainsFunc(e.Parts, func(p Part) bool { return p.State != UpToDate }),
		len(x.Services) == 1 && len(x.plan.Steps)+len(x.plan.Pending) > 0,
		slices.ContainsFunc(x.plan.Steps, func(step plan.Step) bool { return slices.Equal(step.For, []string{e.Service}) }):
		e.State = Pending
	}
	return e
}

// notes are the records of resource groups that a Service loses and gets. Those of public IPs go
// again in the same pass.
func (x *explainer) notes(s loadbalancer.Service) (all []string) {
	const where = "status.conditions: "
	for _, name := range key.Notes(s.Status.Conditions) {
		if s.Gone || !slices.ContainsFunc(x.still[s.UID], func(n key.Note) bool { return n.Name() == name }) {
			all = append(all, where+"- "+name+": "+meta.FindStatusCondition(s.Status.Conditions, name).Message)
		}
	}
	for _, n := range x.unnoted[s.UID] {
		if n.Of == key.PrivateLinks {
			all = append(all, where+"+ "+n.Name()+": "+n.Group)
		}
	}
	return all
}

// inKubernetes is what the pass of a Service writes into it.
func (x *explainer) inKubernetes(s loadbalancer.Service, refused bool) (all []string) {
	if s.Gone || !refused {
		all = x.notes(s)
	}
	switch held := helpers.HasLBFinalizer(s.Service); {
	case s.Gone && held:
		all = append(all, "finalizers: - "+helpers.LoadBalancerCleanupFinalizer)
	case !s.Gone && !held:
		all = append(all, "finalizers: + "+helpers.LoadBalancerCleanupFinalizer)
	}
	const where = "status.loadBalancer.ingress: "
	ingress := x.status[s.Key()]
	shown, now := strings.Join(kube.Addresses(s.Status.LoadBalancer.Ingress), ", "), strings.Join(kube.Addresses(ingress), ", ")
	switch {
	case s.Gone && shown != "":
		all = append(all, where+"- "+shown)
	case s.Gone, refused:
	case shown == "":
		all = append(all, where+"+ "+cmp.Or(now, "its address, as soon as it is in place"))
	case len(ingress) > 0 && !kube.SameIngress(s.Status.LoadBalancer.Ingress, ingress):
		all = append(all, where+shown+" -> "+now)
	}
	return all
}
