package vault

import (
	"regexp"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// valueField is the field of a secret's document with its value, which ARM never shows.
const valueField = behaviour.Private + "value"

// secretStyle returns the style of the resources in a vault: every PUT is answered with 200.
func secretStyle(name string) behaviour.Style {
	style := behaviour.Plain(name)
	style.Created = 200
	return style
}

func secrets() behaviour.Type {
	return behaviour.Type{
		Name:    secretType,
		Style:   secretStyle("Microsoft.KeyVault secrets"),
		NoState: true,
		Own:     []string{valueField, versionsField, "properties.secretUri", "properties.secretUriWithVersion"},
		Fill:    fillSecret,
		Header:  serviceHeader,
		Show:    func(_ *behaviour.Call, view behaviour.Object) { behaviour.Hide(view) },
		Refuse: func(c *behaviour.Call) error {
			return behaviour.Refusal(405, "MethodNotAllowed",
				"Secrets cannot be deleted through the resource manager: delete them through the vault.")
		},
		// Secrets are deleted and recovered with their vault.
		Removed: func(c *behaviour.Call) error {
			c.Edit(c.ID.Parent(), func(vault behaviour.Object) {
				vault[secretsField] = append(behaviour.Array(vault, secretsField), behaviour.Clone(c.Old))
			})
			return nil
		},
		Missing: func(c *behaviour.Call) error {
			if _, there := c.Get(c.ID.Parent()); !there {
				return behaviour.ParentNotFound("read", c.ID)
			}
			return behaviour.Refusal(404, "ResourceNotFound",
				"The specified resource does not exist. Follow this link for more information: "+
					"https://go.microsoft.com/fwlink/?linkid=2147446")
		},
	}
}

var secretName = regexp.MustCompile(`^[A-Za-z0-9-]{1,127}$`)

func fillSecret(c *behaviour.Call) error {
	if !secretName.MatchString(c.ID.Name()) {
		return behaviour.Invalid("InvalidSecretName",
			"The secret name '%s' is invalid: 1 to 127 letters, digits and hyphens are allowed.", c.ID.Name())
	}
	value, hasValue := behaviour.At(c.Doc, "properties.value").(string)
	if !hasValue && c.Verb != behaviour.Patch {
		return behaviour.Invalid("BadRequest", "The property 'value' of the secret is missing.")
	}
	behaviour.Remove(c.Doc, "properties.value")
	if hasValue {
		if _, deleted := FindDeleted(c.Parent, c.ID.Name(), c.Now()); deleted {
			return behaviour.Conflict("Conflict", DeletedName, c.ID.Name())
		}
		beginVersion(c, c.Doc, c.Old, c.Parent, c.ID.Name(), value)
		return nil
	}
	created, _ := behaviour.Int(c.Old, "properties.attributes.created")
	behaviour.Set(c.Doc, "properties.attributes.created", created)
	behaviour.Set(c.Doc, "properties.attributes.updated", c.Now().Unix())
	behaviour.Default(c.Doc, "properties.attributes.enabled", true)
	return nil
}

// DeletedName is the form of the error for a new secret with the name of a deleted one.
const DeletedName = "Secret %s is currently in a deleted but recoverable state, and its name cannot be reused; in this state, the " +
	"secret can only be recovered or purged."

// recoverSecrets stores the secrets of a recovered vault.
func recoverSecrets(c *behaviour.Call) error {
	for _, secret := range behaviour.Objects(c.Doc, secretsField) {
		c.Put(c.ID.Child("secrets", behaviour.Text(secret, "name")), behaviour.Clone(secret))
	}
	delete(c.Doc, secretsField)
	return nil
}

// Secret returns the value of a vault's secret, for the data plane.
func Secret(w behaviour.World, vault azure.ID, name string) (string, bool) {
	doc, ok := w.Get(vault.Child("secrets", name))
	return behaviour.Text(doc, valueField), ok
}

// ValidName reports whether a secret can have a name.
func ValidName(name string) bool { return secretName.MatchString(name) }
