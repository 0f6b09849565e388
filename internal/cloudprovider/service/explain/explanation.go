package explain

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
	"kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/kube"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/note"
	"kaz/internal/reconcile"
)

// Explanation is what a commit of some Services would find and do.
type Explanation struct {
	Services []Explained `json:"services"`
	// Leftovers are what deleted Services have left in Azure, which is removed.
	Leftovers []Orphan `json:"leftovers,omitempty"`
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

// Explained is one Service.
type Explained struct {
	Service string `json:"service"`
	State   State  `json:"state"`
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

// Services explains what a commit of the Services would find and do. It takes the commit's own
// way up to where that begins to write. With all, it looks for what deleted Services have left,
// too.
func Services(ctx context.Context, c decision.Cluster, r azure.Reader, services []loadbalancer.Service,
	all decision.Listing) (Explanation, error) {
	t := c.Target(ctx, services)
	if all != nil {
		var err error
		if t, err = t.WithOrphans(ctx, r, all); err != nil {
			return Explanation{}, err
		}
	}
	left := t.Services[len(services):]
	have, err := reconcile.Gather(ctx, r, t.Needs)
	if err != nil {
		return Explanation{}, err
	}
	d, err := t.Decide(have)
	if err != nil {
		return Explanation{}, err
	}
	p, err := plan.Diff(have, d.Graph)
	if err != nil {
		return Explanation{}, err
	}
	t.Have = have
	status, err := loadbalancer.Status(t.Input)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Services: []Explained{}, Steps: explainedSteps(p), Then: p.Pending,
		Problems: ofNoService(d.Problems, t.Services), plan: p}
	is, after, notes := documents(have), outcome(have, p), notesOf(t, d.Graph, p)
	for _, s := range services {
		one := explained(s, t.ProblemsOf(s.Key(), s.Gone, d.Problems), is, after, status[s.Key()], notes)
		if one.State == Settled && alone(p, s.Key(), len(t.Services)) {
			one.State = Pending
		}
		e.Services = append(e.Services, one)
	}
	e.Leftovers = explainedOrphans(left, p, is, after)
	return e, nil
}

// alone reports whether a plan has a step that is a Service's alone.
func alone(p plan.Plan, key string, services int) bool {
	if services == 1 {
		return len(p.Steps)+len(p.Pending) > 0
	}
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return len(s.For) == 1 && s.For[0] == key })
}

func explained(s loadbalancer.Service, problems []plan.Problem, is, after state, ingress []corev1.LoadBalancerIngress,
	notes notes) Explained {
	refused := slices.ContainsFunc(problems, func(p plan.Problem) bool { return !p.Warning })
	e := Explained{Service: s.Key(), State: Settled, Problems: problems}
	e.Kubernetes = changesInKubernetes(s, ingress, refused, notes)
	e.Parts = partsOf(s.Service, kube.Addresses(s.Status.LoadBalancer.Ingress, ingress), is, after)
	switch {
	case refused:
		e.State = Refused
	case s.Gone:
		e.State = Leaving
	case len(e.Kubernetes) > 0, slices.ContainsFunc(e.Parts, func(p Part) bool { return p.State != UpToDate }):
		e.State = Pending
	}
	return e
}

// notes are the conditions in which Services record resource groups: the ones that stay when all is
// done, and the ones that are still to come.
type notes struct{ still, unnoted map[types.UID][]key.Note }

func notesOf(t decision.Target, graph plan.Graph, p plan.Plan) notes {
	after := t.Input
	for _, s := range p.Steps {
		if s.Op == plan.Delete {
			after.Have = after.Have.Without(s.ID)
		}
	}
	return notes{note.Kept(after), note.Missing(t.Input, graph)}
}

// changes are the notes that a Service loses and gets. Those of public IPs go again in the
// same pass.
func (n notes) changes(s loadbalancer.Service) (all []string) {
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
func changesInKubernetes(s loadbalancer.Service, ingress []corev1.LoadBalancerIngress, refused bool, notes notes) []string {
	const where = "status.loadBalancer.ingress: "
	shown := strings.Join(kube.Addresses(s.Status.LoadBalancer.Ingress), ", ")
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
	switch now := strings.Join(kube.Addresses(ingress), ", "); {
	case refused:
	case len(ingress) == 0 && shown == "":
		all = append(all, where+"+ its address, as soon as it is in place")
	case len(ingress) == 0, kube.SameIngress(s.Status.LoadBalancer.Ingress, ingress):
	case shown == "":
		all = append(all, where+"+ "+now)
	default:
		all = append(all, where+shown+" -> "+now)
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

// ofNoService are the problems that are of none of the Services. What is removed because no
// Service uses it, the steps tell.
func ofNoService(problems []plan.Problem, services []loadbalancer.Service) []plan.Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(p plan.Problem) bool {
		return decision.IsUnclaimed(p) || slices.ContainsFunc(services, func(s loadbalancer.Service) bool { return s.Key() == p.Object })
	})
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
		return b.String()
	}
	b.WriteString("Steps in Azure: none\n")
	return b.String()
}

// sentences say the states to a person.
var sentences = map[State]string{
	Settled: "nothing to do",
	Pending: "changes are pending",
	Refused: "refused; what it has in Azure stays as it is",
	Leaving: "is removed from Azure",
}

func (s Explained) write(b *strings.Builder) {
	fmt.Fprintf(b, "Service %s: %s\n", s.Service, sentences[s.State])
	writeParts(b, s.Parts)
	for _, change := range s.Kubernetes {
		fmt.Fprintf(b, "  in Kubernetes: %s\n", change)
	}
	b.WriteByte('\n')
	writeProblems(b, "Problems of "+s.Service+":", s.Problems)
}

func writeProblems(b *strings.Builder, title string, problems []plan.Problem) {
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
