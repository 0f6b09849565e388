package authorization

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

func roleDefinitions() behaviour.Type {
	return behaviour.Type{
		Name:     definitionType,
		Style:    style(),
		NoState:  true,
		AnyScope: true,
		Find: func(c *behaviour.Call) (behaviour.Object, error) {
			doc, _ := Definition(c, c.ID)
			return doc, nil
		},
		All:    listDefinitions,
		Filter: definitionFilter,
		Fill:   fillDefinition,
		Show:   func(c *behaviour.Call, view behaviour.Object) { showDefinition(view); hideAuthor(c, view) },
		Refuse: func(c *behaviour.Call) error {
			for _, a := range all(c, assignmentType) {
				if strings.EqualFold(azure.ID(behaviour.Text(a.doc, "properties.roleDefinitionId")).Name(), c.ID.Name()) {
					return behaviour.Invalid("RoleDefinitionHasAssignments",
						"There are existing role assignments referencing role (code: RoleDefinitionHasAssignments).")
				}
			}
			return nil
		},
		DeleteReply: func(c *behaviour.Call) any {
			view := behaviour.Clone(c.Old)
			showDefinition(view)
			return view
		},
		Missing: func(c *behaviour.Call) error {
			return behaviour.Refusal(404, "RoleDefinitionDoesNotExist", "The specified role definition with ID '%s' does not exist.",
				c.ID.Name())
		},
	}
}

// Definition returns the role with the name of an id. The scope of the id does not matter: Azure stores a role once and
// shows it at every scope.
func Definition(w behaviour.World, id azure.ID) (behaviour.Object, bool) {
	if r, ok := findBuiltin(id.Name()); ok {
		return r.document(id.Parent()), true
	}
	for _, d := range all(w, definitionType) {
		if strings.EqualFold(d.id.Name(), id.Name()) {
			view := behaviour.Clone(d.doc)
			showDefinition(view)
			return view, true
		}
	}
	return nil, false
}

func showDefinition(view behaviour.Object) {
	id := azure.ID(behaviour.Text(view, "id"))
	view["id"] = shownID(id, id.Name())
}

// shownID returns a role's id, which contains the subscription of the scope and nothing else.
func shownID(scope azure.ID, name string) string {
	if s := scope.Subscription(); s != "" {
		return string(azure.SubscriptionID(s).Resource(definitionType, name))
	}
	return string(azure.ID("").Resource(definitionType, name))
}

func listDefinitions(c *behaviour.Call) ([]behaviour.Object, error) { return Definitions(c, c.ID), nil }

// Definitions are the roles that can be assigned at, above or below a scope.
func Definitions(w behaviour.World, at azure.ID) []behaviour.Object {
	items := []behaviour.Object{}
	for _, d := range all(w, definitionType) {
		visible := false
		for _, scope := range behaviour.Texts(d.doc, "properties.assignableScopes") {
			visible = visible || related(at, azure.ID(scope))
		}
		if visible {
			view := behaviour.Clone(d.doc)
			showDefinition(view)
			items = append(items, view)
		}
	}
	for _, r := range builtin() {
		items = append(items, r.document(at))
	}
	return items
}

func fillDefinition(c *behaviour.Call) error {
	name := c.ID.Name()
	if !guidForm.MatchString(name) {
		return behaviour.Invalid("InvalidRoleDefinitionId",
			"The role definition ID '%s' is not valid. The role definition ID must be a GUID.", name)
	}
	if r, ok := findBuiltin(name); ok {
		return behaviour.Refusal(403, "RoleDefinitionIsBuiltIn", "The role definition '%s' (%s) is built in and cannot be changed.", name,
			r.RoleName)
	}
	roleName := behaviour.Text(c.Doc, "properties.roleName")
	if roleName == "" {
		return behaviour.Invalid("RoleDefinitionNameNullOrEmpty", "The role definition name cannot be null or empty.")
	}
	if len(behaviour.Texts(c.Doc, "properties.assignableScopes")) == 0 {
		return behaviour.Invalid("MissingAssignableScopes", "The role definition '%s' needs at least one assignable scope.", roleName)
	}
	if err := uniqueRole(c, roleName); err != nil {
		return err
	}
	for _, granted := range behaviour.Objects(c.Doc, "properties.permissions") {
		for _, field := range []string{"actions", "notActions", "dataActions", "notDataActions"} {
			behaviour.Default(granted, field, []any{})
		}
	}
	behaviour.Default(c.Doc, "properties.permissions", []any{})
	behaviour.Default(c.Doc, "properties.description", "")
	behaviour.Set(c.Doc, "properties.type", "CustomRole")
	stampAuthor(c)
	return nil
}

func uniqueRole(c *behaviour.Call, roleName string) error {
	taken := false
	for _, d := range all(c, definitionType) {
		taken = taken || !strings.EqualFold(d.id.Name(), c.ID.Name()) &&
			strings.EqualFold(behaviour.Text(d.doc, "properties.roleName"), roleName)
	}
	for _, r := range builtin() {
		taken = taken || strings.EqualFold(r.RoleName, roleName)
	}
	if taken {
		return behaviour.Conflict("RoleDefinitionWithSameNameExists",
			"A custom role with the same name already exists in this directory. Use a different name")
	}
	return nil
}
