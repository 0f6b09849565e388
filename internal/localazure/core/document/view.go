package document

import (
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/kind"
)

// View returns what a client sees of a document: the document itself where its type
// computes nothing, else a copy. The call says for which request and resource.
func View(c behaviour.Call, k *kind.Kind, doc behaviour.Object) behaviour.Object {
	if !k.Shows() {
		return doc
	}
	view := behaviour.Clone(doc)
	show(c, k, view)
	return view
}

// show completes a view, the children inside of it first.
func show(c behaviour.Call, k *kind.Kind, view behaviour.Object) {
	c.Type = k.Type
	c.Old = view
	for _, child := range k.Children {
		if !child.Shows() {
			continue
		}
		for _, element := range behaviour.Objects(view, child.Inline) {
			inside := c
			inside.ID = child.Child(c.ID, element)
			inside.Parent = view
			show(inside, child, element)
		}
	}
	if k.Show != nil {
		k.Show(&c, view)
	}
}
