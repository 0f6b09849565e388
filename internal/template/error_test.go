package template_test

import (
	"strings"
	"testing"

	"kaz/internal/azure/short"
	"kaz/internal/template"
)

// An error that quotes a value of the template does not repeat megabytes of it.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	resource := func(field string, value any) template.Object {
		r := template.Object{"type": "A.B/c", "apiVersion": "1", "name": "n", field: value}
		return template.Object{"resources": []any{r}}
	}
	for name, document := range map[string]template.Object{
		"properties that exist":    parameter("string", "createObject(padLeft('', 1000000, 'a'), 1).b"),
		"an index":                 parameter("string", "createArray(1)[padLeft('', 1000000, 'a')]"),
		"an argument":              parameter("int", "int(padLeft('', 1000000, 'a'))"),
		"a placeholder":            parameter("string", "format(concat('{', padLeft('', 1000000, 'a'), '}'), 1)"),
		"a date":                   parameter("string", "dateTimeAdd(padLeft('', 1000000, 'a'), 'P1D')"),
		"an expression":            parameter("string", strings.Repeat("concat(", 3000)+"'"),
		"a parameter's name":       {"parameters": template.Object{long: template.Object{"type": "string", "defaultValue": []any{}}}},
		"a parameter's type":       {"parameters": template.Object{"p": template.Object{"type": long, "defaultValue": "a"}}},
		"a parameter's value":      {"parameters": template.Object{"p": template.Object{"type": "int", "defaultValue": long}}},
		"a value that is not one":  {"parameters": template.Object{"p": template.Object{"type": "string", "defaultValue": long, "allowedValues": []any{"a"}}}},
		"a resource's name":        resource("name", []any{long}),
		"a condition":              resource("condition", long),
		"the count of a copy":      resource("copy", template.Object{"name": "l", "count": long}),
		"the mode of a copy":       resource("copy", template.Object{"name": "l", "count": 1.0, "mode": long}),
		"the path of a property":   resource("properties", template.Object{long: "[nothing()]"}),
		"a missing dependency":     resource("dependsOn", []any{long}),
		"a type without namespace": resource("type", long),
	} {
		bound, err := template.Bind(document, template.Deployment{ID: group.Resource("Microsoft.Resources/deployments", "d"), Azure: cloud{}})
		for i := 0; err == nil && i < len(bound.Resources); i++ {
			_, err = bound.Body(bound.Resources[i])
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		} else if size := len(err.Error()); size > 4*short.Most {
			t.Errorf("%s: an error of %d bytes: %.200s", name, size, err)
		}
	}
}
