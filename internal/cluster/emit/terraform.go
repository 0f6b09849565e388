package emit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/units"
)

// The versions that the configuration needs: write-only bodies are of Terraform 1.11.
const (
	terraformVersion = ">= 1.11"
	azapiVersion     = "~> 2.4"
)

// groupType is the type of resource groups, and groupVersion its api-version.
const (
	groupType    = "Microsoft.Resources/resourceGroups"
	groupVersion = "2021-04-01"
)

// Terraform returns the units as a configuration of Terraform with the provider azapi. The keys are the paths of its files:
// main.tf and a file for each unit. Tags are the tags of the resource group, nil if the group exists already.
//
// The order is finer than that of the template: each resource waits for the resources that it needs, not for whole units.
// What the template makes once, such as machines and secrets, Terraform makes and never changes.
func Terraform(l graph.Linked, n naming.Names, location string, tags map[string]string) map[string][]byte {
	t := &terraform{printer: printer{l: l, names: n}, resources: map[string]string{}, data: map[string]string{},
		exports: map[string][]string{}}
	t.nameAll()
	files := map[string][]byte{"main.tf": nil}
	if tags != nil {
		t.group = "azapi_resource.resource_group.id"
	}
	for _, u := range l.Units {
		var w strings.Builder
		for i, r := range u.Resources {
			if i > 0 {
				w.WriteString("\n")
			}
			w.WriteString(t.resource(r, u))
		}
		files[u.Name+".tf"] = []byte(w.String())
	}
	files["main.tf"] = []byte(t.main(location, tags))
	return files
}

// terraform writes resources of the provider azapi.
type terraform struct {
	printer
	group     string              // the id of the cluster's resource group, "" if it is known
	resources map[string]string   // names, by unit and symbol
	data      map[string]string   // blocks that read resources of others, by name
	exports   map[string][]string // properties that others need, by unit and symbol
	here      string              // unit and symbol of the resource that is written
	mentioned map[string]bool     // names of the resources that it refers to
}

func key(r graph.Ref) string {
	unit, symbol := r.Target()
	return unit + "/" + symbol
}

// nameAll names all resources and finds the properties that others need.
func (t *terraform) nameAll() {
	taken := map[string]bool{"resource_group": true}
	for _, u := range t.l.Units {
		for _, r := range u.Resources {
			t.resources[u.Name+"/"+r.Symbol] = unique(taken, strings.ReplaceAll(u.Name+"_"+r.Symbol, "-", "_"), "_")
		}
		for _, value := range u.Outputs {
			t.exports[key(value.Of)] = append(t.exports[key(value.Of)], "properties."+value.Path)
		}
	}
	for of, all := range t.exports {
		slices.Sort(all)
		t.exports[of] = slices.Compact(all)
	}
}

// address is the address of a resource of the configuration.
func (t *terraform) address(key string) string { return "azapi_resource." + t.resources[key] }

func (t *terraform) resource(r graph.LinkedResource, u *graph.LinkedUnit) string {
	t.here, t.mentioned = u.Name+"/"+r.Symbol, map[string]bool{}
	b := &hcl{}
	b.set("type", hclText(r.Type+"@"+r.APIVersion()))
	b.set("parent_id", t.parent(r, u))
	b.set("name", hclText(r.Name[strings.LastIndexByte(r.Name, '/')+1:]))
	body := maps.Clone(r.Body)
	for _, name := range []string{"location", "tags"} {
		if value, has := body[name]; has {
			b.set(name, t.print(value))
			delete(body, name)
		}
	}
	secret := r.Condition == units.SeedSecrets
	if secret {
		b.set("sensitive_body", t.print(body)) // write-only: it is in no plan and in no state
	} else if len(body) > 0 {
		t.body(b, body)
	}
	b.set("response_export_values", hclList(hclTexts(t.exports[t.here])))
	if after := t.after(r, u); len(after) > 0 {
		b.set("depends_on", hclList(after))
	}
	if r.Once || secret {
		b.block("lifecycle", "ignore_changes = all")
	}
	return "resource \"azapi_resource\" " + quote(t.resources[t.here]) + " {\n" + b.text() + "}\n"
}

// body sets the body of a resource. The provider takes identities apart from it.
func (t *terraform) body(b *hcl, body map[string]any) {
	if identity, ok := body["identity"].(map[string]any); ok {
		if ids, ok := identity["userAssignedIdentities"].(graph.Keyed); ok && len(identity) == 2 {
			delete(body, "identity")
			inner := &hcl{}
			inner.set("type", t.print(identity["type"]))
			inner.set("identity_ids", hclList([]string{t.id(ids.Key)}))
			b.block("identity", strings.TrimSuffix(dedented(inner.text()), "\n"))
		}
	}
	b.set("body", t.print(body))
}

// parent is an expression for the id of the resource that a resource is in.
func (t *terraform) parent(r graph.LinkedResource, u *graph.LinkedUnit) string {
	if !r.Scope.IsZero() {
		return t.id(r.Scope)
	}
	id := t.ID(r.Resource, u.Unit)
	if strings.Contains(r.Name, "/") {
		parent := id.Parent()
		for _, other := range u.Resources {
			if t.ID(other.Resource, u.Unit).Equal(parent) {
				return t.id(graph.SelfRef(u.Name, other.Symbol))
			}
		}
		return hclText(string(parent))
	}
	if t.group != "" && u.Unit.Group == "" {
		return t.group
	}
	return hclText(string(azure.GroupID(id.Subscription(), id.Group())))
}

