// Package tagname has the tag names of subscriptions and their predefined values. Layer L2.
package tagname

import (
	"slices"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// typeName is the type under which the tag names of a subscription are stored. Clients use the requests below.
const typeName = "Microsoft.Resources/tagNames"

// Type is the type under which tag names are stored.
func Type() behaviour.Type {
	return behaviour.Type{Name: typeName, Style: behaviour.Plain("Azure Resource Manager"), ReadOnly: true, NoState: true}
}

// Routes are the requests for the tag names of a subscription and for their predefined values.
func Routes() []behaviour.Route {
	const names = "/subscriptions/{subscription}/tagNames"
	const name, value = names + "/{name}", names + "/{name}/tagValues/{value}"
	const permission = "Microsoft.Resources/subscriptions/tagNames/"
	return []behaviour.Route{
		{Method: "GET", Pattern: names, Do: list, Permission: permission + "read"},
		{Method: "PUT", Pattern: name, Do: put, Permission: permission + "write", Writes: true},
		{Method: "DELETE", Pattern: name, Do: remove, Permission: permission + "delete", Writes: true},
		{Method: "PUT", Pattern: value, Do: putValue, Permission: permission + "tagValues/write", Writes: true},
		{Method: "DELETE", Pattern: value, Do: removeValue, Permission: permission + "tagValues/delete", Writes: true},
	}
}

func idOf(c *behaviour.Call) azure.ID {
	return azure.SubscriptionID(c.Param["subscription"]).Resource(typeName, c.Param["name"])
}

// show is a tag name as clients see it. Nothing counts its uses.
func show(c *behaviour.Call, name string, values []string) behaviour.Object {
	id := "/subscriptions/" + c.Param["subscription"] + "/tagNames/" + name
	shown := []any{}
	for _, v := range values {
		shown = append(shown, showValue(id, v))
	}
	return behaviour.Object{"id": id, "tagName": name, "count": behaviour.Object{"type": "Total", "value": 0}, "values": shown}
}

func showValue(name, value string) behaviour.Object {
	return behaviour.Object{"id": name + "/tagValues/" + value, "tagValue": value, "count": behaviour.Object{"type": "Total", "value": 0}}
}

func list(c *behaviour.Call) (behaviour.Reply, error) {
	items := []any{}
	for id, doc := range c.List(azure.SubscriptionID(c.Param["subscription"]), typeName) {
		items = append(items, show(c, id.Name(), behaviour.Texts(doc, "properties.values")))
	}
	return ok(behaviour.Object{"value": items})
}

func put(c *behaviour.Call) (behaviour.Reply, error) {
	id := idOf(c)
	doc, there := c.Get(id)
	status := 200
	if !there {
		c.Put(id, behaviour.Object{"properties": behaviour.Object{"values": []any{}}})
		status = 201
	}
	return behaviour.Reply{Status: status, Body: show(c, id.Name(), behaviour.Texts(doc, "properties.values"))}, nil
}

func remove(c *behaviour.Call) (behaviour.Reply, error) {
	id := idOf(c)
	if _, there := c.Get(id); !there {
		return behaviour.Reply{Status: 204}, nil
	}
	c.Delete(id)
	return behaviour.Reply{Status: 200}, nil
}

// editTagValues changes the values of a tag name.
func editTagValues(c *behaviour.Call, change func(values []any) []any) error {
	if !c.Edit(idOf(c), func(doc behaviour.Object) {
		behaviour.Set(doc, "properties.values", change(behaviour.Array(doc, "properties.values")))
	}) {
		return behaviour.Gateway(404, "TagNameNotFound", "The tag name '%s' could not be found.", c.Param["name"])
	}
	return nil
}

func putValue(c *behaviour.Call) (behaviour.Reply, error) {
	status, value := 200, c.Param["value"]
	err := editTagValues(c, func(values []any) []any {
		if slices.Contains(values, any(value)) {
			return values
		}
		status = 201
		return append(values, value)
	})
	name := "/subscriptions/" + c.Param["subscription"] + "/tagNames/" + c.Param["name"]
	return behaviour.Reply{Status: status, Body: showValue(name, value)}, err
}

func removeValue(c *behaviour.Call) (behaviour.Reply, error) {
	status := 204
	err := editTagValues(c, func(values []any) []any {
		return slices.DeleteFunc(values, func(v any) bool {
			if v == c.Param["value"] {
				status = 200
				return true
			}
			return false
		})
	})
	return behaviour.Reply{Status: status}, err
}

func ok(body any) (behaviour.Reply, error) { return behaviour.Reply{Status: 200, Body: body}, nil }
