package template

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/short"
	language "kaz/internal/template/function"
)

// identifiers has the functions of ids, of the deployment, and of what only Azure knows.
var identifiers = map[string]function{
	"resourceid":                {least: 2, most: -1, here: resourceID},
	"subscriptionresourceid":    {least: 2, most: -1, here: subscriptionResourceID},
	"tenantresourceid":          {least: 2, most: -1, here: tenantResourceID},
	"managementgroupresourceid": {least: 3, most: -1, here: managementGroupResourceID},
	"extensionresourceid":       {least: 3, most: -1, here: extensionResourceID},

	"resourcegroup": {here: func(s *evaluator, _ []any) (any, error) {
		return s.scope("resourceGroup", s.deployment.Group, "outside of resource groups")
	}},
	"subscription": {here: func(s *evaluator, _ []any) (any, error) {
		return s.scope("subscription", s.deployment.Subscription, "outside of subscriptions")
	}},
	"tenant": {here: func(s *evaluator, _ []any) (any, error) {
		return s.scope("tenant", s.deployment.Tenant, "outside of tenants")
	}},
	"environment": {here: func(s *evaluator, _ []any) (any, error) {
		return s.scope("environment", s.deployment.Environment, "whose environment is not known")
	}},
	"deployer": {here: func(s *evaluator, _ []any) (any, error) {
		return s.scope("deployer", s.deployment.Deployer, "whose deployer is not known")
	}},
	"managementgroup": {here: func(s *evaluator, _ []any) (any, error) {
		return s.scope("managementGroup", nil, "outside of management groups")
	}},
	"deployment": {here: deployment},
	"copyindex":  {most: 2, here: copyIndex},

	"providers":  {least: 1, most: 2, here: providers},
	"reference":  {least: 1, most: 3, here: reference},
	"references": {least: 1, most: 2, here: references},

	"pickzones":       {least: 3, most: 5, here: pickZones},
	"tologicalzone":   {least: 3, most: 3, here: zone(language.LogicalZone)},
	"tologicalzones":  {least: 3, most: 3, here: zones(language.LogicalZone)},
	"tophysicalzone":  {least: 3, most: 3, here: zone(language.PhysicalZone)},
	"tophysicalzones": {least: 3, most: 3, here: zones(language.PhysicalZone)},
}

// scope is the value of a function that shows where the deployment is.
func (s *evaluator) scope(name string, value Object, without string) (any, error) {
	if value == nil {
		return nil, short.Errorf("the template function '%s' is not expected at a deployment %s", name, without)
	}
	return value, nil
}

func deployment(s *evaluator, _ []any) (any, error) {
	shown := Object{"name": s.deployment.ID.Name(), "properties": Object{
		"template": s.document, "parameters": s.deployment.Parameters, "mode": "Incremental", "provisioningState": "Accepted",
	}}
	if s.deployment.Hash != nil {
		if s.hash == "" {
			s.hash = s.deployment.Hash(s.document)
		}
		object(shown, "properties")["templateHash"] = s.hash
	}
	if s.deployment.TemplateLink != nil {
		object(shown, "properties")["templateLink"] = s.deployment.TemplateLink
	}
	if s.deployment.Location != "" {
		shown["location"] = s.deployment.Location
	}
	return shown, nil
}

// resourceID is resourceId([subscription], [group], type, name, ...).
func resourceID(s *evaluator, args []any) (any, error) {
	id := s.deployment.ID
	subscription, group := id.Subscription(), id.Group()
	before, rest, err := aroundType(args, 2)
	if err != nil {
		return nil, err
	}
	switch len(before) {
	case 1:
		group = before[0]
	case 2:
		subscription, group = before[0], before[1]
	}
	base := azure.SubscriptionID(subscription)
	if group != "" {
		base = azure.GroupID(subscription, group)
	}
	return joined(base, rest)
}

// subscriptionResourceID is subscriptionResourceId([subscription], type, name, ...).
func subscriptionResourceID(s *evaluator, args []any) (any, error) {
	before, rest, err := aroundType(args, 1)
	if err != nil {
		return nil, err
	}
	subscription := s.deployment.ID.Subscription()
	if len(before) > 0 {
		subscription = before[0]
	}
	return joined(azure.SubscriptionID(subscription), rest)
}

// tenantResourceID is tenantResourceId(type, name, ...).
func tenantResourceID(_ *evaluator, args []any) (any, error) {
	_, rest, err := aroundType(args, 0)
	if err != nil {
		return nil, err
	}
	return joined("", rest)
}

// managementGroupResourceID is managementGroupResourceId(group, type, name, ...). The
// language lets a deployment to a management group leave the group out.
func managementGroupResourceID(_ *evaluator, args []any) (any, error) {
	before, rest, err := aroundType(args, 1)
	if err != nil {
		return nil, err
	}
	if len(before) == 0 {
		return nil, language.Expects("a management group, a resource type and its names")
	}
	return joined(azure.ID("").Resource("Microsoft.Management/managementGroups", before[0]), rest)
}

// extensionResourceID is extensionResourceId(id, type, name, ...).
func extensionResourceID(_ *evaluator, args []any) (any, error) {
	id, ok := args[0].(string)
	if !ok {
		return nil, language.Expects("strings")
	}
	_, rest, err := aroundType(args[1:], 0)
	if err != nil {
		return nil, err
	}
	return joined(azure.ID(id), rest)
}

// aroundType cuts arguments at the resource type, of which at most some are before it.
func aroundType(args []any, most int) (before, rest []string, err error) {
	all, ok := language.AllText(args)
	if !ok {
		return nil, nil, language.Expects("strings")
	}
	at := slices.IndexFunc(all, func(t string) bool { return strings.Contains(t, "/") })
	if at < 0 || at > most {
		return nil, nil, language.Expects("a resource type such as Microsoft.Network/virtualNetworks")
	}
	return all[:at], all[at:], nil
}

