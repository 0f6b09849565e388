package azure

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Owner tells which elements of the lists of one element type are ours.
type Owner struct {
	elem reflect.Type
	ours func(raw) bool
}

// Ours is the owner of the elements of type E for which the predicate returns true. The predicate gets each element
// as Azure has it. An element that does not have the shape of E is not ours.
//
//	azure.Ours(func(r azure.Child[network.Route]) bool { return strings.HasPrefix(r.Name, "kaz-") })
func Ours[E any](ours func(E) bool) Owner {
	return Owner{elem: reflect.TypeFor[E](), ours: func(x raw) bool {
		var e E
		return json.Unmarshal(x, &e) == nil && ours(e)
	}}
}

// Named is the owner of the elements of type E with a name for which the predicate returns true.
func Named[E any](ours func(name string) bool) Owner {
	return Owner{elem: reflect.TypeFor[E](), ours: func(x raw) bool {
		name := x.member("name")
		return ours(name.text())
	}}
}

// rights is what an overlay may do to the elements of lists that its view does not
// name.
type rights struct {
	// whole says that the view states the whole membership of each list.
	whole  bool
	owners []Owner
}

// owner is the owner of a list's element type, nil if there is none.
func (r rights) owner(elem reflect.Type) *Owner {
	if r.whole {
		return nil
	}
	for i := range r.owners {
		if r.owners[i].elem == elem {
			return &r.owners[i]
		}
	}
	return nil
}

// list merges a list; see [Overlay] and [Merge] for how elements are paired.
func (o *overlay) list(v reflect.Value, opts fieldOptions, have raw) raw {
	elem := pointed(v.Type().Elem())
	if err := checkList(elem, opts); err != nil {
		o.fail(err)
		return have
	}
	owner := o.rights.owner(elem)
	switch {
	case elem.Kind() == reflect.Struct && !opts.positional:
		return o.keyed(v, opts, have, pairing{fields: keyFields(elem, opts), owner: owner, whole: o.rights.whole})
	case elem.Kind() == reflect.String && opts.set:
		return o.keyed(v, opts, have, pairing{owner: owner, whole: owner == nil})
	}
	return o.sequence(v, opts, have)
}

// pairing is how the elements of one list are told apart, and which of them the view
// may take away.
type pairing struct {
	fields []field // of the key; none for a set of texts
	owner  *Owner
	whole  bool
}

func (p pairing) ours(x raw) bool { return p.whole || p.owner != nil && p.owner.ours(x) }

func (o *overlay) keyed(v reflect.Value, opts fieldOptions, have raw, p pairing) raw {
	m := merging{pairing: p, opts: opts, view: v, wanted: make(map[string]int, v.Len()), done: make(map[string]bool, v.Len())}
	for i := range v.Len() {
		m.wanted[p.keyOf(v.Index(i))] = i
	}
	before := len(o.changes)
	o.mergeOld(&m, have.elements())
	o.addNew(&m)
	if opts.ordered && p.whole {
		o.order(&m, have)
	}
	if len(o.changes) == before && !have.none() {
		return have
	}
	if opts.set && p.whole && len(o.changes) > before {
		slices.SortStableFunc(m.result, func(a, b raw) int { return m.wanted[p.keyIn(a)] - m.wanted[p.keyIn(b)] })
	}
	return joinElements(m.result)
}

// order gives the elements the order of the view. An order that differs is a change of the list.
func (o *overlay) order(m *merging, have raw) {
	byView := func(a, b raw) int { return m.wanted[m.keyIn(a)] - m.wanted[m.keyIn(b)] }
	if slices.IsSortedFunc(m.result, byView) {
		return
	}
	slices.SortStableFunc(m.result, byView)
	o.changed(m.names(have.elements()), m.names(m.result))
}

// names are the keys of elements as a list, for people.
func (p pairing) names(elements []raw) raw {
	names := make([]string, len(elements))
	for i, x := range elements {
		names[i] = strings.Trim(p.label("", x), "[]")
	}
	return encoded(names)
}

// merging is one list that is being merged.
type merging struct {
	pairing
	opts   fieldOptions
	view   reflect.Value
	wanted map[string]int // index in the view by key
	done   map[string]bool
	result []raw
}

// mergeOld decides what becomes of the elements of the document.
func (o *overlay) mergeOld(m *merging, old []raw) {
	m.result = make([]raw, 0, max(m.view.Len(), len(old)))
	for _, x := range old {
		k := m.keyIn(x)
		i, stated := m.wanted[k]
		switch {
		case stated && !m.done[k]:
			m.done[k] = true
			m.result = append(m.result, o.element(m, m.view.Index(i), x))
		case m.ours(x):
			o.enter(m.step(x))
			o.changed(x, nil)
			o.leave()
		default:
			m.result = append(m.result, x)
		}
	}
}

