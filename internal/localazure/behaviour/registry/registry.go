// Package registry has the behaviour of Microsoft.ContainerRegistry: registries and
// the import of images into them. Layer L2.
package registry

import (
	_ "embed"
	"regexp"
	"strings"

	"kaz/internal/localazure/behaviour"
)

//go:embed types.txt
var table string

// Provider is Microsoft.ContainerRegistry.
func Provider() behaviour.Provider {
	types := behaviour.Describe(table, styles(), []behaviour.Type{registries(), behaviour.PrivateLinkResources(registryType, linkGroups)})
	completeTasks(types)
	return behaviour.Provider{
		Types: types,
		Routes: []behaviour.Route{{
			Method: "POST", Pattern: "/subscriptions/{subscription}/providers/Microsoft.ContainerRegistry/checkNameAvailability",
			Do: checkName, Permission: "Microsoft.ContainerRegistry/checkNameAvailability/read",
		}},
	}
}

const registryType = "Microsoft.ContainerRegistry/registries"

// styles are the styles of the types that only the table has.
func styles() map[string]behaviour.Style {
	plain := behaviour.Plain("Microsoft.ContainerRegistry")
	plain.Updated = 201
	child := operationStyle()
	child.EmptyTags = false
	return map[string]behaviour.Style{"registry": child, "tagged": operationStyle(), "plain": plain}
}

// operationStyle is the style of registries: their writes are operations.
func operationStyle() behaviour.Style {
	style := behaviour.Plain("Microsoft.ContainerRegistry")
	style.EmptyTags = true
	style.Patched, style.Deleted = 201, 202
	style.Creating, style.Updating, style.Deleting = "Creating", "Updating", "Deleting"
	style.Long = map[behaviour.Verb]behaviour.Headers{
		behaviour.Create: behaviour.AsyncOperation, behaviour.Update: behaviour.AsyncOperation, behaviour.Patch: behaviour.AsyncOperation,
		behaviour.Delete: behaviour.Location,
	}
	style.Protocol = operations()
	style.Otherwise = behaviour.Wait{First: 10, Later: 10}
	style.Overlap = behaviour.Queue
	return style
}

func registries() behaviour.Type {
	return behaviour.Type{
		Name:  registryType,
		Style: operationStyle(),
		Where: behaviour.Located,
		Own: []string{
			passwordsField, importsField, "sku.tier", "properties.loginServer", "properties.creationDate",
			"properties.dataEndpointHostNames",
			"properties.privateEndpointConnections",
		},
		// Updates of Premium registries, which may be in several regions, are operations.
		AtOnce: func(c *behaviour.Call) bool {
			return c.Old != nil && behaviour.Text(c.Old, "sku.tier") != "Premium"
		},
		Fill: fillRegistry,
		Show: func(c *behaviour.Call, view behaviour.Object) {
			behaviour.Hide(view)
			behaviour.Set(view, "properties.privateEndpointConnections", behaviour.PrivateEndpointConnections(c, c.ID))
			showVersioned(view, c.Query.Get("api-version"))
		},
		Header: func(*behaviour.Call, int) map[string]string {
			return map[string]string{"api-supported-versions": "2023-07-01"}
		},
		Actions: map[string]behaviour.Action{
			"importImage":          {Long: true, Headers: behaviour.Location, Busy: "-", Do: checkImport, Settle: recordImport},
			"listCredentials":      {Do: listCredentials},
			"regenerateCredential": {Do: regenerateCredential},
			"scheduleRun":          {Do: scheduleRun},
			"generateCredentials":  {Long: true, Headers: behaviour.Location, Busy: "-", Do: checkToken, Settle: generateCredentials},
		},
		Settle: settleRegistry,
		Views:  map[string]func(c *behaviour.Call) (any, error){"listUsages": listUsages},
	}
}

var registryName = regexp.MustCompile(`^[A-Za-z0-9]{5,50}$`)

func fillRegistry(c *behaviour.Call) error {
	name := c.ID.Name()
	if !registryName.MatchString(name) {
		return behaviour.Invalid("InvalidResourceName", "The registry name '%s' is invalid: 5 to 50 letters and digits are allowed.", name)
	}
	server := strings.ToLower(name) + "." + behaviour.CloudOf(c.Location()).Registry
	if _, taken := c.Holder(registryType, name); taken && c.Old == nil {
		return behaviour.Conflict("AlreadyInUse",
			"The registry DNS name %s is already in use. You can check if the name is already claimed using following API: "+
				"https://docs.microsoft.com/en-us/rest/api/containerregistry/registries/checknameavailability", server)
	}
	if err := fillSKU(c); err != nil {
		return err
	}
	behaviour.Default(c.Doc, "properties.loginServer", server)
	now := behaviour.Timestamp(c.Now())
	behaviour.Default(c.Doc, "properties.creationDate", now)
	for path, value := range defaults(now) {
		behaviour.Default(c.Doc, "properties."+path, value)
	}
	behaviour.Set(c.Doc, "properties.dataEndpointHostNames", []any{})
	if behaviour.Bool(c.Doc, "properties.dataEndpointEnabled") {
		host, _, _ := strings.Cut(server, ".")
		behaviour.Set(c.Doc, "properties.dataEndpointHostNames",
			[]any{host + "." + c.Location() + ".data." + behaviour.CloudOf(c.Location()).Registry})
	}
	if c.Doc[passwordsField] == nil {
		c.Doc[passwordsField] = behaviour.Object{"password": newPassword(c), "password2": newPassword(c)}
	}
	behaviour.WriteSystemData(c)
	return nil
}

