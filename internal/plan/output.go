package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
)

// Output is a text that stands for a value that Azure chooses. Examples are the address of a public IP and the
// principal id of an identity. The text is written where the value is needed. In a wanted view this is a text or id
// field. In a document it is a string or a part of one.
//
// [Diff] replaces the text by the value if the snapshot has it. Otherwise a step of the plan must write the resource.
// The step that uses the value comes after that step, and takes the value from Azure's answer to the write.
//
// In a list that is a set, the value takes its place in the order of the texts, once.
//
// The path is one of the resource's document: "properties.ipAddress". An element of a list is named by its name,
// "properties.frontends[web].id", by another field, "properties.dataDisks[lun=3].name", or by its index.
func Output(id azure.ID, path string) string {
	return marker + string(id) + mark + path + mark
}

const (
	mark   = "\x00" // in no text of Azure
	marker = mark + "output" + mark
	// The same as JSON has them.
	markJSON   = `\u0000`
	markerJSON = markJSON + "output" + markJSON
)

// output is an [Output] that was taken apart.
type output struct {
	id    azure.ID
	path  string
	inSet bool // it is an element of a set
}

// Late is a value of a step's body that is known only when an earlier step is done.
type Late struct {
	ID   azure.ID // the resource that has the value
	Path string   // in the resource's document
	Step int      // the index of the step that writes the resource
	Set  bool     // it is an element of a set
}

// outputsIn lists the outputs in a text. The text is of a view or, with escaped marks, of a document.
func outputsIn(s, marker, mark string) []output {
	var found []output
	for {
		_, rest, ok := strings.Cut(s, marker)
		if !ok {
			return found
		}
		id, rest, _ := strings.Cut(rest, mark)
		path, rest, _ := strings.Cut(rest, mark)
		found = append(found, output{id: azure.ID(id), path: path})
		s = rest
	}
}

// replaced is a copy of a view with each text replaced by what the function text returns for it. The function is told
// whether the text is in a set.
func replaced(v reflect.Value, inSet bool, text func(s string, inSet bool) string) reflect.Value {
	next := reflect.New(v.Type()).Elem()
	next.Set(v)
	switch v.Kind() {
	case reflect.String:
		next.SetString(text(v.String(), inSet))
	case reflect.Pointer:
		if !v.IsNil() {
			next.Set(reflect.New(v.Type().Elem()))
			next.Elem().Set(replaced(v.Elem(), false, text))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if next.Field(i).CanSet() {
				isSet := slices.Contains(strings.Split(v.Type().Field(i).Tag.Get("azure"), ","), "set")
				next.Field(i).Set(replaced(v.Field(i), isSet, text))
			}
		}
	case reflect.Slice:
		if !v.IsNil() {
			next.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				next.Index(i).Set(replaced(v.Index(i), inSet, text))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			next.Set(reflect.MakeMap(v.Type()))
			for key, value := range v.Seq2() {
				next.SetMapIndex(key, replaced(value, false, text))
			}
		}
	}
	return next
}

// substitute replaces the outputs in a document by JSON values, and sorts the sets that get a value. Everything else
// keeps its bytes.
func substitute(doc azure.Document, value func(output) (v json.RawMessage, inSet bool, err error)) (azure.Document, error) {
	var done []byte
	var elements []int // of sets: where they begin
	rest := []byte(doc)
	for {
		at := bytes.Index(rest, []byte(markerJSON))
		if at < 0 {
			return sortedAt(append(done, rest...), elements), nil
		}
		parts := bytes.SplitN(rest[at+len(markerJSON):], []byte(markJSON), 3)
		if len(parts) < 3 {
			return nil, fmt.Errorf("document of %s has half of an output", doc.ID())
		}
		v, inSet, err := value(output{id: azure.ID(unescaped(parts[0])), path: unescaped(parts[1])})
		if err != nil {
			return nil, err
		}
		before := rest[:at]
		rest = parts[2]
		switch {
		case bytes.HasSuffix(before, []byte(`"`)) && bytes.HasPrefix(rest, []byte(`"`)):
			before, rest = before[:len(before)-1], rest[1:]
			if isElement := bytes.HasSuffix(before, []byte("[")) || bytes.HasSuffix(before, []byte(",")); inSet && isElement {
				elements = append(elements, len(done)+len(before))
			}
		case v[0] == '"':
			v = v[1 : len(v)-1]
		case v[0] == '{' || v[0] == '[':
			return nil, fmt.Errorf("%s of %s is an object or a list and cannot be part of a text", parts[1], parts[0])
		}
		done = append(append(done, before...), v...)
	}
}

