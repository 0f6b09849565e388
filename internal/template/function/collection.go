package function

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"kaz/internal/azure/short"
)

// collections has the functions of arrays and objects, and those of strings that arrays
// have too.
var collections = map[string]Function{
	"concat":       {Least: 1, Most: -1, Do: concat},
	"array":        {Least: 1, Most: 1, Do: toArray},
	"createarray":  {Most: -1, Do: func(args []any) (any, error) { return append([]any{}, args...), nil }},
	"createobject": {Most: -1, Do: createObject},
	"length":       {Least: 1, Most: 1, Do: Length},
	"empty":        {Least: 1, Most: 1, Do: empty},
	"contains":     {Least: 2, Most: 2, Do: contains},
	"first":        {Least: 1, Most: 1, Do: func(args []any) (any, error) { return end(args, 0) }},
	"last":         {Least: 1, Most: 1, Do: func(args []any) (any, error) { return end(args, -1) }},
	"take":         {Least: 2, Most: 2, Do: func(args []any) (any, error) { return part(args, true) }},
	"skip":         {Least: 2, Most: 2, Do: func(args []any) (any, error) { return part(args, false) }},
	"indexof":      {Least: 2, Most: 2, Do: func(args []any) (any, error) { return position(args, false) }},
	"lastindexof":  {Least: 2, Most: 2, Do: func(args []any) (any, error) { return position(args, true) }},
	"range":        {Least: 2, Most: 2, Do: rangeFunction},
	"union":        {Least: 1, Most: -1, Do: union},
	"distinct":     {Least: 1, Most: 1, Do: distinct},
	"intersection": {Least: 1, Most: -1, Do: intersection},
	"flatten":      {Least: 1, Most: 1, Do: flatten},
	"items":        {Least: 1, Most: 1, Do: items},
	"tryget":       {Least: 2, Most: -1, Do: tryGet},
	"indexfromend": {Least: 2, Most: 2, Do: func(args []any) (any, error) { return fromEnd(args, false) }},
	"tryindexfromend": {Least: 2, Most: -1, Do: func(args []any) (any, error) {
		found, err := fromEnd(args[:2], true)
		if err != nil || len(args) == 2 {
			return found, err
		}
		return tryGet(append([]any{found}, args[2:]...))
	}},
	"objectkeys":   {Least: 1, Most: 1, Do: objectKeys},
	"shallowmerge": {Least: 1, Most: 1, Do: shallowMerge},
}

// concat joins arrays, or strings, numbers and booleans.
func concat(args []any) (any, error) {
	if _, isArray := args[0].([]any); isArray {
		joined := []any{}
		for _, a := range args {
			array, ok := a.([]any)
			if !ok {
				return nil, Expects("arrays only, or no array")
			}
			joined = append(joined, array...)
		}
		return joined, nil
	}
	var b strings.Builder
	for _, a := range args {
		s, ok := Plain(a)
		if !ok {
			return nil, Expects("strings, numbers and booleans")
		}
		if b.Len()+len(s) > MostSize {
			return nil, ErrTooMuch
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func toArray(args []any) (any, error) {
	if array, ok := args[0].([]any); ok {
		return array, nil
	}
	return []any{args[0]}, nil
}

// createObject is createObject(key, value, key, value, ...).
func createObject(args []any) (any, error) {
	object := map[string]any{}
	for i := 0; i < len(args); i += 2 {
		key, ok := args[i].(string)
		if !ok || i+1 == len(args) {
			return nil, Expects("pairs of a key and a value")
		}
		object[key] = args[i+1]
	}
	return object, nil
}

func Length(args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return Number(utf8.RuneCountInString(v)), nil
	case []any:
		return Number(len(v)), nil
	case map[string]any:
		return Number(len(v)), nil
	}
	return nil, Expects("a string, an array or an object")
}

func empty(args []any) (any, error) {
	if args[0] == nil {
		return true, nil
	}
	n, err := Length(args)
	return n == any(0.0), err
}

// contains looks for an element of an array, a key of an object in any case, or a part
// of a string.
func contains(args []any) (any, error) {
	switch v := args[0].(type) {
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return Equal(x, args[1]) }), nil
	case map[string]any:
		if key, ok := Plain(args[1]); ok {
			for k := range v {
				if strings.EqualFold(k, key) {
					return true, nil
				}
			}
			return false, nil
		}
	case string:
		if s, ok := Plain(args[1]); ok {
			return strings.Contains(v, s), nil
		}
	}
	return nil, Expects("an array and a value, an object and a key, or two strings")
}

