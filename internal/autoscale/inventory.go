package autoscale

import (
	"context"
	"fmt"
	"maps"
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
			ignored[set.Name] = err.Error()
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
			g.adopt(spec)
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

// adopt takes what a list shows of the group's scale set.
func (g *group) adopt(spec nodegroup.Group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spec = spec
	if g.under == 0 { // while a change is under way, its own answers and the reads after it count
		g.capacity, g.etag = spec.Capacity(), spec.Etag()
	}
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
	spec, changed := g.spec, g.under > 0 || g.stale || g.etag == "" || g.version != g.spec.Version()
	first := g.read.IsZero() && g.under == 0
	g.tried = time.Now()
	g.mu.Unlock()
	instances, err := p.instances(ctx, g, spec)
	fresh := spec
	if err == nil && changed && (!first || !spec.Matches(instances)) {
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
	if gone := g.take(fresh, instances, p.nodeAt); gone > 0 {
		p.Log.Warn("most nodes of a scale set are missing in the list of its instances; the next list decides",
			"scale_set", spec.Set, "missing", gone)
		p.Metrics.doubt(g.name)
	}
}

// instances lists the machines of a group.
func (p *Provider) instances(ctx context.Context, g *group, spec nodegroup.Group) ([]nodegroup.Instance, error) {
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
	observed := g.observed(p.nodeAt)
	all := make([]nodegroup.Instance, 0, len(docs))
	for _, doc := range docs {
		machine, err := azure.Decode[compute.ScaledInstance](doc)
		if err != nil {
			return nil, err
		}
		if machine.ID != "" { // one without an id is being deleted
			all = append(all, nodegroup.ReadInstance(machine, observed))
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

// observed returns what is known of machines beside what Azure lists, as of now.
func (g *group) observed(nodeAt func(azure.ID) (string, bool)) nodegroup.Observed {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := make(map[string]nodegroup.State, len(g.instances))
	was := make(map[string]bool, len(g.wasNode))
	for _, i := range g.instances {
		before[i.Key] = i.State
	}
	for at := range g.instances {
		if i := &g.instances[at]; i.Failure != nil && i.Failure.Code == nodegroup.FailedState {
			if why, known := g.reasons[i.Key]; known {
				i.Failure = &why
			}
		}
	}
	maps.DeleteFunc(g.reasons, func(key string, _ nodegroup.Failure) bool { _, listed := g.index[key]; return !listed })
	for key := range g.wasNode {
		was[key] = true
	}
	return nodegroup.Observed{
		Before: func(id azure.ID) nodegroup.State { return before[id.Key()] },
		Registered: func(id azure.ID) bool {
			_, isNode := nodeAt(id)
			return isNode || was[id.Key()]
		},
	}
}

// take takes what Azure shows of a group. If a list lacks most nodes of the group, take does not use it and returns how many
// nodes are missing. It uses the next list in any case.
func (g *group) take(spec nodegroup.Group, instances []nodegroup.Instance, nodeAt func(azure.ID) (string, bool)) (doubtful int) {
	index := make(map[string]int, len(instances))
	for n, i := range instances {
		index[i.Key] = n
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	lost, had := 0, 0
	for _, i := range g.instances {
		if _, leaves := g.leaving[i.Key]; leaves || i.State != nodegroup.Running || i.Deallocated {
			continue
		}
		had++
		if _, listed := index[i.Key]; !listed {
			if _, isNode := nodeAt(i.ID); isNode {
				lost++
			}
		}
	}
	if lost*2 > had && !g.shrunk {
		g.shrunk = true
		return lost
	}
	g.spec, g.instances, g.index = spec, instances, index
	g.capacity, g.etag, g.version = spec.Capacity(), spec.Etag(), spec.Version()
	g.read, g.shrunk, g.stale, g.err = time.Now(), false, false, nil
	g.settle()
	return 0
}

// hasLeft reports whether the last list lacks a machine that leaves, or shows it as being deleted or as deallocated. The
// caller holds the lock.
func (g *group) hasLeft(key string) bool {
	n, listed := g.index[key]
	return !listed || g.instances[n].State == nodegroup.Deleting && !g.leaving[key].deallocate || g.instances[n].Deallocated
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
