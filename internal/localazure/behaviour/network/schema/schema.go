// Package schema has what the types of Microsoft.Network share: the two kinds of types, checks that also fill in defaults,
// and references between resources. Layer L2.
package schema

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// Namespace is the prefix of this provider's types.
const Namespace = "Microsoft.Network/"

// Tracked returns a top-level type with a location and a resourceGuid.
func Tracked(name string, t behaviour.Type) behaviour.Type {
	t.Name = Namespace + name
	t.Where = behaviour.Located
	t.Own = append(t.Own, "properties.resourceGuid")
	fill := t.Fill
	t.Fill = func(c *behaviour.Call) error {
		if err := CheckName(c.ID); err != nil {
			return err
		}
		if behaviour.At(c.Doc, "properties.resourceGuid") == nil {
			behaviour.Set(c.Doc, "properties.resourceGuid", c.GUID())
		}
		if fill == nil {
			return nil
		}
		return fill(c)
	}
	return t
}

// Inside returns a type of resources in their parent's document.
func Inside(name, inline string, t behaviour.Type) behaviour.Type {
	t.Name = Namespace + name
	t.Inline = inline
	if t.Style.Name == "" {
		t.Style = behaviour.Network()
	}
	fill := t.Fill
	t.Fill = func(c *behaviour.Call) error {
		if err := CheckName(c.ID); err != nil {
			return err
		}
		behaviour.Default(c.Doc, "properties", behaviour.Object{})
		if fill == nil {
			return nil
		}
		return fill(c)
	}
	return t
}

// RetryAfter returns the network style with the Retry-After of a type's writes.
func RetryAfter(first, later int) behaviour.Style {
	s := behaviour.Network()
	s.Otherwise = behaviour.Wait{First: first, Later: later}
	return s
}

// ReferrersAt returns the objects that refer to a resource at one of the paths, each once.
func ReferrersAt(w behaviour.World, id azure.ID, paths ...string) []behaviour.Referrer {
	var found []behaviour.Referrer
	seen := map[string]bool{}
	for _, r := range w.Referrers(id) {
		if slices.Contains(paths, r.Path) && !seen[r.Object.Key()] {
			seen[r.Object.Key()] = true
			found = append(found, r)
		}
	}
	return found
}

// ObjectIDs returns the ids of the referring objects.
func ObjectIDs(by []behaviour.Referrer) []azure.ID {
	ids := make([]azure.ID, len(by))
	for i, r := range by {
		ids[i] = r.Object
	}
	return ids
}

// ShowReferences writes a list of references into a view, and nothing for an empty list.
func ShowReferences(view behaviour.Object, path string, by []behaviour.Referrer) {
	if len(by) > 0 {
		behaviour.Set(view, path, behaviour.Refs(ObjectIDs(by)))
	}
}

// ScaleSetOf returns the scale set of an id, "" for none. The id may be that of the scale set.
func ScaleSetOf(id azure.ID) azure.ID {
	const scaleSets = "/virtualmachinescalesets/"
	i := strings.Index(id.Key(), scaleSets)
	if i < 0 {
		return ""
	}
	name, _, _ := strings.Cut(string(id[i+len(scaleSets):]), "/")
	return id[:i+len(scaleSets)+len(name)]
}

// ScaleSetAmong returns the first scale set among referrers, "" for none.
func ScaleSetAmong(by []behaviour.Referrer) azure.ID {
	for _, r := range by {
		if set := ScaleSetOf(r.Resource); set != "" {
			return set
		}
	}
	return ""
}
