package authorization

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

func roleAssignments() behaviour.Type {
	return behaviour.Type{
		Name:    assignmentType,
		Style:   style(),
		NoState: true,
		Fill:    fillAssignment,
		Show:    func(c *behaviour.Call, view behaviour.Object) { showAssignment(view); hideAuthor(c, view) },
		All:     listAssignments,
		Filter:  assignmentFilter,
		DeleteReply: func(c *behaviour.Call) any {
			view := behaviour.Clone(c.Old)
			showAssignment(view)
			return view
		},
		Missing: func(c *behaviour.Call) error {
			return behaviour.Refusal(404, "RoleAssignmentNotFound", "The role assignment '%s' is not found.", c.ID.Name())
		},
	}
}

// showAssignment adds the fields that Azure shows without a value.
func showAssignment(view behaviour.Object) {
	properties := behaviour.Sub(view, "properties")
	for _, field := range []string{"condition", "conditionVersion", "delegatedManagedIdentityResourceId", "description"} {
		if _, there := properties[field]; !there && properties != nil {
			properties[field] = nil
		}
	}
}

// listAssignments lists the assignments at the scope, above it and below it.
func listAssignments(c *behaviour.Call) ([]behaviour.Object, error) {
	items := []behaviour.Object{}
	for _, a := range all(c, assignmentType) {
		if !related(c.ID, a.id.Parent()) {
			continue
		}
		view := behaviour.Clone(a.doc)
		showAssignment(view)
		items = append(items, view)
	}
	return items, nil
}

func fillAssignment(c *behaviour.Call) error {
	if !guidForm.MatchString(c.ID.Name()) {
		return behaviour.Invalid("InvalidRoleAssignmentId",
			"The role assignment ID '%s' is not valid. The role assignment ID must be a GUID.", c.ID.Name())
	}
	scope := c.ID.Parent()
	if err := scopeThere(c, scope); err != nil {
		return err
	}
	principal := behaviour.Text(c.Doc, "properties.principalId")
	if !guidForm.MatchString(principal) {
		return behaviour.Invalid("InvalidPrincipalId", "The principal ID '%s' is not valid. Principal ID must be a GUID.", principal)
	}
	if err := fillRole(c, scope); err != nil {
		return err
	}
	for _, path := range []string{"properties.principalId", "properties.roleDefinitionId"} {
		if c.Old != nil && !strings.EqualFold(behaviour.Text(c.Old, path), behaviour.Text(c.Doc, path)) {
			return behaviour.Invalid("RoleAssignmentUpdateNotPermitted",
				"Tenant ID, application ID, principal ID, and scope are not allowed to be updated.")
		}
	}
	for _, a := range all(c, assignmentType) {
		if !a.id.Equal(c.ID) && a.id.Parent().Equal(scope) && sameGrant(a.doc, c.Doc) {
			return behaviour.Conflict("RoleAssignmentExists", "The role assignment already exists.")
		}
	}
	behaviour.Default(c.Doc, "properties.principalType", "ServicePrincipal")
	shown := string(scope)
	if shown == "" {
		shown = "/"
	}
	behaviour.Set(c.Doc, "properties.scope", shown)
	stampAuthor(c)
	return nil
}

// scopeThere refuses an assignment at a resource that does not exist. The core checks resource groups.
func scopeThere(c *behaviour.Call, scope azure.ID) error {
	if scope == "" || scope.Is("Microsoft.Resources/subscriptions") || scope.Is("Microsoft.Resources/resourceGroups") {
		return nil
	}
	if _, there := c.Get(scope); there {
		return nil
	}
	return behaviour.NotFound(scope)
}

func fillRole(c *behaviour.Call, scope azure.ID) error {
	sent := azure.ID(behaviour.Text(c.Doc, "properties.roleDefinitionId"))
	doc, ok := Definition(c, sent)
	if !ok || !sent.Is(definitionType) {
		return behaviour.Refusal(404, "RoleDefinitionDoesNotExist", "The specified role definition with ID '%s' does not exist.",
			sent.Name())
	}
	assignable := false
	for _, s := range behaviour.Texts(doc, "properties.assignableScopes") {
		assignable = assignable || at(scope, azure.ID(s))
	}
	if !assignable {
		return behaviour.Invalid("ScopeNotAssignable", "The scope '%s' is not one of the assignable scopes of the role definition '%s'.",
			scope, sent.Name())
	}
	behaviour.Set(c.Doc, "properties.roleDefinitionId", shownID(scope, behaviour.Text(doc, "name")))
	return nil
}

func sameGrant(a, b behaviour.Object) bool {
	for _, path := range []string{"properties.principalId", "properties.roleDefinitionId"} {
		if !strings.EqualFold(behaviour.Text(a, path), behaviour.Text(b, path)) {
			return false
		}
	}
	return true
}
