// Package function has the functions of the ARM template language that depend on their arguments alone: texts, numbers,
// arrays, objects, dates, addresses, truth. Values are those of encoding/json. Layer L1: pure functions of their
// arguments.
package function

import "maps"

// Function is one function of the language.
type Function struct {
	Least, Most int // number of arguments; Most is -1 for any number
	Do          func(args []any) (any, error)
}

// All returns the functions by their names in lower case.
func All() map[string]Function {
	all := map[string]Function{}
	for _, group := range []map[string]Function{logic, numbers, texts, collections, networks, dates} {
		maps.Copy(all, group)
	}
	return all
}

// Expects says what a function wants to have as its arguments.
type Expects string

func (e Expects) Error() string { return "expects " + string(e) }

// Functions that most groups are made of: of one value, of one string, of two strings,
// of two whole numbers.

func ofText(f func(string) any) Function {
	return Function{Least: 1, Most: 1, Do: func(args []any) (any, error) {
		s, ok := args[0].(string)
		if !ok {
			return nil, Expects("one string")
		}
		return f(s), nil
	}}
}

func ofTexts(f func(a, b string) any) Function {
	return Function{Least: 2, Most: 2, Do: func(args []any) (any, error) {
		a, ok := args[0].(string)
		b, also := args[1].(string)
		if !ok || !also {
			return nil, Expects("two strings")
		}
		return f(a, b), nil
	}}
}

func ofNumbers(f func(a, b int64) (any, error)) Function {
	return Function{Least: 2, Most: 2, Do: func(args []any) (any, error) {
		a, ok := Whole(args[0])
		b, also := Whole(args[1])
		if !ok || !also {
			return nil, Expects("two whole numbers")
		}
		return f(a, b)
	}}
}

// Whole is a value as a whole number, and whether it is one.
func Whole(value any) (int64, bool) {
	f, ok := value.(float64)
	n := int64(f)
	return n, ok && float64(n) == f
}

// Number is a whole number as JSON has it.
func Number[N int | int64](n N) any { return float64(n) }

// AllText are arguments that are all strings, and whether they are.
func AllText(args []any) ([]string, bool) {
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
