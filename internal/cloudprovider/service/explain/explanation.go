// Package explain says what the service controller would do, and why. Layer L3: it reads the same
// decision as a commit, and writes nothing.
//
// [Inspector] is for kaz explain, and [Services] for the controller's dry run.
package explain

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/naming"
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
	// Problems are the problems of nodes and scale sets.
	Problems []plan.Problem `json:"problems,omitempty"`

	plan plan.Plan
}

// State says whether anything is to be done for a Service.
type State string

const (
	Settled State = "settled" // everything is up to date
	Pending State = "pending" // something is to be done
	Refused State = "refused" // it asks for something impossible; what it has stays
	Leaving State = "leaving" // it is removed from Azure
)

// Explained is one Service, or what Azure has of a deleted Service, which drift repair removes.
type Explained struct {
	// Service is the namespace and name of the Service. Those of a deleted Service are known as far as Azure shows
	// them.
	Service string `json:"service"`
	// UID is the UID of a deleted Service as far as names in Azure contain it, without dashes. It is empty if other
	// Services have what is left, or if nothing names the Service.
	UID        types.UID      `json:"uid,omitempty"`
	State      State          `json:"state,omitempty"`      // "" for a deleted Service
	Parts      []Part         `json:"parts,omitempty"`      // what is in Azure for the Service, and what is wanted
	Kubernetes []string       `json:"kubernetes,omitempty"` // what changes in the Service itself
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
	Text    string   `json:"text"` // the step in one line, as the controller logs it
}

// Pending reports whether there is anything to do, in Azure or in Kubernetes.
func (e Explanation) Pending() bool {
	return len(e.Steps)+len(e.Then) > 0 || slices.ContainsFunc(e.Services, func(s Explained) bool { return len(s.Kubernetes) > 0 })
}

// Refused returns the Services that ask for something impossible.
func (e Explanation) Refused() []string {
	var all []string
	for _, s := range e.Services {
		if s.State == Refused {
			all = append(all, s.Service)
		}
	}
	return all
}

// String is the explanation as a person reads it.
func (e Explanation) String() string {
	var b strings.Builder
	if len(e.Services) == 0 {
		b.WriteString("no Service of type LoadBalancer is served\n\n")
	}
	for _, s := range slices.Concat(e.Services, e.Leftovers) {
		b.WriteString(s.text())
	}
	b.WriteString(problemsText("Problems of nodes:", e.Problems))
	if len(e.Steps)+len(e.Then) == 0 {
		return b.String() + "Steps in Azure: none\n"
	}
	return b.String() + "Steps in Azure:\n" + e.plan.String()
}

var sentences = map[State]string{
	Settled: "nothing to do",
	Pending: "changes are pending",
	Refused: "refused; what it has in Azure stays as it is",
	Leaving: "is removed from Azure",
}

var marks = map[PartState]string{UpToDate: "=", ToCreate: "+", ToDelete: "-", ToChange: "~"}

func (s Explained) text() string {
	var b strings.Builder
	const left = "Left without a Service in Kubernetes: %s; drift repair removes it from Azure\n"
	switch namespace, name, _ := strings.Cut(s.Service, "/"); {
	case s.State != "":
		fmt.Fprintf(&b, "Service %s: %s\n", s.Service, sentences[s.State])
	case s.UID == "" && namespace == naming.UnknownNamespace:
		fmt.Fprintf(&b, left, "security rules that lead nowhere")
	case s.UID == "":
		fmt.Fprintf(&b, left, "Service "+s.Service)
	case namespace == naming.UnknownNamespace:
		fmt.Fprintf(&b, left, "a Service with the base name "+name)
	default:
		fmt.Fprintf(&b, left, "Service "+s.Service+" with the UID "+string(s.UID))
	}
	if len(s.Parts) > 0 {
		b.WriteString("  in Azure (= up to date, + to create, - to delete, ~ to change):\n")
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range s.Parts {
		fmt.Fprintf(w, "  %s %s\t%s\t%s\n", marks[p.State], p.Kind, p.Name, cmp.Or(p.Current, p.Desired))
		if p.State == ToChange && p.Current != p.Desired {
			fmt.Fprintf(w, "  \t\t-> %s\n", p.Desired)
		}
	}
	_ = w.Flush() // a strings.Builder takes everything
	for _, change := range s.Kubernetes {
		fmt.Fprintf(&b, "  in Kubernetes: %s\n", change)
	}
	return b.String() + "\n" + problemsText("Problems of "+s.Service+":", s.Problems)
}

func problemsText(title string, problems []plan.Problem) string {
	if len(problems) == 0 {
		return ""
	}
	for _, p := range problems {
		title += "\n  " + problemLine(p)
	}
	return title + "\n\n"
}

func problemLine(p plan.Problem) string {
	kind := "error"
	if p.Warning {
		kind = "warning"
	}
	return fmt.Sprintf("%s %s: %s: %s", kind, p.Reason, p.Object, p.Message)
}

// Gists returns the reports of the Services, and at last one report of all orphans. They leave out what depends on the
// other Services of the explanation: the priorities of security rules, and steps that are also for other Services.
func (e Explanation) Gists() []string {
	gists := make([]string, len(e.Services)+1)
	for i, s := range slices.Concat(e.Services, e.Leftovers) {
		s.Parts = slices.Clone(s.Parts)
		for j, p := range s.Parts {
			if p.Kind == securityRule {
				s.Parts[j].Current, s.Parts[j].Desired = "", ""
			}
		}
		gists[min(i, len(e.Services))] += s.text()
		for _, step := range e.Steps {
			if s.State != "" && slices.Equal(step.For, []string{s.Service}) && step.ID.Is(network.PublicIPAddresses) {
				gists[i] += fmt.Sprintln(step.Op, step.ID, step.Changes)
			}
		}
	}
	return gists
}

// Log logs an explanation as a commit logs what it does.
func (e Explanation) Log(ctx context.Context) {
	for _, l := range e.Leftovers {
		slog.InfoContext(ctx, "left in azure without a service", "service", l.Service, "uid", l.UID)
	}
	for _, s := range e.Steps {
		slog.InfoContext(ctx, "azure would be changed", "step", s.Text)
	}
	for _, then := range e.Then {
		slog.InfoContext(ctx, "azure would be changed then", "why", then)
	}
	for _, s := range e.Services {
		for _, p := range s.Problems {
			slog.WarnContext(ctx, "not as asked", "object", p.Object, "reason", p.Reason, "message", p.Message)
		}
	}
}
