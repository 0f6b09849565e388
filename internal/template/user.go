package template

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure/short"
	"kaz/internal/template/fault"
	language "kaz/internal/template/function"
)

// userFunction is a function that a template declares.
type userFunction struct {
	name       string
	parameters []Object // {"name", "type"}
	output     Object   // {"type", "value"}
}

// declareFunctions reads the section "functions" of the template.
func (s *evaluator) declareFunctions() error {
	spaces, _ := s.document["functions"].([]any)
	for i, x := range spaces {
		space, _ := x.(Object)
		prefix, ok := space["namespace"].(string)
		if !ok || prefix == "" {
			return fault.Invalid(fmt.Sprintf("functions[%d]", i), "The functions of the template have no namespace")
		}
		for name, member := range object(space, "members") {
			m, _ := member.(Object)
			declared, _ := m["parameters"].([]any)
			parameters, ok := language.AllOf[Object](declared)
			if !ok || object(m, "output") == nil {
				return fault.Invalid(fmt.Sprintf("functions[%d].members.%s", i, name), "The function '%s.%s' has no output, or has "+
					"parameters that are not objects", prefix, name)
			}
			s.users[strings.ToLower(prefix+"."+name)] = userFunction{prefix + "." + name, parameters, object(m, "output")}
		}
	}
	return nil
}

// builtIn makes a function of the language of a declared one. Its body sees its own parameters and the other functions alone.
func (u userFunction) builtIn() function {
	return function{least: len(u.parameters), most: len(u.parameters), here: func(s *evaluator, args []any) (any, error) {
		if slices.Contains(s.calls, u.name) {
			return nil, short.Errorf("the function '%s' of the template calls itself", u.name)
		}
		around := *s
		defer func() {
			s.parameters, s.defaults, s.variables, s.loops, s.lambdas, s.azure, s.calls = around.parameters, around.defaults,
				around.variables, around.loops, around.lambdas, around.azure, around.calls
		}()
		s.calls = append(slices.Clone(s.calls), u.name)
		s.parameters, s.defaults, s.variables, s.loops, s.lambdas, s.azure = Object{}, Object{}, Object{}, nil, nil, nil
		for i, p := range u.parameters {
			name, _ := p["name"].(string)
			s.parameters[name] = args[i]
		}
		value, err := s.evaluate(u.output["value"])
		if err != nil {
			return nil, short.Errorf("the function '%s' of the template can not be evaluated: %s", u.name, fault.Message(err))
		}
		return value, nil
	}}
}
