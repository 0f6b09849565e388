package template

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/short"
	"kaz/internal/template/expression"
	"kaz/internal/template/fault"
	language "kaz/internal/template/function"
	"kaz/internal/template/lenient"
	"kaz/internal/template/types"
)

// Object is a JSON object as encoding/json decodes it.
type Object = map[string]any

// Azure answers what only Azure knows. Its errors are shown unchanged. The [Error] of the template wraps them.
type Azure interface {
	// Zones returns the availability zones of a location, by their logical names: {"1": "eastus-az1"}. It is empty for
	// a location without zones.
	Zones(location string) map[string]string
	// Provider returns providers(namespace): the namespace and its resource types, nil for
	// a namespace that does not exist.
	Provider(namespace string) Object
	// Reference returns a resource that exists, as a client sees it.
	Reference(r Reference) (Object, error)
	// List returns what a list function, such as listKeys, answers for a resource.
	List(function string, r Reference, body any) (any, error)
}

// Reference is a resource that a template asks for.
type Reference struct {
	ID azure.ID
	// Version is the api-version: the given one, or that of the resource in the template.
	Version string
}

// evaluator computes the expressions of a template.
type evaluator struct {
	deployment Deployment
	document   Object
	parameters Object // values
	defaults   Object // of parameters without a value yet, with expressions
	variables  Object // with expressions
	// names are the template's resources by their names, in lower case. A name that two
	// resources have is not among them.
	names map[string]*Resource
	byID  map[string]*Resource
	// symbols are the resources by their symbolic names; a copy loop makes several.
	symbols map[string][]*Resource
	// azure answers runtime functions; nil while resources do not exist yet.
	azure     Azure
	loops     []loop // of what is evaluated, the outermost first
	functions map[string]function
	users     map[string]userFunction // by their names in lower case
	lambdas   []Object                // the arguments of the lambda expressions around, the outermost first
	inDefault bool                    // the default value of a parameter is computed
	depth     int                     // of variables within variables
	calls     []string                // of functions of the template, each within the one before
	steps     int                     // computed so far
	size      int                     // of the values made so far
	hash      string                  // of the document, "" before it is asked for
}

// grow counts what was computed.
func (s *evaluator) grow(size int) error {
	if s.size += size; s.size > language.MostSize {
		return language.ErrTooMuch
	}
	return s.deployment.Budget.spend(0, size)
}

// work counts steps.
func (s *evaluator) work(steps int) error {
	if s.steps += steps; s.steps > language.MostSteps {
		return language.ErrTooMuch
	}
	return s.deployment.Budget.spend(steps, 0)
}

// definitions are the type definitions of the template.
func (s *evaluator) definitions() types.Definitions {
	return types.Definitions{Template: s.document, Work: s.work}
}

// shallow is the size of a value without what is inside of it.
func shallow(value any) int {
	switch v := value.(type) {
	case string:
		return len(v)
	case []any:
		return len(v)
	case Object:
		return len(v)
	}
	return 1
}

// evaluate computes a value of a template: strings in brackets are expressions.
func (s *evaluator) evaluate(value any) (any, error) {
	switch v := value.(type) {
	case string:
		text, ok := expression.Text(v)
		if !ok {
			if strings.HasPrefix(v, "[[") {
				return v[1:], nil
			}
			return v, nil
		}
		result, err := s.text(text)
		if err != nil {
			return nil, fault.In(text, err)
		}
		return result, nil
	case Object:
		return s.object(v)
	case []any:
		array := make([]any, len(v))
		for i, x := range v {
			y, err := s.evaluate(x)
			if err != nil {
				return nil, fault.Under("["+strconv.Itoa(i)+"]", err)
			}
			array[i] = y
		}
		return array, nil
	}
	return value, nil
}

func (s *evaluator) object(o Object) (Object, error) {
	object := make(Object, len(o))
	loops, repeats := propertyLoops(o)
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if repeats && key == "copy" {
			continue
		}
		name, err := s.propertyName(key)
		if err != nil {
			return nil, fault.Under("."+key, err)
		}
		x, err := s.evaluate(o[key])
		if err != nil {
			return nil, fault.Under("."+key, err)
		}
		object[name] = x
	}
	if !repeats {
		return object, nil
	}
	return object, s.repeatInto(object, loops)
}

// propertyName computes the name of a property, which may be an expression.
func (s *evaluator) propertyName(key string) (string, error) {
	if !strings.HasPrefix(key, "[") {
		return key, nil
	}
	value, err := s.evaluate(key)
	if err != nil {
		return "", err
	}
	name, ok := value.(string)
	if !ok {
		return "", short.Errorf("the name of the property is the value '%v', expected a text", value)
	}
	return name, nil
}

func (s *evaluator) text(text string) (any, error) {
	if err := s.grow(len(text)); err != nil { // it is parsed each time
		return nil, err
	}
	e, err := expression.Parse(text)
	if err != nil {
		return nil, err
	}
	value, err := s.compute(e)
	if err != nil {
		return nil, err
	}
	if language.NestedDeeper(value, lenient.MostDepth) {
		return nil, lenient.ErrTooDeep
	}
	return value, s.grow(language.SizeOf(value))
}

