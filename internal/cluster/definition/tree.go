package definition

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Position is a line of a file.
type Position struct {
	File string
	Line int
}

func (p Position) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Problem is one mistake in a definition.
type Problem struct {
	At Position
	// Path is the field, such as "Cluster demo: spec.controlPlane.replicas".
	Path string
	// Value is what the definition has, as text, "" for a missing field.
	Value string
	// Message says what is wrong and what is allowed.
	Message string
}

func (p Problem) String() string {
	parts := slices.DeleteFunc([]string{p.At.String(), p.Path, p.Value, p.Message}, func(s string) bool { return s == "" })
	return strings.Join(parts, ": ")
}

// Problems are all mistakes of a definition. It is an error if it is not empty.
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

func (p Problems) sorted() Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.At.File, b.At.File), cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.Path, b.Path))
	})
	return slices.Compact(p)
}

// kind is the kind of a value in YAML.
type kind string

const (
	isText   kind = "text"
	isNumber kind = "whole number"
	isBool   kind = "true or false"
	isList   kind = "list"
	isMap    kind = "map"
	isNull   kind = "null"
	isOther  kind = "other scalar" // such as 1.5 or a date
)

// value is a value in YAML that knows its line.
type value struct {
	at     Position
	kind   kind
	text   string // of a scalar
	number int
	// decimal is a number that is no whole one, as JSON has it.
	decimal json.Number
	truth   bool
	items   []*value
	fields  map[string]*value
	order   []string
	keysAt  map[string]Position
}

func (v *value) get(name string) *value {
	if v == nil || v.kind != isMap {
		return nil
	}
	return v.fields[name]
}

// find returns the value at a path of names, nil if it is missing.
func (v *value) find(names ...string) *value {
	for _, name := range names {
		v = v.get(name)
	}
	return v
}

func (v *value) set(name string, field *value) {
	if v.fields[name] == nil {
		v.order = append(v.order, name)
	}
	v.fields[name] = field
	v.keysAt[name] = field.at
}

func newMap(at Position) *value {
	return &value{at: at, kind: isMap, fields: map[string]*value{}, keysAt: map[string]Position{}}
}

// shown is a value in an error.
func (v *value) shown() string {
	switch v.kind {
	case isList:
		return fmt.Sprintf("a list of %d", len(v.items))
	case isMap:
		return fmt.Sprintf("a map with %s", strings.Join(slices.Sorted(maps.Keys(v.fields)), ", "))
	case isNull:
		return "null"
	default:
		const most = 80
		text, _, more := strings.Cut(v.text, "\n")
		if more || len(text) > most {
			text = text[:min(len(text), most)] + "..."
		}
		return fmt.Sprintf("%q", text)
	}
}

// plain is a value as encoding/json has it.
func (v *value) plain() any {
	switch v.kind {
	case isText:
		return v.text
	case isOther:
		if v.decimal != "" {
			return v.decimal
		}
		return v.text
	case isNumber:
		return v.number
	case isBool:
		return v.truth
	case isList:
		all := make([]any, len(v.items))
		for i, item := range v.items {
			all[i] = item.plain()
		}
		return all
	case isMap:
		all := make(map[string]any, len(v.fields))
		for name, field := range v.fields {
			all[name] = field.plain()
		}
		return all
	default:
		return nil
	}
}

// same reports whether two values are equal.
func (v *value) same(other *value) bool {
	if v.kind != other.kind || v.text != other.text || len(v.items) != len(other.items) || len(v.fields) != len(other.fields) {
		return false
	}
	for i := range v.items {
		if !v.items[i].same(other.items[i]) {
			return false
		}
	}
	for name, field := range v.fields {
		if o := other.fields[name]; o == nil || !field.same(o) {
			return false
		}
	}
	return true
}
