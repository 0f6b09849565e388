package azure

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// Overlay writes the view want over the document have and lists the changes. The view is a struct with `json` and
// `azure` tags, such as a [Resource]. The document may be empty. No changes means that have already is what is
// wanted.
//
// Fields that the view's type does not know are kept wherever they are. A list in the view states the whole
// membership of that list. Its elements are paired by their keys, and keep their unknown fields and their order.
// Elements that the view does not name are removed, and new ones are appended. A list tagged "set" that changes takes
// the view's order. A nil list or pointer, or an empty `omitempty` value, is no opinion unless the field is tagged
// "exact".
func Overlay(have Document, want any) (Document, []Change, error) {
	return lay(have, want, rights{whole: true})
}

// Merge is [Overlay] for documents that are shared with others: a list states only the elements that are ours. The
// owner of the list's element type says which elements of the document are ours. These become what the view says, or
// are removed if the view does not name them. All other elements stay, byte for byte. A view that would change one of
// them is an error. So is a new element that its owner would not recognize.
//
// In a list without an owner, no element is removed, and the elements that the view names are merged. Inside an
// element of ours, every list is whole. A list of plain values, or a list by position, is one value and is replaced
// as a whole. The exception is a "set" with an owner of its element type.
func Merge(have Document, want any, owners ...Owner) (Document, []Change, error) {
	return lay(have, want, rights{owners: owners})
}

func lay(have Document, want any, r rights) (Document, []Change, error) {
	tree, err := parsed(have)
	if err != nil {
		return nil, nil, err
	}
	o := overlay{rights: r}
	merged := o.value(reflect.ValueOf(want), fieldOptions{}, tree)
	if o.err != nil {
		return nil, nil, fmt.Errorf("document of %s: %w", nameless(have.ID()), o.err)
	}
	if len(o.changes) == 0 && len(have) > 0 {
		return have, nil, nil
	}
	return Document(merged), o.changes, nil
}

// parsed returns a document's text after a check that it is well-formed JSON.
func parsed(doc Document) (raw, error) {
	if len(doc) == 0 {
		return nil, nil
	}
	if !json.Valid(doc) {
		var text json.RawMessage
		return nil, fmt.Errorf("document of %s: %w", nameless(doc.ID()), json.Unmarshal(doc, &text))
	}
	text := raw(bytes.TrimSpace(doc))
	if text.none() {
		return nil, nil
	}
	return text, nil
}

type overlay struct {
	rights  rights
	silent  bool     // inside a new value, which is one change noted elsewhere
	at      []step   // to the value that is being merged
	members []member // of the objects around it, in one buffer for all
	changes []Change
	err     error // the first one
}

// step leads from a value to one inside it: the member of a name, or an element of a list.
type step struct {
	name string
	list *pairing // nil for a member
	elem raw
}

// path is the way to the value that is being merged. It is built only where a change or an error names the value,
// because most values are never named.
func (o *overlay) path() string {
	path := ""
	for _, s := range o.at {
		switch {
		case s.list != nil:
			path = s.list.label(path, s.elem)
		case path == "" || s.name[0] == '[':
			path += s.name
		default:
			path += "." + s.name
		}
	}
	return path
}

func (o *overlay) enter(s step) { o.at = append(o.at, s) }
func (o *overlay) leave()       { o.at = o.at[:len(o.at)-1] }

func (o *overlay) changed(from, to raw) {
	if o.silent {
		o.changes = append(o.changes, Change{})
		return
	}
	o.changes = append(o.changes, Change{Path: o.path(), From: from.sorted(), To: to.sorted()})
}

func (o *overlay) fail(err error) {
	if o.err == nil {
		o.err = fmt.Errorf("%s: %w", o.path(), err)
	}
}

// value merges v over have and returns the result. It changes neither. What stays as it is keeps its very bytes.
func (o *overlay) value(v reflect.Value, opts fieldOptions, have raw) raw {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct:
		return o.object(v, have)
	case reflect.Slice:
		return o.list(v, opts, have)
	case reflect.Map:
		return o.tags(v, have)
	default:
		return o.scalar(v, opts, have)
	}
}

