package resources

import (
	"regexp"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/template"
)

var versionForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}(-[A-Za-z0-9.]+)?$`)

// checkTemplate refuses what is wrong in a template before any of its resources is made: names that there are not, types that no
// provider has, and expressions that fail without asking for a resource.
func checkTemplate(c *behaviour.Call, t *template.Template) error {
	if err := t.CheckNames(); err != nil {
		return invalidTemplate(err)
	}
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
	found := provider("", namespace)
	switch {
	case found == nil && !c.Known(r.ID.Type()):
		return behaviour.Gateway(404, "InvalidResourceNamespace", "The resource namespace '%s' is invalid.", namespace)
	case !c.Known(r.ID.Type()):
		return behaviour.Gateway(404, "InvalidResourceType",
			"The resource type '%s' could not be found in the namespace '%s' for api version '%s'.", name, namespace, r.Version)
	case !versionForm.MatchString(r.Version):
		return behaviour.Gateway(400, "NoRegisteredProviderFound",
			"No registered resource provider found for location '%s' and API version '%s' for type '%s'. The api-version must be a date "+
				"in the form yyyy-MM-dd, with an optional suffix such as -preview.", r.Location, r.Version, name)
	}
	return nil
}
