package behaviour

import "kaz/internal/azure"

// PrivateEndpointConnections are the connections of private endpoints to a resource, as its document shows them. The endpoints
// store them, as resources of the type with the name "privateEndpointConnections" below the type of the resource.
func PrivateEndpointConnections(c *Call, id azure.ID) []any {
	connections := []any{}
	for _, doc := range c.List(id, id.Type()+"/privateEndpointConnections") {
		connections = append(connections, Clone(doc))
	}
	return connections
}

// LinkGroup is a part of a resource to which private endpoints can connect.
type LinkGroup struct {
	ID             string
	Members, Zones []string
}

// PrivateLinkResources returns the view that lists the parts of a resource to which private endpoints can connect.
func PrivateLinkResources(groups func(c *Call) []LinkGroup) func(c *Call) (any, error) {
	return func(c *Call) (any, error) {
		value := []any{}
		for _, g := range groups(c) {
			id := c.ID.Child("privateLinkResources", g.ID)
			value = append(value, Object{"id": string(id), "name": g.ID, "type": id.Type(), "properties": Object{
				"groupId": g.ID, "requiredMembers": texts(g.Members), "requiredZoneNames": texts(g.Zones)}})
		}
		return Object{"value": value}, nil
	}
}

func texts(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}
