package core

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/kind"
	"kaz/internal/localazure/core/operation"
	"kaz/internal/localazure/core/store"
)

// references checks what documents refer to.
type references struct {
	docs  *store.Transaction
	kinds kind.Table
	queue *operation.Queue
}

// check refuses a document, or an element of a document, that names a resource that
// does not exist or is not ready.
func (t references) check(k *kind.Kind, id azure.ID, doc behaviour.Object) error {
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
func (t references) referred(id azure.ID) (azure.ID, *kind.Kind) {
	k := t.kinds.Of(id.Type())
	for k != nil && k.ReadOnly && k.Inline != "" {
		k, id = k.Parent, id.Parent()
	}
	return id, k
}

// unready returns the state that keeps other resources from referring to a resource, or "". The state is "Deleting" or
// "Updating" while an operation runs, and "Failed" after a failed write. last is "Delete" for "Deleting", otherwise "Put".
func (t references) unready(k *kind.Kind, id azure.ID, doc behaviour.Object) (state, last string) {
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
