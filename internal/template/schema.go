package template

import (
	"maps"
	"slices"

	"kaz/internal/azure/short"
	"kaz/internal/template/fault"
	"kaz/internal/template/shape"
)

// checkTags refuses a tag with a value that is no text. The value of an expression is checked when the resource is made.
func checkTags(path string, tags Object) error {
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		token := "StartObject"
		switch tags[name].(type) {
		case Object:
		case []any:
			token = "StartArray"
		default:
			continue
		}
		return fault.Unreadable(path+".tags."+name, "Error reading string. Unexpected token: %s. Path '%s'.", token, short.Text(name))
	}
	return nil
}

// checkSchema refuses a template of another schema than those of templates.
func checkSchema(document Object) error {
	text, _ := document["$schema"].(string)
	if wrong := shape.WrongSchema(text); wrong != "" {
		return fault.Invalid("$schema", "%s", wrong)
	}
	return nil
}