// after are the resources that a resource waits for and does not refer to.
func (t *terraform) after(r graph.LinkedResource, u *graph.LinkedUnit) []string {
	needs := map[string]bool{}
	for _, ref := range r.After {
		if unit, _ := ref.Target(); unit != "" {
			needs[key(ref)] = true
		}
	}
	for _, symbol := range r.DependsOn {
		needs[u.Name+"/"+symbol] = true
	}
	var all []string
	for need := range needs {
		if address := t.address(need); !t.mentioned[need] {
			all = append(all, address)
		}
	}
	slices.Sort(all)
	return all
}

// print is an expression for a value of a body.
func (t *terraform) print(v any) string {
	switch v := v.(type) {
	case map[string]any:
		b := &hcl{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			b.set(hclKey(key), t.print(v[key]))
		}
		return b.object()
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, t.print(item))
		}
		return hclList(items)
	case graph.Keyed:
		b := &hcl{}
		b.set("("+t.id(v.Key)+")", t.print(v.Value))
		return b.object()
	case graph.Port:
		return t.id(graph.Of(v))
	case graph.Runtime:
		return t.output(v)
	case graph.Parameter:
		return "var." + snake(string(v))
	case graph.Number:
		return string(v)
	case string:
		return hclText(v)
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}

// id is an expression for the id of a resource. A resource cannot refer to itself, so that id is a text.
func (t *terraform) id(r graph.Ref) string {
	if id, exists := r.Exists(); exists {
		return hclText(string(id))
	}
	parts := append([]string{""}, r.Parts()...)
	if key(r) == t.here {
		unit, _ := r.Target()
		return hclText(string(t.ID(t.l.Resource(r), t.l.Unit(unit).Unit)) + strings.Join(parts, "/"))
	}
	t.mentioned[key(r)] = true
	id := t.address(key(r)) + ".id"
	if len(parts) == 1 {
		return id
	}
	return `"${` + id + "}" + strings.Join(parts, "/") + `"`
}

// output is an expression for a value that only Azure knows. A resource of others is read.
func (t *terraform) output(r graph.Runtime) string {
	id, exists := r.Of.Exists()
	if !exists {
		t.mentioned[key(r.Of)] = true
		return t.address(key(r.Of)) + ".output.properties." + r.Path
	}
	name := strings.ReplaceAll(identifier.ReplaceAllString(strings.ToLower(id.Group()+"-"+strings.Join(namesOf(id), "-")), "-"), "-", "_")
	if name[0] < 'a' {
		name = "of_" + name
	}
	b := &hcl{}
	b.set("type", hclText(id.Type()+"@"+existingVersion(id.Type())))
	b.set("resource_id", hclText(string(id)))
	b.set("response_export_values", hclList(hclTexts([]string{"properties." + r.Path})))
	t.data[name] = "data \"azapi_resource\" " + quote(name) + " {\n" + b.text() + "}\n"
	return "data.azapi_resource." + name + ".output.properties." + r.Path
}

// main is the text of main.tf.
func (t *terraform) main(location string, tags map[string]string) string {
	var w strings.Builder
	fmt.Fprintf(&w, "terraform {\n  required_version = %s\n  required_providers {\n    azapi = {\n      source  = \"azure/azapi\"\n"+
		"      version = %s\n    }\n  }\n}\n", hclText(terraformVersion), hclText(azapiVersion))
	fmt.Fprintf(&w, "\nprovider \"azapi\" {\n  subscription_id = %s\n}\n", hclText(t.names.Group().Subscription()))
	for _, name := range used(t.l, Options{}) {
		if name == units.SeedSecrets {
			continue // secrets are written when they are made
		}
		b := &hcl{}
		b.set("type", "string")
		b.set("description", hclText("Secret "+units.Secrets()[name]+" of the cluster: needed by the apply that makes it, and not later"))
		b.set("default", "null")
		b.set("sensitive", "true")
		b.set("ephemeral", "true")
		w.WriteString("\nvariable " + quote(snake(name)) + " {\n" + b.text() + "}\n")
	}
	if tags != nil {
		b := &hcl{}
		b.set("type", hclText(groupType+"@"+groupVersion))
		b.set("parent_id", hclText(string(azure.SubscriptionID(t.names.Group().Subscription()))))
		b.set("name", hclText(t.names.Group().Name()))
		b.set("location", hclText(location))
		b.set("tags", t.print(plain(tags)))
		b.set("response_export_values", "[]")
		w.WriteString("\nresource \"azapi_resource\" \"resource_group\" {\n" + b.text() + "}\n")
	}
	for _, name := range slices.Sorted(maps.Keys(t.data)) {
		w.WriteString("\n" + t.data[name])
	}
	b := &hcl{}
	b.set("value", t.print(apiServer(t.names)))
	w.WriteString("\noutput \"api_server\" {\n" + b.text() + "}\n")
	return w.String()
}
