package template

import (
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure/short"
	"kaz/internal/template/expression"
	"kaz/internal/template/fault"
)

// checkNames refuses calls of functions that there are not, and names of parameters and variables that the template does not have, also
// where nothing is computed yet: in outputs, in variables that nothing uses, and in the branch of an if that is not taken. The templates of
// nested deployments and the bodies of declared functions have names of their own.
func (t *Template) checkNames() error {
	known := map[string]map[string]bool{
		"parameter": declared(object(t.scope.document, "parameters")), "variable": declared(object(t.scope.document, "variables")),
	}
	for _, section := range []string{"variables", "resources", "outputs"} {
		value := t.scope.document[section]
		if section == "resources" {
			value = withoutNested(value)
		}
		var first error
		expression.Visit(value, func(path string, e expression.Expression, err error) {
			if err == nil {
				if err = t.scope.checkCalls(e, known); err == nil && section == "variables" {
					err = checkVariable(path, e)
				} else if err == nil {
					err = t.checkReferences(e)
				}
				if err != nil {
					err = fault.In(e.String(), err)
				}
			}
			if err != nil && first == nil {
				first = fault.At(section+path, err)
			}
		})
		if first != nil {
			return first
		}
	}
	return t.scope.checkFunctions()
}

// checkFunctions checks the bodies of the functions that the template declares, also of those that nothing calls. They see their
// parameters alone, and no resource.
func (s *evaluator) checkFunctions() (first error) {
	for _, name := range slices.Sorted(maps.Keys(s.users)) {
		own := Object{}
		for _, p := range s.users[name].parameters {
			parameter, _ := p["name"].(string)
			own[parameter] = nil
		}
		expression.Visit(s.users[name].output["value"], func(path string, e expression.Expression, err error) {
			if err == nil {
				err = s.checkCalls(e, map[string]map[string]bool{"parameter": declared(own), "variable": {}})
			}
			if err == nil {
				err = checkVariable(name, e)
			}
			if err != nil && first == nil {
				first = fault.At("functions."+name+path, fault.In(e.String(), err))
			}
		})
	}
	return first
}

// checkReferences refuses a reference by a name that no resource and no loop of the template has, where the name is known before any
// resource exists.
func (t *Template) checkReferences(e expression.Expression) (first error) {
	e.Calls(func(call expression.Expression) {
		if !strings.EqualFold(call.Call, "reference") || first != nil {
			return
		}
		of, err := t.scope.compute(call.Args[0])
		name, isText := of.(string)
		symbol, _, _ := strings.Cut(name, "[")
		_, named := t.scope.names[strings.ToLower(name)]
		if err == nil && isText && !named && !strings.Contains(name, "/") && t.scope.symbols[symbol] == nil &&
			t.loops[strings.ToLower(name)] == nil {
			first = short.Errorf("The template reference '%s' is not valid: could not find template resource or resource copy with this "+
				"name. Please see https://aka.ms/arm-function-reference for usage details", name)
		}
	})
	return first
}

// checkCalls checks the calls of an expression, and the names that are known of parameters and variables.
func (s *evaluator) checkCalls(e expression.Expression, known map[string]map[string]bool) (first error) {
	e.Calls(func(call expression.Expression) {
		if first != nil {
			return
		}
		if _, first = s.check(call); first != nil || len(call.Args) != 1 {
			return
		}
		name, ok := call.Args[0].Literal.(string)
		what := strings.TrimSuffix(strings.ToLower(call.Call), "s")
		if names, is := known[what]; ok && is && !names[strings.ToLower(name)] {
			first = notFound(what, name)
		}
	})
	return first
}

// checkVariable refuses a variable that asks for a resource: variables are computed before any resource exists.
func checkVariable(path string, e expression.Expression) (first error) {
	e.Calls(func(call expression.Expression) {
		if function := strings.ToLower(call.Call); first == nil && asks(function) {
			name, _, _ := strings.Cut(strings.TrimPrefix(path, "."), ".")
			first = short.Errorf("The template variable '%s' is not valid: The template function '%s' is not expected at this location. "+
				"Please see https://aka.ms/arm-template-expressions for usage details", name, call.Call)
		}
	})
	return first
}

// asks reports whether a function, by its name in lower case, asks for a resource.
func asks(function string) bool {
	if function == "reference" || function == "references" {
		return true
	}
	return strings.HasPrefix(function, "list") && !strings.Contains(function, ".")
}

// declared returns the names of a section of the template in lower case, those that loops make too.
func declared(values Object) map[string]bool {
	names := map[string]bool{}
	for name := range values {
		names[strings.ToLower(name)] = true
	}
	loops, _ := propertyLoops(values)
	for _, l := range loops {
		if name, ok := l["name"].(string); ok {
			names[strings.ToLower(name)] = true
		}
	}
	return names
}

// notFound refuses the name of a parameter or a variable.
func notFound(what, name string) error {
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
