package azure

import (
	"reflect"
	"slices"
)

// Release removes the references to the ids gone, and to what is inside them, from a document. The type of view says
// where references are. An element that is nothing but a reference is removed too, and so is the holder of a
// reference in a field tagged "required". References to a removed part, such as a frontend, are removed as well.
func Release(doc Document, view any, gone ...ID) (Document, []Change, error) {
	text, err := parsed(doc)
	if err != nil {
		return nil, nil, err
	}
	r := release{gone: slices.Clone(gone)}
	for before := -1; before < len(r.gone); { // until no further part goes
		before = len(r.gone)
		text, _ = r.value("", "", reflect.TypeOf(view), fieldOptions{}, text)
	}
	return Document(text), r.changes, nil
}

type release struct {
	gone    []ID
	changes []Change
}

func (r *release) isGone(id string) bool {
	return slices.ContainsFunc(r.gone, func(gone ID) bool { return ID(id).Under(gone) })
}

// value returns a value without the removed references. The result void says that the value cannot exist without one
// of them.
func (r *release) value(path, label string, t reflect.Type, opts fieldOptions, have raw) (now raw, void bool) {
	switch t = pointed(t); {
	case t == reflect.TypeFor[ID]():
		return have, r.isGone(have.text())
	case t.Kind() == reflect.Struct:
		return r.object(path+label, t, have)
	case t.Kind() == reflect.Slice:
		return r.list(path, t, opts, have), false
	}
	return have, false
}

func (r *release) object(path string, t reflect.Type, have raw) (now raw, void bool) {
	merged := object{members: have.members()}
	for _, f := range fieldsOf(t) {
		_, was := memberOf(merged.members, f.name)
		if f.opts.read || was.none() {
			continue
		}
		at := f.name
		if path != "" {
			at = path + "." + f.name
		}
		value, gone := r.value(at, "", f.typ, f.opts, was)
		switch {
		case gone && (f.opts.required || f.opts.key || f.always()):
			return have, true
		case gone:
			r.changes = append(r.changes, Change{Path: at, From: was.sorted()})
			merged.remove(f.name)
		case string(value) != string(was):
			merged.set(f.name, value)
		}
	}
	return merged.text(have), false
}

func (r *release) list(path string, t reflect.Type, opts fieldOptions, have raw) raw {
	p := pairing{fields: nil}
	if elem := pointed(t.Elem()); elem.Kind() == reflect.Struct {
		p.fields = keyFields(elem, opts)
	}
	var kept []raw
	old := have.elements()
	changed := false
	for _, x := range old {
		value, gone := r.value(path, p.label("", x), t.Elem(), fieldOptions{}, x)
		if !gone {
			kept = append(kept, value)
			changed = changed || string(value) != string(x)
			continue
		}
		changed = true
		r.changes = append(r.changes, Change{Path: p.label(path, x), From: x.sorted()})
		if _, id := memberOf(x.members(), "id"); id.isText() && !r.isGone(id.text()) {
			r.gone = append(r.gone, ID(id.text()))
		}
	}
	if !changed {
		return have
	}
	return joinElements(kept)
}
