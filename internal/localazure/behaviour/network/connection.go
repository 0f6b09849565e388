package network

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/schema"
)

// sharedKey is the private field of a connection with its shared key, which no reply about the connection shows.
const sharedKey = behaviour.Private + "sharedKey"

// keepSharedKey keeps the key that a connection is made with.
func keepSharedKey(c *behaviour.Call) error {
	if key := behaviour.Text(c.Body, "properties.sharedKey"); key != "" {
		c.Doc[sharedKey] = key
	} else if key := behaviour.Text(c.Old, sharedKey); key != "" {
		c.Doc[sharedKey] = key
	}
	return nil
}

// sharedKeyRoutes read, write and reset the shared key of a connection.
func sharedKeyRoutes() []behaviour.Route {
	const connection = "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/connections/{name}"
	on := func(do func(c *behaviour.Call, id azure.ID) behaviour.Object) func(c *behaviour.Call) (behaviour.Reply, error) {
		return func(c *behaviour.Call) (behaviour.Reply, error) {
			id := azure.GroupID(c.Param["subscription"], c.Param["group"]).Resource("Microsoft.Network/connections", c.Param["name"])
			if _, there := c.Get(id); !there {
				return behaviour.Reply{}, behaviour.NotFound(id)
			}
			return behaviour.Reply{Status: 200, Body: do(c, id)}, nil
		}
	}
	set := func(c *behaviour.Call, id azure.ID, key string) {
		c.Edit(id, func(doc behaviour.Object) { doc[sharedKey] = key })
	}
	return []behaviour.Route{
		{Method: "GET", Pattern: connection + "/sharedkey", Permission: "Microsoft.Network/connections/sharedKey/read",
			Do: on(func(c *behaviour.Call, id azure.ID) behaviour.Object {
				doc, _ := c.Get(id)
				return behaviour.Object{"id": string(id) + "/sharedkey", "value": behaviour.Text(doc, sharedKey)}
			})},
		{Method: "PUT", Pattern: connection + "/sharedkey", Permission: "Microsoft.Network/connections/sharedKey/write", Writes: true,
			Do: on(func(c *behaviour.Call, id azure.ID) behaviour.Object {
				set(c, id, behaviour.Text(c.Body, "value"))
				return behaviour.Object{"id": string(id) + "/sharedkey", "value": behaviour.Text(c.Body, "value")}
			})},
		{Method: "POST", Pattern: connection + "/sharedkey/reset", Writes: true,
			Permission: "Microsoft.Network/connections/sharedKey/action",
			Do: on(func(c *behaviour.Call, id azure.ID) behaviour.Object {
				const longest = 128
				length, _ := behaviour.Int(c.Body, "keyLength")
				length = min(max(length, 1), longest)
				key := ""
				for len(key) < length {
					key += c.GUID()
				}
				set(c, id, key[:length])
				return behaviour.Object{"keyLength": length}
			})},
	}
}

// connectionsOf lists the connections of a virtual network gateway.
func connectionsOf(c *behaviour.Call) (any, error) {
	items := []any{}
	for _, r := range schema.ReferrersAt(c.World, c.ID, "properties.virtualNetworkGateway1", "properties.virtualNetworkGateway2") {
		if view, there := c.View(r.Resource); there {
			items = append(items, view)
		}
	}
	return behaviour.Object{"value": items}, nil
}
