package template_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"kaz/internal/azure"
	"kaz/internal/template"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Every file in testdata is a template, with parameters where it has any, and its result. The result is the resources
// in their order and the outputs, or the error.
func TestTemplates(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			section := map[string][]byte{}
			for _, f := range archive.Files {
				section[f.Name] = f.Data
			}
			got := story(t, section)
			if *update {
				archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == "result" })
				archive.Files = append(archive.Files, txtar.File{Name: "result", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(section["result"]), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

func story(t *testing.T, section map[string][]byte) string {
	d := template.Deployment{
		ID:    group.Resource("Microsoft.Resources/deployments", "d"),
		Group: template.Object{"id": string(group), "name": "g", "location": "eastus"}, Azure: cloud{},
		Subscription: template.Object{"id": "/subscriptions/s", "subscriptionId": "s"},
		Now:          time.Date(2025, 3, 4, 5, 6, 7, 0, time.UTC),
	}
	drawn := 0
	d.GUID = func() string { drawn++; return fmt.Sprintf("guid-%d", drawn) }
	if section["subscription"] != nil {
		d.ID, d.Group, d.Location = azure.SubscriptionID("s").Resource("Microsoft.Resources/deployments", "d"), nil, "westus"
	}
	if text := section["parameters.json"]; text != nil {
		d.Parameters = parse(t, text)
	}
	bound, err := template.Bind(parse(t, section["template.json"]), d)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var b strings.Builder
	for _, r := range bound.Resources {
		body, err := bound.Body(r)
		if err != nil {
			return b.String() + "error: " + err.Error() + "\n"
		}
		fmt.Fprintf(&b, "%s %s\n", r.ID, r.Version)
		for _, id := range r.DependsOn {
			fmt.Fprintf(&b, "  after %s\n", id)
		}
		fmt.Fprintf(&b, "  %s\n", line(t, body))
	}
	outputs, err := bound.Outputs()
	if err != nil {
		return b.String() + "error: " + err.Error() + "\n"
	}
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		fmt.Fprintf(&b, "output %s %s %s\n", name, outputs[name].Type, line(t, outputs[name].Value))
	}
	return b.String()
}

func parse(t *testing.T, text []byte) (o template.Object) {
	t.Helper()
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func line(t *testing.T, value any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// What is bound is not changed: the same template can be bound again with the same
// result, and its document is as it was.
func TestBindingChangesNothing(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/network.txtar")
	if err != nil {
		t.Fatal(err)
	}
	section := map[string][]byte{}
	for _, f := range archive.Files {
		section[f.Name] = f.Data
	}
	document, again := parse(t, section["template.json"]), parse(t, section["template.json"])
	d := template.Deployment{ID: group.Resource("Microsoft.Resources/deployments", "d"), Parameters: parse(t, section["parameters.json"]),
		Group: template.Object{"id": string(group), "location": "eastus"}, Azure: cloud{}}
	var bodies []string
	for range 2 {
		bound, err := template.Bind(document, d)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range bound.Resources {
			body, err := bound.Body(r)
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, line(t, body))
		}
	}
	if diff := cmp.Diff(again, document); diff != "" {
		t.Errorf("the document changed (-before +after):\n%s", diff)
	}
	if n := len(bodies) / 2; !slices.Equal(bodies[:n], bodies[n:]) {
		t.Errorf("bound twice: %v", bodies)
	}
}

func TestLimits(t *testing.T) {
	double := template.Object{"v0": strings.Repeat("x", 16)}
	for i := 1; i <= 40; i++ {
		double[fmt.Sprintf("v%d", i)] = fmt.Sprintf("[concat(variables('v%d'), variables('v%d'))]", i-1, i-1)
	}
	for name, document := range map[string]template.Object{
		"variables that double": {"variables": double, "resources": []any{template.Object{"name": "[variables('v40')]"}}},
		"replace": {"parameters": template.Object{"p": template.Object{"type": "string",
			"defaultValue": "[replace(padLeft('', 100000, 'a'), 'a', padLeft('', 100000, 'b'))]"}}},
		"join": {"parameters": template.Object{"p": template.Object{"type": "string",
			"defaultValue": "[join(range(0, 10000), padLeft('', 100000, 'b'))]"}}},
		"a wide column": {"parameters": template.Object{"p": template.Object{"type": "string",
			"defaultValue": "[format('{0,99999999}', 1)]"}}},
		"an expression without end": {"parameters": template.Object{"p": template.Object{"type": "string",
			"defaultValue": "[concat('" + strings.Repeat("x", 30000) + "')]"}}},
		"a deep expression": {"parameters": template.Object{"p": template.Object{"type": "string",
			"defaultValue": "[" + strings.Repeat("not(", 200) + "true()" + strings.Repeat(")", 200) + "]"}}},
	} {
		_, err := template.Bind(document, template.Deployment{ID: group.Resource("Microsoft.Resources/deployments", "d")})
		if err == nil {
			t.Errorf("%s: it is accepted", name)
		} else if text := err.Error(); !strings.Contains(text, "too much") && !strings.Contains(text, "at most") &&
			!strings.Contains(text, "deep") && !strings.Contains(text, "width") {
			t.Errorf("%s: %s", name, text[:min(len(text), 300)])
		}
	}
}

// Whatever a template holds, it is bound or refused with an error of this package.
func FuzzBind(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(archive.Files[0].Data))
	}
	f.Add(`{"resources":[1,{"name":{}}],"outputs":{"o":1},"parameters":{"p":3}}`)
	f.Fuzz(func(t *testing.T, text string) {
		var document template.Object
		if json.Unmarshal([]byte(text), &document) != nil {
			return
		}
		bound, err := template.Bind(document,
			template.Deployment{ID: group.Resource("Microsoft.Resources/deployments", "d"), Azure: cloud{}})
		if err == nil {
			for _, r := range bound.Resources {
				if _, err = bound.Body(r); err != nil {
					break
				}
			}
		}
		if err == nil {
			_, err = bound.Outputs()
		}
		if _, ok := errors.AsType[*template.Error](err); err != nil && !ok {
			t.Errorf("%s: %T %v", text, err, err)
		}
	})
}
