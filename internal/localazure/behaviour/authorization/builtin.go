package authorization

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// role is a built-in role of Azure.
type role struct {
	Name           string   `json:"name"` // a GUID, the same in every tenant
	RoleName       string   `json:"roleName"`
	Description    string   `json:"description"`
	Actions        []string `json:"actions"`
	NotActions     []string `json:"notActions"`
	DataActions    []string `json:"dataActions"`
	NotDataActions []string `json:"notDataActions"`
}

//go:embed roles.json
var rolesJSON []byte

// builtin returns the built-in roles of the embedded file. It panics on a mistake in the file, because the tests read
// it.
var builtin = sync.OnceValue(func() []role {
	var roles []role
	if err := json.Unmarshal(rolesJSON, &roles); err != nil {
		panic("roles.json: " + err.Error())
	}
	return roles
})

// since is the creation time of Azure's roles, as Azure shows it.
const since = "2015-02-02T21:55:09.8800000Z"

// document returns the role as a client at a scope sees it.
func (r role) document(scope azure.ID) behaviour.Object {
	list := func(texts []string) []any {
		values := make([]any, len(texts))
		for i, t := range texts {
			values[i] = t
		}
		return values
	}
	return behaviour.Object{
		"id": shownID(scope, r.Name), "name": r.Name, "type": definitionType,
		"properties": behaviour.Object{
			"roleName": r.RoleName, "type": "BuiltInRole", "description": r.Description, "assignableScopes": []any{"/"},
			"permissions": []any{behaviour.Object{
				"actions": list(r.Actions), "notActions": list(r.NotActions),
				"dataActions": list(r.DataActions), "notDataActions": list(r.NotDataActions),
			}},
			"createdOn": since, "updatedOn": since, "createdBy": nil, "updatedBy": nil,
		},
	}
}

func findBuiltin(name string) (role, bool) {
	for _, r := range builtin() {
		if strings.EqualFold(r.Name, name) {
			return r, true
		}
	}
	return role{}, false
}
