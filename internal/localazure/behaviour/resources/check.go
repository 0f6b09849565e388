package resources

import (
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/resources/provider"
	"kaz/internal/template"
)

// checkTemplate refuses what is wrong in a template before any of its resources is made: types that no provider has, and expressions
// that fail without asking for a resource. They were computed when the template was bound.
func checkTemplate(c *behaviour.Call, t *template.Template) error {
	for _, r := range t.Resources {
		if err := checkType(c, r); err != nil {
			return err
		}
		if r.Nested() {
			continue
		}
		if _, err := t.Preview(r); err != nil && !template.NeedsResources(err) {
			return invalidTemplate(err)
		}
	}
	return nil
}

func checkType(c *behaviour.Call, r *template.Resource) error {
	namespace, name, _ := strings.Cut(r.ID.Type(), "/")
	versions := provider.Versions(r.ID.Type())
	switch {
	case c.Known(r.ID.Type()) && !behaviour.IsVersion(r.Version):
		return behaviour.Gateway(400, "NoRegisteredProviderFound",
			"No registered resource provider found for location '%s' and API version '%s' for type '%s'. "+
				"The api-version must be a date in the form yyyy-MM-dd, with an optional suffix such as -preview.",
			r.Location, r.Version, name)
	case c.Known(r.ID.Type()) && behaviour.Lacks(versions, r.Version):
		return behaviour.UnknownVersion(r.ID.Type(), r.Version, r.Location, versions)
	case c.Known(r.ID.Type()):
		return nil
	case provider.Document("", namespace) == nil:
		return behaviour.UnknownNamespace(namespace)
	}
	return behaviour.UnknownType(namespace, name, r.Version)
}
