package vault

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// policyRoute changes the access policies of a vault by add, replace and remove.
func policyRoute() behaviour.Route {
	return behaviour.Route{
		Method: "PUT", Writes: true, Do: changePolicies, Permission: "Microsoft.KeyVault/vaults/accessPolicies/write",
		Pattern: policyPattern,
	}
}

// policyPattern is the path of an operation on the access policies of a vault.
const policyPattern = "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.KeyVault/vaults/{vault}/" +
	"accessPolicies/{operation}"

// noPolicyRoute answers the GET of an operation on access policies: there is none.
func noPolicyRoute() behaviour.Route {
	return behaviour.Route{
		Method: "GET", Pattern: policyPattern, Permission: vaultType + "/read",
		Do: func(c *behaviour.Call) (behaviour.Reply, error) {
			vault := azure.GroupID(c.Param["subscription"], c.Param["group"]).Resource(vaultType, c.Param["vault"])
			return behaviour.Reply{}, behaviour.NotFound(vault.Child("accessPolicies", c.Param["operation"]))
		},
	}
}

func changePolicies(c *behaviour.Call) (behaviour.Reply, error) {
	group := c.Param["group"]
	groupID := azure.GroupID(c.Param["subscription"], group)
	if _, ok := c.Get(groupID); !ok {
		return behaviour.Reply{}, behaviour.GroupNotFound(group)
	}
	id := groupID + azure.ID("/providers/"+vaultType+"/"+c.Param["vault"])
	vault, ok := c.Get(id)
	if !ok {
		return behaviour.Reply{}, behaviour.ParentNotFound("write", id.Child("accessPolicies", c.Param["operation"]))
	}
	policies, err := changed(vault, c.Param["operation"], c.Body)
	if err != nil {
		return behaviour.Reply{}, err
	}
	c.Edit(id, func(doc behaviour.Object) { behaviour.Set(doc, policiesPath, policies) })
	return behaviour.Reply{Status: 200, Body: behaviour.Object{
		"id": string(id) + "/accessPolicies/", "type": vaultType + "/accessPolicies",
		"properties": behaviour.Object{"accessPolicies": policies},
	}, Header: serviceHeader(c, 0)}, nil
}

// changed are the access policies of a vault after an operation.
func changed(vault behaviour.Object, operation string, body behaviour.Object) ([]any, error) {
	change, ok := policyChanges[strings.ToLower(operation)]
	if !ok {
		return nil, behaviour.Invalid("BadRequest",
			"The operation '%s' on access policies is not valid: add, replace and remove are allowed.", operation)
	}
	policies := slices.Clone(behaviour.Array(vault, policiesPath))
	for _, sent := range behaviour.Objects(body, policiesPath) {
		policies = change(policies, sent)
	}
	return policies, nil
}

// accessPolicies is the type of the operations as resources of templates: "vault/add". A request of a client is that of policyRoute. The
// operation is no resource of clients: noPolicyRoute answers that it is not there.
func accessPolicies() behaviour.Type {
	return behaviour.Type{
		Name: vaultType + "/accessPolicies", Style: secretStyle("Microsoft.KeyVault access policies"), NoState: true,
		Fill: func(c *behaviour.Call) error {
			_, err := changed(c.Parent, c.ID.Name(), c.Body)
			return err
		},
		Settle: func(c *behaviour.Call) error {
			vault, there := c.Get(c.ID.Parent())
			if !there {
				return behaviour.ParentNotFound("write", c.ID)
			}
			policies, err := changed(vault, c.ID.Name(), c.Doc)
			if err != nil {
				return err
			}
			c.Edit(c.ID.Parent(), func(doc behaviour.Object) { behaviour.Set(doc, policiesPath, policies) })
			return nil
		},
	}
}

const policiesPath = "properties.accessPolicies"

// policyChanges are the operations: add grants further permissions, replace sets the permissions of an object, remove takes some away.
var policyChanges = map[string]func(policies []any, sent behaviour.Object) []any{
	"add": func(policies []any, sent behaviour.Object) []any {
		return setPolicy(policies, sent, func(had, sent []string) []string {
			for _, word := range sent {
				if !containsWord(had, word) {
					had = append(had, word)
				}
			}
			return had
		})
	},
	"replace": func(policies []any, sent behaviour.Object) []any {
		return append(slices.DeleteFunc(policies, samePolicy(sent)), behaviour.Clone(sent))
	},
	"remove": func(policies []any, sent behaviour.Object) []any {
		if !slices.ContainsFunc(policies, samePolicy(sent)) {
			return policies
		}
		changed := setPolicy(policies, sent, func(had, sent []string) []string {
			return slices.DeleteFunc(had, func(word string) bool { return containsWord(sent, word) })
		})
		return slices.DeleteFunc(changed, func(p any) bool {
			policy, _ := p.(behaviour.Object)
			for _, words := range behaviour.Sub(policy, "permissions") {
				if list, _ := words.([]any); len(list) > 0 {
					return false
				}
			}
			return samePolicy(sent)(p)
		})
	},
}

// setPolicy writes the result of an operation on the permissions of an object and the permissions that were sent.
func setPolicy(policies []any, sent behaviour.Object, merge func(had, sent []string) []string) []any {
	policy := behaviour.Clone(sent)
	policy["permissions"] = behaviour.Object{}
	if i := slices.IndexFunc(policies, samePolicy(sent)); i >= 0 {
		had, _ := policies[i].(behaviour.Object)
		policy = behaviour.Clone(had)
	}
	for kind := range behaviour.Sub(sent, "permissions") {
		path := "permissions." + kind
		words := []any{}
		for _, word := range merge(behaviour.Texts(policy, path), behaviour.Texts(sent, path)) {
			words = append(words, word)
		}
		behaviour.Set(policy, path, words)
	}
	if i := slices.IndexFunc(policies, samePolicy(sent)); i >= 0 {
		policies[i] = policy
		return policies
	}
	return append(policies, policy)
}

// samePolicy tells the policies of the same object.
func samePolicy(sent behaviour.Object) func(any) bool {
	return func(p any) bool {
		policy, _ := p.(behaviour.Object)
		return strings.EqualFold(behaviour.Text(policy, "objectId"), behaviour.Text(sent, "objectId")) &&
			strings.EqualFold(behaviour.Text(policy, "applicationId"), behaviour.Text(sent, "applicationId"))
	}
}

func containsWord(words []string, word string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, word) })
}
