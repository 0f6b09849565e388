// Package terraform judges generated configurations with the language library of Terraform.
package terraform

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/graph"
)

// TestTerraform reads the generated configurations with Terraform's own language library. The files are in the format of
// terraform fmt. Each reference leads to a resource, and each resource has the id, the body and the order of the plan. The
// schema of the provider azapi is not checked: the provider is not a Go module.
func TestTerraform(t *testing.T) {
	const dir = "../../../docs/example-manifests/cluster/"
	for _, files := range [][]string{{"dev.yaml"}, {"ha.yaml", "team-a.yaml", "team-b.yaml"}} {
		t.Run(files[len(files)-1], func(t *testing.T) {
			var layers []definition.Layer
			for _, file := range files {
				text, err := os.ReadFile(dir + file)
				if err != nil {
					t.Fatal(err)
				}
				layers = append(layers, definition.Layer{Name: file, Text: text})
			}
			d, err := definition.Load(layers...)
			if err != nil {
				t.Fatal(err)
			}
			p, err := cluster.New(d)
			if err != nil {
				t.Fatal(err)
			}
			c := readTerraform(t, p.Files(cluster.Terraform))
			for _, u := range p.Graph.Units {
				for _, r := range u.Resources {
					c.compare(p, r, u)
				}
			}
			for id, block := range c.byID {
				if !block.expected && id != p.Names.Group().Key() {
					t.Errorf("%s is no resource of the plan", id)
				}
			}
		})
	}
}

// configuration is what the files of Terraform say.
type configuration struct {
	*testing.T
	blocks map[string]*terraformBlock // by name
	byID   map[string]*terraformBlock
}

type terraformBlock struct {
	name, id, fullType string
	values             map[string]cty.Value
	identities         []string
	ignored            string
	after              []string // names of the resources that it refers to, in its body or by depends_on
	expected           bool
	body               *hclsyntax.Body
}

func readTerraform(t *testing.T, files map[string][]byte) *configuration {
	t.Helper()
	c := &configuration{T: t, blocks: map[string]*terraformBlock{}, byID: map[string]*terraformBlock{}}
	for file, text := range files {
		if path.Ext(file) != ".tf" {
			continue
		}
		if formatted := hclwrite.Format(text); string(formatted) != string(text) {
			t.Errorf("%s is not in the format of terraform fmt: %s", file, cmp.Diff(string(formatted), string(text)))
		}
		parsed, problems := hclsyntax.ParseConfig(text, file, hcl.InitialPos)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		for _, block := range parsed.Body.(*hclsyntax.Body).Blocks {
			if block.Type == "resource" {
				if c.blocks[block.Labels[1]] != nil {
					t.Errorf("%s: two resources have the name %s", file, block.Labels[1])
				}
				c.blocks[block.Labels[1]] = &terraformBlock{name: block.Labels[1], body: block.Body}
			}
		}
	}
	c.identify()
	for _, b := range c.blocks {
		c.evaluate(b)
	}
	return c
}

// identify finds the ids. The id of a resource is known when the id of its parent is.
func (c *configuration) identify() {
	for left := len(c.blocks); left > 0; {
		before := left
		for _, b := range c.blocks {
			if b.id != "" {
				continue
			}
			parent, problems := b.body.Attributes["parent_id"].Expr.Value(c.context())
			if problems.HasErrors() || !parent.IsKnown() {
				continue
			}
			fullType, name := c.text(b, "type"), c.text(b, "name")
			b.fullType = fullType
			kind, _, _ := strings.Cut(fullType, "@")
			b.id = idBelow(parent.AsString(), kind, name)
			if c.byID[strings.ToLower(b.id)] != nil {
				c.Errorf("two resources have the id %s", b.id)
			}
			c.byID[strings.ToLower(b.id)] = b
			left--
		}
		if left == before {
			c.Fatal("the parents of some resources are in a circle, or are not there")
		}
	}
}

// idBelow is the id that the provider makes of the parent, the type and the name.
func idBelow(parent, kind, name string) string {
	if kind == "Microsoft.Resources/resourceGroups" {
		return parent + "/resourceGroups/" + name
	}
	if above := azure.ID(parent).Type(); above != "" && strings.HasPrefix(kind, above+"/") {
		return parent + "/" + path.Base(kind) + "/" + name
	}
	return parent + "/providers/" + kind + "/" + name
}

func (c *configuration) text(b *terraformBlock, name string) string {
	value, problems := b.body.Attributes[name].Expr.Value(nil)
	if problems.HasErrors() {
		c.Fatal(problems)
	}
	return value.AsString()
}

// context has the resources with known ids. A value that only Azure knows is a text that names it.
func (c *configuration) context() *hcl.EvalContext {
	resources := map[string]cty.Value{}
	for name, b := range c.blocks {
		if b.id == "" {
			continue
		}
		properties := map[string]cty.Value{}
		for _, property := range []string{"principalId", "clientId", "ipAddress"} {
			properties[property] = cty.StringVal("<" + b.id + " " + property + ">")
		}
		resources[name] = cty.ObjectVal(map[string]cty.Value{"id": cty.StringVal(b.id),
			"output": cty.ObjectVal(map[string]cty.Value{"properties": cty.ObjectVal(properties)})})
	}
	variables := map[string]cty.Value{}
	for _, name := range []string{"pki_ca", "pki_etcd_ca", "pki_front_proxy_ca", "pki_service_account", "bootstrap_token", "encryption_keys"} {
		variables[name] = cty.StringVal("<" + name + ">")
	}
	return &hcl.EvalContext{Variables: map[string]cty.Value{"azapi_resource": cty.ObjectVal(resources), "var": cty.ObjectVal(variables)}}
}

