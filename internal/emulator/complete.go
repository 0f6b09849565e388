package emulator

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// complete turns what a client sent into the document that is stored: the type's
// own Fill, then those of the children inside of it, then its Check.
func (t *transaction) complete(c *behaviour.Call, k *kind) error {
	if k.Fill != nil {
		if err := k.Fill(c); err != nil {
			return err
		}
	}
	for _, child := range k.inline {
		if err := t.completeChildren(c, child); err != nil {
			return err
		}
	}
	if k.Check != nil {
		return k.Check(c)
	}
	return nil
}

func (t *transaction) completeChildren(c *behaviour.Call, child *kind) error {
	seen := map[string]bool{}
	for _, x := range behaviour.Array(c.Doc, child.Inline) {
		element, ok := x.(behaviour.Object)
		name := behaviour.Text(element, "name")
		if !ok || name == "" {
			return behaviour.Invalid("InvalidRequestFormat", "Cannot parse the request: every element of %s of resource %s needs a name.", child.Inline, c.ID)
		}
		if seen[strings.ToLower(name)] {
			return behaviour.Invalid("InvalidRequestFormat", "Cannot parse the request.").
				With("DuplicateResourceName", "Resource %s has two child resources with the same name (%s).", c.ID, name)
		}
		seen[strings.ToLower(name)] = true
		old := behaviour.Named(c.Old, child.Inline, name)
		childCall := *c
		childCall.ID, childCall.Type = c.ID.Child(child.segment(), name), child.Type
		childCall.Doc, childCall.Old, childCall.Parent = element, old, c.Doc
		childCall.Verb = behaviour.Update
		if old == nil {
			childCall.Verb = behaviour.Create
		}
		if err := t.complete(&childCall, child); err != nil {
			return err
		}
	}
	return t.completeRemovals(c, child, seen)
}

// completeRemovals asks of the children that a new document leaves out whether they
// may go.
func (t *transaction) completeRemovals(c *behaviour.Call, child *kind, kept map[string]bool) error {
	for _, old := range behaviour.Objects(c.Old, child.Inline) {
		name := behaviour.Text(old, "name")
		if kept[strings.ToLower(name)] {
			continue
		}
		gone := *c
		gone.Verb, gone.ID, gone.Type = behaviour.Delete, c.ID.Child(child.segment(), name), child.Type
		gone.Old, gone.Doc, gone.Parent = old, nil, c.Doc
		if err := t.deletable(&gone, child); err != nil {
			return err
		}
	}
	return nil
}

// shapely checks the frame that all resources share.
func shapely(body behaviour.Object) error {
	for field, value := range body {
		ok := true
		switch v := value.(type) {
		case nil:
		case behaviour.Object:
			ok = field != "location" && (field != "tags" || allTexts(v))
		case string:
			ok = !slices.Contains([]string{"properties", "tags", "sku", "identity"}, field)
		default:
			ok = !slices.Contains([]string{"properties", "tags", "sku", "identity", "location", "name"}, field)
		}
		if !ok {
			return gateway(400, "InvalidRequestContent", "The request content was invalid and could not be deserialized: the value of '%s' is not of the type that it needs.", field)
		}
	}
	tags, _ := body["tags"].(behaviour.Object)
	return takeable(tags)
}

// The limits of tags, as Azure documents them. With which code it refuses more tags is not
// recorded. What it says of a value is what users of kubernetes-sigs/cloud-provider-azure#510
// and Azure/AKS#2160 got; what it says of a name is what Azure's own PowerShell says.
const (
	mostTags        = 50
	longestTagName  = 512
	longestTagValue = 256
)

