package definition

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"kaz/internal/cluster/definition/fields"
)

// shape is what the Go types say about a field.
type shape struct {
	path   string
	kind   kind
	fields []*shape // of a map with known fields
	names  map[string]*shape
	item   *shape // of a list, and of a map with free names
	// optional says that an absent map stays absent.
	optional bool
	// free maps may contain anything.
	free bool

	fields.Field
}

// kinds are the kinds of documents, in the order of pages.
func kinds() []string { return []string{"Cluster", "NodePool", "Extension", "TemplatePatch"} }

var shapes = sync.OnceValue(func() map[string]*shape {
	table := fields.Table()
	all := map[string]*shape{}
	for i, t := range []reflect.Type{
		reflect.TypeFor[Cluster](), reflect.TypeFor[NodePool](), reflect.TypeFor[Extension](), reflect.TypeFor[TemplatePatch](),
	} {
		all[kinds()[i]] = shapeOf(t, kinds()[i], table)
	}
	return all
})

func shapeOf(t reflect.Type, path string, table map[string]fields.Field) *shape {
	s := &shape{path: path, Field: table[path]}
	switch t.Kind() {
	case reflect.Pointer:
		s = shapeOf(t.Elem(), path, table)
		s.optional = true
	case reflect.Struct:
		s.kind, s.names = isMap, map[string]*shape{}
		for field := range t.Fields() {
			name := field.Tag.Get("json")
			child := shapeOf(field.Type, path+"."+name, table)
			s.fields, s.names[name] = append(s.fields, child), child
		}
	case reflect.Map:
		s.kind = isMap
		if t.Elem().Kind() == reflect.Interface {
			s.free = true
		} else {
			s.item = shapeOf(t.Elem(), path+".*", table)
			s.item.Rule = s.Value
		}
	case reflect.Slice:
		s.kind = isList
		s.item = shapeOf(t.Elem(), path+"[]", table)
	case reflect.Int:
		s.kind = isNumber
	case reflect.Bool:
		s.kind = isBool
	default:
		s.kind = isText
	}
	return s
}

// name is the last part of a path.
func (s *shape) name() string { return s.path[strings.LastIndexByte(s.path, '.')+1:] }

// each visits a shape and all below it.
func (s *shape) each(visit func(*shape)) {
	visit(s)
	for _, field := range s.fields {
		field.each(visit)
	}
	if s.item != nil && len(s.item.fields) > 0 {
		s.item.each(visit)
	}
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
