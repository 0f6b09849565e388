package document

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/catalog"
	"kaz/internal/localazure/core/kind"
)

// Stamp writes the fields that the core keeps into a document and its children.
func Stamp(k *kind.Kind, id azure.ID, doc behaviour.Object, state, etag string) {
	doc["id"] = k.Spelled(id)
	if k.Inline == "" || doc["name"] == nil {
		doc["name"] = id.Name()
	}
	if k.NoType {
		delete(doc, "type")
	} else {
		doc["type"] = k.Name
	}
	if etag != "" && !k.Style.NoEtagBody {
		doc["etag"] = etag
	} else {
		delete(doc, "etag")
	}
	if !k.NoState {
		behaviour.Set(doc, "properties.provisioningState", state)
	}
	for _, child := range k.Children {
		for _, element := range behaviour.Objects(doc, child.Inline) {
			Stamp(child, child.Child(id, element), element, state, etag)
		}
	}
}

// Same reports whether a write leaves the etag as it is. Etags that count
// changes of the model ignore changes of the state.
func Same(form behaviour.Etag, old, doc behaviour.Object) bool {
	if form != behaviour.Counter {
		return behaviour.Equal(old, doc)
	}
	was := behaviour.Text(old, "properties.provisioningState")
	is := behaviour.Text(doc, "properties.provisioningState")
	if was == is {
		return behaviour.Equal(old, doc)
	}
	behaviour.Set(doc, "properties.provisioningState", was)
	same := behaviour.Equal(old, doc)
	behaviour.Set(doc, "properties.provisioningState", is)
	return same
}

// Locate checks and normalises a document's location.
func Locate(k *kind.Kind, id azure.ID, doc, old behaviour.Object) error {
	location := NormalLocation(behaviour.Text(doc, "location"))
	switch k.Where {
	case behaviour.Nowhere:
		delete(doc, "location")
		return nil
	case behaviour.Global:
		if location != "" && location != "global" {
			return behaviour.Gateway(400, "LocationNotAvailableForResourceType",
				"The provided location '%s' is not available for resource type '%s'. List of available regions for the resource "+
					"type is 'global'.", location, k.Name)
		}
		doc["location"] = "global"
		return nil
	}
	if location == "" {
		location = behaviour.Text(old, "location")
	}
	if location == "" {
		if k.Where == behaviour.Anywhere {
			return nil
		}
		return behaviour.Gateway(400, "LocationRequired", "The location property is required for this definition.")
	}
	if _, known := catalog.FindRegion(location); !known && (k.Where != behaviour.Anywhere || location != "global") {
		return noRegion(k, behaviour.Text(doc, "location"))
	}
	if had := behaviour.Text(old, "location"); had != "" && had != location {
		if id.Is("Microsoft.Resources/resourceGroups") {
			return behaviour.Gateway(409, "InvalidResourceGroupLocation",
				"Invalid resource group location '%s'. The Resource group already exists in location '%s'.", location, had)
		}
		if id.Is("Microsoft.Resources/deployments") {
			return behaviour.Gateway(409, "InvalidDeploymentLocation",
				"Invalid deployment location '%s'. The deployment '%s' already exists in location '%s'.", location, id.Name(), had)
		}
		return behaviour.Gateway(409, "InvalidResourceLocation",
			"The resource '%s' already exists in location '%s' in resource group '%s'. A resource with the same name cannot be "+
				"created in location '%s'. Please select a new resource name.", id.Name(), had, id.Group(), location)
	}
	doc["location"] = location
	return nil
}

func noRegion(k *kind.Kind, location string) error {
	var names []string
	for _, r := range catalog.Regions() {
		names = append(names, r.Name)
	}
	if k.Name == "Microsoft.Resources/resourceGroups" {
		return behaviour.Gateway(400, "LocationNotAvailableForResourceGroup",
			"The provided location '%s' is not available for resource group. List of available regions is '%s'.", location,
			strings.Join(names, ","))
	}
	return behaviour.Gateway(400, "LocationNotAvailableForResourceType",
		"The provided location '%s' is not available for resource type '%s'. List of available regions for the resource type is '%s'.",
		location, k.Name, strings.Join(names, ","))
}

// NormalLocation is a region's name as Azure stores it: "East US" is "eastus".
func NormalLocation(s string) string { return strings.ToLower(strings.ReplaceAll(s, " ", "")) }