// sortedAt is a document with the sets of texts sorted that have elements at the given offsets. Each text is in a
// sorted set once.
func sortedAt(doc azure.Document, elements []int) azure.Document {
	first := len(doc) // of the list that was sorted last
	for _, at := range slices.Backward(elements) {
		start := bytes.LastIndexByte(doc[:at], '[')
		if at >= first || start < 0 {
			continue
		}
		first = start
		var texts []string
		list := json.NewDecoder(bytes.NewReader(doc[start:]))
		if list.Decode(&texts) != nil {
			continue // a text before it has the bracket
		}
		slices.Sort(texts)
		if sorted, err := json.Marshal(slices.Compact(texts)); err == nil {
			doc = slices.Concat(doc[:start], sorted, doc[start+int(list.InputOffset()):])
		}
	}
	return doc
}

func unescaped(text []byte) string {
	var s string
	if json.Unmarshal([]byte(`"`+string(text)+`"`), &s) != nil {
		return string(text)
	}
	return s
}

// valueAt is the value at a path of a document; see [Output].
func valueAt(doc azure.Document, path string) (json.RawMessage, bool) {
	value := json.RawMessage(doc)
	for _, step := range pathSteps(path) {
		var ok bool
		if name, isElement := strings.CutPrefix(step, "["); isElement {
			value, ok = elementOf(value, name)
		} else {
			value, ok = memberOf(value, step)
		}
		if !ok {
			return nil, false
		}
	}
	if text := string(value); text == "null" || text == `""` {
		return nil, false
	}
	return value, true
}

// pathSteps splits "a.b[c.d].e" into "a", "b", "[c.d", "e".
func pathSteps(path string) []string {
	var steps []string
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok {
			name, after, _ := strings.Cut(rest, "]")
			steps, path = append(steps, "["+name), strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(steps, path)
		}
		steps = append(steps, path[:end])
		path = strings.TrimPrefix(path[end:], ".")
	}
	return steps
}

func memberOf(object json.RawMessage, name string) (json.RawMessage, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil, false
	}
	value, ok := members[name]
	return value, ok
}

func elementOf(list json.RawMessage, which string) (json.RawMessage, bool) {
	var elements []json.RawMessage
	if json.Unmarshal(list, &elements) != nil {
		return nil, false
	}
	field, want, named := strings.Cut(which, "=")
	if !named {
		field, want = "name", which
	}
	for _, e := range elements {
		value, _ := memberOf(e, field)
		if strings.EqualFold(strings.Trim(string(value), `"`), want) {
			return e, true
		}
	}
	if i, err := strconv.Atoi(which); err == nil && i >= 0 && i < len(elements) {
		return elements[i], true
	}
	return nil, false
}

// bindEtag makes an update match the document as the earlier step at the same resource left it.
func (s *Step) bindEtag(earlier int) {
	s.IfMatch = Output(s.ID, "etag")
	s.Late = append(s.Late, Late{ID: s.ID, Path: "etag", Step: earlier})
}

// Bind returns the step with the values of its outputs. The function answer returns Azure's answer to an earlier
// step. An answer without the value is an error.
func (s Step) Bind(answer func(step int) azure.Document) (Step, error) {
	if len(s.Late) == 0 {
		return s, nil
	}
	value := func(o output) (json.RawMessage, bool, error) {
		for _, late := range s.Late {
			if late.ID.Equal(o.id) && late.Path == o.path {
				v, ok := valueAt(answer(late.Step), o.path)
				if !ok {
					return nil, false, fmt.Errorf("azure's answer to the write of %s has no %s, which %s %s needs",
						o.id, o.path, s.Op, s.ID)
				}
				v, err := s.shaped(v, o)
				return v, late.Set, err
			}
		}
		return nil, false, fmt.Errorf("nothing makes %s of %s, which %s %s needs", o.path, o.id, s.Op, s.ID)
	}
	for _, o := range outputsIn(s.IfMatch, marker, mark) {
		etag, _, err := value(o)
		if err != nil {
			return s, err
		}
		s.IfMatch = plainText(etag)
	}
	var err error
	s.Body, err = substitute(s.Body, value)
	return s, err
}

// shaped is an output's value as it is written into the step's body. The body of an
// action takes any value. Other bodies come from views, where outputs are texts.
func (s Step) shaped(v json.RawMessage, o output) (json.RawMessage, error) {
	if s.Op == Act {
		return v, nil
	}
	if v[0] == '{' || v[0] == '[' {
		return nil, errNoText(o, s.ID)
	}
	return json.Marshal(plainText(v))
}

