package engine

import (
	"context"
	"encoding/json"
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
func (e deployer) compare(ctx context.Context, p cluster.Plan, s State, leave map[string]bool) (existing, error) {
	x := existing{keep: map[string]bool{}, bodies: map[string]map[string]any{}}
	if s.Group == nil {
		return x, nil
	}
	former := s.former(p)
	for _, u := range p.Graph.Units {
		if leave[u.Name] {
			continue
		}
		for _, r := range u.Resources {
			if !readable(r.Resource) {
				continue
			}
			if err := e.compareOne(ctx, p, s, &x, u.Unit, r.Resource, former); err != nil {
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

func (e deployer) compareOne(ctx context.Context, p cluster.Plan, s State, x *existing, u *graph.Unit, r *graph.Resource,
	former map[string][]map[string]any) error {
	id := emit.ID(p.Names, r, u)
	live, err := e.read(ctx, id)
	if err != nil {
		return err
	}
	if live == nil {
		delete(s.resources, id.Key())
		return nil
	}
	if err := s.add(live); err != nil {
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

// read reads a resource, nil if Azure says that there is none.
func (e deployer) read(ctx context.Context, id azure.ID) (map[string]any, error) {
	doc, err := e.Azure.Get(ctx, id)
	if azure.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("whether %s exists: %w", id, err)
	}
	var live map[string]any
	if err := json.Unmarshal(doc, &live); err != nil {
		return nil, fmt.Errorf("%s: %w", id, err)
	}
	if text, _ := live["id"].(string); !azure.ID(text).Equal(id) {
		return nil, fmt.Errorf("whether %s exists: the answer has the id %q", id, text)
	}
	return live, nil
}

// add adds a resource that a list did not have.
func (s State) add(live map[string]any) error {
	text, err := json.Marshal(map[string]any{"id": live["id"], "type": live["type"], "tags": live["tags"]})
	if err != nil {
		return err
	}
	var r resource
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("resource %v: %w", live["id"], err)
	}
	s.resources[r.ID.Key()] = r
	return nil
}

// former are the bodies that earlier deployments wrote, by the ids of their resources in lower case. A definition that this version of kaz
// cannot plan has none.
func (s State) former(p cluster.Plan) map[string][]map[string]any {
	all := map[string][]map[string]any{}
	for _, d := range s.definitions() {
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
func (e deployer) confirm(ctx context.Context, p cluster.Plan, s State) error {
	for unit, hash := range p.Template(emit.Options{}).Hashes {
		if !s.succeeded(unit, hash) {
			continue
		}
		for _, id := range s.unlisted(p, unit) {
			live, err := e.read(ctx, id)
			if err == nil && live != nil {
				err = s.add(live)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// confirmMembers reads the machines of members that have a deployment and are in no list. Names of new machines follow from those that
// exist.
func (e *Engine) confirmMembers(ctx context.Context, n naming.Names, s *State) error {
	for unit := range s.units {
		id := n.Group().Resource(machineType, n.With(unit))
		if _, _, member := naming.MemberSlot(unit); !member || s.Has(id) {
			continue
		}
		live, err := deployer{e}.read(ctx, id)
		if err == nil && live != nil {
			err = s.add(live)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// retag changes tags without the documents that have them.
func (e deployer) retag(ctx context.Context, all []retag) error {
	for _, one := range all {
		e.say("tags of %s %s: %s", one.id.Type(), one.id.Name(), strings.Join(one.names(), ", "))
		for operation, tags := range map[string]map[string]string{"Merge": one.set, "Delete": one.drop} {
			if len(tags) == 0 {
				continue
			}
			if err := e.patch(ctx, one.id.Resource(tagsType, "default"),
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
