package azure

import (
	"bytes"
	"encoding/json"
	"slices"
)

// raw is the text of one JSON value that is known to be well formed, nil for none.
// [Overlay] works on it, so that what it does not change keeps its very bytes.
type raw []byte

// member is one member of a JSON object; key is still quoted.
type member struct{ key, value raw }

func (r raw) isObject() bool { return len(r) > 0 && r[0] == '{' }
func (r raw) isList() bool   { return len(r) > 0 && r[0] == '[' }
func (r raw) isText() bool   { return len(r) > 0 && r[0] == '"' }

// none reports whether there is no value: nothing at all, or null.
func (r raw) none() bool { return len(r) == 0 || r[0] == 'n' }

// text is the string that a JSON string stands for, "" for any other value.
func (r raw) text() string {
	if !r.isText() {
		return ""
	}
	if plain := r[1 : len(r)-1]; bytes.IndexByte(plain, '\\') < 0 {
		return string(plain)
	}
	var s string
	_ = json.Unmarshal(r, &s) // it is well formed
	return s
}

// sorted is the value as people compare it: without blanks, members in the order of
// their names.
func (r raw) sorted() string {
	switch {
	case len(r) == 0:
		return ""
	case r.isText():
		return string(encoded(r.text()))
	case !r.isObject() && !r.isList():
		return string(r)
	}
	var tree any
	dec := json.NewDecoder(bytes.NewReader(r))
	dec.UseNumber()
	if dec.Decode(&tree) != nil {
		return string(r)
	}
	b, err := json.Marshal(tree)
	if err != nil {
		return string(r)
	}
	return string(b)
}

// eachMember yields the quoted names and the values of an object. Any other value has none.
func (r raw) eachMember(yield func(member) bool) {
	if !r.isObject() {
		return
	}
	for at := blanks(r, 1); r[at] != '}'; {
		keyEnd := end(r, at)
		value := blanks(r, blanks(r, keyEnd)+1) // behind the colon
		valueEnd := end(r, value)
		if !yield(member{r[at:keyEnd], r[value:valueEnd]}) {
			return
		}
		if at = blanks(r, valueEnd); r[at] == ',' {
			at = blanks(r, at+1)
		}
	}
}

// members splits an object. Any other value has none.
func (r raw) members() []member {
	if !r.isObject() {
		return nil
	}
	return slices.AppendSeq(make([]member, 0, 12), r.eachMember)
}

// member is the value of a member of an object, nil for none or null. Of several with the same
// name the last counts, as in encoding/json.
func (r raw) member(name string) (value raw) {
	for m := range r.eachMember {
		if m.named(name) {
			value = m.value
		}
	}
	if value.none() {
		return nil
	}
	return value
}

// elements splits a list. Any other value has none.
func (r raw) elements() []raw {
	if !r.isList() {
		return nil
	}
	var all []raw
	for at := blanks(r, 1); r[at] != ']'; {
		valueEnd := end(r, at)
		all = append(all, r[at:valueEnd])
		if at = blanks(r, valueEnd); r[at] == ',' {
			at = blanks(r, at+1)
		}
	}
	return all
}

// memberOf is the index and the value of a member among all of an object, as [raw.member] has it.
func memberOf(all []member, name string) (index int, value raw) {
	for i, m := range slices.Backward(all) {
		if m.named(name) {
			if m.value.none() {
				return i, nil
			}
			return i, m.value
		}
	}
	return -1, nil
}

func (m member) named(name string) bool {
	plain := m.key[1 : len(m.key)-1]
	return string(plain) == name || bytes.IndexByte(plain, '\\') >= 0 && m.key.text() == name
}

// blanks is the index of the first byte from i that is no blank.
func blanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// end is the index behind the value that begins at i.
func end(b []byte, i int) int {
	switch b[i] {
	case '"':
		return endOfText(b, i)
	case '{', '[':
		for depth := 0; ; i++ {
			switch b[i] {
			case '"':
				i = endOfText(b, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(b) && !bytes.ContainsRune([]byte(",]} \n\t\r"), rune(b[i])) {
		i++
	}
	return i
}

func endOfText(b []byte, i int) int {
	for i++; ; i++ {
		i += bytes.IndexByte(b[i:], '"')
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// joinMembers writes an object.
func joinMembers(all []member) raw {
	text := raw{'{'}
	for i, m := range all {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, m.key...), ':'), m.value...)
	}
	return append(text, '}')
}

// joinElements writes a list.
func joinElements(all []raw) raw {
	text := raw{'['}
	for i, x := range all {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, x...)
	}
	return append(text, ']')
}

// encoded is a plain value as JSON.
func encoded(v any) raw {
	b, err := json.Marshal(v)
	if err != nil { // only text, numbers, truth values and lists of them get here
		return nil
	}
	return b
}
