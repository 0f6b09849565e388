package template

import (
	"maps"
	"slices"
	"strings"

	"kaz/internal/template/fault"
	language "kaz/internal/template/function"
)

// bindParameters gives every declared parameter its value: the given one as it is,
// or its default, which may be an expression.
func (s *evaluator) bindParameters(declared Object) error {
	given := s.deployment.Parameters
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if language.KeyOf(declared, name) == "" {
			return fault.Invalid("parameters", "The template parameters '%s' in the parameters file are not valid; they are not present "+
				"in the original template and can therefore not be provided at deployment time. The only supported parameters for this "+
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
				return fault.At("parameters."+name+".defaultValue", err)
			}
			s.parameters[name] = value
		}
		if err := s.definitions().Check(name, object(declared, name), s.parameters[name]); err != nil {
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
		if declaration, err := s.definitions().Resolve(object(declared, name)); err == nil && declaration["nullable"] == true {
			ok = true
		}
		if !ok {
			return fault.Invalid("parameters."+name,
				"The value for the template parameter '%s' at line '1' and column '1' is not provided. Please "+
					"see https://aka.ms/arm-create-parameter-file for usage details", name)
		}
		s.defaults[name] = value
	}
	return nil
}

// Declared are the declarations of the parameters of a template, with the type definitions that they refer to.
func (t *Template) Declared() Object {
	all := Object{}
	for name, d := range object(t.scope.document, "parameters") {
		declaration, _ := d.(Object)
		if resolved, err := t.scope.definitions().Resolve(declaration); err == nil {
			all[name] = resolved
		}
	}
	return all
}
