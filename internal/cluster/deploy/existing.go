package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/delta"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/units"
)

// retag is a change of the tags of a resource.
type retag struct {
	id        azure.ID
	set, drop map[string]string
}

// merge is a change of a resource that other programs write, too.
type merge struct {
	id      azure.ID
	planned object
	former  []object
}

// existing is what a deployment does with resources that exist.
type existing struct {
	// keep are those that are not written, by their ids in lower case.
	keep map[string]bool
	// bodies are those that are written with what other programs wrote into them.
	bodies map[string]map[string]any
	// merges are those of bodies that are written before the template, which cannot demand that a resource has not changed since.
	merges []merge
	retags []retag
	// later are the resources that the template writes.
	later []azure.ID
}

// written are the options of the template that is deployed.
func (x existing) written(leave map[string]bool) emit.Options {
	keep := maps.Clone(x.keep)
	for _, one := range x.merges {
		keep[one.id.Key()] = true
	}
	return emit.Options{Leave: leave, Keep: keep, Bodies: x.bodies}
}

// shown are the options of a template that has all changes.
func (x existing) shown(leave map[string]bool) emit.Options {
	return emit.Options{Leave: leave, Keep: x.keep, Bodies: x.bodies}
}

// compare reads the resources of the units that are deployed, and finds what must change in them. Lists of Azure may lag, so a
// resource counts as absent only if a read of it says so.
func (d Deployer) compare(ctx context.Context, p cluster.Plan, s record.State, leave map[string]bool) (existing, error) {
	x := existing{keep: map[string]bool{}, bodies: map[string]map[string]any{}}
	if s.Group == nil {
		return x, nil
	}
	former := former(s, p)
	for _, u := range p.Graph.Units {
		if leave[u.Name] {
			continue
		}
		for _, r := range u.Resources {
			if !readable(r.Resource) {
				continue
			}
			if err := d.compareOne(ctx, p, s, &x, u.Unit, r.Resource, former); err != nil {
				return x, err
			}
		}
	}
	return x, nil
}

// readable reports whether the id of a resource follows from its name. That of an extension resource follows from its scope, and a role
// assignment never changes.
func readable(r *graph.Resource) bool {
	return r.Scope.IsZero() && !strings.HasPrefix(r.Type, "Microsoft.Authorization/")
}

func (d Deployer) compareOne(ctx context.Context, p cluster.Plan, s record.State, x *existing, u *graph.Unit, r *graph.Resource,
	former map[string][]map[string]any) error {
	id := emit.ID(p.Names, r, u)
	live, err := d.Find(ctx, id)
	if err != nil {
		return err
	}
	if live == nil {
		delete(s.Resources, id.Key())
		x.later = append(x.later, id)
		return nil
	}
	if err := s.Add(live); err != nil {
		return err
	}
	if r.Condition != "" { // a secret that exists is never written
		x.keep[id.Key()] = true
		return nil
	}
	planned, err := d.known(ctx, p, r.Body)
	if err != nil {
		return err
	}
	change := delta.Of(r.Type, planned, former[id.Key()], live)
	if r.Once {
		change = ofOnce(change)
	}
	if change.Body == nil {
		x.keep[id.Key()] = true
		if !change.IsZero() {
			x.retags = append(x.retags, retag{id, change.Set, change.Drop})
		}
		return nil
	}
	x.bodies[id.Key()] = change.Body
	if x.alone(p, r, change.Body) {
		x.merges = append(x.merges, merge{id, planned, former[id.Key()]})
	} else {
		x.later = append(x.later, id)
	}
	return nil
}

// ofOnce is what changes in a resource that is written only once: its tags. The tags of a machine that say from what it was made stay.
func ofOnce(c delta.Change) delta.Change {
	made := func(tag string, _ string) bool {
		return tag == naming.VersionTag || tag == naming.RevisionTag || units.ForAutoscaler(tag)
	}
	maps.DeleteFunc(c.Set, made)
	maps.DeleteFunc(c.Drop, made)
	return delta.Change{Set: c.Set, Drop: c.Drop}
}

// alone reports whether a resource can be written before the template: everything in its body is known, and it refers to nothing that the
// template writes. Resources of extensions have an api-version of their own, so the template writes them.
func (x existing) alone(p cluster.Plan, r *graph.Resource, body object) bool {
	known := r.Version == ""
	check := func(text string) {
		id := azure.ID(text)
		known = known && !slices.ContainsFunc(x.later, func(other azure.ID) bool { return id.Equal(other) || id.Under(other) })
	}
	for _, other := range r.After {
		check(string(emit.Find(p.Graph, p.Names, other)))
	}
	walk(body, func(leaf any) {
		switch leaf := leaf.(type) {
		case string:
			check(leaf)
		case nil, bool, float64:
		default:
			known = false
		}
	})
	return known
}

// walk calls visit with each key and each value that is neither an object nor a list.
func walk(value any, visit func(leaf any)) {
	switch value := value.(type) {
	case object:
		for key, inner := range value {
			visit(key)
			walk(inner, visit)
		}
	case []any:
		for _, inner := range value {
			walk(inner, visit)
		}
	default:
		visit(value)
	}
}

