package storage

import (
	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// service returns what the types of an account's services share. A service has the name "default" and exists as long as
// its account.
func service(name string, defaults behaviour.Object) behaviour.Type {
	return behaviour.Type{
		Name:    accountType + "/" + name,
		Style:   child(behaviour.NoEtag),
		NoState: true,
		Own:     []string{deletedField, "sku"},
		Fill: func(c *behaviour.Call) error {
			if c.ID.Name() != "default" {
				return behaviour.Invalid("InvalidResourceName",
					"The name '%s' of a %s resource is not valid. The only allowed name is default.", c.ID.Name(), name)
			}
			if behaviour.Sub(c.Doc, "properties.deleteRetentionPolicy") != nil {
				behaviour.Default(c.Doc, "properties.deleteRetentionPolicy.allowPermanentDelete", false)
			}
			return nil
		},
		Refuse: func(c *behaviour.Call) error {
			return behaviour.Refusal(405, "MethodNotAllowed", "The %s of a storage account cannot be deleted.", name)
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			behaviour.Hide(view)
			if c.Verb == behaviour.Create || c.Verb == behaviour.Update {
				behaviour.KeepOnly(view, c.Body, "properties")
				return
			}
			account, _ := c.Get(azure.ID(behaviour.Text(view, "id")).Parent())
			if sku := behaviour.Sub(account, "sku"); sku != nil {
				view["sku"] = behaviour.Clone(sku)
			}
			for path, value := range defaults {
				behaviour.Default(view, "properties."+path, behaviour.Clone(value))
			}
		},
	}
}

func blobServices() behaviour.Type {
	defaults := noRules()
	defaults["deleteRetentionPolicy"] = behaviour.Object{"allowPermanentDelete": false, "enabled": false}
	return service("blobServices", defaults)
}

func fileServices() behaviour.Type {
	return service("fileServices", behaviour.Object{
		"protocolSettings":           behaviour.Object{"smb": behaviour.Object{}},
		"cors":                       behaviour.Object{"corsRules": []any{}},
		"shareDeleteRetentionPolicy": behaviour.Object{"enabled": true, "days": defaultRetention},
	})
}

func queueServices() behaviour.Type { return service("queueServices", noRules()) }

func tableServices() behaviour.Type { return service("tableServices", noRules()) }

func noRules() behaviour.Object {
	return behaviour.Object{"cors": behaviour.Object{"corsRules": []any{}}}
}
