package checks

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/operation"
)

// references refuses a document, or an element of a document, that names a resource that
// does not exist or is not ready.
func (t Checks) references(r *message.Request, c *behaviour.Call) error {
	k, id, doc := r.Kind, r.ID, c.Doc
	if !k.Style.CheckReferences && !k.Style.Provisioned {
		return nil
	}
	held := k.HolderOf(id)
	for _, ref := range document.References(k, id, doc) {
		if ref.Named {
			continue // providers look such an id up when they use it
		}
		to, other := t.referred(azure.ID(ref.Target))
		if other == nil || other.Find != nil || other.ReadOnly || to.Under(held) {
			continue
		}
		target, ok := t.docs.Get(to)
		if !ok {
			if k.Style.CheckReferences {
				return behaviour.InvalidReference(id, document.Spelling(to, doc))
			}
			continue
		}
		if !k.Style.Provisioned || !other.Style.Provisioned {
			continue
		}
		if state, last := t.unready(other, to, target); state != "" {
			return notProvisioned(id, azure.ID(behaviour.Text(target, "id")), state, last+singular(other.Segment()))
		}
	}
	return nil
}

// referred is what a reference to id has to find there: of a part that is only written with
// the whole, the whole.
func (t Checks) referred(id azure.ID) (azure.ID, *kind.Kind) {
	k := t.kinds.Of(id.Type())
	for k != nil && k.ReadOnly && k.Inline != "" {
		k, id = k.Parent, id.Parent()
	}
	return id, k
}

// unready returns the state that keeps other resources from referring to a resource, or "". The state is "Deleting" or
// "Updating" while an operation runs, and "Failed" after a failed write. last is "Delete" for "Deleting", otherwise "Put".
func (t Checks) unready(k *kind.Kind, id azure.ID, doc behaviour.Object) (state, last string) {
	for _, o := range t.queue.On(k.HolderOf(id)) {
		switch {
		case !id.Under(o.Resource):
		case o.Verb == behaviour.Delete:
			return "Deleting", "Delete"
		case operation.IsWrite(o.Verb):
			state = "Updating"
		}
	}
	if state == "" && behaviour.Text(doc, "properties.provisioningState") == "Failed" {
		state = "Failed"
	}
	return state, "Put"
}

func notProvisioned(id, to azure.ID, state, operation string) error {
	e := behaviour.Refusal(429, "RetryableError", "A retryable error occurred.").
		With("ReferencedResourceNotProvisioned",
			"Cannot proceed with operation because resource %s used by resource %s is not in Succeeded state. Resource is in %s "+
				"state and the last operation that updated/is updating the resource is %sOperation.",
			to, id, state, operation)
	e.RetryAfter = 10
	return e
}

// singular is "PublicIPAddress" for "publicIPAddresses".
func singular(segment string) string {
	one := strings.TrimSuffix(segment, "s")
	if strings.HasSuffix(one, "sse") {
		one = strings.TrimSuffix(one, "e")
	}
	return strings.ToUpper(one[:1]) + one[1:]
}

// Removable refuses to remove what is in use, and what its type refuses to remove.
func (t Checks) Removable(c *behaviour.Call, k *kind.Kind) error {
	if err := t.unused(c, k); err != nil {
		return err
	}
	if k.Refuse != nil {
		return k.Refuse(c)
	}
	return nil
}

// removable is Removable for a request.
func (t Checks) removable(r *message.Request, c *behaviour.Call) error { return t.Removable(c, r.Kind) }

// unused refuses to remove a resource to which others refer, or to one of its inline
// children. That the children refer to each other is no reason when they all go.
func (t Checks) unused(c *behaviour.Call, k *kind.Kind) error {
	if k.InUse != nil {
		if by := t.usedBy(c.ID); len(by) > 0 {
			if err := k.InUse(c, by); err != nil {
				return err
			}
		}
	}
	for _, child := range k.Children {
		for _, element := range behaviour.Objects(c.Old, child.Inline) {
			inside := *c
			inside.ID, inside.Type = child.Child(c.ID, element), child.Type
			inside.Old, inside.Parent = element, c.Old
			if err := t.unused(&inside, child); err != nil {
				return err
			}
		}
	}
	return nil
}

// usedBy are the referrers that do not lie below the resource itself. What the
// resource's own document says is not in the index.
func (t Checks) usedBy(id azure.ID) []behaviour.Referrer {
	return slices.DeleteFunc(t.docs.Referrers(id), func(r behaviour.Referrer) bool { return r.Resource.Under(id) })
}
