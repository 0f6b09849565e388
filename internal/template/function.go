package template

import (
	"fmt"
	"maps"
	"strconv"
)

// function is one function of the template language. Exactly one of pure, here and lazy is set.
type function struct {
	least, most int // number of arguments; most is -1 for any number
	// pure computes it from its arguments alone.
	pure func(args []any) (any, error)
	// here computes it from the template and the deployment, too.
	here func(s *evaluator, args []any) (any, error)
	// lazy computes it from arguments that are not computed yet.
	lazy func(s *evaluator, args []Expression) (any, error)
	// onlyDefault functions give another value each time, and are for default values of parameters.
	onlyDefault bool
}

func (f function) counts() string {
	switch {
	case f.most < 0:
		return fmt.Sprintf("%d or more", f.least)
	case f.least == f.most:
		return strconv.Itoa(f.least)
	}
	return fmt.Sprintf("%d to %d", f.least, f.most)
}

// expects says what a function wants to have as its arguments.
type expects string

func (e expects) Error() string { return "expects " + string(e) }

// allFunctions are the functions by their names in lower case. A template that calls
// another one is refused.
func allFunctions() map[string]function {
	all := map[string]function{
		"if":         {least: 3, most: 3, lazy: ifFunction},
		"parameters": {least: 1, most: 1, here: (*evaluator).parameter},
		"variables":  {least: 1, most: 1, here: (*evaluator).variable},
	}
	for _, group := range []map[string]function{logic, numbers, texts, collections, identifiers, lambdas, networks, dates} {
		maps.Copy(all, group)
	}
	return all
}

// ifFunction is if(condition, then, otherwise): only the value that is taken is
// computed.
func ifFunction(s *evaluator, args []Expression) (any, error) {
	condition, err := s.compute(args[0])
	if err != nil {
		return nil, err
	}
	yes, ok := condition.(bool)
	if !ok {
		return nil, fmt.Errorf("the function 'if' expects a boolean as its first argument")
	}
	if yes {
		return s.compute(args[1])
	}
	return s.compute(args[2])
}

// Functions that most groups are made of: of one value, of one string, of two strings,
// of two whole numbers.

func ofText(f func(string) any) function {
	return function{least: 1, most: 1, pure: func(args []any) (any, error) {
		s, ok := args[0].(string)
		if !ok {
			return nil, expects("one string")
		}
		return f(s), nil
	}}
}

func ofTexts(f func(a, b string) any) function {
	return function{least: 2, most: 2, pure: func(args []any) (any, error) {
		a, ok := args[0].(string)
		b, also := args[1].(string)
		if !ok || !also {
			return nil, expects("two strings")
		}
		return f(a, b), nil
	}}
}

func ofNumbers(f func(a, b int64) (any, error)) function {
	return function{least: 2, most: 2, pure: func(args []any) (any, error) {
		a, ok := whole(args[0])
		b, also := whole(args[1])
		if !ok || !also {
			return nil, expects("two whole numbers")
		}
		return f(a, b)
	}}
}

// whole is a value as a whole number, and whether it is one.
func whole(value any) (int64, bool) {
	f, ok := value.(float64)
	n := int64(f)
	return n, ok && float64(n) == f
}

// number is a whole number as JSON has it.
func number[N int | int64](n N) any { return float64(n) }

// allText are arguments that are all strings, and whether they are.
func allText(args []any) ([]string, bool) {
	all := make([]string, len(args))
	for i, a := range args {
		s, ok := a.(string)
		if !ok {
			return nil, false
		}
		all[i] = s
	}
	return all, true
}
