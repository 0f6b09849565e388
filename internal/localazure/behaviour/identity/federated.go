package identity

import (
	"regexp"
	"slices"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

const credentialType = typeName + "/federatedIdentityCredentials"

// maxCredentials is the limit of federated credentials of an identity.
const maxCredentials = 20

func federatedCredentials() behaviour.Type {
	return behaviour.Type{
		Name:    credentialType,
		Style:   behaviour.Plain("Microsoft.ManagedIdentity federated credentials"),
		NoState: true,
		Fill:    fillCredential,
		Missing: func(c *behaviour.Call) error {
			if _, there := c.Get(c.ID.Parent()); !there {
				return behaviour.ParentNotFound("read", c.ID)
			}
			return behaviour.Refusal(404, "NotFound", "The Federated Identity Credential with name '%s' was not found.", c.ID.Name())
		},
		Show: func(_ *behaviour.Call, view behaviour.Object) {
			view["id"] = shown(azure.ID(behaviour.Text(view, "id")))
		},
		Header: placed,
	}
}

var credentialName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{2,119}$`)

func fillCredential(c *behaviour.Call) error {
	if !credentialName.MatchString(c.ID.Name()) {
		return behaviour.Invalid("BadRequest",
			"The Federated Identity Credential name '%s' is invalid: 3 to 120 letters, digits, '-' and '_' are allowed, the first a "+
				"letter or digit.", c.ID.Name())
	}
	for _, field := range []string{"issuer", "subject"} {
		if behaviour.Text(c.Doc, "properties."+field) == "" {
			return behaviour.Invalid("BadRequest", "The Federated Identity Credential is missing the required property '%s'.", field)
		}
	}
	if len(behaviour.Texts(c.Doc, "properties.audiences")) == 0 {
		return behaviour.Invalid("BadRequest", "The Federated Identity Credential is missing the required property 'audiences'.")
	}
	others := 0
	for id, doc := range c.List(c.ID.Parent(), credentialType) {
		if id.Equal(c.ID) {
			continue
		}
		others++
		if sameSource(doc, c.Doc) {
			return behaviour.Conflict("Conflict", "Issuer and subject combination already exists for this Managed Identity.")
		}
	}
	if others >= maxCredentials {
		return behaviour.Invalid("BadRequest", "Too many Federated Identity Credentials: a Managed Identity can have %d.", maxCredentials)
	}
	return nil
}

func sameSource(a, b behaviour.Object) bool {
	return behaviour.Text(a, "properties.issuer") == behaviour.Text(b, "properties.issuer") &&
		behaviour.Text(a, "properties.subject") == behaviour.Text(b, "properties.subject")
}

// Trusts reports whether an identity accepts tokens of an issuer for a subject and one of the audiences. The
// comparisons are exact, as in Azure.
func Trusts(w behaviour.World, of azure.ID, issuer, subject string, audiences []string) bool {
	for _, doc := range w.List(of, credentialType) {
		if behaviour.Text(doc, "properties.issuer") == issuer && behaviour.Text(doc, "properties.subject") == subject &&
			slices.ContainsFunc(behaviour.Texts(doc, "properties.audiences"),
				func(a string) bool { return slices.Contains(audiences, a) }) {
			return true
		}
	}
	return false
}
