package service

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cloud-provider/service/helpers"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// Explanation is what a commit of some Services would find and do.
type Explanation struct {
	Services []Explained `json:"services"`
	// Leftovers are what is taken out of Azure of Services that are not there any more.
	Leftovers []Leftover `json:"leftovers,omitempty"`
	// Steps are for all Services together, in an order in which they may be done.
	Steps []ExplainedStep `json:"steps"`
	// Then names what is decided only when the steps are done, and Later is the steps
	// that come then, as far as they can be foreseen.
	Then  []string        `json:"then,omitempty"`
	Later []ExplainedStep `json:"later,omitempty"`
	// Problems are those of nodes and scale sets.
	Problems []ExplainedProblem `json:"problems,omitempty"`

	plan plan.Plan
}

// State is how it stands with a Service.
type State string

// The states.
const (
	Settled State = "settled" // everything is as it shall be
	Pending State = "pending" // something is to be done
	Refused State = "refused" // it asks for what cannot be; what it has stays
	Leaving State = "leaving" // it is taken out of Azure
)

// Explained is how it stands with one Service.
type Explained struct {
	Service string `json:"service"`
	State   State  `json:"state"`
	// Parts is what is in Azure for the Service, and what shall be.
	Parts []Part `json:"parts,omitempty"`
	// Kubernetes is what changes in the Service itself.
	Kubernetes []string           `json:"kubernetes,omitempty"`
	Problems   []ExplainedProblem `json:"problems,omitempty"`
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

// ExplainedProblem is what keeps something from being as it is asked for.
type ExplainedProblem struct {
	Object  string `json:"object"`
	Reason  string `json:"reason"` // that of the event
	Message string `json:"message"`
	// Warning says that the object is served all the same.
	Warning bool `json:"warning,omitempty"`
}

// Pending reports whether there is anything to do, in Azure or in Kubernetes.
func (e Explanation) Pending() bool {
	return len(e.Steps)+len(e.Then) > 0 || slices.ContainsFunc(e.Services, func(s Explained) bool { return len(s.Kubernetes) > 0 })
}

// Refused are the Services that ask for what cannot be.
func (e Explanation) Refused() []string {
	var all []string
	for _, s := range e.Services {
		if s.State == Refused {
			all = append(all, s.Service)
		}
	}
	return all
}

// explain is what a commit of the Services would find and do. It is the commit's own
// way up to where that begins to write. With all, it looks for leftovers, too.
func (c cluster) explain(ctx context.Context, r azure.Reader, services []loadbalancer.Service, all listing) (Explanation, error) {
	t, err := c.target(ctx, services)
	if err != nil {
		return Explanation{}, err
	}
	var left []loadbalancer.Service
	if all != nil {
		if left, err = t.addLeftovers(ctx, r, all); err != nil {
			return Explanation{}, err
		}
	}
	have, err := reconcile.Gather(ctx, r, t.Needs)
	if err != nil {
		return Explanation{}, err
	}
	graph, err := t.Desired(have)
	if err != nil {
		return Explanation{}, err
	}
	p, err := plan.Diff(have, graph)
	if err != nil {
		return Explanation{}, err
	}
	t.Have = have
	status, err := loadbalancer.Status(t.Input)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Services: []Explained{}, Steps: explainedSteps(p), Then: p.Pending, Problems: nobodys(t.problems, t.Services), plan: p}
	next, foreseen := t.foresee(have, p)
	if foreseen {
		e.Later = next.steps(len(p.Steps))
	}
	is, notes := documents(have), t.telling(graph, p)
	for _, s := range services {
		one, err := explained(s, t, is, next, status[s.Key()], notes)
		if err != nil {
			return Explanation{}, err
		}
		if one.State == Settled && alone(p, s.Key(), len(t.Services)) {
			one.State = Pending
		}
		e.Services = append(e.Services, one)
	}
	e.Leftovers, err = explainedLeftovers(left, p, is, next)
	return e, err
}

// alone reports whether a plan has a step that is a Service's alone.
func alone(p plan.Plan, key string, services int) bool {
	if services == 1 {
		return len(p.Steps)+len(p.Pending) > 0
	}
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return len(s.For) == 1 && s.For[0] == key })
}

func explained(s loadbalancer.Service, t *target, is world, next foresight, ingress []corev1.LoadBalancerIngress, notes telling) (Explained, error) {
	found := answer{problems: t.problemsOf(s.Key(), s.Gone)}
	e := Explained{Service: s.Key(), State: Settled, Problems: explainedProblems(found.problems)}
	e.Kubernetes = changesInKubernetes(s, ingress, found.refused(), notes)
	o := owned{service: s.Service, addresses: addressesOf(s.Status.LoadBalancer.Ingress, ingress)}
	var err error
	if e.Parts, err = o.parts(is, next.shall); err != nil {
		return e, err
	}
	next.name(e.Parts)
	switch {
	case found.refused():
		e.State = Refused
	case s.Gone:
		e.State = Leaving
	case len(e.Kubernetes) > 0, slices.ContainsFunc(e.Parts, func(p Part) bool { return p.State != AsWanted }):
		e.State = Pending
	}
	return e, nil
}

// telling is what Services tell of when all is done, and what of it they do not tell yet.
type telling struct{ still, unnoted map[types.UID][]key.Note }

func (t *target) telling(graph plan.Graph, p plan.Plan) telling {
	after := t.Input
	for _, s := range p.Steps {
		if s.Op == plan.Delete {
			after.Have = after.Have.Without(s.ID)
		}
	}
	return telling{loadbalancer.StillNoted(after), loadbalancer.Unnoted(t.Input, graph)}
}