func (o *overlay) object(v reflect.Value, have raw) raw {
	if !have.none() && !have.isObject() {
		o.changed(have, raw("{}"))
	}
	outer := len(o.members)
	o.members = slices.AppendSeq(o.members, have.eachMember)
	merged := object{members: slices.Clip(o.members[outer:])}
	defer func() { o.members = o.members[:outer] }()
	for _, f := range fieldsOf(v.Type()) {
		o.field(v.FieldByIndex(f.index), f, &merged)
	}
	return merged.text(have)
}

// object is an object of a document that is being merged.
type object struct {
	members []member
	edited  bool
}

func (m *object) set(name string, value raw) {
	m.edited = true
	if i, _ := memberOf(m.members, name); i >= 0 {
		m.members[i].value = value
		return
	}
	m.members = append(m.members, member{encoded(name), value})
}

func (m *object) remove(name string) {
	m.edited = true
	m.members = slices.DeleteFunc(m.members, func(x member) bool { return x.named(name) })
}

// text is the merged object. A new object has its members in the order of their names, an existing one keeps its
// order.
func (m *object) text(have raw) raw {
	if have.isObject() && !m.edited {
		return have
	}
	if !have.isObject() {
		slices.SortFunc(m.members, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	}
	return joinMembers(m.members)
}

func (o *overlay) field(v reflect.Value, f field, merged *object) {
	if f.opts.read {
		return
	}
	i, was := memberOf(merged.members, f.name)
	o.enter(step{name: f.name})
	defer o.leave()
	if f.absent(v) {
		if f.opts.exact && was != nil {
			o.changed(was, nil)
			merged.remove(f.name)
		}
		return
	}
	before := len(o.changes)
	now := o.value(v, f.opts, was)
	if len(o.changes) > before || i < 0 && string(now) != "{}" {
		merged.set(f.name, now)
	}
}

func (o *overlay) scalar(v reflect.Value, opts fieldOptions, have raw) raw {
	if !have.none() && sameScalar(v, opts, have) {
		return have
	}
	want := plain(v)
	o.changed(have, want)
	return want
}

func sameScalar(v reflect.Value, opts fieldOptions, have raw) bool {
	if v.Kind() != reflect.String {
		want := plain(v)
		return string(have) == string(want) || v.Kind() != reflect.Bool && sameNumber(have, want)
	}
	if !have.isText() {
		return false
	}
	b := v.String()
	if string(have[1:len(have)-1]) == b && !strings.Contains(b, `\`) {
		return true
	}
	a := have.text()
	switch {
	case v.Type() == reflect.TypeFor[ID]():
		return strings.EqualFold(a, b)
	case opts.fold:
		return strings.EqualFold(withoutBlanks(a), withoutBlanks(b))
	}
	return a == b
}

func sameNumber(a, b raw) bool {
	x, errX := strconv.ParseFloat(string(a), 64)
	y, errY := strconv.ParseFloat(string(b), 64)
	return errX == nil && errY == nil && x == y
}

func withoutBlanks(s string) string { return strings.ReplaceAll(s, " ", "") }

// tags merges a map of text by name in any case.
func (o *overlay) tags(v reflect.Value, have raw) raw {
	merged := object{members: have.members()}
	spelling := make(map[string]string, len(merged.members))
	for _, m := range merged.members {
		name := m.key.text()
		spelling[strings.ToLower(name)] = name
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
		o.enter(step{name: "[" + known + "]"})
		_, was := memberOf(merged.members, known)
		switch {
		case want == DropTag && ok:
			o.changed(was, nil)
			merged.remove(known)
		case want == DropTag:
		case !ok || !was.isText() || was.text() != want:
			o.changed(was, encoded(want))
			merged.set(known, encoded(want))
		}
		o.leave()
	}
	return merged.text(have)
}

// plain is a scalar as JSON.
func plain(v reflect.Value) raw {
	switch v.Kind() {
	case reflect.Bool:
		return strconv.AppendBool(nil, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(nil, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(nil, v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		return strconv.AppendFloat(nil, v.Float(), 'g', -1, 64)
	default:
		return encoded(v.String())
	}
}
