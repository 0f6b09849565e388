package document

import (
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/kind"
)

// ReadZones makes texts of zones that are numbers, as Azure Resource Manager does when it reads a request.
func ReadZones(body behaviour.Object) {
	zones := behaviour.Array(body, "zones")
	for i, zone := range zones {
		if n, ok := zone.(float64); ok {
			zones[i] = strconv.FormatFloat(n, 'f', -1, 64)
		}
	}
}

// FromBody returns the document that a request's body asks for. It drops nulls. Fields that belong to Azure have the values
// of the old document.
func FromBody(k *kind.Kind, id azure.ID, body, old behaviour.Object) behaviour.Object {
	doc := behaviour.Clone(body)
	if doc == nil {
		doc = behaviour.Object{}
	}
	dropNulls(doc)
	if k.Style.Reduce {
		reduce(id, doc)
	}
	own(k, doc, old)
	return doc
}

func own(k *kind.Kind, doc, old behaviour.Object) {
	for _, field := range []string{"id", "type", "etag", "systemData"} {
		delete(doc, field)
	}
	behaviour.Remove(doc, "properties.provisioningState")
	for _, path := range k.Own {
		keepOwn(doc, old, strings.Split(path, "."))
	}
	for _, child := range k.Children {
		for _, element := range behaviour.Objects(doc, child.Inline) {
			own(child, element, behaviour.Named(old, child.Inline, behaviour.Text(element, "name")))
		}
	}
}

// keepOwn replaces what is at a path by what the old document has there.
func keepOwn(doc, old behaviour.Object, path []string) {
	key := path[0]
	if len(path) == 1 {
		delete(doc, key)
		if v, ok := old[key]; ok {
			doc[key] = behaviour.Clone(v)
		}
		return
	}
	switch at := doc[key].(type) {
	case behaviour.Object:
		before, _ := old[key].(behaviour.Object)
		keepOwn(at, before, path[1:])
	case []any:
		for _, x := range at {
			if element, ok := x.(behaviour.Object); ok {
				keepOwn(element, behaviour.Named(old, key, behaviour.Text(element, "name")), path[1:])
			}
		}
	default:
		before, _ := old[key].(behaviour.Object)
		made := behaviour.Object{}
		keepOwn(made, before, path[1:])
		if len(made) > 0 {
			doc[key] = made
		}
	}
}

func dropNulls(value any) {
	switch v := value.(type) {
	case behaviour.Object:
		for key, x := range v {
			if x == nil {
				delete(v, key)
			} else {
				dropNulls(x)
			}
		}
	case []any:
		for _, x := range v {
			dropNulls(x)
		}
	}
}

// reduce replaces whole resources nested in a document by references to them.
func reduce(id azure.ID, o behaviour.Object) {
	for key, x := range o {
		switch v := x.(type) {
		case behaviour.Object:
			o[key] = reduced(id, v)
		case []any:
			for i, element := range v {
				if e, ok := element.(behaviour.Object); ok {
					v[i] = reduced(id, e)
				}
			}
		}
	}
}

func reduced(id azure.ID, o behaviour.Object) behaviour.Object {
	to := azure.ID(behaviour.Text(o, "id"))
	_, whole := o["properties"]
	if whole && strings.HasPrefix(string(to), "/subscriptions/") && !to.Under(id) {
		return behaviour.Ref(to)
	}
	reduce(id, o)
	return o
}

// Merge applies a JSON merge patch.
func Merge(doc, patch behaviour.Object) {
	for key, x := range patch {
		if x == nil {
			delete(doc, key)
			continue
		}
		into, isObject := doc[key].(behaviour.Object)
		from, patchesObject := x.(behaviour.Object)
		if isObject && patchesObject {
			Merge(into, from)
		} else {
			doc[key] = behaviour.Clone(x)
		}
	}
}
