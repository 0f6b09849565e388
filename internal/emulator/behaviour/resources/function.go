package resources

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// scope is what the expressions of a template can refer to.
type scope struct {
	deployment azure.ID
	parameters behaviour.Object // values
	defaults   behaviour.Object // of parameters without a value yet, with expressions
	variables  behaviour.Object // with expressions
	location   string           // of the group
	// names are the template's resources by their names, in lower case. Those that
	// two resources have are not among them.
	names  map[string]azure.ID
	tenant string
	// reference looks up the properties of a resource, or all of it; nil while
	// resources do not exist yet.
	reference func(id azure.ID, full bool) (any, error)
	functions map[string]function
	depth     int // of variables within variables
	steps     int // computed so far
	length    int // of the strings made so far
}

// Limits of what a template may compute. Azure has limits of its own; these are
// there so that no template holds up the server.
const (
	mostSteps  = 100_000
	mostLength = 16 << 20
)

// function computes a function of the template language.
type function func(s *scope, args []any) (any, error)

// functions are those that are understood. The language has many more: a template
// that uses them is refused, and the refusal says which one.
func functions() map[string]function {
	return map[string]function{
		"concat":        concat,
		"parameters":    (*scope).parameter,
		"variables":     (*scope).variable,
		"providers":     providersFunction,
		"reference":     reference,
		"resourcegroup": groupFunction,
		"resourceid":    resourceID,
		"subscription":  subscriptionFunction,
		"tolower":       func(_ *scope, args []any) (any, error) { return onText(args, strings.ToLower) },
		"toupper":       func(_ *scope, args []any) (any, error) { return onText(args, strings.ToUpper) },
	}
}

// evaluate computes a value of a template: strings in brackets are expressions.
func (s *scope) evaluate(value any) (any, error) {
	switch v := value.(type) {
	case string:
		text, ok := inBrackets(v)
		if !ok {
			return strings.Replace(v, "[[", "[", 1), nil
		}
		e, err := parseExpression(text)
		if err != nil {
			return nil, err
		}
		return s.compute(e)
	case behaviour.Object:
		object := make(behaviour.Object, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			x, err := s.evaluate(v[key])
			if err != nil {
				return nil, err
			}
			object[key] = x
		}
		return object, nil
	case []any:
		array := make([]any, len(v))
		for i, x := range v {
			y, err := s.evaluate(x)
			if err != nil {
				return nil, err
			}
			array[i] = y
		}
		return array, nil
	}
	return value, nil
}

func (s *scope) compute(e expression) (any, error) {
	if e.call == "" {
		return e.literal, nil
	}
	if s.steps++; s.steps > mostSteps || s.length > mostLength {
		return nil, fmt.Errorf("the template computes too much: more than %d calls, or %d characters", mostSteps, mostLength)
	}
	f, ok := s.functions[strings.ToLower(e.call)]
	if !ok {
		known := slices.Sorted(maps.Keys(s.functions))
		return nil, fmt.Errorf("the template function '%s' is not supported by the local Azure: it knows %s", e.call, strings.Join(known, ", "))
	}
	args := make([]any, len(e.args))
	for i, a := range e.args {
		v, err := s.compute(a)
		if err != nil {
			return nil, err
		}
		args[i] = v
	}
	value, err := f(s, args)
	if err != nil {
		return nil, err
	}
	for _, step := range e.path {
		if value, err = s.step(value, step); err != nil {
			return nil, fmt.Errorf("the language expression with '%s' can not be evaluated: %w", e.call, err)
		}
	}
	return value, nil
}

// step selects a property or an element.
func (s *scope) step(value any, step expression) (any, error) {
	key, err := s.compute(step)
	if err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case behaviour.Object:
		name, _ := key.(string)
		for k, x := range v {
			if strings.EqualFold(k, name) {
				return x, nil
			}
		}
		return nil, fmt.Errorf("the property '%v' doesn't exist, available properties are '%s'", key, strings.Join(slices.Sorted(maps.Keys(v)), ", "))
	case []any:
		if i, ok := key.(float64); ok && i >= 0 && int(i) < len(v) {
			return v[int(i)], nil
		}
		return nil, fmt.Errorf("the array index '%v' is out of bounds: there are %d elements", key, len(v))
	}
	return nil, fmt.Errorf("property '%v' can't be evaluated, the value is neither an object nor an array", key)
}

// parameter is the value of a parameter.
func (s *scope) parameter(args []any) (any, error) {
	name, ok := oneText(args)
	if !ok {
		return nil, fmt.Errorf("the function 'parameters' expects one name")
	}
	if key := keyOf(s.parameters, name); key != "" {
		return s.parameters[key], nil
	}
	return s.later(s.defaults, "parameter", name)
}

// variable is the value of a variable.
func (s *scope) variable(args []any) (any, error) {
	name, ok := oneText(args)
	if !ok {
		return nil, fmt.Errorf("the function 'variables' expects one name")
	}
	return s.later(s.variables, "variable", name)
}

// later evaluates a value of the template when it is asked for.
func (s *scope) later(values behaviour.Object, what, name string) (any, error) {
	key := keyOf(values, name)
	if key == "" {
		return nil, fmt.Errorf("the template %s '%s' is not found. Please see https://aka.ms/arm-syntax-%ss for usage details", what, name, what)
	}
	if s.depth++; s.depth > deepest {
		return nil, fmt.Errorf("the template %s '%s' refers to itself", what, name)
	}
	defer func() { s.depth-- }()
	return s.evaluate(values[key])
}