func (s *evaluator) compute(e expression.Expression) (any, error) {
	if e.Call == "" {
		return e.Literal, nil
	}
	if err := s.work(1); err != nil {
		return nil, err
	}
	f, err := s.check(e)
	if err != nil {
		return nil, err
	}
	value, err := s.apply(f, e)
	if err != nil {
		return nil, err
	}
	if err := s.grow(shallow(value)); err != nil {
		return nil, err
	}
	for _, step := range e.Path {
		if value, err = s.step(value, step); err != nil {
			return nil, short.Errorf("the language expression with '%s' can not be evaluated: %w", e.Call, err)
		}
	}
	return value, nil
}

// check finds the function that is called, and refuses a call of another one.
func (s *evaluator) check(e expression.Expression) (function, error) {
	name := strings.ToLower(e.Call)
	f, ok := s.functions[name]
	if u, declared := s.users[name]; declared {
		f, ok = u.builtIn(), true
	}
	if !ok && strings.HasPrefix(name, "list") && !strings.Contains(name, ".") {
		f, ok = function{least: 1, most: 3, here: func(s *evaluator, args []any) (any, error) { return s.list(e.Call, args) }}, true
	}
	if !ok {
		return f, short.Errorf("the template function '%s' is not supported", e.Call)
	}
	if f.onlyDefault && !s.inDefault {
		return f, short.Errorf("the template function '%s' is not expected at this location. It can only be used in the default value of "+
			"a parameter. Please see https://aka.ms/arm-functions for usage details", e.Call)
	}
	if n := len(e.Args); n < f.least || f.most >= 0 && n > f.most {
		return f, short.Errorf("the template function '%s' has %d arguments: it takes %s", e.Call, n, f.counts())
	}
	return f, nil
}

func (s *evaluator) apply(f function, e expression.Expression) (any, error) {
	if f.lazy != nil {
		return f.lazy(s, e.Args)
	}
	args := make([]any, len(e.Args))
	for i, a := range e.Args {
		v, err := s.compute(a)
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	var value any
	var err error
	if f.here != nil {
		value, err = f.here(s, args)
	} else {
		value, err = f.pure(args)
	}
	if want, ok := errors.AsType[language.Expects](err); ok {
		return nil, short.Errorf("the function '%s' expects %s", e.Call, string(want))
	}
	return value, err
}

// step selects a property or an element.
func (s *evaluator) step(value any, step expression.Expression) (any, error) {
	key, err := s.compute(step)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case Object:
		name, _ := key.(string)
		if k := language.KeyOf(v, name); k != "" {
			return v[k], nil
		}
		return nil, short.Errorf("the property '%v' doesn't exist, available properties are '%s'", key,
			strings.Join(slices.Sorted(maps.Keys(v)), ", "))
	case []any:
		if i, ok := key.(float64); ok && i >= 0 && int(i) < len(v) {
			return v[int(i)], nil
		}
		return nil, short.Errorf("the array index '%v' is out of bounds: there are %d elements", key, len(v))
	}
	return nil, short.Errorf("property '%v' can't be evaluated, the value is neither an object nor an array", key)
}

// parameter is parameters(name).
func (s *evaluator) parameter(args []any) (any, error) {
	name, ok := args[0].(string)
	if !ok {
		return nil, language.Expects("one name")
	}
	if key := language.KeyOf(s.parameters, name); key != "" {
		value := s.parameters[key]
		return value, s.grow(language.SizeOf(value))
	}
	value, err := s.later(s.defaults, "parameter", name)
	if err == nil {
		s.parameters[language.KeyOf(s.defaults, name)] = value
	}
	return value, err
}

// variable is variables(name).
func (s *evaluator) variable(args []any) (any, error) {
	name, ok := args[0].(string)
	if !ok {
		return nil, language.Expects("one name")
	}
	return s.later(s.variables, "variable", name)
}

// later evaluates a value of the template when it is asked for. Copy loops around the
// expression that asks do not reach into the value.
func (s *evaluator) later(values Object, what, name string) (any, error) {
	key := language.KeyOf(values, name)
	path := what + "s." + key
	compute := func() (any, error) { return s.evaluate(values[key]) }
	if what == "parameter" {
		path += ".defaultValue"
	}
	if key == "" {
		l, ok := loopOf(values, name)
		if !ok {
			return nil, notFound(what, name)
		}
		path = what + "s.copy"
		compute = func() (any, error) { return s.repeat(name, l["count"], l["input"]) }
	}
	if s.depth++; s.depth > expression.Deepest {
		return nil, short.Errorf("the template %s '%s' refers to itself", what, name)
	}
	around, lambdas := s.loops, s.lambdas
	s.loops, s.lambdas = nil, nil
	defer func() { s.depth--; s.loops, s.lambdas = around, lambdas }()
	value, err := compute()
	if err != nil {
		return nil, fault.At(path, err)
	}
	return value, s.grow(language.SizeOf(value))
}

// loopOf is the loop of an object that makes an array of this name.
func loopOf(o Object, name string) (Object, bool) {
	loops, _ := propertyLoops(o)
	for _, l := range loops {
		if text, _ := l["name"].(string); strings.EqualFold(text, name) {
			return l, true
		}
	}
	return nil, false
}
