package store

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// Move implements [behaviour.World].
func (t *Transaction) Move(from, to azure.ID) {
	t.MustWrite()
	var others []azure.ID
	for target := range t.refs {
		if !azure.ID(target).Under(from) {
			continue
		}
		for _, r := range t.Referrers(azure.ID(target)) {
			if !r.Resource.Under(from) && !slices.ContainsFunc(others, r.Resource.Equal) {
				others = append(others, r.Resource)
			}
		}
	}
	t.moveTree(from, from, to)
	for _, id := range others {
		t.Edit(id, func(doc behaviour.Object) { rename(doc, from, to) })
	}
}

// moveTree stores a resource and all below it under their new ids. It calls no Removed: nothing goes.
func (t *Transaction) moveTree(id, from, to azure.ID) {
	e := t.Entry(id)
	if e == nil {
		return
	}
	below := t.below(id)
	t.remove(e)
	t.OnUndo(func() { t.put(e) })
	t.Gone(e.ID)
	t.changed(e, nil)
	doc := e.Fresh()
	rename(doc, from, to)
	t.Save(e.Kind, renamed(id, from, to), doc, Saving{State: stateOf(doc), Hidden: e.Hidden})
	for _, child := range below {
		t.moveTree(child.ID, from, to)
	}
}

// rename replaces the ids under from in a value by those under to.
func rename(value any, from, to azure.ID) {
	change := func(x any) any {
		if text, ok := x.(string); ok && strings.HasPrefix(text, "/") && azure.ID(text).Under(from) {
			return string(renamed(azure.ID(text), from, to))
		}
		rename(x, from, to)
		return x
	}
	switch v := value.(type) {
	case behaviour.Object:
		for key, x := range v {
			v[key] = change(x)
		}
	case []any:
		for i, x := range v {
			v[i] = change(x)
		}
	}
}

func renamed(id, from, to azure.ID) azure.ID { return to + id[len(from):] }
