package checks

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/policy"
)

// violation is a definition that denies a write, with its assignment.
type violation struct {
	assignment azure.ID
	document   behaviour.Object // of the assignment
	assigned   policy.Assigned
	effect     string
	evaluated  []policy.Expression
}

// policies refuses to write a document that policies deny. They see it before the provider completes it.
func (t Checks) policies(r *message.Request, c *behaviour.Call) error {
	if hasPrefixFold(r.Kind.Name, "Microsoft.Authorization/") || strings.EqualFold(r.Kind.Name, "Microsoft.Resources/deployments") {
		return nil
	}
	var found []violation
	for _, e := range t.docs.Entries(azure.SubscriptionID(r.ID.Subscription()), policy.AssignmentType) {
		doc := t.docs.Doc(e)
		if !policy.Applies(doc, r.ID) {
			continue
		}
		assigned, err := policy.Definitions(doc, t.docs.Get)
		if err != nil {
			return err
		}
		for _, one := range assigned {
			v := violation{assignment: e.ID, document: doc, assigned: one}
			if t.sees(r, one.Definition) && !t.exempt(r, v) && v.denies(r, c) {
				found = append(found, v)
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	return disallowed(r, found)
}

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// sees reports whether the mode of a definition is for the type of a resource. Indexed is for types with a location and tags.
func (t Checks) sees(r *message.Request, definition behaviour.Object) bool {
	switch mode := behaviour.Text(definition, "properties.mode"); {
	case strings.EqualFold(mode, "All"):
		return true
	case strings.EqualFold(mode, "Indexed"):
		return (r.Kind.Where == behaviour.Located || r.Kind.Where == behaviour.Global) &&
			!strings.EqualFold(r.Kind.Name, "Microsoft.Resources/resourceGroups")
	}
	return false // the mode of a provider
}

func (t Checks) exempt(r *message.Request, v violation) bool {
	for _, e := range t.docs.Entries(azure.SubscriptionID(r.ID.Subscription()), policy.ExemptionType) {
		if policy.Exempts(t.docs.Doc(e), e.ID.Parent(), v.assignment, r.ID, v.assigned.Reference, t.world.Now()) {
			return true
		}
	}
	return false
}

// denies evaluates the rule of a definition. A rule that cannot be read was refused when it was assigned.
func (v *violation) denies(r *message.Request, c *behaviour.Call) bool {
	rule, err := policy.Parse(v.assigned.Definition, v.assigned.Values)
	if err != nil || !rule.Denies() {
		return false
	}
	v.effect = rule.Effect
	matches := false
	matches, v.evaluated = rule.Matches(policy.Resource{ID: r.ID, Type: r.Kind.Name, Doc: c.Doc})
	return matches
}

// disallowed is the error of a write that policies deny.
func disallowed(r *message.Request, found []violation) error {
	type named struct {
		Name string `json:"name"`
		ID   string `json:"id"`
	}
	type identifier struct {
		Assignment named `json:"policyAssignment"`
		Definition named `json:"policyDefinition"`
	}
	var identifiers []identifier
	var reasons []string
	var info []behaviour.ErrorInfo
	for _, v := range found {
		identifiers = append(identifiers, identifier{
			named{cmp.Or(behaviour.Text(v.document, "properties.displayName"), v.assignment.Name()), string(v.assignment)},
			named{cmp.Or(behaviour.Text(v.assigned.Definition, "properties.displayName"), v.assigned.ID.Name()), string(v.assigned.ID)}})
		for _, message := range behaviour.Objects(v.document, "properties.nonComplianceMessages") {
			if reference := behaviour.Text(message, "policyDefinitionReferenceId"); reference == "" ||
				strings.EqualFold(reference, v.assigned.Reference) {
				reasons = append(reasons, behaviour.Text(message, "message"))
			}
		}
		info = append(info, behaviour.ErrorInfo{Type: "PolicyViolation", Info: v.info()})
	}
	text, err := json.Marshal(identifiers)
	if err != nil {
		return err
	}
	message := fmt.Sprintf("Resource '%s' was disallowed by policy. Policy identifiers: '%s'.", r.ID.Name(), text)
	if len(reasons) > 0 {
		message = fmt.Sprintf("Resource '%s' was disallowed by policy. Reasons: '%s'. See error details for policy resource IDs.",
			r.ID.Name(), strings.Join(reasons, "'; '"))
	}
	refusal := behaviour.Gateway(http.StatusForbidden, "RequestDisallowedByPolicy", "%s", message).At(r.ID.Name())
	refusal.Info = info
	return refusal
}

// info is what an error says about a policy that denies.
func (v *violation) info() behaviour.Object {
	expressions := []any{}
	for _, e := range v.evaluated {
		one := behaviour.Object{"result": "False", "expressionKind": e.Kind, "expression": e.Field, "path": e.Path,
			"targetValue": e.Target, "operator": e.Operator}
		if e.Result {
			one["result"] = "True"
		}
		if e.Value != nil {
			one["expressionValue"] = e.Value
		}
		expressions = append(expressions, one)
	}
	parameters := behaviour.Object{}
	for name, value := range behaviour.Sub(v.document, "properties.parameters") {
		o, _ := value.(behaviour.Object)
		parameters[name] = o["value"]
	}
	info := behaviour.Object{
		"evaluationDetails":  behaviour.Object{"evaluatedExpressions": expressions},
		"policyDefinitionId": string(v.assigned.ID), "policyDefinitionName": v.assigned.ID.Name(), "policyDefinitionEffect": v.effect,
		"policyAssignmentId": string(v.assignment), "policyAssignmentName": v.assignment.Name(),
		"policyAssignmentScope":      behaviour.Text(v.document, "properties.scope"),
		"policyAssignmentParameters": parameters, "policyExemptionIds": []any{},
	}
	for field, doc := range map[string]behaviour.Object{"policyAssignmentDisplayName": v.document,
		"policyDefinitionDisplayName": v.assigned.Definition} {
		if name := behaviour.Text(doc, "properties.displayName"); name != "" {
			info[field] = name
		}
	}
	return info
}
