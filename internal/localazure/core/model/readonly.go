package model

import (
	"maps"
	"strings"
)

// RemoveReadOnly removes from a resource the members that the model of its PUT does not have, or has for reading alone, but for what
// names it. A type without a model, and a nil table, change nothing.
func (t *Table) RemoveReadOnly(of string, resource map[string]any) {
	if t == nil {
		return
	}
	w, ok := t.writes[key("PUT", of)]
	if !ok {
		return
	}
	kept := map[string]any{}
	for _, name := range []string{"id", "name", "type", "apiVersion", "resourceGroup"} {
		if value, there := resource[name]; there {
			kept[name] = value
		}
	}
	t.structures[w.body].removeReadOnly("", resource)
	maps.Copy(resource, kept)
}

// removeReadOnly removes the members in a value: of a structure, in the lists and maps that a member has, or of none.
func (s *structure) removeReadOnly(lists string, value any) {
	switch v := value.(type) {
	case []any:
		if inner, ok := strings.CutPrefix(lists, "[]"); ok && s != nil {
			for _, x := range v {
				s.removeReadOnly(inner, x)
			}
		}
	case map[string]any:
		inner, ok := strings.CutPrefix(lists, "{}")
		for name, x := range v {
			m, known := s.of(name)
			switch {
			case ok:
				s.removeReadOnly(inner, x)
			case s == nil || lists != "" || !known && s.members[open].name == open:
			case !known || m.readOnly:
				delete(v, name)
			default:
				m.inner.removeReadOnly(m.lists, x)
			}
		}
	}
}

// of is the member with a name in any case. No structure has none.
func (s *structure) of(name string) (member, bool) {
	if s == nil {
		return member{}, false
	}
	m, known := s.members[strings.ToLower(name)]
	return m, known
}
