package policy

import (
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// The types of policies.
const (
	AssignmentType = "Microsoft.Authorization/policyAssignments"
	ExemptionType  = "Microsoft.Authorization/policyExemptions"
	setType        = "Microsoft.Authorization/policySetDefinitions"
)

// Assigned is a definition that an assignment assigns, itself or in a set.
type Assigned struct {
	ID azure.ID
	// Definition is the document of the definition, Values are its parameters.
	Definition, Values behaviour.Object
	// Reference is the name of the definition in a set, "" outside of sets.
	Reference string
}

// Definitions returns what an assignment assigns. get returns a document. Definitions that are not there, such as those that are built
// in, are left out.
func Definitions(assignment behaviour.Object, get func(azure.ID) (behaviour.Object, bool)) ([]Assigned, error) {
	id := azure.ID(behaviour.Text(assignment, "properties.policyDefinitionId"))
	doc, there := get(id)
	values := behaviour.Sub(assignment, "properties.parameters")
	switch {
	case !there:
		return nil, nil
	case !id.Is(setType):
		return []Assigned{{ID: id, Definition: doc, Values: values}}, nil
	}
	var all []Assigned
	for _, member := range behaviour.Objects(doc, "properties.policyDefinitions") {
		given := behaviour.Sub(member, "parameters")
		if given == nil {
			given = behaviour.Object{}
		}
		resolved, err := resolve(behaviour.Sub(doc, "properties.parameters"), values, given)
		if err != nil {
			return nil, err
		}
		inner := azure.ID(behaviour.Text(member, "policyDefinitionId"))
		if definition, there := get(inner); there {
			parameters, _ := resolved.(behaviour.Object)
			all = append(all, Assigned{inner, definition, parameters, behaviour.Text(member, "policyDefinitionReferenceId")})
		}
	}
	return all, nil
}

// Applies reports whether an assignment is enforced on a resource.
func Applies(assignment behaviour.Object, resource azure.ID) bool {
	if strings.EqualFold(behaviour.Text(assignment, "properties.enforcementMode"), "DoNotEnforce") ||
		!resource.Under(azure.ID(behaviour.Text(assignment, "properties.scope"))) {
		return false
	}
	for _, scope := range behaviour.Texts(assignment, "properties.notScopes") {
		if resource.Under(azure.ID(scope)) {
			return false
		}
	}
	return true
}

// Exempts reports whether an exemption, which is in a scope, exempts a resource from a definition of an assignment.
func Exempts(exemption behaviour.Object, scope, assignment, resource azure.ID, reference string, now time.Time) bool {
	if end, err := time.Parse(time.RFC3339, behaviour.Text(exemption, "properties.expiresOn")); err == nil && !now.Before(end) {
		return false
	}
	if !resource.Under(scope) || !assignment.Equal(azure.ID(behaviour.Text(exemption, "properties.policyAssignmentId"))) {
		return false
	}
	references := behaviour.Texts(exemption, "properties.policyDefinitionReferenceIds")
	for _, one := range references {
		if strings.EqualFold(one, reference) {
			return true
		}
	}
	return len(references) == 0
}

// CheckParameters returns an error if an assignment does not have the parameters of its definition or set. name is that of the
// assignment.
func CheckParameters(name string, assignment, definition behaviour.Object) error {
	declared, given := behaviour.Sub(definition, "properties.parameters"), behaviour.Sub(assignment, "properties.parameters")
	for parameter := range given {
		if member(declared, parameter) == nil {
			return behaviour.Invalid("UndefinedPolicyParameter", "The policy assignment '%s' has the parameter '%s', which is not "+
				"defined in the policy definition '%s'.", name, parameter, behaviour.Text(definition, "name"))
		}
	}
	for parameter, one := range declared {
		o, _ := one.(behaviour.Object)
		if o["defaultValue"] == nil && member(given, parameter) == nil {
			return behaviour.Invalid("MissingPolicyParameter", "The policy assignment '%s' is missing the parameter(s) '%s' as defined in "+
				"the policy definition '%s'.", name, parameter, behaviour.Text(definition, "name"))
		}
	}
	return nil
}

// InvalidRule is the error for a rule that cannot be evaluated.
func InvalidRule(name string, err error) error {
	return behaviour.Invalid("InvalidPolicyRule", "The policy definition '%s' rule is invalid: %s.", name,
		strings.TrimSuffix(err.Error(), "."))
}
