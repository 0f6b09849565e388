package model

import (
	"bytes"
	"cmp"
	"net/http"
)

// Answer shapes the answers of a type for an API version.
type Answer struct {
	version string
	of      *structure
}

// Answer returns what an API version shows of a type, nil if it shows all members or if that is not known.
func (t *Table) Answer(of, version string) *Answer {
	if t == nil {
		return nil
	}
	w := cmp.Or(t.writes[key(http.MethodGet, of)], t.writes[key(http.MethodPut, of)])
	s := t.structures[w.body]
	if version = w.old(version); version == "" || s == nil || version > s.absent {
		return nil
	}
	return &Answer{version, s}
}

// Resource returns the JSON text of a resource without the members that the API version lacks. The text is valid. A nil answer
// returns it as it is.
func (a *Answer) Resource(text []byte) []byte {
	return a.trim(text, "", a.structure())
}

// List is Resource for a page of a list, an object with the resources as value.
func (a *Answer) List(text []byte) []byte {
	if a == nil {
		return text
	}
	page := member{name: "value", lists: "[]", inner: a.of}
	return a.trim(text, "", &structure{members: map[string]member{"value": page}, absent: a.of.absent})
}

func (a *Answer) structure() *structure {
	if a == nil {
		return nil
	}
	return a.of
}

func (a *Answer) trim(text []byte, lists string, of *structure) []byte {
	if a == nil {
		return text
	}
	t := trimming{version: a.version, text: text, out: make([]byte, 0, len(text))}
	t.value(lists, of)
	return t.out
}

// trimming copies JSON text.
type trimming struct {
	version string
	text    []byte
	at      int // the next byte of the text
	out     []byte
}

// value copies a value: of a structure, in the lists and maps that a member has, or of none.
func (t *trimming) value(lists string, of *structure) {
	t.space()
	switch c := t.text[t.at]; {
	case of == nil || of.absent < t.version:
		t.copy()
	case lists == "" && c == '{':
		t.elements(func() { t.member(of) })
	case lists != "" && c == '[' && lists[0] == c:
		t.elements(func() { t.comma(); t.value(lists[2:], of) })
	case lists != "" && c == '{' && lists[0] == c:
		t.elements(func() {
			t.comma()
			t.copy()
			t.colon()
			t.value(lists[2:], of)
		})
	default:
		t.copy()
	}
}

// elements copies the brackets of a list or an object. The function copies an element.
func (t *trimming) elements(element func()) {
	t.out = append(t.out, t.text[t.at])
	for t.at++; ; {
		t.space()
		switch c := t.text[t.at]; c {
		case ']', '}':
			t.out = append(t.out, c)
			t.at++
			return
		case ',':
			t.at++
			t.space()
		}
		element()
	}
}

// comma separates an element from those before it.
func (t *trimming) comma() {
	if last := t.out[len(t.out)-1]; last != '{' && last != '[' {
		t.out = append(t.out, ',')
	}
}

func (t *trimming) colon() {
	t.space()
	t.at++
	t.out = append(t.out, ':')
}

// properties is the one member of resources that is shown without any in it.
const properties = "properties"

// member copies a member of an object, unless the API version lacks it, or all that is in it.
func (t *trimming) member(of *structure) {
	name := t.text[t.at:t.end()]
	m := of.member(name)
	if m.lackedBy(t.version) {
		t.at += len(name)
		t.space()
		t.at++
		t.space()
		t.at = t.end()
		return
	}
	before := len(t.out)
	t.comma()
	t.copy()
	t.colon()
	from, value := t.at, len(t.out)
	t.value(m.lists, m.inner)
	if string(t.out[value:]) == "{}" && m.name != properties && t.at-from > len("{}") && m.inner != nil {
		t.out = t.out[:before]
	}
}

// member finds a member by its name in quotes.
func (s *structure) member(quoted []byte) member {
	var lower [64]byte // longer than all names
	n := copy(lower[:], quoted[1:len(quoted)-1])
	for i, c := range lower[:n] {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return s.members[string(lower[:n])]
}

func (t *trimming) space() {
	for t.text[t.at] <= ' ' {
		t.at++
	}
}

func (t *trimming) copy() {
	end := t.end()
	t.out = append(t.out, t.text[t.at:end]...)
	t.at = end
}

// end is where the value ends that begins at the next byte.
func (t *trimming) end() int {
	depth := 0
	for at := t.at; at < len(t.text); at++ {
		switch c := t.text[at]; c {
		case '"':
			at = t.quote(at + 1)
			if depth == 0 {
				return at + 1
			}
		case '{', '[':
			depth++
		case '}', ']', ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return at
			}
			if c != '}' && c != ']' {
				continue
			}
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return len(t.text)
}

// quote is where the quote is that ends a string. at is in the string.
func (t *trimming) quote(at int) int {
	for {
		at += bytes.IndexByte(t.text[at:], '"')
		escapes := 0
		for t.text[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
		at++
	}
}
