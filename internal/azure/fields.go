package azure

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is what the struct tags say of one field of a view.
type field struct {
	name      string
	index     []int
	omitEmpty bool
	opts      fieldOptions
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
		options := strings.Split(sf.Tag.Get("azure"), ",")
		fields = append(fields, field{
			name:      name,
			index:     sf.Index,
			omitEmpty: strings.Contains(rest, "omitempty") || strings.Contains(rest, "omitzero"),
			opts: fieldOptions{
				exact: slices.Contains(options, "exact"), read: slices.Contains(options, "read"),
				set: slices.Contains(options, "set"), fold: slices.Contains(options, "fold"),
			},
		})
	}
	fieldCache.Store(t, fields)
	return fields
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
