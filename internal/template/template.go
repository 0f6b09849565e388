// Package template evaluates templates of Azure Resource Manager. [Bind] checks a template and its parameters and
// puts its resources in order. The [Template] that it returns computes their bodies and the outputs. Layer L1: azure
// and the standard library; [Azure] answers what only Azure knows.
//
// The texts of errors are the texts of Azure where these are known, because users search for them. An [Error] says
// where in the template it is.
package template

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/short"
	"kaz/internal/template/fault"
	"kaz/internal/template/shape"
	"kaz/internal/template/types"
)

// Deployment is where and how a template is deployed.
type Deployment struct {
	// ID of the deployment. Its parent is the scope of the resources: a resource group or
	// a subscription.
	ID azure.ID
	// Location of a deployment outside of resource groups.
	Location string
	// Parameters are the given ones: {"name": {"value": ...}}.
	Parameters Object
	// Group, Subscription, Tenant, Environment and Deployer are the results of
	// resourceGroup() and so on; nil where the function is refused.
	Group, Subscription, Tenant, Environment, Deployer Object
	// TemplateLink is where the template is from; nil when the deployment has the template.
	TemplateLink Object
	// Hash returns the hash of a template that deployment() shows; nil shows none.
	Hash func(document Object) string
	// Now is the time of utcNow(), and GUID makes the results of newGuid().
	Now  time.Time
	GUID func() string
	// Azure answers what only Azure knows. It is nil while Azure cannot be asked: a template that asks is then
	// refused.
	Azure Azure
	// Budget is that of the request. Nil is a budget of its own.
	Budget *Budget
}

// Template is a template with its expressions, checked and bound to a deployment. It is
// not safe for use by several goroutines.
type Template struct {
	// Resources in an order in which they can be made.
	Resources []*Resource
	// Parameters are the values of all parameters.
	Parameters Object

	scope   *evaluator
	dropped map[string]bool       // keys of the resources with a false condition, and of existing resources
	loops   map[string][]azure.ID // the resources of copy loops by the lower-cased name of the loop
	// steps and size are what was computed before any resource exists: by Bind and by Preview.
	steps, size int
}

// Resource is one resource of a template.
type Resource struct {
	ID       azure.ID
	Version  string // api-version
	Location string
	// DependsOn are the resources that must exist before. The resource lists them, or its expressions ask for them by
	// name in the template.
	DependsOn []azure.ID

	path  string // in the template
	loops []loop // that made it
	// inner is the template of a nested deployment that computes its own expressions, and outer the template of one with
	// expressions that are computed here. Both are nil for other resources.
	inner, outer Object
	body         Object // with its expressions
	after        []any  // dependsOn with its expressions
	preview      *preview
}

// preview is the result of [Template.Preview]. It is kept, because it is the same each time.
type preview struct {
	body Object
	err  error
}

// Types with special treatment.
const (
	groupType      = "Microsoft.Resources/resourceGroups"
	deploymentType = "Microsoft.Resources/deployments"
)

// Bind checks a template and the parameters given to it. Errors are an [*Error].
func Bind(document Object, d Deployment) (*Template, error) {
	if d.Budget == nil {
		d.Budget = NewBudget()
	}
	if err := checkDocument(document); err != nil {
		return nil, err
	}
	t := &Template{
		Parameters: Object{},
		dropped:    map[string]bool{},
		loops:      map[string][]azure.ID{},
		scope: &evaluator{
			deployment: d, document: document, defaults: Object{}, variables: object(document, "variables"),
			names: map[string]*Resource{}, byID: map[string]*Resource{}, functions: allFunctions(), users: map[string]userFunction{},
			symbols: map[string][]*Resource{},
		},
	}
	t.scope.parameters = t.Parameters
	if err := t.scope.declareFunctions(); err != nil {
		return nil, err
	}
	if err := t.scope.bindParameters(object(document, "parameters")); err != nil {
		return nil, err
	}
	if err := t.add(nil, "resources", document); err != nil {
		return nil, err
	}
	if err := t.checkNames(); err != nil {
		return nil, err
	}
	for _, r := range t.Resources {
		if err := t.dependencies(r); err != nil {
			return nil, err
		}
	}
	t.steps, t.size = t.scope.steps, t.scope.size
	return t, t.order()
}

// Body computes what is to be sent to make a resource. The result is shared with Preview: it is not to be changed.
func (t *Template) Body(r *Resource) (Object, error) {
	if r.preview != nil && !NeedsResources(r.preview.err) {
		return r.preview.body, r.preview.err
	}
	return t.body(r, t.scope.deployment.Azure)
}

