package function

import (
	"errors"
	"reflect"
	"strings"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

// logic has the functions of truth and comparison.
var logic = map[string]Function{
	"true":  {Do: func([]any) (any, error) { return true, nil }},
	"false": {Do: func([]any) (any, error) { return false, nil }},
	"null":  {Do: func([]any) (any, error) { return nil, nil }},
	"not":   {Least: 1, Most: 1, Do: not},
	"and":   {Least: 2, Most: -1, Do: func(args []any) (any, error) { return all(args, true) }},
	"or":    {Least: 2, Most: -1, Do: func(args []any) (any, error) { return all(args, false) }},
	"bool":  {Least: 1, Most: 1, Do: toBool},
	"equals": {Least: 2, Most: 2, Do: func(args []any) (any, error) {
		return Equal(args[0], args[1]), nil
	}},
	"less":            compared(func(order int) bool { return order < 0 }),
	"lessorequals":    compared(func(order int) bool { return order <= 0 }),
	"greater":         compared(func(order int) bool { return order > 0 }),
	"greaterorequals": compared(func(order int) bool { return order >= 0 }),
	"fail": {Least: 1, Most: 1, Do: func(args []any) (any, error) {
		s, ok := args[0].(string)
		if !ok {
			return nil, Expects("one string")
		}
		return nil, errors.New(s)
	}},
	"coalesce": {Least: 1, Most: -1, Do: coalesce},
}

// Equal compares values as JSON; strings are compared with regard to case.
func Equal(a, b any) bool { return reflect.DeepEqual(a, b) }

func not(args []any) (any, error) {
	b, ok := args[0].(bool)
	if !ok {
		return nil, Expects("a boolean")
	}
	return !b, nil
}

// all reports whether all arguments are true; with want false, whether any is.
func all(args []any, want bool) (any, error) {
	result := want
	for _, a := range args {
		b, ok := a.(bool)
		if !ok {
			return nil, Expects("booleans")
		}
		if b != want {
			result = !want
		}
	}
	return result, nil
}

func toBool(args []any) (any, error) {
	switch v := args[0].(type) {
	case bool:
		return v, nil
	case float64:
		return v != 0, nil
	case string:
		switch strings.ToLower(v) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return nil, Expects("a boolean, a number, 'true' or 'false'")
}

// compared compares numbers, or strings as a dictionary does: a small letter is before the same capital one.
func compared(test func(order int) bool) Function {
	return Function{Least: 2, Most: 2, Do: func(args []any) (any, error) {
		switch a := args[0].(type) {
		case string:
			if b, ok := args[1].(string); ok {
				return test(collate.New(language.Und).CompareString(a, b)), nil
			}
		case float64:
			if b, ok := args[1].(float64); ok {
				return test(sign(a - b)), nil
			}
		}
		return nil, Expects("two numbers or two strings")
	}}
}

func sign(f float64) int {
	switch {
	case f < 0:
		return -1
	case f > 0:
		return 1
	}
	return 0
}

func coalesce(args []any) (any, error) {
	for _, a := range args {
		if a != nil {
			return a, nil
		}
	}
	return nil, nil
}
