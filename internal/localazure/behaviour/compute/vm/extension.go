package vm

import (
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
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
		Own:   []string{schema.Runtime, "properties.instanceView"},
		Fill: func(c *behaviour.Call) error {
			if err := schema.CheckShape(c); err != nil {
				return err
			}
			schema.KeepRest(c)
			behaviour.Default(c.Doc, "location", behaviour.Text(c.Parent, "location"))
			return fillScript(c)
		},
		Settle: func(c *behaviour.Call) error {
			machine, _ := c.Get(c.ID.Parent())
			return awaitScript(machine, c.Doc)
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			delete(view, schema.Runtime)
			if c.Expands("instanceView") {
				behaviour.Set(view, "properties.instanceView", extensionView(view))
			}
		},
	}
}

// fillScript completes an extension of a machine. A script that failed runs again.
func fillScript(c *behaviour.Call) error {
	if command := behaviour.Text(c.Doc, "properties.protectedSettings.commandToExecute"); command != "" {
		behaviour.Set(c.Doc, schema.Runtime+".commandToExecute", command)
	}
	if c.Old != nil && (schema.State(c.Old) == schema.Failed ||
		!behaviour.Equal(behaviour.At(c.Doc, "properties.settings"), behaviour.At(c.Old, "properties.settings"))) {
		forgetResult(c.World, c.ID.Parent(), extensionKey(c.ID.Name()))
	}
	return FillExtension(c)
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
		shown := behaviour.Clone(doc)
		delete(shown, schema.Runtime)
		all = append(all, shown)
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
