package behaviour

import (
	"strings"

	"kaz/internal/azure"
)

// PrivateEndpointConnections are the connections of private endpoints to a resource,
// as its document shows them. Endpoints in the same subscription are approved at once.
func PrivateEndpointConnections(c *Call, id azure.ID) []any {
	connections, seen := []any{}, map[string]bool{}
	for _, by := range c.Referrers(id) {
		endpoint := by.Resource
		if !endpoint.Is("Microsoft.Network/privateEndpoints") || !strings.HasSuffix(by.Path, "privateLinkServiceId") ||
			seen[endpoint.Key()] {
			continue
		}
		seen[endpoint.Key()] = true
		doc, _ := c.Get(endpoint)
		name := endpoint.Name() + "." + Text(doc, "properties.resourceGuid")
		connections = append(connections, Object{
			"id": string(id.Child("privateEndpointConnections", name)), "name": name, "type": id.Type() + "/privateEndpointConnections",
			"properties": Object{
				"provisioningState": "Succeeded",
				"privateEndpoint":   Ref(endpoint),
				"privateLinkServiceConnectionState": Object{"status": "Approved", "description": "Auto-Approved",
					"actionsRequired": "None"},
			},
		})
	}
	return connections
}
