// Package shape says what templates and their resources are made of, and refuses what has other members. Layer L1: it knows documents
// alone.
package shape

import (
	"fmt"
	"maps"
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

// NotSent are the sections of a resource that are not in the request for it.
var NotSent = []string{"type", "apiVersion", "name", "dependsOn", "condition", "copy", "comments", "scope", "resources", "existing",
	"resourceGroup", "subscriptionId", "metadata"}

// Sections are those sections of a resource that a template may write in any case.
var Sections = append([]string{"properties", "location", "tags", "sku", "kind", "plan", "identity", "zones"}, NotSent...)

// typeMembers are the members that describe values: of parameters, of outputs, and of type definitions.
var typeMembers = []string{"$ref", "additionalProperties", "allowedValues", "defaultValue", "discriminator", "items", "maxLength",
	"maxValue", "metadata", "minLength", "minValue", "nullable", "pattern", "prefixItems", "properties", "sealed", "type"}

var (
	templateShape = shape{"Template", []string{"$schema", "apiProfile", "contentVersion", "definitions", "extensionConfigs", "extensions",
		"functions", "imports", "languageVersion", "metadata", "outputs", "parameters", "resources", "rules", "variables"},
		[]string{"$schema", "contentVersion", "resources"}}
	resourceShape = shape{"TemplateResource", slices.Concat(Sections, []string{"@options", "asserts", "etag", "extendedLocation",
		"extension", "import", "managedBy", "managedByExtended", "placement", "scale", "tenantId"}), nil}
	parameterShape = shape{"TemplateInputParameter", typeMembers, nil}
	outputShape    = shape{"TemplateOutputParameter", append([]string{"condition", "copy", "value"}, typeMembers...), nil}
)

// needed are the members of which an output has one each: a type or a definition of one, and a value or a loop that makes it.
var needed = [][]string{{"type", "$ref"}, {"value", "copy"}}

// Error says that a template is no template: a section or a property in it is one that templates do not have, or is absent.
type Error struct {
	// Message is what the resource manager says of it, and Path where in the template it is: "resources[0].apiVersion1".
	Message, Path string
}

func (e *Error) Error() string { return e.At("") }

// At is the error of a template at a path of what was sent. The line and the position are those of a document without line breaks: the
// template is known as decoded JSON.
func (e *Error) At(base string) string {
	return fmt.Sprintf("%s Path '%s', line 1, position 1.", e.Message, strings.Trim(base+"."+e.Path, "."))
}

// Check refuses a document that is not made of what templates are made of.
func Check(document map[string]any) error {
	if err := templateShape.check("", document); err != nil {
		return err
	}
	for _, section := range []struct {
		name  string
		shape shape
	}{{"parameters", parameterShape}, {"outputs", outputShape}} {
		declared, _ := document[section.name].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(declared)) {
			one, _ := declared[name].(map[string]any)
			path := section.name + "." + name
			if err := section.shape.check(path, one); err != nil {
				return err
			}
			if err := checkNeeded(path, one); section.name == "outputs" && err != nil {
				return err
			}
		}
	}
	return checkResources("resources", document["resources"])
}

// check refuses an object with a member that its type does not have. Members are compared without their case.
func (s shape) check(path string, o map[string]any) error {
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

// checkNeeded refuses an output without a type or a value.
func checkNeeded(path string, output map[string]any) error {
	for _, either := range needed {
		if !slices.ContainsFunc(either, func(name string) bool { _, given := output[name]; return given }) {
			return misshapen(path, "Required property '%s' not found in JSON.", either[0])
		}
	}
	return nil
}

func containsFold(all []string, name string) bool {
	return slices.ContainsFunc(all, func(x string) bool { return strings.EqualFold(x, name) })
}

func misshapen(path, format string, args ...any) error {
	return &Error{Message: short.Text(fmt.Sprintf(format, args...)), Path: short.Text(path)}
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
	case map[string]any:
		for _, symbol := range slices.Sorted(maps.Keys(all)) {
			if err := checkResource(path+"."+symbol, all[symbol]); err != nil {
				return err
			}
		}
	case nil:
	default:
		return misshapen(path, "Error converting value \"%v\" to type 'TemplateResource[]'.", resources)
	}
	return nil
}

func checkResource(path string, resource any) error {
	o, ok := resource.(map[string]any)
	if !ok {
		return misshapen(path, "Error converting value to type 'TemplateResource'.")
	}
	if err := resourceShape.check(path, o); err != nil {
		return err
	}
	for name, value := range o {
		text, isText := value.(string)
		switch {
		case isText && strings.EqualFold(name, "dependsOn"):
			return misshapen(path+"."+name, "Error converting value \"%s\" to type 'System.String[]'.", text)
		case isText && strings.EqualFold(name, "tags") && !strings.HasPrefix(text, "["):
			return misshapen(path+"."+name, "Error converting value \"%s\" to type 'InsensitiveDictionary'.", text)
		}
	}
	return checkResources(path+".resources", o["resources"])
}
