// Package model judges the bodies of requests by the official models of Azure's resource types, and shapes answers by them.
// Layer L2: the standard library only.
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
	structures map[string]*structure
	enums      map[string][]string
}

// write is a verb of a type. version is the API version of the model.
type write struct{ version, body string }

// old is the API version if the model can tell which members it lacks, else none. A preview may have members that only later
// versions have.
func (w write) old(version string) string {
	if version >= w.version || strings.HasSuffix(version, "-preview") {
		return ""
	}
	return version
}

// structure is an object.
type structure struct {
	members map[string]member // by their names in lower case: Azure reads names in any case
	spelled map[string]member // by their names
	absent  string            // the last API version that lacks a member of it or of the objects in it
}

type member struct {
	name               string
	kind               string // as in the table
	required, readOnly bool
	absent             string     // the last API version that is known to lack the member
	lists              string     // the kind's beginning: [] for each list, {} for each object with any names
	inner              *structure // of the objects in it, nil for none
}

// lackedBy reports whether an API version lacks the member. An empty version lacks none.
func (m member) lackedBy(version string) bool { return version != "" && version <= m.absent }

// open is the member of structures with further members of any name.
const open = "*"

// Official returns the table. It is read once.
var Official = sync.OnceValue(func() *Table { return parse(official) })

func parse(text string) *Table {
	t := &Table{writes: map[string]write{}, structures: map[string]*structure{}, enums: map[string][]string{}}
	var members *structure
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
			enum, members = "", &structure{members: map[string]member{}}
			t.structures[words[1]] = members
		case words[0] == "enum":
			enum = words[1]
			t.enums[enum] = nil
		default:
			t.writes[key(words[0], words[1])] = write{words[2], words[3]}
		}
	}
	t.link()
	return t
}

// link gives the members their structures, and the structures the last API versions that lack something.
func (t *Table) link() {
	for _, s := range t.structures {
		s.spelled = map[string]member{}
		for lower, m := range s.members {
			name := strings.TrimLeft(m.kind, "[]{}")
			m.lists, m.inner = m.kind[:len(m.kind)-len(name)], t.structures[name]
			s.members[lower], s.spelled[m.name] = m, m
			s.absent = max(s.absent, m.absent)
		}
	}
	for changed := true; changed; {
		changed = false
		for _, s := range t.structures {
			for _, m := range s.members {
				if m.inner != nil && m.inner.absent > s.absent {
					s.absent, changed = m.inner.absent, true
				}
			}
		}
	}
}

func key(verb, of string) string { return verb + " " + strings.ToLower(of) }

func (s *structure) add(line string) {
	flagged, kind, _ := strings.Cut(line, " ")
	kind, absent, _ := strings.Cut(kind, " ")
	name := strings.TrimRight(flagged, "!-")
	flags := flagged[len(name):]
	s.members[strings.ToLower(name)] = member{name: name, kind: kind, required: strings.Contains(flags, "!"),
		readOnly: strings.Contains(flags, "-"), absent: absent}
}

// Problem is what is wrong with a member.
type Problem string

// The problems. An unknown member is not in the model, a newer member came after the API version of the request, an unknown
// value is not in its enumeration, and a missing member is required. Azure ignores what a request says of a read-only member.
const (
	UnknownMember Problem = "unknown member"
	NewerMember   Problem = "newer than the API version"
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
// without a model have no findings. For an API version newer than the model, unknown members and values are none, and for another
// preview: the models of previews are not in the table, and previews have members that no other version has.
func (t *Table) Findings(verb, of, version string, body map[string]any) []Finding {
	if t == nil {
		return nil
	}
	w, ok := t.writes[key(verb, of)]
	if !ok {
		return nil
	}
	v := visit{table: t, old: w.old(version)}
	v.value(w.body, body, nil)
	if version > w.version || v.old == "" && version != w.version {
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
	old   string // the API version, see write.old
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
	if of, ok := v.table.structures[kind]; ok && isObject {
		v.object(kind, of.members, object, path)
	}
	allowed := v.table.enums[kind]
	text, isText := value.(string)
	if allowed != nil && isText && !slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, text) }) {
		v.found = append(v.found, Finding{Problem: UnknownValue, Path: path, Structure: short(kind), Value: value, Allowed: allowed})
	}
}

func (v *visit) object(kind string, members map[string]member, object map[string]any, path []string) {
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
		case m.lackedBy(v.old):
			found.Problem = NewerMember
			v.found = append(v.found, found)
		default:
			v.value(m.kind, object[name], found.Path)
		}
	}
	if id, _ := object["id"].(string); len(path) == 0 || !strings.HasPrefix(id, "/") { // a reference to a resource needs its id alone
		v.missing(kind, members, given, path)
	}
}

// missing notes the required members that are not given.
func (v *visit) missing(kind string, members map[string]member, given map[string]bool, path []string) {
	for _, lower := range slices.Sorted(maps.Keys(members)) {
		if m := members[lower]; m.required && !m.readOnly && !given[lower] && !m.lackedBy(v.old) {
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
