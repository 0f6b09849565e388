package explain

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"kaz/internal/azure/network"
)

// Gist is the report of a Service without what depends on the other Services of the explanation: the
// priorities of security rules, and steps that are for others, too.
func (e Explanation) Gist(s Explained) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.State, s.Kubernetes, s.Problems)
	writeGist(&b, s.Parts)
	for _, step := range e.Steps {
		if len(step.For) == 1 && step.For[0] == s.Service && step.ID.Is(network.PublicIPAddresses) {
			fmt.Fprintln(&b, step.Op, step.ID, step.Changes)
		}
	}
	return b.String()
}

func writeGist(b *strings.Builder, parts []Part) {
	for _, p := range parts {
		if p.Kind == kindSecurity {
			p.Is, p.Shall = "", ""
		}
		fmt.Fprintln(b, p.ID, p.State, p.Is, p.Shall)
	}
}

// GistOfOrphans is the report of orphans.
func (e Explanation) GistOfOrphans() string {
	var b strings.Builder
	for _, l := range e.Leftovers {
		fmt.Fprintln(&b, l.Service, l.UID)
		writeGist(&b, l.Parts)
	}
	return b.String()
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
