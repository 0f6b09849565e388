package resources

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/resources/difference"
	"kaz/internal/localazure/behaviour/resources/provider"
)

// exportGroup is the template of the resources in a group that the request names, with "*" for all. Names become
// parameters, unless the options say otherwise.
func exportGroup(c *behaviour.Call) (behaviour.Reply, error) {
	scope, err := provider.Scope(c)
	if err != nil {
		return behaviour.Reply{}, err
	}
	group := azure.GroupID(scope.Subscription(), c.Param["group"])
	if _, there := c.Get(group); !there {
		return behaviour.Reply{}, behaviour.GroupNotFound(c.Param["group"])
	}
	options := strings.ToLower(behaviour.Text(c.Body, "options"))
	e := export{group: group, parameters: behaviour.Object{}, names: map[string]string{},
		plain: strings.Contains(options, "skipresourcenameparameterization") || strings.Contains(options, "skipallparameterization"),
		value: strings.Contains(options, "includeparameterdefaultvalue")}
	wanted := behaviour.Texts(c.Body, "resources")
	all := len(wanted) == 0 || slices.Contains(wanted, "*")
	var ids []azure.ID
	for id := range c.In(group) {
		named := slices.ContainsFunc(wanted, func(w string) bool { return id.Equal(azure.ID(w)) })
		if (all || named) && !strings.HasPrefix(id.Type(), "Microsoft.Resources/") && c.Allowed(c.Caller.Principal, id.Type()+"/read", id) {
			ids = append(ids, id)
			e.names[id.Key()] = e.name(id)
		}
	}
	resources := []any{}
	for _, id := range ids {
		doc, _ := c.Get(id) // without what is computed from other resources
		doc = difference.Settled(doc)
		behaviour.Hide(doc)
		resources = append(resources, e.resource(id, doc))
	}
	return ok(behaviour.Object{"template": behaviour.Object{
		"$schema":        "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
		"contentVersion": "1.0.0.0", "parameters": e.parameters, "variables": behaviour.Object{}, "resources": resources,
	}})
}

// export makes a template of resources.
type export struct {
	group        azure.ID
	plain, value bool
	parameters   behaviour.Object
	names        map[string]string // expressions of the names of exported resources, by the keys of their ids
}

var notInParameter = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// name is the expression of a resource's name, and declares its parameter.
func (e *export) name(id azure.ID) string {
	if e.plain {
		return "'" + id.Name() + "'"
	}
	segment := id.Type()[strings.LastIndexByte(id.Type(), '/')+1:]
	parameter := notInParameter.ReplaceAllString(segment+"_"+id.Name()+"_name", "_")
	declaration := behaviour.Object{"type": "String"}
	if e.value {
		declaration["defaultValue"] = id.Name()
	}
	e.parameters[parameter] = declaration
	return "parameters('" + parameter + "')"
}

func (e *export) resource(id azure.ID, view behaviour.Object) behaviour.Object {
	for _, field := range []string{"id", "name", "type"} {
		delete(view, field)
	}
	before := map[string]bool{}
	value, _ := e.references(id, view, before).(behaviour.Object)
	value["type"], value["name"] = id.Type(), "["+e.names[id.Key()]+"]"
	value["apiVersion"] = cmp.Or(provider.Newest(id.Type()), "2024-01-01")
	if len(before) > 0 {
		after := []any{}
		for _, on := range slices.Sorted(maps.Keys(before)) {
			after = append(after, on)
		}
		value["dependsOn"] = after
	}
	return value
}

// references replaces the ids of exported resources by expressions. It adds to before the exported resources on which the
// resource depends. It leaves out the ids of the resource's own parts.
func (e *export) references(of azure.ID, value any, before map[string]bool) any {
	switch v := value.(type) {
	case behaviour.Object:
		all := behaviour.Object{}
		for key, x := range v {
			if text, ok := x.(string); ok && key == "id" && azure.ID(text).Under(of) && v["name"] != nil {
				continue
			}
			all[key] = e.references(of, x, before)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, x := range v {
			all[i] = e.references(of, x, before)
		}
		return all
	case string:
		if strings.HasPrefix(v, "[") {
			return "[" + v
		}
		return e.reference(of, v, before)
	}
	return value
}

// reference is the expression of an id, or the text itself.
func (e *export) reference(of azure.ID, text string, before map[string]bool) string {
	id, err := azure.ParseID(text)
	if err != nil || !id.Under(e.group) || id.Equal(e.group) {
		return text
	}
	name, exported := e.names[id.TopLevel().Key()]
	if !exported {
		return text
	}
	top := "resourceId('" + id.TopLevel().Type() + "', " + name + ")"
	if !id.Under(of) {
		before["["+top+"]"] = true
	}
	if rest := string(id[len(id.TopLevel()):]); rest != "" {
		return "[concat(" + top + ", '" + rest + "')]"
	}
	return "[" + top + "]"
}

// templateHash returns the hash of a template as deployments show it, and the template without blanks.
func templateHash(c *behaviour.Call) (behaviour.Reply, error) {
	text, err := json.Marshal(c.Body)
	if err != nil {
		return behaviour.Reply{}, err
	}
	return ok(behaviour.Object{"minifiedTemplate": string(text), "templateHash": hash(c.Body)})
}
