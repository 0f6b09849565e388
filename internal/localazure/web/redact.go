package web

import (
	"regexp"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/document"
	"kaz/internal/localazure/core/world"
)

// hidden stands for a value that the page does not show.
const hidden = "(not shown)"

// secretName matches the last part of names of members that have secrets in Azure's documents. The local Azure takes those that it knows
// out of its answers; types that are documents and nothing else keep what they were sent.
var secretName = regexp.MustCompile(`(?i)(password|passphrase|secret|secretvalue|securestring|securevalue|connectionstring|sharedkey|` +
	`accesskey|accountkey|primarykey|secondarykey|instrumentationkey|privatekey|authorizationkey|apikey|` +
	`sastoken|sas|token|credential|customdata|userdata|protectedsettings|pfxblob|certificatedata)$`)

// signature matches the signature in the query of a URL that grants access by itself.
var signature = regexp.MustCompile(`(?i)([?&](?:sig|sv_sig|code)=)[^&\s"]+`)

// shown is a document as the page shows it: as a client's GET does, and without what has the name of a secret. The document is one of
// the store, of now or of earlier.
func shown(t *world.Transaction, id azure.ID, doc behaviour.Object) (view behaviour.Object) {
	k := t.Parts.Kinds.Of(id.Type())
	view = behaviour.Clone(doc)
	if k != nil && k.Shows() {
		view = viewOf(t, id, view)
	}
	behaviour.Hide(view)
	redact(view)
	return view
}

// viewOf is what a client sees of a document. A type may not expect a document of earlier, such as one with parts that are gone.
func viewOf(t *world.Transaction, id azure.ID, doc behaviour.Object) (view behaviour.Object) {
	defer func() {
		if recover() != nil {
			view = behaviour.Object{"id": string(id), "note": "this version cannot be shown"}
		}
	}()
	k := t.Parts.Kinds.Of(id.Type())
	c := behaviour.Call{World: t.World, Verb: behaviour.Get, ID: id}
	if k.Parent != nil {
		c.Parent, _ = t.Get(id.Parent())
	}
	return document.View(c, k, doc)
}

// redact replaces secrets in a document.
func redact(value any) {
	switch v := value.(type) {
	case behaviour.Object:
		securestring := strings.HasPrefix(strings.ToLower(behaviour.Text(v, "type")), "secure")
		for key, member := range v {
			switch {
			case strings.HasPrefix(key, behaviour.Private):
				delete(v, key)
			case securestring && key == "value", isSecret(key, member):
				v[key] = hidden
			default:
				if text, ok := member.(string); ok {
					v[key] = signature.ReplaceAllString(text, "${1}"+hidden)
				}
				redact(member)
			}
		}
	case []any:
		for i, element := range v {
			if text, ok := element.(string); ok {
				v[i] = signature.ReplaceAllString(text, "${1}"+hidden)
			}
			redact(element)
		}
	}
}

// isSecret reports whether a member has a secret: a text, or an object of protected settings. Others, such as a list of references to
// secrets of a key vault, have none.
func isSecret(key string, value any) bool {
	if !secretName.MatchString(key) {
		return false
	}
	switch v := value.(type) {
	case string:
		return v != ""
	case behaviour.Object:
		return strings.EqualFold(key, "protectedSettings")
	}
	return false
}
