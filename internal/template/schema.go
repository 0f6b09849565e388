package template

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/azure/short"
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
		return &Error{Path: short.Text(path + ".tags." + name), Parse: true, root: true,
			Message: fmt.Sprintf("Error reading string. Unexpected token: %s. Path '%s'.", token, short.Text(name))}
	}
	return nil
}

// schemaVersions are the versions of the schemas of templates.
var schemaVersions = []string{"2014-04-01-preview", "2015-01-01", "2018-05-01", "2019-04-01", "2019-08-01"}

var schemaPath = regexp.MustCompile(`^/schemas/([^/]+)/([a-zA-Z]*[dD]eploymentTemplate)\.json$`)

// checkSchema refuses a template of another schema than those of templates.
func checkSchema(document Object) error {
	text, _ := document["$schema"].(string)
	if text == "" {
		return nil // refused by shape.Check, where a whole request is checked
	}
	at, err := url.Parse(text)
	if err != nil || !at.IsAbs() {
		return invalid("$schema", `$schema value "%s" is not a valid URI`, text)
	}
	parts := schemaPath.FindStringSubmatch(at.Path)
	if parts == nil || !slices.Contains(schemaVersions, parts[1]) {
		return invalid("$schema", "The template schema '%s' is not supported. Supported versions are '%s'. Please see "+
			"https://aka.ms/arm-template for usage details", text, strings.Join(schemaVersions, ","))
	}
	return nil
}
