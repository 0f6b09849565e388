package verbs

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

const userAssigned = "Microsoft.ManagedIdentity/userAssignedIdentities"

// identities completes the managed identities of resources, whatever their type.
type identities struct{ known bool }

// complete gives a resource its system-assigned identity, and shows the ids of its user-assigned identities. It returns an error
// if one of them does not exist.
func (t identities) complete(c *behaviour.Call) error {
	identity := behaviour.Sub(c.Doc, "identity")
	if identity == nil {
		return nil
	}
	kind := strings.ToLower(behaviour.Text(identity, "type"))
	if strings.Contains(kind, "systemassigned") {
		for field, fresh := range map[string]func() string{
			"principalId": c.GUID, "tenantId": func() string { return c.TenantOf(c.ID.Subscription()) },
		} {
			if was := behaviour.Text(c.Old, "identity."+field); was != "" {
				identity[field] = was
			} else {
				identity[field] = fresh()
			}
		}
	} else {
		delete(identity, "principalId")
		delete(identity, "tenantId")
	}
	users := behaviour.Sub(identity, "userAssignedIdentities")
	for _, id := range slices.Sorted(maps.Keys(users)) {
		if err := t.user(c, users, id); err != nil {
			return err
		}
	}
	return nil
}

func (t identities) user(c *behaviour.Call, users behaviour.Object, id string) error {
	doc, ok := c.Get(azure.ID(id))
	user, isObject := users[id].(behaviour.Object)
	if !isObject {
		user = behaviour.Object{}
		users[id] = user
	}
	switch {
	case ok:
		user["principalId"], user["clientId"] = behaviour.At(doc, "properties.principalId"), behaviour.At(doc, "properties.clientId")
	case t.known:
		return behaviour.Gateway(http.StatusBadRequest, "FailedIdentityOperation",
			"Identity operation for resource '%s' failed with error 'Failed to perform resource identity operation. Status: "+
				"'BadRequest'. Response: '{\"error\":{\"code\":\"BadRequest\",\"message\":\"Resource '%s' was not found.\"}}'.'.", c.ID, id)
	}
	return nil
}

// dropNone removes an identity of type None.
func dropNone(doc behaviour.Object) {
	if strings.EqualFold(behaviour.Text(doc, "identity.type"), "None") {
		delete(doc, "identity")
	}
}
