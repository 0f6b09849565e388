package template

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure/short"
)

// shape is what a template is made of, as the resource manager reads it: an object of one of its types, with the members that it has.
type shape struct {
	name     string // of the type in errors
	members  []string
	required []string
}

// typeMembers are the members that describe values: of parameters, of outputs, and of type definitions.
var typeMembers = []string{"$ref", "additionalProperties", "allowedValues", "defaultValue", "discriminator", "items", "maxLength",
	"maxValue", "metadata", "minLength", "minValue", "nullable", "pattern", "prefixItems", "properties", "sealed", "type"}

var (
	templateShape = shape{"Template", []string{"$schema", "apiProfile", "contentVersion", "definitions", "extensionConfigs", "extensions",
		"functions", "imports", "languageVersion", "metadata", "outputs", "parameters", "resources", "rules", "variables"},
		[]string{"$schema", "contentVersion", "resources"}}
	resourceShape = shape{"TemplateResource", slices.Concat(sections, []string{"@options", "asserts", "etag", "extendedLocation",
		"extension", "import", "managedBy", "managedByExtended", "placement", "scale", "tenantId"}), nil}
	parameterShape = shape{"TemplateInputParameter", typeMembers, nil}
	outputShape    = shape{"TemplateOutputParameter", append([]string{"condition", "copy", "value"}, typeMembers...), nil}
)

// ShapeError says that a template is no template: a section or a property in it is one that templates do not have, or is absent.
type ShapeError struct {
	// Message is what the resource manager says of it, and Path where in the template it is: "resources[0].apiVersion1".
	Message, Path string
}

func (e *ShapeError) Error() string { return e.At("") }

// At is the error of a template at a path of what was sent. The line and the position are those of a document without line breaks: the
// template is known as decoded JSON.
func (e *ShapeError) At(base string) string {
	return fmt.Sprintf("%s Path '%s', line 1, position 1.", e.Message, strings.Trim(base+"."+e.Path, "."))
}

// CheckShape refuses a document that is not made of what templates are made of.
func CheckShape(document Object) error {
	if err := templateShape.check("", document); err != nil {
		return err
	}
	for _, section := range []struct {
		name  string
		shape shape
	}{{"parameters", parameterShape}, {"outputs", outputShape}} {
		declared := object(document, section.name)
		for _, name := range slices.Sorted(maps.Keys(declared)) {
			if err := section.shape.check(section.name+"."+name, object(declared, name)); err != nil {
				return err
			}
		}
	}
	return checkResources("resources", document["resources"])
}

// check refuses an object with a member that its type does not have. Members are compared without their case.
func (s shape) check(path string, o Object) error {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if !containsFold(s.members, name) {
			return misshapen(strings.TrimPrefix(path+"."+name, "."), "Could not find member '%s' on object of type '%s'.", name, s.name)
		}
	}
	for _, name := range s.required {
		if o[name] == nil {
			return misshapen(path, "Required property '%s' not found in JSON.", name)
		}
	}
	return nil
}

func containsFold(all []string, name string) bool {
	return slices.ContainsFunc(all, func(x string) bool { return strings.EqualFold(x, name) })
}

func misshapen(path, format string, args ...any) error {
	return &ShapeError{Message: short.Text(fmt.Sprintf(format, args...)), Path: short.Text(path)}
}

// checkResources checks the resources of a template, or of a resource: an array, or an object with symbolic names.
func checkResources(path string, resources any) error {
	switch all := resources.(type) {
	case []any:
		for i, x := range all {
			if err := checkResource(path+"["+strconv.Itoa(i)+"]", x); err != nil {
				return err
			}
		}
	case Object:
		for _, symbol := range slices.Sorted(maps.Keys(all)) {
			if err := checkResource(path+"."+symbol, all[symbol]); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkResource(path string, resource any) error {
	o, ok := resource.(Object)
	if !ok {
		return misshapen(path, "Error converting value to type 'TemplateResource'.")
	}
	if err := resourceShape.check(path, o); err != nil {
		return err
	}
	return checkResources(path+".resources", o["resources"])
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
		return nil // refused by CheckShape, where a whole request is checked
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
