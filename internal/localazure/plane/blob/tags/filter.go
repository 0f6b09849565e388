package tags

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Filter is a search by tags: blobs are found for which all conditions of one of its lists are true.
type Filter [][]condition

// condition compares a tag with a value. A blob without the tag does not meet it.
type condition struct{ key, operator, value string }

// containerKey is what a search calls the container of a blob.
const containerKey = "@container"

// token is the next part of a search: a key with or without quotes, an operator, a value, or a word between conditions.
var token = regexp.MustCompile(`^\s*("[^"]*"|'[^']*'|<=|>=|<>|[=<>]|@?[A-Za-z0-9_]+)`)

// mostSearched is how many characters a search has.
const mostSearched = 4096

// Parse parses a search such as "a"='1' AND "b">='2'.
func Parse(text string) (all Filter, err error) {
	if len(text) > mostSearched {
		return nil, fmt.Errorf("it has %d characters, at most %d are allowed", len(text), mostSearched)
	}
	rest := text
	next := func() string {
		found := token.FindStringSubmatch(rest)
		if found == nil {
			return ""
		}
		rest = rest[len(found[0]):]
		return found[1]
	}
	all = Filter{nil}
	for {
		key, operator, value := next(), next(), next()
		if key == "" || key[0] == '\'' || !slices.Contains([]string{"=", "<", ">", "<=", ">=", "<>"}, operator) ||
			len(value) < 2 || value[0] != '\'' {
			return nil, fmt.Errorf("%q is not a list of conditions such as \"key\"='value'", text)
		}
		last := len(all) - 1
		all[last] = append(all[last], condition{strings.Trim(key, `"`), operator, value[1 : len(value)-1]})
		switch word := next(); {
		case strings.TrimSpace(rest) == "" && word == "":
			return all, nil
		case strings.EqualFold(word, "and"):
		case strings.EqualFold(word, "or"):
			all = append(all, nil)
		default:
			return nil, fmt.Errorf("%q has %q where AND or OR is allowed", text, word+rest)
		}
	}
}

// Matches reports whether a blob with tags in a container is found.
func (f Filter) Matches(tags map[string]string, container string) bool {
	return slices.ContainsFunc(f, func(all []condition) bool {
		return !slices.ContainsFunc(all, func(t condition) bool { return !t.met(tags, container) })
	})
}

func (t condition) met(tags map[string]string, container string) bool {
	value, there := tags[t.key]
	if t.key == containerKey {
		value, there = container, true
	}
	order := strings.Compare(value, t.value)
	switch t.operator {
	case "=":
		return there && order == 0
	case "<>":
		return order != 0
	case "<":
		return there && order < 0
	case ">":
		return there && order > 0
	case "<=":
		return there && order <= 0
	}
	return there && order >= 0
}

// Named returns those of the tags of a blob that a search names.
func (f Filter) Named(tags map[string]string) map[string]string {
	named := map[string]string{}
	for _, t := range f[0] {
		if value, there := tags[t.key]; there {
			named[t.key] = value
		}
	}
	return named
}
