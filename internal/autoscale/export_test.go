package autoscale

import (
	"context"
	"slices"
)

// Refresh reads what is due, once.
func (p *Provider) Refresh(ctx context.Context) { p.refresh(ctx) }

// ReadOnce has the provider act as if it had read its groups.
func (p *Provider) ReadOnce() { p.firstOnce.Do(func() { close(p.first) }) }

// NodeNames returns the names of the nodes that are known.
func (p *Provider) NodeNames() []string {
	var names []string
	for _, n := range p.seen() {
		names = append(names, n.name)
	}
	slices.Sort(names)
	return names
}
