// Package model judges the bodies of requests by the official models of Azure's resource types. Layer L2: the standard library
// only.
//
// The table comes from the source of the official Go SDK, which is generated from Azure's REST specifications. So neither the
// local Azure nor its clients decide what a type has.
package model

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:generate -command models go -C ../../../../test/contract run ./models
//go:generate models -out ../../internal/localazure/core/model/table.txt -tagged ../../internal/cluster/units/tagged.txt

//go:embed table.txt
var official string

// Table has the models of all types that the local Azure and the official SDK both know.
type Table struct {
	writes     map[string]write
	structures map[string]structure
	enums      map[string][]string
}

// write is a verb of a type. version is the API version of the model.
type write struct{ version, body string }

// structure has the members of an object by their names in lower case: Azure reads names in any case.
type structure map[string]member

type member struct {
	name               string
	kind               string // as in the table
	required, readOnly bool
}

// open is the member of structures with further members of any name.
const open = "*"

// Official returns the table. It is read once.
var Official = sync.OnceValue(func() *Table { return parse(official) })

func parse(text string) *Table {
	t := &Table{writes: map[string]write{}, structures: map[string]structure{}, enums: map[string][]string{}}
	var members structure
	var enum string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		inner, isMember := strings.CutPrefix(line, "\t")
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case isMember && enum != "":
			t.enums[enum] = append(t.enums[enum], inner)
		case isMember:
			members.add(inner)
		case words[0] == "struct":
			enum, members = "", structure{}
			t.structures[words[1]] = members
		case words[0] == "enum":
			enum = words[1]
			t.enums[enum] = nil
		default:
			t.writes[key(words[0], words[1])] = write{words[2], words[3]}
		}
	}
	return t
}

func key(verb, of string) string { return verb + " " + strings.ToLower(of) }

func (s structure) add(line string) {
	flagged, kind, _ := strings.Cut(line, " ")
	name := strings.TrimRight(flagged, "!-")
	flags := flagged[len(name):]
	s[strings.ToLower(name)] = member{name, kind, strings.Contains(flags, "!"), strings.Contains(flags, "-")}
}

// Problem is what is wrong with a member.
type Problem string

// The problems. An unknown member is not in the model, an unknown value is not in its enumeration, and a missing member is
// required. Azure ignores what a request says of a read-only member.
const (
	UnknownMember Problem = "unknown member"
	UnknownValue  Problem = "unknown value"
	Missing       Problem = "missing"
	ReadOnly      Problem = "read-only"
)

// Finding is a difference between a body and its model.
type Finding struct {
	Problem Problem
	// Path leads to the member: names, and indexes such as "[0]".
	Path []string
	// Structure is the name that the model has for the object with the member.
	Structure string
	// Value is what the body has there.
	Value any
	// Allowed are the values of the enumeration.
	Allowed []string
}

// Member is the name of the member.
func (f Finding) Member() string { return f.Path[len(f.Path)-1] }

// Where is the path as Azure's errors write it, "properties.subnets[0].tags".
func (f Finding) Where() string { return strings.ReplaceAll(strings.Join(f.Path, "."), ".[", "[") }

// String is one line for a test.
func (f Finding) String() string {
	return fmt.Sprintf("%s of %s: %s", f.Where(), f.Structure, f.Problem)
}

// Findings compares the body of a PUT or PATCH with the model of the type, in the order of their paths. A nil table and a type
// without a model have no findings. For an API version newer than the model, unknown members and values are none.
func (t *Table) Findings(verb, of, version string, body map[string]any) []Finding {
	if t == nil {
		return nil
	}
	w, ok := t.writes[key(verb, of)]
	if !ok {
		return nil
	}
	v := visit{table: t}
	v.value(w.body, body, nil)
	if version > w.version {
		v.found = slices.DeleteFunc(v.found, func(f Finding) bool { return f.Problem == UnknownMember || f.Problem == UnknownValue })
	}
	return v.found
}

// Knows reports whether the table has a model for a verb of a type.
func (t *Table) Knows(verb, of string) bool {
	_, ok := t.writes[key(verb, of)]
	return ok
}

// visit is a walk through a body.
type visit struct {
	table *Table
	found []Finding
}

func (v *visit) value(kind string, value any, path []string) {
	if value == nil {
		return
	}
	if element, ok := strings.CutPrefix(kind, "[]"); ok {
		list, _ := value.([]any)
		for i, x := range list {
			v.value(element, x, at(path, fmt.Sprintf("[%d]", i)))
		}
		return
	}
	object, isObject := value.(map[string]any)
	if element, ok := strings.CutPrefix(kind, "{}"); ok {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			v.value(element, object[name], at(path, name))
		}
		return
	}
	if members, ok := v.table.structures[kind]; ok && isObject {
		v.object(kind, members, object, path)
	}
	allowed := v.table.enums[kind]
	text, isText := value.(string)
	if allowed != nil && isText && !slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, text) }) {
		v.found = append(v.found, Finding{Problem: UnknownValue, Path: path, Structure: short(kind), Value: value, Allowed: allowed})
	}
}

func (v *visit) object(kind string, members structure, object map[string]any, path []string) {
	given := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		lower := strings.ToLower(name)
		given[lower] = object[name] != nil
		found := Finding{Path: at(path, name), Structure: short(kind), Value: object[name]}
		m, known := members[lower]
		switch _, anyName := members[open]; {
		case !known && anyName || object[name] == nil:
		case !known:
			found.Problem = UnknownMember
			v.found = append(v.found, found)
		case m.readOnly:
			found.Problem = ReadOnly
			v.found = append(v.found, found)
		default:
			v.value(m.kind, object[name], found.Path)
		}
	}
	for _, lower := range slices.Sorted(maps.Keys(members)) {
		if m := members[lower]; m.required && !m.readOnly && !given[lower] {
			v.found = append(v.found, Finding{Problem: Missing, Path: at(path, m.name), Structure: short(kind)})
		}
	}
}

func at(path []string, next string) []string { return append(slices.Clone(path), next) }

// short is a name without the module.
func short(name string) string {
	_, after, _ := strings.Cut(name, ".")
	return after
}

// Has reports whether a document has a member at a path. An index stands for any element of the list.
func Has(document any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	if strings.HasPrefix(path[0], "[") {
		list, _ := document.([]any)
		return slices.ContainsFunc(list, func(x any) bool { return Has(x, path[1:]) })
	}
	object, _ := document.(map[string]any)
	for name, value := range object {
		if strings.EqualFold(name, path[0]) && Has(value, path[1:]) {
			return true
		}
	}
	return false
}
