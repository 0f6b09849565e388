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
	p.mu.Lock()
	due := time.Since(p.listed) >= p.SetsEvery
	p.mu.Unlock()
	if due {
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
		if g.due(time.Now(), p.InstancesEvery) {
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
	p.adopt(found, ignored)
	return nil
}

// adopt takes over what a list of scale sets shows. A group is gone if two lists in a row lack it. It is gone at once if a
// list shows its scale set and the reason why it is no node group.
func (p *Provider) adopt(found []nodegroup.Group, ignored map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listed = time.Now()
	here := map[string]bool{}
	for _, spec := range found {
		key := strings.ToLower(spec.Name)
		here[key] = true
		delete(p.absent, key)
		if g, known := p.groups[key]; known {
			if doubt := g.adopt(spec, p.isNode); doubt != "" {
				p.doubt(g, doubt)
			}
			continue
		}
		p.groups[key] = newGroup(spec)
		p.Log.Info("node group found", "scale_set", spec.Set, "min", spec.Min, "max", spec.Max)
		for _, w := range spec.Warnings {
			p.Log.Warn("node group", "scale_set", spec.Set, "warning", w)
		}
	}
	for name, why := range ignored {
		key := strings.ToLower(name)
		if _, known := p.groups[key]; known {
			p.absent[key] = 1 // the scale set is there and says so itself
		}
		if p.ignored[name] != why {
			p.Log.Info("scale set is no node group", "scale_set", name, "reason", why)
		}
	}
	p.ignored = ignored
	for key, g := range p.groups {
		if here[key] {
			continue
		}
		if p.absent[key]++; p.absent[key] > 1 {
			p.Log.Info("node group is gone", "scale_set", g.set)
			delete(p.groups, key)
			delete(p.absent, key)
		} else {
			p.Log.Warn("a node group is missing in the list of scale sets; the next list decides", "scale_set", g.set)
		}
	}
}

// adopt takes what a list shows of the group's scale set. It returns what contradicts the capacity in the list, "" if
// nothing does.
func (g *group) adopt(spec nodegroup.Group, isNode func(azure.ID) bool) (doubt string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.under > 0 { // while a change is under way, its own answers and the reads after it count
		g.status.Group = spec
		return ""
	}
	g.status = g.status.Shown(spec, g.circumstances(isNode))
	g.stale = g.stale || g.status.Doubt != ""
	return g.status.Doubt
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
	g.mu.Lock()
	spec := g.status.Group
	changed := g.under > 0 || g.stale || g.status.Etag == "" || g.version != spec.Version()
	first := g.read.IsZero() && g.under == 0
	g.tried = time.Now()
	g.mu.Unlock()
	machines, err := p.machines(ctx, spec)
	fresh := spec
	if err == nil && changed && (!first || !spec.Matches(machines)) {
		fresh, err = p.read(ctx, spec)
	}
	if err != nil {
		g.mu.Lock()
		g.err = err
		g.mu.Unlock()
		if ctx.Err() == nil {
			p.Log.Warn("the instances of a scale set cannot be read; what was read before is used", "scale_set", spec.Set, "error", err)
		}
		return
	}
	gone, doubt := g.take(fresh, machines, p.nodesNow())
	if gone > 0 {
		p.Log.Warn("most nodes of a scale set are missing in the list of its instances; the next list decides",
			"scale_set", spec.Set, "missing", gone)
		p.Metrics.doubt(g.name)
	}
	if doubt != "" {
		p.doubt(g, doubt)
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

// take takes what Azure shows of a group. If a list lacks most nodes of the group, take does not use it and returns how many
// nodes are missing. It uses the next list in any case. doubt says what contradicts the capacity, "" if nothing does.
func (g *group) take(spec nodegroup.Group, machines []azure.Resource[compute.ScaledInstance], isNode func(azure.ID) bool) (
	missing int, doubt string,
) {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.status.Listed(spec, machines, g.circumstances(isNode))
	index := make(map[string]int, len(next.Instances))
	for n, i := range next.Instances {
		index[i.Key] = n
	}
	lost, had := 0, 0
	for _, i := range g.status.Instances {
		if _, leaves := g.leaving[i.Key]; leaves || i.State != nodegroup.Running || i.Deallocated {
			continue
		}
		had++
		if _, listed := index[i.Key]; !listed && isNode(i.ID) {
			lost++
		}
	}
	if lost*2 > had && !g.shrunk {
		g.shrunk = true
		return lost, ""
	}
	g.status, g.index, g.version = next, index, spec.Version()
	g.read, g.shrunk, g.stale, g.err = time.Now(), false, next.Doubt != "", nil
	g.settle()
	return 0, next.Doubt
}

// hasLeft reports whether the last list lacks a machine that leaves, or shows it as being deleted or as deallocated. The
// caller holds the lock.
func (g *group) hasLeft(key string) bool {
	n, listed := g.index[key]
	return !listed || g.status.Instances[n].State == nodegroup.Deleting && !g.leaving[key].deallocate || g.status.Instances[n].Deallocated
}

// forget forgets that a machine leaves if it has left, and reports whether it has. The caller holds the lock.
func (g *group) forget(id azure.ID) bool {
	if _, leaves := g.leaving[id.Key()]; leaves && !g.hasLeft(id.Key()) {
		return false
	}
	delete(g.leaving, id.Key())
	return true
}

// settle drops what the new list of instances has settled. While an operation is under way, a machine that the list shows as
// leaving can still come back: its operation may fail. The caller holds the lock.
func (g *group) settle() {
	for key := range g.leaving {
		if _, listed := g.index[key]; !listed || g.under == 0 && g.hasLeft(key) {
			delete(g.leaving, key)
		}
	}
	for key := range g.wasNode {
		if _, listed := g.index[key]; !listed {
			delete(g.wasNode, key)
		}
	}
	missing := g.account().Missing()
	g.waived = min(g.waived, missing)
	counted := 0
	kept := g.refused[:0]
	for _, r := range g.refused {
		if r.counted {
			if counted++; counted > missing-g.waived {
				continue // Azure made the machine after all, or another client lowered the capacity
			}
		}
		kept = append(kept, r)
	}
	g.refused = kept
}
