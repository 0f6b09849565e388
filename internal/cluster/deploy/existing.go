package deploy

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/delta"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/record"
)

// retag is a change of the tags of a resource.
type retag struct {
	id        azure.ID
	set, drop map[string]string
}

// existing is what a deployment does with resources that exist.
type existing struct {
	// keep are those that are not written, by their ids in lower case.
	keep map[string]bool
	// bodies are those that are written with what other programs wrote into them.
	bodies map[string]map[string]any
	retags []retag
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
		return nil
	}
	if err := s.Add(live); err != nil {
		return err
	}
	if r.Once || r.Condition != "" { // a secret that exists is never written
		x.keep[id.Key()] = true
		return nil
	}
	change := delta.Of(r.Type, emit.Resolve(p.Graph, p.Names, r.Body), former[id.Key()], live)
	if change.Body != nil {
		x.bodies[id.Key()] = change.Body
		return nil
	}
	x.keep[id.Key()] = true
	if !change.IsZero() {
		x.retags = append(x.retags, retag{id, change.Set, change.Drop})
	}
	return nil
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
				all[key] = append(all[key], emit.Resolve(before.Graph, before.Names, r.Body))
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

// retag changes tags without the documents that have them.
func (d Deployer) retag(ctx context.Context, all []retag) error {
	for _, one := range all {
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
