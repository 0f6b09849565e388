package authorization

import (
	"regexp"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

var (
	equals = regexp.MustCompile(`(?i)^(\w+)\s+eq\s+'([^']*)'$`)
	calls  = regexp.MustCompile(`(?i)^(\w+)\(\s*(?:'([^']*)')?\s*\)$`)
	and    = regexp.MustCompile(`(?i)\s+and\s+`)
)

// filter parses a $filter: comparisons of properties with a text, and functions of a scope. functions maps a function
// to its test.
func filter(text string, functions map[string]func(argument string, o behaviour.Object) bool) (func(behaviour.Object) bool, error) {
	var tests []func(behaviour.Object) bool
	inner := strings.TrimSpace(text)
	if strings.HasPrefix(inner, "(") && strings.HasSuffix(inner, ")") {
		inner = inner[1 : len(inner)-1]
	}
	for _, term := range and.Split(inner, -1) {
		term = strings.TrimSpace(term)
		if m := equals.FindStringSubmatch(term); m != nil {
			tests = append(tests, func(o behaviour.Object) bool {
				return strings.EqualFold(property(o, m[1]), m[2])
			})
			continue
		}
		m := calls.FindStringSubmatch(term)
		if m == nil || functions[strings.ToLower(m[1])] == nil {
			return nil, behaviour.Invalid("UnsupportedQuery",
				"The filter '%s' is not supported. Supported filters are either 'atScope()' or 'principalId eq '{value}' or "+
					"'assignedTo('{value}')'.", text)
		}
		test := functions[strings.ToLower(m[1])]
		tests = append(tests, func(o behaviour.Object) bool { return test(m[2], o) })
	}
	return func(o behaviour.Object) bool {
		for _, test := range tests {
			if !test(o) {
				return false
			}
		}
		return true
	}, nil
}

// property returns the property with a name in any case.
func property(o behaviour.Object, name string) string {
	for key, value := range behaviour.Sub(o, "properties") {
		if s, ok := value.(string); ok && strings.EqualFold(key, name) {
			return s
		}
	}
	return ""
}

func assignmentFilter(c *behaviour.Call, text string) (func(behaviour.Object) bool, error) {
	return filter(text, map[string]func(string, behaviour.Object) bool{
		"atscope": func(_ string, o behaviour.Object) bool {
			return at(c.ID, azure.ID(behaviour.Text(o, "properties.scope")))
		},
		"assignedto": func(principal string, o behaviour.Object) bool {
			return strings.EqualFold(behaviour.Text(o, "properties.principalId"), principal)
		},
	})
}

func definitionFilter(_ *behaviour.Call, text string) (func(behaviour.Object) bool, error) {
	everywhere := func(string, behaviour.Object) bool { return true }
	return filter(text, map[string]func(string, behaviour.Object) bool{"atscopeandbelow": everywhere, "atscope": everywhere})
}

// PrincipalFilter parses a $filter of schedules of roles: comparisons with properties, and asTarget, asRequestor, assignedTo and atScope.
func PrincipalFilter(c *behaviour.Call, text string) (func(behaviour.Object) bool, error) {
	own := authorID(c)
	is := func(name, principal string) func(string, behaviour.Object) bool {
		return func(argument string, o behaviour.Object) bool {
			return strings.EqualFold(property(o, name), argument+principal)
		}
	}
	return filter(text, map[string]func(string, behaviour.Object) bool{
		"atscope": func(_ string, o behaviour.Object) bool {
			return at(c.ID, azure.ID(behaviour.Text(o, "properties.scope")))
		},
		"assignedto": is("principalId", ""), "astarget": is("principalId", own), "asrequestor": is("requestorId", own),
	})
}
