package storage

import "kaz/internal/localazure/behaviour"

// rotateScope writes the version of the key that encrypts a scope, and when it began to.
func rotateScope(c *behaviour.Call) error {
	const key = "properties.keyVaultProperties"
	uri := behaviour.Text(c.Doc, key+".keyUri")
	if uri != "" && (c.Changed(key+".keyUri") || behaviour.Text(c.Doc, key+".currentVersionedKeyIdentifier") == "") {
		behaviour.Set(c.Doc, key+".currentVersionedKeyIdentifier", uri)
		behaviour.Set(c.Doc, key+".lastKeyRotationTimestamp", behaviour.Timestamp(c.Now()))
	}
	return nil
}

// showScope shows, in the reply to a creation, that a scope has no key of a vault.
func showScope(c *behaviour.Call, view behaviour.Object) {
	if c.Verb == behaviour.Create {
		behaviour.Default(view, "properties.keyVaultProperties", behaviour.Object{})
	}
}
