package template

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure/short"
	"kaz/internal/template/expression"
	language "kaz/internal/template/function"
)

// lambdas has the functions that take a lambda expression, and lambdaVariables, which reads its arguments.
var lambdas = map[string]function{
	"filter":    {least: 2, most: 2, lazy: filterFunction},
	"map":       {least: 2, most: 2, lazy: mapFunction},
	"mapvalues": {least: 2, most: 2, lazy: mapValues},
	"reduce":    {least: 3, most: 3, lazy: reduce},
	"sort":      {least: 2, most: 2, lazy: sortFunction},
	"groupby":   {least: 2, most: 2, lazy: groupBy},
	"toobject":  {least: 2, most: 3, lazy: toObject},
	"lambda": {least: 1, most: -1, lazy: func(*evaluator, []expression.Expression) (any, error) {
		return nil, errors.New("the function 'lambda' can only be used as an argument of filter, groupBy, map, mapValues, reduce, " +
			"sort and toObject")
	}},
	"lambdavariables": {least: 1, most: 1, here: lambdaVariable},
}

// lambda is a lambda expression: the names of its arguments and its body.
type lambda struct {
	names []string
	body  expression.Expression
}

// lambdaOf reads lambda('name', ..., expression) with least to most arguments.
func (s *evaluator) lambdaOf(e expression.Expression, least, most int) (lambda, error) {
	n := len(e.Args) - 1
	if !strings.EqualFold(e.Call, "lambda") || n < least || n > most {
		return lambda{}, short.Errorf("a lambda expression with %d to %d arguments is expected, not '%s'", least, most, e.String())
	}
	l := lambda{body: e.Args[n]}
	for _, a := range e.Args[:n] {
		name, ok := a.Literal.(string)
		if !ok {
			return lambda{}, short.Errorf("the argument '%s' of a lambda expression is not a name in quotes", a.String())
		}
		l.names = append(l.names, name)
	}
	return l, nil
}

// call computes the body with the arguments. Arguments without a name are dropped.
func (s *evaluator) call(l lambda, args ...any) (any, error) {
	if err := s.work(1); err != nil { // the body may be a literal, which is no step
		return nil, err
	}
	arguments := Object{}
	for i, name := range l.names {
		arguments[name] = args[i]
	}
	s.lambdas = append(s.lambdas, arguments)
	defer func() { s.lambdas = s.lambdas[:len(s.lambdas)-1] }()
	return s.compute(l.body)
}

// test is call for a body that has to give a boolean.
func (s *evaluator) test(l lambda, args ...any) (bool, error) {
	value, err := s.call(l, args...)
	if err != nil {
		return false, err
	}
	yes, ok := value.(bool)
	if !ok {
		return false, short.Errorf("the lambda expression '%s' gives '%v', which is not a boolean", l.body.String(), value)
	}
	return yes, nil
}

// key is call for a body that has to give a string.
func (s *evaluator) key(l lambda, args ...any) (string, error) {
	value, err := s.call(l, args...)
	if err != nil {
		return "", err
	}
	text, ok := language.Plain(value)
	if !ok {
		return "", short.Errorf("the lambda expression '%s' gives '%v', which is not a string", l.body.String(), value)
	}
	return text, nil
}

func lambdaVariable(s *evaluator, args []any) (any, error) {
	name, ok := args[0].(string)
	if !ok {
		return nil, language.Expects("one name")
	}
	for _, arguments := range slices.Backward(s.lambdas) {
		if value, ok := arguments[name]; ok {
			return value, s.grow(language.SizeOf(value))
		}
	}
	return nil, short.Errorf("the lambda variable '%s' is not defined at this location", name)
}

// elements computes an argument that has to be an array.
func (s *evaluator) elements(e expression.Expression) ([]any, error) {
	value, err := s.compute(e)
	if err != nil {
		return nil, err
	}
	array, ok := value.([]any)
	if !ok {
		return nil, errors.New("the first argument of the function is not an array")
	}
	return array, nil
}

// each reads an array and a lambda expression, and calls f with the lambda and every element.
func (s *evaluator) each(args []expression.Expression, most int, f func(l lambda, i int, x any) error) error {
	array, err := s.elements(args[0])
	if err != nil {
		return err
	}
	l, err := s.lambdaOf(args[1], 1, most)
	if err != nil {
		return err
	}
	for i, x := range array {
		if err := f(l, i, x); err != nil {
			return err
		}
	}
	return nil
}

func filterFunction(s *evaluator, args []expression.Expression) (any, error) {
	kept := []any{}
	err := s.each(args, 2, func(l lambda, i int, x any) error {
		yes, err := s.test(l, x, language.Number(i))
		if yes {
			kept = append(kept, x)
		}
		return err
	})
	return kept, err
}

func mapFunction(s *evaluator, args []expression.Expression) (any, error) {
	made := []any{}
	err := s.each(args, 2, func(l lambda, i int, x any) error {
		value, err := s.call(l, x, language.Number(i))
		made = append(made, value)
		return err
	})
	return made, err
}

func groupBy(s *evaluator, args []expression.Expression) (any, error) {
	groups := Object{}
	err := s.each(args, 1, func(l lambda, _ int, x any) error {
		key, err := s.key(l, x)
		group, _ := groups[key].([]any)
		groups[key] = append(group, x)
		return err
	})
	return groups, err
}

func mapValues(s *evaluator, args []expression.Expression) (any, error) {
	value, err := s.compute(args[0])
	if err != nil {
		return nil, err
	}
	object, ok := value.(Object)
	if !ok {
		return nil, errors.New("the first argument of the function 'mapValues' is not an object")
	}
	l, err := s.lambdaOf(args[1], 1, 1)
	if err != nil {
		return nil, err
	}
	made := Object{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if made[key], err = s.call(l, object[key]); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// reduce is reduce(array, initial value, lambda(current, next, [index])).
func reduce(s *evaluator, args []expression.Expression) (any, error) {
	array, err := s.elements(args[0])
	if err != nil {
		return nil, err
	}
	value, err := s.compute(args[1])
	if err != nil {
		return nil, err
	}
	l, err := s.lambdaOf(args[2], 2, 3)
	if err != nil {
		return nil, err
	}
	for i, x := range array {
		if value, err = s.call(l, value, x, language.Number(i)); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// sortFunction is sort(array, lambda(a, b, whether a comes first)). Equal elements keep their order.
func sortFunction(s *evaluator, args []expression.Expression) (any, error) {
	array, err := s.elements(args[0])
	if err != nil {
		return nil, err
	}
	l, err := s.lambdaOf(args[1], 2, 2)
	if err != nil {
		return nil, err
	}
	var failure error
	before := func(a, b any) bool {
		yes, err := s.test(l, a, b)
		failure = errors.Join(failure, err)
		return yes
	}
	sorted := slices.Clone(array)
	slices.SortStableFunc(sorted, func(a, b any) int {
		switch {
		case failure != nil:
			return 0
		case before(a, b):
			return -1
		case before(b, a):
			return 1
		}
		return 0
	})
	return sorted, failure
}

// toObject is toObject(array, lambda of the key, [lambda of the value]).
func toObject(s *evaluator, args []expression.Expression) (any, error) {
	made := Object{}
	err := s.each(args, 1, func(l lambda, _ int, x any) error {
		key, err := s.key(l, x)
		if err != nil {
			return err
		}
		made[key] = x
		if len(args) < 3 {
			return nil
		}
		value, err := s.lambdaOf(args[2], 1, 1)
		if err == nil {
			made[key], err = s.call(value, x)
		}
		return err
	})
	return made, err
}
