package types

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure/short"
	"kaz/internal/template/fault"
)

// aggregates are the members of a declaration that say what is inside of a value.
var aggregates = []string{"additionalProperties", "discriminator", "items", "prefixItems", "properties"}

// checkMembers checks what is inside of the value of a parameter, if the declaration says what it has to be. The name is that of the
// parameter, with the path to the value: "p.rules[0].port".
func (d Definitions) checkMembers(name string, declaration Object, value any) error {
	if !slices.ContainsFunc(aggregates, func(member string) bool { return declaration[member] != nil }) {
		return nil
	}
	if d.Template["languageVersion"] == nil {
		return short.Errorf("Template language version must be specified in order to use feature 'AggregateTypeValidation'")
	}
	if err := d.Work(1); err != nil {
		return err
	}
	switch v := value.(type) {
	case Object:
		return d.checkProperties(name, declaration, v)
	case []any:
		return d.checkItems(name, declaration, v)
	}
	return nil
}

// checkProperties checks the properties of an object: those that are declared, and all others.
func (d Definitions) checkProperties(name string, declaration, value Object) error {
	declared, err := d.discriminated(name, declaration, value)
	if err != nil {
		return err
	}
	for _, property := range slices.Sorted(maps.Keys(declared)) {
		if err := d.checkMember(name+"."+property, declared[property], value, property); err != nil {
			return err
		}
	}
	others, sealed := declaration["additionalProperties"], declaration["additionalProperties"] == false || declaration["sealed"] == true
	for _, property := range slices.Sorted(maps.Keys(value)) {
		if declared[property] != nil {
			continue
		}
		if sealed {
			return refused(name, "The property '%s' is not permitted", property)
		}
		if err := d.checkMember(name+"."+property, others, value, property); err != nil {
			return err
		}
	}
	return nil
}

// discriminated are the declared properties of an object, with those of the type that its discriminator chooses.
func (d Definitions) discriminated(name string, declaration, value Object) (Object, error) {
	declared := sub(declaration, "properties")
	discriminator := sub(declaration, "discriminator")
	if discriminator == nil {
		return declared, nil
	}
	by, _ := discriminator["propertyName"].(string)
	chosen, _ := value[by].(string)
	variants := sub(discriminator, "mapping")
	variant, known := variants[chosen].(Object)
	if !known {
		return nil, refused(name+"."+by, "The value '%v' is not part of the allowed value(s): '%s'", value[by],
			strings.Join(slices.Sorted(maps.Keys(variants)), ","))
	}
	variant, err := d.Resolve(variant)
	if err != nil {
		return nil, err
	}
	all := Object{}
	maps.Copy(all, declared)
	maps.Copy(all, sub(variant, "properties"))
	return all, nil
}

func (d Definitions) checkItems(name string, declaration Object, value []any) error {
	first, _ := declaration["prefixItems"].([]any)
	if len(value) < len(first) || len(value) > len(first) && declaration["items"] == false {
		return refused(name, "The length '%d' of the value must be equal to '%d'", len(value), len(first))
	}
	for i, item := range value {
		declared := declaration["items"]
		if i < len(first) {
			declared = first[i]
		}
		at := name + "[" + strconv.Itoa(i) + "]"
		if err := d.checkMember(at, declared, Object{at: item}, at); err != nil {
			return err
		}
	}
	return nil
}

// checkMember checks the value of a key by its declaration. A declaration that is no object allows all values.
func (d Definitions) checkMember(name string, declared any, of Object, key string) error {
	declaration, ok := declared.(Object)
	if !ok {
		return nil
	}
	declaration, err := d.Resolve(declaration)
	if err != nil {
		return err
	}
	value := of[key]
	kind, _ := declaration["type"].(string)
	switch {
	case value == nil && declaration["nullable"] == true:
		return nil
	case value == nil:
		return refused(name, "Expected a value of type '%s', but received none", Name(kind))
	case kind != "" && !Fits(strings.ToLower(kind), value):
		return refused(name, "Expected a value of type '%s', but received a value of type '%s'", Name(kind), Name(kindOf(value)))
	}
	if err := checkLimits(name, declaration, value); err != nil {
		return err
	}
	return d.checkMembers(name, declaration, value)
}

// refused says why a value in a parameter is refused.
func refused(name, format string, args ...any) error {
	return fault.Invalid("parameters."+name, "The provided value for the template parameter '%s' is not valid. "+format+". Please see "+
		"https://aka.ms/arm-create-parameter-file for usage details", append([]any{name}, args...)...)
}

// kindOf is the type of a value.
func kindOf(value any) string {
	for _, kind := range []string{"string", "int", "bool", "object", "array"} {
		if Fits(kind, value) {
			return kind
		}
	}
	return ""
}
