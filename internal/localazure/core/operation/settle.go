package operation

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/store"
)

// settle does what an operation does when it ends well.
func (r *Runner) settle(o *Operation) error {
	if o.Verb == behaviour.Delete {
		if err := r.release(o); err != nil {
			return err
		}
		r.settleDelete(o)
		return nil
	}
	e := r.Docs.Entry(o.Held())
	if e == nil {
		return nil // deleted meanwhile
	}
	doc := e.Fresh()
	if !IsWrite(o.Verb) {
		return r.settleAction(o, e, doc)
	}
	if err := r.settleDocument(o, e, doc); err != nil {
		if behaviour.GoesOn(err) {
			r.Docs.Save(e.Kind, e.ID, doc, store.Saving{State: e.Kind.Running(o.Verb)})
		}
		return err
	}
	saved := r.Docs.Save(e.Kind, e.ID, doc, store.Saving{State: store.Succeeded})
	o.Output = r.output(o, saved)
	return nil
}

// release lets a resource that is to be deleted see to what it holds.
func (r *Runner) release(o *Operation) error {
	e := r.Docs.Entry(o.Held())
	if o.Kind.Release == nil || e == nil {
		return nil
	}
	return o.Kind.Release(&behaviour.Call{World: r.World, Verb: o.Verb, ID: o.Resource, Type: o.Kind.Type, Old: r.Docs.Doc(e),
		Notes: o.Notes, Caller: o.Caller})
}

func (r *Runner) settleDelete(o *Operation) {
	if o.Kind.Inline == "" {
		r.Docs.Delete(o.Resource)
		return
	}
	e := r.Docs.Entry(o.Held())
	if e == nil {
		return
	}
	doc := e.Fresh()
	if parent := o.Kind.ParentIn(o.Resource, doc); parent != nil {
		document.Remove(parent, o.Kind.Inline, o.Resource.Name())
	}
	r.Docs.Save(e.Kind, e.ID, doc, store.Saving{State: store.Succeeded})
}

// settleDocument runs Settle of a kind and of the children inside its document.
func (r *Runner) settleDocument(o *Operation, e *store.Entry, doc behaviour.Object) error {
	return r.eachInside(e.Kind, e.ID, doc, nil, func(c *behaviour.Call) error {
		if c.Type.Settle == nil {
			return nil
		}
		c.Verb, c.Body, c.Notes, c.Caller = o.Verb, o.Body, o.Notes, o.Caller
		if c.Type == e.Kind.Type {
			c.Old = o.Old
		}
		return c.Type.Settle(c)
	})
}

// eachInside calls f for a document and then for each child inside of it.
func (r *Runner) eachInside(k *kind.Kind, id azure.ID, doc, parent behaviour.Object, f func(c *behaviour.Call) error) error {
	if err := f(&behaviour.Call{World: r.World, ID: id, Type: k.Type, Doc: doc, Parent: parent}); err != nil {
		return err
	}
	for _, child := range k.Children {
		for _, element := range behaviour.Objects(doc, child.Inline) {
			if err := r.eachInside(child, child.Child(id, element), element, doc, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Runner) settleAction(o *Operation, e *store.Entry, doc behaviour.Object) error {
	action, _, _ := o.Kind.Action(string(o.Verb))
	if action.Settle != nil {
		c := &behaviour.Call{World: r.World, Verb: o.Verb, Action: string(o.Verb), ID: e.ID, Type: o.Kind.Type,
			Old: r.Docs.Doc(e), Doc: doc, Body: o.Body, Notes: o.Notes, Caller: o.Caller}
		output, err := action.Settle(c)
		if err != nil {
			return err
		}
		if output != nil {
			o.Output = plain(output)
		}
		if r.Docs.Entry(e.ID) != e {
			if action.Busy != "-" {
				r.Docs.SetState(e.ID, store.Succeeded)
			}
			return nil // it wrote itself through the world
		}
	}
	state := store.Succeeded
	if action.Busy == "-" {
		state = behaviour.Text(r.Docs.Doc(e), "properties.provisioningState")
	}
	r.Docs.Save(e.Kind, e.ID, doc, store.Saving{State: state, Hidden: e.Hidden})
	return nil
}

// IsWrite reports whether a verb writes a document.
func IsWrite(v behaviour.Verb) bool {
	return v == behaviour.Create || v == behaviour.Update || v == behaviour.Patch
}