func oneText(args []any) (string, bool) {
	if len(args) != 1 {
		return "", false
	}
	s, ok := args[0].(string)
	return s, ok
}

func onText(args []any, f func(string) string) (any, error) {
	s, ok := oneText(args)
	if !ok {
		return nil, fmt.Errorf("the function expects one string")
	}
	return f(s), nil
}

func concat(s *scope, args []any) (any, error) {
	if len(args) > 0 {
		if _, isArray := args[0].([]any); isArray {
			joined := []any{}
			for _, a := range args {
				array, ok := a.([]any)
				if !ok {
					return nil, fmt.Errorf("the function 'concat' expects arrays only, or no array")
				}
				joined = append(joined, array...)
			}
			return joined, nil
		}
	}
	var b strings.Builder
	for _, a := range args {
		switch v := a.(type) {
		case string:
			b.WriteString(v)
		case float64:
			b.WriteString(strconv.FormatFloat(v, 'f', -1, 64))
		case bool:
			b.WriteString(strings.ToUpper(strconv.FormatBool(v)[:1]) + strconv.FormatBool(v)[1:])
		default:
			return nil, fmt.Errorf("the function 'concat' expects strings, numbers and booleans")
		}
	}
	s.length += b.Len()
	return b.String(), nil
}

func groupFunction(s *scope, _ []any) (any, error) {
	group := s.deployment.Group()
	if group == "" {
		return nil, fmt.Errorf("the template function 'resourceGroup' is not expected at a deployment outside of resource groups")
	}
	return behaviour.Object{
		"id": string(azure.GroupID(s.deployment.Subscription(), group)), "name": group, "type": groupType, "location": s.location,
		"properties": behaviour.Object{"provisioningState": "Succeeded"},
	}, nil
}

func subscriptionFunction(s *scope, _ []any) (any, error) {
	id := s.deployment.Subscription()
	return behaviour.Object{"id": string(azure.SubscriptionID(id)), "subscriptionId": id, "tenantId": s.tenant, "displayName": "kaz"}, nil
}

// providersFunction is providers(namespace, [type]).
func providersFunction(_ *scope, args []any) (any, error) {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i], _ = a.(string)
	}
	if len(texts) == 0 || len(texts) > 2 {
		return nil, fmt.Errorf("the function 'providers' expects a namespace and a resource type")
	}
	found := provider("", texts[0])
	if found == nil {
		return nil, fmt.Errorf("the function 'providers' does not know the namespace '%s'", texts[0])
	}
	if len(texts) == 1 {
		return found, nil
	}
	for _, t := range behaviour.Objects(found, "resourceTypes") {
		if strings.EqualFold(behaviour.Text(t, "resourceType"), texts[1]) {
			return behaviour.Object{"resourceType": t["resourceType"], "locations": t["locations"], "apiVersions": t["apiVersions"]}, nil
		}
	}
	return nil, fmt.Errorf("the function 'providers' does not know the type '%s' of '%s'", texts[1], texts[0])
}

// resourceID is resourceId([subscription], [group], type, name, ...).
func resourceID(s *scope, args []any) (any, error) {
	texts := make([]string, len(args))
	for i, a := range args {
		t, ok := a.(string)
		if !ok {
			return nil, fmt.Errorf("the function 'resourceId' expects strings")
		}
		texts[i] = t
	}
	at := slices.IndexFunc(texts, func(t string) bool { return strings.Contains(t, "/") })
	if at < 0 || at > 2 {
		return nil, fmt.Errorf("the function 'resourceId' expects a resource type such as Microsoft.Network/virtualNetworks")
	}
	subscription, group := s.deployment.Subscription(), s.deployment.Group()
	switch at {
	case 1:
		group = texts[0]
	case 2:
		subscription, group = texts[0], texts[1]
	}
	base := azure.SubscriptionID(subscription)
	if group != "" {
		base = azure.GroupID(subscription, group)
	}
	id, err := joinID(base, texts[at], texts[at+1:])
	return string(id), err
}

// joinID makes an id of a type with the names of its segments.
func joinID(base azure.ID, fullType string, names []string) (azure.ID, error) {
	parts := strings.Split(fullType, "/")
	if len(parts)-1 != len(names) {
		return "", fmt.Errorf("the type '%s' needs %d names, %d are given", fullType, len(parts)-1, len(names))
	}
	id := base.Resource(parts[0]+"/"+parts[1], names[0])
	for i, segment := range parts[2:] {
		id = id.Child(segment, names[i+1])
	}
	if _, err := azure.ParseID(string(id)); err != nil {
		return "", err
	}
	return id, nil
}

// reference is reference(resource, [api-version], ['Full']).
func reference(s *scope, args []any) (any, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("the function 'reference' expects the name or id of a resource")
	}
	name, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("the function 'reference' expects the name or id of a resource")
	}
	if s.reference == nil {
		return nil, fmt.Errorf("the template function 'reference' is not expected at this location")
	}
	full := len(args) == 3 && args[2] == "Full"
	return s.reference(s.target(name), full)
}

// target is the id of a resource that a template names by id, by its name in the
// template, or by type and name in its own group.
func (s *scope) target(name string) azure.ID {
	if strings.HasPrefix(name, "/") {
		return azure.ID(name)
	}
	if id, ok := s.names[strings.ToLower(name)]; ok {
		return id
	}
	base := s.deployment.Parent()
	return base + "/providers/" + azure.ID(name)
}