// Preview is Body before any resource exists. If an expression asks for a resource, [NeedsResources] is true for the
// error.
func (t *Template) Preview(r *Resource) (Object, error) {
	if r.preview != nil {
		return r.preview.body, r.preview.err
	}
	body, err := t.body(r, nil)
	if NeedsResources(err) {
		t.scope.steps, t.scope.size = t.steps, t.size // Body computes it again
	}
	t.steps, t.size = t.scope.steps, t.scope.size
	r.preview = &preview{body, err}
	return body, err
}

func (t *Template) body(r *Resource, of Azure) (Object, error) {
	t.scope.azure, t.scope.loops = of, r.loops
	value, err := t.scope.evaluate(r.body)
	if err != nil {
		return nil, fault.At(r.path, err)
	}
	body, _ := value.(Object)
	if body["zones"] == "" { // as no zones
		delete(body, "zones")
	}
	if tags := object(body, "tags"); tags != nil {
		body["tags"] = textTags(tags)
	}
	if err := t.nest(r, body); err != nil {
		return nil, fault.At(r.path+".properties.template", err)
	}
	return body, nil
}

// Output is one output of a template: its type as deployments show it, and its value. The value of a secure type must
// not be shown.
type Output struct {
	Type   string
	Value  any
	Secure bool
}

// Outputs computes the outputs, when the resources are there. It returns nil for a template without a section of outputs.
func (t *Template) Outputs() (map[string]Output, error) {
	t.scope.azure, t.scope.loops = t.scope.deployment.Azure, nil
	declared := object(t.scope.document, "outputs")
	if declared == nil {
		return nil, nil
	}
	outputs := make(map[string]Output, len(declared))
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		declaration, err := t.scope.definitions().Resolve(object(declared, name))
		if err != nil {
			return nil, fault.At("outputs."+name, err)
		}
		wanted, err := t.wanted("outputs."+name, declaration)
		if err != nil {
			return nil, err
		}
		if !wanted {
			continue
		}
		value, err := t.output(declaration)
		if err != nil {
			err = fault.At("outputs."+name, err)
			e, _ := errors.AsType[*Error](err)
			e.Message = fmt.Sprintf("The template output '%s' is not valid: %s", name, e.Message)
			return nil, err
		}
		kind, _ := declaration["type"].(string)
		if !types.Fits(strings.ToLower(kind), value) && value != nil {
			return nil, fault.Invalid("outputs."+name, "The template output '%s' is not valid: Template output JToken type is not valid. "+
				"Expected '%s'. Actual value of the output is %v", name, types.Name(kind), value)
		}
		outputs[name] = Output{Type: types.Name(kind), Value: value, Secure: types.Secure(kind)}
	}
	return outputs, nil
}

func (t *Template) output(declaration Object) (any, error) {
	if copies, ok := declaration["copy"].(Object); ok {
		array, err := t.scope.repeat("", copies["count"], copies["input"])
		if err != nil {
			return nil, fault.Under(".copy", err)
		}
		return array, nil
	}
	value, err := t.scope.evaluate(declaration["value"])
	if err != nil {
		return nil, fault.Under(".value", err)
	}
	return value, nil
}

// has reports whether the template makes a resource.
func (t *Template) has(id azure.ID) bool { return t.scope.byID[id.Key()] != nil }

// outer is a resource in which others are nested.
type outer struct{ fullType, name string }

// add takes the resources of a template, or those nested in a resource, into it.
func (t *Template) add(in *outer, path string, document Object) error {
	if symbolic, ok := document["resources"].(Object); ok {
		return t.addSymbolic(in, path, symbolic)
	}
	resources, _ := document["resources"].([]any)
	for i, x := range resources {
		resource, ok := x.(Object)
		if !ok {
			continue
		}
		if err := t.addResource(in, "", path+"["+strconv.Itoa(i)+"]", resource); err != nil {
			return err
		}
	}
	return nil
}

// addResource adds a resource, or the resources that its copy loop makes. The symbol is its symbolic name, "" for none.
func (t *Template) addResource(in *outer, symbol, path string, document Object) error {
	document = spelled(document)
	switch {
	case document["copy"] == nil:
		return t.addOne(in, symbol, path, document)
	case in == nil:
		return t.addCopies(symbol, path, document)
	}
	return fault.Invalid(path+".copy", "A resource inside of another resource cannot have the section 'copy'")
}

