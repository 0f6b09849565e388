package template

import (
	"errors"
	"fmt"
	"maps"
	"strconv"

	"kaz/internal/azure/short"
	"kaz/internal/template/expression"
	language "kaz/internal/template/function"
)

// function is one function of the template language. Exactly one of pure, here and lazy is set.
type function struct {
	least, most int // number of arguments; most is -1 for any number
	// pure computes it from its arguments alone.
	pure func(args []any) (any, error)
	// here computes it from the template and the deployment, too.
	here func(s *evaluator, args []any) (any, error)
	// lazy computes it from arguments that are not computed yet.
	lazy func(s *evaluator, args []expression.Expression) (any, error)
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

// allFunctions are the functions by their names in lower case. A template that calls
// another one is refused.
func allFunctions() map[string]function {
	all := map[string]function{
		"if":         {least: 3, most: 3, lazy: ifFunction},
		"parameters": {least: 1, most: 1, here: (*evaluator).parameter},
		"variables":  {least: 1, most: 1, here: (*evaluator).variable},
	}
	for name, f := range language.All() {
		all[name] = function{least: f.Least, most: f.Most, pure: f.Do}
	}
	for _, group := range []map[string]function{identifiers, lambdas, defaults} {
		maps.Copy(all, group)
	}
	return all
}

// ifFunction is if(condition, then, otherwise): only the value that is taken is
// computed.
func ifFunction(s *evaluator, args []expression.Expression) (any, error) {
	condition, err := s.compute(args[0])
	if err != nil {
		return nil, err
	}
	yes, ok := condition.(bool)
	if !ok {
		return nil, short.Errorf("the function 'if' expects a boolean as its first argument")
	}
	if yes {
		return s.compute(args[1])
	}
	return s.compute(args[2])
}

// defaults has the functions that give another value each time.
var defaults = map[string]function{
	"utcnow":  {most: 1, onlyDefault: true, here: utcNow},
	"newguid": {onlyDefault: true, here: newGUID},
}

func utcNow(s *evaluator, args []any) (any, error) {
	form := any("yyyyMMddTHHmmssZ")
	if len(args) > 0 {
		form = args[0]
	}
	return language.FormatTime(s.deployment.Now.UTC(), form)
}

func newGUID(s *evaluator, _ []any) (any, error) {
	if s.deployment.GUID == nil {
		return nil, errors.New("the template function 'newGuid' needs Azure")
	}
	return s.deployment.GUID(), nil
}
