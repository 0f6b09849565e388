package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
		if keyOf(declared, name) == "" {
			return invalid("parameters", "The template parameters '%s' in the parameters file are not valid; they are not present in the "+
				"original template and can therefore not be provided at deployment time. The only supported parameters for this "+
				"template are '%s'. Please see https://aka.ms/arm-pass-parameter-values for usage details", name,
				strings.Join(slices.Sorted(maps.Keys(declared)), ", "))
		}
	}
	names := slices.Sorted(maps.Keys(declared))
	for _, name := range names {
		entry, _ := given[keyOf(given, name)].(Object)
		if value, ok := entry["value"]; ok {
			s.parameters[name] = value
			continue
		}
		value, ok := object(declared, name)["defaultValue"]
		if !ok {
			return invalid("parameters."+name,
				"The value for the template parameter '%s' at line '1' and column '1' is not provided. Please "+
					"see https://aka.ms/arm-create-parameter-file for usage details", name)
		}
		s.defaults[name] = value
	}
	for _, name := range names {
		if _, isGiven := s.parameters[name]; !isGiven {
			value, err := s.evaluate(s.defaults[name])
			if err != nil {
				return at("parameters."+name+".defaultValue", err)
			}
			s.parameters[name] = value
		}
		if err := checkParameter(name, object(declared, name), s.parameters[name]); err != nil {
			return err
		}
	}
	return nil
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
	allowed, _ := declaration["allowedValues"].([]any)
	if len(allowed) > 0 && !slices.ContainsFunc(allowed, func(a any) bool { return equal(a, value) }) {
		return invalid(path, "The provided value for the template parameter '%s' is not valid. The value '%v' is not part of the allowed "+
			"value(s): '%s'", name, value, listed(allowed))
	}
	return nil
}

func fits(kind string, value any) bool {
	switch value.(type) {
	case string:
		return strings.HasSuffix(kind, "string")
	case float64:
		_, ok := whole(value)
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
