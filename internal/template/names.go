package template

import (
	"slices"
	"strings"

	"kaz/internal/azure/short"
)

// CheckNames refuses calls of functions that there are not, and names of parameters and variables that the template does not have, also
// where nothing is computed yet: in outputs, in variables that nothing uses, and in the branch of an if that is not taken. The templates of
// nested deployments and the bodies of declared functions have names of their own.
func (t *Template) CheckNames() error {
	for _, section := range []string{"variables", "resources", "outputs"} {
		value := t.scope.document[section]
		if section == "resources" {
			value = withoutNested(value)
		}
		var first error
		Expressions(value, func(path string, e Expression, err error) {
			if err == nil {
				err = t.scope.checkCalls(e)
			}
			if err != nil && first == nil {
				first = at(section+path, err)
			}
		})
		if first != nil {
			return first
		}
	}
	return nil
}

// checkCalls checks the calls of an expression.
func (s *evaluator) checkCalls(e Expression) (first error) {
	e.Calls(func(call Expression) {
		if first != nil {
			return
		}
		if _, first = s.check(call); first != nil || len(call.args) != 1 {
			return
		}
		name, ok := call.args[0].literal.(string)
		if !ok {
			return
		}
		switch strings.ToLower(call.call) {
		case "parameters":
			first = declared("parameter", object(s.document, "parameters"), name)
		case "variables":
			first = declared("variable", object(s.document, "variables"), name)
		}
	})
	return first
}

// declared returns an error if a section of the template has no value of this name.
func declared(what string, values Object, name string) error {
	for key := range values {
		if strings.EqualFold(key, name) {
			return nil
		}
	}
	if _, ok := loopOf(values, name); ok {
		return nil
	}
	return short.Errorf("the template %s '%s' is not found. Please see https://aka.ms/arm-syntax-%ss for usage details", what, name, what)
}

// withoutNested is a value of a template without the templates of nested deployments in it.
func withoutNested(value any) any {
	switch v := value.(type) {
	case Object:
		kind, _ := v["type"].(string)
		own := make(Object, len(v))
		for name, x := range v {
			own[name] = withoutNested(x)
		}
		if properties := object(v, "properties"); properties["template"] != nil && strings.EqualFold(kind, deploymentType) {
			inner := make(Object, len(properties))
			for name, x := range properties {
				if name != "template" {
					inner[name] = x
				}
			}
			own["properties"] = inner
		}
		return own
	case []any:
		own := slices.Clone(v)
		for i, x := range own {
			own[i] = withoutNested(x)
		}
		return own
	}
	return value
}
