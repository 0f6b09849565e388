package azure

import "strings"

// Part names a part of documents: the field at Path, which leads through lists. With
// Having, it is those elements of the list at Path that have a field there.
type Part struct{ Path, Having string }

// Without is the document without the parts. A list that loses its last element goes
// too. A document that is no JSON stays as it is.
func (d Document) Without(parts ...Part) Document {
	text, err := parsed(d)
	if err != nil {
		return d
	}
	for _, p := range parts {
		text = p.cut(text, strings.Split(p.Path, "."))
	}
	if len(text) == 0 {
		return d
	}
	return Document(text)
}

// cut returns a value without the part. The path leads from the value to the part.
func (p Part) cut(x raw, path []string) raw {
	if x.isList() {
		elements := x.elements()
		before := 0
		for i, element := range elements {
			before += len(element)
			elements[i] = p.cut(element, path)
			before -= len(elements[i])
		}
		if before == 0 {
			return x
		}
		return joinElements(elements)
	}
	merged := object{members: x.members()}
	_, value := memberOf(merged.members, path[0])
	var left raw
	switch {
	case value == nil:
		return x
	case len(path) > 1:
		left = p.cut(value, path[1:])
	case p.Having != "":
		left = p.rest(value)
	}
	switch {
	case left == nil:
		merged.remove(path[0])
	case len(left) < len(value):
		merged.set(path[0], left)
	}
	return merged.text(x)
}

// rest is a list without the elements that are the part, nil if none is left.
func (p Part) rest(list raw) raw {
	var kept []raw
	all := list.elements()
	for _, element := range all {
		x := element
		for name := range strings.SplitSeq(p.Having, ".") {
			_, x = memberOf(x.members(), name)
		}
		if x == nil {
			kept = append(kept, element)
		}
	}
	switch len(kept) {
	case len(all):
		return list
	case 0:
		return nil
	}
	return joinElements(kept)
}
