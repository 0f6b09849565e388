package template

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// numbers has the functions of whole numbers, the only numbers of the language.
var numbers = map[string]function{
	"add": ofNumbers(func(a, b int64) (any, error) { return number(a + b), nil }),
	"sub": ofNumbers(func(a, b int64) (any, error) { return number(a - b), nil }),
	"mul": ofNumbers(func(a, b int64) (any, error) { return number(a * b), nil }),
	"div": ofNumbers(func(a, b int64) (any, error) {
		if b == 0 {
			return nil, errors.New("attempted to divide by zero")
		}
		return number(a / b), nil
	}),
	"mod": ofNumbers(func(a, b int64) (any, error) {
		if b == 0 {
			return nil, errors.New("attempted to divide by zero")
		}
		return number(a % b), nil
	}),
	"min":   {least: 1, most: -1, pure: func(args []any) (any, error) { return extreme(args, math.Min) }},
	"max":   {least: 1, most: -1, pure: func(args []any) (any, error) { return extreme(args, math.Max) }},
	"int":   {least: 1, most: 1, pure: toInt},
	"float": {least: 1, most: 1, pure: toFloat},
}

// extreme is of whole numbers, or of an array of them.
func extreme(args []any, better func(a, b float64) float64) (any, error) {
	if array, ok := args[0].([]any); ok && len(args) == 1 {
		args = array
	}
	var best float64
	for i, a := range args {
		n, ok := whole(a)
		if !ok {
			return nil, expects("whole numbers, or an array of them")
		}
		if best = better(best, float64(n)); i == 0 {
			best = float64(n)
		}
	}
	if len(args) == 0 {
		return nil, expects("an array with elements")
	}
	return best, nil
}

func toInt(args []any) (any, error) {
	switch v := args[0].(type) {
	case float64:
		return math.Trunc(v), nil
	case string:
		if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
			return number(n), nil
		}
	}
	return nil, expects("a number, or a string that is a whole number")
}

func toFloat(args []any) (any, error) {
	switch v := args[0].(type) {
	case float64:
		return v, nil
	case string:
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f, nil
		}
	}
	return nil, expects("a number, or a string that is one")
}
