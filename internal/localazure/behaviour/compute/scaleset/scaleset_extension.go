package scaleset

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
)

// scaleSetExtensions is the type of the extensions in the model of a scale set.
func scaleSetExtensions() behaviour.Type {
	style := behaviour.Compute()
	style.NoEtagBody, style.EtagHeader = true, behaviour.Never
	return behaviour.Type{
		Name:   schema.ScaleSetType + "/extensions",
		Style:  style,
		Inline: extensionsPath,
		Fill: func(c *behaviour.Call) error {
			delete(c.Doc, "location") // an extension has the location of its scale set
			return vm.FillExtension(c)
		},
	}
}

// applyExtensions gives an instance the extensions of its scale set's model.
func applyExtensions(doc, set behaviour.Object, instance azure.ID) {
	all := []any{}
	for _, extension := range behaviour.Objects(set, extensionsPath) {
		name := behaviour.Text(extension, "name")
		all = append(all, behaviour.Object{
			"id": string(instance.Child("extensions", name)), "name": name, "type": vm.MachineExtensionType,
			"location":   behaviour.Text(set, "location"),
			"properties": behaviour.Clone(behaviour.Sub(extension, "properties")),
		})
	}
	delete(doc, "resources")
	if len(all) > 0 {
		doc["resources"] = all
	}
}

// extensionsPath is the path of the extensions in a scale set's model.
const extensionsPath = schema.ProfilePath + ".extensionProfile.extensions"
