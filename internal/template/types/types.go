// Package types checks values by the declarations of a template: those of parameters and outputs, and the type definitions to
// which they refer. Layer L1: it knows values alone.
package types

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure/short"
	"kaz/internal/template/fault"
	language "kaz/internal/template/function"
)

// Object is a JSON object as encoding/json decodes it.
type Object = map[string]any

// Definitions are the type definitions of a template.
type Definitions struct {
	// Template is the template that has them.
	Template Object
	// Work counts steps of checks, and ends them with its error.
	Work func(steps int) error
}

// typeNames are the types of parameters and outputs as deployments show them.
var typeNames = map[string]string{
	"string": "String", "securestring": "SecureString", "int": "Int", "bool": "Bool", "object": "Object", "secureobject": "SecureObject",
	"array": "Array",
}

// Name is a type of a parameter or an output as deployments show it, "" for one that
// does not exist.
func Name(declared string) string { return typeNames[strings.ToLower(declared)] }

// Secure reports whether values of a type are not to be shown.
func Secure(declared string) bool { return strings.HasPrefix(strings.ToLower(declared), "secure") }

// Check checks the value of a parameter against its declaration.
func (d Definitions) Check(name string, declared Object, value any) error {
	declaration, err := d.Resolve(declared)
	if err != nil {
		return fault.At("parameters."+name, err)
	}
	if value == nil && declaration["nullable"] == true {
		return nil
	}
	if err := checkParameter(name, declaration, value); err != nil {
		return err
	}
	return fault.At("parameters."+name, d.checkMembers(name, declaration, value))
}

func checkParameter(name string, declaration Object, value any) error {
	path := "parameters." + name
	declared, _ := declaration["type"].(string)
	kind := strings.ToLower(declared)
	if typeNames[kind] == "" {
		return fault.Invalid(path+".type", "The template parameter '%s' has the type '%s', which is not one of %s", name, kind,
			strings.Join(slices.Sorted(maps.Keys(typeNames)), ", "))
	}
	if !Fits(kind, value) {
		return fault.Invalid(path, "Template parameter JToken type is not valid. Expected '%s'. Actual value of the parameter '%s' is %v. "+
			"Please see https://aka.ms/resource-manager-parameter-files for usage details", typeNames[kind], name, value)
	}
	return checkLimits(name, declaration, value)
}

// checkLimits checks a value against the limits of its declaration.
func checkLimits(name string, declaration Object, value any) error {
	allowed, _ := declaration["allowedValues"].([]any)
	if len(allowed) > 0 && !isAllowed(allowed, value) {
		return fault.Invalid("parameters."+name, "The provided value for the template parameter '%s' is not valid. The value '%v' is not "+
			"part of the allowed value(s): '%s'", name, value, listed(allowed))
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
			return fault.Invalid("parameters."+name, "The provided value for the template parameter '%s' is not valid. "+b.says+
				". Please see https://aka.ms/arm-create-parameter-file for usage details", name, measured, limit)
		}
	}
	return nil
}

// Resolve returns a declaration of a parameter or an output, completed by the type definition that it refers to.
func (d Definitions) Resolve(declaration Object) (Object, error) {
	const path, most = "#/definitions/", 32
	for range most {
		ref, ok := declaration["$ref"].(string)
		if !ok {
			return declaration, nil
		}
		name, here := strings.CutPrefix(ref, path)
		definition := sub(d.Template, "definitions")
		for step := range strings.SplitSeq(name, "/") { // "type/properties/member" is the type of a member
			definition = sub(definition, step)
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

// Fits reports whether a value is one of a type, which is given in lower case.
func Fits(kind string, value any) bool {
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

// sub is the object at a key, nil for none.
func sub(o Object, key string) Object {
	inner, _ := o[key].(Object)
	return inner
}
