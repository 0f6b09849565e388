// Package policy evaluates the rules of Azure Policy on resources that are written. It evaluates the conditions of a
// definition with the parameters of its assignment, and reports whether the effect denies the write. The functions have no
// side effects. Layer L2.
//
// The operators and fields are those of the page "Azure Policy definition structure". Counts, values that are computed from
// the resource, and effects other than deny are absent.
package policy

import (
	"errors"
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/template"
)

// Expression is a condition that was evaluated, as errors show it.
type Expression struct {
	Kind, Field, Path, Operator string
	Value, Target               any
	Result                      bool
}

// Rule is the rule of a definition with the parameters of an assignment in it.
type Rule struct {
	// Effect is such as "Deny".
	Effect string

	condition condition
}

// Denies reports whether the rule denies what it matches.
func (r Rule) Denies() bool { return strings.EqualFold(r.Effect, "deny") }

// Matches reports whether the conditions hold for a resource, and what was evaluated.
func (r Rule) Matches(of Resource) (bool, []Expression) {
	e := &evaluation{of: of}
	return r.condition.holds(e), e.seen
}

// templateTypes are the types of templates for the types of policies.
var templateTypes = map[string]string{"string": "string", "array": "array", "object": "object", "boolean": "bool", "integer": "int",
	"datetime": "string"}

// Parse returns the rule of a definition with the values of its parameters, {"name": {"value": ...}}. Rules that do not deny have no
// conditions, so policies with other effects need not be supported here.
func Parse(definition, values behaviour.Object) (Rule, error) {
	parameters := behaviour.Sub(definition, "properties.parameters")
	effect, err := resolve(parameters, values, behaviour.At(definition, "properties.policyRule.then.effect"))
	if err != nil {
		return Rule{}, err
	}
	r := Rule{}
	if r.Effect, _ = effect.(string); r.Effect == "" {
		return r, errors.New("the rule has no effect")
	}
	if !r.Denies() {
		return r, nil
	}
	conditions, err := resolve(parameters, values, behaviour.At(definition, "properties.policyRule.if"))
	if err == nil {
		r.condition, err = parse(conditions)
	}
	return r, err
}

// resolve computes the expressions in a value. They are expressions of templates.
func resolve(parameters, values behaviour.Object, value any) (any, error) {
	declared := behaviour.Object{}
	for name, one := range parameters {
		parameter, _ := one.(behaviour.Object)
		kind := templateTypes[strings.ToLower(behaviour.Text(parameter, "type"))]
		if kind == "" {
			return nil, fmt.Errorf("the type %q of the parameter '%s' is not supported", behaviour.Text(parameter, "type"), name)
		}
		typed := behaviour.Object{"type": kind}
		for _, part := range []string{"defaultValue", "allowedValues"} {
			if parameter[part] != nil {
				typed[part] = parameter[part]
			}
		}
		declared[name] = typed
	}
	t, err := template.Bind(behaviour.Object{
		"$schema":        "https://schema.management.azure.com/schemas/2018-05-01/subscriptionDeploymentTemplate.json#",
		"contentVersion": "1.0.0.0", "parameters": declared, "resources": []any{},
		"outputs": behaviour.Object{"value": behaviour.Object{"type": "object", "value": behaviour.Object{"of": value}}},
	}, template.Deployment{ID: azure.SubscriptionID("policy").Resource("Microsoft.Resources/deployments", "policy"), Parameters: values})
	if err != nil {
		return nil, err
	}
	outputs, err := t.Outputs()
	if err != nil {
		return nil, err
	}
	resolved, _ := outputs["value"].Value.(behaviour.Object)
	return resolved["of"], nil
}
