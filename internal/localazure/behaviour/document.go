package behaviour

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
)

// At is the value at a dotted path, nil when there is none.
func At(doc Object, path string) any {
	var at any = doc
	for key := range strings.SplitSeq(path, ".") {
		object, ok := at.(Object)
		if !ok {
			return nil
		}
		at = object[key]
	}
	return at
}

// Text is the string at a path, "" when there is none.
func Text(doc Object, path string) string {
	s, _ := At(doc, path).(string)
	return s
}

// Bool is the boolean at a path.
func Bool(doc Object, path string) bool {
	switch b := At(doc, path).(type) {
	case bool:
		return b
	case string:
		return strings.EqualFold(b, "true")
	}
	return false
}

// Int is the whole number at a path, and whether there is one.
func Int(doc Object, path string) (int, bool) {
	switch n := At(doc, path).(type) {
	case float64:
		return int(n), n == float64(int(n))
	case int:
		return n, true
	case int64:
		return int(n), true
	case string:
		i, err := strconv.Atoi(n)
		return i, err == nil
	}
	return 0, false
}

// Sub is the object at a path, nil when there is none.
func Sub(doc Object, path string) Object {
	o, _ := At(doc, path).(Object)
	return o
}

// Array is the array at a path.
func Array(doc Object, path string) []any {
	a, _ := At(doc, path).([]any)
	return a
}

// Objects are the objects in the array at a path.
func Objects(doc Object, path string) []Object {
	var objects []Object
	for _, element := range Array(doc, path) {
		if o, ok := element.(Object); ok {
			objects = append(objects, o)
		}
	}
	return objects
}

// Texts are the strings in the array at a path.
func Texts(doc Object, path string) []string {
	var texts []string
	for _, element := range Array(doc, path) {
		if s, ok := element.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// RefID is the id in the {"id": ...} at a path.
func RefID(doc Object, path string) azure.ID { return azure.ID(Text(doc, path+".id")) }

// Ref is {"id": id}.
func Ref(id azure.ID) Object { return Object{"id": string(id)} }

// Refs is a list of {"id": id}.
func Refs(ids []azure.ID) []any {
	refs := make([]any, len(ids))
	for i, id := range ids {
		refs[i] = Ref(id)
	}
	return refs
}

// Set writes the value at a path and makes the objects on the way.
func Set(doc Object, path string, value any) {
	for {
		key, rest, more := strings.Cut(path, ".")
		if !more {
			doc[key] = value
			return
		}
		next, ok := doc[key].(Object)
		if !ok {
			next = Object{}
			doc[key] = next
		}
		doc, path = next, rest
	}
}

// Default writes the value where there is none yet.
func Default(doc Object, path string, value any) {
	if At(doc, path) == nil {
		Set(doc, path, value)
	}
}

// Remove takes away what is at a path.
func Remove(doc Object, path string) {
	key, rest, more := strings.Cut(path, ".")
	for more {
		next, ok := doc[key].(Object)
		if !ok {
			return
		}
		doc = next
		key, rest, more = strings.Cut(rest, ".")
	}
	delete(doc, key)
}

// Named is the element of the array at a path with the name, in any case.
func Named(doc Object, path, name string) Object {
	for _, o := range Objects(doc, path) {
		if strings.EqualFold(Text(o, "name"), name) {
			return o
		}
	}
	return nil
}

// Clone is a deep copy.
func Clone[T any](value T) T {
	c, _ := clone(any(value)).(T)
	return c
}

func clone(value any) any {
	switch v := value.(type) {
	case Object:
		if v == nil {
			return v
		}
		c := make(Object, len(v))
		for k, x := range v {
			c[k] = clone(x)
		}
		return c
	case []any:
		if v == nil {
			return v
		}
		c := make([]any, len(v))
		for i, x := range v {
			c[i] = clone(x)
		}
		return c
	}
	return value
}

// Equal compares JSON values; numbers by value, whatever their Go type.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case Object:
		y, ok := b.(Object)
		return ok && maps.EqualFunc(x, y, Equal)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Equal)
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case float64:
		return n, true
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	}
	return 0, false
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(w), word) {
			return true
		}
	}
	return false
}
