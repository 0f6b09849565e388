package registry

import (
	"slices"

	"kaz/internal/localazure/behaviour"
)

// importsField is the field of a registry's document with its imported images.
const importsField = behaviour.Private + "imports"

// Import is an image imported from another registry.
type Import struct {
	Registry string   // where from: "docker.io", or the id of a registry
	Image    string   // "library/nginx:1.27"
	Tags     []string // under which names: "nginx:1.27"
}

func checkImport(c *behaviour.Call) (any, error) {
	source := behaviour.Sub(c.Body, "source")
	if behaviour.Text(source, "sourceImage") == "" {
		return nil, behaviour.Invalid("InvalidParameter", "The import needs source.sourceImage, such as library/nginx:1.27.")
	}
	if behaviour.Text(source, "registryUri") == "" && behaviour.Text(source, "resourceId") == "" {
		return nil, behaviour.Invalid("InvalidParameter",
			"The import needs source.registryUri or source.resourceId: where the image %s is.", behaviour.Text(source, "sourceImage"))
	}
	taken := map[string]bool{}
	for _, i := range Imports(c.Old) {
		for _, tag := range i.Tags {
			taken[tag] = true
		}
	}
	force := behaviour.Text(c.Body, "mode") == "Force"
	for _, tag := range behaviour.Texts(c.Body, "targetTags") {
		if taken[tag] && !force {
			return nil, behaviour.Conflict("Conflict", "Tag %s already exists in target registry.", tag)
		}
	}
	return nil, nil
}

// recordImport adds an import to the registry's document.
func recordImport(c *behaviour.Call) (any, error) {
	tags := behaviour.Array(c.Body, "targetTags")
	if len(tags) == 0 {
		tags = []any{behaviour.Text(c.Body, "source.sourceImage")}
	}
	from := behaviour.Text(c.Body, "source.registryUri")
	if from == "" {
		from = behaviour.Text(c.Body, "source.resourceId")
	}
	imports := slices.Clone(behaviour.Array(c.Doc, importsField))
	c.Doc[importsField] = append(imports,
		behaviour.Object{"registry": from, "image": behaviour.Text(c.Body, "source.sourceImage"), "tags": tags})
	return behaviour.Object{"status": "Succeeded"}, nil
}

// Imports returns the images imported into a registry, oldest first.
func Imports(registry behaviour.Object) []Import {
	var all []Import
	for _, o := range behaviour.Objects(registry, importsField) {
		all = append(all,
			Import{Registry: behaviour.Text(o, "registry"), Image: behaviour.Text(o, "image"), Tags: behaviour.Texts(o, "tags")})
	}
	return all
}