// end is the first or the last element. It is null for an empty array and "" for an empty string.
func end(args []any, at int) (any, error) {
	switch v := args[0].(type) {
	case []any:
		if len(v) == 0 {
			return nil, nil
		}
		return v[(len(v)+at)%len(v)], nil
	case string:
		runes := []rune(v)
		if len(runes) == 0 {
			return "", nil
		}
		return string(runes[(len(runes)+at)%len(runes)]), nil
	}
	return nil, Expects("an array or a string")
}

// part is the first n elements or characters, or the rest of them.
func part(args []any, first bool) (any, error) {
	n, ok := Whole(args[1])
	if !ok {
		return nil, Expects("an array or a string, and a whole number")
	}
	cut := func(length int) (from, to int) {
		at := int(min(max(n, 0), int64(length)))
		if first {
			return 0, at
		}
		return at, length
	}
	switch v := args[0].(type) {
	case []any:
		from, to := cut(len(v))
		return v[from:to:to], nil
	case string:
		runes := []rune(v)
		from, to := cut(len(runes))
		return string(runes[from:to]), nil
	}
	return nil, Expects("an array or a string, and a whole number")
}

// position is the index of an element in an array, or of a part of a string without regard to case. It is -1 if there
// is none.
func position(args []any, last bool) (any, error) {
	switch v := args[0].(type) {
	case []any:
		found := -1
		for i, x := range v {
			if Equal(x, args[1]) && (last || found < 0) {
				found = i
			}
		}
		return Number(found), nil
	case string:
		s, ok := args[1].(string)
		if !ok {
			break
		}
		text, s := strings.ToLower(v), strings.ToLower(s)
		at := strings.Index(text, s)
		if last {
			at = strings.LastIndex(text, s)
		}
		if at > 0 {
			at = utf8.RuneCountInString(text[:at])
		}
		return Number(at), nil
	}
	return nil, Expects("an array and a value, or two strings")
}

// rangeFunction is range(first, count).
func rangeFunction(args []any) (any, error) {
	const most = 10_000
	from, ok := Whole(args[0])
	count, also := Whole(args[1])
	if !ok || !also || count < 0 || count > most {
		return nil, Expects("a whole number and a count of at most 10000")
	}
	all := make([]any, count)
	for i := range all {
		all[i] = Number(from + int64(i))
	}
	return all, nil
}

// union joins arrays or objects. The union of arrays has each value once. In a union of objects, the last value of a
// property counts, and properties that are objects are joined in their turn.
func distinct(args []any) (any, error) {
	values, ok := args[0].([]any)
	if !ok {
		return nil, Expects("an array")
	}
	return unequal(values), nil
}

// unequal returns the values without those that are equal to an earlier one.
func unequal(values []any) []any {
	all, seen := []any{}, map[string]bool{}
	for _, x := range values {
		if key := keyOfValue(x); !seen[key] {
			seen[key] = true
			all = append(all, x)
		}
	}
	return all
}

func union(args []any) (any, error) {
	if arrays, ok := AllOf[[]any](args); ok {
		return unequal(slices.Concat(arrays...)), nil
	}
	if objects, ok := AllOf[map[string]any](args); ok {
		all := map[string]any{}
		for _, o := range objects {
			all = merged(all, o)
		}
		return all, nil
	}
	return nil, Expects("arrays only, or objects only")
}

// keyOfValue is the same for equal values, and for them only.
func keyOfValue(value any) string {
	text, err := compact(value)
	if err != nil {
		panic("a value of a template is not JSON: " + err.Error())
	}
	return text
}

