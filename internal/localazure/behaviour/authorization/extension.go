package authorization

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/policy"
)

const lockType = "Microsoft.Authorization/locks"

// locks is the type of the locks that forbid to delete or to change what is in their scope.
func locks() behaviour.Type {
	s := behaviour.Plain("Microsoft.Authorization")
	s.Absent = 204
	return scoped(lockType, s, func(c *behaviour.Call) error {
		for _, level := range []string{"CanNotDelete", "ReadOnly", "NotSpecified"} {
			if strings.EqualFold(behaviour.Text(c.Doc, "properties.level"), level) {
				behaviour.Set(c.Doc, "properties.level", level)
				return nil
			}
		}
		return behaviour.Gateway(400, "InvalidLockLevel", "The lock level '%s' of lock '%s' is invalid. The levels are 'CanNotDelete' and "+
			"'ReadOnly'.", behaviour.Text(c.Doc, "properties.level"), c.ID.Name())
	})
}

// scoped returns a type of resources that can be in any scope. A list has those in, above and below its scope.
func scoped(name string, s behaviour.Style, fill func(*behaviour.Call) error) behaviour.Type {
	return behaviour.Type{
		Name: name, Style: s, NoState: true, Where: behaviour.Anywhere,
		Fill: func(c *behaviour.Call) error {
			if err := scopeThere(c, c.ID.Parent()); err != nil {
				return err
			}
			if err := fill(c); err != nil {
				return err
			}
			behaviour.WriteSystemData(c)
			return nil
		},
		All: func(c *behaviour.Call) ([]behaviour.Object, error) {
			items := []behaviour.Object{}
			for _, x := range all(c, name) {
				if related(c.ID, x.id.Parent()) {
					items = append(items, x.doc)
				}
			}
			return items, nil
		},
		Filter: func(c *behaviour.Call, text string) (func(behaviour.Object) bool, error) {
			return filter(text, map[string]func(string, behaviour.Object) bool{
				"atscope": func(_ string, o behaviour.Object) bool { return at(c.ID, azure.ID(behaviour.Text(o, "id")).Parent()) },
				"atexactscope": func(_ string, o behaviour.Object) bool {
					return c.ID.Equal(azure.ID(behaviour.Text(o, "id")).Parent())
				},
			})
		},
	}
}

// policies are the types of policies. The core enforces policies that deny.
func policies() []behaviour.Type {
	created := style()
	definitions := scoped("Microsoft.Authorization/policyDefinitions", created, fillPolicy("policyRule"))
	definitions.Missing = func(c *behaviour.Call) error { return noDefinition(c.ID) }
	return []behaviour.Type{
		definitions,
		scoped("Microsoft.Authorization/policySetDefinitions", created, fillPolicy("policyDefinitions")),
		scoped("Microsoft.Authorization/policyAssignments", created, fillPolicyAssignment),
		scoped("Microsoft.Authorization/policyExemptions", created, func(c *behaviour.Call) error {
			return needs(c, "policyAssignmentId", "exemptionCategory")
		}),
	}
}

func needs(c *behaviour.Call, fields ...string) error {
	for _, field := range fields {
		if behaviour.At(c.Doc, "properties."+field) == nil {
			return behaviour.Invalid("InvalidRequestContent", "The request content is invalid: the property '%s' is missing.", field)
		}
	}
	return nil
}

// fillPolicy returns the Fill of definitions, which must have the field.
func fillPolicy(field string) func(*behaviour.Call) error {
	return func(c *behaviour.Call) error {
		behaviour.Default(c.Doc, "properties.policyType", "Custom")
		if field == "policyRule" {
			behaviour.Default(c.Doc, "properties.mode", "Indexed")
		}
		spellParameters(c)
		stampMetadata(c)
		if err := needs(c, field); err != nil || field != "policyRule" {
			return err
		}
		return checkRule(c)
	}
}

