package resources

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// template is a deployment's template with its expressions, checked and bound to
// the parameters of the deployment.
type template struct {
	scope     *scope
	resources []*templateResource // in the order in which they can be made
	outputs   behaviour.Object
	// dropped are the keys of resources whose condition is false.
	dropped map[string]bool
}

func (t *template) has(id azure.ID) bool {
	return slices.ContainsFunc(t.resources, func(r *templateResource) bool { return r.id.Equal(id) })
}

// templateResource is one resource of a template.
type templateResource struct {
	id        azure.ID
	version   string           // api-version
	body      behaviour.Object // with its expressions
	location  string
	after     []any // dependsOn with its expressions
	dependsOn []azure.ID
}

// invalid is how the resource manager refuses a template.
func invalid(format string, args ...any) error {
	return gateway(400, "InvalidTemplate", "Deployment template validation failed: '%s'.", strings.TrimSuffix(fmt.Sprintf(format, args...), "."))
}

// bind checks a template and the parameters given to it.
func bind(c *behaviour.Call, document, given behaviour.Object) (*template, error) {
	t := &template{
		scope: &scope{
			deployment: c.ID, parameters: behaviour.Object{}, defaults: behaviour.Object{},
			variables: behaviour.Sub(document, "variables"), tenant: c.TenantOf(c.ID.Subscription()), functions: functions(),
		},
		outputs: behaviour.Sub(document, "outputs"),
		dropped: map[string]bool{},
	}
	if group, ok := c.Get(azure.GroupID(c.ID.Subscription(), c.ID.Group())); ok {
		t.scope.location = behaviour.Text(group, "location")
	}
	if err := t.scope.bindParameters(behaviour.Sub(document, "parameters"), given); err != nil {
		return nil, err
	}
	if _, isObject := document["resources"].(behaviour.Object); isObject {
		return nil, invalid("resources by symbolic name are not supported by the local Azure")
	}
	t.scope.names = map[string]azure.ID{}
	if err := t.add("", "", behaviour.Objects(document, "resources")); err != nil {
		return nil, err
	}
	for _, r := range t.resources {
		if err := t.dependencies(r); err != nil {
			return nil, err
		}
	}
	return t, t.order()
}

// parameterTypes are the types of parameters as deployments show them.
var parameterTypes = map[string]string{
	"string": "String", "securestring": "SecureString", "int": "Int", "bool": "Bool", "object": "Object", "secureobject": "SecureObject", "array": "Array",
}

// bindParameters gives every declared parameter its value: the given one as it is,
// or its default, which may be an expression.
func (s *scope) bindParameters(declared, given behaviour.Object) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if keyOf(declared, name) == "" {
			return invalid("The template parameters '%s' in the parameters file are not valid; they are not present in the original template and can therefore not be provided at deployment time. The only supported parameters for this template are '%s'. Please see https://aka.ms/arm-pass-parameter-values for usage details", name, strings.Join(slices.Sorted(maps.Keys(declared)), ", "))
		}
	}
	names := slices.Sorted(maps.Keys(declared))
	for _, name := range names {
		entry, _ := given[keyOf(given, name)].(behaviour.Object)
		if value, ok := entry["value"]; ok {
			s.parameters[name] = value
			continue
		}
		value, ok := behaviour.Sub(declared, name)["defaultValue"]
		if !ok {
			return invalid("The value for the template parameter '%s' at line '1' and column '1' is not provided. Please see https://aka.ms/arm-create-parameter-file for usage details", name)
		}
		s.defaults[name] = value
	}
	for _, name := range names {
		if _, isGiven := s.parameters[name]; !isGiven {
			value, err := s.evaluate(s.defaults[name])
			if err != nil {
				return invalid("%v", err)
			}
			s.parameters[name] = value
		}
		if err := checkParameter(name, behaviour.Sub(declared, name), s.parameters[name]); err != nil {
			return err
		}
	}
	return nil
}

// keyOf is the object's own spelling of a key, "" when it has none.
func keyOf(o behaviour.Object, name string) string {
	for key := range o {
		if strings.EqualFold(key, name) {
			return key
		}
	}
	return ""
}

