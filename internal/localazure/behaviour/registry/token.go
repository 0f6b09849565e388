package registry

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// systemScopeMaps are the scope maps that every registry has, with their actions.
var systemScopeMaps = map[string]struct {
	description string
	actions     []any
}{
	"_repositories_pull": {"Can pull any repository of the registry",
		[]any{"repositories/*/content/read"}},
	"_repositories_push": {"Can push to any repository of the registry",
		[]any{"repositories/*/content/read", "repositories/*/content/write"}},
	"_repositories_admin": {"Can perform all read, write and delete operations on the registry",
		[]any{"repositories/*/metadata/read", "repositories/*/metadata/write", "repositories/*/content/read",
			"repositories/*/content/write", "repositories/*/content/delete"}},
}

// registryApplication is the application as which the service itself makes parts of registries.
const registryApplication = "6a0ec4d3-30cb-4a83-91c0-ae56bc0e3d26"

// settleRegistry stores the scope maps of a new registry and, for a Premium registry, its replication at home.
func settleRegistry(c *behaviour.Call) error {
	now := behaviour.Timestamp(c.Now())
	for name, m := range systemScopeMaps {
		putMissing(c, c.ID.Child("scopeMaps", name), behaviour.Object{"properties": behaviour.Object{
			"description": m.description, "type": "SystemDefined", "creationDate": now, "actions": behaviour.Clone(m.actions)}})
	}
	if behaviour.Text(c.Doc, "sku.tier") == "Premium" {
		made := behaviour.Object{"createdBy": registryApplication, "createdByType": "Application", "createdAt": now,
			"lastModifiedBy": registryApplication, "lastModifiedByType": "Application", "lastModifiedAt": now}
		putMissing(c, c.ID.Child("replications", c.Location()), behaviour.Object{"location": c.Location(), "tags": behaviour.Object{},
			"systemData": made, "properties": behaviour.Object{
				"status": behaviour.Object{"displayStatus": "Ready", "timestamp": now}, "regionEndpointEnabled": true,
				"zoneRedundancy": behaviour.Text(c.Doc, "properties.zoneRedundancy")}})
	}
	return nil
}

func putMissing(c *behaviour.Call, id azure.ID, doc behaviour.Object) {
	if _, there := c.Get(id); !there {
		c.Put(id, doc)
	}
}

// generateCredentials gives a token new passwords: the password with the requested name, or both.
func generateCredentials(c *behaviour.Call) (any, error) {
	token, asked := azure.ID(behaviour.Text(c.Body, "tokenId")), behaviour.Text(c.Body, "name")
	if _, ok := c.Get(token); !ok || !token.Parent().Equal(c.ID) {
		return nil, behaviour.Refusal(404, "TokenNotFound", "The token '%s' was not found in the registry '%s'.", token, c.ID.Name())
	}
	now, shown := behaviour.Timestamp(c.Now()), []any{}
	c.Edit(token, func(doc behaviour.Object) {
		stored := []any{}
		for _, name := range []string{"password1", "password2"} {
			if asked == "" || strings.EqualFold(asked, name) {
				password := behaviour.Object{"creationTime": now, "name": name}
				if expiry := behaviour.Text(c.Body, "expiry"); expiry != "" {
					password["expiry"] = expiry
				}
				stored = append(stored, behaviour.Clone(password))
				password["value"] = newPassword(c)
				shown = append(shown, password)
			} else if was := behaviour.Named(doc, "properties.credentials.passwords", name); was != nil {
				stored = append(stored, was)
			}
		}
		behaviour.Set(doc, "properties.credentials.passwords", stored)
	})
	return behaviour.Object{"username": token.Name(), "passwords": shown}, nil
}

// linkGroups is the part of a registry to which private endpoints can connect.
func linkGroups(c *behaviour.Call) []behaviour.LinkGroup {
	return []behaviour.LinkGroup{{ID: "registry", Members: []string{"registry_data_" + c.Location(), "registry"},
		Zones: []string{"privatelink." + behaviour.CloudOf(c.Location()).Registry}}}
}
