package document

import (
	"strings"
	"unique"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/kind"
)

// Reference is a place in a document that names another resource.
type Reference struct {
	Target string // key of the id
	Place  behaviour.Referrer
	// Named says that the id is a text of its own. Other references are objects: {"id": ...}.
	Named bool
}

// References finds every place in a document that names another resource. A document that only
// records names, such as a deployment with the outputs of its template, has none.
func References(k *kind.Kind, id azure.ID, doc behaviour.Object) []Reference {
	if k.Style.Records {
		return nil
	}
	w := refWalk{id: id}
	w.object(id, "", doc)
	return w.found
}

type refWalk struct {
	id    azure.ID
	found []Reference
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
		w.value(around, at, value, key != "id")
	}
}

func (w *refWalk) value(around azure.ID, path string, value any, named bool) {
	switch v := value.(type) {
	case behaviour.Object:
		w.object(around, path, v)
	case []any:
		for _, element := range v {
			w.value(around, path, element, true)
		}
	case string:
		if !strings.HasPrefix(v, "/subscriptions/") || len(v) > maxID {
			return
		}
		to, err := azure.ParseID(v)
		if err != nil || to.Under(w.id) {
			return
		}
		w.found = append(w.found,
			Reference{Target: to.Key(), Named: named,
				Place: behaviour.Referrer{Resource: w.id, Object: around, Path: unique.Make(path).Value()}})
	}
}

// maxID is more than any id that Azure accepts.
const maxID = 4096

// Spelling returns the id as the document spells it.
func Spelling(id azure.ID, value any) azure.ID {
	switch v := value.(type) {
	case behaviour.Object:
		for _, x := range v {
			if found := Spelling(id, x); found != id {
				return found
			}
		}
	case []any:
		for _, x := range v {
			if found := Spelling(id, x); found != id {
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
