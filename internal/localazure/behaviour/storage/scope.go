package storage

import (
	"strings"

	"kaz/internal/localazure/behaviour"
)

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

// listScopes lists the scopes of an account, those with a state if the query has one: Enabled or Disabled, else All.
func listScopes(c *behaviour.Call) ([]behaviour.Object, error) {
	state := c.Query.Get("$include")
	items := []behaviour.Object{}
	for _, doc := range c.List(c.ID, c.Type.Name) {
		if state == "" || strings.EqualFold(state, "All") || strings.EqualFold(state, behaviour.Text(doc, "properties.state")) {
			items = append(items, behaviour.Clone(doc))
		}
	}
	return items, nil
}