// addNew appends the elements of the view that the document does not have.
func (o *overlay) addNew(m *merging) {
	for i := range m.view.Len() {
		k := m.keyOf(m.view.Index(i))
		if m.done[k] || m.wanted[k] != i {
			continue
		}
		fresh := overlay{rights: rights{whole: true}, silent: true}
		made := fresh.value(m.view.Index(i), m.opts.ofElements(), nil)
		o.enter(m.step(made))
		if fresh.err != nil {
			o.fail(fresh.err)
		}
		if m.owner != nil && !m.owner.ours(made) {
			o.fail(errNotOurs("once it is added"))
		}
		o.changed(nil, made)
		o.leave()
		m.result = append(m.result, made)
	}
}

// element merges an element of the document that the view names.
func (o *overlay) element(m *merging, v reflect.Value, x raw) raw {
	o.enter(m.step(x))
	defer o.leave()
	outer, before := o.rights, len(o.changes)
	if m.owner != nil {
		o.rights = rights{whole: true} // every list inside an element of ours is whole
	}
	merged := o.value(v, m.opts.ofElements(), x)
	o.rights = outer
	switch {
	case m.owner == nil || len(o.changes) == before:
	case !m.owner.ours(x):
		o.fail(errNotOurs("before the change"))
	case !m.owner.ours(merged):
		o.fail(errNotOurs("after the change"))
	}
	return merged
}

func errNotOurs(when string) error {
	return fmt.Errorf("the owner of its list does not count it as ours %s", when)
}

// ofElements are the options of a list that hold for its elements too.
func (opts fieldOptions) ofElements() fieldOptions { return fieldOptions{fold: opts.fold || opts.set} }

// sequence merges a list without keys by position: it is one value.
func (o *overlay) sequence(v reflect.Value, opts fieldOptions, have raw) raw {
	old := have.elements()
	merged := make([]raw, v.Len())
	inner := overlay{rights: rights{whole: true}, silent: true}
	for i := range v.Len() {
		var was raw
		if i < len(old) && !old[i].none() {
			was = old[i]
		}
		merged[i] = inner.value(v.Index(i), fieldOptions{fold: opts.fold}, was)
	}
	if inner.err != nil {
		o.fail(inner.err)
	}
	if len(inner.changes) == 0 && len(old) == len(merged) && !have.none() {
		return have
	}
	now := joinElements(merged)
	if len(inner.changes) > 0 || len(old) != len(merged) {
		o.changed(have, now)
	}
	return now
}

// separator stands between the parts of a key; no part has it.
const separator = "\x1f"

// keyOf is the key of an element of a view.
func (p pairing) keyOf(v reflect.Value) string {
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if len(p.fields) == 0 {
		return strings.ToLower(v.String())
	}
	parts := make([]string, len(p.fields))
	for i, f := range p.fields {
		field := v.FieldByIndex(f.index)
		if field.Kind() == reflect.String {
			parts[i] = f.keyText(field.String())
		} else {
			parts[i] = f.keyPart(encoded(field.Interface()))
		}
	}
	return strings.Join(parts, separator)
}

// keyIn is the key of an element of a document.
func (p pairing) keyIn(x raw) string {
	if len(p.fields) == 0 {
		return strings.ToLower(x.text())
	}
	if len(p.fields) == 1 {
		return p.fields[0].keyPart(x.member(p.fields[0].name))
	}
	parts := make([]string, len(p.fields))
	for i, f := range p.fields {
		parts[i] = f.keyPart(x.member(f.name))
	}
	return strings.Join(parts, separator)
}

var zeros = []string{"0", "false", `""`, "[]", "{}"}

// keyPart is a key field's value in the form in which equal values have the same text. It follows the rule by which
// [Overlay] compares the field. An absent field counts as the zero value.
func (f field) keyPart(x raw) string {
	switch {
	case x.none() || slices.Contains(zeros, string(x)):
		return ""
	case x.isText():
		return f.keyText(x.text())
	case x[0] == '-' || x[0] >= '0' && x[0] <= '9':
		if n, err := strconv.ParseFloat(string(x), 64); err == nil {
			return strconv.FormatFloat(n, 'f', -1, 64)
		}
	}
	return x.sorted()
}

func (f field) keyText(s string) string {
	switch {
	case f.opts.fold:
		return strings.ToLower(withoutBlanks(s))
	case f.typ == reflect.TypeFor[ID]():
		return strings.ToLower(s)
	}
	return s
}

// step leads to an element of the list.
func (p *pairing) step(x raw) step { return step{list: p, elem: x} }

// label is the path of an element: the list's with the element's key.
func (p pairing) label(path string, x raw) string {
	if len(p.fields) == 0 {
		return path + "[" + x.text() + "]"
	}
	parts := make([]string, len(p.fields))
	for i, f := range p.fields {
		value := x.member(f.name)
		switch parts[i] = value.text(); {
		case f.typ == reflect.TypeFor[ID]():
			parts[i] = ID(parts[i]).Name()
		case !value.isText():
			parts[i] = value.sorted()
		}
	}
	return path + "[" + strings.Join(parts, ",") + "]"
}
