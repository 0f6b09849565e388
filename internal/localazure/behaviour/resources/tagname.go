package resources

import (
	"slices"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// tagNameType is the type under which the tag names of a subscription are stored. Clients use the requests below.
const tagNameType = "Microsoft.Resources/tagNames"

func tagNames() behaviour.Type {
	return behaviour.Type{Name: tagNameType, Style: behaviour.Plain("Azure Resource Manager"), ReadOnly: true, NoState: true}
}

// tagNameRoutes are the requests for the tag names of a subscription and for their predefined values.
func tagNameRoutes() []behaviour.Route {
	const names = "/subscriptions/{subscription}/tagNames"
	const name, value = names + "/{name}", names + "/{name}/tagValues/{value}"
	const permission = "Microsoft.Resources/subscriptions/tagNames/"
	return []behaviour.Route{
		{Method: "GET", Pattern: names, Do: listTagNames, Permission: permission + "read"},
		{Method: "PUT", Pattern: name, Do: putTagName, Permission: permission + "write", Writes: true},
		{Method: "DELETE", Pattern: name, Do: deleteTagName, Permission: permission + "delete", Writes: true},
		{Method: "PUT", Pattern: value, Do: putTagValue, Permission: permission + "tagValues/write", Writes: true},
		{Method: "DELETE", Pattern: value, Do: deleteTagValue, Permission: permission + "tagValues/delete", Writes: true},
	}
}

func tagNameID(c *behaviour.Call) azure.ID {
	return azure.SubscriptionID(c.Param["subscription"]).Resource(tagNameType, c.Param["name"])
}

// showTagName is a tag name as clients see it. Nothing counts its uses.
func showTagName(c *behaviour.Call, name string, values []string) behaviour.Object {
	id := "/subscriptions/" + c.Param["subscription"] + "/tagNames/" + name
	shown := []any{}
	for _, v := range values {
		shown = append(shown, showTagValue(id, v))
	}
	return behaviour.Object{"id": id, "tagName": name, "count": behaviour.Object{"type": "Total", "value": 0}, "values": shown}
}

func showTagValue(name, value string) behaviour.Object {
	return behaviour.Object{"id": name + "/tagValues/" + value, "tagValue": value, "count": behaviour.Object{"type": "Total", "value": 0}}
}

func listTagNames(c *behaviour.Call) (behaviour.Reply, error) {
	items := []any{}
	for id, doc := range c.List(azure.SubscriptionID(c.Param["subscription"]), tagNameType) {
		items = append(items, showTagName(c, id.Name(), behaviour.Texts(doc, "properties.values")))
	}
	return ok(behaviour.Object{"value": items})
}

func putTagName(c *behaviour.Call) (behaviour.Reply, error) {
	id := tagNameID(c)
	doc, there := c.Get(id)
	status := 200
	if !there {
		c.Put(id, behaviour.Object{"properties": behaviour.Object{"values": []any{}}})
		status = 201
	}
	return behaviour.Reply{Status: status, Body: showTagName(c, id.Name(), behaviour.Texts(doc, "properties.values"))}, nil
}

func deleteTagName(c *behaviour.Call) (behaviour.Reply, error) {
	id := tagNameID(c)
	if _, there := c.Get(id); !there {
		return behaviour.Reply{Status: 204}, nil
	}
	c.Delete(id)
	return behaviour.Reply{Status: 200}, nil
}

// editTagValues changes the values of a tag name.
func editTagValues(c *behaviour.Call, change func(values []any) []any) error {
	if !c.Edit(tagNameID(c), func(doc behaviour.Object) {
		behaviour.Set(doc, "properties.values", change(behaviour.Array(doc, "properties.values")))
	}) {
		return behaviour.Gateway(404, "TagNameNotFound", "The tag name '%s' could not be found.", c.Param["name"])
	}
	return nil
}

func putTagValue(c *behaviour.Call) (behaviour.Reply, error) {
	status, value := 200, c.Param["value"]
	err := editTagValues(c, func(values []any) []any {
		if slices.Contains(values, any(value)) {
			return values
		}
		status = 201
		return append(values, value)
	})
	name := "/subscriptions/" + c.Param["subscription"] + "/tagNames/" + c.Param["name"]
	return behaviour.Reply{Status: status, Body: showTagValue(name, value)}, err
}

func deleteTagValue(c *behaviour.Call) (behaviour.Reply, error) {
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
