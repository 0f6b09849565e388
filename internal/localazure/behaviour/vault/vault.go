// Package vault has the behaviour of Microsoft.KeyVault: vaults, their secrets as ARM shows them, and deleted vaults.
// Layer L2.
package vault

import (
	_ "embed"
	"regexp"
	"strings"

	"kaz/internal/localazure/behaviour"
)

//go:embed types.txt
var table string

//go:embed routes.txt
var routes string

// Provider is Microsoft.KeyVault.
func Provider() behaviour.Provider {
	return behaviour.Provider{
		Types: behaviour.Describe(table, map[string]behaviour.Style{"child": secretStyle("Microsoft.KeyVault")},
			[]behaviour.Type{vaults(), secrets(), keys(vaultType), keys(hsmType), accessPolicies(), deletedVaults(),
				behaviour.PrivateLinkResources(vaultType, linkGroups)}),
		Routes: append(behaviour.DescribeRoutes(routes), []behaviour.Route{
			policyRoute(), noPolicyRoute(),
			{
				Method: "POST", Pattern: "/subscriptions/{subscription}/providers/Microsoft.KeyVault/checkNameAvailability",
				Do: checkName, Permission: "Microsoft.KeyVault/checkNameAvailability/read",
			},
			{
				Method: "GET", Pattern: "/subscriptions/{subscription}/providers/Microsoft.KeyVault/deletedVaults",
				Do: listDeleted, Permission: "Microsoft.KeyVault/deletedVaults/read",
			},
		}...),
	}
}

const (
	vaultType  = "Microsoft.KeyVault/vaults"
	hsmType    = "Microsoft.KeyVault/managedHSMs"
	secretType = vaultType + "/secrets"
)

// serviceVersion is the version in the provider's replies.
const serviceVersion = "1.5.1491.0"

func serviceHeader(*behaviour.Call, int) map[string]string {
	return map[string]string{"x-ms-keyvault-service-version": serviceVersion}
}

// vaultStyle returns the style of vaults. A creation ends some time after its reply, when the DNS name is registered;
// clients poll the vault itself.
func vaultStyle() behaviour.Style {
	s := behaviour.Plain("Microsoft.KeyVault")
	s.Created = 200
	s.EmptyTags = true
	s.Long = map[behaviour.Verb]behaviour.Headers{behaviour.Create: behaviour.AsyncOperation}
	s.Creating = "RegisteringDns"
	return s
}

func vaults() behaviour.Type {
	return behaviour.Type{
		Name:  vaultType,
		Style: vaultStyle(),
		Where: behaviour.Located,
		Own:   []string{secretsField, deletedField, "properties.vaultUri", "properties.privateEndpointConnections"},
		// A page of the list has one vault, and the page after the last vault is empty.
		Page: 1, EmptyLast: true,
		Fill:    fillVault,
		Settle:  recoverSecrets,
		Removed: keepDeleted,
		Header:  serviceHeader,
		Show: func(c *behaviour.Call, view behaviour.Object) {
			behaviour.Hide(view)
			if connections := behaviour.PrivateEndpointConnections(c, c.ID); len(connections) > 0 {
				behaviour.Set(view, "properties.privateEndpointConnections", connections)
			}
			if c.Verb == behaviour.Create {
				behaviour.Set(view, "properties.vaultUri", strings.TrimSuffix(behaviour.Text(view, "properties.vaultUri"), "/"))
			}
		},
	}
}

// linkGroups is the part of a vault to which private endpoints can connect.
func linkGroups(*behaviour.Call) []behaviour.LinkGroup {
	return []behaviour.LinkGroup{{ID: "vault", Members: []string{"default"}, Zones: []string{"privatelink.vaultcore.azure.net"}}}
}

