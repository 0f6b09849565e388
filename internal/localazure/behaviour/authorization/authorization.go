// Package authorization has the behaviour of Microsoft.Authorization: built-in roles, custom roles and role
// assignments, locks and policies. The core decides what a caller may do by them. Layer L2.
package authorization

import (
	"cmp"
	"regexp"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// Provider is Microsoft.Authorization.
func Provider() behaviour.Provider {
	return behaviour.Provider{Types: append([]behaviour.Type{roleDefinitions(), roleAssignments(), locks()}, policies()...)}
}

const (
	definitionType = "Microsoft.Authorization/roleDefinitions"
	assignmentType = "Microsoft.Authorization/roleAssignments"
)

// style returns the style of extensions that answer every PUT with 201.
func style() behaviour.Style {
	s := behaviour.Plain("Microsoft.Authorization")
	s.Updated = 201
	return s
}

var guidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// related reports whether one scope is equal to, above or below the other.
func related(a, b azure.ID) bool { return at(a, b) || at(b, a) }

// at reports whether scope is equal to or above id. The tenant, "" or "/", is above all.
func at(id, scope azure.ID) bool {
	scope = azure.ID(strings.TrimSuffix(string(scope), "/"))
	return scope == "" || id.Under(scope)
}

// all yields the stored resources of a type in and above all subscriptions.
func all(w behaviour.World, fullType string) []stored {
	var found []stored
	for id, doc := range w.List("", fullType) {
		found = append(found, stored{id, doc})
	}
	for id, doc := range behaviour.Everywhere(w, fullType) {
		found = append(found, stored{id, doc})
	}
	return found
}

type stored struct {
	id  azure.ID
	doc behaviour.Object
}

// ownerID is the object id that is shown for the owner of this local Azure.
const ownerID = "6b617a00-0000-4000-8000-000000000000"

// authorID returns the object id of the caller.
func authorID(c *behaviour.Call) string {
	_, object := c.Caller.Principal.IDs()
	return cmp.Or(object, ownerID)
}

// hideAuthor leaves the author of the creation out of the reply to a write.
func hideAuthor(c *behaviour.Call, view behaviour.Object) {
	if c.Verb == behaviour.Create || c.Verb == behaviour.Update {
		behaviour.Set(view, "properties.createdBy", nil)
	}
}

// stampAuthor writes the authors and the times of the creation and of the last change.
func stampAuthor(c *behaviour.Call) {
	now := behaviour.Timestamp(c.Now())
	for name, value := range map[string]any{"createdOn": now, "createdBy": authorID(c)} {
		if c.Old != nil {
			value = behaviour.At(c.Old, "properties."+name)
		}
		behaviour.Set(c.Doc, "properties."+name, value)
	}
	behaviour.Set(c.Doc, "properties.updatedOn", now)
	behaviour.Set(c.Doc, "properties.updatedBy", authorID(c))
}
