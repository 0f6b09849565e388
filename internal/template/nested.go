package template

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/short"
	"kaz/internal/template/fault"
	language "kaz/internal/template/function"
)

// Nested reports whether the resource is a deployment.
func (r *Resource) Nested() bool { return strings.EqualFold(r.ID.Type(), deploymentType) }

// base is the scope of a resource: that of the deployment, or the one that the resource names. Only nested deployments
// and existing resources may name another.
func (t *Template) base(path string, document Object, fullType string) (azure.ID, error) {
	base := t.scope.deployment.ID.Parent()
	group, err := t.text(path, document, "resourceGroup")
	if err != nil {
		return "", err
	}
	subscription, err := t.text(path, document, "subscriptionId")
	if err != nil || group == "" && subscription == "" {
		return base, err
	}
	if existing, _ := document["existing"].(bool); !existing && !strings.EqualFold(fullType, deploymentType) {
		return "", short.Errorf("only nested deployments have the sections 'resourceGroup' and 'subscriptionId'")
	}
	switch {
	case subscription == "":
		subscription = base.Subscription()
	case group == "":
		return azure.SubscriptionID(subscription), nil
	}
	return azure.GroupID(subscription, group), nil
}

// addSymbolic takes resources with symbolic names, in the order of these names.
func (t *Template) addSymbolic(in *outer, path string, resources Object) error {
	for _, symbol := range slices.Sorted(maps.Keys(resources)) {
		resource, ok := resources[symbol].(Object)
		if !ok {
			continue
		}
		if err := t.addResource(in, symbol, path+"."+symbol, resource); err != nil {
			return err
		}
	}
	return nil
}

// symbolic reports whether the resources of a template have symbolic names.
func symbolic(document Object) bool {
	_, ok := document["resources"].(Object)
	return ok
}

// separate takes the template out of a nested deployment.
func (t *Template) separate(r *Resource) error {
	properties := maps.Clone(object(r.body, "properties"))
	nested := object(properties, "template")
	if nested == nil {
		return nil
	}
	delete(properties, "template")
	r.body["properties"] = properties
	scope, _ := object(properties, "expressionEvaluationOptions")["scope"].(string)
	switch strings.ToLower(scope) {
	case "inner":
		r.inner = nested
	case "", "notspecified":
		if symbolic(t.scope.document) {
			r.inner = nested
		} else {
			r.outer = nested
		}
	case "outer":
		if symbolic(t.scope.document) {
			return fault.Invalid(r.path+".properties.expressionEvaluationOptions", "The nested deployment '%s' has the expression "+
				"evaluation scope 'outer', which a template with symbolic names does not allow", r.ID.Name())
		}
		r.outer = nested
	default:
		return fault.Invalid(r.path+".properties.expressionEvaluationOptions.scope", "The expression evaluation scope '%s' is not one of "+
			"inner, outer", scope)
	}
	return nil
}

// nest completes the body of a nested deployment with its template.
func (t *Template) nest(r *Resource, body Object) (err error) {
	switch {
	case r.inner != nil:
		object(body, "properties")["template"] = r.inner
	case r.outer != nil:
		object(body, "properties")["template"], err = t.expand(r.outer)
	}
	return err
}

// Links computes what a nested deployment links to, as far as this is known before any resource exists. The result is its body with the
// links alone.
func (t *Template) Links(r *Resource) Object {
	t.scope.azure, t.scope.loops = nil, r.loops
	links := Object{}
	for _, name := range []string{"templateLink", "parametersLink"} {
		link, err := t.scope.evaluate(object(r.body, "properties")[name])
		if o, ok := link.(Object); ok && err == nil {
			links[name] = o
		}
	}
	return Object{"properties": links}
}