func checkParameter(name string, declaration behaviour.Object, value any) error {
	kind, allowed := strings.ToLower(behaviour.Text(declaration, "type")), behaviour.Array(declaration, "allowedValues")
	if parameterTypes[kind] == "" {
		return invalid("The template parameter '%s' has the type '%s', which is not one of %s", name, kind, strings.Join(slices.Sorted(maps.Keys(parameterTypes)), ", "))
	}
	fits := false
	switch v := value.(type) {
	case string:
		fits = strings.HasSuffix(kind, "string")
	case float64:
		fits = kind == "int" && v == float64(int(v))
	case bool:
		fits = kind == "bool"
	case behaviour.Object:
		fits = strings.HasSuffix(kind, "object")
	case []any:
		fits = kind == "array"
	}
	if !fits {
		return invalid("Template parameter JToken type is not valid. Expected '%s'. Actual value of the parameter '%s' is %v. Please see https://aka.ms/resource-manager-parameter-files for usage details", parameterTypes[kind], name, value)
	}
	if len(allowed) > 0 && !slices.ContainsFunc(allowed, func(a any) bool { return behaviour.Equal(a, value) }) {
		return invalid("The provided value for the template parameter '%s' is not valid. The value '%v' is not part of the allowed value(s): '%s'", name, value, join(allowed))
	}
	return nil
}

func join(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, ",")
}

// add takes resources into the template, those nested in others with the type and
// name of what they are nested in.
func (t *template) add(outerType, outerName string, documents []behaviour.Object) error {
	for _, document := range documents {
		if err := t.addOne(outerType, outerName, document); err != nil {
			return err
		}
	}
	return nil
}

func (t *template) addOne(outerType, outerName string, document behaviour.Object) error {
	name, err := t.text(document, "name")
	if err != nil {
		return err
	}
	fullType := behaviour.Text(document, "type")
	if outerType != "" && !strings.HasPrefix(strings.ToLower(fullType), strings.ToLower(outerType)+"/") {
		fullType, name = outerType+"/"+fullType, outerName+"/"+name
	}
	for _, part := range []string{"copy", "resourceGroup", "subscriptionId"} {
		if document[part] != nil {
			return invalid("The resource '%s' has the section '%s', which is not supported by the local Azure", name, part)
		}
	}
	if strings.EqualFold(fullType, deploymentType) {
		return invalid("The resource '%s' is a nested deployment, which is not supported by the local Azure", name)
	}
	version := behaviour.Text(document, "apiVersion")
	if version == "" {
		return invalid("The template resource '%s' at line '1' and column '1' is not valid. The api-version is missing", name)
	}
	r := &templateResource{version: version, body: behaviour.Object{}}
	if r.id, err = t.id(document, fullType, name); err != nil {
		return invalid("The template resource '%s' of type '%s' is not valid: %v", name, fullType, err)
	}
	if _, twice := t.scope.names[strings.ToLower(name)]; twice {
		delete(t.scope.names, strings.ToLower(name))
	} else {
		t.scope.names[strings.ToLower(name)] = r.id
	}
	if wanted, err := t.wanted(document); err != nil || !wanted {
		t.dropped[r.id.Key()] = true
		return err
	}
	if r.location, err = t.text(document, "location"); err != nil {
		return err
	}
	for key, value := range document {
		if !slices.Contains([]string{"type", "apiVersion", "name", "dependsOn", "condition", "comments", "scope", "resources"}, key) {
			r.body[key] = value
		}
	}
	r.after = behaviour.Array(document, "dependsOn")
	t.resources = append(t.resources, r)
	return t.add(fullType, name, behaviour.Objects(document, "resources"))
}

// wanted evaluates a resource's condition.
func (t *template) wanted(document behaviour.Object) (bool, error) {
	condition, there := document["condition"]
	if !there {
		return true, nil
	}
	value, err := t.scope.evaluate(condition)
	if err != nil {
		return false, invalid("%v", err)
	}
	wanted, ok := value.(bool)
	if !ok {
		return false, invalid("The condition '%v' is not a boolean", condition)
	}
	return wanted, nil
}