func merged(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	for key, value := range b {
		before, isObject := all[key].(map[string]any)
		after, also := value.(map[string]any)
		if isObject && also {
			all[key] = merged(before, after)
		} else {
			all[key] = value
		}
	}
	return all
}

// intersection is of arrays or of objects. The intersection of objects has the properties that all have with the same
// value.
func intersection(args []any) (any, error) {
	if arrays, ok := AllOf[[]any](args); ok {
		common := arrays[0]
		for _, array := range arrays {
			in := map[string]bool{}
			for _, x := range array {
				in[keyOfValue(x)] = true
			}
			common = slices.DeleteFunc(slices.Clone(common), func(x any) bool { return !in[keyOfValue(x)] })
		}
		return union([]any{common})
	}
	if objects, ok := AllOf[map[string]any](args); ok {
		common := map[string]any{}
		for key, value := range objects[0] {
			differs := func(o map[string]any) bool {
				other, there := o[key]
				return !there || !Equal(value, other)
			}
			if !slices.ContainsFunc(objects, differs) {
				common[key] = value
			}
		}
		return common, nil
	}
	return nil, Expects("arrays only, or objects only")
}

// AllOf returns the arguments if all are of one type, and whether they are.
func AllOf[T any](args []any) ([]T, bool) {
	all := make([]T, len(args))
	for i, a := range args {
		v, ok := a.(T)
		if !ok {
			return nil, false
		}
		all[i] = v
	}
	return all, true
}

func flatten(args []any) (any, error) {
	array, ok := args[0].([]any)
	arrays, also := AllOf[[]any](array)
	if !ok || !also {
		return nil, Expects("an array of arrays")
	}
	return append([]any{}, slices.Concat(arrays...)...), nil
}

// items are the properties of an object as {key, value}, in the order of their keys.
func items(args []any) (any, error) {
	object, ok := args[0].(map[string]any)
	if !ok {
		return nil, Expects("an object")
	}
	all := []any{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		all = append(all, map[string]any{"key": key, "value": object[key]})
	}
	return all, nil
}

func objectKeys(args []any) (any, error) {
	object, ok := args[0].(map[string]any)
	if !ok {
		return nil, Expects("an object")
	}
	all := []any{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		all = append(all, key)
	}
	return all, nil
}

// shallowMerge joins an array of objects: the last value of a property counts.
func shallowMerge(args []any) (any, error) {
	array, ok := args[0].([]any)
	objects, also := AllOf[map[string]any](array)
	if !ok || !also {
		return nil, Expects("an array of objects")
	}
	all := map[string]any{}
	for _, o := range objects {
		maps.Copy(all, o)
	}
	return all, nil
}

// tryGet is tryGet(object or array, key or index, ...): null where there is no such element.
func tryGet(args []any) (any, error) {
	value := args[0]
	for _, key := range args[1:] {
		switch v := value.(type) {
		case map[string]any:
			name, ok := key.(string)
			if !ok {
				return nil, Expects("an object and a key, or an array and an index")
			}
			value = v[KeyOf(v, name)]
		case []any:
			i, ok := Whole(key)
			if !ok {
				return nil, Expects("an object and a key, or an array and an index")
			}
			value = nil
			if i >= 0 && i < int64(len(v)) {
				value = v[i]
			}
		default:
			return nil, nil
		}
	}
	return value, nil
}

// fromEnd is the element of an array that is the nth from its end, 1 the last.
func fromEnd(args []any, try bool) (any, error) {
	array, ok := args[0].([]any)
	n, also := Whole(args[1])
	switch {
	case !ok && args[0] == nil && try:
		return nil, nil
	case !ok || !also:
		return nil, Expects("an array and an index")
	case n >= 1 && n <= int64(len(array)):
		return array[int64(len(array))-n], nil
	case try:
		return nil, nil
	}
	return nil, short.Errorf("the array index '%d' is out of bounds: there are %d elements", n, len(array))
}
