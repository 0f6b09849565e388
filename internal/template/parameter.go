package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure/short"
	language "kaz/internal/template/function"
)

// typeNames are the types of parameters and outputs as deployments show them.
var typeNames = map[string]string{
	"string": "String", "securestring": "SecureString", "int": "Int", "bool": "Bool", "object": "Object", "secureobject": "SecureObject",
	"array": "Array",
}

// TypeName is a type of a parameter or an output as deployments show it, "" for one that
// does not exist.
func TypeName(declared string) string { return typeNames[strings.ToLower(declared)] }

// Secure reports whether values of a type are not to be shown.
func Secure(declared string) bool { return strings.HasPrefix(strings.ToLower(declared), "secure") }

// bindParameters gives every declared parameter its value: the given one as it is,
// or its default, which may be an expression.
func (s *evaluator) bindParameters(declared Object) error {
	given := s.deployment.Parameters
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if language.KeyOf(declared, name) == "" {
			return invalid("parameters", "The template parameters '%s' in the parameters file are not valid; they are not present in the "+
				"original template and can therefore not be provided at deployment time. The only supported parameters for this "+
				"template are '%s'. Please see https://aka.ms/arm-pass-parameter-values for usage details", name,
				strings.Join(slices.Sorted(maps.Keys(declared)), ", "))
		}
	}
	if err := s.takeGiven(declared); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if _, isGiven := s.parameters[name]; !isGiven {
			s.inDefault = true
			value, err := s.evaluate(s.defaults[name])
			s.inDefault = false
			if err != nil {
				return at("parameters."+name+".defaultValue", err)
			}
			s.parameters[name] = value
		}
		if err := s.checkValue(name, object(declared, name)); err != nil {
			return err
		}
	}
	return nil
}

// takeGiven takes the given values of the declared parameters, and the default values of the others.
func (s *evaluator) takeGiven(declared Object) error {
	given := s.deployment.Parameters
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		entry, _ := given[language.KeyOf(given, name)].(Object)
		if value, ok := entry["value"]; ok {
			s.parameters[name] = value
			continue
		}
		value, ok := object(declared, name)["defaultValue"]
		if declaration, err := s.resolved(object(declared, name)); err == nil && declaration["nullable"] == true {
			ok = true
		}
		if !ok {
			return invalid("parameters."+name,
				"The value for the template parameter '%s' at line '1' and column '1' is not provided. Please "+
					"see https://aka.ms/arm-create-parameter-file for usage details", name)
		}
		s.defaults[name] = value
	}
	return nil
}

// checkValue checks the value of a parameter against its declaration.
func (s *evaluator) checkValue(name string, declared Object) error {
	declaration, err := s.resolved(declared)
	if err != nil {
		return at("parameters."+name, err)
	}
	value := s.parameters[name]
	if value == nil && declaration["nullable"] == true {
		return nil
	}
	if err := checkParameter(name, declaration, value); err != nil {
		return err
	}
	return at("parameters."+name, s.checkMembers(name, declaration, value))
}

func checkParameter(name string, declaration Object, value any) error {
	path := "parameters." + name
	declared, _ := declaration["type"].(string)
	kind := strings.ToLower(declared)
	if typeNames[kind] == "" {
		return invalid(path+".type", "The template parameter '%s' has the type '%s', which is not one of %s", name, kind,
			strings.Join(slices.Sorted(maps.Keys(typeNames)), ", "))
	}
	if !fits(kind, value) {
		return invalid(path, "Template parameter JToken type is not valid. Expected '%s'. Actual value of the parameter '%s' is %v. "+
			"Please see https://aka.ms/resource-manager-parameter-files for usage details", typeNames[kind], name, value)
	}
	return checkLimits(name, declaration, value)
}

// checkLimits checks a value against the limits of its declaration.
func checkLimits(name string, declaration Object, value any) error {
	allowed, _ := declaration["allowedValues"].([]any)
	if len(allowed) > 0 && !isAllowed(allowed, value) {
		return invalid("parameters."+name, "The provided value for the template parameter '%s' is not valid. The value '%v' is not part "+
			"of the allowed value(s): '%s'", name, value, listed(allowed))
	}
	return checkBounds(name, declaration, value)
}

// isAllowed reports whether a value is one of the allowed ones, or an array of some of them.
func isAllowed(allowed []any, value any) bool {
	isOne := func(x any) bool {
		return slices.ContainsFunc(allowed, func(a any) bool { return language.Equal(a, x) })
	}
	array, ok := value.([]any)
	return isOne(value) || ok && !slices.ContainsFunc(array, func(x any) bool { return !isOne(x) })
}

// bounds are the limits that a declaration may set: of a number, or of the length of a string or an array.
var bounds = []struct {
	field, kind string
	holds       func(value, bound int64) bool
	says        string
}{
	{"minValue", "int", func(v, b int64) bool { return v >= b }, "The value '%d' must be greater than or equal to '%d'"},
	{"maxValue", "int", func(v, b int64) bool { return v <= b }, "The value '%d' must be less than or equal to '%d'"},
	{"minLength", "", func(v, b int64) bool { return v >= b }, "The length '%d' of the value must be greater than or equal to '%d'"},
	{"maxLength", "", func(v, b int64) bool { return v <= b }, "The length '%d' of the value must be less than or equal to '%d'"},
}

func checkBounds(name string, declaration Object, value any) error {
	for _, b := range bounds {
		limit, ok := language.Whole(declaration[b.field])
		if !ok {
			continue
		}
		measured, isNumber := language.Whole(value)
		if b.kind == "" {
			n, err := language.Length([]any{value})
			if err != nil {
				continue
			}
			measured, isNumber = language.Whole(n)
		}
		if isNumber && !b.holds(measured, limit) {
			return invalid("parameters."+name, "The provided value for the template parameter '%s' is not valid. "+b.says+
				". Please see https://aka.ms/arm-create-parameter-file for usage details", name, measured, limit)
		}
	}
	return nil
}

// resolved is a declaration of a parameter or an output, completed by the type definition that it refers to.
func (s *evaluator) resolved(declaration Object) (Object, error) {
	const path, most = "#/definitions/", 32
	for range most {
		ref, ok := declaration["$ref"].(string)
		if !ok {
			return declaration, nil
		}
		name, here := strings.CutPrefix(ref, path)
		definition := object(s.document, "definitions")
		for step := range strings.SplitSeq(name, "/") { // "type/properties/member" is the type of a member
			definition = object(definition, step)
		}
		if !here || definition == nil {
			return nil, short.Errorf("the type definition '%s' is not found in the template", ref)
		}
		all := maps.Clone(definition)
		maps.Copy(all, declaration)
		if delete(all, "$ref"); definition["$ref"] != nil {
			all["$ref"] = definition["$ref"]
		}
		declaration = all
	}
	return nil, short.Errorf("the type definitions of the template refer to themselves")
}

// Declared are the declarations of the parameters of a template, with the type definitions that they refer to.
func (t *Template) Declared() Object {
	all := Object{}
	for name, d := range object(t.scope.document, "parameters") {
		declaration, _ := d.(Object)
		if resolved, err := t.scope.resolved(declaration); err == nil {
			all[name] = resolved
		}
	}
	return all
}

func fits(kind string, value any) bool {
	switch value.(type) {
	case string:
		return strings.HasSuffix(kind, "string")
	case float64:
		_, ok := language.Whole(value)
		return ok && kind == "int"
	case bool:
		return kind == "bool"
	case Object:
		return strings.HasSuffix(kind, "object")
	case []any:
		return kind == "array"
	}
	return false
}

func listed(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, ",")
}
