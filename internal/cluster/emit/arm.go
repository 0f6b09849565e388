// Package emit writes linked units as templates: for Azure Resource Manager, as Bicep, and as Terraform. The same input gives
// the same bytes. Layer L1: pure.
package emit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/units"
)

type object = map[string]any

// Template is a cluster's template and its parts.
type Template struct {
	// Main has a nested deployment for each unit.
	Main object
	// Units are the templates of the units alone.
	Units map[string]object
	// Hashes are the hashes of the units, by which a later deployment knows what changed.
	Hashes map[string]string
}

// What a deployment tells later commands: the hash of each unit, and the definition.
const (
	HashOutput          = "kazHash"
	DefinitionParameter = "definition"
)

// Options say what a template leaves out.
type Options struct {
	// Definition is recorded in the template as it is.
	Definition any
	// Leave are units that are not deployed, because they have not changed.
	Leave map[string]bool
	// Keep are ids of resources, in lower case, that exist and are not written.
	Keep map[string]bool
	// Bodies are bodies of resources by their ids in lower case, in place of those of the plan.
	Bodies map[string]map[string]any
}

// ARM returns the template for Azure Resource Manager.
func ARM(l graph.Linked, n naming.Names, o Options) Template {
	t := Template{Units: map[string]object{}, Hashes: map[string]string{}}
	p := printer{l: l, names: n}
	resources := []any{}
	for _, u := range l.Units {
		t.Hashes[u.Name] = hash(p.unit(u, Options{}))
		if o.Leave[u.Name] {
			continue
		}
		body := p.unit(u, o)
		body["outputs"].(object)[HashOutput] = object{"type": "string", "value": t.Hashes[u.Name]}
		t.Units[u.Name] = body
		resources = append(resources, p.nested(u, body, o))
	}
	declared := parameters(used(l, o), true)
	declared[DefinitionParameter] = object{"type": "object", "defaultValue": literal(o.Definition),
		"metadata": object{"description": definitionText}}
	t.Main = object{
		"$schema":        "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
		"contentVersion": "1.0.0.0",
		"parameters":     declared,
		"resources":      resources,
		"outputs":        object{"apiServer": object{"type": "object", "value": apiServer(n)}},
	}
	return t
}

const definitionText = "The definition of the cluster. Azure keeps it with the deployment, for later commands."

// apiServer has the names of the API server, which the template outputs.
func apiServer(n naming.Names) object {
	return object{"host": n.Host(), "publicHost": n.PublicHost(), "internalHost": n.InternalHost()}
}

// literal is a value as a template has it, in which texts are no expressions.
func literal(v any) any { return printer{}.value(plain(v)) }

// plain is a value as JSON has it, without the fields that are null.
func plain(v any) any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // definitions have JSON
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		panic(err)
	}
	return withoutNull(tree)
}

// withoutNull is a value without the fields that are null, which mean the same as absent ones.
func withoutNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if item == nil {
				delete(v, key)
			} else {
				withoutNull(item)
			}
		}
	case []any:
		for _, item := range v {
			withoutNull(item)
		}
	}
	return v
}

