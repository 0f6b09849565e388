package azure

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is what the struct tags say of one field of a view.
type field struct {
	name      string
	index     []int
	typ       reflect.Type // without the pointer
	pointer   bool
	omitEmpty bool
	opts      fieldOptions
}

// fieldOptions are the words of the `azure` tag; see [Resource].
type fieldOptions struct {
	exact, read, set, fold, key, positional, ordered, required bool
	keys                                                       []string // of a list's elements
}

// absent reports whether a view's field states no value.
func (f field) absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return v.IsNil()
	default:
		return f.omitEmpty && v.IsZero()
	}
}

// always reports whether the field is a struct by value, such as the properties of a resource. Its holder cannot
// exist without it.
func (f field) always() bool { return !f.pointer && f.typ.Kind() == reflect.Struct }

// fieldCache holds the fields of each view type, which never change.
var fieldCache sync.Map // reflect.Type -> []field

func fieldsOf(t reflect.Type) []field {
	if cached, ok := fieldCache.Load(t); ok {
		return cached.([]field)
	}
	var fields []field
	for sf := range t.Fields() {
		name, rest, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if !sf.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		fields = append(fields, field{
			name:      name,
			index:     sf.Index,
			typ:       pointed(sf.Type),
			pointer:   sf.Type.Kind() == reflect.Pointer,
			omitEmpty: strings.Contains(rest, "omitempty") || strings.Contains(rest, "omitzero"),
			opts:      optionsOf(sf.Tag.Get("azure")),
		})
	}
	fieldCache.Store(t, fields)
	return fields
}

func optionsOf(tag string) fieldOptions {
	words := strings.Split(tag, ",")
	has := func(word string) bool { return slices.Contains(words, word) }
	opts := fieldOptions{
		exact: has("exact"), read: has("read"), set: has("set"), fold: has("fold"), key: has("key"), positional: has("positional"),
		ordered: has("ordered"), required: has("required"),
	}
	for _, word := range words {
		if names, ok := strings.CutPrefix(word, "key="); ok {
			opts.keys = strings.Split(names, "+")
		}
	}
	return opts
}

// keyFields are the fields that tell the elements of a list of structs apart. The list's tag names them, or else the
// tags of the element's own fields do.
func keyFields(elem reflect.Type, opts fieldOptions) []field {
	var keys []field
	for _, f := range fieldsOf(elem) {
		if slices.Contains(opts.keys, f.name) || len(opts.keys) == 0 && f.opts.key {
			keys = append(keys, f)
		}
	}
	return keys
}

// checkList returns an error for a list of structs if the tags do not say how its
// elements are paired.
func checkList(elem reflect.Type, opts fieldOptions) error {
	elem = pointed(elem)
	if elem.Kind() != reflect.Struct || opts.positional {
		return nil
	}
	switch found := len(keyFields(elem, opts)); {
	case found == 0 && len(opts.keys) == 0:
		return fmt.Errorf("list of %s has no key: tag it azure:\"key=FIELD\" or azure:\"positional\"", elem)
	case found < len(opts.keys):
		return fmt.Errorf("list of %s: not all of the key fields %s exist", elem, strings.Join(opts.keys, ", "))
	}
	return nil
}

// CheckView returns an error that names each list in a view's type without tags that say how its elements are paired.
// Lists that are Azure's own need no key.
func CheckView(view reflect.Type) error {
	var problems []string
	WalkLists(view, func(l List) {
		if err := checkList(l.Elem, l.opts); err != nil {
			problems = append(problems, l.Path+": "+err.Error())
		}
	})
	if len(problems) > 0 {
		return fmt.Errorf("view %s: %s", view, strings.Join(problems, "; "))
	}
	return nil
}

// List is a list in a view's type.
type List struct {
	Path string // "properties.routes", "properties.rules[].properties.ports"
	Elem reflect.Type
	// Key names the fields by which elements are paired, in the order of the element's fields. It is empty for a list
	// of plain values and for a list that is compared by position.
	Key  []string
	opts fieldOptions
}

// WalkLists calls visit for each list that a view of the given type can state, at any
// depth.
func WalkLists(view reflect.Type, visit func(List)) { walkLists(view, "", visit) }

func walkLists(t reflect.Type, path string, visit func(List)) {
	t = pointed(t)
	if t.Kind() != reflect.Struct {
		return
	}
	for _, f := range fieldsOf(t) {
		at := strings.TrimPrefix(path+"."+f.name, ".")
		switch typ := f.typ; {
		case f.opts.read:
		case typ.Kind() == reflect.Slice:
			l := List{Path: at, Elem: pointed(typ.Elem()), opts: f.opts}
			if l.Elem.Kind() == reflect.Struct && !f.opts.positional {
				for _, k := range keyFields(l.Elem, f.opts) {
					l.Key = append(l.Key, k.name)
				}
			}
			visit(l)
			walkLists(typ.Elem(), at+"[]", visit)
		default:
			walkLists(typ, at, visit)
		}
	}
}

func pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// References lists the ids that the view names outside of the fields that are
// Azure's own, in the order of its fields.
func References(view any) []ID {
	var ids []ID
	collect(reflect.ValueOf(view), &ids)
	return ids
}

func collect(v reflect.Value, ids *[]ID) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			collect(v.Elem(), ids)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), ids)
		}
	case reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			if !f.opts.read {
				collect(v.FieldByIndex(f.index), ids)
			}
		}
	case reflect.String:
		if v.Type() == reflect.TypeFor[ID]() && v.Len() > 0 {
			*ids = append(*ids, ID(v.String()))
		}
	}
}

// Parts lists the ids of the sub-resources that a view of the resource id holds inline, at any depth. These are the
// elements of its lists that have a name and an id. An element without a known id has the id that Azure gives it.
func Parts(id ID, view any) []ID {
	var parts []ID
	collectParts(id, reflect.ValueOf(view), &parts)
	return parts
}

func collectParts(of ID, v reflect.Value, parts *[]ID) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			collectParts(of, v.Elem(), parts)
		}
	case reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			value := v.FieldByIndex(f.index)
			if value.Kind() != reflect.Slice {
				collectParts(of, value, parts)
				continue
			}
			for i := range value.Len() {
				element := value.Index(i)
				part, ok := partID(of, f.name, element)
				if ok {
					*parts = append(*parts, part)
				}
				collectParts(part, element, parts)
			}
		}
	}
}

// partID is the id of an element of a list of sub-resources. Elements of other lists are no sub-resources, and what
// they hold belongs to the same resource.
func partID(of ID, list string, element reflect.Value) (ID, bool) {
	p, ok := reflect.TypeAssert[interface{ partID() (ID, string) }](element)
	if !ok {
		return of, false
	}
	id, name := p.partID()
	if id == "" {
		id = of.Child(list, name)
	}
	return id, true
}
