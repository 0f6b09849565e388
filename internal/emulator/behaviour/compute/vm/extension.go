package vm

import (
	"strings"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/compute/schema"
)

const MachineExtensionType = schema.MachineType + "/extensions"

// machineExtensions is the type of the programs that the guest agent of a virtual machine runs.
func machineExtensions() behaviour.Type {
	style := behaviour.Compute()
	style.Etag, style.EtagHeader = behaviour.NoEtag, behaviour.Never
	return behaviour.Type{
		Name:  MachineExtensionType,
		Style: style,
		Where: behaviour.Anywhere,
		Own:   []string{"properties.instanceView"},
		Fill: func(c *behaviour.Call) error {
			if err := schema.CheckShape(c); err != nil {
				return err
			}
			schema.KeepRest(c)
			behaviour.Default(c.Doc, "location", behaviour.Text(c.Parent, "location"))
			return FillExtension(c)
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			if c.Expands("instanceView") {
				behaviour.Set(view, "properties.instanceView", extensionView(view))
			}
		},
	}
}

func FillExtension(c *behaviour.Call) error {
	for _, field := range []string{"publisher", "type", "typeHandlerVersion"} {
		if err := schema.Required(c.Doc, "properties."+field, field); err != nil {
			return err
		}
	}
	behaviour.Default(c.Doc, "properties.autoUpgradeMinorVersion", false)
	behaviour.Remove(c.Doc, "properties.protectedSettings")
	return nil
}

// extensionView returns the guest agent's report of an extension that has run.
func extensionView(doc behaviour.Object) behaviour.Object {
	return behaviour.Object{
		"name":               behaviour.Text(doc, "name"),
		"type":               behaviour.Text(doc, "properties.publisher") + "." + behaviour.Text(doc, "properties.type"),
		"typeHandlerVersion": behaviour.Text(doc, "properties.typeHandlerVersion"),
		"statuses": []any{behaviour.Object{"code": "ProvisioningState/succeeded", "level": "Info",
			"displayStatus": "Provisioning succeeded"}},
	}
}

// showExtensions adds the extensions of a virtual machine to its view.
func showExtensions(c *behaviour.Call, view behaviour.Object) {
	all := []any{}
	for _, doc := range c.List(c.ID, MachineExtensionType) {
		all = append(all, behaviour.Clone(doc))
	}
	if len(all) > 0 {
		view["resources"] = all
	}
}

// ExtensionViews returns the reports of the extensions among a machine's resources.
func ExtensionViews(resources []behaviour.Object) []any {
	views := []any{}
	for _, extension := range resources {
		if strings.EqualFold(behaviour.Text(extension, "type"), MachineExtensionType) {
			views = append(views, extensionView(extension))
		}
	}
	return views
}
