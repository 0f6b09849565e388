package shape

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// schemaVersions are the versions of the schemas of templates.
var schemaVersions = []string{"2014-04-01-preview", "2015-01-01", "2018-05-01", "2019-04-01", "2019-08-01"}

var schemaPath = regexp.MustCompile(`^/schemas/([^/]+)/([a-zA-Z]*[dD]eploymentTemplate)\.json$`)

// parametersPath is the only schema of parameters that the resource manager takes for one of templates.
const parametersPath = "/schemas/2015-01-01/deploymentParameters.json"

// WrongSchema returns why a $schema is none of templates, "" if it is one, or absent: [Check] refuses that where a whole request is
// checked.
func WrongSchema(text string) string {
	if text == "" {
		return ""
	}
	at, err := url.Parse(text)
	if err != nil || !at.IsAbs() {
		return fmt.Sprintf(`$schema value "%s" is not a valid URI`, text)
	}
	parts := schemaPath.FindStringSubmatch(at.Path)
	if at.Path != parametersPath && (parts == nil || !slices.Contains(schemaVersions, parts[1])) {
		return fmt.Sprintf("The template schema '%s' is not supported. Supported versions are '%s'. Please see "+
			"https://aka.ms/arm-template for usage details", text, strings.Join(schemaVersions, ","))
	}
	return ""
}