// takeable checks tags.
func takeable(tags behaviour.Object) error {
	if len(tags) > mostTags {
		return gateway(400, "InvalidRequestContent", "The resource has %d tags. A resource can have at most %d.", len(tags), mostTags)
	}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		if utf8.RuneCountInString(name) > longestTagName {
			return gateway(400, "InvalidTagName", "Tag key too large.  Following tag name '%s' exceeded the maximum length. Maximum allowed length for tag name - '%d' characters.", name, longestTagName)
		}
		if value, _ := tags[name].(string); utf8.RuneCountInString(value) > longestTagValue {
			return gateway(400, "InvalidTagValueLength", "Tag value too large.  Following tag value '%s' exceeded the maximum length. Maximum allowed length for tag value - '%d' characters.", value, longestTagValue)
		}
	}
	return nil
}

func allTexts(o behaviour.Object) bool {
	for _, v := range o {
		if _, ok := v.(string); !ok && v != nil {
			return false
		}
	}
	return true
}

// admit makes a document out of a request's body: without nulls, without what
// belongs to Azure, with what Azure had put there before.
func admit(k *kind, id azure.ID, body, old behaviour.Object) behaviour.Object {
	doc := behaviour.Clone(body)
	if doc == nil {
		doc = behaviour.Object{}
	}
	dropNulls(doc)
	if k.Style.Reduce {
		reduce(id, doc)
	}
	own(k, doc, old)
	return doc
}

func own(k *kind, doc, old behaviour.Object) {
	for _, field := range []string{"id", "type", "etag", "systemData"} {
		delete(doc, field)
	}
	behaviour.Remove(doc, "properties.provisioningState")
	for _, path := range k.Own {
		keepOwn(doc, old, strings.Split(path, "."))
	}
	for _, child := range k.inline {
		for _, element := range behaviour.Objects(doc, child.Inline) {
			own(child, element, behaviour.Named(old, child.Inline, behaviour.Text(element, "name")))
		}
	}
}

// keepOwn replaces what is at a path by what the old document has there.
func keepOwn(doc, old behaviour.Object, path []string) {
	key := path[0]
	if len(path) == 1 {
		delete(doc, key)
		if v, ok := old[key]; ok {
			doc[key] = behaviour.Clone(v)
		}
		return
	}
	switch at := doc[key].(type) {
	case behaviour.Object:
		before, _ := old[key].(behaviour.Object)
		keepOwn(at, before, path[1:])
	case []any:
		for _, x := range at {
			if element, ok := x.(behaviour.Object); ok {
				keepOwn(element, behaviour.Named(old, key, behaviour.Text(element, "name")), path[1:])
			}
		}
	default:
		before, _ := old[key].(behaviour.Object)
		made := behaviour.Object{}
		keepOwn(made, before, path[1:])
		if len(made) > 0 {
			doc[key] = made
		}
	}
}

func dropNulls(value any) {
	switch v := value.(type) {
	case behaviour.Object:
		for key, x := range v {
			if x == nil {
				delete(v, key)
			} else {
				dropNulls(x)
			}
		}
	case []any:
		for _, x := range v {
			dropNulls(x)
		}
	}
}

// reduce replaces whole resources nested in a document by references to them.
func reduce(id azure.ID, o behaviour.Object) {
	for key, x := range o {
		switch v := x.(type) {
		case behaviour.Object:
			o[key] = reduced(id, v)
		case []any:
			for i, element := range v {
				if e, ok := element.(behaviour.Object); ok {
					v[i] = reduced(id, e)
				}
			}
		}
	}
}

func reduced(id azure.ID, o behaviour.Object) behaviour.Object {
	to := azure.ID(behaviour.Text(o, "id"))
	_, whole := o["properties"]
	if whole && strings.HasPrefix(string(to), "/subscriptions/") && !to.Under(id) {
		return behaviour.Ref(to)
	}
	reduce(id, o)
	return o
}

// merge applies a JSON merge patch.
func merge(doc, patch behaviour.Object) {
	for key, x := range patch {
		if x == nil {
			delete(doc, key)
			continue
		}
		into, isObject := doc[key].(behaviour.Object)
		from, patchesObject := x.(behaviour.Object)
		if isObject && patchesObject {
			merge(into, from)
		} else {
			doc[key] = behaviour.Clone(x)
		}
	}
}
