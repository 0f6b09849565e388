package authorization_test

import (
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/authorization"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/identity"
	"kaz/internal/localazure/behaviour/resources"
)

type (
	exchange = behaviourtest.Exchange
	has      = map[string]any
)

const (
	roles       = "/providers/Microsoft.Authorization/roleDefinitions"
	assignments = "/providers/Microsoft.Authorization/roleAssignments"
	reader      = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
	contributor = "b24988ac-6180-42a0-ab88-20f7382dd24c"
	custom      = "/11111111-2222-3333-4444-555555555555"
	one         = "/aaaaaaaa-0000-0000-0000-000000000001"
	two         = "/aaaaaaaa-0000-0000-0000-000000000002"
	alice       = "99999999-0000-0000-0000-000000000001"
	bob         = "99999999-0000-0000-0000-000000000002"
	node        = "~/providers/Microsoft.ManagedIdentity/userAssignedIdentities/node"
)

func start(t *testing.T) *behaviourtest.Azure {
	return behaviourtest.Start(t, resources.Provider(), identity.Provider(), authorization.Provider())
}

func grant(role, principal string) string {
	return `{"properties":{"roleDefinitionId":"` + behaviourtest.Subscription + roles + "/" + role + `","principalId":"` + principal + `"}}`
}

func TestBuiltinRolesAtEveryScope(t *testing.T) {
	a := start(t)
	shown := behaviourtest.Subscription + roles + "/" + contributor
	for _, scope := range []string{"~~", "~", "~none", node} {
		a.Run(
			exchange{Do: "GET " + scope + roles + "?$filter=roleName eq 'Contributor'",
				Has: has{"value.#": 1, "value.0.id": shown, "value.0.properties.assignableScopes.0": "/",
					"value.0.properties.type": "BuiltInRole"}},
			exchange{Do: "GET " + scope + roles + "/" + contributor, Has: has{"id": shown, "properties.permissions.0.actions.0": "*"}},
		)
	}
	a.Run(
		exchange{Do: "GET " + roles + "/" + reader, Has: has{"id": roles + "/" + reader, "properties.permissions.0.actions.0": "*/read"}},
		exchange{Do: "GET ~" + roles + "?$filter=atScopeAndBelow() and type eq 'CustomRole'", Has: has{"value.#": 0}},
		exchange{Do: "GET ~" + roles + "?$filter=size gt 3", Status: 400, Code: "UnsupportedQuery"},
		exchange{Do: "GET ~" + roles + custom, Status: 404, Code: "RoleDefinitionDoesNotExist"},
		exchange{Do: "PUT ~~" + roles + "/" + reader, Body: `{"properties":{"roleName":"x","assignableScopes":["/"]}}`, Status: 403,
			Code: "RoleDefinitionIsBuiltIn"},
	)
	seen := map[string]bool{}
	for _, r := range behaviour.Objects(a.Run(exchange{Do: "GET ~~" + roles}), "value") {
		name := behaviour.Text(r, "properties.roleName")
		if seen[name] || seen[behaviour.Text(r, "name")] || behaviour.Text(r, "properties.description") == "" {
			t.Errorf("role %v is there twice, or is not described", r)
		}
		seen[name], seen[behaviour.Text(r, "name")] = true, true
	}
}

func TestCustomRoles(t *testing.T) {
	a := start(t)
	role := func(name, scope string) string {
		return `{"properties":{"roleName":"` + name + `","assignableScopes":["` + scope +
			`"],"permissions":[{"actions":["Microsoft.Network/*/read"]}]}}`
	}
	a.Run(
		exchange{Do: "PUT ~~" + roles + custom, Body: role("net reader", behaviourtest.Group), Status: 201,
			Has: has{"properties.type": "CustomRole", "properties.permissions.0.dataActions.#": 0}},
		exchange{Do: "PUT ~~" + roles + custom, Body: role("net reader", behaviourtest.Group), Status: 201},
		exchange{Do: "PUT ~~" + roles + "/22222222-2222-3333-4444-555555555555", Body: role("Net Reader", behaviourtest.Group),
			Status: 409, Code: "RoleDefinitionWithSameNameExists"},
		exchange{Do: "PUT ~~" + roles + "/22222222-2222-3333-4444-555555555555", Body: role("Owner", behaviourtest.Group), Status: 409,
			Code: "RoleDefinitionWithSameNameExists"},
		exchange{Do: "PUT ~~" + roles + "/x", Body: role("x", "/"), Status: 400, Code: "InvalidRoleDefinitionId"},
		exchange{Do: "GET ~" + roles + "?$filter=type eq 'CustomRole'",
			Has: has{"value.#": 1, "value.0.properties.roleName": "net reader"}},
		exchange{Do: "GET ~~/resourceGroups/other" + roles + "?$filter=type eq 'CustomRole'", Has: has{"value.#": 0}},
		exchange{Do: "PUT ~~" + assignments + one, Body: grant(custom[1:], alice), Status: 400, Code: "ScopeNotAssignable"},
		exchange{Do: "PUT ~" + assignments + one, Body: grant(custom[1:], alice), Status: 201},
		exchange{Do: "DELETE ~~" + roles + custom, Status: 400, Code: "RoleDefinitionHasAssignments"},
		exchange{Do: "DELETE ~" + assignments + one},
		exchange{Do: "DELETE ~~" + roles + custom, Has: has{"properties.roleName": "net reader"}},
		exchange{Do: "DELETE ~~" + roles + custom, Status: 204},
	)
}

