package explain

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"kaz/internal/azure/network"
)

// Gist is the report of a Service without what depends on the other Services of the explanation: the
// priorities of security rules, and steps that are for others, too.
func (e Explanation) Gist(s Explained) string {
	var b strings.Builder
	s.Parts = withoutPriorities(s.Parts)
	s.write(&b)
	for _, step := range e.Steps {
		if len(step.For) == 1 && step.For[0] == s.Service && step.ID.Is(network.PublicIPAddresses) {
			fmt.Fprintln(&b, step.Op, step.ID, step.Changes)
		}
	}
	return b.String()
}

// GistOfOrphans is the report of orphans.
func (e Explanation) GistOfOrphans() string {
	var b strings.Builder
	for _, l := range e.Leftovers {
		l.Parts = withoutPriorities(l.Parts)
		l.write(&b)
	}
	return b.String()
}

func withoutPriorities(parts []Part) []Part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if p.Kind == kindSecurity {
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
