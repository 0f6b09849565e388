package function

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// numbers has the functions of whole numbers, the only numbers of the language.
var numbers = map[string]Function{
	"add": ofNumbers(func(a, b int64) (any, error) { return Number(a + b), nil }),
	"sub": ofNumbers(func(a, b int64) (any, error) { return Number(a - b), nil }),
	"mul": ofNumbers(func(a, b int64) (any, error) { return Number(a * b), nil }),
	"div": ofNumbers(func(a, b int64) (any, error) {
		if b == 0 {
			return nil, errors.New("attempted to divide by zero")
		}
		return Number(a / b), nil
	}),
	"mod": ofNumbers(func(a, b int64) (any, error) {
		if b == 0 {
			return nil, errors.New("attempted to divide by zero")
		}
		return Number(a % b), nil
	}),
	"min":   {Least: 1, Most: -1, Do: func(args []any) (any, error) { return extreme(args, math.Min) }},
	"max":   {Least: 1, Most: -1, Do: func(args []any) (any, error) { return extreme(args, math.Max) }},
	"int":   {Least: 1, Most: 1, Do: toInt},
	"float": {Least: 1, Most: 1, Do: toFloat},
}

// extreme is the best of several whole numbers, or of an array of them.
func extreme(args []any, better func(a, b float64) float64) (any, error) {
	if array, ok := args[0].([]any); ok && len(args) == 1 {
		args = array
	}
	var best float64
	for i, a := range args {
		n, ok := Whole(a)
		if !ok {
			return nil, Expects("whole numbers, or an array of them")
		}
		if best = better(best, float64(n)); i == 0 {
			best = float64(n)
		}
	}
	if len(args) == 0 {
		return nil, Expects("an array with elements")
	}
	return best, nil
}

func toInt(args []any) (any, error) {
	switch v := args[0].(type) {
	case float64:
		return math.Trunc(v), nil
	case string:
		if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
			return Number(n), nil
		}
	}
	return nil, Expects("a number, or a string that is a whole number")
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
	return nil, Expects("a number, or a string that is one")
}
