package definition

import "fmt"

// joiner joins the documents of layers.
type joiner struct {
	document string
	problems Problems
}

// join adds what a later layer says to a document. Maps are joined field by field, and lists with the property Union get
// the elements of both. A field that two layers set differently is a conflict: neither layer wins.
func (j *joiner) join(s *shape, into, from *value, path string) {
	for _, name := range from.order {
		field, had := from.fields[name], into.fields[name]
		if had == nil {
			into.set(name, field)
			into.keysAt[name] = from.keysAt[name]
			continue
		}
		below := name
		if path != "" {
			below = path + "." + name
		}
		var child *shape
		if s != nil {
			if child = s.names[name]; child == nil {
				child = s.item
			}
		}
		switch {
		case had.kind == isMap && field.kind == isMap:
			j.join(child, had, field, below)
		case had.same(field):
		case had.kind == isList && field.kind == isList && child != nil && child.Union:
			had.addItems(field)
		default:
			j.problems = append(j.problems, Problem{At: field.at, Path: j.document + ": " + below, Value: field.shown(),
				Message: fmt.Sprintf("conflicts with %s, which has %s: want the field in one layer, or the same value in both", had.at,
					had.shown())})
		}
	}
}

// addItems adds the elements that the list does not have.
func (v *value) addItems(from *value) {
	for _, item := range from.items {
		found := false
		for _, had := range v.items {
			found = found || had.same(item)
		}
		if !found {
			v.items = append(v.items, item)
		}
	}
}
