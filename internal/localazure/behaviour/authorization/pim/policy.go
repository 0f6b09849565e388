package pim

import (
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/authorization"
)

const (
	policyType           = namespace + "roleManagementPolicies"
	policyAssignmentType = namespace + "roleManagementPolicyAssignments"
)

//go:embed rules.json
var rulesJSON []byte

// rules are the rules of a policy that nothing changed. A mistake in the file is a mistake of the program; the tests read it.
var rules = sync.OnceValue(func() []any {
	var all []any
	if err := json.Unmarshal(rulesJSON, &all); err != nil {
		panic("rules.json: " + err.Error())
	}
	return all
})

// policyName is the name of the policy of a role at a scope: a GUID that stays the same.
func policyName(scope azure.ID, role string) string {
	sum := sha256.Sum256([]byte(scope.Key() + " " + strings.ToLower(role)))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// policies is the type of the policies: each role has one at each scope. A PATCH changes its rules, and a DELETE takes the changes back.
func policies() behaviour.Type {
	return behaviour.Type{
		Name: policyType, Style: behaviour.Plain("Microsoft.Authorization"), NoState: true, AnyScope: true, Adopt: true,
		Own: []string{"properties.scope", "properties.effectiveRules", "properties.policyProperties", "properties.isOrganizationDefault",
			"properties.lastModifiedBy", "properties.lastModifiedDateTime"},
		Fill: func(c *behaviour.Call) error {
			if c.Verb == behaviour.Create || c.Verb == behaviour.Update {
				return behaviour.Refusal(http.StatusMethodNotAllowed, "MethodNotAllowed",
					"The HTTP method 'PUT' is not supported for resource type '%s'.", policyType)
			}
			behaviour.Set(c.Doc, "properties.effectiveRules", behaviour.Clone(behaviour.At(c.Doc, "properties.rules")))
			behaviour.Set(c.Doc, "properties.lastModifiedDateTime", behaviour.Timestamp(c.Now()))
			return nil
		},
		Merge: mergeRules,
		Find: func(c *behaviour.Call) (behaviour.Object, error) {
			for _, role := range authorization.Definitions(c, c.ID.Parent()) {
				if strings.EqualFold(policyName(c.ID.Parent(), behaviour.Text(role, "name")), c.ID.Name()) {
					return policy(c, c.ID.Parent(), role), nil
				}
			}
			return nil, nil
		},
		All: func(c *behaviour.Call) ([]behaviour.Object, error) {
			all := []behaviour.Object{}
			for _, role := range authorization.Definitions(c, c.ID) {
				all = append(all, policy(c, c.ID, role))
			}
			return all, nil
		},
	}
}

// policy is the policy of a role at a scope, as it was changed, or as every policy is at first.
func policy(c *behaviour.Call, scope azure.ID, role behaviour.Object) behaviour.Object {
	id := scope.Resource(policyType, policyName(scope, behaviour.Text(role, "name")))
	if changed, there := c.Get(id); there {
		return changed
	}
	return behaviour.Object{"id": string(id), "name": id.Name(), "type": policyType, "properties": behaviour.Object{
		"scope": string(scope), "rules": behaviour.Clone(rules()), "effectiveRules": behaviour.Clone(rules()),
		"isOrganizationDefault": false, "lastModifiedBy": behaviour.Object{"displayName": "Admin"},
		"lastModifiedDateTime": behaviour.Timestamp(c.Now()),
		"policyProperties":     behaviour.Object{"scope": expandedScope(c, scope)},
	}}
}

// mergeRules replaces the rules of a policy that a request has, by their ids.
func mergeRules(c *behaviour.Call) error {
	kept := behaviour.Array(c.Doc, "properties.rules")
	for _, sent := range behaviour.Objects(c.Body, "properties.rules") {
		i := slices.IndexFunc(kept, func(one any) bool {
			rule, _ := one.(behaviour.Object)
			return strings.EqualFold(behaviour.Text(rule, "id"), behaviour.Text(sent, "id"))
		})
		if i < 0 {
			return behaviour.Invalid("InvalidPolicyRule", "The policy has no rule '%s'.", behaviour.Text(sent, "id"))
		}
		kept[i] = behaviour.Clone(any(sent))
	}
	return nil
}

// policyAssignments is the type that says which policy a role has.
func policyAssignments() behaviour.Type {
	return behaviour.Type{
		Name: policyAssignmentType, Style: behaviour.Plain("Microsoft.Authorization"), NoState: true, AnyScope: true, Adopt: true,
		Find: func(c *behaviour.Call) (behaviour.Object, error) {
			for _, role := range authorization.Definitions(c, c.ID.Parent()) {
				if one := policyAssignment(c, c.ID.Parent(), role); strings.EqualFold(behaviour.Text(one, "name"), c.ID.Name()) {
					return one, nil
				}
			}
			return nil, nil
		},
		All: func(c *behaviour.Call) ([]behaviour.Object, error) {
			all := []behaviour.Object{}
			for _, role := range authorization.Definitions(c, c.ID) {
				all = append(all, policyAssignment(c, c.ID, role))
			}
			return all, nil
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			_, role, _ := strings.Cut(c.ID.Name(), "_")
			if doc, there := authorization.Definition(c, c.ID.Parent().Resource("Microsoft.Authorization/roleDefinitions", role)); there {
				view["properties"] = policyAssignment(c, c.ID.Parent(), doc)["properties"]
			}
		},
		Filter: authorization.PrincipalFilter,
	}
}

func policyAssignment(c *behaviour.Call, scope azure.ID, role behaviour.Object) behaviour.Object {
	assigned := policy(c, scope, role)
	id := scope.Resource(policyAssignmentType, behaviour.Text(assigned, "name")+"_"+behaviour.Text(role, "name"))
	return behaviour.Object{"id": string(id), "name": id.Name(), "type": policyAssignmentType, "properties": behaviour.Object{
		"scope": string(scope), "roleDefinitionId": role["id"], "policyId": assigned["id"],
		"effectiveRules": behaviour.Clone(behaviour.At(assigned, "properties.effectiveRules")),
		"policyAssignmentProperties": behaviour.Object{
			"scope": expandedScope(c, scope), "roleDefinition": expandedRole(role),
			"policy": behaviour.Object{"id": assigned["id"], "lastModifiedBy": behaviour.At(assigned, "properties.lastModifiedBy"),
				"lastModifiedDateTime": behaviour.At(assigned, "properties.lastModifiedDateTime")},
		},
	}}
}