// known is the body of a plan with ids in place of references, and with the values of Azure of resources that exist.
func (d Deployer) known(ctx context.Context, p cluster.Plan, body object) (object, error) {
	var failed error
	all := emit.Resolve(p.Graph, p.Names, body, func(r graph.Runtime) any {
		live, err := d.Find(ctx, emit.Find(p.Graph, p.Names, r.Of))
		failed = errors.Join(failed, err)
		properties, _ := live["properties"].(object)
		return properties[r.Path]
	})
	return all, failed
}

// former are the bodies that earlier deployments wrote, by the ids of their resources in lower case. A definition that this version of kaz
// cannot plan has none.
func former(s record.State, p cluster.Plan) map[string][]map[string]any {
	all := map[string][]map[string]any{}
	for _, d := range s.Definitions() {
		before, err := cluster.WithMembers(d, s.Generations())
		if err != nil {
			continue
		}
		for _, u := range before.Graph.Units {
			for _, r := range u.Resources {
				key := emit.ID(p.Names, r.Resource, u.Unit).Key()
				all[key] = append(all[key], emit.Resolve(before.Graph, before.Names, r.Body, nil))
			}
		}
	}
	return all
}

// confirm reads the resources of complete units that the lists lack. Those that exist count as listed.
func confirm(ctx context.Context, st record.Store, p cluster.Plan, s record.State) error {
	for unit, hash := range p.Template(emit.Options{}).Hashes {
		if !succeeded(s, unit, hash) {
			continue
		}
		for _, id := range unlisted(s, p, unit) {
			live, err := st.Find(ctx, id)
			if err == nil && live != nil {
				err = s.Add(live)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// change changes the resources that the template does not write.
func (d Deployer) change(ctx context.Context, x existing) error {
	if err := d.retag(ctx, x.retags); err != nil {
		return err
	}
	return d.merge(ctx, x.merges)
}

// merge writes what changes in resources that other programs write, too. Each write demands that nothing has changed since the read.
func (d Deployer) merge(ctx context.Context, all []merge) error {
	for _, one := range all {
		d.Sayf("change %s %s", one.id.Type(), one.id.Name())
		if err := d.mergeOne(ctx, one); err != nil {
			return fmt.Errorf("change %s %s: %w", one.id.Type(), one.id.Name(), err)
		}
	}
	return nil
}

func (d Deployer) mergeOne(ctx context.Context, m merge) error {
	return d.Rewrite(ctx, m.id, nil, func(live object) (object, error) {
		change := delta.Of(m.id.Type(), m.planned, m.former, live)
		if change.Body == nil {
			return nil, d.retag(ctx, []retag{{m.id, change.Set, change.Drop}})
		}
		return change.Body, nil
	})
}

// retag changes tags without the documents that have them.
func (d Deployer) retag(ctx context.Context, all []retag) error {
	for _, one := range all {
		if len(one.set)+len(one.drop) == 0 {
			continue
		}
		d.Sayf("tags of %s %s: %s", one.id.Type(), one.id.Name(), strings.Join(one.names(), ", "))
		for operation, tags := range map[string]map[string]string{"Merge": one.set, "Delete": one.drop} {
			if len(tags) == 0 {
				continue
			}
			if err := d.Patch(ctx, one.id.Resource(record.TagsType, "default"),
				object{"operation": operation, "properties": object{"tags": tags}}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r retag) names() []string {
	all := slices.Collect(maps.Keys(r.set))
	for name := range r.drop {
		all = append(all, "-"+name)
	}
	slices.Sort(all)
	return all
}

// change is how a comparison shows a change of tags.
func (r retag) change() Change {
	c := Change{ID: r.id, Type: "Modify"}
	quote := func(text string) json.RawMessage { raw, _ := json.Marshal(text); return raw }
	for _, name := range slices.Sorted(maps.Keys(r.set)) {
		c.Delta = append(c.Delta, Delta{Path: "tags." + name, Type: "Modify", After: quote(r.set[name])})
	}
	for _, name := range slices.Sorted(maps.Keys(r.drop)) {
		c.Delta = append(c.Delta, Delta{Path: "tags." + name, Type: "Delete", Before: quote(r.drop[name])})
	}
	return c
}

// succeeded reports whether a unit was deployed with its current template.
func succeeded(s record.State, unit, hash string) bool {
	d, has := s.Units[unit]
	return has && d.Properties.ProvisioningState == "Succeeded" && d.Hash() == hash
}

// done reports whether a unit is deployed with its current template and its resources are there.
func done(s record.State, p cluster.Plan, unit, hash string) bool {
	return succeeded(s, unit, hash) && len(unlisted(s, p, unit)) == 0
}

// unlisted are the resources of a unit that the lists lack.
func unlisted(s record.State, p cluster.Plan, unit string) []azure.ID {
	var all []azure.ID
	u := p.Graph.Unit(unit)
	for _, r := range u.Resources {
		if strings.Count(r.Type, "/") > 1 || !readable(r.Resource) {
			continue // not in the list of resources
		}
		if id := emit.ID(p.Names, r.Resource, u.Unit); !s.Has(id) {
			all = append(all, id)
		}
	}
	return all
}
