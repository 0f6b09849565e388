package storage

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// service returns what the types of an account's services share. A service has the name "default" and exists as long as
// its account.
func service(name string, defaults behaviour.Object) behaviour.Type {
	return behaviour.Type{
		Name:    AccountType + "/" + name,
		Style:   child(behaviour.NoEtag),
		NoState: true,
		Own:     []string{deletedField, analyticsField, "sku"},
		Fill: func(c *behaviour.Call) error {
			if c.ID.Name() != "default" {
				return behaviour.Invalid("InvalidResourceName",
					"The name '%s' of a %s resource is not valid. The only allowed name is default.", c.ID.Name(), name)
			}
			// A setting that the request leaves out stays.
			for setting, value := range behaviour.Sub(c.Old, "properties") {
				behaviour.Default(c.Doc, "properties."+setting, behaviour.Clone(value))
			}
			if err := checkService(c); err != nil {
				return err
			}
			if behaviour.At(c.Doc, "properties.lastAccessTimeTrackingPolicy.enable") == false {
				behaviour.Remove(c.Doc, "properties.lastAccessTimeTrackingPolicy")
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
	files := service("fileServices", behaviour.Object{
		"protocolSettings":           behaviour.Object{"smb": behaviour.Object{}},
		"cors":                       behaviour.Object{"corsRules": []any{}},
		"shareDeleteRetentionPolicy": behaviour.Object{"enabled": true, "days": defaultRetention},
	})
	show := files.Show
	files.Show = func(c *behaviour.Call, view behaviour.Object) {
		show(c, view)
		account, _ := c.Get(azure.ID(behaviour.Text(view, "id")).Parent())
		if model, _ := modelOf(account); model.tier == "Premium" && view["sku"] != nil {
			behaviour.Default(view, "properties.protocolSettings.smb.multichannel", behaviour.Object{"enabled": false})
		}
		const policy = "properties.shareDeleteRetentionPolicy"
		if behaviour.At(view, policy+".enabled") == false && view["sku"] != nil { // not in replies to writes
			behaviour.Default(view, policy+".days", 0)
		}
	}
	files.Views = map[string]func(c *behaviour.Call) (any, error){"usages": fileUsages}
	return files
}

func queueServices() behaviour.Type { return service("queueServices", noRules()) }

func tableServices() behaviour.Type { return service("tableServices", noRules()) }

func noRules() behaviour.Object {
	return behaviour.Object{"cors": behaviour.Object{"corsRules": []any{}}}
}

// checkService refuses settings of a service that its account cannot have.
func checkService(c *behaviour.Call) error {
	const longest = 365
	for _, policy := range []string{"shareDeleteRetentionPolicy", "deleteRetentionPolicy", "containerDeleteRetentionPolicy"} {
		path := "properties." + policy
		days, given := behaviour.Int(c.Doc, path+".days")
		if behaviour.Bool(c.Doc, path+".enabled") && given && (days < 1 || days > longest) {
			return behaviour.Invalid("InvalidRequestPropertyValue",
				"The value '%d' is not allowed for property %s.days: 1 to %d are.", days, policy, longest)
		}
	}
	account, _ := c.Get(c.ID.Parent())
	model, _ := modelOf(account)
	if behaviour.Bool(c.Doc, "properties.protocolSettings.smb.multichannel.enabled") && model.tier != "Premium" {
		return behaviour.Conflict("FeatureNotSupportedForAccount", "SMB Multichannel is not supported for the account.")
	}
	return nil
}

// analyticsField is the field of a service with what it notes of requests, as its data plane has set it.
const analyticsField = behaviour.Private + "analytics"

// Analytics returns what the data plane keeps of the settings of a service, "" for nothing.
func Analytics(service behaviour.Object) string { return behaviour.Text(service, analyticsField) }

// SetAnalytics replaces what the data plane keeps of the settings of a service.
func SetAnalytics(service behaviour.Object, text string) { service[analyticsField] = text }