// used are the parameters of the deployed units.
func used(l graph.Linked, o Options) []string {
	all := map[string]bool{}
	for _, u := range l.Units {
		if !o.Leave[u.Name] {
			for _, name := range u.Parameters {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// parameters declares parameters. A secret has a default, the empty text, so that a deployment that writes no secrets needs
// none.
func parameters(names []string, withDefaults bool) object {
	all := object{}
	for _, name := range names {
		one := object{"type": "securestring"}
		if name == units.SeedSecrets {
			one = object{"type": "bool"}
		}
		if withDefaults {
			one["defaultValue"] = ""
			one["metadata"] = object{"description": "Secret " + units.Secrets()[name] + " of the cluster"}
			if name == units.SeedSecrets {
				one["defaultValue"] = false
				one["metadata"] = object{"description": "Whether the secrets are written: true in the first deployment only"}
			}
		}
		all[name] = one
	}
	return all
}

// printer prints expressions of Azure Resource Manager.
type printer struct {
	l     graph.Linked
	names naming.Names
	here  *graph.LinkedUnit
}

// unit is the template of a unit without the resources that are kept.
func (p printer) unit(u *graph.LinkedUnit, o Options) object {
	p.here = u
	resources := []any{}
	for _, r := range u.Resources {
		if !o.Keep[p.ID(r.Resource, u.Unit).Key()] {
			resources = append(resources, p.resource(r, u, o))
		}
	}
	declared := parameters(u.Parameters, false)
	for name := range u.Inputs {
		declared[name] = object{"type": "string"}
	}
	outputs := object{}
	for name, value := range u.Outputs {
		outputs[name] = object{"type": "string", "value": "[" + p.runtime(value) + "]"}
	}
	return object{
		"$schema":        "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
		"contentVersion": "1.0.0.0", "parameters": declared, "resources": resources, "outputs": outputs,
	}
}

// ID is the id of a resource of a unit.
func (p printer) ID(r *graph.Resource, u *graph.Unit) azure.ID {
	return ID(p.names, r, u)
}

// ID is the id of a resource of a unit.
func ID(n naming.Names, r *graph.Resource, u *graph.Unit) azure.ID {
	group := n.Group()
	if u.Group != "" {
		group = u.Group
	}
	namespace, types, _ := strings.Cut(r.Type, "/")
	parts := []string{string(group), "providers", namespace}
	names := strings.Split(r.Name, "/")
	for i, t := range strings.Split(types, "/") {
		parts = append(parts, t, names[i])
	}
	return azure.ID(strings.Join(parts, "/"))
}

func (p printer) resource(r graph.LinkedResource, u *graph.LinkedUnit, o Options) object {
	planned := r.Body
	if other, has := o.Bodies[p.ID(r.Resource, u.Unit).Key()]; has {
		planned = other
	}
	body := object{}
	for key, value := range planned {
		body[key] = p.value(value)
	}
	body["type"], body["apiVersion"], body["name"] = r.Type, r.APIVersion(), r.Name
	if r.Condition != "" {
		body["condition"] = "[parameters('" + r.Condition + "')]"
	}
	if !r.Scope.IsZero() {
		body["scope"] = p.text(r.Scope)
	}
	var after []any
	for _, symbol := range r.DependsOn {
		other := p.l.Resource(graph.SelfRef(u.Name, symbol))
		if o.Keep[p.ID(other, u.Unit).Key()] {
			continue
		}
		after = append(after, p.text(graph.SelfRef(u.Name, symbol)))
	}
	if len(after) > 0 {
		body["dependsOn"] = after
	}
	return body
}

// value is a value of a body as a template has it.
func (p printer) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		all := object{}
		for key, item := range v {
			all[key] = p.value(item)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			all[i] = p.value(item)
		}
		return all
	case graph.Keyed:
		return object{p.text(v.Key): p.value(v.Value)}
	case graph.Port:
		return p.text(graph.Of(v))
	case graph.Runtime:
		return "[" + p.runtime(v) + "]"
	case graph.Parameter:
		return "[parameters('" + string(v) + "')]"
	case graph.Number:
		if v == "-1" {
			return -1
		}
		return "[json('" + string(v) + "')]"
	case string:
		if strings.HasPrefix(v, "[") {
			return "[" + v // a text that is no expression
		}
		return v
	default:
		return v
	}
}

// text is the id of a resource, or an expression for it.
func (p printer) text(r graph.Ref) string {
	if id, exists := r.Exists(); exists {
		return string(id)
	}
	return "[" + p.id(r) + "]"
}

func quoted(texts ...string) string {
	var all []string
	for _, text := range texts {
		all = append(all, "'"+strings.ReplaceAll(text, "'", "''")+"'")
	}
	return strings.Join(all, ", ")
}

// id is an expression for the id of a resource.
func (p printer) id(r graph.Ref) string {
	if id, exists := r.Exists(); exists {
		return quoted(string(id))
	}
	unit, _ := r.Target()
	target := p.l.Resource(r)
	args := append([]string{r.TypeOf(target.Type)}, r.Names(target.Name)...)
	from, to := p.groupOf(p.here.Name), p.groupOf(unit)
	if !from.Equal(to) {
		args = append([]string{to.Subscription(), to.Group()}, args...)
	}
	return "resourceId(" + quoted(args...) + ")"
}

func (p printer) groupOf(unit string) azure.ID {
	if u := p.l.Unit(unit); u != nil && u.Unit.Group != "" {
		return u.Unit.Group
	}
	return p.names.Group()
}

// runtime is an expression for a value that only Azure knows. A value of another unit is a parameter.
func (p printer) runtime(r graph.Runtime) string {
	unit, _ := r.Of.Target()
	if _, exists := r.Of.Exists(); !exists && unit != p.here.Name {
		return "parameters('" + graph.OutputName(r) + "')"
	}
	return p.reference(r)
}

func (p printer) reference(r graph.Runtime) string {
	var fullType, version string
	if id, exists := r.Of.Exists(); exists {
		fullType = id.Type()
		version = graph.Versions()[fullType]
	} else {
		version = p.l.Resource(r.Of).APIVersion()
	}
	return "reference(" + p.id(r.Of) + ", " + quoted(version) + ")." + r.Path
}

// nested is the nested deployment of a unit.
func (p printer) nested(u *graph.LinkedUnit, template object, o Options) object {
	p.here = &graph.LinkedUnit{Name: ""} // expressions of the main template are in the cluster's group
	given := object{}
	for _, name := range u.Parameters {
		given[name] = object{"value": "[parameters('" + name + "')]"}
	}
	for name, value := range u.Inputs {
		unit, _ := value.Of.Target()
		expression := fmt.Sprintf("reference(%s).outputs.%s.value", p.deployment(unit), name)
		if o.Leave[unit] {
			expression = p.reference(value) // the unit is not in the template, and its resource exists
		}
		given[name] = object{"value": "[" + expression + "]"}
	}
	var after []any
	for _, name := range u.After {
		if !o.Leave[name] {
			after = append(after, "["+p.deployment(name)+"]")
		}
	}
	all := object{
		"type": "Microsoft.Resources/deployments", "apiVersion": graph.Versions()["Microsoft.Resources/deployments"],
		"name": p.names.UnitDeployment(u.Name),
		"properties": object{
			"mode": "Incremental", "expressionEvaluationOptions": object{"scope": "inner"}, "parameters": given, "template": template,
		},
	}
	if g := u.Unit.Group; g != "" {
		all["resourceGroup"] = g.Group()
		if !strings.EqualFold(g.Subscription(), p.names.Group().Subscription()) {
			all["subscriptionId"] = g.Subscription()
		}
	}
	if len(after) > 0 {
		all["dependsOn"] = after
	}
	return all
}

// deployment is an expression for the id of the nested deployment of a unit.
func (p printer) deployment(unit string) string {
	args := []string{"Microsoft.Resources/deployments", p.names.UnitDeployment(unit)}
	if g := p.groupOf(unit); !g.Equal(p.names.Group()) {
		args = append([]string{g.Subscription(), g.Group()}, args...)
	}
	return "resourceId(" + quoted(args...) + ")"
}

// JSON is a document as it is written to files: with sorted keys and a line end.
func JSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic(err) // maps, lists and scalars have JSON
	}
	return b.Bytes()
}

func hash(v any) string {
	sum := sha256.Sum256(JSON(v))
	return hex.EncodeToString(sum[:8])
}

// Parameters is a file with the parameters of the template. It has no secrets: a deployment without kaz sets them once.
func Parameters(l graph.Linked) map[string]any {
	given := object{}
	for _, name := range used(l, Options{}) {
		if name == units.SeedSecrets {
			given[name] = object{"value": false}
			continue
		}
		given[name] = object{"value": ""}
	}
	return object{
		"$schema":        "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#",
		"contentVersion": "1.0.0.0", "parameters": given,
	}
}