func TestRefusedAssignments(t *testing.T) {
	a := start(t)
	a.Run(
		exchange{Do: "PUT ~" + assignments + "/name", Body: grant(reader, alice), Status: 400, Code: "InvalidRoleAssignmentId"},
		exchange{Do: "PUT ~" + assignments + one, Body: grant(reader, "alice"), Status: 400, Code: "InvalidPrincipalId"},
		exchange{Do: "PUT ~" + assignments + one, Body: grant(alice, alice), Status: 404, Code: "RoleDefinitionDoesNotExist"},
		exchange{Do: "PUT ~none" + assignments + one, Body: grant(reader, alice), Status: 404, Code: "ResourceGroupNotFound"},
		exchange{Do: "PUT " + node + assignments + one, Body: grant(reader, alice), Status: 404, Code: "ResourceNotFound"},
		exchange{Do: "PUT ~" + assignments + one, Body: grant(reader, alice), Status: 201,
			Has: has{"properties.scope": behaviourtest.Group, "properties.principalType": "ServicePrincipal"}},
		exchange{Do: "PUT ~" + assignments + one, Body: grant(reader, alice), Status: 201},
		exchange{Do: "PUT ~" + assignments + one, Body: grant(reader, bob), Status: 400, Code: "RoleAssignmentUpdateNotPermitted"},
		exchange{Do: "PUT ~" + assignments + two, Body: grant(reader, alice), Status: 409, Code: "RoleAssignmentExists"},
		exchange{Do: "PUT ~~" + assignments + two, Body: grant(reader, alice), Status: 201},
		exchange{Do: "GET ~" + assignments + two, Status: 404, Code: "RoleAssignmentNotFound"},
	)
}

// Replies to writes show the author of the change, and not that of the creation.
func TestAuthors(t *testing.T) {
	a := start(t)
	author, _ := behaviourtest.At(a.Run(
		exchange{Do: "PUT ~" + assignments + one, Body: grant(reader, alice), Status: 201, Has: has{"properties.createdBy": nil}},
	), "properties.updatedBy").(string)
	if author == "" {
		t.Error("a new assignment does not say who made it")
	}
	a.Run(exchange{Do: "GET ~" + assignments + one, Has: has{"properties.createdBy": author, "properties.updatedBy": author}})
}

func TestAssignmentsAreListedByScope(t *testing.T) {
	a := start(t)
	const three = "/aaaaaaaa-0000-0000-0000-000000000003"
	a.Run(
		exchange{Do: "PUT " + node, Body: `{"location":"eastus"}`, Status: 201},
		exchange{Do: "PUT ~~" + assignments + one, Body: grant(reader, alice), Status: 201},
		exchange{Do: "PUT ~" + assignments + two, Body: grant(contributor, alice), Status: 201},
		exchange{Do: "PUT " + node + assignments + three, Body: grant(reader, bob), Status: 201},
	)
	cases := map[string]int{
		"~~" + assignments:                                                        3,
		"~~" + assignments + "?$filter=atScope()":                                 1,
		"~" + assignments + "?$filter=atScope()":                                  2,
		node + assignments:                                                        3,
		"~" + assignments + "?$filter=principalId eq '" + bob + "'":               1,
		"~" + assignments + "?$filter=atScope() and assignedTo('" + alice + "')":  2,
		"~~" + assignments + "?$filter=(atScope() and assignedTo('" + bob + "'))": 0,
	}
	for path, want := range cases {
		a.Run(exchange{Do: "GET " + path, Has: has{"value.#": want}})
	}
	a.Run(
		exchange{Do: "DELETE " + node},
		exchange{Do: "GET ~~" + assignments, Has: has{"value.#": 2}},
		exchange{Do: "DELETE ~" + assignments + two, Has: has{"properties.principalId": alice, "properties.condition": nil}},
		exchange{Do: "DELETE ~" + assignments + two, Status: 204},
	)
}