var vaultName = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9]|-[A-Za-z0-9])*$`)

// isValidName reports whether a name is allowed for a vault.
func isValidName(name string) bool {
	const shortest, longest = 3, 24
	return len(name) >= shortest && len(name) <= longest && vaultName.MatchString(name)
}

const (
	badName = "The vault name '%s' is invalid. A vault's name must be between 3-24 alphanumeric characters. The name must begin " +
		"with a letter, end with a letter or digit, and not contain consecutive hyphens. Follow this link for more information: " +
		"https://go.microsoft.com/fwlink/?linkid=2147742"
	takenName = "The vault name '%s' is already in use. Vault names are globally unique so it is possible that the name is already taken."
)

func fillVault(c *behaviour.Call) error {
	if c.Old == nil {
		if err := beginVault(c); err != nil {
			return err
		}
	}
	behaviour.Remove(c.Doc, "properties.createMode")
	if err := checkVault(c); err != nil {
		return err
	}
	behaviour.Default(c.Doc, "properties.accessPolicies", []any{})
	behaviour.Default(c.Doc, "properties.enabledForDeployment", false)
	behaviour.Default(c.Doc, "properties.enableSoftDelete", true)
	behaviour.Default(c.Doc, "properties.softDeleteRetentionInDays", defaultRetention)
	behaviour.Default(c.Doc, "properties.publicNetworkAccess", "Enabled")
	behaviour.Set(c.Doc, "properties.vaultUri", uri(c.ID.Name(), c.Location()))
	behaviour.WriteSystemData(c)
	return nil
}

// beginVault checks that a vault can be created. For a recovery it restores the document of the deleted vault.
func beginVault(c *behaviour.Call) error {
	name := c.ID.Name()
	if !isValidName(name) {
		return behaviour.Invalid("VaultNameNotValid", badName, name)
	}
	if _, taken := c.Holder(vaultType, name); taken {
		return behaviour.Conflict("VaultAlreadyExists", takenName, name)
	}
	id, deleted, there := findDeleted(c, name)
	recovers := strings.EqualFold(behaviour.Text(c.Doc, "properties.createMode"), "recover")
	switch {
	case recovers && !there:
		return behaviour.Refusal(404, "VaultNotFound",
			"The vault '%s' cannot be recovered: there is no deleted vault with this name in location '%s'.", name, c.Location())
	case recovers:
		recovered := behaviour.Clone(behaviour.Sub(deleted, vaultField))
		for key, value := range recovered {
			if key != "id" && key != "etag" {
				c.Doc[key] = value
			}
		}
		c.Delete(id)
	case there:
		return behaviour.Conflict("ConflictError",
			"A vault with the same name already exists in deleted state. You need to either recover or purge existing key vault. "+
				"Follow this link https://go.microsoft.com/fwlink/?linkid=2149745 for more information on soft delete.")
	}
	return nil
}

func checkVault(c *behaviour.Call) error {
	sku := behaviour.Text(c.Doc, "properties.sku.name")
	if behaviour.Sub(c.Doc, "properties.sku") == nil || !strings.EqualFold(sku, "standard") && !strings.EqualFold(sku, "premium") {
		return behaviour.Invalid("InvalidVaultSku",
			"The vault sku '%s' is not valid: standard and premium of the family A are allowed.", sku)
	}
	if behaviour.Text(c.Doc, "properties.tenantId") == "" {
		return behaviour.Invalid("BadRequest", "The property 'tenantId' of the vault is missing.")
	}
	if behaviour.At(c.Doc, "properties.accessPolicies") == nil && !behaviour.Bool(c.Doc, "properties.enableRbacAuthorization") {
		return behaviour.Invalid("BadRequest", "The parameter accessPolicies is not specified, and enableRbacAuthorization is not true.")
	}
	if behaviour.At(c.Doc, "properties.enableSoftDelete") == false {
		return behaviour.Invalid("BadRequest",
			"The property \"enableSoftDelete\" can be set to false only for creating new vault. Enabling the 'soft delete' "+
				"functionality is an irreversible action.")
	}
	if days, ok := behaviour.Int(c.Doc, "properties.softDeleteRetentionInDays"); ok && (days < 7 || days > defaultRetention) {
		return behaviour.Invalid("BadRequest", "The property softDeleteRetentionInDays is %d, 7 to %d are allowed.", days, defaultRetention)
	}
	if behaviour.Bool(c.Old, "properties.enablePurgeProtection") && behaviour.At(c.Doc, "properties.enablePurgeProtection") == false {
		return behaviour.Invalid("BadRequest",
			"The property \"enablePurgeProtection\" cannot be set to false. Enabling the purge protection for a vault is an "+
				"irreversible action.")
	}
	return nil
}

func uri(name, location string) string {
	return "https://" + strings.ToLower(name) + "." + behaviour.CloudOf(location).Vault + "/"
}

func checkName(c *behaviour.Call) (behaviour.Reply, error) {
	name := behaviour.Text(c.Body, "name")
	body := behaviour.Object{"nameAvailable": true}
	_, taken := c.Holder(vaultType, name)
	_, _, deleted := findDeleted(c, name)
	switch {
	case !isValidName(name):
		body = behaviour.Object{"nameAvailable": false, "reason": "AccountNameInvalid", "message": strings.ReplaceAll(badName, "%s", name)}
	case taken || deleted:
		body = behaviour.Object{"nameAvailable": false, "reason": "AlreadyExists", "message": strings.ReplaceAll(takenName, "%s", name)}
	}
	return behaviour.Reply{Status: 200, Body: body}, nil
}
