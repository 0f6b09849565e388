package resources

import (
	"crypto/sha256"
	"fmt"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

const denyType = "Microsoft.Authorization/denyAssignments"

// everyone is the principal of a deny assignment that holds for all.
const everyone = "00000000-0000-0000-0000-000000000000"

// deny keeps others from deleting, or also writing, the resources of a stack, as its settings say. It returns the resources as the stack
// shows them.
func deny(c *behaviour.Call, stack behaviour.Object, managed []azure.ID) []any {
	mode := behaviour.Text(stack, "properties.denySettings.mode")
	shown := []any{}
	for _, id := range managed {
		shown = append(shown, behaviour.Object{"id": string(id), "status": "managed", "denyStatus": mode})
		if mode != "none" {
			c.Put(denyID(c.ID, id), denyAssignment(c, stack, id, mode))
		}
	}
	return shown
}

// allow takes back what a stack denies.
func allow(c *behaviour.Call, stack behaviour.Object) {
	for _, id := range refs(stack, "properties.resources") {
		if at := denyID(c.ID, id); behaviour.Text(stack, "properties.denySettings.mode") != "none" {
			c.Delete(at)
		}
	}
}

// denyID is the id of what a stack denies at a resource.
func denyID(stack, resource azure.ID) azure.ID {
	sum := sha256.Sum256([]byte(stack.Key() + " " + resource.Key()))
	name := fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	return resource.Resource(denyType, name)
}

func denyAssignment(c *behaviour.Call, stack behaviour.Object, resource azure.ID, mode string) behaviour.Object {
	actions, allowed := []any{"*/delete"}, []any{"Microsoft.Authorization/locks/delete"}
	if mode == "denyWriteAndDelete" {
		actions, allowed = []any{"*"}, append(allowed, "*/read")
	}
	excluded := []any{}
	for _, principal := range behaviour.Array(stack, "properties.denySettings.excludedPrincipals") {
		excluded = append(excluded, behaviour.Object{"id": principal, "type": "User"})
	}
	id := denyID(c.ID, resource)
	return behaviour.Object{"properties": behaviour.Object{
		"denyAssignmentName": fmt.Sprintf("Deny assignment '%s' created by Deployment Stack '%s'.", id.Name(), c.ID),
		"description":        fmt.Sprintf("Created by Deployment Stack '%s'.", c.ID),
		"permissions": []any{behaviour.Object{"actions": actions, "dataActions": []any{}, "notDataActions": []any{},
			"notActions": append(allowed, behaviour.Array(stack, "properties.denySettings.excludedActions")...)}},
		"scope":                   string(resource),
		"doNotApplyToChildScopes": behaviour.At(stack, "properties.denySettings.applyToChildScopes") != true,
		"principals":              []any{behaviour.Object{"id": everyone, "type": "SystemDefined"}},
		"excludePrincipals":       excluded, "isSystemProtected": true,
	}}
}
