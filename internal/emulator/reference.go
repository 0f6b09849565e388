package emulator

import (
	"strings"
	"unique"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// checkReferences refuses a document, or the element of one, that names what does
// not exist, or what is not ready.
func (t *transaction) checkReferences(k *kind, id azure.ID, doc behaviour.Object) error {
	if !k.Style.CheckReferences && !k.Style.Provisioned {
		return nil
	}
	held := holderOf(k, id)
	for _, ref := range references(id, doc) {
		to, other := t.referred(azure.ID(ref.target))
		if other == nil || other.Find != nil || other.ReadOnly || to.Under(held) {
			continue
		}
		target, ok := t.Get(to)
		if !ok {
			if k.Style.CheckReferences {
				return behaviour.InvalidReference(id, t.spelling(to, doc))
			}
			continue
		}
		if !k.Style.Provisioned || !other.Style.Provisioned {
			continue
		}
		if state, last := t.unready(other, to, target); state != "" {
			return notProvisioned(id, azure.ID(behaviour.Text(target, "id")), state, last+singular(other.segment()))
		}
	}
	return nil
}

// referred is what a reference to id has to find there: of a part that is only written with
// the whole, the whole.
func (t *transaction) referred(id azure.ID) (azure.ID, *kind) {
	k := t.kinds.of(id.Type())
	for k != nil && k.ReadOnly && k.Inline != "" {
		k, id = k.parent, id.Parent()
	}
	return id, k
}

// unready is the state of a resource that is not ready to be referred to, "" when it is, and
// what was done to it last: an operation runs that writes or deletes it, or a write failed.
func (t *transaction) unready(k *kind, id azure.ID, doc behaviour.Object) (state, last string) {
	for _, o := range t.operations.byKey[holderOf(k, id).Key()] {
		switch {
		case !id.Under(o.Resource):
		case o.Verb == behaviour.Delete:
			return "Deleting", "Delete"
		case isWrite(o.Verb):
			state = "Updating"
		}
	}
	if state == "" && behaviour.Text(doc, "properties.provisioningState") == failed {
		state = failed
	}
	return state, "Put"
}

func notProvisioned(id, to azure.ID, state, operation string) error {
	e := behaviour.Refusal(429, "RetryableError", "A retryable error occurred.").
		With("ReferencedResourceNotProvisioned", "Cannot proceed with operation because resource %s used by resource %s is not in Succeeded state. Resource is in %s state and the last operation that updated/is updating the resource is %sOperation.",
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

// spelling finds the id as the document spells it.
func (t *transaction) spelling(id azure.ID, value any) azure.ID {
	switch v := value.(type) {
	case behaviour.Object:
		for _, x := range v {
			if found := t.spelling(id, x); found != id {
				return found
			}
		}
	case []any:
		for _, x := range v {
			if found := t.spelling(id, x); found != id {
				return found
			}
		}
	case string:
		if id.Equal(azure.ID(v)) {
			return azure.ID(v)
		}
	}
	return id
}

// references finds every place in a document that names another resource.
func references(id azure.ID, doc behaviour.Object) []reference {
	w := refWalk{id: id}
	w.object(id, "", doc)
	return w.found
}

type refWalk struct {
	id    azure.ID
	found []reference
}

func (w *refWalk) object(around azure.ID, path string, o behaviour.Object) {
	if own := azure.ID(behaviour.Text(o, "id")); own.Under(w.id) {
		around = own
	}
	for key, value := range o {
		at := path
		if key != "id" {
			at = strings.TrimPrefix(path+"."+key, ".")
		}
		w.value(around, at, value)
	}
}

func (w *refWalk) value(around azure.ID, path string, value any) {
	switch v := value.(type) {
	case behaviour.Object:
		w.object(around, path, v)
	case []any:
		for _, element := range v {
			w.value(around, path, element)
		}
	case string:
		if !strings.HasPrefix(v, "/subscriptions/") || len(v) > maxID {
			return
		}
		to, err := azure.ParseID(v)
		if err != nil || to.Under(w.id) {
			return
		}
		w.found = append(w.found, reference{target: to.Key(), place: behaviour.Referrer{Resource: w.id, Object: around, Path: unique.Make(path).Value()}})
	}
}

// maxID is more than any id that Azure accepts.
const maxID = 4096
