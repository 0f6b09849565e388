package store

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
)

// Delete implements [behaviour.World].
func (t *Transaction) Delete(id azure.ID) {
	k := t.options.Kinds.Of(id.Type())
	if k != nil && k.Inline != "" {
		t.Edit(id.Parent(), func(parent behaviour.Object) { document.Remove(parent, k.Inline, id.Name()) })
		return
	}
	if e := t.Entry(id); e != nil {
		t.removeTree(e)
	}
}

func (t *Transaction) removeTree(e *Entry) {
	t.MustWrite()
	for _, child := range t.below(e.ID) {
		// The Removed of a child before it may have edited or removed it.
		if now := t.Entry(child.ID); now != nil {
			t.removeTree(now)
		}
	}
	// A child's Removed may have edited or removed this one.
	if e = t.Entry(e.ID); e == nil {
		return
	}
	t.Touched[e.ID.Key()] = e.ID
	t.remove(e)
	t.OnUndo(func() { t.put(e) })
	t.Gone(e.ID)
	t.changed(e, nil)
	old := e.Fresh()
	t.removedInside(e.Kind, e.ID, old, nil)
	t.removed(e.Kind, e.ID, old)
}

// removedInside calls Removed of the inline children that a new document has no
// more. A nil document has none.
func (t *Transaction) removedInside(k *kind.Kind, id azure.ID, old, doc behaviour.Object) {
	for _, child := range k.Children {
		if !child.WatchesRemoval() {
			continue
		}
		for _, element := range behaviour.Objects(old, child.Inline) {
			childID := child.Child(id, element)
			now := behaviour.Named(doc, child.Inline, childID.Name())
			t.removedInside(child, childID, element, now)
			if now == nil {
				t.removed(child, childID, element)
			}
		}
	}
}

func (t *Transaction) removed(k *kind.Kind, id azure.ID, old behaviour.Object) {
	if k.Removed == nil {
		return
	}
	c := &behaviour.Call{World: t.World, Verb: behaviour.Delete, ID: id, Type: k.Type, Old: old}
	if err := k.Removed(c); err != nil {
		t.options.Log.Error("removed resource", "id", string(id), "error", err)
	}
}
