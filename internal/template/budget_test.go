package template_test

import (
	"strings"
	"testing"
	"time"

	"kaz/internal/template"
)

// parameter is a template with a parameter that an expression computes.
func parameter(kind, expression string) template.Object {
	return template.Object{"parameters": template.Object{"p": template.Object{"type": kind, "defaultValue": "[" + expression + "]"}}}
}

// Templates whose work grows faster than their text are refused, and soon.
func TestWorkIsBounded(t *testing.T) {
	identity := template.Object{"type": "A.B/c", "apiVersion": "1", "name": "[concat('a', copyIndex())]",
		"copy": template.Object{"name": "l", "count": 800.0}}
	other := template.Object{"type": "A.B/d", "apiVersion": "1", "name": "[concat('a', copyIndex())]",
		"copy": template.Object{"name": "m", "count": 1.0}}
	long := template.Object{"type": "A.B/c", "apiVersion": "1", "name": "x", "dependsOn": []any{}, "copy": identity["copy"]}
	for range 5000 {
		long["dependsOn"] = append(long["dependsOn"].([]any), "l")
	}
	long["name"] = "[concat('b', copyIndex())]"
	outer := template.Object{"type": "Microsoft.Resources/deployments", "apiVersion": "1", "name": "n", "properties": template.Object{
		"mode": "Incremental", "template": template.Object{"resources": []any{template.Object{"type": "A.B/c", "apiVersion": "1",
			"name": "x", "properties": strings.Repeat("x", 1<<20), "copy": identity["copy"]}}}}}
	for name, c := range map[string]struct {
		document template.Object
		says     string
	}{
		"elements that double": {parameter("array",
			"reduce(range(0, 64), 1, lambda('a', 'x', createArray(lambdaVariables('a'), lambdaVariables('a'))))"), "too much"},
		"objects in objects": {parameter("object",
			"reduce(range(0, 2000), 1, lambda('a', 'x', createObject('a', lambdaVariables('a'))))"), "MaxDepth"},
		"lambdas without a call": {parameter("array",
			"map(range(0, 10000), lambda('x', length(filter(range(0, 10000), lambda('y', false())))))"), "too much"},
		"a literal in lambdas": {parameter("array",
			"filter(range(0, 10000), lambda('x', empty(filter(range(0, 10000), lambda('y', equals('a', 'b'))))))"), "too much"},
		"a text split at many places": {parameter("array",
			"split(padLeft('', 1000000, 'a'), concat(map(range(0, 10000), lambda('x', concat('b', string(lambdaVariables('x'))))), createArray('a')))"),
			"too much"},
		"more resources than Azure takes": {template.Object{"resources": []any{identity, other}},
			"The number of template resources limit exceeded. Limit: '800' and actual: '801'"},
		"dependencies on copies": {template.Object{"resources": []any{long}}, "too much"},
		"copies of a large text": {template.Object{"resources": []any{outer}}, "too much"},
	} {
		began := time.Now()
		bound, err := template.Bind(c.document, template.Deployment{ID: group.Resource("Microsoft.Resources/deployments", "d")})
		for i := 0; err == nil && i < len(bound.Resources); i++ {
			_, err = bound.Body(bound.Resources[i])
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %.300v", name, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: refused after %v", name, took)
		}
	}
}

// Templates that share a budget are bounded together.
func TestSharedBudget(t *testing.T) {
	budget := template.NewBudget()
	document := parameter("int", "length(filter(range(0, 10000), lambda('y', false())))")
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		_, err = template.Bind(document, template.Deployment{ID: group.Resource("Microsoft.Resources/deployments", "d"), Budget: budget})
	}
	if err == nil || !strings.Contains(err.Error(), "too much") || n < 2 {
		t.Errorf("after %d templates: %v", n, err)
	}
}
