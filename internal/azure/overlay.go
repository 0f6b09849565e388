package azure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Change is one field in which a document differs from what is wanted of it.
type Change struct {
	Path     string // "properties.probes[p].properties.port"
	From, To string // JSON, "" for absent
}

func (c Change) String() string {
	switch {
	case c.From == "":
		return fmt.Sprintf("%s: + %s", c.Path, c.To)
	case c.To == "":
		return fmt.Sprintf("%s: - %s", c.Path, c.From)
	}
	return fmt.Sprintf("%s: %s -> %s", c.Path, c.From, c.To)
}

// Overlay writes the view want, a struct with `json` and `azure` tags such as a
// [Resource], over the document have, which may be empty, and lists what that
// changes. No changes means that have already is what is wanted.
//
// Fields that the view's type does not know are kept wherever they are. A list in
// the view states the whole membership of that list: its elements are paired by
// name, or by id, and keep their unknown fields and their order; elements that the
// view does not name go away, new ones are appended. A list tagged "set" that
// changes takes the view's order. A nil list or pointer, or an empty `omitempty`
// value, is no opinion unless the field is tagged "exact".
func Overlay(have Document, want any) (Document, []Change, error) {
	var tree any
	if len(have) > 0 {
		dec := json.NewDecoder(bytes.NewReader(have))
		dec.UseNumber()
		if err := dec.Decode(&tree); err != nil {
			return nil, nil, fmt.Errorf("document of %s: %w", nameless(have.ID()), err)
		}
	}
	var o overlay
	merged := o.value("", reflect.ValueOf(want), fieldOptions{}, tree)
	if len(o.changes) == 0 && len(have) > 0 {
		return have, nil, nil
	}
	text, err := json.Marshal(merged)
	if err != nil {
		return nil, nil, fmt.Errorf("document of %s: %w", nameless(have.ID()), err)
	}
	return text, o.changes, nil
}

type overlay struct{ changes []Change }

type fieldOptions struct{ exact, read, set, fold bool }

func (o *overlay) changed(path string, from, to any) {
	o.changes = append(o.changes, Change{Path: path, From: text(from), To: text(to)})
}

// value merges v over have and returns the result; neither is changed.
func (o *overlay) value(path string, v reflect.Value, opts fieldOptions, have any) any {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		return o.object(path, v, have)
	case reflect.Slice:
		return o.list(path, v, opts, have)
	case reflect.Map:
		return o.tags(path, v, have)
	default:
		return o.scalar(path, v, opts, have)
	}
}

func (o *overlay) object(path string, v reflect.Value, have any) any {
	old, ok := have.(map[string]any)
	if !ok && have != nil {
		o.changed(path, have, map[string]any{})
	}
	merged := copied{old: old}
	for _, f := range fieldsOf(v.Type()) {
		o.field(path, v.FieldByIndex(f.index), f, &merged)
	}
	return merged.object()
}

// copied is an object of a document, which is copied when it changes first: most objects of
// a large document stay as they are.
type copied struct{ old, changed map[string]any }

func (c *copied) object() map[string]any {
	if c.changed != nil {
		return c.changed
	}
	if c.old == nil {
		return map[string]any{}
	}
	return c.old
}

// own is the object as it may be written to.
func (c *copied) own() map[string]any {
	if c.changed == nil {
		c.changed = make(map[string]any, len(c.old)+1)
		maps.Copy(c.changed, c.old)
	}
	return c.changed
}

func (o *overlay) field(path string, v reflect.Value, f field, merged *copied) {
	if f.opts.read {
		return
	}
	at := f.name
	if path != "" {
		at = path + "." + f.name
	}
	was, had := merged.old[f.name]
	if f.absent(v) {
		if f.opts.exact && had && was != nil {
			o.changed(at, was, nil)
			delete(merged.own(), f.name)
		}
		return
	}
	before := len(o.changes)
	now := o.value(at, v, f.opts, was)
	if len(o.changes) > before || !had && !isEmpty(now) {
		merged.own()[f.name] = now
	}
}

func (o *overlay) scalar(path string, v reflect.Value, opts fieldOptions, have any) any {
	want := plain(v)
	if have != nil && sameScalar(v, opts, have, want) {
		return have
	}
	o.changed(path, have, want)
	return want
}