// changes are the notes that a Service loses and gets. Those of public IPs go again in the
// same pass.
func (n telling) changes(s loadbalancer.Service) (all []string) {
	const where = "status.conditions: "
	for _, name := range key.Notes(s.Status.Conditions) {
		if s.Gone || !slices.ContainsFunc(n.still[s.UID], func(n key.Note) bool { return n.Name() == name }) {
			all = append(all, where+"- "+name+": "+meta.FindStatusCondition(s.Status.Conditions, name).Message)
		}
	}
	for _, one := range n.unnoted[s.UID] {
		if !s.Gone && one.Of == key.PrivateLinks {
			all = append(all, where+"+ "+one.Name()+": "+one.Group)
		}
	}
	return all
}

// changesInKubernetes is what the pass of a Service writes into it.
func changesInKubernetes(s loadbalancer.Service, ingress []corev1.LoadBalancerIngress, refused bool, notes telling) []string {
	const where = "status.loadBalancer.ingress: "
	shown := strings.Join(addressesOf(s.Status.LoadBalancer.Ingress), ", ")
	held := helpers.HasLBFinalizer(s.Service)
	var all []string
	if s.Gone || !refused {
		all = notes.changes(s)
	}
	if s.Gone {
		if held {
			all = append(all, "finalizers: - "+helpers.LoadBalancerCleanupFinalizer)
		}
		if shown != "" {
			all = append(all, where+"- "+shown)
		}
		return all
	}
	if !held {
		all = append(all, "finalizers: + "+helpers.LoadBalancerCleanupFinalizer)
	}
	switch now := strings.Join(addressesOf(ingress), ", "); {
	case refused:
	case len(ingress) == 0 && shown == "":
		all = append(all, where+"+ its address, as soon as it is in place")
	case len(ingress) == 0, sameIngress(s.Status.LoadBalancer.Ingress, ingress):
	case shown == "":
		all = append(all, where+"+ "+now)
	default:
		all = append(all, where+shown+" -> "+now)
	}
	return all
}

// addressesOf are the addresses in statuses, each once.
func addressesOf(statuses ...[]corev1.LoadBalancerIngress) []string {
	var all []string
	for _, in := range slices.Concat(statuses...) {
		if in.IP != "" && !slices.Contains(all, in.IP) {
			all = append(all, in.IP)
		}
	}
	return all
}

func explainedSteps(p plan.Plan) []ExplainedStep {
	all := make([]ExplainedStep, 0, len(p.Steps))
	for i, s := range p.Steps {
		e := ExplainedStep{Number: i + 1, Op: s.Op, ID: s.ID, Why: s.Why, For: s.For, Text: s.String()}
		for _, before := range s.After {
			e.After = append(e.After, before+1)
		}
		for _, c := range s.Changes {
			e.Changes = append(e.Changes, c.String())
		}
		all = append(all, e)
	}
	return all
}

func explainedProblems(problems []plan.Problem) []ExplainedProblem {
	var all []ExplainedProblem
	for _, p := range problems {
		all = append(all, ExplainedProblem(p))
	}
	return all
}

// nobodys are the problems that are of none of the Services. What is taken away because
// it is nobody's, the steps tell.
func nobodys(problems []plan.Problem, services []loadbalancer.Service) []ExplainedProblem {
	return explainedProblems(slices.DeleteFunc(slices.Clone(problems), func(p plan.Problem) bool {
		return isUnclaimed(p) || slices.ContainsFunc(services, func(s loadbalancer.Service) bool { return s.Key() == p.Object })
	}))
}

// String is the explanation as a person reads it.
func (e Explanation) String() string {
	var b strings.Builder
	for _, s := range e.Services {
		s.write(&b)
	}
	if len(e.Services) == 0 {
		b.WriteString("no Service of type LoadBalancer is served\n\n")
	}
	for _, l := range e.Leftovers {
		l.write(&b)
	}
	writeProblems(&b, "Problems of nodes:", e.Problems)
	if !e.plan.Empty() || len(e.Then) > 0 {
		b.WriteString("Steps in Azure:\n" + e.plan.String())
		writeLater(&b, e.Later)
		return b.String()
	}
	b.WriteString("Steps in Azure: none\n")
	return b.String()
}

// sentence says a state to a person.
func (s State) sentence() string {
	switch s {
	case Pending:
		return "changes are pending"
	case Refused:
		return "cannot be as it asks; what it has in Azure stays as it is"
	case Leaving:
		return "is taken out of Azure"
	}
	return "nothing to do"
}

func (s Explained) write(b *strings.Builder) {
	fmt.Fprintf(b, "Service %s: %s\n", s.Service, s.State.sentence())
	writeParts(b, s.Parts)
	for _, change := range s.Kubernetes {
		fmt.Fprintf(b, "  in Kubernetes: %s\n", change)
	}
	b.WriteByte('\n')
	writeProblems(b, "Problems of "+s.Service+":", s.Problems)
}

func writeProblems(b *strings.Builder, title string, problems []ExplainedProblem) {
	if len(problems) == 0 {
		return
	}
	b.WriteString(title + "\n")
	for _, p := range problems {
		kind := "error"
		if p.Warning {
			kind = "warning"
		}
		fmt.Fprintf(b, "  %s %s: %s: %s\n", kind, p.Reason, p.Object, p.Message)
	}
	b.WriteByte('\n')
}