func (t *Template) addOne(in *outer, symbol, path string, document Object) error {
	if err := t.scope.work(resourceSteps); err != nil {
		return fault.At(path, err)
	}
	name, err := t.text(path, document, "name")
	if err != nil {
		return err
	}
	fullType, _ := document["type"].(string)
	fullType = strings.TrimSuffix(fullType, "/")
	if in != nil && !strings.HasPrefix(strings.ToLower(fullType), strings.ToLower(in.fullType)+"/") {
		fullType, name = in.fullType+"/"+fullType, in.name+"/"+name
	}
	r := &Resource{path: path, body: Object{}, loops: slices.Clone(t.scope.loops)}
	if r.Version, err = t.text(path, document, "apiVersion"); err != nil {
		return err
	}
	if r.Version == "" {
		return fault.Invalid(path, "The template resource '%s' at line '1' and column '1' is not valid. The api-version is missing", name)
	}
	if r.ID, err = t.id(path, document, fullType, name); err != nil {
		return fault.Invalid(path, "The template resource '%s' of type '%s' is not valid: %v", name, fullType, fault.Message(err))
	}
	t.named(name, symbol, r)
	if err := checkTags(path, object(document, "tags")); err != nil {
		return err
	}
	existing, _ := document["existing"].(bool)
	if wanted, err := t.wanted(path, document); err != nil || !wanted || existing {
		t.dropped[r.ID.Key()] = true
		return err
	}
	if r.Location, err = t.text(path, document, "location"); err != nil {
		return err
	}
	if err := t.take(r, document); err != nil {
		return err
	}
	return t.add(&outer{fullType, name}, path+".resources", document)
}

// take adds a resource with the sections of its document that are sent.
func (t *Template) take(r *Resource, document Object) error {
	for key, value := range document {
		if !slices.Contains(shape.NotSent, key) {
			r.body[key] = value
		}
	}
	if t.has(r.ID) {
		return fault.Invalid(r.path, "The resource '%s' is defined multiple times in a template. Please see "+
			"https://aka.ms/arm-syntax-resources for usage details", r.ID)
	}
	if r.Nested() {
		if err := t.separate(r); err != nil {
			return err
		}
	}
	if len(t.Resources) == mostResources {
		return tooMany("resources", mostResources, mostResources+1)
	}
	t.scope.byID[r.ID.Key()] = r
	r.after, _ = document["dependsOn"].([]any)
	t.Resources = append(t.Resources, r)
	return nil
}

// spelled returns a resource with its sections in their own spelling.
func spelled(resource Object) Object {
	own := make(Object, len(resource))
	for name, value := range resource {
		known := slices.IndexFunc(shape.Sections, func(known string) bool { return strings.EqualFold(known, name) })
		if known >= 0 && resource[shape.Sections[known]] == nil {
			name = shape.Sections[known]
		}
		own[name] = value
	}
	return own
}

// named notes the names of a resource. A name that two resources have means none.
func (t *Template) named(name, symbol string, r *Resource) {
	if symbol != "" {
		t.scope.symbols[symbol] = append(t.scope.symbols[symbol], r)
	}
	key := strings.ToLower(name)
	if _, twice := t.scope.names[key]; twice {
		r = nil
	}
	t.scope.names[key] = r
}

// wanted evaluates a resource's condition.
func (t *Template) wanted(path string, document Object) (bool, error) {
	condition, there := document["condition"]
	if !there {
		return true, nil
	}
	path += ".condition"
	value, err := t.scope.evaluate(condition)
	if err != nil {
		return false, fault.At(path, err)
	}
	wanted, ok := value.(bool)
	if !ok {
		return false, fault.Invalid(path, "The condition '%v' is not a boolean", condition)
	}
	return wanted, nil
}

// text is a field that has to be a string after evaluation; "" when it is absent.
func (t *Template) text(path string, document Object, field string) (string, error) {
	value, there := document[field]
	if !there && field != "name" {
		return "", nil
	}
	path += "." + field
	value, err := t.scope.evaluate(value)
	if err != nil {
		return "", fault.At(path, err)
	}
	s, ok := value.(string)
	if !ok {
		return "", fault.Invalid(path, "The %s of a template resource is '%v', which is not a string", field, value)
	}
	return s, nil
}

func (t *Template) id(path string, document Object, fullType, name string) (azure.ID, error) {
	if !strings.Contains(fullType, "/") {
		return "", short.Errorf("the type has no namespace")
	}
	base, err := t.base(path, document, fullType)
	if err != nil {
		return "", err
	}
	if strings.EqualFold(fullType, groupType) {
		if base.Group() != "" {
			return "", short.Errorf("resource groups are deployed at a subscription")
		}
		return azure.GroupID(base.Subscription(), name), nil
	}
	scope, err := t.text(path, document, "scope")
	if err != nil {
		return "", err
	}
	if scope != "" {
		base = t.scope.target(scope)
	}
	return joinID(base, fullType, strings.Split(name, "/"))
}

// object is the object at a key, nil for none.
func object(o Object, key string) Object {
	inner, _ := o[key].(Object)
	return inner
}