func sameScalar(v reflect.Value, opts fieldOptions, have, want any) bool {
	a, aText := have.(string)
	b, bText := want.(string)
	switch {
	case aText && bText && v.Type() == reflect.TypeFor[ID]():
		return strings.EqualFold(a, b)
	case aText && bText && opts.fold:
		return strings.EqualFold(withoutBlanks(a), withoutBlanks(b))
	}
	if x, ok := have.(json.Number); ok {
		if y, ok := want.(json.Number); ok {
			return sameNumber(x, y)
		}
	}
	return have == want
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

func withoutBlanks(s string) string { return strings.ReplaceAll(s, " ", "") }

// tags merges a map of text by name in any case.
func (o *overlay) tags(path string, v reflect.Value, have any) any {
	old, _ := have.(map[string]any)
	merged := make(map[string]any, len(old)+v.Len())
	spelling := make(map[string]string, len(old))
	for k, x := range old {
		merged[k] = x
		spelling[strings.ToLower(k)] = k
	}
	names := v.MapKeys()
	slices.SortFunc(names, func(a, b reflect.Value) int {
		return strings.Compare(strings.ToLower(a.String()), strings.ToLower(b.String()))
	})
	for _, key := range names {
		name, want := key.String(), v.MapIndex(key).String()
		known, ok := spelling[strings.ToLower(name)]
		if !ok {
			known = name
		}
		at := fmt.Sprintf("%s[%s]", path, known)
		switch {
		case want == DropTag && ok:
			o.changed(at, merged[known], nil)
			delete(merged, known)
		case want == DropTag:
		case !ok || merged[known] != any(want):
			o.changed(at, merged[known], want)
			merged[known] = want
		}
	}
	return merged
}

// list merges a list; see [Overlay] for how elements are paired.
func (o *overlay) list(path string, v reflect.Value, opts fieldOptions, have any) any {
	old, _ := have.([]any)
	key := keyOf(v.Type().Elem(), opts)
	if key == nil {
		return o.sequence(path, v, opts, old, have != nil)
	}
	wanted := make(map[string]int, v.Len())
	for i := range v.Len() {
		wanted[key(plainKey(v.Index(i)))] = i
	}
	merged := make([]any, 0, v.Len())
	done := make(map[string]bool, v.Len())
	before := len(o.changes)
	for _, x := range old {
		k := key(x)
		i, ok := wanted[k]
		if !ok || done[k] {
			o.changed(element(path, x), x, nil)
			continue
		}
		done[k] = true
		if isKept(v.Index(i)) {
			merged = append(merged, x)
			continue
		}
		merged = append(merged, o.value(element(path, x), v.Index(i), fieldOptions{fold: opts.fold || opts.set}, x))
	}
	for i := range v.Len() {
		x := plainKey(v.Index(i))
		k := key(x)
		if done[k] || wanted[k] != i {
			continue
		}
		var fresh overlay
		made := fresh.value("", v.Index(i), opts, nil)
		o.changed(element(path, x), nil, made)
		merged = append(merged, made)
	}
	if opts.set && len(o.changes) > before {
		slices.SortStableFunc(merged, func(a, b any) int { return wanted[key(a)] - wanted[key(b)] })
	}
	return merged
}

// sequence merges a list without keys by position.
func (o *overlay) sequence(path string, v reflect.Value, opts fieldOptions, old []any, had bool) any {
	merged := make([]any, v.Len())
	var inner overlay
	for i := range v.Len() {
		var was any
		if i < len(old) {
			was = old[i]
		}
		merged[i] = inner.value("", v.Index(i), fieldOptions{fold: opts.fold}, was)
	}
	if len(inner.changes) > 0 || len(old) != len(merged) {
		var was any
		if had {
			was = old
		}
		o.changed(path, was, merged)
	}
	return merged
}

// isKept reports whether an element of a wanted list is there only to stay.
func isKept(v reflect.Value) bool {
	if v.Kind() != reflect.Struct {
		return false
	}
	k, ok := reflect.TypeAssert[interface{ keep() bool }](v)
	return ok && k.keep()
}

func element(path string, x any) string {
	label := ""
	switch x := x.(type) {
	case map[string]any:
		if name, ok := x["name"].(string); ok {
			label = name
		} else if id, ok := x["id"].(string); ok {
			label = ID(id).Name()
		}
	case string:
		label = x
	}
	return path + "[" + label + "]"
}

// keyOf returns how elements of a list are told apart, nil for by position.
func keyOf(elem reflect.Type, opts fieldOptions) func(any) string {
	for elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	if elem.Kind() == reflect.String && opts.set {
		return func(x any) string {
			s, _ := x.(string)
			return strings.ToLower(s)
		}
	}
	if elem.Kind() != reflect.Struct {
		return nil
	}
	for _, by := range []string{"name", "id"} {
		if slices.ContainsFunc(fieldsOf(elem), func(f field) bool { return f.name == by && !f.opts.read }) {
			return func(x any) string {
				object, _ := x.(map[string]any)
				s, _ := object[by].(string)
				return strings.ToLower(s)
			}
		}
	}
	return nil
}

// plainKey is an element of a wanted list in the form that keys read.
func plainKey(v reflect.Value) any {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return plain(v)
	}
	object := map[string]any{}
	for _, f := range fieldsOf(v.Type()) {
		if f.name == "name" || f.name == "id" {
			object[f.name] = v.FieldByIndex(f.index).String()
		}
	}
	return object
}

// plain is a scalar as encoding/json with UseNumber would decode it.
func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return json.Number(strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return json.Number(strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		return json.Number(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	default:
		return v.String()
	}
}

func isEmpty(x any) bool {
	switch x := x.(type) {
	case nil:
		return true
	case map[string]any:
		return len(x) == 0
	}
	return false
}

func text(x any) string {
	if x == nil {
		return ""
	}
	b, err := json.Marshal(x)
	if err != nil { // only trees of plain JSON values get here
		return fmt.Sprint(x)
	}
	return string(b)
}
