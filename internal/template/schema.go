package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure/short"
	"kaz/internal/template/fault"
	"kaz/internal/template/shape"
	"kaz/internal/template/types"
)

// textTags are tags with texts for values that are numbers or booleans, as the resource manager reads them.
func textTags(tags Object) Object {
	own := maps.Clone(tags)
	for name, value := range own {
		switch value.(type) {
		case float64, int, int64, bool:
			own[name] = fmt.Sprint(value)
		}
	}
	return own
}

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

// languageVersions are the versions of the language of templates that the compiler of Bicep writes.
var languageVersions = []string{"", "1.0", "1.9-experimental", "1.10-experimental", "2.0", "2.1-experimental", "2.2-experimental"}

// checkOutputs refuses an output of a type that there is not. One with a definition of its type is checked when it is computed.
func checkOutputs(outputs Object) error {
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		if kind, given := object(outputs, name)["type"].(string); given && types.Name(kind) == "" {
			return fault.Invalid("outputs."+name, "The type '%s' of the template output '%s' is not valid. The types are: array, bool, "+
				"int, object, secureObject, secureString and string", kind, name)
		}
	}
	return nil
}

// checkSchema refuses a template of another schema than those of templates.
func checkSchema(document Object) error {
	text, _ := document["$schema"].(string)
	if wrong := shape.WrongSchema(text); wrong != "" {
		return fault.Invalid("$schema", "%s", wrong)
	}
	if version, _ := document["languageVersion"].(string); !slices.Contains(languageVersions, version) {
		return fault.Invalid("languageVersion", "The template language version '%s' is not supported. Supported versions are '%s'", version,
			strings.Join(languageVersions[1:], ","))
	}
	return nil
}
