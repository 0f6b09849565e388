package policy

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// Resource is a resource that is written.
type Resource struct {
	ID azure.ID
	// Type is the type as Azure spells it, Doc the document after the write.
	Type string
	Doc  behaviour.Object
}

// groupType is how policies spell the type of resource groups.
const groupType = "Microsoft.Resources/subscriptions/resourceGroups"

func (r Resource) kind() string {
	if strings.EqualFold(r.Type, "Microsoft.Resources/resourceGroups") {
		return groupType
	}
	return r.Type
}

// lookup returns the path and the values of a field. A field has one value, nil for none, or a value for each element of lists in the path.
func (r Resource) lookup(field string) (path string, values []any) {
	switch lower := strings.ToLower(field); {
	case lower == "type":
		return "type", []any{r.kind()}
	case lower == "name":
		return "name", []any{r.ID.Name()}
	case lower == "fullname":
		return "fullName", []any{r.fullName()}
	case lower == "id":
		return "id", []any{string(r.ID)}
	case strings.HasPrefix(lower, "tags[") || strings.HasPrefix(lower, "tags."):
		name := strings.Trim(strings.TrimPrefix(field[len("tags"):], "."), "[]'")
		return field, []any{member(r.Doc["tags"], name)}
	case !strings.Contains(field, "/"):
		return field, valuesAt(r.Doc, field)
	}
	path, ok := r.alias(field)
	if !ok {
		return field, []any{nil}
	}
	return path, valuesAt(r.Doc, path)
}

// fullName is the names of a resource and of those that it is in.
func (r Resource) fullName() string {
	top := r.ID.TopLevel()
	name := r.ID.Name()
	for id := r.ID; !id.Equal(top); {
		id = id.Parent()
		name = id.Name() + "/" + name
	}
	return name
}

// aliases are the paths of aliases that are not like the fields of documents.
var aliases = map[string]string{
	"microsoft.compute/virtualmachines/sku.name":       "properties.hardwareProfile.vmSize",
	"microsoft.compute/virtualmachines/imagepublisher": "properties.storageProfile.imageReference.publisher",
	"microsoft.compute/virtualmachines/imageoffer":     "properties.storageProfile.imageReference.offer",
	"microsoft.compute/virtualmachines/imagesku":       "properties.storageProfile.imageReference.sku",
	"microsoft.compute/imagepublisher":                 "properties.storageProfile.imageReference.publisher",
	"microsoft.compute/imageoffer":                     "properties.storageProfile.imageReference.offer",
	"microsoft.compute/imagesku":                       "properties.storageProfile.imageReference.sku",
}

// outside are the fields of documents that are not below properties.
var outside = map[string]bool{"sku": true, "kind": true, "identity": true, "zones": true, "plan": true, "location": true,
	"extendedlocation": true, "managedby": true}

// alias returns the path of an alias in documents of the resource's type, false for an alias of another type.
func (r Resource) alias(field string) (string, bool) {
	if path, known := aliases[strings.ToLower(field)]; known {
		return path, strings.HasPrefix(strings.ToLower(field), strings.ToLower(azureNamespace(r.Type)))
	}
	prefix := r.kind() + "/"
	if len(field) <= len(prefix) || !strings.EqualFold(field[:len(prefix)], prefix) {
		return "", false
	}
	rest := field[len(prefix):]
	first, _, _ := strings.Cut(rest, ".")
	if outside[strings.ToLower(strings.TrimSuffix(first, "[*]"))] {
		return rest, true
	}
	return "properties." + rest, true
}

func azureNamespace(kind string) string {
	namespace, _, _ := strings.Cut(kind, "/")
	return namespace + "/"
}

// valuesAt returns the values at a path, in which name[*] stands for all elements of a list.
func valuesAt(doc any, path string) []any {
	key, rest, more := strings.Cut(path, ".")
	name, each := strings.CutSuffix(key, "[*]")
	value := member(doc, name)
	if !each {
		if !more {
			return []any{value}
		}
		return valuesAt(value, rest)
	}
	list, _ := value.([]any)
	values := []any{}
	for _, element := range list {
		if more {
			values = append(values, valuesAt(element, rest)...)
		} else {
			values = append(values, element)
		}
	}
	return values
}

// member returns the member of an object with a name in any letter case, nil for none.
func member(value any, name string) any {
	object, _ := value.(behaviour.Object)
	for key, value := range object {
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return nil
}
