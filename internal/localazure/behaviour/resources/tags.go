package resources

import (
	"maps"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

const tagsType = "Microsoft.Resources/tags"

// tags is the type of the tags of a scope, as a resource of its own: a subscription, a group or a resource.
func tags() behaviour.Type {
	style := behaviour.Plain("Azure Resource Manager")
	style.Created = 200
	return behaviour.Type{
		Name: tagsType, Style: style, NoState: true, Adopt: true,
		Find:  func(c *behaviour.Call) (behaviour.Object, error) { return tagsDocument(c) },
		Merge: mergeTags,
		Fill: func(c *behaviour.Call) error {
			if _, err := tagsDocument(c); err != nil {
				return err
			}
			behaviour.Default(c.Doc, "properties.tags", behaviour.Object{})
			writeTags(c, behaviour.Sub(c.Doc, "properties.tags"))
			return nil
		},
		Removed: func(c *behaviour.Call) error { writeTags(c, nil); return nil },
		Show: func(c *behaviour.Call, view behaviour.Object) {
			if doc, ok := c.Get(c.ID.Parent()); ok {
				behaviour.Set(view, "properties.tags", tagsOf(doc))
			}
		},
	}
}

func tagsOf(doc behaviour.Object) behaviour.Object {
	if tags := behaviour.Sub(doc, "tags"); tags != nil {
		return behaviour.Clone(tags)
	}
	return behaviour.Object{}
}

// tagsDocument returns the tags of a scope as a document, or an error for a scope that does not exist.
func tagsDocument(c *behaviour.Call) (behaviour.Object, error) {
	if c.ID.Name() != "default" {
		return nil, behaviour.Gateway(400, "InvalidTagsResourceName",
			"The name '%s' of the tags resource is invalid. It must be 'default'.", c.ID.Name())
	}
	scope := c.ID.Parent()
	doc, ok := c.Get(scope)
	if !ok && !scope.Is("Microsoft.Resources/subscriptions") {
		return nil, behaviour.NotFound(scope)
	}
	return behaviour.Object{"id": string(c.ID), "name": "default", "type": tagsType,
		"properties": behaviour.Object{"tags": tagsOf(doc)}}, nil
}

// mergeTags applies the operation of a PATCH: Merge, Replace or Delete.
func mergeTags(c *behaviour.Call) error {
	have, sent := behaviour.Clone(tagsOf(behaviour.Sub(c.Doc, "properties"))), behaviour.Sub(c.Body, "properties.tags")
	if doc, ok := c.Get(c.ID.Parent()); ok {
		have = tagsOf(doc)
	}
	switch behaviour.Text(c.Body, "operation") {
	case "Merge":
		maps.Copy(have, sent)
	case "Replace":
		have = behaviour.Clone(sent)
	case "Delete":
		for name, value := range sent {
			if have[name] == value {
				delete(have, name)
			}
		}
	default:
		return behaviour.Gateway(400, "InvalidTagsPatchOperation",
			"The operation '%s' is invalid. The operations are 'Merge', 'Replace' and 'Delete'.", behaviour.Text(c.Body, "operation"))
	}
	behaviour.Set(c.Doc, "properties.tags", have)
	return nil
}

func writeTags(c *behaviour.Call, tags behaviour.Object) {
	c.Edit(c.ID.Parent(), func(doc behaviour.Object) {
		delete(doc, "tags")
		if len(tags) > 0 {
			doc["tags"] = behaviour.Clone(tags)
		}
	})
}

// moves are the actions that move resources to another group.
func moves() map[string]behaviour.Action {
	return map[string]behaviour.Action{
		"moveResources":         {Long: true, Busy: "-", Do: checkMove, Settle: move},
		"validateMoveResources": {Long: true, Busy: "-", Do: checkMove},
	}
}

func checkMove(c *behaviour.Call) (any, error) {
	target := azure.ID(behaviour.Text(c.Body, "targetResourceGroup"))
	if _, ok := c.Get(target); !ok || !target.Is(groupType) {
		return nil, behaviour.Gateway(400, "InvalidTargetResourceGroup", "The target resource group '%s' does not exist.", target)
	}
	resources := behaviour.Texts(c.Body, "resources")
	if len(resources) == 0 {
		return nil, behaviour.Gateway(400, "MissingMoveResources", "The request to move resources names no resources.")
	}
	for _, text := range resources {
		id := azure.ID(text)
		if _, ok := c.Get(id); !ok || !id.Parent().Equal(c.ID) {
			return nil, behaviour.Gateway(404, "ResourceNotFound", "The resource '%s' to move is not in the resource group '%s'.", id,
				c.ID.Name())
		}
		if _, taken := c.Get(target.Resource(id.Type(), id.Name())); taken {
			return nil, behaviour.Conflict("ResourceMoveFailed", "The resource group '%s' has a resource '%s' already.", target.Name(),
				id.Name())
		}
	}
	if err := checkMoveLocks(c, target, resources); err != nil {
		return nil, err
	}
	c.Notes["target"], c.Notes["resources"] = string(target), behaviour.Clone(c.Body["resources"])
	return nil, nil
}

// checkMoveLocks refuses a move of or into what is read-only. A lock of the source group has refused the request already.
func checkMoveLocks(c *behaviour.Call, target azure.ID, resources []string) error {
	if err := c.Unlocked(target, "write"); err != nil {
		return err
	}
	for _, id := range resources {
		if err := c.Unlocked(azure.ID(id), "write"); err != nil {
			return err
		}
	}
	return nil
}

func move(c *behaviour.Call) (any, error) {
	target := azure.ID(behaviour.Text(c.Notes, "target"))
	for _, text := range behaviour.Texts(c.Notes, "resources") {
		id := azure.ID(text)
		c.Move(id, target.Resource(id.Type(), id.Name()))
	}
	return nil, nil
}
