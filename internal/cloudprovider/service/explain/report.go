package explain

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"

	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/naming"
)

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

// String is the explanation as a person reads it.
func (e Explanation) String() string {
	var b strings.Builder
	for _, s := range e.Services {
		b.WriteString(s.text())
	}
	if len(e.Services) == 0 {
		b.WriteString("no Service of type LoadBalancer is served\n\n")
	}
	for _, l := range e.Leftovers {
		b.WriteString(l.text())
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

func (s Explained) text() string {
	return partsText("Service "+s.Service+": "+sentences[s.State], s.Parts, s.Kubernetes) +
		problemsText("Problems of "+s.Service+":", s.Problems)
}

func (l Orphan) text() string {
	owner := fmt.Sprintf("Service %s with the UID %s", l.Service, l.UID)
	switch namespace, name, _ := strings.Cut(l.Service, "/"); {
	case l.UID == "" && namespace == naming.UnknownNamespace:
		owner = "security rules that lead nowhere"
	case l.UID == "":
		owner = "Service " + l.Service
	case namespace == naming.UnknownNamespace:
		owner = "a Service with the base name " + name
	}
	return partsText("Left without a Service in Kubernetes: "+owner+"; drift repair removes it from Azure", l.Parts, nil)
}

var marks = map[PartState]string{UpToDate: "=", ToCreate: "+", ToDelete: "-", ToChange: "~"}

func partsText(title string, parts []Part, kubernetes []string) string {
	var b strings.Builder
	b.WriteString(title + "\n")
	if len(parts) > 0 {
		b.WriteString("  in Azure (= up to date, + to create, - to delete, ~ to change):\n")
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range parts {
		fmt.Fprintf(w, "  %s %s\t%s\t%s\n", marks[p.State], p.Kind, p.Name, cmp.Or(p.Is, p.Shall))
		if p.State == ToChange && p.Is != p.Shall {
			fmt.Fprintf(w, "  \t\t-> %s\n", p.Shall)
		}
	}
	_ = w.Flush() // a strings.Builder takes everything
	for _, change := range kubernetes {
		fmt.Fprintf(&b, "  in Kubernetes: %s\n", change)
	}
	return b.String() + "\n"
}

func problemsText(title string, problems []plan.Problem) string {
	if len(problems) == 0 {
		return ""
	}
	text := title + "\n"
	for _, p := range problems {
		kind := "error"
		if p.Warning {
			kind = "warning"
		}
		text += fmt.Sprintf("  %s %s: %s: %s\n", kind, p.Reason, p.Object, p.Message)
	}
	return text + "\n"
}

// Gists are the reports of the Services, and at last that of all orphans, without what depends on the other
// Services of the explanation: the priorities of security rules, and steps that are for others, too.
func (e Explanation) Gists() []string {
	var gists []string
	for _, s := range e.Services {
		s.Parts = withoutPriorities(s.Parts)
		gist := s.text()
		for _, step := range e.Steps {
			if slices.Equal(step.For, []string{s.Service}) && step.ID.Is(network.PublicIPAddresses) {
				gist += fmt.Sprintln(step.Op, step.ID, step.Changes)
			}
		}
		gists = append(gists, gist)
	}
	orphans := ""
	for _, l := range e.Leftovers {
		l.Parts = withoutPriorities(l.Parts)
		orphans += l.text()
	}
	return append(gists, orphans)
}

func withoutPriorities(parts []Part) []Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if p.Kind == securityRule {
			parts[i].Is, parts[i].Shall = "", ""
		}
	}
	return parts
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