func (c *configuration) evaluate(b *terraformBlock) {
	b.values = map[string]cty.Value{}
	references := func(e hclsyntax.Expression) {
		for _, used := range e.Variables() {
			if step, ok := used[1].(hcl.TraverseAttr); ok && used.RootName() == "azapi_resource" {
				b.after = append(b.after, step.Name)
			}
		}
	}
	for name, attribute := range b.body.Attributes {
		references(attribute.Expr)
		value, problems := attribute.Expr.Value(c.context())
		if problems.HasErrors() {
			c.Errorf("%s.%s: %v", b.name, name, problems)
		}
		b.values[name] = value
	}
	for _, block := range b.body.Blocks {
		switch block.Type {
		case "lifecycle":
			b.ignored = string(hcl.ExprAsKeyword(block.Body.Attributes["ignore_changes"].Expr))
		case "identity":
			ids := block.Body.Attributes["identity_ids"].Expr
			references(ids)
			value, problems := ids.Value(c.context())
			if problems.HasErrors() {
				c.Error(problems)
			}
			for _, id := range value.AsValueSlice() {
				b.identities = append(b.identities, id.AsString())
			}
		}
	}
}

// compare checks the block of one resource.
func (c *configuration) compare(p cluster.Plan, r graph.LinkedResource, u *graph.LinkedUnit) {
	id := emit.ID(p.Names, r.Resource, u.Unit)
	if !r.Scope.IsZero() {
		id = azure.ID(resolve(p, r.Scope).(string) + "/providers/" + r.Type + "/" + r.Name)
	}
	b := c.byID[id.Key()]
	if b == nil {
		c.Errorf("there is no resource %s", id)
		return
	}
	b.expected = true
	if want := r.Type + "@" + r.APIVersion(); b.fullType != want {
		c.Errorf("%s: type %s, want %s", id, b.fullType, want)
	}
	seed := r.Condition != ""
	if want := r.Once || seed; want != (b.ignored == "all") {
		c.Errorf("%s: is never changed: %v, want %v", id, !want, want)
	}
	want := map[string]any{}
	for key, value := range r.Body {
		want[key] = resolve(p, value)
	}
	if identity, ok := want["identity"].(map[string]any); ok {
		for key := range identity["userAssignedIdentities"].(map[string]any) {
			if !slices.Contains(b.identities, key) {
				c.Errorf("%s: no identity %s", id, key)
			}
		}
		delete(want, "identity")
	}
	if diff := cmp.Diff(normal(c.T, want), normal(c.T, b.attributes(c.T, seed))); diff != "" {
		c.Errorf("%s (-plan +Terraform):\n%s", id, diff)
	}
	for _, before := range r.After {
		if _, symbol := before.Target(); symbol == "" {
			continue
		}
		target := c.byID[strings.ToLower(resolve(p, before).(string))]
		if target != nil && !slices.Contains(b.after, target.name) {
			c.Errorf("%s does not wait for %s", id, target.name)
		}
	}
}

// attributes are what a block says of its resource.
func (b *terraformBlock) attributes(t *testing.T, secret bool) map[string]any {
	all, body := map[string]any{}, "body"
	if secret {
		body = "sensitive_body"
	}
	if value, has := b.values[body]; has {
		all = plainValue(t, value).(map[string]any)
	}
	for _, name := range []string{"location", "tags"} {
		if value, has := b.values[name]; has {
			all[name] = plainValue(t, value)
		}
	}
	return all
}

func plainValue(t *testing.T, v cty.Value) any {
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

func normal(t *testing.T, v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

// resolve is a value of the plan with the ids that references lead to.
func resolve(p cluster.Plan, v any) any {
	switch v := v.(type) {
	case map[string]any:
		all := map[string]any{}
		for key, item := range v {
			all[key] = resolve(p, item)
		}
		return all
	case []any:
		all := []any{}
		for _, item := range v {
			all = append(all, resolve(p, item))
		}
		return all
	case graph.Keyed:
		return map[string]any{resolve(p, v.Key).(string): resolve(p, v.Value)}
	case graph.Port:
		r := graph.Of(v)
		if id, exists := r.Exists(); exists {
			return string(id)
		}
		unit, _ := r.Target()
		id := string(emit.ID(p.Names, p.Graph.Resource(r), p.Graph.Unit(unit).Unit))
		return strings.Join(append([]string{id}, r.Parts()...), "/")
	case graph.Runtime:
		return "<" + resolve(p, v.Of).(string) + " " + v.Path + ">"
	case graph.Parameter:
		return map[graph.Parameter]string{"pkiCA": "<pki_ca>", "pkiEtcdCA": "<pki_etcd_ca>", "pkiFrontProxyCA": "<pki_front_proxy_ca>",
			"pkiServiceAccount": "<pki_service_account>", "bootstrapToken": "<bootstrap_token>",
			"encryptionKeys": "<encryption_keys>"}[v]
	case graph.Number:
		var n float64
		_, _ = fmt.Sscan(string(v), &n)
		return n
	default:
		return v
	}
}
