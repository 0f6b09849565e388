package definition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/cluster/definition/fields"
	"kaz/internal/key/spelling"
)

// checker checks one document against its shape.
type checker struct {
	document string // how problems call it: "Cluster demo"
	problems Problems
}

// add records a problem at a path from the kind on.
func (c *checker) add(at Position, path, shown, format string, args ...any) {
	_, below, found := strings.Cut(path, ".")
	if found {
		below = ": " + below
	}
	c.problems = append(c.problems, Problem{At: at, Path: c.document + below, Value: shown, Message: fmt.Sprintf(format, args...)})
}

// check checks a value.
func (c *checker) check(s *shape, v *value, path string) {
	if v.kind == isNumber && s.Number {
		v.kind = isText
	}
	if v.kind != s.kind {
		want := "a " + string(s.kind)
		if s.kind == isBool {
			want = string(s.kind)
		}
		if s.kind == isText && v.kind != isMap && v.kind != isList {
			want = "a text: put it in quotes"
		}
		c.add(v.at, path, v.shown(), "want %s", want)
		return
	}
	switch s.kind {
	case isMap:
		c.checkMap(s, v, path)
	case isList:
		c.checkCount(s, v, path, len(v.items), "elements")
		for i, item := range v.items {
			c.checkItem(s, item, fmt.Sprintf("%s[%d]", path, i))
		}
	case isNumber:
		c.checkCount(s, v, path, v.number, "")
	case isText:
		c.checkText(s.Field, v, path)
	}
}

// checkItem checks an element of a list; a rule at a list of texts is for each of them.
func (c *checker) checkItem(s *shape, item *value, path string) {
	before := len(c.problems)
	c.check(s.item, item, path)
	if s.item.kind == isText && len(c.problems) == before {
		c.checkText(s.Field, item, path)
	}
}

func (c *checker) checkCount(s *shape, v *value, path string, n int, of string) {
	if n < s.Min || s.Max > 0 && n > s.Max {
		want := fmt.Sprintf("%d to %d", s.Min, s.Max)
		if s.Max == 0 {
			want = fmt.Sprintf("at least %d", s.Min)
		}
		c.add(v.at, path, v.shown(), "want %s", strings.TrimSpace(want+" "+of))
	}
}

func (c *checker) checkText(f fields.Field, v *value, path string) {
	switch {
	case v.text == "" && f.Default == `""`:
	case len(f.OneOf) > 0 && !slices.Contains(f.OneOf, v.text):
		c.add(v.at, path, v.shown(), "want %s%s", alternatives(f.OneOf), hint(v.text, f.OneOf))
	case f.Rule.Wants(v.text) != "":
		c.add(v.at, path, v.shown(), "want %s", f.Rule.Wants(v.text))
	case v.text == "" && (f.Required || f.Default != ""):
		c.add(v.at, path, v.shown(), "want a text that is not empty")
	}
}

// alternatives is "a, b or c".
func alternatives(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

func hint(got string, names []string) string { return spelling.Hint(got, names, spelling.Loose(got)) }

func (c *checker) checkMap(s *shape, v *value, path string) {
	if s.free {
		return
	}
	for _, name := range v.order {
		field := v.fields[name]
		below := path + "." + name
		switch child := s.names[name]; {
		case child != nil:
			c.check(child, field, below)
		case s.item == nil:
			c.add(v.keysAt[name], below, "", "unknown field: want one of %s%s", strings.Join(sortedNames(s.names), ", "),
				hint(name, sortedNames(s.names)))
		default:
			if want := s.Key.Wants(name); want != "" {
				c.add(v.keysAt[name], below, "", "the name %q is not valid: want %s", name, want)
			}
			c.check(s.item, field, below)
		}
	}
	if s.item != nil {
		c.checkCount(s, v, path, len(v.fields), "entries")
	}
	for _, child := range s.fields {
		if v.fields[child.name()] == nil {
			c.missing(child, v, path)
		}
	}
}

// missing fills in the default of an absent field, or reports it.
func (c *checker) missing(s *shape, parent *value, path string) {
	path += "." + s.name()
	switch {
	case s.Required:
		want := s.Text()
		if want == "" {
			want = "a value: " + s.Doc
		}
		c.add(parent.at, path, "", "missing: want %s", want)
	case s.Default != "":
		parent.set(s.name(), defaultValue(s, parent.at))
	case len(s.fields) > 0 && !s.optional:
		empty := newMap(parent.at)
		c.checkMap(s, empty, path)
		parent.set(s.name(), empty)
	}
}

// defaultValue is the default of a field as if it were written at a line.
func defaultValue(s *shape, at Position) *value {
	var plain any
	if err := json.Unmarshal([]byte(s.Default), &plain); err != nil {
		panic(fmt.Sprintf("the default of %s is not JSON: %v", s.path, err))
	}
	return fromPlain(plain, at)
}

func fromPlain(plain any, at Position) *value {
	v := &value{at: at}
	switch plain := plain.(type) {
	case string:
		v.kind, v.text = isText, plain
	case float64:
		v.kind, v.number, v.text = isNumber, int(plain), fmt.Sprint(plain)
	case bool:
		v.kind, v.truth, v.text = isBool, plain, fmt.Sprint(plain)
	case []any:
		v.kind = isList
		for _, item := range plain {
			v.items = append(v.items, fromPlain(item, at))
		}
	case map[string]any:
		v = newMap(at)
		for _, name := range sortedNames(plain) {
			v.set(name, fromPlain(plain[name], at))
		}
	default:
		v.kind = isNull
	}
	return v
}
