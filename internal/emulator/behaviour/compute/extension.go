package compute

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

const (
	machineExtensionType = machineType + "/extensions"
	extensionsPath       = profilePath + ".extensionProfile.extensions"
)

// machineExtensions are programs that the guest agent of a virtual machine runs.
func machineExtensions() behaviour.Type {
	style := behaviour.Compute()
	style.Etag, style.EtagHeader = behaviour.NoEtag, behaviour.Never
	return behaviour.Type{
		Name:  machineExtensionType,
		Style: style,
		Where: behaviour.Anywhere,
		Own:   []string{"properties.instanceView"},
		Fill: func(c *behaviour.Call) error {
			if err := wellFormed(c); err != nil {
				return err
			}
			keepRest(c)
			behaviour.Default(c.Doc, "location", behaviour.Text(c.Parent, "location"))
			return fillExtension(c)
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			if c.Expands("instanceView") {
				behaviour.Set(view, "properties.instanceView", extensionView(view))
			}
		},
	}
}

// scaleSetExtensions live in the model of their scale set.
func scaleSetExtensions() behaviour.Type {
	style := behaviour.Compute()
	style.NoEtagBody, style.EtagHeader = true, behaviour.Never
	return behaviour.Type{
		Name:   scaleSetType + "/extensions",
		Style:  style,
		Inline: extensionsPath,
		Fill: func(c *behaviour.Call) error {
			delete(c.Doc, "location") // it is that of the scale set
			return fillExtension(c)
		},
	}
}

func fillExtension(c *behaviour.Call) error {
	for _, field := range []string{"publisher", "type", "typeHandlerVersion"} {
		if err := required(c.Doc, "properties."+field, field); err != nil {
			return err
		}
	}
	behaviour.Default(c.Doc, "properties.autoUpgradeMinorVersion", false)
	behaviour.Remove(c.Doc, "properties.protectedSettings")
	return nil
}

// extensionView is what the guest agent says of an extension that has run.
func extensionView(doc behaviour.Object) behaviour.Object {
	return behaviour.Object{
		"name":               behaviour.Text(doc, "name"),
		"type":               behaviour.Text(doc, "properties.publisher") + "." + behaviour.Text(doc, "properties.type"),
		"typeHandlerVersion": behaviour.Text(doc, "properties.typeHandlerVersion"),
		"statuses":           []any{behaviour.Object{"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded"}},
	}
}

// showExtensions adds the extensions of a virtual machine to what is shown of it.
func showExtensions(c *behaviour.Call, view behaviour.Object) {
	all := []any{}
	for _, doc := range c.List(c.ID, machineExtensionType) {
		all = append(all, behaviour.Clone(doc))
	}
	if len(all) > 0 {
		view["resources"] = all
	}
}

// applyExtensions gives an instance the extensions of its scale set's model.
func applyExtensions(doc, set behaviour.Object, instance azure.ID) {
	all := []any{}
	each(set, extensionsPath, func(extension behaviour.Object) {
		name := behaviour.Text(extension, "name")
		all = append(all, behaviour.Object{
			"id": string(instance.Child("extensions", name)), "name": name, "type": machineExtensionType,
			"location":   behaviour.Text(set, "location"),
			"properties": behaviour.Clone(behaviour.Sub(extension, "properties")),
		})
	})
	delete(doc, "resources")
	if len(all) > 0 {
		doc["resources"] = all
	}
}

// extensionViews are the views of the extensions that a machine shows as resources.
func extensionViews(resources []behaviour.Object) []any {
	views := []any{}
	for _, extension := range resources {
		if strings.EqualFold(behaviour.Text(extension, "type"), machineExtensionType) {
			views = append(views, extensionView(extension))
		}
	}
	return views
}