// expand computes all expressions of a nested template in the outer scope. What it reads as parameters and variables
// are those of the outer template, so its own variables and functions have no use.
func (t *Template) expand(nested Object) (Object, error) {
	expanded := Object{}
	for _, key := range slices.Sorted(maps.Keys(nested)) {
		var value any
		var err error
		switch key {
		case "variables", "functions":
			continue
		case "resources":
			value, err = t.expandResources(nested[key])
		default:
			value, err = t.scope.evaluate(nested[key])
			value = escaped(value)
		}
		if err != nil {
			return nil, fault.Under("."+key, err)
		}
		expanded[key] = value
	}
	return expanded, nil
}

// expandResources computes resources, with the copies that their loops make.
func (t *Template) expandResources(resources any) (any, error) {
	array, ok := resources.([]any)
	if !ok {
		return nil, short.Errorf("the nested template has resources with symbolic names, which need the expression evaluation scope " +
			"'inner'")
	}
	made, loops := []Object{}, map[string][]any{}
	for i, x := range array {
		resource, _ := x.(Object)
		copies, err := t.expandResource(resource)
		if err != nil {
			return nil, fault.Under("["+strconv.Itoa(i)+"]", err)
		}
		if name, ok := object(resource, "copy")["name"].(string); ok {
			names := []any{}
			for _, c := range copies {
				names = append(names, c["name"])
			}
			loops[strings.ToLower(name)] = names
		}
		made = append(made, copies...)
	}
	all := make([]any, len(made))
	for i, resource := range made {
		waitForCopies(resource, loops)
		all[i] = resource
	}
	return all, nil
}

func (t *Template) expandResource(resource Object) ([]Object, error) {
	copies := object(resource, "copy")
	if copies == nil {
		value, err := t.expandOne(resource)
		return []Object{value}, err
	}
	n, err := t.scope.rounds(copies["count"])
	if err != nil {
		return nil, fault.Under(".copy.count", err)
	}
	single := maps.Clone(resource)
	delete(single, "copy")
	name, _ := copies["name"].(string)
	made := []Object{}
	for i := range n {
		err := t.scope.round(loop{name, i, true}, func() error {
			if err := t.scope.grow(language.SizeOf(single)); err != nil {
				return err
			}
			value, err := t.expandOne(single)
			made = append(made, value)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return made, nil
}

// expandOne computes a resource. A deployment in it keeps its template when that has a scope of its own.
func (t *Template) expandOne(resource Object) (Object, error) {
	inner := Object(nil)
	if kind, _ := resource["type"].(string); strings.EqualFold(kind, deploymentType) {
		properties := object(resource, "properties")
		if scope, _ := object(properties, "expressionEvaluationOptions")["scope"].(string); strings.EqualFold(scope, "inner") {
			inner = object(properties, "template")
			resource, properties = maps.Clone(resource), maps.Clone(properties)
			delete(properties, "template")
			resource["properties"] = properties
		}
	}
	value, err := t.scope.evaluate(resource)
	if err != nil {
		return nil, err
	}
	computed, _ := escaped(value).(Object)
	if inner != nil {
		object(computed, "properties")["template"] = inner
	}
	return computed, nil
}

// waitForCopies replaces the name of a loop in dependsOn by the names of the resources that it made.
func waitForCopies(resource Object, loops map[string][]any) {
	after, ok := resource["dependsOn"].([]any)
	if !ok {
		return
	}
	names := []any{}
	for _, x := range after {
		text, _ := x.(string)
		if copies, isLoop := loops[strings.ToLower(text)]; isLoop {
			names = append(names, copies...)
		} else {
			names = append(names, x)
		}
	}
	resource["dependsOn"] = names
}

// escaped is a computed value that means the same when it is computed again.
func escaped(value any) any {
	switch v := value.(type) {
	case string:
		if strings.HasPrefix(v, "[") {
			return "[" + v
		}
	case Object:
		all := make(Object, len(v))
		for key, x := range v {
			if strings.HasPrefix(key, "[") {
				key = "[" + key
			}
			all[key] = escaped(x)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, x := range v {
			all[i] = escaped(x)
		}
		return all
	}
	return value
}
