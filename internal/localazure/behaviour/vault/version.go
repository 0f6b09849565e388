package vault

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// versionsField is the field of a secret's document with its former versions, the oldest first.
const versionsField = behaviour.Private + "versions"

// Version is a version of a secret, as the data plane shows it.
type Version struct {
	// ID is the URL of the version, Version its last part.
	ID, Version        string
	Value, ContentType string
	Enabled            bool
	Attributes, Tags   behaviour.Object
}

// Versions returns the versions of a secret's document, the oldest first. The last one is the current version.
func Versions(doc behaviour.Object) []Version {
	var all []Version
	for _, kept := range append(behaviour.Objects(doc, versionsField), current(doc)) {
		id := behaviour.Text(kept, "id")
		all = append(all, Version{
			ID: id, Version: id[strings.LastIndexByte(id, '/')+1:], Value: behaviour.Text(kept, "value"),
			ContentType: behaviour.Text(kept, "contentType"), Enabled: behaviour.Bool(kept, "attributes.enabled"),
			Attributes: behaviour.Sub(kept, "attributes"), Tags: behaviour.Sub(kept, "tags"),
		})
	}
	return all
}

// current returns the current version of a secret in the form of former versions.
func current(doc behaviour.Object) behaviour.Object {
	kept := behaviour.Object{
		"id": behaviour.Text(doc, "properties.secretUriWithVersion"), "value": behaviour.Text(doc, valueField),
		"contentType": behaviour.Text(doc, "properties.contentType"),
	}
	for key, part := range map[string]behaviour.Object{"attributes": behaviour.Sub(doc, "properties.attributes"),
		"tags": behaviour.Sub(doc, "tags")} {
		if part != nil {
			kept[key] = behaviour.Clone(part)
		}
	}
	return kept
}

// beginVersion gives a secret's document a new version with a value. old is the document before, nil for none.
func beginVersion(w behaviour.World, doc, old, vault behaviour.Object, name, value string) {
	if old != nil {
		doc[versionsField] = append(slices.Clone(behaviour.Array(old, versionsField)), current(old))
	}
	doc[valueField] = value
	doc["location"] = behaviour.Text(vault, "location")
	now := w.Now().Unix()
	behaviour.Set(doc, "properties.attributes.created", now)
	behaviour.Set(doc, "properties.attributes.updated", now)
	behaviour.Default(doc, "properties.attributes.enabled", true)
	at := strings.TrimSuffix(behaviour.Text(vault, "properties.vaultUri"), "/") + "/secrets/" + name
	behaviour.Set(doc, "properties.secretUri", at)
	behaviour.Set(doc, "properties.secretUriWithVersion", at+"/"+strings.ReplaceAll(w.GUID(), "-", ""))
}

// Given is what a client of the data plane says about a version. Nil fields are left out.
type Given struct {
	Value, ContentType *string
	// Attributes are enabled, nbf and exp.
	Attributes, Tags behaviour.Object
}

// SetSecret makes a new version of a secret, which it creates if needed. The caller has checked that no deleted secret has the name.
func SetSecret(w behaviour.World, vault azure.ID, name string, given Given) {
	id := vault.Child("secrets", name)
	old, _ := w.Get(id)
	vaultDoc, _ := w.Get(vault)
	doc := behaviour.Object{"properties": behaviour.Object{"attributes": behaviour.Object{}}}
	given.write(doc, "properties.")
	beginVersion(w, doc, old, vaultDoc, name, *given.Value)
	w.Put(id, doc)
}

// write writes the given fields, except the value, into a document, at paths that begin with a prefix.
func (g Given) write(doc behaviour.Object, prefix string) {
	if g.ContentType != nil {
		behaviour.Set(doc, prefix+"contentType", *g.ContentType)
	}
	for name, value := range g.Attributes {
		behaviour.Set(doc, prefix+"attributes."+name, value)
	}
	if g.Tags != nil {
		doc["tags"] = behaviour.Clone(g.Tags)
	}
}

// UpdateSecret changes what is known about a version of a secret, but for its value. It reports whether the version exists.
func UpdateSecret(w behaviour.World, secret azure.ID, version string, given Given) bool {
	doc, _ := w.Get(secret)
	versions := Versions(doc)
	i := slices.IndexFunc(versions, func(v Version) bool { return v.Version == version })
	if doc == nil || i < 0 {
		return false
	}
	given.Attributes = behaviour.Clone(given.Attributes)
	if given.Attributes == nil {
		given.Attributes = behaviour.Object{}
	}
	given.Attributes["updated"] = w.Now().Unix()
	return w.Edit(secret, func(doc behaviour.Object) {
		if i == len(versions)-1 {
			given.write(doc, "properties.")
			return
		}
		kept := slices.Clone(behaviour.Array(doc, versionsField))
		changed, _ := kept[i].(behaviour.Object)
		changed = behaviour.Clone(changed)
		given.write(changed, "")
		kept[i] = changed
		doc[versionsField] = kept
	})
}
