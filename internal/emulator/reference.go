package emulator

import (
	"slices"
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
		to := azure.ID(ref.target)
		other := t.kinds.of(to.Type())
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
		if state := t.unready(other, to, target); state != "" {
			return notProvisioned(id, azure.ID(behaviour.Text(target, "id")), other, state)
		}
	}
	return nil
}

// unready is the state of a resource that is not ready to be referred to, "" when it
// is: a create or update of it runs, or failed.
func (t *transaction) unready(k *kind, id azure.ID, doc behaviour.Object) string {
	runs := slices.ContainsFunc(t.operations.byKey[holderOf(k, id).Key()], func(o *operation) bool {
		return isWrite(o.Verb) && id.Under(o.Resource)
	})
	switch state := behaviour.Text(doc, "properties.provisioningState"); {
	case runs:
		return "Updating"
	case state == failed:
		return failed
	}
	return ""
}

func notProvisioned(id, to azure.ID, k *kind, state string) error {
	e := behaviour.Refusal(429, "RetryableError", "A retryable error occurred.").
		With("ReferencedResourceNotProvisioned", "Cannot proceed with operation because resource %s used by resource %s is not in Succeeded state. Resource is in %s state and the last operation that updated/is updating the resource is Put%sOperation.",
			to, id, state, singular(k.segment()))
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
