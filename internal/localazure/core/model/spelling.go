package model

import "strings"

// Spell writes the names of a body's members as the model does: Azure reads them in any case, and shows its own spelling. A name that
// the body has in both spellings stays as it is. A nil table and a type without a model change nothing.
func (t *Table) Spell(verb, of string, body map[string]any) {
	if t == nil {
		return
	}
	if w, ok := t.writes[key(verb, of)]; ok {
		t.structures[w.body].spell("", body)
	}
}

// spell writes the names in a value: of a structure, in the lists and maps that a member has, or of none.
func (s *structure) spell(lists string, value any) {
	switch v := value.(type) {
	case []any:
		if inner, ok := strings.CutPrefix(lists, "[]"); ok && s != nil {
			for _, x := range v {
				s.spell(inner, x)
			}
		}
	case map[string]any:
		switch inner, ok := strings.CutPrefix(lists, "{}"); {
		case s == nil:
		case ok:
			for _, x := range v {
				s.spell(inner, x)
			}
		case lists == "":
			s.spellMembers(v)
		}
	}
}

func (s *structure) spellMembers(object map[string]any) {
	var other []string
	for name, value := range object {
		if m, ok := s.spelled[name]; ok {
			m.inner.spell(m.lists, value)
		} else {
			other = append(other, name)
		}
	}
	for _, name := range other {
		m, ok := s.members[strings.ToLower(name)]
		if _, both := object[m.name]; !ok || both {
			continue
		}
		object[m.name] = object[name]
		delete(object, name)
		m.inner.spell(m.lists, object[m.name])
	}
}