// text is a field that has to be a string after evaluation; "" when it is absent.
func (t *template) text(document behaviour.Object, field string) (string, error) {
	value, there := document[field]
	if !there && field != "name" {
		return "", nil
	}
	value, err := t.scope.evaluate(value)
	if err != nil {
		return "", invalid("%v", err)
	}
	s, ok := value.(string)
	if !ok {
		return "", invalid("The %s of a template resource is '%v', which is not a string", field, value)
	}
	return s, nil
}

func (t *template) id(document behaviour.Object, fullType, name string) (azure.ID, error) {
	if !strings.Contains(fullType, "/") {
		return "", fmt.Errorf("the type has no namespace")
	}
	base := t.scope.deployment.Parent()
	if strings.EqualFold(fullType, groupType) {
		if base.Group() != "" {
			return "", fmt.Errorf("resource groups are deployed at a subscription")
		}
		return azure.GroupID(base.Subscription(), name), nil
	}
	if scope, err := t.text(document, "scope"); err != nil {
		return "", err
	} else if scope != "" {
		base = t.scope.target(scope)
	}
	return joinID(base, fullType, strings.Split(name, "/"))
}

// dependencies notes what has to be there before a resource: what it says, and what
// its expressions refer to.
func (t *template) dependencies(r *templateResource) error {
	for _, x := range r.after {
		value, err := t.scope.evaluate(x)
		if err != nil {
			return invalid("%v", err)
		}
		s, _ := value.(string)
		id := t.scope.target(s)
		switch {
		case t.has(id):
			r.dependsOn = append(r.dependsOn, id)
		case !t.dropped[id.Key()]:
			return invalid("The resource '%s' is not defined in the template. Please see https://aka.ms/arm-syntax-resources for usage details", s)
		}
	}
	var failure error
	eachExpression(r.body, func(e expression, err error) {
		if err != nil {
			failure = err
			return
		}
		e.calls(func(call expression) {
			if _, known := t.scope.functions[strings.ToLower(call.call)]; !known {
				_, failure = t.scope.compute(call)
			}
			if !strings.EqualFold(call.call, "reference") || len(call.args) == 0 {
				return
			}
			// Only a resource that is named, not one given by its id, is waited for.
			if name, err := t.scope.compute(call.args[0]); err == nil && !strings.HasPrefix(fmt.Sprint(name), "/") {
				r.dependsOn = append(r.dependsOn, t.scope.target(fmt.Sprint(name)))
			}
		})
	})
	if failure != nil {
		return invalid("%v", failure)
	}
	return nil
}

// eachExpression visits all expressions in a value.
func eachExpression(value any, visit func(expression, error)) {
	switch v := value.(type) {
	case string:
		if text, ok := inBrackets(v); ok {
			visit(parseExpression(text))
		}
	case behaviour.Object:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			eachExpression(v[key], visit)
		}
	case []any:
		for _, x := range v {
			eachExpression(x, visit)
		}
	}
}

// order sorts the resources so that each comes after what it depends on.
func (t *template) order() error {
	byKey := map[string]*templateResource{}
	for _, r := range t.resources {
		if byKey[r.id.Key()] != nil {
			return invalid("The resource '%s' is defined multiple times in a template. Please see https://aka.ms/arm-syntax-resources for usage details", r.id)
		}
		byKey[r.id.Key()] = r
	}
	var sorted []*templateResource
	state := map[*templateResource]int{}
	const visiting, done = 1, 2
	var visit func(r *templateResource) error
	visit = func(r *templateResource) error {
		switch state[r] {
		case visiting:
			return invalid("Circular dependency detected on resource: '%s'. Please see https://aka.ms/arm-syntax-resources for usage details", r.id)
		case done:
			return nil
		}
		state[r] = visiting
		for _, id := range append(r.dependsOn, r.id.Parent()) {
			if before := byKey[id.Key()]; before != nil {
				if err := visit(before); err != nil {
					return err
				}
			}
		}
		state[r] = done
		sorted = append(sorted, r)
		return nil
	}
	for _, r := range t.resources {
		if err := visit(r); err != nil {
			return err
		}
	}
	t.resources = sorted
	return nil
}
