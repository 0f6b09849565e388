package web

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// diffLine is a member that differs between two versions of a document.
type diffLine struct {
	Sign     string // "+" added, "-" removed, "~" changed
	Path     string
	Old, New string // JSON
}

// differences are the members in which two documents differ, in the order of their paths. Etags differ with every write, so they are
// left out.
func differences(old, fresh behaviour.Object) []diffLine {
	var d differ
	d.objects("", old, fresh)
	return d.lines
}

type differ struct{ lines []diffLine }

func (d *differ) add(sign, path, old, fresh string) {
	d.lines = append(d.lines, diffLine{sign, strings.TrimPrefix(path, "."), clip(old), clip(fresh)})
}

func clip(text string) string {
	if len(text) <= mostValue {
		return text
	}
	return strings.ToValidUTF8(text[:mostValue], "") + "…"
}

func (d *differ) objects(path string, old, fresh behaviour.Object) {
	keys := maps.Clone(old)
	maps.Copy(keys, fresh)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if key == "etag" {
			continue
		}
		before, was := old[key]
		after, is := fresh[key]
		switch at := path + "." + key; {
		case !was:
			d.add("+", at, "", quoted(after))
		case !is:
			d.add("-", at, quoted(before), "")
		default:
			d.values(at, before, after)
		}
	}
}

func (d *differ) values(path string, old, fresh any) {
	if behaviour.Equal(old, fresh) {
		return
	}
	oldObject, isObject := old.(behaviour.Object)
	freshObject, areObjects := fresh.(behaviour.Object)
	oldList, isList := old.([]any)
	freshList, areLists := fresh.([]any)
	switch {
	case isObject && areObjects:
		d.objects(path, oldObject, freshObject)
	case isList && areLists:
		d.lists(path, oldList, freshList)
	default:
		d.add("~", path, quoted(old), quoted(fresh))
	}
}

// lists compares elements with the same name, or at the same index if they have none.
func (d *differ) lists(path string, old, fresh []any) {
	before, after := named(old), named(fresh)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		at := path + "[" + name + "]"
		o, was := before[name]
		n, is := after[name]
		switch {
		case !was:
			d.add("+", at, "", quoted(n))
		case !is:
			d.add("-", at, quoted(o), "")
		default:
			d.values(at, o, n)
		}
	}
}

// named are the elements of a list by their names, or by their indexes.
func named(list []any) map[string]any {
	all := map[string]any{}
	for i, element := range list {
		name := fmt.Sprintf("%03d", i)
		if o, ok := element.(behaviour.Object); ok {
			if text := behaviour.Text(o, "name"); text != "" && all[text] == nil {
				name = text
			}
		}
		all[name] = element
	}
	return all
}
