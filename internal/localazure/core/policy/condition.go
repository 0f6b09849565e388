package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// condition is a part of a rule.
type condition interface{ holds(e *evaluation) bool }

// evaluation is the evaluation of a rule on a resource.
type evaluation struct {
	of   Resource
	seen []Expression
}

// all holds if all conditions hold, some if one does, not if its condition does not.
type (
	all  []condition
	some []condition
	not  struct{ condition }
)

func (a all) holds(e *evaluation) bool {
	for _, c := range a {
		if !c.holds(e) {
			return false
		}
	}
	return true
}

func (a some) holds(e *evaluation) bool {
	return slices.ContainsFunc(a, func(c condition) bool { return c.holds(e) })
}

func (n not) holds(e *evaluation) bool { return !n.condition.holds(e) }

// comparison compares a field of the resource with a value.
type comparison struct {
	field, operator string
	target          any
	compare         func(value, target any) bool
}

func (c comparison) holds(e *evaluation) bool {
	path, values := e.of.lookup(c.field)
	holds := true
	for _, value := range values {
		holds = holds && c.compare(value, c.target)
	}
	seen := Expression{Kind: "Field", Field: c.field, Path: path, Operator: strings.ToUpper(c.operator[:1]) + c.operator[1:],
		Target: c.target, Result: holds}
	if len(values) == 1 {
		seen.Value = values[0]
	}
	e.seen = append(e.seen, seen)
	return holds
}

// parse returns the condition of a rule.
func parse(rule any) (condition, error) {
	o, ok := rule.(behaviour.Object)
	if !ok {
		return nil, fmt.Errorf("a condition is %v, not an object", rule)
	}
	switch {
	case o["allOf"] != nil:
		list, err := parseAll(o, "allOf")
		return all(list), err
	case o["anyOf"] != nil:
		list, err := parseAll(o, "anyOf")
		return some(list), err
	case o["not"] != nil:
		inner, err := parse(o["not"])
		return not{inner}, err
	}
	return parseComparison(o)
}

func parseAll(o behaviour.Object, name string) ([]condition, error) {
	list, ok := o[name].([]any)
	if !ok || len(o) > 1 {
		return nil, fmt.Errorf("'%s' must be a list, with nothing beside it", name)
	}
	var conditions []condition
	for _, element := range list {
		c, err := parse(element)
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, c)
	}
	return conditions, nil
}

func parseComparison(o behaviour.Object) (condition, error) {
	field := behaviour.Text(o, "field")
	if field == "" {
		return nil, fmt.Errorf("a condition with %v has no field", slices.Sorted(maps.Keys(o)))
	}
	var found []comparison
	for key, target := range o {
		for name, compare := range operators {
			if strings.EqualFold(key, name) {
				found = append(found, comparison{field, name, target, compare})
			}
		}
	}
	const parts = 2 // the field and the operator
	if len(found) != 1 || len(o) != parts {
		return nil, fmt.Errorf("the condition on the field '%s' has %v: want one of %v", field, slices.Sorted(maps.Keys(o)),
			slices.Sorted(maps.Keys(operators)))
	}
	return found[0], nil
}