func errNoText(o output, user azure.ID) error {
	return fmt.Errorf("%s of %s, which %s needs, is an object or a list and not a plain value", o.path, o.id, user)
}

// resolve is a node with each output replaced by its value, if the snapshot has it. The other outputs are late.
func (c *comparison) resolve(n Node) (Node, []output, error) {
	var late []output
	value := func(o output) (json.RawMessage, bool, error) {
		v, err := c.value(n, o)
		if err == nil && v == nil {
			late = append(late, o)
			v, err = json.Marshal(Output(o.id, o.path))
		}
		return v, o.inSet, err
	}
	if n.action != "" {
		var err error
		n.body, err = substitute(n.body, value)
		return n, late, err
	}
	if n.want == nil {
		return n, nil, nil
	}
	var failed error
	n.want = replaced(reflect.ValueOf(n.want), false, func(s string, inSet bool) string {
		for _, o := range outputsIn(s, marker, mark) {
			o.inSet = inSet
			v, _, err := value(o)
			if err == nil && (v[0] == '{' || v[0] == '[') {
				err = errNoText(o, n.ID)
			}
			if err != nil {
				failed = err
				continue
			}
			s = strings.ReplaceAll(s, Output(o.id, o.path), plainText(v))
		}
		return s
	}).Interface()
	return n, late, failed
}

func distinct(all []output) []output {
	var some []output
	for _, o := range all {
		if !slices.ContainsFunc(some, func(have output) bool { return have.path == o.path && have.id.Equal(o.id) }) {
			some = append(some, o)
		}
	}
	return some
}

func plainText(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// value is the value of an output that node n needs, nil if a step makes it.
func (c *comparison) value(n Node, o output) (json.RawMessage, error) {
	doc, _ := c.have.Get(o.id)
	v, there := valueAt(doc, o.path)
	if i, ok := c.want.index[o.id.Key()]; ok {
		d, err := c.draft(i)
		switch {
		case err != nil:
			return nil, err
		case d == nil:
		case d.step.Op == Delete:
			return nil, fmt.Errorf("%s needs %s of %s, which is deleted", n.ID, o.path, o.id)
		case d.step.Op != Update || !there || d.touches(o.path):
			return nil, nil
		}
	}
	if !there {
		return nil, fmt.Errorf("%s needs %s of %s, which has none, and nothing writes it", n.ID, o.path, o.id)
	}
	return v, nil
}

// touches reports whether an update changes what is at a path, or around it.
func (d draft) touches(path string) bool {
	return slices.ContainsFunc(d.step.Changes, func(c azure.Change) bool {
		return strings.HasPrefix(c.Path, path) || strings.HasPrefix(path, c.Path)
	})
}

// Shown is a text of a view with words for people in place of outputs. The function done names the finished step of a
// resource.
func Shown(text string, done func(azure.ID) string) string {
	for _, o := range outputsIn(text, marker, mark) {
		text = strings.ReplaceAll(text, Output(o.id, o.path), "(known after "+done(o.id)+")")
	}
	return text
}

// shownJSON is [Shown] of a part of a document.
func shownJSON(text string, done func(azure.ID) string) string {
	for _, o := range outputsIn(text, markerJSON, markJSON) {
		quoted, err := json.Marshal(Output(o.id, o.path))
		if err != nil { // no text is refused
			continue
		}
		token := strings.Trim(string(quoted), `"`)
		known := "(known after " + done(o.id) + ")"
		text = strings.ReplaceAll(strings.ReplaceAll(text, string(quoted), known), token, known)
	}
	return text
}

// bindLate notes which steps make the outputs of a step, and names these steps in its changes. The function made
// finds the step that writes a resource.
func (s *Step) bindLate(late []output, made func(azure.ID) (Step, int)) {
	for _, o := range late {
		_, i := made(o.id)
		s.Late = append(s.Late, Late{ID: o.id, Path: o.path, Step: i, Set: o.inSet})
	}
	if len(late) == 0 {
		return
	}
	s.Changes = slices.Clone(s.Changes)
	done := func(id azure.ID) string {
		step, _ := made(id)
		return step.done()
	}
	for i, c := range s.Changes {
		s.Changes[i].Path, s.Changes[i].To = Shown(c.Path, done), shownJSON(c.To, done)
	}
}