// joined is the id of a type and its names.
func joined(base azure.ID, typeAndNames []string) (any, error) {
	id, err := joinID(base, typeAndNames[0], typeAndNames[1:])
	return string(id), err
}

// joinID makes an id of a type with the names of its segments. A slash at the end of the type does not count.
func joinID(base azure.ID, fullType string, names []string) (azure.ID, error) {
	fullType = strings.TrimSuffix(fullType, "/")
	parts := strings.Split(fullType, "/")
	if len(parts)-1 != len(names) {
		return "", short.Errorf("the type '%s' needs %d names, %d are given", fullType, len(parts)-1, len(names))
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

// providers is providers(namespace, [type]).
func providers(s *evaluator, args []any) (any, error) {
	texts, ok := language.AllText(args)
	if !ok {
		return nil, language.Expects("a namespace and a resource type")
	}
	if s.deployment.Azure == nil {
		return nil, errors.New("the template function 'providers' needs Azure")
	}
	if len(texts) == 1 {
		if found := s.deployment.Azure.Provider(texts[0]); found != nil {
			return found, nil
		}
		return nil, short.Errorf("the function 'providers' does not know the namespace '%s'", texts[0])
	}
	t, err := s.providedType("providers", texts[0], texts[1])
	if err != nil {
		return nil, err
	}
	return Object{"resourceType": t["resourceType"], "locations": t["locations"], "apiVersions": t["apiVersions"]}, nil
}

// providedType is what a provider says of one of its types.
func (s *evaluator) providedType(function, namespace, name string) (Object, error) {
	found := s.deployment.Azure.Provider(namespace)
	if found == nil {
		return nil, short.Errorf("the function '%s' does not know the namespace '%s'", function, namespace)
	}
	types, _ := found["resourceTypes"].([]any)
	for _, x := range types {
		t, _ := x.(Object)
		if own, _ := t["resourceType"].(string); strings.EqualFold(own, name) {
			return t, nil
		}
	}
	return nil, short.Errorf("the function '%s' does not know the type '%s' of '%s'", function, name, namespace)
}

// reference is reference(resource, [api-version], ['Full']).
func reference(s *evaluator, args []any) (any, error) {
	r, err := s.asked("reference", args)
	if err != nil {
		return nil, err
	}
	var how any
	if len(args) == 3 {
		how = args[2]
	}
	return s.shown(r, how)
}

// references is references(symbolic name of a copy loop, ['Full' or 'Properties']).
func references(s *evaluator, args []any) (any, error) {
	name, _ := args[0].(string)
	made, ok := s.symbols[name]
	if !ok {
		return nil, language.Expects("the symbolic name of a resource with a copy loop")
	}
	if s.azure == nil {
		return nil, tooEarly("references")
	}
	var how any
	if len(args) == 2 {
		how = args[1]
	}
	all := []any{}
	for _, r := range made {
		value, err := s.shown(Reference{ID: r.ID, Version: r.Version}, how)
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, nil
}

// shown is a resource that exists: its properties, or all of it.
func (s *evaluator) shown(r Reference, how any) (any, error) {
	whole, err := s.azure.Reference(r)
	if err != nil {
		return nil, err
	}
	if text, ok := how.(string); ok && strings.EqualFold(text, "Full") {
		return whole, nil
	}
	properties, ok := whole["properties"].(Object)
	if !ok {
		properties = Object{}
	}
	return properties, nil
}

// list is a function such as listKeys(resource, [api-version], [body]).
func (s *evaluator) list(name string, args []any) (any, error) {
	r, err := s.asked(name, args)
	if err != nil {
		return nil, err
	}
	var body any
	if len(args) == 3 {
		body = args[2]
	}
	return s.azure.List(name, r, body)
}

// asked is the resource that a runtime function names, when there are resources.
func (s *evaluator) asked(function string, args []any) (Reference, error) {
	name, ok := args[0].(string)
	if !ok {
		return Reference{}, language.Expects("the name or id of a resource")
	}
	if s.azure == nil {
		return Reference{}, tooEarly(function)
	}
	r := Reference{ID: s.target(name)}
	if own := s.byID[r.ID.Key()]; own != nil {
		r.Version = own.Version
	} else if own := s.symbol(name); own != nil {
		r.Version = own.Version
	}
	if len(args) > 1 {
		if version, ok := args[1].(string); ok && version != "" {
			r.Version = version
		}
	}
	return r, nil
}

// symbol is the resource with a symbolic name, or one of a copy loop: name[index]. It is nil for none.
func (s *evaluator) symbol(name string) *Resource {
	name, index, copied := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	i, err := strconv.Atoi(index)
	made := s.symbols[name]
	switch {
	case !copied && len(made) == 1:
		return made[0]
	case copied && err == nil && i >= 0 && i < len(made):
		return made[i]
	}
	return nil
}

// canonical is the id of a resource group in its own form; functions write it as that of a resource of a provider.
func canonical(id azure.ID) azure.ID {
	if id.Group() == "" && id.Subscription() != "" && id.Is(groupType) {
		return azure.GroupID(id.Subscription(), id.Name())
	}
	return id
}

// target is the id of a resource that a template names. The name is an id, a name in the template, or a type and a
// name in the scope of the deployment.
func (s *evaluator) target(name string) azure.ID {
	if strings.HasPrefix(name, "/") {
		return canonical(azure.ID(name))
	}
	if r := s.symbol(name); r != nil {
		return r.ID
	}
	if r, ok := s.names[strings.ToLower(name)]; ok && r != nil {
		return r.ID
	}
	return s.deployment.ID.Parent() + "/providers/" + azure.ID(name)
}
