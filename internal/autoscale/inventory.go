package autoscale

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/nodegroup"
)

// tick is how often the provider looks at what is due.
const tick = 10 * time.Second

// Run reads what Azure has until ctx ends.
func (p *Provider) Run(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		p.refresh(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-p.wake:
		}
	}
}

// refresh reads what is due: the list of scale sets, and the instances of groups that changed.
func (p *Provider) refresh(ctx context.Context) {
	if time.Since(p.listed()) >= p.SetsEvery {
		if err := p.catalogue.readSizes(ctx); err != nil {
			p.Log.Warn("the sizes of machines are not known; node groups without nodes have no template", "error", err)
		}
		if err := p.list(ctx); err != nil {
			p.Log.Warn("the scale sets cannot be read; what was read before is used", "error", err)
		}
	}
	const together = 8
	var reads errgroup.Group
	reads.SetLimit(together)
	for _, g := range p.all() {
		if ask(&g.known, func(l *ledger) bool { return l.due(time.Now(), p.InstancesEvery) }) {
			reads.Go(func() error {
				p.inspect(ctx, g)
				return nil
			})
		}
	}
	_ = reads.Wait() // no read returns an error
	if p.Ready() {
		p.firstOnce.Do(func() { close(p.first) })
	}
}

// list reads the scale sets.
func (p *Provider) list(ctx context.Context) error {
	docs, err := p.Azure.List(ctx, azure.Query{Scope: p.ResourceGroup, Type: compute.ScaleSets})
	if err != nil {
		return err
	}
	var found []nodegroup.Group
	ignored, names := map[string]string{}, map[string]bool{}
	for _, doc := range docs {
		set, err := azure.Decode[compute.ScaleSetModel](doc)
		if err != nil {
			return err
		}
		names[strings.ToLower(set.Name)] = true
		spec, err := p.Selection.Read(set)
		if err != nil {
			if p.group(set.Name) == nil || !errors.Is(err, nodegroup.ErrNoModel) { // the next list decides about a known group
				ignored[set.Name] = err.Error()
			}
			continue
		}
		found = append(found, spec)
	}
	// A group that a list lacks for the first time is not missing yet: the next list decides.
	has := func(name string) bool { return names[strings.ToLower(name)] || p.group(name) != nil }
	for _, name := range p.Selection.Missing(has) {
		ignored[name] = nodegroup.NoScaleSet
	}
	for _, tell := range ask(&p.roster, func(r *roster) []news { return r.adopt(found, ignored, time.Now()) }) {
		tell(p)
	}
	return nil
}

func (p *Provider) doubt(g *group, doubt string) {
	p.Log.Warn("the capacity that Azure reports is not used", "doubt", doubt)
	p.Metrics.doubt(g.name)
}

// inspect reads the instances of a group. If the scale set may have changed since it was listed, inspect reads the scale set
// too. It does so after the instances: an older capacity would count machines that are gone. At the first read it does so
// only if the instances do not match the listed scale set.
func (p *Provider) inspect(ctx context.Context, g *group) {
	select {
	case g.reading <- struct{}{}:
		defer func() { <-g.reading }()
	case <-ctx.Done():
		return
	}
	begun := ask(&g.known, func(l *ledger) reading { return l.begin(time.Now()) })
	machines, err := p.machines(ctx, begun.spec)
	fresh := begun.spec
	if err == nil && begun.changed && (!begun.first || !fresh.Matches(machines)) {
		fresh, err = p.read(ctx, fresh)
	}
	if err != nil {
		g.known.change(func(l *ledger) { l.err = err })
		if ctx.Err() == nil {
			p.Log.Warn("the instances of a scale set cannot be read; what was read before is used", "scale_set", g.set, "error", err)
		}
		return
	}
	isNode := p.nodesNow()
	got := ask(&g.known, func(l *ledger) taken { return l.take(fresh, machines, isNode, time.Now()) })
	if got.missing > 0 {
		p.Log.Warn("most nodes of a scale set are missing in the list of its instances; the next list decides",
			"scale_set", g.set, "missing", got.missing)
		p.Metrics.doubt(g.name)
	}
	if got.doubt != "" {
		p.doubt(g, got.doubt)
	}
}

// machines lists the machines of a group.
func (p *Provider) machines(ctx context.Context, spec nodegroup.Group) ([]azure.Resource[compute.ScaledInstance], error) {
	query := azure.Query{Scope: spec.Set, Type: compute.ScaleSetInstances, Expand: "instanceView"}
	if spec.Flexible {
		query = azure.Query{
			Scope: spec.Set.Parent(), Type: compute.VirtualMachines, Expand: "instanceView",
			Filter: "'virtualMachineScaleSet/id' eq '" + string(spec.Set) + "'",
		}
	}
	docs, err := p.Azure.List(ctx, query)
	if err != nil {
		return nil, err
	}
	all := make([]azure.Resource[compute.ScaledInstance], len(docs))
	for n, doc := range docs {
		if all[n], err = azure.Decode[compute.ScaledInstance](doc); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// read reads the scale set of a group.
func (p *Provider) read(ctx context.Context, spec nodegroup.Group) (nodegroup.Group, error) {
	doc, err := p.Azure.Get(ctx, spec.Set)
	if err != nil {
		return nodegroup.Group{}, err
	}
	set, err := azure.Decode[compute.ScaleSetModel](doc)
	if err != nil {
		return nodegroup.Group{}, err
	}
	fresh, err := p.Selection.Read(set)
	if err != nil {
		return nodegroup.Group{}, fmt.Errorf("scale set %s is no node group any more: %w", spec.Name, err)
	}
	return fresh, nil
}