// defaults are the settings that a registry's request can leave out.
func defaults(now string) behaviour.Object {
	return behaviour.Object{
		"adminUserEnabled":                                 false,
		"policies.quarantinePolicy.status":                 "disabled",
		"policies.trustPolicy.type":                        "Notary",
		"policies.trustPolicy.status":                      "disabled",
		"policies.retentionPolicy.days":                    7,
		"policies.retentionPolicy.lastUpdatedTime":         now,
		"policies.retentionPolicy.status":                  "disabled",
		"policies.exportPolicy.status":                     "enabled",
		"policies.azureADAuthenticationAsArmPolicy.status": "enabled",
		"policies.softDeletePolicy.retentionDays":          7,
		"policies.softDeletePolicy.lastUpdatedTime":        now,
		"policies.softDeletePolicy.status":                 "disabled",
		"encryption.status":                                "disabled",
		"dataEndpointEnabled":                              false,
		"publicNetworkAccess":                              "Enabled",
		"networkRuleBypassOptions":                         "AzureServices",
		"zoneRedundancy":                                   "Disabled",
		"anonymousPullEnabled":                             false,
	}
}

func fillSKU(c *behaviour.Call) error {
	name := behaviour.Text(c.Doc, "sku.name")
	for _, known := range []string{"Basic", "Standard", "Premium"} {
		if strings.EqualFold(known, name) {
			c.Doc["sku"] = behaviour.Object{"name": known, "tier": known}
			break
		}
	}
	tier := behaviour.Text(c.Doc, "sku.tier")
	if tier == "" {
		return behaviour.Invalid("SkuNotSupported", "The sku '%s' of the registry is not supported: Basic, Standard and Premium are.", name)
	}
	if tier == "Premium" {
		behaviour.Default(c.Doc, "properties.networkRuleSet.defaultAction", "Allow")
		behaviour.Default(c.Doc, "properties.networkRuleSet.ipRules", []any{})
		return nil
	}
	if behaviour.Bool(c.Doc, "properties.dataEndpointEnabled") {
		return behaviour.Invalid("FeatureNotSupported",
			"The property 'dataEndpointEnabled' needs a registry with the sku Premium, this one has %s.", tier)
	}
	behaviour.Remove(c.Doc, "properties.networkRuleSet")
	return nil
}

func checkName(c *behaviour.Call) (behaviour.Reply, error) {
	name := behaviour.Text(c.Body, "name")
	body := behaviour.Object{"nameAvailable": true}
	_, taken := c.Holder(registryType, name)
	switch {
	case !registryName.MatchString(name):
		body = behaviour.Object{"nameAvailable": false, "reason": "Invalid", "message": "The registry name '" + name +
			"' is invalid: 5 to 50 letters and digits are allowed."}
	case taken:
		body = behaviour.Object{"nameAvailable": false, "reason": "AlreadyExists", "message": "The registry " + name +
			" is already in use."}
	}
	return behaviour.Reply{Status: 200, Body: body}, nil
}

func listUsages(c *behaviour.Call) (any, error) {
	usage := func(name string, limit int, unit string) behaviour.Object {
		return behaviour.Object{"name": name, "limit": limit, "currentValue": 0, "unit": unit}
	}
	const gib = 1 << 30
	size, hooks := 10*gib, 2
	switch behaviour.Text(c.Old, "sku.tier") {
	case "Standard":
		size, hooks = 100*gib, 10
	case "Premium":
		size, hooks = 500*gib, 500
	}
	return behaviour.Object{"value": []any{usage("Size", size, "Bytes"), usage("Webhooks", hooks, "Count")}}, nil
}

// Registries yields the login servers of all registries with their documents, for the data plane.
func Registries(w behaviour.World) map[string]behaviour.Object {
	all := map[string]behaviour.Object{}
	for _, doc := range behaviour.Everywhere(w, registryType) {
		all[behaviour.Text(doc, "properties.loginServer")] = doc
	}
	return all
}
