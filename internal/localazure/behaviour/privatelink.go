package behaviour

import (
	"strings"

	"kaz/internal/azure"
)

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

// PrivateLinkResources returns the type of the parts of a resource to which private endpoints can connect. The function gets a call
// with the resource as its document.
func PrivateLinkResources(parent string, groups func(c *Call) []LinkGroup) Type {
	of := func(c *Call, id azure.ID) ([]Object, error) {
		doc, there := c.Get(id)
		if !there {
			return nil, NotFound(id)
		}
		about := *c
		about.ID, about.Old, about.Doc = id, doc, doc
		items := []Object{}
		for _, g := range groups(&about) {
			part := id.Child("privateLinkResources", g.ID)
			items = append(items, Object{"id": string(part), "name": g.ID, "type": parent + "/privateLinkResources", "properties": Object{
				"groupId": g.ID, "requiredMembers": texts(g.Members), "requiredZoneNames": texts(g.Zones)}})
		}
		return items, nil
	}
	return Type{
		Name: parent + "/privateLinkResources", Style: Plain(parent), ReadOnly: true, NoState: true,
		All: func(c *Call) ([]Object, error) { return of(c, c.ID) },
		Find: func(c *Call) (Object, error) {
			items, err := of(c, c.ID.Parent())
			for _, item := range items {
				if strings.EqualFold(Text(item, "name"), c.ID.Name()) {
					return item, nil
				}
			}
			return nil, err
		},
	}
}

func texts(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}