// checkRule returns an error if the rule of a definition cannot be evaluated: with its defaults, or for what assigns it.
func checkRule(c *behaviour.Call) error {
	complete := true // a rule without all defaults is read when it is assigned
	for _, parameter := range behaviour.Sub(c.Doc, "properties.parameters") {
		o, _ := parameter.(behaviour.Object)
		complete = complete && o["defaultValue"] != nil
	}
	if complete {
		if _, err := policy.Parse(c.Doc, nil); err != nil {
			return policy.InvalidRule(c.ID.Name(), err)
		}
	}
	changed := func(id azure.ID) (behaviour.Object, bool) {
		if id.Equal(c.ID) {
			return c.Doc, true
		}
		return c.Get(id)
	}
	for _, x := range all(c, policy.AssignmentType) {
		assigned, err := policy.Definitions(x.doc, changed)
		if err != nil {
			continue // because of another definition
		}
		for _, one := range assigned {
			if !one.ID.Equal(c.ID) {
				continue
			}
			if _, err := policy.Parse(c.Doc, one.Values); err != nil {
				return policy.InvalidRule(c.ID.Name(), err)
			}
		}
	}
	return nil
}

// parameterTypes are the types of the parameters of policies, as Azure writes them.
var parameterTypes = []string{"String", "Array", "Object", "Boolean", "Integer", "Float", "DateTime"}

// spellParameters writes the types of a definition's parameters as Azure does.
func spellParameters(c *behaviour.Call) {
	for _, parameter := range behaviour.Sub(c.Doc, "properties.parameters") {
		o, _ := parameter.(behaviour.Object)
		is := func(name string) bool { return strings.EqualFold(name, behaviour.Text(o, "type")) }
		if i := slices.IndexFunc(parameterTypes, is); i >= 0 {
			o["type"] = parameterTypes[i]
		}
	}
}

func fillPolicyAssignment(c *behaviour.Call) error {
	behaviour.Set(c.Doc, "properties.scope", string(c.ID.Parent()))
	behaviour.Default(c.Doc, "properties.notScopes", []any{})
	behaviour.Default(c.Doc, "properties.enforcementMode", "Default")
	stampMetadata(c)
	if err := needs(c, "policyDefinitionId"); err != nil {
		return err
	}
	id := azure.ID(behaviour.Text(c.Doc, "properties.policyDefinitionId"))
	definition, ok := c.Get(id)
	if !ok && id.Subscription() != "" { // those outside of subscriptions are built in
		return noDefinition(id)
	}
	if !ok {
		return nil
	}
	if err := policy.CheckParameters(c.ID.Name(), c.Doc, definition); err != nil {
		return err
	}
	assigned, err := policy.Definitions(c.Doc, c.Get)
	if err != nil {
		return policy.InvalidRule(id.Name(), err)
	}
	for _, one := range assigned {
		if _, err := policy.Parse(one.Definition, one.Values); err != nil {
			return policy.InvalidRule(one.ID.Name(), err)
		}
	}
	return nil
}

func noDefinition(id azure.ID) error {
	return behaviour.Refusal(404, "PolicyDefinitionNotFound", "The policy definition '%s' could not be found.", id.Name())
}

// stampMetadata writes the author of the creation and of the last change into the metadata.
func stampMetadata(c *behaviour.Call) {
	const path = "properties.metadata."
	author := authorID(c)
	now := behaviour.Timestamp(c.Now())
	if was := behaviour.Sub(c.Old, "properties.metadata"); was != nil {
		behaviour.Set(c.Doc, path+"createdBy", was["createdBy"])
		behaviour.Set(c.Doc, path+"createdOn", was["createdOn"])
		behaviour.Set(c.Doc, path+"updatedBy", author)
		behaviour.Set(c.Doc, path+"updatedOn", now)
		return
	}
	behaviour.Set(c.Doc, path+"createdBy", author)
	behaviour.Set(c.Doc, path+"createdOn", now)
	behaviour.Set(c.Doc, path+"updatedBy", nil)
	behaviour.Set(c.Doc, path+"updatedOn", nil)
}
