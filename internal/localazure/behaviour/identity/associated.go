package identity

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// listAssociated lists the resources of the subscription that have an identity, of those that the caller may read.
func listAssociated(c *behaviour.Call) (any, error) {
	subscription := azure.SubscriptionID(c.ID.Subscription())
	about, _ := c.View(subscription)
	items := []any{}
	for group := range c.List(subscription, "Microsoft.Resources/resourceGroups") {
		for id, doc := range c.Heads(group) {
			if !has(doc, c.ID) || c.Permit(c.Caller, id.Type()+"/read", id) != nil {
				continue
			}
			items = append(items, behaviour.Object{"id": string(id), "name": id.Name(), "type": strings.ToLower(id.Type()),
				"resourceGroup": strings.ToLower(group.Name()), "subscriptionId": c.ID.Subscription(),
				"subscriptionDisplayName": behaviour.Text(about, "displayName")})
		}
	}
	return behaviour.Object{"totalCount": len(items), "value": items}, nil
}

// has reports whether a resource has a user-assigned identity.
func has(doc behaviour.Object, identity azure.ID) bool {
	for id := range behaviour.Sub(doc, "identity.userAssignedIdentities") {
		if identity.Equal(azure.ID(id)) {
			return true
		}
	}
	return false
}
